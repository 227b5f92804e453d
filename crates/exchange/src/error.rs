//! Why a venue ends, or does not start.

use std::path::PathBuf;

use tickpath_clock::{CalibrationError, ScheduleError};
use tickpath_log::{OpenError, Place, PublishError, ReadError};
use tickpath_venue_tcp::Address;

use crate::FillError;

/// Why a venue ended, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The same venue runs already.
    #[error(
        "the journal {journal} is written by process {pid}: this exchange runs already. Stop that one, or give this \
         one a journal of its own", journal = journal.display()
    )]
    Runs {
        /// The journal that both would write.
        journal: PathBuf,
        /// Who writes it.
        pid: u32,
    },
    /// A lane, the journal or the ticks cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The venue does not come back from its journal.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The line ended.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The quotes cannot be told.
    #[error("{topic}: the quotes cannot be published ({reason})")]
    Publish {
        /// Where.
        topic: Place,
        /// Why.
        reason: PublishError,
    },
    /// Nobody can come in there.
    #[error("cannot listen on {address}: {reason}; name another place, or end who listens there")]
    Listen {
        /// Where.
        address: Address,
        /// What the system said.
        reason: std::io::Error,
    },
    /// There is no time.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
    /// The host's scheduler refused.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Why a venue does not come back from its journal.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The journal or a lane does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal cannot be written.
    #[error("the venue's journal takes no more: {0}")]
    Journal(#[source] PublishError),
    /// It is the journal of another venue.
    #[error(
        "the journal is of venue {venue} under version {rules} of its rules; open it as that, or begin another journal"
    )]
    Differs {
        /// The venue's number.
        venue: u32,
        /// Its version of the rules.
        rules: u32,
    },
    /// The market maker's quotes cannot be written down or sent.
    #[error(transparent)]
    Quote(#[from] LineError),
    /// A record is none.
    #[error("record {0} of the journal is none that this program writes; open it with the program that wrote it")]
    Record(u64),
    /// The lane knows more than the journal.
    #[error(
        "the report lane holds {held} reports of a venue that has said only {said}; restore the end of its journal, or make the lane anew"
    )]
    Ahead {
        /// Reports in the lane since this venue met it.
        held: u64,
        /// Reports that the journal leads to.
        said: u64,
    },
}

/// Why the venue's line ended.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A lane is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A report cannot be sent.
    #[error("the report lane takes no more: {0}")]
    Publish(#[source] PublishError),
    /// An input cannot be written down, and was not applied.
    #[error("the venue's journal takes no more: {0}; then open the line again")]
    Journal(#[source] PublishError),
}

/// Why the operator's wish was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The fill cannot be changed; the line goes on.
    #[error(transparent)]
    Fill(#[from] FillError),
    /// The line has ended.
    #[error(transparent)]
    Line(#[from] LineError),
}
