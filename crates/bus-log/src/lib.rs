//! The bus over the log: `shm://PREFIX` in shared memory, `file:///FOLDER` on a disk.
//!
//! A topic is one log: `shm://` and the topic `ticks` make the log `shm://ticks`, `shm://lab` makes `shm://lab.ticks`,
//! `file:///var/lib/x` makes `file:///var/lib/x/ticks`. A topic that is kept has segments of its capacity.
//!
//! A queue is one log too, with `.queue` after its name: the queue `orders` of `shm://lab` is the log
//! `shm://lab.orders.queue`. A topic and a queue of one name do not collide; no topic's name may end so.
//!
//! ```
//! use tickpath_bus_api::{Connection, Policy, StartPosition, TopicConfig};
//! use tickpath_bus_log::LogBus;
//! use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};
//!
//! let clock = HostClock::get()?;
//! let bus = LogBus::connect("shm://")?;
//! let topic = format!("doc-bus-log-{}", std::process::id());
//! let mut publisher = bus.publisher(&topic, &TopicConfig::new(Policy::Keep))?;
//! publisher.publish(clock.ticks(), 200, b"101.5")?;
//! let mut subscriber = bus.subscriber(&topic, StartPosition::Oldest, Wait::Block)?;
//! assert_eq!(subscriber.poll(64, &mut |event| println!("{event:?}"))?, 1);
//! bus.remove_topic(&topic)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A publisher and a subscriber that spin without work run a warm-up on a private log (`docs/design/warm-up.md`). A
//! subscription that resumes checks that the messages before its position are still the same (`start.rs`), and both
//! ends watch the log's name, whose files may be removed (`name_watch.rs`).

mod lending;
mod name_watch;
mod publisher;
mod queue;
mod start;
mod subscriber;
mod topic_log;
mod warm_up;

use std::path::PathBuf;

use tickpath_bus_api::{
    Capabilities, ConnectError, Connection, Policy, Publisher, Puller, Pusher, QueueCapabilities, QueueConfig,
    StartPosition, Subscriber, TopicConfig, Transport, adaptive,
};
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};
use tickpath_log::{Config, LogOpenError, LogPath, LogPathError, OverflowPolicy, Writer};

use crate::name_watch::NamedWriter;
use crate::publisher::LogPublisher;
use crate::subscriber::LogSubscriber;
use crate::topic_log::{MAX_PAYLOAD_BYTES, NAME, SEGMENTS, connect_error, name_error, segment_bytes};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The log transport: name, URL schemes, `connect` and `advise`.
pub const TRANSPORT: Transport = Transport {
    name: NAME,
    schemes: &["shm", "file"],
    url_syntax: "shm://, shm://PREFIX, file:///FOLDER",
    modes: &[""],
    port: None,
    connect: |url| Ok(Box::new(LogBus::connect(url)?)),
    advise: |_about| Vec::new(),
};

/// Max time for which the creator of a topic is its writer, and the pause between two tries, in nanoseconds.
const CREATION_NS: i64 = 500_000_000;
const CREATION_PAUSE_NS: u64 = 5_000_000;
/// Suffix of the name of a queue's log.
const QUEUE_SUFFIX: &str = ".queue";
/// Max length of a queue's name, in bytes: the name of its log is limited to 128 bytes, as a topic's is.
const MAX_QUEUE_NAME_BYTES: usize = 128 - QUEUE_SUFFIX.len();

/// Root of the topics and queues of one connection.
#[derive(Debug, Clone)]
pub struct LogBus {
    root: LogRoot,
    clock: HostClock,
}

#[derive(Debug, Clone)]
enum LogRoot {
    SharedMemory(String),
    Folder(PathBuf),
}

impl LogBus {
    /// Parses `shm://`, `shm://PREFIX` or `file:///FOLDER`.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let root = if let Some(prefix) = url.strip_prefix("shm://") {
            if !prefix.is_empty() {
                LogPath::shared_memory(prefix).map_err(name_error)?;
            }
            LogRoot::SharedMemory(prefix.to_owned())
        } else {
            let path: LogPath = url.parse().map_err(|e: LogPathError| ConnectError::Url(e.to_string()))?;
            LogRoot::Folder(path.dir().to_owned())
        };
        Ok(Self { root, clock })
    }

    /// Returns the log of a topic.
    pub fn topic_path(&self, topic: &str) -> Result<LogPath, ConnectError> {
        if let Some(queue) = topic.strip_suffix(QUEUE_SUFFIX) {
            let what = format!("'{topic}' is the log of the queue '{queue}', no topic; use another name");
            return Err(ConnectError::Name(what));
        }
        self.log_path(topic)
    }

    /// Returns the log of a queue.
    pub fn queue_path(&self, queue: &str) -> Result<LogPath, ConnectError> {
        let log = || self.log_path(&format!("{queue}{QUEUE_SUFFIX}"));
        LogPath::shared_memory(queue).map_err(name_error).and_then(|_| log()).map_err(|_| {
            ConnectError::Name(format!(
                "'{queue}' is no queue name; use 1 to {MAX_QUEUE_NAME_BYTES} letters, digits, '.', '_', '-' or ':', not \
                 starting with a point"
            ))
        })
    }

    fn log_path(&self, name: &str) -> Result<LogPath, ConnectError> {
        // Names follow the same rules in a folder, so that a topic can be moved.
        let unprefixed = LogPath::shared_memory(name).map_err(name_error)?;
        match &self.root {
            LogRoot::SharedMemory(prefix) if prefix.is_empty() => Ok(unprefixed),
            LogRoot::SharedMemory(prefix) => LogPath::shared_memory(&format!("{prefix}.{name}")).map_err(name_error),
            LogRoot::Folder(dir) => Ok(LogPath::folder(dir.join(name))),
        }
    }
}

