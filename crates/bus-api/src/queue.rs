//! Queues: each message goes to one of the pullers.
//!
//! ```text
//!   Connection ──pusher(queue)──> Pusher ── push(stamp, kind, payload)
//!        └───────puller(queue)──> Puller ── pull(handler) ─> Pulled … acknowledge()
//! ```
//!
//! * **At most once or at least once, by name**: under [`DeliveryGuarantee::AtMostOnce`] a delivered message is gone,
//!   even if its puller dies at that moment. Under [`DeliveryGuarantee::AtLeastOnce`] it is gone once acknowledged; if
//!   its puller dies or is dropped before, another puller gets it, marked as redelivered.
//! * **A pushed message is kept**: when `push` returns, the queue has it, with or without a puller, under
//!   [`QueueCapabilities::keeps_without_puller`].
//! * **Order** is that of pushing under [`QueueCapabilities::ordered`], for messages that are not redelivered,
//!   as long as there is one puller.

use std::fmt;
use std::num::NonZeroU32;

use crate::{BatchError, ConnectError, Message, PublishError, ReceiveError};

/// Fate of a message whose puller dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryGuarantee {
    /// The message is gone.
    AtMostOnce,
    /// Another puller gets the message, marked as redelivered.
    AtLeastOnce,
}

impl DeliveryGuarantee {
    /// All kinds of delivery.
    pub const ALL: [Self; 2] = [Self::AtMostOnce, Self::AtLeastOnce];

    /// Returns the word used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
        }
    }
}

impl fmt::Display for DeliveryGuarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Capabilities of a transport's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCapabilities {
    /// Kinds of delivery available here; the default first.
    pub deliveries: &'static [DeliveryGuarantee],
    /// A single puller gets messages in the order of pushing.
    pub ordered: bool,
    /// A queue has one pusher, and a second one is refused.
    pub single_pusher: bool,
    /// A message is kept until it is pulled, even if there is no puller yet.
    pub keeps_without_puller: bool,
    /// The death of a puller is detected at once; else its messages are redelivered after [`QueueConfig::silence_ns`].
    pub detects_death: bool,
    /// The number of waiting messages can be queried.
    pub counts_waiting: bool,
    /// A message sent again by [`Pusher::resend`] is in the queue once; else perhaps twice, under one message id.
    pub exact_resend: bool,
    /// Deliveries of a message are counted, and one that exceeds [`QueueConfig::max_deliveries`] goes to the
    /// [dead-letter queue](dead_letter_queue); else such a limit is refused.
    pub counts_deliveries: bool,
    /// A single message can be [given back](Puller::give_back); else that is refused.
    pub gives_back: bool,
    /// Max payload that is sure to pass, in bytes.
    pub max_payload: usize,
}

impl QueueCapabilities {
    /// Rejects a limit of deliveries where they are not counted. The kind of delivery is not checked here.
    pub fn check_max_deliveries(&self, transport: &'static str, config: &QueueConfig) -> Result<(), ConnectError> {
        if config.max_deliveries.is_none()
            || self.counts_deliveries && config.delivery == DeliveryGuarantee::AtLeastOnce
        {
            return Ok(());
        }
        let remedy = if self.counts_deliveries {
            "at most once each message is delivered once; use 'at-least-once', or no limit"
        } else {
            "use a queue of redis://…?streams, nats://…?jetstream or amqp://…?durable, or no limit"
        };
        Err(ConnectError::Unsupported { transport, what: "count how often a message was delivered".to_owned(), remedy })
    }
}

/// Returns the name of the dead-letter queue: an ordinary queue, for messages that were delivered too often.
pub fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}.dead")
}

