//! Carrying messages: from a bus into a recording, from a recording onto a bus, from one bus to another.
//!
//! ```text
//!   bus ──record──> recording ──replay──> bus        a recording is a log on a disk that keeps everything
//!   bus ──────────────bridge────────────> bus
//! ```
//!
//! Kind and payload are carried as they are, and so is the stamp, unless a replay gives it a new one. What other programs
//! publish has neither kind nor stamp: it gets the kind that was asked for, and the time at which it came. A bus has no way
//! to publish a loss: what was missed on the way here is told at once and counted, and in a recording it stays as a
//! record of the kind [`GAP_KIND`]. A stamp tells a time on its own host alone: a message that another host has stamped gets
//! the time at which it came.
//!
//! * [`record`], [`replay`], [`bridge`]: the carriers, each one call that returns when it is done or stopped.
//! * [`Meter`]: what was carried so far, for anybody to look at.

pub mod bridge;
pub mod record;
pub mod replay;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use tickpath_bus::origin::clock_of;
use tickpath_bus::{
    ConnectError, Connection, Foreign, Gap, Message, Policy, PublishError, Publisher, ReceiveError, TopicConfig,
};
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};
use tickpath_log::{OpenError, Place, ReadError, Reader, Registration, Start};
use tickpath_market::replay::PaceError;

use tickpath_result::{PERCENTILES, Percentile, histogram, without_login};

/// The kind of a record in a recording that stands for messages which were lost before it.
pub const GAP_KIND: u8 = 255;

/// The kind that messages of other programs get unless another one is asked for: no message of ours has it.
pub const FOREIGN_KIND: u8 = 128;

/// What such a record begins with, because messages of others may have its kind.
const GAP_MAGIC: [u8; 8] = *b"TICKGAP1";

