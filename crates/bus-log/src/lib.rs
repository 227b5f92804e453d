//! The bus over the log: `shm://PREFIX` in shared memory, `file:///FOLDER` on a disk.
//!
//! A topic is one log: `shm://` and the topic `ticks` make the log `shm://ticks`, `shm://lab` makes `shm://lab.ticks`,
//! `file:///var/lib/x` makes `file:///var/lib/x/ticks`. A topic that is kept has segments of its capacity.

use std::path::PathBuf;

use tickpath_bus_api::{
    BatchError, Capabilities, ConnectError, Connection, Event, Gap, Message, Policy, PublishError, Publisher,
    PublisherState, ReceiveError, Start, Subscriber, TopicConfig,
};
use tickpath_clock::{Clock, HostClock, Wait};
use tickpath_log::{Config, Next, OpenError, Place, Reader, Registration, Writer};

/// Segments in the ring of a topic.
const SEGMENTS: usize = 8;

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
                Place::shared_memory(prefix).map_err(|e| ConnectError::Name(e.to_string()))?;
            }
            Root::SharedMemory(prefix.to_owned())
        } else {
            let place: Place = url.parse().map_err(|e: tickpath_log::PlaceError| ConnectError::Url(e.to_string()))?;
            Root::Folder(place.dir().to_owned())
        };
        Ok(Self { root, clock })
    }

    /// The log of a topic.
    pub fn place(&self, topic: &str) -> Result<Place, ConnectError> {
        let name = |e: tickpath_log::PlaceError| ConnectError::Name(e.to_string());
        // The rules for names are the same in a folder, so that a topic can move.
        let alone = Place::shared_memory(topic).map_err(name)?;
        match &self.root {
            Root::SharedMemory(prefix) if prefix.is_empty() => Ok(alone),
            Root::SharedMemory(prefix) => Place::shared_memory(&format!("{prefix}.{topic}")).map_err(name),
            Root::Folder(dir) => Ok(Place::folder(dir.join(topic))),
        }
    }
}

impl Connection for LogBus {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: true,
            history: true,
            single_publisher: true,
            publisher_liveness: true,
            policies: &Policy::ALL,
            max_payload: 64 << 10,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        let place = self.place(topic)?;
        let segment = (config.capacity_bytes / SEGMENTS).next_multiple_of(4096).max(4096);
        let config = Config {
            segment_bytes: if config.policy == Policy::Keep {
                config.capacity_bytes.next_multiple_of(4096)
            } else {
                segment
            },
            segments: SEGMENTS,
            mode: config.mode,
            ..Config::topic(place, log_policy(config.policy))
        };
        let writer = Writer::open(&config, self.clock.calibration()).map_err(connect_error)?;
        Ok(Box::new(LogPublisher { writer }))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let mut subscriber = LogSubscriber { place: self.place(topic)?, start, wait, reader: None };
        match subscriber.attach() {
            Err(OpenError::NotFound(_)) => {
                // Whatever comes first is "from now on"; what is gone before we see the topic is told as a gap.
                if matches!(start, Start::Now | Start::Oldest) {
                    subscriber.start = Start::Sequence(0);
                }
                Ok(Box::new(subscriber))
            }
            Err(e) => Err(connect_error(e)),
            Ok(()) => Ok(Box::new(subscriber)),
        }
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let place = self.place(topic)?;
        if !place.exists() {
            return Ok(());
        }
        place.remove().map_err(|e| ConnectError::Other(Box::new(e)))
    }
}

struct LogPublisher {
    writer: Writer,
}

impl Publisher for LogPublisher {
    #[inline]
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.writer.publish(stamp, kind, payload).map(|_| ()).map_err(publish_error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut batch = self.writer.batch();
        for (done, payload) in payloads.iter().enumerate() {
            if let Err(e) = batch.push(stamp, kind, payload) {
                return Err(BatchError { done, error: publish_error(e) });
            }
        }
        Ok(())
    }
}

struct LogSubscriber {
    place: Place,
    start: Start,
    wait: Wait,
    reader: Option<Reader>,
}

impl LogSubscriber {
    fn attach(&mut self) -> Result<(), OpenError> {
        self.reader = Some(Reader::open(&self.place, log_start(self.start), Registration::Registered)?);
        Ok(())
    }

    /// Looks whether a writer has made the log by now.
    #[cold]
    fn try_attach(&mut self) -> Result<bool, ReceiveError> {
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
        if self.reader.is_none() && !self.try_attach()? {
            return Ok(0);
        }
        let reader = self.reader.as_mut().expect("attached");
        let drained = reader.drain(limit, |next| match next {
            Next::Message(m) => handler(Event::Message(Message {
                sequence: Some(m.sequence),
                stamp: m.stamp,
                kind: m.kind,
                payload: m.payload,
            })),
            Next::Gap(missed) => handler(Event::Gap(Gap::Missed(missed))),
            Next::Empty => {}
        });
        drained.map_err(|e| ReceiveError::Damaged(e.to_string()))
    }

    fn wait(&mut self, timeout_ns: u64) {
        /// How often a subscriber that may sleep looks whether its topic exists by now.
        const LOOK_FOR_TOPIC_NS: u64 = 1_000_000;
        match (&mut self.reader, self.wait) {
            (Some(reader), wait) => reader.wait(wait, timeout_ns),
            (None, Wait::Block) => tickpath_clock::sleep_ns(timeout_ns.min(LOOK_FOR_TOPIC_NS)),
            (None, wait) => wait.idle(),
        }
    }

    fn publisher(&self) -> PublisherState {
        match self.reader.as_ref().and_then(Reader::writer) {
            Some(pid) => PublisherState::Alive(pid),
            None => PublisherState::Absent,
        }
    }
}

fn log_start(start: Start) -> tickpath_log::Start {
    match start {
        Start::Now => tickpath_log::Start::Now,
        Start::Oldest => tickpath_log::Start::Oldest,
        Start::Sequence(sequence) => tickpath_log::Start::Sequence(sequence),
    }
}

fn log_policy(policy: Policy) -> tickpath_log::Policy {
    match policy {
        Policy::Overwrite => tickpath_log::Policy::Overwrite,
        Policy::Fail => tickpath_log::Policy::Fail,
        Policy::Keep => tickpath_log::Policy::Keep,
    }
}

fn connect_error(error: OpenError) -> ConnectError {
    match error {
        OpenError::Place(e) => ConnectError::Name(e.to_string()),
        OpenError::HasWriter { .. } => ConnectError::HasPublisher(error.to_string()),
        e => ConnectError::Other(Box::new(e)),
    }
}

fn publish_error(error: tickpath_log::PublishError) -> PublishError {
    match error {
        tickpath_log::PublishError::Full => PublishError::Full,
        tickpath_log::PublishError::NoReader => PublishError::NoSubscriber,
        tickpath_log::PublishError::TooLarge { bytes, limit } => PublishError::TooLarge { bytes, limit },
        e => PublishError::Other(Box::new(e)),
    }
}
