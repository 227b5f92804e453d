//! Errors of reading and writing the files of an OMS.

use std::path::PathBuf;

use tickpath_log::{LogOpenError, LogPath, LogPublishError, LogReadError};
use tickpath_oms_core::RecordError;

/// Reasons why the files of an OMS cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A log of the journal or of the history cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// A log of the journal or of the history is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// The journal cannot take an input, so the input was not accepted.
    #[error("the journal takes no more ({0}); the request was not accepted. Give its disk room, and start again")]
    Append(#[source] LogPublishError),
    /// The history cannot take a report.
    #[error(
        "the history of what is said takes no more ({0}); give its disk room, and start again: what was journaled is said \
         then"
    )]
    History(#[source] LogPublishError),
    /// The journal's disk rejects a write.
    #[error("the journal's disk does not take it ({0}); nothing was accepted. Start on a sound disk")]
    Disk(#[source] std::io::Error),
    /// The journal holds a record that is invalid there.
    #[error("journal record {sequence}: {reason}")]
    Record {
        /// Number of the record.
        sequence: u64,
        /// Defect of the record.
        reason: RecordError,
    },
    /// The journal was written by an incompatible version of the core.
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
    /// A replay reached a state that differs from the journal's digest.
    #[error(
        "replay differs from the journal's digest at record {sequence}; the journal or the core is damaged. Restore it from a copy"
    )]
    Digest {
        /// Number of the digest record.
        sequence: u64,
    },
    /// The archive of a journal cannot be read.
    #[error("{folder}: {reason}; the journal's ended days must be readable", folder = folder.display())]
    Archive {
        /// Its folder.
        folder: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A log cannot be moved into the archive. Writing continues where the log is.
    #[error("the day's log cannot go into the archive ({0}); it goes on where it is")]
    NotArchived(#[source] std::io::Error),
    /// The beginning of a journal is gone.
    #[error(
        "{journal}: the records before {upto} are gone from its archive, and no snapshot stands in for them; put the archive back"
    )]
    ArchiveGone {
        /// The journal.
        journal: LogPath,
        /// The first record that exists after the gap.
        upto: u64,
    },
    /// A snapshot cannot be written.
    #[error("{path}: no snapshot could be written ({reason}); the journal is whole without it", path = path.display())]
    Snapshot {
        /// Its file.
        path: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
}
