//! Why an OMS stops, or does not start.

use std::path::PathBuf;

use tickpath_log::{OpenError, Place, PublishError, ReadError};
use tickpath_orders::RecordError;

use crate::identity::Borne;
use crate::lanes::LaneKind;
use crate::line::LineId;

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
    /// A desk gives numbers another meaning while something bears them. Nothing of the desk was taken.
    #[error(transparent)]
    Borne(#[from] Borne),
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
