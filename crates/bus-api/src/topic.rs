//! Topics: each published message goes to every subscriber.

use std::fmt;

use tickpath_clock::relax;

use crate::error::{BatchError, ConnectError, LendError, PublishError, ReceiveError};
use crate::gap::{GAP_KIND, Gap};
use crate::lending::{LendOutcome, LentMessage};
use crate::message_id::MessageId;
use crate::token::ResumeToken;

/// Start position of a subscription.
#[allow(clippy::large_enum_variant, reason = "one is made for each subscription, and none is kept")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPosition {
    /// The next message that is published.
    Now,
    /// The oldest message that the transport still has.
    Oldest,
    /// This sequence number; messages that are gone already are reported as a gap.
    Sequence(u64),
    /// The message after the token's position; messages lost since then are reported as a gap. If the topic is not the
    /// same any more, that is reported too, and the subscription starts at the oldest message that can be new.
    After(ResumeToken),
}

/// Behaviour of a full topic. Chosen by name, never silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The publisher never waits; a slow subscriber gets the number of messages that it missed.
    Overwrite,
    /// The publish call fails, and the publisher keeps its message and decides.
    Fail,
    /// Nothing is removed.
    Keep,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Overwrite, Self::Fail, Self::Keep];

    /// Returns the word used on the command line.
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

/// A message as a subscriber receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Sequence number in the topic, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// The publisher's stamp, in ticks of the host's clock.
    pub stamp: u64,
    /// Kind of the message; 16 to 255.
    pub kind: u8,
    /// Bytes of the message.
    pub payload: &'a [u8],
    /// Publisher id and sequence number, on a broker; none in a log of this host, whose clock took the stamp.
    pub id: Option<MessageId>,
}

impl Message<'_> {
    /// Returns whether the stamp was taken by `clock`, that of this host since its last boot.
    pub fn is_of_clock(&self, clock: u64) -> bool {
        self.id.is_none_or(|id| id.clock == clock)
    }
}

impl<'a> From<&'a LentMessage> for Message<'a> {
    fn from(lent: &'a LentMessage) -> Self {
        let LentMessage { sequence, stamp, kind, .. } = *lent;
        Self { sequence, stamp, kind, payload: lent.payload(), id: None }
    }
}

/// A message of another program, without the [header](crate::wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignMessage<'a> {
    /// Sequence number in the topic, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// Bytes of the message; for an entry of a Redis stream, its fields as a JSON object.
    pub bytes: &'a [u8],
    /// Details beside the bytes as a JSON object, if there are any: `key`, `headers` and `tombstone` on Kafka,
    /// `headers` on NATS and RabbitMQ. Written as [`details`](crate::details) describes.
    pub details: Option<&'a str>,
}

/// An event of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionEvent<'a> {
    /// A message.
    Message(Message<'a>),
    /// A message of another program, which has no stamp and no kind.
    Foreign(ForeignMessage<'a>),
    /// Messages that this subscriber will never see.
    Gap(Gap),
}

impl<'a> SubscriptionEvent<'a> {
    /// Returns the event for a message: the message itself, or the loss that it reports.
    #[inline]
    pub fn from_message(message: Message<'a>) -> Self {
        if message.kind == GAP_KIND
            && let Some(gap) = Gap::decode(message.kind, message.payload)
        {
            return Self::Gap(gap);
        }
        Self::Message(message)
    }
}

/// Capabilities of a transport, which refuses everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages have sequence numbers, and losses are counted exactly.
    pub sequences: bool,
    /// A subscription can start in the past: at the oldest message, a number, or a [token](Subscriber::resume_token).
    pub history: bool,
    /// Under [`Policy::Overwrite`], messages older than [`TopicConfig::max_age_ns`] are removed.
    pub max_age: bool,
    /// A topic has one publisher, and a second one is refused.
    pub single_publisher: bool,
    /// A subscriber can query whether a publisher is alive.
    pub publisher_liveness: bool,
    /// A batch becomes visible at once: a subscriber that sees its first message finds the whole batch. Guaranteed for
    /// batches up to 1/16 of the topic's capacity, where a message takes its length and 16 bytes, rounded up to 64.
    pub whole_batches: bool,
    /// Policies available here; the default first.
    pub policies: &'static [Policy],
    /// Policies whose messages are [lent](Subscriber::lend) without a copy.
    pub lends: &'static [Policy],
    /// Max payload that is sure to pass with the default sizes, in bytes.
    pub max_payload: usize,
}

impl Capabilities {
    /// Rejects a maximum age that the transport or the policy does not support.
    pub fn check_age(&self, transport: &'static str, config: &TopicConfig) -> Result<(), ConnectError> {
        if config.max_age_ns.is_none() || self.max_age && config.policy == Policy::Overwrite {
            return Ok(());
        }
        let (what, remedy) = match self.max_age {
            true => (
                format!("remove messages by their age from a topic whose policy is '{}'", config.policy),
                "use the policy 'overwrite', or no age",
            ),
            false => (
                "remove messages by their age".to_owned(),
                "use the policy 'overwrite' on redis://…?streams, nats://…?jetstream or kafka://, or no age",
            ),
        };
        Err(ConnectError::Unsupported { transport, what, remedy })
    }
}

