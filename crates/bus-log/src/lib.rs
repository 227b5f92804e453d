//! The bus over the log: `shm://PREFIX` in shared memory, `file:///FOLDER` on a disk.
//!
//! A topic is one log: `shm://` and the topic `ticks` make the log `shm://ticks`, `shm://lab` makes `shm://lab.ticks`,
//! `file:///var/lib/x` makes `file:///var/lib/x/ticks`. A topic that is kept has segments of its capacity.
//!
//! A queue is one log too, with `.queue` behind its name: the queue `orders` of `shm://lab` is the log
//! `shm://lab.orders.queue`. So a topic and a queue of one name do not meet, and no topic's name ends like that.

mod lent;
mod queue;
mod ring;
mod start;
mod warm;

use std::hint::black_box;
use std::path::PathBuf;

use tickpath_bus_api::origin::clock_of;
use tickpath_bus_api::{
    BatchError, Capabilities, ConnectError, Connection, Event, Gap, LendError, Lending, Message, Origin, OriginTracker,
    Policy, PublishError, Publisher, PublisherState, Puller, Pusher, QueueCapabilities, QueueConfig, ReceiveError,
    ResumeToken, Start, Subscriber, TopicConfig, Transport, adaptive,
};
use tickpath_clock::{Calibration, Clock, HostClock, Wait};
use tickpath_log::{
    Config, FIRST_KIND, Next, NextLent, OpenError, Place, PlaceError, ReadError, Reader, Rehearsal, Writer,
};

use crate::ring::{
    LOOK_FOR_LOG_NS, MAX_PAYLOAD_BYTES, NAME, SEGMENTS, connect_error, name_error, publish_batch, publish_error,
    segment_bytes,
};
use crate::start::{Before, Begun};
use crate::warm::Warm;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: NAME,
    schemes: &["shm", "file"],
    form: "shm://, shm://PREFIX, file:///FOLDER",
    ways: &[""],
    port: None,
    connect: |url| Ok(Box::new(LogBus::connect(url)?)),
    advise: |_about| Vec::new(),
};

/// What the name of a queue's log ends with.
const QUEUE_SUFFIX: &str = ".queue";

/// The longest name of a queue, in bytes: its log has a name like a topic's, of at most 128.
const MAX_QUEUE_NAME_BYTES: usize = 128 - QUEUE_SUFFIX.len();

/// Where the topics of one connection lie.
#[derive(Debug, Clone)]
pub struct LogBus {
    root: Root,
    clock: HostClock,
}

#[derive(Debug, Clone)]
enum Root {
    SharedMemory(String),
    Folder(PathBuf),
}

impl LogBus {
    /// Reads `shm://`, `shm://PREFIX` or `file:///FOLDER`.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let root = if let Some(prefix) = url.strip_prefix("shm://") {
            if !prefix.is_empty() {
                Place::shared_memory(prefix).map_err(name_error)?;
            }
            Root::SharedMemory(prefix.to_owned())
        } else {
            let place: Place = url.parse().map_err(|e: PlaceError| ConnectError::Url(e.to_string()))?;
            Root::Folder(place.dir().to_owned())
        };
        Ok(Self { root, clock })
    }

    /// The log of a topic.
    pub fn place(&self, topic: &str) -> Result<Place, ConnectError> {
        if let Some(queue) = topic.strip_suffix(QUEUE_SUFFIX) {
            let what = format!("'{topic}' is the log of the queue '{queue}', no topic; use another name");
            return Err(ConnectError::Name(what));
        }
        self.log(topic)
    }

    /// The log of a queue.
    pub fn queue_place(&self, queue: &str) -> Result<Place, ConnectError> {
        let log = || self.log(&format!("{queue}{QUEUE_SUFFIX}"));
        let place = Place::shared_memory(queue).map_err(name_error).and_then(|_| log());
        place.map_err(|_| {
            ConnectError::Name(format!(
                "'{queue}' is no queue name; use 1 to {MAX_QUEUE_NAME_BYTES} letters, digits, '.', '_', '-' or ':', not \
                 starting with a point"
            ))
        })
    }

    fn log(&self, name: &str) -> Result<Place, ConnectError> {
        // The rules for names are the same in a folder, so that a topic can move.
        let alone = Place::shared_memory(name).map_err(name_error)?;
        match &self.root {
            Root::SharedMemory(prefix) if prefix.is_empty() => Ok(alone),
            Root::SharedMemory(prefix) => Place::shared_memory(&format!("{prefix}.{name}")).map_err(name_error),
            Root::Folder(dir) => Ok(Place::folder(dir.join(name))),
        }
    }
}

/// The log of a topic of the bus of this URL, there or not.
pub fn log_of(url: &str, topic: &str) -> Result<Place, ConnectError> {
    LogBus::connect(url)?.place(topic)
}

