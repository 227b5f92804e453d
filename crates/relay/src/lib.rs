//! Carrying messages: from a bus or a file into a recording, from a recording onto a bus, from one bus to another.
//!
//! ```text
//!   bus ──record──> recording ──replay──> bus        a recording is a log on a disk that keeps everything
//!   bus ──────────────bridge────────────> bus
//! ```
//!
//! Kind and payload are carried as they are, and so is the stamp, unless a replay gives it a new one. What other programs
//! publish has neither kind nor stamp: it gets the kind that was asked for, and the time at which it came. What was
//! missed on the way here is told at once and counted, and carried on as the news of a loss
//! ([`GAP_KIND`](tickpath_bus::GAP_KIND)). A stamp tells a time on its own host alone: in a log, a message that another host
//! has stamped gets the time at which it came.
//!
//! On a broker a message keeps its origin, and one from a log gets one of it: so copies come to nobody twice.
//!
//! * [`record`], [`import`], [`replay`], [`bridge`]: the carriers, each one call that returns when it is done or stopped.
//! * [`Meter`]: what was carried so far, for anybody to look at.

mod address;
pub mod bridge;
pub mod import;
mod outlet;
pub mod record;
pub mod replay;
mod resume;
mod saver;
mod source;
mod tail;
mod watched;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use tickpath_bus::origin::clock_of;
use tickpath_bus::{ConnectError, Foreign, Gap, Message, Policy, PublishError, ReceiveError};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{OpenError, Place, ReadError};
use tickpath_market::replay::PaceError;

use tickpath_result::{PERCENTILES, Percentile, histogram};

/// The kind that messages of other programs get unless another one is asked for: no message of ours has it.
pub const FOREIGN_KIND: u8 = 128;

/// Events that a carrier takes in one look.
const TURN: usize = 64;

/// The longest sleep of a carrier: so long after it was stopped it still may see it.
const LOOK_NS: u64 = 100_000_000;

/// How long after a failure a broker is tried again.
const RETRY_NS: u64 = 100_000_000;

/// How long a carrier that may sleep waits for room in a full topic before it tries again.
const ROOM_NS: u64 = 100_000;

/// What a carrier takes from outside.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The host's clock.
    pub clock: HostClock,
    /// True when the carrier is to end.
    pub stop: &'a AtomicBool,
    /// Told what cannot wait for the end: one sentence at a time.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

/// How a carrier opens the topic that it publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// What a full topic does; the transport's usual way if none is given.
    pub policy: Option<Policy>,
    /// Bytes that the topic holds before it is full, about.
    pub capacity_bytes: usize,
    /// How old messages get, where a topic lets old ones go.
    pub max_age_ns: Option<u64>,
}

/// What was carried so far. The carrier writes it, anybody reads it.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Totals>);

/// What was carried.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Messages.
    pub messages: u64,
    /// Of them, those that came from other programs, without our header.
    pub foreign: u64,
    /// Of them, those whose stamp was of another host's clock, and which got the time at which they came.
    pub elsewhere: u64,
    /// Messages that were longer than the topic takes.
    pub too_long: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Losses that were told, each of one message or more.
    pub gaps: u64,
    /// Messages that were lost in them, as far as somebody counted.
    pub missed: u64,
    /// Losses of which nobody knows how many messages they were.
    pub uncounted: u64,
    /// Messages that came again, and were not carried twice.
    pub duplicates: u64,
    /// Messages that came behind a later one, and had been told as missed; they were not carried.
    pub late: u64,
    /// Messages that a full topic refused at first, and took later.
    pub refused: u64,
    /// Messages that had come when the carrier was stopped, and that were not published.
    pub left: u64,
    /// The stamps of the first message and of the last, as UTC, in nanoseconds since the Unix epoch.
    pub span_utc_ns: Option<(u64, u64)>,
    /// Nanoseconds: of a replay how late, of a bridge how long it had each message.
    delays: Histogram<u64>,
}

