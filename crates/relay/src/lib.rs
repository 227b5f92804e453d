//! Carriers of messages: from a bus or a file into a recording, from a recording onto a bus, from one bus to another,
//! and from an exchange onto a bus.
//!
//! ```text
//!     bus ──record──> recording ──replay──> bus       a recording is a log on a disk that keeps everything
//!   files ──import──> recording ──export──> tables
//!     bus ──────────────bridge────────────> bus
//!   exchange ────────feed──────────────> bus
//! ```
//!
//! Kind, payload and stamp are carried unchanged, unless a replay sets a new stamp. Messages of other programs have
//! neither kind nor stamp: they get the requested kind and their time of arrival. A loss upstream is reported at once,
//! counted, and carried on as a gap message ([`GAP_KIND`](tickpath_bus::GAP_KIND)). A stamp is valid on its own host
//! alone: in a log, a message stamped by another host gets its time of arrival.
//!
//! On a broker a message keeps its message id, and a message from a log gets one, so that no subscriber gets a
//! duplicate.
//!
//! * [`record`], [`import`], [`replay`], [`export`], [`bridge`]: the carriers, each one call that returns when it is
//!   done or stopped.
//! * [`feed`]: the carrier of market data, over one or two connections to an exchange; `raw_frames.rs` is its file of
//!   frames.
//! * [`RelayMeter`]: the totals carried so far, readable from any thread.
//! * `saved_position.rs`: the position of a carried topic, from which a restarted carrier resumes; `saver.rs` has it on
//!   the disk. `source.rs` determines whose messages a ring has lost meanwhile.
//!
//! Invariant: a saved position never lies ahead of what is published. Messages behind it may come again: in a log they
//! are compared with those that are there (`published_tail.rs`), on a broker their message id identifies them.

mod address;
pub mod bridge;
#[cfg(feature = "files")]
pub mod export;
pub mod feed;
#[cfg(feature = "files")]
pub mod import;
#[cfg(feature = "files")]
mod merged_files;
mod published_tail;
mod raw_frames;
pub mod record;
pub mod replay;
mod saved_position;
mod saver;
mod source;
mod subscriber_watch;
mod target;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use tickpath_bus::message_id::clock_id;
use tickpath_bus::{ConnectError, ForeignMessage, Gap, Message, Policy, PublishError, ReceiveError};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{LogOpenError, LogPath, LogReadError};
use tickpath_market::replay::ReplaySpeedError;
#[cfg(feature = "files")]
use tickpath_recordings::{ExportError, MarketFileError};

/// Default kind given to messages of other programs: no message of this project has it.
pub const FOREIGN_KIND: u8 = 128;

/// Max events that a carrier takes per poll.
const MAX_EVENTS_PER_POLL: usize = 64;

/// Longest sleep of a carrier, in nanoseconds: it may notice a stop that much later.
const MAX_SLEEP_NS: u64 = 100_000_000;

/// Pause before a broker is tried again after a failure, in nanoseconds.
const RETRY_NS: u64 = 100_000_000;

/// Pause of a carrier that may sleep before it tries a full topic again, in nanoseconds.
const FULL_RETRY_NS: u64 = 100_000;

/// Longest delay that the histogram of delays resolves, in nanoseconds: an hour.
const LONGEST_DELAY_NS: u64 = 3_600_000_000_000;

/// Environment of a carrier.
#[derive(Clone, Copy)]
pub struct RelayContext<'a> {
    /// The host's clock.
    pub clock: HostClock,
    /// Set when the carrier is to end.
    pub stop: &'a AtomicBool,
    /// Called with each report that cannot wait for the end, one sentence at a time.
    pub report: &'a (dyn Fn(&str) + Sync),
}

/// Configuration of the topic that a carrier publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetConfig {
    /// Behaviour of a full topic; the transport's default if none is given.
    pub policy: Option<Policy>,
    /// Approximate capacity, in bytes.
    pub capacity_bytes: usize,
    /// Max age of messages, in nanoseconds, where a topic removes old ones.
    pub max_age_ns: Option<u64>,
}

/// Totals carried so far. Written by the carrier, readable from any thread.
#[derive(Debug, Default)]
pub struct RelayMeter(Mutex<RelayTotals>);

