//! What can go wrong, each with its remedy.

use std::io;

#[cfg(not(loom))]
use tickpath_clock::CalibrationError;

#[cfg(not(loom))]
use crate::folder::Distrust;
#[cfg(not(loom))]
use crate::{Place, PlaceError, Process};

/// Why a log could not be opened for writing or reading.
#[cfg(not(loom))]
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name is no name.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// No writer has made it, or it was removed.
    #[error(
        "{0} does not exist: no writer has made it, or its files were removed. Start the writer, or check the name"
    )]
    NotFound(Place),
    /// The one writer is somebody else.
    #[error(
        "{place} already has a writer, {}; a log has one writer. Stop that one, or write to a log of your own",
        Process(*.pid)
    )]
    HasWriter {
        /// Which log.
        place: Place,
        /// The process that writes it.
        pid: u32,
    },
    /// The mandatory reader is somebody else.
    #[error("{place} is read by its one mandatory reader already, {}; stop that one first", Process(*.pid))]
    HasReader {
        /// Which log.
        place: Place,
        /// The process that reads it.
        pid: u32,
    },
    /// A log that was made without one.
    #[error("{0} names no mandatory reader; register as any other reader does, or make the log with one")]
    NoMandatory(Place),
    /// Another format.
    #[error(
        "{place} has format version {found}, this program reads version {expected}; read it with the program that wrote it, or remove it"
    )]
    Version {
        /// Which log.
        place: Place,
        /// The version in its header.
        found: u32,
        /// The version of this code.
        expected: u32,
    },
    /// No log at all, or a damaged one.
    #[error("{place} is damaged or no log: {what}. Restore it, or remove it to start anew")]
    Damaged {
        /// Which log.
        place: Place,
        /// What is wrong with it.
        what: String,
    },
    /// It exists with other parameters.
    #[error("{place} exists with {found}, but {wanted} was asked for; use the same, or remove it first")]
    Differs {
        /// Which log.
        place: Place,
        /// What it has.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// Its stamps come from a counter that is not ours.
    #[error(
        "{place} is stamped by another clock ({found}); stamps of different boots or counters cannot be subtracted. Remove it to start anew"
    )]
    Clock {
        /// Which log.
        place: Place,
        /// The source in its header.
        found: String,
    },
    /// Parameters that make no log.
    #[error("{0}")]
    Config(String),
    /// A sequence number that is not there yet.
    #[error(
        "{place} ends before sequence number {tail}; {asked} has not been written yet. Name a number up to that, or none"
    )]
    Future {
        /// Which log.
        place: Place,
        /// The number asked for.
        asked: u64,
        /// The next number to be written.
        tail: u64,
    },
    /// A log that nobody has made a queue.
    #[error("{0} is no queue; start who pushes to it, or check the name")]
    NoQueue(Place),
    /// A queue on a disk is full of messages that are stamped by another boot's clock.
    #[error("{0} is full of messages from before this boot; pull some of them first, or remove it to start anew")]
    OtherBoot(Place),
    /// All slots of a queue are taken.
    #[error("{0} has 64 pullers already; stop one")]
    TooManyPullers(Place),
    /// There is no clock to look after other pullers by.
    #[error(transparent)]
    NoClock(#[from] CalibrationError),
    /// All cursors are taken.
    #[error("{0} has 256 registered readers already; stop one, or read an 'overwrite' topic without registering")]
    TooManyReaders(Place),
    /// It cannot be made where it was to lie.
    #[error("{place} cannot be made ({reason}); {}", other_folder(.place))]
    Folder {
        /// Which log.
        place: Place,
        /// What the operating system says.
        reason: io::Error,
    },
    /// Not allowed.
    #[error("no permission for {place} ({reason}); its owner decides with the mode it makes it with")]
    Permission {
        /// Which log.
        place: Place,
        /// What the operating system says.
        reason: io::Error,
    },
    /// Another user has made it, or could change it under us.
    #[error("{place} is not used: {reason}")]
    Distrusted {
        /// Which log.
        place: Place,
        /// Which folder or file, why, and the remedy.
        reason: Distrust,
    },
    /// No space.
    #[error("no space for {bytes} bytes of {place} ({reason}); free some, or ask for smaller segments")]
    NoSpace {
        /// Which log.
        place: Place,
        /// Bytes that were needed.
        bytes: u64,
        /// What the operating system says.
        reason: io::Error,
    },
    /// Anything else.
    #[error("cannot use {place}: {reason}")]
    Io {
        /// Which log.
        place: Place,
        /// What the operating system says.
        reason: io::Error,
    },
}

