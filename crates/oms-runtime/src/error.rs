//! Reasons why an OMS stops, or does not start.

use tickpath_log::{LogOpenError, LogPath, LogPublishError, LogReadError, ProcessId};
use tickpath_oms_journal::identity::IdentityConflicts;
use tickpath_oms_journal::{JournalError, LaneKind, LineId};

/// Reason why the OMS stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum OmsError {
    /// A lane or the journal cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// Another OMS runs with the same journal or lanes.
    #[error("{} is an OMS {has} already; stop that one, or give this one another", ProcessId(*.pid))]
    AlreadyRunning {
        /// Process of the other OMS.
        pid: u32,
        /// The name or the journal that it has.
        has: String,
    },
    /// An error of the journal, its archive, a snapshot or the history. If one of their logs cannot be opened or read,
    /// the error is [`Self::Open`] or [`Self::Read`].
    #[error(transparent)]
    Journal(JournalError),
    /// A lane refuses a message permanently.
    #[error("a lane refuses a message: {0}")]
    Lane(#[source] LogPublishError),
    /// A log is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// The journal knows less than its lanes: it is an old copy, or was cut.
    #[error(
        "{lane} ({place}) holds messages that the journal lacks: the journal is an old copy, or was cut. Restore the \
         whole journal; or, to use this one, remove the lane: the OMS then asks the venue for the orders in the \
         journal, and you must ask the venue for all others"
    )]
    JournalBehind {
        /// The lane that is ahead.
        lane: LaneKind,
        /// Path of the lane.
        place: LogPath,
    },
    /// A trading configuration gives numbers another meaning while something bears them. Nothing of it was applied.
    #[error(transparent)]
    IdentityConflicts(#[from] IdentityConflicts),
    /// All epochs are used up.
    #[error("this journal was started too often; begin a new one at the end of the day")]
    EpochsExhausted,
    /// A line cannot be opened.
    #[error("{line}: {reason}")]
    Line {
        /// The line.
        line: LineId,
        /// The reason.
        reason: String,
    },
    /// The system refuses another socket.
    #[error("the system gives no sockets ({0}); raise the limit of open files")]
    Sockets(#[source] std::io::Error),
    /// The host's scheduler refused.
    #[error(transparent)]
    Schedule(#[from] tickpath_clock::ScheduleError),
    /// The front end could not be opened, or has failed.
    #[error(transparent)]
    Front(Box<dyn std::error::Error + Send + Sync>),
    /// The layout serves no sockets.
    #[error("the layout 'mutex' serves no sockets; use inline or split")]
    NoServer,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<JournalError> for OmsError {
    /// Converts a journal error. A log that cannot be opened or read is the same error for a lane and the journal.
    #[cold]
    fn from(e: JournalError) -> Self {
        match e {
            JournalError::Open(e) => Self::Open(e),
            JournalError::Read(e) => Self::Read(e),
            e => Self::Journal(e),
        }
    }
}
