//! Topics: each subscriber sees what is published.

use std::fmt;

use tickpath_clock::relax;

use crate::error::{BatchError, ConnectError, LendError, PublishError, ReceiveError};
use crate::gap::{GAP_KIND, Gap};
use crate::lent::{Lending, Lent};
use crate::origin::Origin;
use crate::token::ResumeToken;

/// Where a subscription begins.
#[allow(clippy::large_enum_variant, reason = "one is made for each subscription, and none is kept")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next message that is published.
    Now,
    /// With the oldest that the transport still has.
    Oldest,
    /// With this sequence number; what is gone already is told as a gap.
    Sequence(u64),
    /// Behind what the subscriber was handed that gave this token; what is gone since is told as a gap. Where the topic is not
    /// the same any more, that is told too, and it begins with the oldest message that can be new.
    After(ResumeToken),
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
    /// Where it comes from, on a broker; none in a log of this host, whose clock the stamp is of.
    pub origin: Option<Origin>,
}

impl Message<'_> {
    /// Whether the stamp is of the clock of this host: of another host's, and of one before its last boot, it tells no time
    /// here.
    pub fn is_of_clock(&self, clock: u64) -> bool {
        self.origin.is_none_or(|origin| origin.clock == clock)
    }
}

impl<'a> From<&'a Lent> for Message<'a> {
    fn from(lent: &'a Lent) -> Self {
        let Lent { sequence, stamp, kind, .. } = *lent;
        Self { sequence, stamp, kind, payload: lent.payload(), origin: None }
    }
}

/// What another program published on a topic, without [our header](crate::wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The topic's count of messages, from 0, where the transport keeps one.
    pub sequence: Option<u64>,
    /// Its bytes; of an entry of a Redis stream, its fields as an object in JSON.
    pub bytes: &'a [u8],
    /// Details beside them, as an object in JSON, if anything did: of Kafka `key`, `headers` and `tombstone`, of NATS and
    /// RabbitMQ `headers`. [`details`](crate::details) says how.
    pub details: Option<&'a str>,
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

impl<'a> Event<'a> {
    /// What a message is to a subscriber: itself, or the loss that it tells of.
    #[inline]
    pub fn of(message: Message<'a>) -> Self {
        if message.kind == GAP_KIND
            && let Some(gap) = Gap::read(message.kind, message.payload)
        {
            return Self::Gap(gap);
        }
        Self::Message(message)
    }
}

/// What a transport can do. What it cannot do it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages have sequence numbers, and losses are counted exactly.
    pub sequences: bool,
    /// A subscription can start at the oldest message, where there are sequence numbers at one of them, and behind a
    /// [token](Subscriber::token).
    pub history: bool,
    /// Where the policy is [`Policy::Overwrite`], messages go when they are older than [`TopicConfig::max_age_ns`].
    pub max_age: bool,
    /// A topic has one publisher, and a second one is refused.
    pub single_publisher: bool,
    /// A subscriber can tell whether somebody publishes.
    pub publisher_liveness: bool,
    /// A batch is visible at once: who sees its first message finds all. It holds for batches that take no more than a
    /// sixteenth of their topic, where a message takes 16 bytes more than it has, rounded up to 64.
    pub whole_batches: bool,
    /// The full policies that exist here; the usual one first.
    pub policies: &'static [Policy],
    /// Those whose messages are [lent](Subscriber::lend) without a copy.
    pub lends: &'static [Policy],
    /// The longest payload that is sure to pass, in bytes, with the default sizes.
    pub max_payload: usize,
}

impl Capabilities {
    /// Refuses the age of a configuration where there is none.
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

/// How a publisher opens its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicConfig {
    /// What a full topic does.
    pub policy: Policy,
    /// Bytes that the topic holds before it is full, about; the transport rounds.
    pub capacity_bytes: usize,
    /// With [`Policy::Overwrite`], messages go also when they are older than that, where [`Capabilities::max_age`] says so;
    /// the transport rounds up.
    pub max_age_ns: Option<u64>,
    /// Permissions of what the topic is made of, where it is made of files.
    pub mode: u32,
}

impl TopicConfig {
    /// A topic of a mebibyte, which fits a core's second-level cache, for its owner only.
    pub const fn new(policy: Policy) -> Self {
        Self { policy, capacity_bytes: 1 << 20, max_age_ns: None, mode: 0o600 }
    }
}

