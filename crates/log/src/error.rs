//! Errors, each with its remedy.

use std::io;

#[cfg(not(loom))]
use tickpath_clock::CalibrationError;

#[cfg(not(loom))]
use crate::folder::UntrustedPath;
#[cfg(not(loom))]
use crate::{LogPath, LogPathError, ProcessId};

/// Reason why a log could not be opened for writing or reading.
#[cfg(not(loom))]
#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    /// Invalid name.
    #[error(transparent)]
    Place(#[from] LogPathError),
    /// No writer has created the log, or it was removed.
    #[error(
        "{0} does not exist: no writer has made it, or its files were removed. Start the writer, or check the name"
    )]
    NotFound(LogPath),
    /// Another process is the log's writer.
    #[error(
        "{place} already has a writer, {}; a log has one writer. Stop that one, or write to a log of your own",
        ProcessId(*.pid)
    )]
    HasWriter {
        /// The log.
        place: LogPath,
        /// Process id of its writer.
        pid: u32,
    },
    /// Another process is the log's mandatory reader.
    #[error("{place} is read by its one mandatory reader already, {}; stop that one first", ProcessId(*.pid))]
    HasReader {
        /// The log.
        place: LogPath,
        /// Process id of its mandatory reader.
        pid: u32,
    },
    /// The log names no mandatory reader.
    #[error("{0} names no mandatory reader; register as any other reader does, or make the log with one")]
    NoMandatory(LogPath),
    /// Another format version.
    #[error(
        "{place} has format version {found}, this program reads version {expected}; read it with the program that wrote it, or remove it"
    )]
    Version {
        /// The log.
        place: LogPath,
        /// Version in its header.
        found: u32,
        /// Version that this code reads.
        expected: u32,
    },
    /// A damaged log, or a file that is no log.
    #[error("{place} is damaged or no log: {what}. Restore it, or remove it to start anew")]
    Damaged {
        /// The log.
        place: LogPath,
        /// Description of the damage.
        what: String,
    },
    /// The log exists with other parameters.
    #[error("{place} exists with {found}, but {wanted} was asked for; use the same, or remove it first")]
    ConfigMismatch {
        /// The log.
        place: LogPath,
        /// Parameters of the existing log.
        found: String,
        /// Parameters requested.
        wanted: String,
    },
    /// Stamps of the log come from another counter or boot.
    #[error(
        "{place} is stamped by another clock ({found}); stamps of different boots or counters cannot be subtracted. Remove it to start anew"
    )]
    Clock {
        /// The log.
        place: LogPath,
        /// Source in its header.
        found: String,
    },
    /// Invalid parameters.
    #[error("{0}")]
    Config(String),
    /// A sequence number beyond the end of the log.
    #[error(
        "{place} ends before sequence number {tail}; {asked} has not been written yet. Name a number up to that, or none"
    )]
    BeyondTail {
        /// The log.
        place: LogPath,
        /// Sequence number requested.
        asked: u64,
        /// Sequence number of the next message to be written.
        tail: u64,
    },
    /// The log is no queue.
    #[error("{0} is no queue; start its pusher, or check the name")]
    NoQueue(LogPath),
    /// A queue on a disk is full of messages that are stamped by another boot's clock.
    #[error("{0} is full of messages from before this boot; pull some of them first, or remove it to start anew")]
    OtherBoot(LogPath),
    /// Readers hold messages of a full log on a disk that are stamped by another boot's clock.
    #[error("{0}: readers still hold messages from before this boot; let them catch up, or stop them")]
    ReadersOfOtherBoot(LogPath),
    /// All slots of a queue are taken.
    #[error("{0} has 64 pullers already; stop one")]
    TooManyPullers(LogPath),
    /// No clock for the periodic checks of other pullers.
    #[error(transparent)]
    NoClock(#[from] CalibrationError),
    /// All cursors are taken.
    #[error("{0} has 256 registered readers already; stop one, or read an 'overwrite' topic without registering")]
    TooManyReaders(LogPath),
    /// The log's folder cannot be created.
    #[error("{place} cannot be made ({reason}); {}", other_folder(.place))]
    Folder {
        /// The log.
        place: LogPath,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// Permission denied.
    #[error("no permission for {place} ({reason}); its owner decides with the mode it makes it with")]
    Permission {
        /// The log.
        place: LogPath,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// Another user has created the log, or could change it during use.
    #[error("{place} is not used: {reason}")]
    Distrusted {
        /// The log.
        place: LogPath,
        /// Folder or file, reason and remedy.
        reason: UntrustedPath,
    },
    /// No space.
    #[error("no space for {bytes} bytes of {place} ({reason}); free some, or ask for smaller segments")]
    NoSpace {
        /// The log.
        place: LogPath,
        /// Bytes needed.
        bytes: u64,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// Any other error.
    #[error("cannot use {place}: {reason}")]
    Io {
        /// The log.
        place: LogPath,
        /// Error of the operating system.
        reason: io::Error,
    },
}

#[cfg(not(loom))]
impl LogOpenError {
    /// Returns the variant for an error of the operating system.
    pub(crate) fn from_io(place: &LogPath, bytes: u64, reason: io::Error) -> Self {
        let place = place.clone();
        let reason = match reason.downcast::<UntrustedPath>() {
            Ok(reason) => return Self::Distrusted { place, reason },
            Err(reason) => reason,
        };
        match reason.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::NoSpace { place, bytes, reason },
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => Self::Permission { place, reason },
            Some(libc::ENOENT) => Self::NotFound(place),
            _ if reason.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Damaged { place, what: format!("cut short, {reason}") }
            }
            _ => Self::Io { place, reason },
        }
    }

    /// Returns the variant for damage of a log.
    pub(crate) fn damaged(place: &LogPath, what: impl std::fmt::Display) -> Self {
        Self::Damaged { place: place.clone(), what: what.to_string() }
    }

    /// Returns the variant for a failed creation of a log's folder: a missing or forbidden path is not the log itself.
    pub(crate) fn no_folder(place: &LogPath, reason: io::Error) -> Self {
        match reason.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::from_io(place, 0, reason),
            _ => Self::Folder { place: place.clone(), reason },
        }
    }
}

