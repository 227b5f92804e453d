//! The order management core: a pure function from (state, input) to outputs.
//!
//! ```text
//!             journal records                       identity (sequence, index)
//!   requests ─────┐                                ┌──> Output::Venue    to the venue, always first
//!   reports ──────┼──> Input ──> Core::apply ──────┼──> Output::Report   to the client
//!   limits, kills ┘                │               └──> Output::Denied   to the client
//!                                  └──> Digest: the same inputs give the same bytes
//! ```
//!
//! The core does no I/O and reads no clock: the time, the reference price and the order's id come with the input.
//! Whoever replays the journal gets the same state, the same outputs and the same [`Digest`].
//!
//! | file          | what it answers                                                    |
//! |---------------|--------------------------------------------------------------------|
//! | `record.rs`   | what lies in the journal, and how it becomes an [`Input`]          |
//! | `core.rs`     | the state, and the one way to change it: [`Core::apply`]           |
//! | `requests.rs` | what happens to a new order, a cancel, a replace                   |
//! | `reports.rs`  | what happens to a report, whatever the order in which reports come |
//! | `state.rs`    | the table of (phase, event), and the status that follows           |
//! | `risk.rs`     | the table of checks, and why a request is denied                   |
//! | `desk.rs`     | accounts, instruments, kill switches                               |
//! | `position.rs` | net and working quantity for each (account, symbol)                |
//! | `order.rs`    | what is kept of an order                                           |
//! | `output.rs`   | what the core says                                                 |
//! | `index.rs`    | linear hashing, from ids to slots                                  |
//! | `page.rs`     | memory in pages                                                    |
//! | `digest.rs`   | the fold over every output                                         |
//!
//! # Convergence
//!
//! Reports come twice and in any order. What the core keeps of them does not depend on it: fills are a set, the terms
//! belong to the replace with the highest venue sequence, the cumulative quantity is the largest one told, and an
//! ended order stays ended. Where the venue gives no sequence, a contradiction ends in `Unknown`, never in a guess.

mod core;
mod desk;
mod digest;
mod index;
mod order;
mod output;
mod page;
mod position;
mod record;
mod reports;
mod requests;
mod risk;
mod state;

pub use self::core::{At, Config, Core, Counts};
pub use self::index::{Index, tag};
pub use self::order::OrderView;
pub use self::output::{Output, Outputs};
pub use self::page::Page;
pub use self::position::PositionView;
pub use self::record::{
    AccountLimits, CancelRecord, Digest, Envelope, Input, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_SYMBOL, Kill,
    NewRecord, RecordError, RecordKind, ReplaceRecord, ReportRecord, Start, Stop,
};
pub use self::risk::Denial;

/// The version of the transition rules. A journal of another version is not replayed with this core.
pub const CORE_VERSION: u32 = 1;