/// The same, where it is not there yet.
pub fn absent(url: &str, topic: &str) -> Option<Place> {
    log_of(url, topic).ok().filter(|place| !place.exists())
}

/// The logs that lie in a folder, or in shared memory under its name and a point, in the order of their names.
pub fn within(place: &Place) -> Vec<Place> {
    let mut found: Vec<Place> = if place.is_shared_memory() {
        let prefix = format!("{place}.");
        let names = Place::all_in_shared_memory().unwrap_or_default();
        let logs = names.iter().filter_map(|name| Place::shared_memory(name).ok());
        logs.filter(|log| log.to_string().starts_with(&prefix)).collect()
    } else {
        let entries = std::fs::read_dir(place.dir()).into_iter().flatten().flatten();
        entries.map(|entry| Place::folder(entry.path())).filter(Place::exists).collect()
    };
    found.sort_by(|one, other| one.dir().cmp(other.dir()));
    found
}

impl Connection for LogBus {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: true,
            history: true,
            max_age: false,
            single_publisher: true,
            publisher_liveness: true,
            whole_batches: true,
            policies: &Policy::ALL,
            lends: &[Policy::Keep],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let place = self.place(topic)?;
        let config = Config {
            segment_bytes: if config.policy == Policy::Keep {
                config.capacity_bytes.next_multiple_of(4096)
            } else {
                segment_bytes(config.capacity_bytes)
            },
            segments: SEGMENTS,
            mode: config.mode,
            ..Config::topic(place, log_policy(config.policy))
        };
        let writer = Writer::open(&config, self.clock.calibration()).map_err(connect_error)?;
        Ok(Box::new(LogPublisher::new(writer)))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        if let Start::After(token) = start {
            token.read(TRANSPORT.name)?;
        }
        let mut subscriber = LogSubscriber::new(self.place(topic)?, start, wait, None);
        match subscriber.attach() {
            Err(OpenError::NotFound(_)) => {
                // Whatever comes first is "from now on"; what is gone before we see the topic is told as a gap.
                if matches!(start, Start::Now | Start::Oldest) {
                    subscriber.start = Start::Sequence(0);
                }
                adaptive::subscriber(wait, subscriber)
            }
            Err(e) => Err(connect_error(e)),
            Ok(()) => adaptive::subscriber(wait, subscriber),
        }
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        remove(&self.place(topic)?)
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        queue::CAPABILITIES
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        queue::pusher(self.queue_place(queue)?, config, &self.clock)
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        queue::puller(self.queue_place(queue)?, config.delivery, wait)
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        queue::waiting(&self.queue_place(queue)?).map(Some)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        remove(&self.queue_place(queue)?)
    }
}

struct LogPublisher {
    writer: Writer,
    /// Bytes of the last message.
    last_bytes: usize,
    warm: Warm<LogPublisher>,
}

impl LogPublisher {
    fn new(writer: Writer) -> Self {
        Self { writer, last_bytes: 0, warm: Warm::new() }
    }

    #[inline(never)]
    fn rehearse(&mut self) {
        let Self { writer, last_bytes, warm } = self;
        writer.keep_warm(*last_bytes);
        let make = || writer.rehearsal().ok().map(|made| Self::new(made.writer));
        let Some((stage, message)) = warm.stage(make, *last_bytes) else { return };
        // The function that callers call, not a copy of it.
        let publisher: &mut dyn Publisher = black_box(stage);
        let _ = publisher.publish(0, FIRST_KIND, message);
    }
}

