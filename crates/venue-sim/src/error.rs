//! Errors that end a venue, or keep it from starting.

use std::path::PathBuf;

use tickpath_clock::{CalibrationError, ScheduleError};
use tickpath_log::{LogOpenError, LogPath, LogPublishError, LogReadError};
use tickpath_venue_native::LineAddress;

use crate::FillError;

/// Error that ended a venue, or kept it from starting.
#[derive(Debug, thiserror::Error)]
pub enum VenueServerError {
    /// Another process runs the same venue.
    #[error(
        "the journal {journal} is written by process {pid}: this exchange runs already. Stop that one, or give this \
         one a journal of its own", journal = journal.display()
    )]
    AlreadyRunning {
        /// Journal that both would write.
        journal: PathBuf,
        /// Process id of its writer.
        pid: u32,
    },
    /// A lane, the journal or the ticks cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// The venue cannot be recovered from its journal.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The line failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The quotes cannot be published on this topic.
    #[error("{0}: the quotes cannot be published ({1})")]
    Publish(LogPath, LogPublishError),
    /// The venue cannot listen at a configured address.
    #[error("cannot listen on {0}: {1}; use another address, or end the process that listens there")]
    Listen(LineAddress, std::io::Error),
    /// The clock cannot be calibrated.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
    /// The scheduler refused the thread's CPU or priority.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Error of a venue's recovery from its journal.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The journal or a lane does not open.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// The journal is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// The journal cannot be written.
    #[error("the venue's journal cannot be written: {0}")]
    Journal(#[source] LogPublishError),
    /// The journal belongs to another venue, or to other rules.
    #[error(
        "the journal belongs to venue {venue} under version {rules} of its rules; open it as that, or start another \
         journal"
    )]
    OtherVenue {
        /// Venue number in the journal.
        venue: u32,
        /// Version of the rules in the journal.
        rules: u32,
    },
    /// The market maker's quotes cannot be journaled or sent.
    #[error(transparent)]
    Quote(#[from] EngineError),
    /// A record has no known form.
    #[error("record {0} of the journal has no form that this program knows; open it with the version that wrote it")]
    Record(u64),
    /// The report lane holds more reports than the journal leads to.
    #[error(
        "the report lane holds {held} reports of a venue that has made only {produced}; restore the end of its \
         journal, or recreate the lane"
    )]
    LaneAhead {
        /// Number of reports in the lane since this venue joined it.
        held: u64,
        /// Number of reports that a replay of the journal produces.
        produced: u64,
    },
}

/// Error that ended the venue's line.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A lane is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// A report cannot be sent.
    #[error("the report lane cannot be written: {0}")]
    Publish(#[source] LogPublishError),
    /// An input cannot be journaled, and was not applied.
    #[error("the venue's journal cannot be written: {0}; then restart the venue")]
    Journal(#[source] LogPublishError),
}

/// Error of an operator action.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The fill cannot be changed; the line stays usable.
    #[error(transparent)]
    Fill(#[from] FillError),
    /// The line has ended.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