/// Publishes to one topic.
pub trait Publisher: Send {
    /// Publishes one message. On an error nothing of it is published, and it is still the caller's; but for
    /// [`PublishError::Unknown`], behind which it may be published, or be so later.
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError>;

    /// Publishes messages that share a stamp, as cheaply as the transport can. An error says what became of each.
    /// Where [`Capabilities::whole_batches`] says so, they are visible at once.
    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        for (done, payload) in payloads.iter().enumerate() {
            self.publish(stamp, kind, payload).map_err(|error| BatchError::at(done, error))?;
        }
        Ok(())
    }

    /// Publishes a message that comes from elsewhere, as what it is there: on a broker it keeps its origin, so that of two
    /// copies, or of one that is missing, each subscriber learns as if it had listened there. A log has no place for an
    /// origin. An error is as of [`publish`](Self::publish).
    fn carry(&mut self, _origin: Origin, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    /// Publishes that messages were lost on their way here: each subscriber gets [`Event::Gap`].
    fn publish_gap(&mut self, stamp: u64, gap: Gap) -> Result<(), PublishError> {
        self.publish(stamp, GAP_KIND, &gap.record())
    }

    /// Finds out what has become of what the last call left unknown, and sends it again if need be, as the same messages:
    /// each subscriber gets them once. It is for that moment: the next call that publishes gives them up. In the error,
    /// messages are counted among those that were unknown.
    fn resend(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    /// Says that there is nothing to publish now, again and again while the caller spins until there is. A transport may
    /// use the time to keep the next message's way warm; nobody sees anything of it.
    fn idle(&mut self) {}

    /// How often its connection was lost and made again; none where nobody knows.
    fn reconnects(&self) -> Option<u64> {
        None
    }
}

/// Receives one topic.
pub trait Subscriber: Send {
    /// Hands over up to `limit` events that are there; gives how many. Never waits.
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError>;

    /// The next message where it lies, to be read for as long as it is held, or the loss before it. Never waits. Where its
    /// bytes do not stay there ([`Capabilities::lends`]) it is [`LendError::NotHere`], and nothing was taken out.
    fn lend(&mut self) -> Result<Lending, LendError> {
        Err(LendError::NotHere("this transport lends no messages, for none of them stays where it arrives"))
    }

    /// Passes the time as the subscription was opened to: until something may be there, or, where it sleeps, until
    /// `timeout_ns` is over. The caller polls again.
    fn wait(&mut self, timeout_ns: u64);

    /// Passes a moment awake, however the subscription was opened to wait. A transport may use it to keep the next message's
    /// way warm; true if it has taken its time for that.
    fn idle(&mut self) -> bool {
        relax();
        false
    }

    /// Whether the time that is passed by spinning may be used to keep the next message's way warm, where the transport can;
    /// it is, unless this says no.
    fn keep_warm(&mut self, _keep: bool) {}

    /// Where it stands: behind all that was handed over, gaps too. None where there is no history to go on in, or as long
    /// as nothing is known of the topic yet.
    fn token(&self) -> Option<ResumeToken> {
        None
    }

    /// From now on messages are handed over for who carries them on. The news of a loss comes as the message that it is, of
    /// [`GAP_KIND`]. A message of a log has an origin, too, made of what tells that log and its writer's boot from any other,
    /// and of its sequence number: who carries it again carries the same.
    fn carry_on(&mut self);

    /// Whether somebody publishes this topic now.
    fn publisher(&self) -> PublisherState;

    /// How often its connection was lost and made again, also where that was no gap, because nothing can have been
    /// missed; none where nobody knows.
    fn reconnects(&self) -> Option<u64> {
        None
    }

    /// How many messages came again, by the numbers of their publishers, and were not handed over; none where nobody counts.
    fn duplicates(&self) -> Option<u64> {
        None
    }

    /// How many messages came behind a later one of their publisher, and were not handed over, for they had been told as
    /// missed; none where nobody counts.
    fn late(&self) -> Option<u64> {
        None
    }

    /// Why nothing comes now, in a sentence: its connection is lost, and is being made again. None while it stands.
    fn outage(&self) -> Option<String> {
        None
    }
}

/// Whether somebody publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublisherState {
    /// Yes, this process; 0 is one in another container, which has no number here.
    Alive(u32),
    /// No: it has ended, or none ever came.
    Absent,
    /// The transport cannot know.
    Unknown,
}