/// Totals of a carrier.
#[derive(Debug, Clone, Default)]
pub struct RelayTotals {
    /// Messages carried.
    pub messages: u64,
    /// Carried messages of other programs, without the header.
    pub foreign: u64,
    /// Carried messages stamped by another host's clock, which got the time at which they arrived.
    pub other_hosts: u64,
    /// Messages dropped because they exceed the topic's limit.
    pub too_long: u64,
    /// Payload bytes of the carried messages.
    pub bytes: u64,
    /// Losses reported, each of one message or more.
    pub gaps: u64,
    /// Lost messages, as far as they were counted.
    pub missed: u64,
    /// Losses of an unknown number of messages.
    pub uncounted: u64,
    /// Duplicates, which were not carried.
    pub duplicates: u64,
    /// Messages out of order that had been reported as missed; they were not carried.
    pub out_of_order: u64,
    /// Messages that a full topic refused at first and accepted later.
    pub refused: u64,
    /// Messages that were received and not published, because the carrier was stopped.
    pub unpublished: u64,
    /// UTC stamps of the first and the last message, in nanoseconds since the Unix epoch.
    pub span_utc_ns: Option<(u64, u64)>,
    /// Nanoseconds per message: lateness in a replay, time between poll and publication in a bridge.
    delays: DelayHistogram,
}

#[derive(Debug, Clone)]
struct DelayHistogram(Histogram<u64>);

