//! The order management core: a pure function from (state, input) to outputs.
//!
//! ```text
//!             journal records                       identity (sequence, index)
//!   requests ──────┐                                ┌──> Output::Venue    to an order's venue, always first
//!   reports ───────┼──> Input ──> Core::apply ──────┼──> Output::Report   to the client
//!   starts, lines, ┘                │               └──> Output::Denied   to the client
//!   limits, kills, operators        │
//!                                   └──> Digest: the same inputs give the same bytes
//! ```
//!
//! The core does no I/O and reads no clock: the time, the reference price and the order's id come with the input.
//! Whoever replays the journal gets the same state, the same outputs and the same [`Digest`].
//!
//! | file            | what it answers                                                    |
//! |-----------------|--------------------------------------------------------------------|
//! | `record.rs`     | what lies in the journal, and how it becomes an [`Input`]          |
//! | `control.rs`    | what happens to the OMS itself, as records                         |
//! | `core.rs`       | the state, and the one way to change it: [`Core::apply`]           |
//! | `requests.rs`   | what happens to a new order, a cancel, a replace                   |
//! | `reports.rs`    | what happens to a report, whatever the order in which reports come |
//! | `operate.rs`    | what happens at starts, lines, doubts, and by operators            |
//! | `words.rs`      | which words of an operator can be taken, and why one cannot        |
//! | `unanswered.rs` | orders whose venue owes an answer                                  |
//! | `enter.rs`      | orders, fills and positions that an admin enters by hand           |
//! | `foreign.rs`    | reports of orders that are not known here                          |
//! | `again.rs`      | what is tried again after its venue has refused it                 |
//! | `reject.rs`     | after which codes of a venue, and what is kept of an order for it  |
//! | `names.rs`      | what venues call orders that they do not know by our id            |
//! | `day.rs`        | the end of a day                                                   |
//! | `conditional.rs` | orders that wait for a trigger                                    |
//! | `state.rs`      | the table of (phase, event), and the status that follows           |
//! | `rare.rs`       | what the checks that are off for most look at                      |
//! | `recent.rs`     | the latest orders of an account, to know one that comes twice      |
//! | `bears.rs`      | what bears a number, so that it keeps its meaning                  |
//! | `desk.rs`       | accounts, instruments, sessions, kill switches                     |
//! | `route.rs`      | venues, and what waits for them                                    |
//! | `position.rs`   | net and working quantity for each (account, symbol), and its day   |
//! | `own.rs`        | the prices of own orders, not to meet them                         |
//! | `order.rs`      | what is kept of an order                                           |
//! | `output.rs`     | what the core says                                                 |
//! | `open.rs`       | the open orders of a session, an account and a symbol              |
//! | `listing.rs`    | the open orders as a list, in pages                                |
//! | `spare.rs`      | pages for the next orders, built on another thread                 |
//! | `digest.rs`     | the fold over every output                                         |
//! | `saved.rs`      | a core as bytes, and from bytes                                    |
//!
//! What can be traded, by whom and how much of it, and the table of checks are [`tickpath_risk`]'s. The containers of
//! orders, fills and ids, and the byte form of a snapshot, are in [`tickpath_slots`].
//!
//! # Convergence
//!
//! Reports come twice and in any order. What the core keeps of them does not depend on it: fills are a set, terms and
//! cumulative quantity are those that the highest venue sequence tells, a fill is what its last amendment makes of it,
//! and an ended order stays ended. Once no venue sequence is missing, the fills must add up. A contradiction ends in `Unknown`,
//! never in a guess; so do messages that were lost, until the venue has answered a question that was asked since. What is
//! unknown keeps its exposure, on both sides where the venue counts less than came in, and the venue is asked for it.
//!
//! # Identity
//!
//! An order's id is the epoch of the start that took it and its journal sequence. An epoch is used once, so a venue that
//! still works an order which a loss of power took from the journal never finds its id given to another one.

mod again;
mod bears;
mod conditional;
mod control;
mod core;
mod day;
mod departure;
mod desk;
mod digest;
mod enter;
mod foreign;
mod listing;
mod names;
mod open;
mod operate;
mod order;
mod output;
mod own;
mod position;
mod rare;
mod recent;
mod record;
mod reject;
mod reports;
mod requests;
mod route;
mod saved;
mod spare;
mod state;
mod unanswered;
mod waiting;
mod warm;
mod words;

pub use self::bears::Bearer;
pub use self::conditional::Armed;
pub use self::control::{
    Boot, CancelScope, DayEnd, Doubt, EnterFill, EnterOrder, EnterPosition, Fired, Inquire, KILL_ACCOUNT, KILL_ALL,
    KILL_DISK, KILL_SESSION, KILL_SYMBOL, Kill, LOST_ORDER, LOST_REPORTS, LOST_REQUESTS, Line, Login, Reconcile,
    Release, Resolve, Returned, Timer, scope_name, scope_named,
};
pub use self::core::{At, CORE_VERSION, Config, Core, Counts};
pub use self::departure::Departure;
pub use self::foreign::Foreign;
pub use self::listing::OpenPage;
pub use self::order::OrderView;
pub use self::output::{Output, Outputs};
pub use self::position::PositionView;
pub use self::record::{
    CancelRecord, ConditionalRecord, Digest, Envelope, Input, Lane, MassCancelRecord, NewRecord, RECORD_BYTES,
    RecordError, RecordKind, ReplaceConditionalRecord, ReplaceRecord, ReportRecord, Rolled, Start, StatusRecord, Stop,
};
pub use self::spare::Page;
pub use self::unanswered::Unanswered;
pub use self::words::WordError;
pub use tickpath_risk::{
    ALL_ACCOUNTS, AccountLimits, Denial, Ended, FirmLimits, GIVE_UP, Grant, Hours, Instrument, MAY_CANCEL,
    MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS, Measure, NAME_SESSION, NAME_VENUE, Name, OTHER_LINE, RETRY,
    RejectRule, SessionRules, SymbolLimits, VenueRules, checks_table,
};
pub use tickpath_slots::{Index, SnapshotError, tag};