/// Returns the remedy where a log's folder cannot be created.
#[cfg(not(loom))]
fn other_folder(place: &LogPath) -> &'static str {
    match place.is_shared_memory() {
        true => "remove what has its name in /dev/shm, or use another name",
        false => "name a folder that this user may make, with no file in the way",
    }
}

/// Reason why a message was not published. The log holds no part of it; the caller may publish it again.
#[derive(Debug, thiserror::Error)]
pub enum LogPublishError {
    /// A registered reader of a `fail` topic, or a queue's oldest message, is a whole ring behind.
    #[error(
        "the log is full: a registered reader, or a queue's oldest message, is a whole ring behind; publish again when it has caught up, or stop that reader"
    )]
    Full,
    /// A `fail` topic without a reader, or without the mandatory reader that it names.
    #[error(
        "no reader is registered on this 'fail' topic, or the one that must read it is away; start it, or use 'overwrite'"
    )]
    NoReader,
    /// The writer belongs to the process that opened it; this one is a fork.
    #[error("this process is a fork of the one that writes the log; a log has one writer. Open a log of your own here")]
    Forked,
    /// Message longer than a segment.
    #[error("a message of {bytes} bytes does not fit; this log takes up to {limit}. Ask for larger segments")]
    TooLarge {
        /// Length of the message.
        bytes: usize,
        /// Max length that fits.
        limit: usize,
    },
    /// Kinds below 16 mark the log's own frames.
    #[error("message kind {0} is reserved for the log itself; use 16 to 255")]
    Kind(u8),
    /// The disk is full, or failed.
    #[error("the log cannot grow: {0}; free space on its disk. What was published before is kept")]
    Grow(#[source] io::Error),
}

/// Error of a batch that was published in part.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published, then: {error}")]
pub struct LogBatchError {
    /// Number of messages published, from the first on.
    pub done: usize,
    /// Reason why the next message was not published.
    pub error: LogPublishError,
}

/// Reason why a log cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum LogReadError {
    /// A frame contradicts its commit word.
    #[error(
        "damaged at sequence {sequence}, byte {offset} of segment {segment}: {what}; what lies before is good. Restore it from a copy"
    )]
    Damaged {
        /// Sequence number of the missing message.
        sequence: u64,
        /// Segment index.
        segment: u64,
        /// Byte offset in the segment.
        offset: usize,
        /// Description of the damage.
        what: &'static str,
    },
    /// One damaged message of a queue.
    #[error(
        "message {sequence} of the queue is damaged, byte {offset} of segment {segment}: {what}; it was set aside and does not come again. Pull on for the next one, and push it once more if it is still needed"
    )]
    SetAside {
        /// Sequence number.
        sequence: u64,
        /// Segment index.
        segment: u64,
        /// Byte offset in the segment.
        offset: usize,
        /// Description of the damage.
        what: &'static str,
    },
    /// The log's files were truncated.
    #[error(
        "the log's files were cut short while it was open, and nothing more can be read of it; have its writer make it anew"
    )]
    Truncated,
    /// The reader belongs to the process that opened it; this one is a fork.
    #[error(
        "this process is a fork of the one that reads the log, and shares its cursor; open a reader of your own here"
    )]
    Forked,
    /// A segment cannot be mapped.
    #[error("cannot read segment {segment}: {reason}")]
    Io {
        /// Segment index.
        segment: u64,
        /// Error of the operating system.
        reason: io::Error,
    },
}
