//! Errors of a blotter.

use tickpath_log::{LogOpenError, LogPath, LogReadError};
use tickpath_oms_journal::JournalError;

/// Errors of a blotter that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BlotterError {
    /// The journal cannot be replayed.
    #[error(transparent)]
    Oms(#[from] JournalError),
    /// A log of the journal cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// A log of the journal is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// No day of the journal ended with this date.
    #[error("{journal}: no day {day} has ended; {known}")]
    NoDay {
        /// The journal.
        journal: LogPath,
        /// The date, as 20261128.
        day: u32,
        /// The days that have ended, in words.
        known: String,
    },
    /// No day of the journal begins with this record.
    #[error("{journal}: no day begins with record {first}; {known}")]
    NoRecord {
        /// The journal.
        journal: LogPath,
        /// The record.
        first: u64,
        /// The existing days, in words.
        known: String,
    },
    /// Several days ended with this date.
    #[error("{journal}: day {day} has ended more than once; name one by its first record: {firsts}")]
    SeveralDays {
        /// The journal.
        journal: LogPath,
        /// The date, as 20261128.
        day: u32,
        /// The first records, in words.
        firsts: String,
    },
    /// The records before a day are gone, and no snapshot was made before its end.
    #[error(
        "{journal}: the records before {upto} are gone from its archive, and the snapshot there is of a later day than \
         record {first}; put the archive back"
    )]
    RecordsGone {
        /// The journal.
        journal: LogPath,
        /// The first record that the snapshot does not hold.
        upto: u64,
        /// The first record of the day.
        first: u64,
    },
    /// No instrument has this name.
    #[error("'{name}' is no instrument of this journal; {known}")]
    UnknownSymbol {
        /// The name.
        name: String,
        /// The instruments, in words.
        known: String,
    },
    /// No status has this word.
    #[error("'{word}' is no status of an order; use one of {known}")]
    UnknownStatus {
        /// The word.
        word: String,
        /// The words of all statuses.
        known: String,
    },
    /// CSV holds one table.
    #[error("a CSV holds one table; add --orders, --fills or --positions")]
    SeveralTables,
    /// The output failed.
    #[error("{0}")]
    Output(Box<dyn std::error::Error + Send + Sync>),
}

impl BlotterError {
    /// Returns whether the error is a mistake in the arguments, so that a corrected call can succeed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoDay { .. }
            | Self::NoRecord { .. }
            | Self::SeveralDays { .. }
            | Self::UnknownSymbol { .. }
            | Self::UnknownStatus { .. }
            | Self::SeveralTables => true,
            Self::Oms(_) | Self::Open(_) | Self::Read(_) | Self::RecordsGone { .. } | Self::Output(_) => false,
        }
    }
}