/// Why messages are not carried, or not carried on.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A recording would go to where a log is.
    #[error("{0} holds a log already; record to another folder, or add to it with --append")]
    Taken(Place),
    /// A recording would go among other files.
    #[error("{0} holds other files; record to a folder that is empty or not there yet")]
    OtherFiles(Place),
    /// A recording would end with the host.
    #[error("{0} lies in shared memory, and would end with the host; record to a folder, like file:///var/lib/ticks")]
    NoDisk(Place),
    /// A log cannot be made where it is to be written, or not be written there.
    #[error("{place} cannot be written ({reason}); name a place that you may write")]
    Target {
        /// Which one.
        place: Place,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A recording would be added to another kind of log.
    #[error("{place} is a log, but no recording ({found}); record to a folder of its own")]
    NoRecording {
        /// Which one.
        place: Place,
        /// What it is like.
        found: String,
    },
    /// A log that forgets would be replayed.
    #[error(
        "{place} is no recording but a topic with the policy '{policy}'; record it first, then replay the recording"
    )]
    Forgets {
        /// Which one.
        place: Place,
        /// What it does when it is full.
        policy: tickpath_log::Policy,
    },
    /// There is nothing to replay.
    #[error("{place} holds no message from sequence number {from} on; begin earlier, or record some first")]
    Empty {
        /// Which recording.
        place: Place,
        /// Where the replay was to begin.
        from: u64,
    },
    /// A carrier would receive what it publishes.
    #[error("{0} would be read and written by the same call, which would never end; name another topic to write")]
    Circle(String),
    /// Two topics would go into one.
    #[error("two topics would be published as '{0}'; give one of them another name: --topic NAME=NAME2")]
    Twice(String),
    /// The recording takes no more.
    #[error("the recording has to end here, and what it holds is kept: {0}")]
    Record(tickpath_log::PublishError),
    /// The recording may not survive a loss of power.
    #[error(
        "{place} could not be written to the disk ({reason}); check the disk, and read it with: tickpath log verify"
    )]
    Sync {
        /// Which recording.
        place: Place,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A topic takes no more.
    #[error("'{topic}' does not take message {sequence} of the recording: {reason}")]
    Publish {
        /// Which topic.
        topic: String,
        /// The message's number in the recording.
        sequence: u64,
        /// Why not.
        reason: PublishError,
    },
    /// A broker takes a message neither now nor later.
    #[error("'{topic}' takes no messages: {reason}")]
    Refused {
        /// Which topic.
        topic: String,
        /// Why not.
        reason: PublishError,
    },
    /// A topic cannot be received any more.
    #[error("'{topic}' cannot be received any more: {reason}")]
    Receive {
        /// Which topic.
        topic: String,
        /// Why not.
        reason: ReceiveError,
    },
    /// How far a topic has come cannot be kept.
    #[error(
        "{} cannot be kept ({reason}); name a folder that you may write, and of its own: --resume FOLDER",
        .file.display()
    )]
    Resume {
        /// In which file.
        file: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A file holds no place.
    #[error("{} holds no place to go on at; remove it to begin anew, or name another folder: --resume FOLDER", .0.display())]
    NoResume(PathBuf),
    /// Another carrier keeps its place in the same file.
    #[error("{} is in use by another call; end that, or name another folder: --resume FOLDER", .0.display())]
    ResumeHeld(PathBuf),
    /// A file holds the place of another topic.
    #[error(
        "{} holds a place on the way from {ends}, which is another one; name another folder: --resume FOLDER",
        .file.display()
    )]
    OtherResume {
        /// Which file.
        file: PathBuf,
        /// Of what.
        ends: String,
    },
    /// A topic that keeps nothing cannot be gone on in.
    #[error(
        "'{topic}' of {url} keeps no messages, so nobody can go on in it; leave --resume away, or use redis://…?streams, \
         nats://…?jetstream, kafka://, shm:// or file://"
    )]
    NoHistory {
        /// Which topic.
        topic: String,
        /// Of which bus.
        url: String,
    },
    /// A number was given for an instrument that is not there.
    #[error("the file has no '{name}'; it has {has}")]
    NoSymbol {
        /// Which one.
        name: String,
        /// The instruments of the file.
        has: String,
    },
    /// Two instruments would be one.
    #[error("'{name}' and another instrument would both have the number {number}; give each one of its own")]
    SameNumber {
        /// One of them.
        name: String,
        /// The number.
        number: u32,
    },
    /// A file of market data.
    #[error(transparent)]
    Data(#[from] tickpath_market::replay::RecordingError),
    /// A recording cannot be looped at its own times.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// A transport.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A log.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A recording's bytes.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl RelayError {
    /// True if the call was wrong, and nothing has failed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Taken(_) | Self::OtherFiles(_) | Self::NoDisk(_) | Self::NoRecording { .. } => true,
            Self::Forgets { .. } | Self::Circle(_) | Self::Twice(_) | Self::NoResume(_) => true,
            Self::NoSymbol { .. } | Self::SameNumber { .. } | Self::Data(_) => true,
            Self::NoHistory { .. } | Self::ResumeHeld(_) | Self::OtherResume { .. } => true,
            Self::Connect(error) => error.is_usage(),
            _ => false,
        }
    }

    /// Why a topic cannot be published.
    fn of_publisher(error: ConnectError) -> Self {
        match error {
            ConnectError::Other(reason) => match reason.downcast::<OpenError>() {
                Ok(reason) => Self::of_writer(*reason),
                Err(reason) => Self::Connect(ConnectError::Other(reason)),
            },
            error => Self::Connect(error),
        }
    }

    /// Why a log cannot be written. Where it cannot be made, the log's own sentence is for who waits for its writer.
    fn of_writer(error: OpenError) -> Self {
        match error {
            OpenError::Permission { place, reason } | OpenError::Io { place, reason } => Self::Target { place, reason },
            OpenError::NotFound(place) => Self::Target { place, reason: std::io::ErrorKind::NotFound.into() },
            error => Self::Open(error),
        }
    }
}

