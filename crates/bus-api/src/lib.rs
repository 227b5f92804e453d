//! The contract of every transport: what publishing and subscribing mean, whoever carries the message.
//!
//! ```text
//!   connect(url) ──> Connection ──publisher(topic)──>  Publisher ── publish(stamp, kind, payload)
//!                        └────────subscriber(topic)──> Subscriber ─ poll(handler) ─> Message | Foreign | Gap
//! ```
//!
//! The promises, which [`conformance`] runs against each transport:
//!
//! * **Order**: a subscriber sees one publisher's messages in the order of publishing, each whole and at most once.
//! * **Loss is counted**: what a subscriber misses it learns as an [`Event::Gap`]; a transport that knows how many says so.
//! * **A topic has one publisher** where [`Capabilities::single_publisher`] says so: a second one is refused by name.
//! * **Start order is free**: a subscriber that starts before its publisher gets everything from the first message on, and
//!   can ask meanwhile whether anybody publishes ([`Subscriber::publisher`]).
//! * **Nothing is left behind**: killing a publisher or a subscriber at any moment stops nobody's next start.
//!
//! A [queue](Pusher) gives each message to one of its pullers, once or at least once, by name.
//!
//! What a transport truly cannot do it declares in [`Capabilities`]; the suite then checks that it refuses, in words.

pub mod conformance;
mod mailbox;
mod queue;
pub mod wire;

use std::collections::BTreeMap;
use std::fmt;

use tickpath_clock::Wait;

pub use mailbox::Mailbox;
pub use queue::{Delivery, Pulled, Puller, Pusher, QueueCapabilities, QueueConfig};

/// Where a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next message that is published.
    Now,
    /// With the oldest that the transport still has.
    Oldest,
    /// With this sequence number; what is gone already is told as a gap.
    Sequence(u64),
}

/// What a full topic does. Chosen by name, never silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The publisher never waits; a slow subscriber learns how many it missed.
    Overwrite,
    /// The publisher is told, keeps its message and decides.
    Fail,
    /// Everything stays.
    Keep,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Overwrite, Self::Fail, Self::Keep];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Fail => "fail",
            Self::Keep => "keep",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A message as a subscriber sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The topic's count of messages, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// The publisher's stamp, in ticks of the host's clock.
    pub stamp: u64,
    /// What it is; 16 to 255.
    pub kind: u8,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// What another program published on a topic, without [our header](wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The topic's count of messages, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// Its bytes; of an entry of a Redis stream, its fields as an object in JSON.
    pub bytes: &'a [u8],
}

/// What a subscriber finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message.
    Message(Message<'a>),
    /// What is no message of ours: nobody stamped it, and it has no kind.
    Foreign(Foreign<'a>),
    /// Messages that this subscriber will never see.
    Gap(Gap),
}

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Exactly so many messages.
    Missed(u64),
    /// The connection was lost and made anew; nobody knows what came meanwhile.
    Reconnected,
}

/// What a transport can do. What it cannot do it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages have sequence numbers, and losses are counted exactly.
    pub sequences: bool,
    /// A subscription can start at the oldest message, and, where there are sequence numbers, at one of them.
    pub history: bool,
    /// A topic has one publisher, and a second one is refused.
    pub single_publisher: bool,
    /// A subscriber can tell whether somebody publishes.
    pub publisher_liveness: bool,
    /// The full policies that exist here; the usual one first.
    pub policies: &'static [Policy],
    /// The longest payload that is sure to pass, in bytes, with the default sizes.
    pub max_payload: usize,
}

/// How a publisher opens its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicConfig {
    /// What a full topic does.
    pub policy: Policy,
    /// Bytes that the topic holds before it is full, about; the transport rounds.
    pub capacity_bytes: usize,
    /// Permissions of what the topic is made of, where it is made of files.
    pub mode: u32,
}

impl TopicConfig {
    /// A topic of a mebibyte, which fits a core's second-level cache, for its owner only.
    pub const fn new(policy: Policy) -> Self {
        Self { policy, capacity_bytes: 1 << 20, mode: 0o600 }
    }
}

/// Somewhere topics live.
pub trait Connection: Send {
    /// What can be done here.
    fn capabilities(&self) -> Capabilities;