/// Returns the log of a topic, given the URL of its bus. The log need not exist.
pub fn topic_log_path(url: &str, topic: &str) -> Result<LogPath, ConnectError> {
    LogBus::connect(url)?.topic_path(topic)
}

/// Returns the log of a topic only if it does not exist yet.
pub fn absent_log_path(url: &str, topic: &str) -> Option<LogPath> {
    topic_log_path(url, topic).ok().filter(|path| !path.exists())
}

/// Returns the logs in a folder, or in shared memory under its name and a point, sorted by name.
pub fn list_logs(path: &LogPath) -> Vec<LogPath> {
    let mut found: Vec<LogPath> = if path.is_shared_memory() {
        let prefix = format!("{path}.");
        let names = LogPath::all_in_shared_memory().unwrap_or_default();
        let logs = names.iter().filter_map(|name| LogPath::shared_memory(name).ok());
        logs.filter(|log| log.to_string().starts_with(&prefix)).collect()
    } else {
        let entries = std::fs::read_dir(path.dir()).into_iter().flatten().flatten();
        entries.map(|entry| LogPath::folder(entry.path())).filter(LogPath::exists).collect()
    };
    found.sort_by(|one, other| one.dir().cmp(other.dir()));
    found
}

/// Opens the writer of a topic. A process that reads a topic may create it first, and is its writer for that moment.
fn open_writer(config: &Config, clock: HostClock) -> Result<Writer, LogOpenError> {
    let begin = clock.ticks();
    loop {
        match Writer::open(config, clock.calibration()) {
            Err(LogOpenError::HasWriter { .. }) if clock.ns_between(begin, clock.ticks()) < CREATION_NS => {
                sleep_ns(CREATION_PAUSE_NS);
            }
            opened => return opened,
        }
    }
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
        let path = self.topic_path(topic)?;
        let segment_bytes = match config.policy {
            Policy::Keep => config.capacity_bytes.next_multiple_of(4096),
            Policy::Overwrite | Policy::Fail => segment_bytes(config.capacity_bytes),
        };
        let config = Config {
            segment_bytes,
            segments: SEGMENTS,
            mode: config.mode,
            ..Config::topic(path, log_policy(config.policy))
        };
        let writer = open_writer(&config, self.clock).map_err(connect_error)?;
        Ok(Box::new(LogPublisher::new(NamedWriter::new(writer, config, self.clock))))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        if let StartPosition::After(token) = start {
            token.read(TRANSPORT.name)?;
        }
        let mut subscriber = LogSubscriber::new(self.topic_path(topic)?, self.clock, start, wait, None);
        match subscriber.attach() {
            Err(LogOpenError::NotFound(_)) => subscriber.await_topic(),
            attached => attached.map_err(connect_error)?,
        }
        adaptive::subscriber(wait, subscriber)
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        remove(&self.topic_path(topic)?)
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        queue::CAPABILITIES
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        queue::pusher(self.queue_path(queue)?, config, &self.clock)
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        queue::puller(self.queue_path(queue)?, config.delivery, wait, self.clock)
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        queue::waiting(&self.queue_path(queue)?).map(Some)
    }

    fn loss_risk(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        self.queue_path(queue).map(|_place| None)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        remove(&self.queue_path(queue)?)
    }
}

/// Removes a log. A log that does not exist is no error.
fn remove(path: &LogPath) -> Result<(), ConnectError> {
    if path.exists() { path.remove().map_err(|e| ConnectError::Other(Box::new(e))) } else { Ok(()) }
}

fn log_policy(policy: Policy) -> OverflowPolicy {
    match policy {
        Policy::Overwrite => OverflowPolicy::Overwrite,
        Policy::Fail => OverflowPolicy::Fail,
        Policy::Keep => OverflowPolicy::Keep,
    }
}
