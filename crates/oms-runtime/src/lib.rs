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
//! * [`Sequencer`] is the single writer: it journals an input, applies the core ([`tickpath_oms_core`]), and releases
//!   the core's outputs once the input is as durable as its session asks ([`AckLevel`]).
//! * A lane is a log in shared memory with one reader. [`LanesConfig`] names the lanes: a pair for each client session,
//!   a pair for each venue, and one for the operator. The OMS makes them all.
//! * A line is a socket connection to a venue, fed by a lane of its own ([`lines`]).
//! * The sequencer's parts are files of their own: `release.rs` with the outbound logs (`venue_outputs.rs`, `lines/`,
//!   `front_end_reports.rs`, `session_durability.rs`), `market_prices.rs`, `unanswered.rs`, `questions.rs`,
//!   `day_state.rs` and `housekeeping.rs`. `sequencer.rs` has the steps of an order, and `sequencer/` those of all
//!   other inputs.
//! * [`layout`] assigns the work to threads: `inline`, `split` or `mutex`. [`Agent`] is a duty cycle: `poll` does the
//!   pending work and returns its amount.
//! * [`front_end`] is the entry of sessions without lanes: the server's sockets. Their reports go into one log, the
//!   history, from which a client that reconnects or lags reads what it lacks.
//! * The files belong to the crate `tickpath-oms-journal`, whose modules are re-exported here.
//!
//! `docs/crash-proof.md` counts what survives which crash. `scripts/planted` checks the simulation behind it: of the
//! bugs that it plants one by one, each must be found within 2,000 seeds.
//!
//! # Invariants
//!
//! * An input is in the journal before its outputs leave. Outputs wait until it survives the end of any process (`os`)
//!   or a loss of power (`disk`).
//! * An input's record names its source: the lane, and the number there. A source's cursor moves behind the journal, so
//!   a killed process loses nothing and takes nothing twice.
//! * The OMS makes all its lanes. A lane's header names its journal, its kind and the start that made it. A lane that
//!   does not match is treated as lost. A lane ahead of its journal refuses the start, but a session's lane is made
//!   anew, because its client can write it.
//! * An output's identity is its place in its lane: a restart sends what lies above each lane's tail, and nothing
//!   twice. The content of a lost lane becomes `Unknown` by an input that is journaled before the lane is replaced.
//! * A message is copied out of a lane before it is checked. A client that truncates or corrupts its lane loses its own
//!   session.
//! * A warm-up shares its code with the OMS and nothing else (`docs/design/warm-up.md`).
//! * Changes of the trading configuration are journaled as differences, by the code that a start uses.
//! * A number of a symbol, an account, a venue or a session keeps its meaning while an order, a position, a report or a
//!   kill switch bears it. A configuration that changes such a meaning is refused before any of it is journaled.
//! * A silent venue is asked without an operator, less and less often. The consequences of its silence are journaled,
//!   the waiting is not (`unanswered.rs`).
//! * A day ends once, and does not begin to end unless it can be finished: `day_end.rs` reserves its disk space first.
//! * A request's number on a line is its place in that line's lane. A request that the venue lacks returns to the core,
//!   is checked again, and never leaves a second time unchecked. A request on a line that is down for too long is in
//!   doubt, and is asked for by another line.
//! * A disk that has failed once is not trusted until a start on a sound one: new orders are denied, cancels pass. A
//!   full disk ends the OMS with an error, because an input that cannot be journaled is not accepted.
//! * A start uses a snapshot only if every lane holds all messages from before it; else an older one, or the whole
//!   journal.
//! * A start writes the reports that the history lacks, also those of a day that was killed as it ended.

pub mod agent;
pub mod calendar;
mod command_error;
mod config;
mod day_state;
mod error;
pub mod front_end;
mod front_end_reports;
mod housekeeping;
mod lane_source;
mod lanes;
pub mod layout;
mod line_config;
pub mod lines;
mod market_prices;
mod notice;
mod outbound;
mod questions;
mod recover;
mod release;
mod sequencer;
mod session_durability;
mod start;
mod triggers;
mod unanswered;
mod venue_outputs;
mod warm_up;

pub use agent::Agent;
pub use command_error::CommandError;
pub use config::{Config, Layout, ParseLayoutError, SessionConfig, SessionLimits, TradingDefinitions};
pub use error::OmsError;
pub use lanes::{LanesConfig, SessionLanes, VenueLanes};
pub use line_config::{LineFactory, OmsLineConfig};
pub use notice::Notice;
pub use questions::{OrderDifference, PositionComparison, VenueAnswer};
pub use sequencer::Sequencer;
pub use sequencer::commands::AppliedCommand;
pub use start::InputSources;
pub use tickpath_clock::{RequestRate, TokenBucket};
pub use tickpath_oms_journal::commit::{AckLevel, ManualCommit};
pub use tickpath_oms_journal::identity::{EntityNumber, IdentityConflict, IdentityConflicts};
pub use tickpath_oms_journal::{
    JournalError, LaneKind, LaneLedger, LineId, NextNumbers, SessionPosition, drop_copy, history, journal, meter,
    snapshot,
};
pub use unanswered::VenueExpectations;