/// Reason why messages cannot be carried, or cannot be carried any further.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The target of a recording is a log already.
    #[error("{0} holds a log already; record to another folder, or add to it with --append")]
    HoldsLog(LogPath),
    /// The target of a recording holds other files.
    #[error("{0} holds other files; record to a folder that is empty or does not exist yet")]
    OtherFiles(LogPath),
    /// The target of a recording lies in shared memory, which ends with the host.
    #[error("{0} lies in shared memory, and would end with the host; record to a folder, like file:///var/lib/ticks")]
    InSharedMemory(LogPath),
    /// A log cannot be created at its path, or not be written there.
    #[error("{0} cannot be written ({1}); use a path that you may write to")]
    Target(LogPath, std::io::Error),
    /// The target of an append is a log, but no recording; the text describes the log.
    #[error("{0} is a log, but no recording ({1}); record to a folder of its own")]
    NotRecording(LogPath, String),
    /// The source of a replay is a log that does not keep its messages.
    #[error("{0} is no recording but a topic with the policy '{1}'; record it first, then replay the recording")]
    NotKept(LogPath, tickpath_log::OverflowPolicy),
    /// The recording holds no message to replay from this sequence number on.
    #[error("{0} holds no message from sequence number {1} on; begin earlier, or record some first")]
    Empty(LogPath, u64),
    /// A carrier would receive its own messages.
    #[error("{0} would be read and written by the same call, which would never end; name another topic to write")]
    Loop(String),
    /// Two topics would be published as one.
    #[error("two topics would be published as '{0}'; give one of them another name: --topic NAME=NAME2")]
    DuplicateTarget(String),
    /// The recording cannot be written any further.
    #[error("the recording has to end here, and what it holds is kept: {0}")]
    Record(tickpath_log::LogPublishError),
    /// The recording may not survive a loss of power.
    #[error("{0} could not be written to the disk ({1}); check the disk, and read it with: tickpath log verify")]
    Sync(LogPath, std::io::Error),
    /// A topic does not accept a message of the recording.
    #[error("'{topic}' does not accept message {sequence} of the recording: {reason}")]
    Publish {
        /// Name of the topic.
        topic: String,
        /// The message's sequence number in the recording.
        sequence: u64,
        /// Error of the publisher.
        reason: PublishError,
    },
    /// A broker refuses a message of this topic for good.
    #[error("'{0}' accepts no messages: {1}")]
    Refused(String, PublishError),
    /// A topic of this name cannot be received any longer.
    #[error("'{0}' cannot be received any more: {1}")]
    Receive(String, ReceiveError),
    /// The position of a topic cannot be saved.
    #[error("{} cannot be saved ({}); name a folder that only you may write to: --resume FOLDER", .0.display(), .1)]
    SavePosition(PathBuf, std::io::Error),
    /// A file holds no position.
    #[error("{} holds no saved position; remove it, or name another folder: --resume FOLDER", .0.display())]
    InvalidPosition(PathBuf),
    /// Another carrier uses the same position file.
    #[error("{} is in use by another call; end that, or name another folder: --resume FOLDER", .0.display())]
    PositionInUse(PathBuf),
    /// A file holds the position of another topic, with this source and target.
    #[error("{} holds the position of another topic, from {}; name another folder: --resume FOLDER", .0.display(), .1)]
    OtherPosition(PathBuf, String),
    /// A topic that keeps no messages cannot be resumed.
    #[error(
        "'{topic}' of {url} keeps no messages, so it cannot be resumed; leave out --resume, or use redis://…?streams, \
         nats://…?jetstream, kafka://, shm:// or file://"
    )]
    NoHistory {
        /// Name of the topic.
        topic: String,
        /// URL of its bus.
        url: String,
    },
    /// A number was given for an instrument that no imported file has.
    #[error("no file has a message of '{name}'; there are {has}")]
    NoSymbol {
        /// Name of the instrument.
        name: String,
        /// The instruments of the files.
        has: String,
    },
    /// Two instruments would have the same number.
    #[error("'{0}' and another instrument would both have the number {1}; give each one of its own")]
    SameNumber(String, u32),
    /// The file for raw frames exists already.
    #[error("{} exists already, and frames are only written to a new file; name another: --raw FILE", .0.display())]
    RawFileExists(PathBuf),
    /// The file for raw frames cannot be created.
    #[error("{} cannot be written ({}); name a file in a folder that you may write to: --raw FILE", .0.display(), .1)]
    RawFile(PathBuf, std::io::Error),
    /// A file of raw frames cannot be read.
    #[error("{} cannot be read ({}); give a file that `tickpath feed --raw FILE` has written", .0.display(), .1)]
    RawFrames(PathBuf, std::io::Error),
    /// A file has no raw frame.
    #[error("{} has no frame, a line like 'LOCAL_UTC_NS JSON'; give a file of `tickpath feed --raw`", .0.display())]
    NoFrames(PathBuf),
    /// A file of market data cannot be read.
    #[cfg(feature = "files")]
    #[error(transparent)]
    Data(#[from] MarketFileError),
    /// A recording has no message to export; the text names the kind.
    #[cfg(feature = "files")]
    #[error("{0} holds no {1} that can be exported; look into it with: tickpath log cat")]
    NothingToExport(LogPath, String),
    /// A table cannot be written.
    #[cfg(feature = "files")]
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A recording cannot be looped at its own times.
    #[error(transparent)]
    Pace(#[from] ReplaySpeedError),
    /// A transport cannot be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A log cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// The bytes of a recording cannot be read.
    #[error(transparent)]
    Read(#[from] LogReadError),
}

impl RelayError {
    /// Returns true if the call itself was wrong, and nothing has failed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::HoldsLog(_) | Self::OtherFiles(_) | Self::InSharedMemory(_) | Self::NotRecording(..) => true,
            Self::NotKept(..) | Self::Loop(_) | Self::DuplicateTarget(_) | Self::InvalidPosition(_) => true,
            Self::NoSymbol { .. } | Self::SameNumber(..) => true,
            #[cfg(feature = "files")]
            Self::Data(_) => true,
            Self::RawFileExists(_) | Self::NoFrames(_) => true,
            Self::NoHistory { .. } | Self::PositionInUse(_) | Self::OtherPosition(..) => true,
            Self::Connect(error) => error.is_usage(),
            #[cfg(feature = "files")]
            Self::Export(error) => error.is_usage(),
            _ => false,
        }
    }

    fn from_publisher(error: ConnectError) -> Self {
        match error {
            ConnectError::Other(reason) => match reason.downcast::<LogOpenError>() {
                Ok(reason) => Self::from_writer(*reason),
                Err(reason) => Self::Connect(ConnectError::Other(reason)),
            },
            error => Self::Connect(error),
        }
    }

    /// Converts the error of opening a log for writing. If the log cannot be created, the text of its own error is
    /// replaced, because that one is meant for a reader that waits for a writer.
    fn from_writer(error: LogOpenError) -> Self {
        match error {
            LogOpenError::Permission { place, reason } | LogOpenError::Io { place, reason } => {
                Self::Target(place, reason)
            }
            LogOpenError::NotFound(path) => Self::Target(path, std::io::ErrorKind::NotFound.into()),
            error => Self::Open(error),
        }
    }
}

/// Describes a loss.
pub fn describe_gap(gap: Gap) -> String {
    match gap {
        Gap::Missed(1) => "1 message was missed".to_owned(),
        Gap::Missed(missed) => format!("{missed} messages were missed"),
        Gap::Reconnected => {
            "the connection was lost, or the topic was replaced; the number of missed messages is unknown".to_owned()
        }
    }
}

