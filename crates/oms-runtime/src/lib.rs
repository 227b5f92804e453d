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
//! * [`Sequencer`] is the single writer: it journals an input, applies the core ([`tickpath_oms_core`]), and releases the
//!   core's outputs once the input is as durable as its session asks ([`AckLevel`]).
//! * [`LanesConfig`] names the lanes, logs in shared memory: a pair for each client session, a pair for each venue, and
//!   one lane for the operator. The OMS makes them all.
//! * [`layout`] assigns the work to threads: `inline`, `split` or `mutex`.
//! * [`front`] is the entry of sessions without lanes: the server's sockets.
//! * [`Agent`] is a duty cycle: `poll` does the pending work and returns its amount.
//! * The files belong to the crate `tickpath-oms-journal`, whose modules are re-exported here: [`journal::Replay`]
//!   applies a journal, and follows a growing journal.
//!
//! Invariant: an input is in the journal before its outputs leave, and its record names its source; a source's cursor
//! moves behind the journal.
//! Invariant: an output's identity is its place in its lane. A replay yields the same outputs, so a restart knows the
//! outputs above each lane's tail, and sends nothing twice. The content of a lost lane becomes `Unknown`: the OMS asks
//! the venue for it, and never sends it again.
//! Invariant: a lane names its journal and the start that made it. A lane whose names do not match is treated as lost.
//! Invariant: a request that waited is checked again before it leaves.
//! Invariant: a number of a symbol, an account, a venue or a session keeps its meaning while an order, a position, a
//! report or a kill switch bears it. A desk that changes such a meaning is refused before any of the desk is journaled.

pub mod agent;
pub mod calendar;
mod commands;
mod commit;
mod config;
mod config_changes;
mod day;
mod error;
pub mod front_end;
mod gauges;
mod identity;
mod lanes;
pub mod layout;
mod line_config;
pub mod lines;
pub mod meter;
mod notice;
mod outbound;
mod page_maker;
mod questions;
mod recover;
mod release;
mod scheduled_close;
mod sequencer;
mod start;
mod triggers;
mod unanswered;
mod warm_up;

pub use agent::Agent;
pub use commands::AppliedCommand;
pub use commit::{AckLevel, ManualCommit};
pub use config::{Config, Layout, ParseLayoutError, SessionConfig, SessionLimits, TradingDefinitions};
pub use day::CommandError;
pub use error::OmsError;
pub use identity::{EntityNumber, IdentityConflict, IdentityConflicts};
pub use lanes::{LanesConfig, SessionLanes, VenueLanes};
pub use line_config::{LineFactory, OmsLineConfig};
pub use notice::Notice;
pub use questions::{OrderDifference, PositionComparison, VenueAnswer};
pub use sequencer::Sequencer;
pub use start::InputSources;
pub use tickpath_clock::{RequestRate, TokenBucket};
pub use tickpath_oms_journal::{JournalError, LaneKind, LaneLedger, LineId, drop_copy, history, journal, snapshot};
pub use unanswered::VenueExpectations;