/// Configuration with which a publisher opens its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicConfig {
    /// Behaviour of a full topic.
    pub policy: Policy,
    /// Approximate capacity in bytes; the transport rounds.
    pub capacity_bytes: usize,
    /// Max age of messages under [`Policy::Overwrite`], in ns, where [`Capabilities::max_age`] holds; rounded up.
    pub max_age_ns: Option<u64>,
    /// Permissions of the topic's files, where it is made of files.
    pub mode: u32,
}

impl TopicConfig {
    /// Returns the configuration of a topic of 1 MiB, which fits a core's second-level cache, for its owner only.
    pub const fn new(policy: Policy) -> Self {
        Self { policy, capacity_bytes: 1 << 20, max_age_ns: None, mode: 0o600 }
    }
}

/// Publisher of one topic.
pub trait Publisher: Send {
    /// Publishes one message. After an error the message is not published and the caller keeps it, except after
    /// [`PublishError::Unknown`], where the message may be published now or later.
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError>;

    /// Publishes messages that share a stamp, as cheaply as the transport can; an error states the fate of each. They
    /// become visible at once under [`Capabilities::whole_batches`].
    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        for (done, payload) in payloads.iter().enumerate() {
            self.publish(stamp, kind, payload).map_err(|error| BatchError::failed_at(done, error))?;
        }
        Ok(())
    }

    /// Publishes a message of another bus. On a broker the message keeps its id, so that subscribers detect its
    /// duplicates and gaps as at the source; a log has no place for an id. Errors are those of
    /// [`publish`](Self::publish).
    fn publish_with_id(&mut self, _id: MessageId, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    /// Publishes a gap that occurred upstream: each subscriber gets [`SubscriptionEvent::Gap`].
    fn publish_gap(&mut self, stamp: u64, gap: Gap) -> Result<(), PublishError> {
        self.publish(stamp, GAP_KIND, &gap.encode())
    }

    /// Resolves the messages that the last call left in doubt, and resends them if need be as the same messages; the
    /// next call that publishes gives them up. Indexes in the error count only messages in doubt.
    fn resend(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    /// Signals that there is nothing to publish now; a spinning caller repeats it. May be used for warm-up.
    fn idle(&mut self) {}

    /// Returns the number of reconnects; `None` if they are not counted.
    fn reconnects(&self) -> Option<u64> {
        None
    }
}

/// Subscriber of one topic.
pub trait Subscriber: Send {
    /// Passes up to `limit` available events to the handler and returns their number. Never waits.
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError>;

    /// Lends the next message in place, for as long as it is held, or returns the loss before it. Never waits. If bytes
    /// do not stay in place ([`Capabilities::lends`]), it returns [`LendError::Unsupported`] and takes nothing out.
    fn lend(&mut self) -> Result<LendOutcome, LendError> {
        Err(LendError::Unsupported("this transport lends no messages, because none stays in place"))
    }

    /// Waits as the subscription was opened to, until an event may be available or `timeout_ns` is over.
    fn wait(&mut self, timeout_ns: u64);

    /// Passes a moment without sleeping. Returns true if the transport used the time for warm-up.
    fn idle(&mut self) -> bool {
        relax();
        false
    }

    /// Sets whether time spent spinning may be used for warm-up, where the transport can; on by default.
    fn set_warm_up(&mut self, _keep: bool) {}

    /// Returns the position after all events passed to the handler. `None` without history, or for an unknown topic.
    fn resume_token(&self) -> Option<ResumeToken> {
        None
    }

    /// Switches to delivery for a bridge: a published loss arrives as its message of [`GAP_KIND`], and messages of a
    /// log get an id, made of the log's identity, its writer's boot and the sequence number, the same for every bridge.
    fn enable_bridge_mode(&mut self);

    /// Returns whether a publisher of this topic is alive.
    fn publisher_state(&self) -> PublisherState;

    /// Returns the number of reconnects, with and without a gap; `None` if they are not counted.
    fn reconnects(&self) -> Option<u64> {
        None
    }

    /// Returns the number of duplicates that were dropped by their sequence numbers; `None` if they are not counted.
    fn duplicates(&self) -> Option<u64> {
        None
    }

    /// Returns the number of late messages that were dropped, reported as missed before; `None` if not counted.
    fn out_of_order(&self) -> Option<u64> {
        None
    }

    /// Returns why nothing arrives now, as a sentence: the connection is being made again. `None` while it stands.
    fn outage(&self) -> Option<String> {
        None
    }
}

/// State of a topic's publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublisherState {
    /// Alive, with its process id; 0 for a process of another container, which has no id here.
    Alive(u32),
    /// Absent: it has ended, or none ever started.
    Absent,
    /// The transport does not report it.
    Unknown,
}