impl RelayMeter {
    /// Returns the totals carried so far.
    pub fn totals(&self) -> RelayTotals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Updates the totals under a lock. `change` must report nothing, because a thread that shows the totals waits for
    /// the lock.
    fn update(&self, change: impl FnOnce(&mut RelayTotals)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_DELAY_NS, 3).expect("these bounds are possible"))
    }
}

impl RelayTotals {
    /// Returns the median delay, in nanoseconds; `None` on too few messages.
    pub fn delay_p50_ns(&self) -> Option<u64> {
        self.delay_ns(0.5)
    }

    /// Returns the 99th percentile of the delays, in nanoseconds; `None` on too few messages.
    pub fn delay_p99_ns(&self) -> Option<u64> {
        self.delay_ns(0.99)
    }

    /// Returns a quantile of the delays; `None` unless ten delays are expected above it.
    fn delay_ns(&self, quantile: f64) -> Option<u64> {
        let DelayHistogram(delays) = &self.delays;
        (delays.len() as f64 * (1.0 - quantile) >= 10.0).then(|| delays.value_at_quantile(quantile))
    }

    fn add_message(&mut self, payload_bytes: usize, utc_ns: u64) {
        self.messages += 1;
        self.bytes += payload_bytes as u64;
        let first = self.span_utc_ns.map_or(utc_ns, |(first, _)| first);
        self.span_utc_ns = Some((first, utc_ns));
    }

    fn add_gap(&mut self, gap: Gap) {
        self.gaps += 1;
        match gap {
            Gap::Missed(missed) => self.missed = self.missed.saturating_add(missed),
            Gap::Reconnected => self.uncounted += 1,
        }
    }

    fn add_delay(&mut self, ns: i64) {
        self.delays.0.saturating_record(ns.max(0) as u64);
    }
}

impl fmt::Display for RelayTotals {
    /// Writes messages, bytes and losses in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let lost = match (self.gaps, self.missed, self.uncounted) {
            (0, ..) => String::new(),
            (_, 0, _) => " (of an unknown number of messages)".to_owned(),
            (_, missed, 0) => format!(" ({} missed)", plural(missed, "message")),
            (_, missed, _) => format!(" ({} missed, and an unknown number more)", plural(missed, "message")),
        };
        let unless_zero = |count: u64, text: String| if count == 0 { String::new() } else { text };
        let of = |count, origin: &str| unless_zero(count, format!(" ({count} of other {origin})"));
        let also = |count, how: &str| unless_zero(count, format!(", {count} arrived {how}"));
        let (messages, gaps) = (plural(self.messages, "message"), plural(self.gaps, "gap"));
        let (foreign, elsewhere) = (of(self.foreign, "programs"), of(self.other_hosts, "hosts"));
        let (twice, late) = (also(self.duplicates, "twice"), also(self.out_of_order, "late"));
        write!(f, "{messages}{foreign}{elsewhere}, {} bytes, {gaps}{lost}{twice}{late}", self.bytes)
    }
}

impl RelayContext<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Converts a message of another program, stamped with the time of arrival; the first one is reported.
    fn stamp_foreign<'f>(
        &self,
        foreign: ForeignMessage<'f>,
        kind: u8,
        topic: &str,
        is_reported: &mut bool,
    ) -> Message<'f> {
        if !std::mem::replace(is_reported, true) {
            (self.report)(&format!(
                "'{topic}' has messages of other programs: their bytes are carried, as kind {kind}, stamped with the \
                 time of arrival; keys and headers are not"
            ));
        }
        let stamp = self.clock.ticks();
        Message { sequence: foreign.sequence, stamp, kind, payload: foreign.bytes, id: None }
    }

    /// Returns the stamp by this host's clock; for a message stamped by another clock, the time of arrival. The first
    /// such message is reported.
    fn local_stamp(&self, message: &Message<'_>, topic: &str, is_reported: &mut bool) -> LocalStamp {
        if message.is_of_clock(clock_id(self.clock.calibration())) {
            return LocalStamp { ticks: message.stamp, is_arrival: false };
        }
        if !std::mem::replace(is_reported, true) {
            (self.report)(&format!(
                "'{topic}' has messages of another host, or from before this host's last start, whose stamps are not \
                 valid here: they are stamped with the time of arrival"
            ));
        }
        LocalStamp { ticks: self.clock.ticks(), is_arrival: true }
    }
}

/// Stamp of a message by this host's clock.
#[derive(Clone, Copy)]
struct LocalStamp {
    ticks: u64,
    /// The stamp is the time of arrival, for want of a stamp of this host.
    is_arrival: bool,
}
