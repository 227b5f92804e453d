//! The order management system: a deterministic core in a thin shell.
//!
//! ```text
//!  client ─ requests lane ─┐                                  ┌─ reports log ─> client
//!  client ─ requests lane ─┼─> Sequencer: journal, core ──────┼─ reports log ─> client
//!  venue ── reports lane ──┘        T1 ········· T2           └─ requests lane ─> venue
//! ```
//!
//! * [`Sequencer`] is the single writer: it journals an input, applies the core ([`tickpath_orders`]), sends what the
//!   core says. All of the core's inputs are in the [`journal`] before their outputs leave.
//! * [`LanesConfig`] names the lanes, logs in shared memory: one pair for each client session, one pair for the venue.
//! * [`layout`] puts the work on threads: `inline`, `split` or `mutex`.
//! * [`Agent`] is a duty cycle: `poll` does what there is to do and says how much that was.
//!
//! Invariant: an output's identity is its place in its log. The core says the same after a replay, so a restart emits
//! exactly what lies above each log's tail, and nothing twice. If a lane was lost with the host, its orders become
//! `Unknown` and are never sent again.

pub mod agent;
pub mod journal;
mod lanes;
pub mod layout;
mod pages;
mod recover;
mod sequencer;

pub use agent::{Agent, Gap, Gaps};
pub use lanes::{LanesConfig, attach};
pub use layout::{Config, Layout, ParseLayoutError};
pub use recover::Inbound;
pub use sequencer::{Desk, Sequencer};

use tickpath_log::{OpenError, PublishError, ReadError};
use tickpath_orders::RecordError;

/// Why the OMS stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum OmsError {
    /// A lane or the journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot take an input. The input was not accepted.
    #[error("the journal takes no more ({0}); the request was not accepted")]
    Journal(#[source] PublishError),
    /// A lane refuses a message for good.
    #[error("a lane refuses a message: {0}")]
    Lane(#[source] PublishError),
    /// A log is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal holds what no journal holds.
    #[error("journal record {sequence}: {reason}")]
    Record {
        /// Which record.
        sequence: u64,
        /// What is wrong with it.
        reason: RecordError,
    },
    /// The journal was written by a core that says other things.
    #[error("the journal was written by core version {found}, this is version {expected}; replay it with that version")]
    CoreVersion {
        /// The version in the journal.
        found: u32,
        /// The version of this code.
        expected: u32,
    },
    /// The first record is not the one that begins a journal.
    #[error("this log is no order journal: it does not begin with a start record")]
    NoJournal,
    /// A replay came to another state.
    #[error(
        "replay differs from the journal's digest at record {sequence}; the journal or the core is damaged. Restore it from a copy"
    )]
    Digest {
        /// Which record.
        sequence: u64,
    },
    /// The host's scheduler refused.
    #[error(transparent)]
    Schedule(#[from] tickpath_clock::ScheduleError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}