/// Configuration of a queue. Its pushers and pullers must agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Fate of a message whose puller dies.
    pub delivery: DeliveryGuarantee,
    /// Approximate capacity in bytes, where the queue has a bound; the transport rounds.
    pub capacity_bytes: usize,
    /// Nanoseconds without a sign of life after which a puller's unacknowledged messages are redelivered, where the
    /// transport cannot detect its death. A puller that is merely slow loses them too.
    pub silence_ns: u64,
    /// Kind given to messages of other programs, which have no header and get no stamp. If none, a puller refuses a
    /// queue that holds such messages, or skips them: its adapter documents which.
    pub foreign: Option<u8>,
    /// At least once: max deliveries of a message that is never acknowledged; it then goes to the [dead-letter
    /// queue](dead_letter_queue), once and unchanged. If none, it is redelivered for ever.
    pub max_deliveries: Option<NonZeroU32>,
    /// Permissions of the queue's files, where it is made of files.
    pub mode: u32,
}

impl QueueConfig {
    /// Returns the configuration of a queue of 16 MiB, for its owner only, whose pullers may be silent for 30 s.
    pub const fn new(delivery: DeliveryGuarantee) -> Self {
        Self {
            delivery,
            capacity_bytes: 16 << 20,
            silence_ns: 30_000_000_000,
            foreign: None,
            max_deliveries: None,
            mode: 0o600,
        }
    }
}

/// A message as a puller receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulledMessage<'a> {
    /// The message.
    pub message: Message<'a>,
    /// A puller may have received it before.
    pub redelivered: bool,
    /// Number of deliveries, this one included, where they are counted.
    pub deliveries: Option<u32>,
    /// Id of the message for [`Puller::give_back`]; zero where no message can be given back.
    pub tag: u64,
}

impl<'a> PulledMessage<'a> {
    /// Returns a message of a queue that counts no deliveries and takes no message back.
    pub fn without_tag(message: Message<'a>, redelivered: bool) -> Self {
        Self { message, redelivered, deliveries: None, tag: 0 }
    }
}

/// Pusher of one queue.
pub trait Pusher: Send {
    /// Pushes one message and returns when the queue has it. After an error nothing of it is pushed, except after
    /// [`PublishError::Unknown`], where it may be pushed now or later.
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError>;

    /// Pushes messages that share a stamp, as cheaply as the transport can. An error states the fate of each.
    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        for (done, payload) in payloads.iter().enumerate() {
            self.push(stamp, kind, payload).map_err(|error| BatchError::failed_at(done, error))?;
        }
        Ok(())
    }

    /// Resolves messages in doubt as [`Publisher::resend`](crate::Publisher::resend) does; exact under
    /// [`QueueCapabilities::exact_resend`].
    fn resend(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    /// Returns the number of reconnects; `None` if they are not counted.
    fn reconnects(&self) -> Option<u64> {
        None
    }
}

/// Puller of one queue.
pub trait Puller: Send {
    /// Passes up to `limit` available messages to the handler and returns their number; never waits for one. A
    /// transport may bound the number of unacknowledged messages, and fails beyond it with a clear error.
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError>;

    /// Acknowledges every message passed to the handler so far, so that none is redelivered;
    /// [`ReceiveError::NotAcknowledged`] reports the exceptions. Does nothing under at most once.
    fn acknowledge(&mut self) -> Result<(), ReceiveError>;

    /// Gives one unacknowledged message back at once: it is redelivered, marked, to any puller, this one too, and a
    /// later [`acknowledge`](Self::acknowledge) does not cover it; other messages are unaffected. Fails where
    /// [`QueueCapabilities::gives_back`] is false, or if this puller does not hold the message any more.
    fn give_back(&mut self, _tag: u64) -> Result<(), ReceiveError> {
        Err(ReceiveError::Other("this queue takes no single message back; drop its puller to give back all".into()))
    }

    /// Waits as the puller was opened to, until a message may be available or `timeout_ns` is over.
    fn wait(&mut self, timeout_ns: u64);

    /// Returns the number of reconnects; `None` if they are not counted.
    fn reconnects(&self) -> Option<u64> {
        None
    }

    /// Returns why nothing arrives now, as [`Subscriber::outage`](crate::Subscriber::outage) does.
    fn outage(&self) -> Option<String> {
        None
    }
}