#[cfg(not(loom))]
impl OpenError {
    /// The variant for an error of the operating system.
    pub(crate) fn from_io(place: &Place, bytes: u64, reason: io::Error) -> Self {
        let place = place.clone();
        let reason = match reason.downcast::<Distrust>() {
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

    /// The same where the folder of a log was to be made: what is missing or not allowed then is not the log.
    pub(crate) fn no_folder(place: &Place, reason: io::Error) -> Self {
        match reason.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::from_io(place, 0, reason),
            _ => Self::Folder { place: place.clone(), reason },
        }
    }
}

/// What to do where a log's folder cannot be made.
#[cfg(not(loom))]
fn other_folder(place: &Place) -> &'static str {
    match place.is_shared_memory() {
        true => "remove what has its name in /dev/shm, or use another name",
        false => "name a folder that this user may make, with no file in the way",
    }
}

/// Why a message was not published. It is still the caller's: nothing of it is in the log.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A registered reader of a `fail` topic, or a queue's oldest message, is a whole ring behind.
    #[error(
        "the log is full: a registered reader, or a queue's oldest message, is a whole ring behind; publish again when it has caught up, or stop that reader"
    )]
    Full,
    /// A `fail` topic without a reader, or without the one that it names.
    #[error(
        "no reader is registered on this 'fail' topic, or the one that must read it is away; start it, or use 'overwrite'"
    )]
    NoReader,
    /// The writer belongs to the process that opened it.
    #[error("this process is a fork of the one that writes the log; a log has one writer. Open a log of your own here")]
    Forked,
    /// Longer than a segment.
    #[error("a message of {bytes} bytes does not fit; this log takes up to {limit}. Ask for larger segments")]
    TooLarge {
        /// The message.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
    /// Kinds below 16 mark the log's own frames.
    #[error("message kind {0} is reserved for the log itself; use 16 to 255")]
    Kind(u8),
    /// The disk is full, or worse.
    #[error("the log cannot grow: {0}; free space on its disk. What was published before is kept")]
    Grow(#[source] io::Error),
}

/// A batch that was published in part.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published, then: {error}")]
pub struct BatchError {
    /// How many messages were published, from the first on.
    pub done: usize,
    /// Why the next one was not.
    pub error: PublishError,
}

/// Why a log cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A frame is not what its commit word says.
    #[error(
        "damaged at sequence {sequence}, byte {offset} of segment {segment}: {what}; what lies before is good. Restore it from a copy"
    )]
    Damaged {
        /// The sequence number that should be there.
        sequence: u64,
        /// The segment.
        segment: u64,
        /// The byte in the segment.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// One message of a queue.
    #[error(
        "message {sequence} of the queue is damaged, byte {offset} of segment {segment}: {what}; it was set aside and does not come again. Pull on for the next one, and push it once more if it is still needed"
    )]
    SetAside {
        /// Its number.
        sequence: u64,
        /// The segment.
        segment: u64,
        /// The byte in the segment.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Somebody has truncated its files.
    #[error(
        "the log's files were cut short while it was open, and nothing more can be read of it; have its writer make it anew"
    )]
    Cut,
    /// The reader belongs to the process that opened it.
    #[error(
        "this process is a fork of the one that reads the log, and shares its cursor; open a reader of your own here"
    )]
    Forked,
    /// A segment cannot be mapped.
    #[error("cannot read segment {segment}: {reason}")]
    Io {
        /// The segment.
        segment: u64,
        /// What the operating system says.
        reason: io::Error,
    },
}