/// A loss in words.
pub fn gap_words(gap: Gap) -> String {
    match gap {
        Gap::Missed(1) => "1 message was missed".to_owned(),
        Gap::Missed(missed) => format!("{missed} messages were missed"),
        Gap::Reconnected => {
            "the connection was lost and made again, or what is there is not what it was; nobody knows what was missed"
                .to_owned()
        }
    }
}

impl Meter {
    /// What was carried so far.
    pub fn totals(&self) -> Totals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing may be told from within: whoever shows the totals waits for this.
    fn update(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            messages: 0,
            foreign: 0,
            elsewhere: 0,
            too_long: 0,
            bytes: 0,
            gaps: 0,
            missed: 0,
            uncounted: 0,
            duplicates: 0,
            late: 0,
            refused: 0,
            left: 0,
            span_utc_ns: None,
            delays: histogram(),
        }
    }
}

impl Totals {
    /// The median delay, in nanoseconds; none on too few messages.
    pub fn delay_p50_ns(&self) -> Option<u64> {
        self.delay_ns(&PERCENTILES[0])
    }

    /// The 99th percentile of the delays, in nanoseconds; none on too few messages.
    pub fn delay_p99_ns(&self) -> Option<u64> {
        self.delay_ns(&PERCENTILES[3])
    }

    fn delay_ns(&self, percentile: &Percentile) -> Option<u64> {
        (self.delays.len() >= percentile.samples).then(|| self.delays.value_at_quantile(percentile.quantile))
    }

    fn message(&mut self, payload_bytes: usize, utc_ns: u64) {
        self.messages += 1;
        self.bytes += payload_bytes as u64;
        let first = self.span_utc_ns.map_or(utc_ns, |(first, _)| first);
        self.span_utc_ns = Some((first, utc_ns));
    }

    fn gap(&mut self, gap: Gap) {
        self.gaps += 1;
        match gap {
            Gap::Missed(missed) => self.missed = self.missed.saturating_add(missed),
            Gap::Reconnected => self.uncounted += 1,
        }
    }

    fn delay(&mut self, ns: i64) {
        self.delays.record(ns.max(0) as u64).expect("an auto-sized histogram takes any value");
    }
}

impl fmt::Display for Totals {
    /// In words: messages, bytes and losses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let lost = match (self.gaps, self.missed, self.uncounted) {
            (0, ..) => String::new(),
            (_, 0, _) => " (nobody knows of how many messages)".to_owned(),
            (_, missed, 0) => format!(" ({} missed)", plural(missed, "message")),
            (_, missed, _) => format!(" ({} missed, and nobody knows how many more)", plural(missed, "message")),
        };
        let of =
            |count: u64, whose: &str| if count == 0 { String::new() } else { format!(" ({count} of other {whose})") };
        let also = |count: u64, how: &str| if count == 0 { String::new() } else { format!(", {count} came {how}") };
        let (messages, gaps) = (plural(self.messages, "message"), plural(self.gaps, "gap"));
        let (foreign, elsewhere) = (of(self.foreign, "programs"), of(self.elsewhere, "hosts"));
        let (twice, late) = (also(self.duplicates, "twice"), also(self.late, "late"));
        write!(f, "{messages}{foreign}{elsewhere}, {} bytes, {gaps}{lost}{twice}{late}", self.bytes)
    }
}

impl Outside<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What another program published, as a message of ours; the first one is told.
    fn adopt<'f>(&self, foreign: Foreign<'f>, kind: u8, topic: &str, is_told: &mut bool) -> Message<'f> {
        if !std::mem::replace(is_told, true) {
            (self.tell)(&format!(
                "'{topic}' has messages of other programs: their bytes are carried, as kind {kind}, with the time at which \
                 they came; keys and headers are not"
            ));
        }
        let stamp = self.clock.ticks();
        Message { sequence: foreign.sequence, stamp, kind, payload: foreign.bytes, origin: None }
    }

    /// The stamp by the clock of this host; of a message that was stamped by another one, the time at which it came. The first
    /// of those is told.
    fn stamp_here(&self, message: &Message<'_>, topic: &str, is_told: &mut bool) -> Stamp {
        if message.is_of_clock(clock_of(self.clock.calibration())) {
            return Stamp { ticks: message.stamp, is_arrival: false };
        }
        if !std::mem::replace(is_told, true) {
            (self.tell)(&format!(
                "'{topic}' has messages of another host, or of one before its last start, whose stamps tell no time here: \
                 they get the time at which they came"
            ));
        }
        Stamp { ticks: self.clock.ticks(), is_arrival: true }
    }

    fn utc_ns_of(&self, stamp: u64) -> u64 {
        self.clock.calibration().utc_ns_of(stamp)
    }
}

/// When a message was stamped, by the clock of this host.
#[derive(Clone, Copy)]
struct Stamp {
    ticks: u64,
    /// It is when the message came, for want of a stamp of this host.
    is_arrival: bool,
}
