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
    #[error("the journal accepts no records ({0}), so the request is refused; free space on its disk and start again")]
    Append(#[source] LogPublishError),
    /// The history cannot take a report.
    #[error("the history accepts no reports ({0}); free space on its disk and start again to send the missing ones")]
    History(#[source] LogPublishError),
    /// The journal's disk rejects a write.
    #[error("the journal's disk rejects a write ({0}), so nothing was accepted; start on a sound disk")]
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
        "the journal was written by core version {found}, this is version {expected}; replay it with that version, or \
         have that version make a snapshot after its last record and start this one from it"
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
        "the replay differs from the journal's digest at record {sequence}; the journal or the core is damaged, \
         restore it from a copy"
    )]
    Digest {
        /// Number of the digest record.
        sequence: u64,
    },
    /// The archive of a journal cannot be read.
    #[error("{folder}: {reason}; make the journal's archive readable", folder = folder.display())]
    Archive {
        /// Its folder.
        folder: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A log cannot be moved into the archive. Writing continues where the log is.
    #[error("the day's log cannot be archived ({0}); it stays in use")]
    NotArchived(#[source] std::io::Error),
    /// The beginning of a journal is gone.
    #[error(
        "{journal}: the records before {upto} are missing from its archive, and no snapshot holds their state; restore \
         the archive"
    )]
    ArchiveGone {
        /// The journal.
        journal: LogPath,
        /// The first record that exists after the gap.
        upto: u64,
    },
    /// A snapshot cannot be written.
    #[error("{path}: no snapshot was written ({reason}); the journal is complete without it", path = path.display())]
    Snapshot {
        /// Its file.
        path: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
}