/// Bytes of such a record.
const GAP_BYTES: usize = 16;

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
    /// The folder of a recording cannot be looked at.
    #[error("{place} cannot be used ({reason}); name a folder that you may write")]
    Folder {
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
            Self::Forgets { .. } | Self::Circle(_) | Self::Twice(_) => true,
            Self::Connect(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// The bytes of a record that stands for a loss: eight letters, then how many messages were lost, little-endian; zero
/// if nobody knows.
pub fn gap_record(gap: Gap) -> [u8; GAP_BYTES] {
    let missed = match gap {
        Gap::Missed(missed) => missed,
        Gap::Reconnected => 0,
    };
    let mut bytes = [0; GAP_BYTES];
    bytes[..8].copy_from_slice(&GAP_MAGIC);
    bytes[8..].copy_from_slice(&missed.to_le_bytes());
    bytes
}

/// The loss that a record of a recording stands for; none if it is a message.
pub fn read_gap(kind: u8, payload: &[u8]) -> Option<Gap> {
    let missed = payload.strip_prefix(&GAP_MAGIC).filter(|_| kind == GAP_KIND)?;
    Some(match u64::from_le_bytes(missed.try_into().ok()?) {
        0 => Gap::Reconnected,
        missed => Gap::Missed(missed),
    })
}

/// A loss in words.
pub fn gap_words(gap: Gap) -> String {
    match gap {
        Gap::Missed(1) => "1 message was missed".to_owned(),
        Gap::Missed(missed) => format!("{missed} messages were missed"),
        Gap::Reconnected => "the connection was lost and made again; nobody knows what was missed".to_owned(),
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

impl Outside<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What another program published, as a message of ours; the first one is told.
    fn adopt<'f>(&self, foreign: Foreign<'f>, kind: u8, topic: &str, is_told: &mut bool) -> Message<'f> {
        if !std::mem::replace(is_told, true) {
            (self.tell)(&format!(
                "'{topic}' has messages of other programs: they are carried whole, as kind {kind}, with the time at \
                 which they came"
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

/// Where messages go. Room for them is waited for.
struct Outlet {
    topic: String,
    publisher: Box<dyn Publisher>,
    wait: Wait,
    /// Nobody is subscribed, and that was told.
    is_alone: bool,
}

/// What came of handing a message over.
enum Handed {
    /// It is published.
    Over {
        /// When the call began that did it, in ticks.
        at: u64,
        /// The topic was full before.
        refused: bool,
    },
    /// The carrier was stopped while there was no room.
    Stopped,
}

impl Outlet {
    /// Opens a topic of the bus of this URL. What a log there holds already is told, for it stays.
    fn open(
        connection: &dyn Connection,
        (url, topic): (&str, &str),
        opening: &Opening,
        wait: Wait,
        outside: &Outside<'_>,
    ) -> Result<Self, ConnectError> {
        let usual = connection.capabilities().policies.first().copied().unwrap_or(Policy::Overwrite);
        let policy = opening.policy.unwrap_or(usual);
        let config = TopicConfig { capacity_bytes: opening.capacity_bytes, ..TopicConfig::new(policy) };
        let publisher = connection.publisher(topic, &config)?;
        if let Some((place, held)) = held(url, topic).filter(|(_, held)| *held > 0) {
            (outside.tell)(&format!(
                "'{topic}' of {} was there already: messages go behind its {held} messages; to begin anew, first: \
                 tickpath log rm {place}",
                without_login(url)
            ));
        }
        Ok(Self { topic: topic.to_owned(), publisher, wait, is_alone: false })
    }

    fn hand_over(
        &mut self,
        stamp: u64,
        kind: u8,
        payload: &[u8],
        outside: &Outside<'_>,
    ) -> Result<Handed, PublishError> {
        let mut refused = false;
        loop {
            let at = outside.clock.ticks();
            match self.publisher.publish(stamp, kind, payload) {
                Ok(()) => {
                    self.is_alone = false;
                    return Ok(Handed::Over { at, refused });
                }
                Err(PublishError::Full) => {}
                Err(PublishError::NoSubscriber) => self.tell_alone(outside),
                Err(PublishError::Unknown(reason)) => return self.send_again(reason, (at, refused), outside),
                Err(error) => return Err(error),
            }
            if outside.is_stopped() {
                return Ok(Handed::Stopped);
            }
            refused = true;
            match self.wait {
                wait if wait.sleeps() => sleep_ns(ROOM_NS),
                wait => wait.idle(),
            }
        }
    }

    /// Sends again what may have arrived, as the same message, until it is known to have: subscribers get it once.
    fn send_again(
        &mut self,
        reason: String,
        (at, refused): (u64, bool),
        outside: &Outside<'_>,
    ) -> Result<Handed, PublishError> {
        (outside.tell)(&format!("'{}': {reason}; it is sent again, and comes once", self.topic));
        loop {
            match self.publisher.resend().map_err(|failed| failed.error) {
                Ok(()) => return Ok(Handed::Over { at, refused }),
                Err(PublishError::Unknown(_)) if outside.is_stopped() => return Ok(Handed::Stopped),
                Err(PublishError::Unknown(_)) => sleep_ns(RETRY_NS),
                Err(error) => return Err(error),
            }
        }
    }

    fn tell_alone(&mut self, outside: &Outside<'_>) {
        if !self.is_alone {
            self.is_alone = true;
            (outside.tell)(&format!("nobody is subscribed to '{}', whose policy is 'fail'; waiting", self.topic));
        }
    }
}

/// Where a topic lies, however its URL is written: two of one address are one topic.
fn address(url: &str, topic: &str) -> String {
    let identity = || tickpath_bus::connect(url).ok().and_then(|there| there.about().identity);
    log_address(url, topic).unwrap_or_else(|| address_at(url, identity().as_deref(), topic))
}

/// The same where the server has said already which one it is.
fn address_at(url: &str, server: Option<&str>, topic: &str) -> String {
    log_address(url, topic).unwrap_or_else(|| match server {
        Some(server) => format!("{server}/{topic}"),
        None => format!("{}/{topic}", one_name(without_login(url).trim_end_matches('/'))),
    })
}

/// The same of a topic that is a log; none on a server.
fn log_address(url: &str, topic: &str) -> Option<String> {
    match url.split_once("://")? {
        ("shm", "") => Some(format!("shm://{topic}")),
        ("shm", prefix) => Some(format!("shm://{prefix}.{topic}")),
        ("file", folder) => Some(folder_address(&Path::new(folder).join(topic))),
        _ => None,
    }
}

/// Where a topic lies that is a log, and how many messages it holds.
fn held(url: &str, topic: &str) -> Option<(Place, u64)> {
    let place: Place = log_address(url, topic)?.parse().ok()?;
    let sequence = |start| Reader::open(&place, start, Registration::Unregistered).map(|log| log.sequence()).ok();
    let held = sequence(Start::Now)?.saturating_sub(sequence(Start::Oldest)?);
    Some((place, held))
}

/// A server's URL by the address that its name stands for: one server has many names.
fn one_name(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, behind) = rest.split_at(end);
    let found: Vec<SocketAddr> = host.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    match found.first() {
        Some(first) if found.iter().any(|found| found.ip().is_loopback()) => {
            format!("{scheme}://localhost:{}{behind}", first.port())
        }
        Some(first) => format!("{scheme}://{first}{behind}"),
        None => url.to_owned(),
    }
}

/// The address of the topic whose log lies here.
fn place_address(place: &Place) -> String {
    if place.is_shared_memory() { place.to_string() } else { folder_address(place.dir()) }
}

fn folder_address(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.components().collect());
    format!("file://{}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_written_and_read() {
        for gap in [Gap::Missed(1), Gap::Missed(u64::MAX), Gap::Reconnected] {
            let record = gap_record(gap);
            assert_eq!(read_gap(GAP_KIND, &record), Some(gap));
            assert_eq!(read_gap(GAP_KIND - 1, &record), None, "another kind is a message");
            assert_eq!(read_gap(GAP_KIND, &record[..15]), None, "another length is a message");
        }
        for payload in [&b""[..], b"TICKGAP", &[0; 16], &[255; 16]] {
            assert_eq!(read_gap(GAP_KIND, payload), None, "{payload:?}");
        }
    }

    #[test]
    fn one_topic_has_one_address() {
        for (one, other, same) in [
            (("shm://", "ticks"), ("shm://", "ticks"), true),
            (("shm://", "lab.ticks"), ("shm://lab", "ticks"), true),
            (("file:///nowhere", "ticks"), ("file:///nowhere//", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://localhost:1/", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://me:secret@localhost:1", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://localhost:1?streams", "ticks"), false),
            (("redis://localhost:1", "ticks"), ("redis://localhost:2", "ticks"), false),
            (("shm://", "ticks"), ("shm://", "trades"), false),
            (("shm://", "ticks"), ("file:///nowhere", "ticks"), false),
        ] {
            assert_eq!(address(one.0, one.1) == address(other.0, other.1), same, "{one:?} {other:?}");
        }
    }
}