impl Publisher for LogPublisher {
    #[inline]
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.last_bytes = payload.len();
        self.writer.publish(stamp, kind, payload).map(|_| ()).map_err(publish_error)
    }

    #[inline]
    fn idle(&mut self) {
        if self.warm.is_due() {
            self.rehearse();
        } else {
            self.writer.take_lines(self.last_bytes, self.warm.turns());
        }
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.last_bytes = payloads.last().map_or(self.last_bytes, |payload| payload.len());
        publish_batch(&mut self.writer, stamp, kind, payloads)
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct LogSubscriber {
    place: Place,
    start: Start,
    wait: Wait,
    reader: Option<Reader>,
    /// It begins with a gap, which is not told yet; then this is what it reads.
    behind_gap: Option<Reader>,
    /// Where it hands over for who carries on.
    carried: Option<Carried>,
    /// Bytes of the last message.
    last_bytes: usize,
    /// Its stamp, if it came right before what comes next.
    last_stamp: Option<u64>,
    /// The message before the place where it began.
    before: Option<Before>,
    warm: Warm<Heard>,
}

/// What was handed over last for who carries on.
#[derive(Default)]
struct Carried {
    /// What the message held, copied.
    copy: Vec<u8>,
    /// Its stamp and the clock of that, if it came right before what comes next.
    last: Option<(u64, Calibration)>,
}

/// A subscriber that rehearses, and who publishes to it.
type Heard = (Writer, LogSubscriber);

impl LogSubscriber {
    fn new(place: Place, start: Start, wait: Wait, reader: Option<Reader>) -> Self {
        Self {
            place,
            start,
            wait,
            reader,
            behind_gap: None,
            carried: None,
            last_bytes: 0,
            last_stamp: None,
            before: None,
            warm: Warm::new(),
        }
    }

    fn attach(&mut self) -> Result<(), OpenError> {
        let Begun { reader, is_same, before } = start::open(&self.place, self.start)?;
        if matches!(self.wait, Wait::Busy | Wait::Adaptive) {
            // What it takes to begin with is not taken from a message that comes.
            rehearse(&mut self.warm, &reader, 0);
        }
        *(if is_same { &mut self.reader } else { &mut self.behind_gap }) = Some(reader);
        self.before = before;
        if self.carried.is_some() {
            self.look_before();
        }
        Ok(())
    }

    /// Looks up the message before the next one, if that is not known. Who carries on keeps its token from the beginning on,
    /// and the log is known again by that message, though nothing has come.
    fn look_before(&mut self) {
        let Some(reader) = self.reader.as_ref().or(self.behind_gap.as_ref()) else { return };
        let next = reader.next_told();
        if self.before.is_none_or(|before| before.next != next) {
            self.before = Before::look(&self.place, next);
        }
    }

    /// The message right before the next one, if it is known.
    fn last(&self) -> Option<Before> {
        let reader = self.reader.as_ref()?;
        let next = reader.next_told();
        let handed = match &self.carried {
            Some(carried) => carried.last,
            None => self.last_stamp.map(|stamp| (stamp, reader.calibration())),
        };
        let handed = handed.and_then(|(stamp, clock)| Before::read(next, stamp, clock.utc_ns_of(stamp)));
        handed.or(self.before.filter(|before| before.next == next))
    }

    /// Tells the gap that it begins with, or looks whether a writer has made the log by now; true if there is something to
    /// read from, and no gap before it.
    #[cold]
    fn try_attach(&mut self, told: &mut usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<bool, ReceiveError> {
        if self.behind_gap.is_none() && !self.find()? {
            return Ok(false);
        }
        if let Some(reader) = self.behind_gap.take() {
            self.reader = Some(reader);
            handler(Event::Gap(Gap::Reconnected));
            *told = 1;
        }
        Ok(*told == 0)
    }

    fn find(&mut self) -> Result<bool, ReceiveError> {
        match self.attach() {
            Ok(()) => Ok(true),
            Err(OpenError::NotFound(_)) => Ok(false),
            Err(e) => Err(ReceiveError::Other(Box::new(e))),
        }
    }
}

impl Subscriber for LogSubscriber {
    #[inline]
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let mut told = 0;
        if limit == 0 || self.reader.is_none() && !self.try_attach(&mut told, handler)? {
            return Ok(told);
        }
        let Self { reader, last_bytes, last_stamp, carried, .. } = self;
        let reader = reader.as_mut().expect("attached");
        if let Some(carried) = carried {
            return carry_on(reader, carried, limit, handler).map_err(|e| ReceiveError::Damaged(e.to_string()));
        }
        let drained = reader.drain(limit, |next| match next {
            Next::Message(m) => {
                *last_bytes = m.payload.len();
                *last_stamp = Some(m.stamp);
                handler(Event::of(Message {
                    sequence: Some(m.sequence),
                    stamp: m.stamp,
                    kind: m.kind,
                    payload: m.payload,
                    origin: None,
                }));
            }
            Next::Gap(missed) => {
                *last_stamp = None;
                handler(Event::Gap(Gap::Missed(missed)));
            }
            Next::Empty => {}
        });
        if let Ok(1..) = drained {
            self.warm.has_worked();
        }
        drained.map_err(|e| ReceiveError::Damaged(e.to_string()))
    }

    fn lend(&mut self) -> Result<Lending, LendError> {
        if self.carried.is_some() {
            return Err(LendError::NotHere(lent::CARRIES));
        }
        if self.reader.is_none() && self.behind_gap.is_none() && !self.find()? {
            return Ok(Lending::Nothing);
        }
        if let Some(reader) = self.behind_gap.take() {
            self.reader = Some(reader);
            return Ok(Lending::Gap(Gap::Reconnected));
        }
        let reader = self.reader.as_mut().expect("attached");
        let found = reader.lend().map_err(|e| ReceiveError::Damaged(e.to_string()))?;
        match found.ok_or_else(|| LendError::NotHere(lent::why_not(reader.policy())))? {
            NextLent::Message(message) => {
                self.last_bytes = message.payload().len();
                self.last_stamp = Some(message.stamp);
                self.warm.has_worked();
                Ok(lent::lending(message))
            }
            NextLent::Gap(missed) => {
                self.last_stamp = None;
                Ok(Lending::Gap(Gap::Missed(missed)))
            }
            NextLent::Empty => Ok(Lending::Nothing),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        match (&mut self.reader, self.wait) {
            (Some(_), Wait::Busy) => _ = self.idle(),
            (Some(reader), wait) => {
                reader.wait(wait, timeout_ns);
                self.warm.is_cold();
            }
            (None, _) if self.behind_gap.is_some() => {}
            (None, wait) if wait.sleeps() => tickpath_clock::sleep_ns(timeout_ns.min(LOOK_FOR_LOG_NS)),
            (None, wait) => wait.idle(),
        }
    }

    fn token(&self) -> Option<ResumeToken> {
        let reader = self.reader.as_ref()?;
        let [stamp, utc_ns] = self.last().map_or([0; 2], |last| [last.stamp, last.utc_ns]);
        let words = [reader.next_told(), reader.identity(), stamp, utc_ns];
        Some(ResumeToken::new(TRANSPORT.name, words, &OriginTracker::default()))
    }

    fn carry_on(&mut self) {
        self.before = self.last().or(self.before);
        self.carried = Some(Carried::default());
        self.look_before();
    }

    fn idle(&mut self) -> bool {
        let Some(reader) = &mut self.reader else {
            tickpath_clock::relax();
            return false;
        };
        let is_due = self.warm.is_due();
        if is_due {
            rehearse(&mut self.warm, reader, self.last_bytes);
        }
        reader.wait(Wait::Busy, 0);
        is_due
    }

    fn keep_warm(&mut self, keep: bool) {
        self.warm.keep(keep);
    }

    fn publisher(&self) -> PublisherState {
        match self.reader.as_ref().and_then(Reader::writer) {
            Some(pid) => PublisherState::Alive(pid),
            None => PublisherState::Absent,
        }
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }

    /// A log has each message once.
    fn duplicates(&self) -> Option<u64> {
        Some(0)
    }

    /// A log has them in their order.
    fn late(&self) -> Option<u64> {
        Some(0)
    }
}

/// Receives a message of so many bytes that is none.
#[inline(never)]
fn rehearse(warm: &mut Warm<Heard>, reader: &Reader, bytes: usize) {
    let make = || {
        let Rehearsal { writer, reader } = reader.rehearsal().ok()?;
        let place = reader.place().clone();
        Some((writer, LogSubscriber::new(place, Start::Now, Wait::Busy, Some(reader))))
    };
    let Some(((writer, subscriber), message)) = warm.stage(make, bytes) else { return };
    let _ = writer.publish(0, FIRST_KIND, message);
    let subscriber: &mut dyn Subscriber = black_box(subscriber);
    let _ = subscriber.poll(1, &mut |event| {
        black_box(event);
    });
}

/// Hands over messages with an origin: what tells the log, and the boot of who wrote the message, and its sequence number.
/// A log that lost its end with its host counts on from there, of another boot.
fn carry_on(
    reader: &mut Reader,
    carried: &mut Carried,
    limit: usize,
    handler: &mut dyn FnMut(Event<'_>),
) -> Result<usize, ReadError> {
    for count in 0..limit {
        let (sequence, stamp, kind) = match reader.next()? {
            Next::Message(message) => {
                carried.copy.clear();
                carried.copy.extend_from_slice(message.payload);
                (message.sequence, message.stamp, message.kind)
            }
            Next::Gap(missed) => {
                carried.last = None;
                handler(Event::Gap(Gap::Missed(missed)));
                continue;
            }
            Next::Empty => return Ok(count),
        };
        let calibration = reader.calibration();
        carried.last = Some((stamp, calibration));
        let clock = clock_of(&calibration);
        let origin = Some(Origin { clock, publisher: reader.identity() ^ clock, number: sequence });
        handler(Event::Message(Message { sequence: Some(sequence), stamp, kind, payload: &carried.copy, origin }));
    }
    Ok(limit)
}

/// What is not there is no error.
fn remove(place: &Place) -> Result<(), ConnectError> {
    if !place.exists() {
        return Ok(());
    }
    place.remove().map_err(|e| ConnectError::Other(Box::new(e)))
}

fn log_policy(policy: Policy) -> tickpath_log::Policy {
    match policy {
        Policy::Overwrite => tickpath_log::Policy::Overwrite,
        Policy::Fail => tickpath_log::Policy::Fail,
        Policy::Keep => tickpath_log::Policy::Keep,
    }
}