    /// What the server says of itself; nothing where there is none, or where it tells nobody.
    fn about(&self) -> About {
        About::default()
    }

    /// Opens a topic for publishing.
    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError>;

    /// Subscribes to a topic, whether or not somebody publishes it yet. With `Wait::Block` the subscriber may sleep.
    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError>;

    /// Removes what a topic has left, where it leaves anything. A topic that does not exist is no error.
    fn remove(&self, topic: &str) -> Result<(), ConnectError>;

    /// What queues can do here.
    fn queue_capabilities(&self) -> QueueCapabilities;

    /// Opens a queue for pushing, and makes it if it is not there.
    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError>;

    /// Opens a queue for pulling, whether or not somebody has pushed yet. With `Wait::Block` the puller may sleep.
    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError>;

    /// How many messages wait in a queue that nobody has taken; none where the transport cannot tell. A queue that does
    /// not exist holds none.
    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError>;

    /// Removes a queue with all that is in it. A queue that does not exist is no error.
    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError>;
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// What people call it.
    pub server: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What tells the place of its topics from any other, however the URL is written: of two places that say the same, a
    /// topic of one name is one topic.
    pub identity: Option<String>,
    /// Settings and counts that decide what is kept and what it costs, by the server's own names; or why it does not tell.
    pub settings: BTreeMap<&'static str, Result<String, String>>,
}

/// Publishes to one topic.
pub trait Publisher: Send {
    /// Publishes one message. On an error nothing of it is published, and it is still the caller's.
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError>;

    /// Publishes messages that share a stamp, as cheaply as the transport can. On an error the first `done` are published.
    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        for (done, payload) in payloads.iter().enumerate() {
            self.publish(stamp, kind, payload).map_err(|error| BatchError { done, error })?;
        }
        Ok(())
    }
}

/// Receives one topic.
pub trait Subscriber: Send {
    /// Hands over up to `limit` events that are there; gives how many. Never waits.
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError>;

    /// Passes the time as the subscription was opened to: until something may be there, or, where it sleeps, until
    /// `timeout_ns` is over. The caller polls again.
    fn wait(&mut self, timeout_ns: u64);

    /// Whether somebody publishes this topic now.
    fn publisher(&self) -> PublisherState;
}

/// Whether somebody publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublisherState {
    /// Yes, this process.
    Alive(u32),
    /// No: it has ended, or none ever came.
    Absent,
    /// The transport cannot know.
    Unknown,
}

/// Why there is no connection, publisher or subscriber. A sentence with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL names no transport.
    #[error("{0}")]
    Url(String),
    /// The topic's name is no name.
    #[error("{0}")]
    Name(String),
    /// The transport cannot do what was asked for.
    #[error("{transport} cannot {what}; {remedy}")]
    Unsupported {
        /// Which transport.
        transport: &'static str,
        /// What was asked for.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Somebody else publishes the topic.
    #[error("{0}")]
    HasPublisher(String),
    /// The server does not answer, or refuses.
    #[error("{server}: {what}")]
    Server {
        /// Which one.
        server: String,
        /// What happened, and what to do.
        what: String,
    },
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ConnectError {
    /// True if the call was wrong, and no server was asked.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Name(_) | Self::Unsupported { .. })
    }
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A registered subscriber is a whole topic behind.
    #[error("the topic is full: a subscriber is too slow; publish again when it has caught up, or stop it")]
    Full,
    /// Nobody is subscribed to a topic whose policy is `fail`.
    #[error("nobody is subscribed to this 'fail' topic; start a subscriber, or use 'overwrite'")]
    NoSubscriber,
    /// It does not fit.
    #[error("a message of {bytes} bytes does not fit; this topic takes up to {limit}")]
    TooLarge {
        /// The message.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// A batch that was published in part.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published, then: {error}")]
pub struct BatchError {
    /// Messages that are published.
    pub done: usize,
    /// Why the next one was not.
    #[source]
    pub error: PublishError,
}

/// Why a subscription cannot go on. A lost connection is not one: it is made again, and told as a gap.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The topic's own bytes are damaged.
    #[error("{0}")]
    Damaged(String),
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
