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
//! * [`journal::Replay`] applies a journal, and follows one that grows.
//!
//! Invariant: an input is in the journal before its outputs leave, and says where it came from; a source's cursor moves
//! behind the journal.
//! Invariant: an output's identity is its place in its lane. The core says the same after a replay, so a restart knows
//! what lies above each lane's tail, and sends nothing twice. What was in a lane that is lost becomes `Unknown`, is
//! asked for, and is never sent again.
//! Invariant: a lane names its journal and the start that made it. What does not match is not that lane.
//! Invariant: what waited is checked again before it leaves.

pub mod agent;
mod archive;
mod bucket;
mod commit;
pub mod copy;
mod definitions;
pub mod front;
pub mod history;
pub mod journal;
mod lanes;
pub mod layout;
mod ledger;
pub mod lines;
pub mod meter;
mod notice;
mod outbound;
mod pages;
mod recover;
mod release;
mod replay;
mod sequencer;
pub mod snapshot;
mod start;
mod triggers;
mod words;

pub use agent::Agent;
pub use bucket::{Bucket, Rate};
pub use commit::{AckLevel, CommitByHand};
pub use lanes::{LaneKind, LanesConfig, SessionLanes, VenueLanes};
pub use layout::{Config, Layout, ParseLayoutError};
pub use ledger::Ledger;
pub use lines::{LineConfig, LineId, OpenLine};
pub use notice::{NOTICES, Notice};
pub use sequencer::{Desk, Sequencer, SessionConfig, SessionLimits};
pub use start::Inbound;
pub use words::Taken;

use std::path::PathBuf;

use tickpath_log::{OpenError, Place, PublishError, ReadError};
use tickpath_orders::RecordError;

/// Why the OMS stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum OmsError {
    /// A lane or the journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An OMS runs already that has what this one would have.
    #[error("process {pid} is an OMS {has} already; stop that one, or give this one another")]
    Runs {
        /// The other one.
        pid: u32,
        /// With which name, or on which journal.
        has: String,
    },
    /// The journal cannot take an input. The input was not accepted.
    #[error("the journal takes no more ({0}); the request was not accepted. Give its disk room, and start again")]
    Journal(#[source] PublishError),
    /// The history cannot take what is said.
    #[error(
        "the history of what is said takes no more ({0}); give its disk room, and start again: what was journaled is said \
         then"
    )]
    History(#[source] PublishError),
    /// The journal's disk does not take what is written.
    #[error("the journal's disk does not take it ({0}); nothing was accepted. Start on a sound disk")]
    Disk(#[source] std::io::Error),
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
    #[error(
        "the journal was written by core version {found}, this is version {expected}; replay it with that version, or have that version make a snapshot behind its last record and start this one on it"
    )]
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
    /// The archive of a journal cannot be read.
    #[error("{folder}: {reason}; the journal's ended days must be readable", folder = folder.display())]
    Archive {
        /// Its folder.
        folder: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A log cannot be moved into the archive. It goes on where it is.
    #[error("the day's log cannot go into the archive ({0}); it goes on where it is")]
    NotArchived(#[source] std::io::Error),
    /// The beginning of a journal is gone.
    #[error(
        "{journal}: the records before {upto} are gone from its archive, and no snapshot stands in for them; put the archive back"
    )]
    ArchiveGone {
        /// Whose.
        journal: Place,
        /// The first record that is there again.
        upto: u64,
    },
    /// A snapshot cannot be written.
    #[error("{path}: no snapshot could be written ({reason}); the journal is whole without it", path = path.display())]
    Snapshot {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The journal knows less than its lanes.
    #[error(
        "{lane} ({place}) holds what the journal does not know: the journal is a copy from before, or was cut. Restore the whole journal; or, to go on with this one, remove that lane: what the journal knows is asked for then, and what it does not know must be asked of the venue"
    )]
    JournalBehind {
        /// Which lane.
        lane: LaneKind,
        /// Where it lies.
        place: Place,
    },
    /// All epochs are used up.
    #[error("this journal was started too often; begin a new one at the end of the day")]
    Epochs,
    /// A line cannot be opened.
    #[error("{line}: {reason}")]
    Line {
        /// Which.
        line: LineId,
        /// Why.
        reason: String,
    },
    /// The system gives no more sockets.
    #[error("the system gives no sockets ({0}); raise the limit of open files")]
    Sockets(#[source] std::io::Error),
    /// The host's scheduler refused.
    #[error(transparent)]
    Schedule(#[from] tickpath_clock::ScheduleError),
    /// Sessions cannot come in.
    #[error(transparent)]
    Front(Box<dyn std::error::Error + Send + Sync>),
    /// Sockets cannot be served so.
    #[error("the layout 'mutex' serves no sockets; use inline or split")]
    NoServer,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}
