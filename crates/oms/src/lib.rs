//! The order management system: a deterministic core in a thin shell.
//!
//! ```text
//!  client ─ requests lane ─┐                                         ┌─ reports log ─> client
//!  client ─ requests lane ─┼─> Sequencer: journal, core, hold ───────┼─ reports log ─> client
//!  venue ── reports lane ──┤        T1 ···············  T2           ├─ requests lane ─> venue
//!  operator ─ control ─────┘              │                          └─ requests lane ─> venue
//!                                      commit: a thread that makes the journal durable
//! ```
//!
//! * [`Sequencer`] is the single writer: it journals an input, applies the core ([`tickpath_orders`]), and lets out what
//!   the core says once the input is as durable as its session asks ([`AckLevel`]).
//! * [`LanesConfig`] names the lanes, logs in shared memory: one pair for each client session, one pair for each venue,
//!   one for the operator. The OMS makes them all.
//! * [`layout`] puts the work on threads: `inline`, `split` or `mutex`.
//! * [`front`] is where sessions come in that have no lanes: the server's sockets.
//! * [`Agent`] is a duty cycle: `poll` does what there is to do and says how much that was.
//! * The files are the crate `tickpath-oms-journal`, whose modules are also here: [`journal::Replay`] applies a journal, and
//!   follows one that grows.
//!
//! Invariant: an input is in the journal before its outputs leave, and says where it came from; a source's cursor moves
//! behind the journal.
//! Invariant: an output's identity is its place in its lane. The core says the same after a replay, so a restart knows
//! what lies above each lane's tail, and sends nothing twice. What was in a lane that is lost becomes `Unknown`, is
//! asked for, and is never sent again.
//! Invariant: a lane names its journal and the start that made it. What does not match is not that lane.
//! Invariant: what waited is checked again before it leaves.
//! Invariant: a number of a symbol, an account, a venue or a session keeps its meaning while an order, a position, a report
//! or a kill switch bears it. A desk that says otherwise is refused before any of it is journaled.

pub mod agent;
mod answers;
pub mod calendar;
mod commit;
mod config;
mod day;
mod define;
mod due;
mod error;
pub mod front;
mod identity;
mod lanes;
pub mod layout;
mod levels;
mod line;
pub mod lines;
mod notice;
mod outbound;
mod pages;
mod questions;
mod recover;
mod rehearsal;
mod release;
mod sequencer;
mod start;
mod triggers;
mod words;

pub use agent::Agent;
pub use answers::VenueWatch;
pub use commit::{AckLevel, CommitByHand};
pub use config::{Config, Desk, Layout, ParseLayoutError, SessionConfig, SessionLimits};
pub use day::CommandError;
pub use error::OmsError;
pub use identity::{Borne, Conflict, Identity};
pub use lanes::{LanesConfig, SessionLanes, VenueLanes};
pub use line::{LineConfig, OpenLine};
pub use notice::Notice;
pub use questions::{Answer, Difference, Position};
pub use sequencer::Sequencer;
pub use start::Inbound;
pub use tickpath_clock::{Bucket, Rate};
pub use tickpath_oms_journal::{JournalError, LaneKind, Ledger, LineId, copy, history, journal, snapshot};
pub use words::Taken;
