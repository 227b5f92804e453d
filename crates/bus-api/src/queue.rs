//! Queues: each message goes to one of the pullers.
//!
//! ```text
//!   Connection ──pusher(queue)──> Pusher ── push(stamp, kind, payload)
//!        └───────puller(queue)──> Puller ── pull(handler) ─> Pulled … acknowledge()
//! ```
//!
//! * **Once, or at least once, by name**: with [`Delivery::AtMostOnce`] a message that was handed over is gone, also if
//!   its puller dies that moment. With [`Delivery::AtLeastOnce`] it is gone when it was acknowledged; of a puller that
//!   dies first, or is dropped, another one gets it again, marked as redelivered.
//! * **A pushed message is kept**: when `push` returns, the queue has it, whether or not anybody pulls, where
//!   [`QueueCapabilities::keeps_without_puller`] says so.
//! * **Order** is that of pushing where [`QueueCapabilities::ordered`] says so, for messages that are not redelivered,
//!   as long as one puller pulls.

use std::fmt;
use std::num::NonZeroU32;

use crate::{BatchError, ConnectError, Message, PublishError, ReceiveError};

/// What becomes of a message whose puller dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is gone.
    AtMostOnce,
    /// Another puller gets it, marked as redelivered.
    AtLeastOnce,
}

impl Delivery {
    /// Both.
    pub const ALL: [Self; 2] = [Self::AtMostOnce, Self::AtLeastOnce];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a transport's queues can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCapabilities {
    /// The kinds of delivery that exist here; the usual one first.
    pub deliveries: &'static [Delivery],
    /// One puller alone gets messages in the order of pushing.
    pub ordered: bool,
    /// A queue has one pusher, and a second one is refused.
    pub single_pusher: bool,
    /// A message stays until somebody pulls it, also if nobody does yet.
    pub keeps_without_puller: bool,
    /// A puller's death is seen at once; else its messages come again after [`QueueConfig::silence_ns`].
    pub sees_death: bool,
    /// How many messages wait can be asked for.
    pub counts_waiting: bool,
    /// What [`Pusher::resend`] sends again is in the queue once; else it may be there twice, under the same
    /// [`Origin`](crate::Origin).
    pub exact_resend: bool,
    /// How often a message was delivered is known, and one that [`QueueConfig::most_deliveries`] gives up goes to the
    /// [queue of those](dead_letter_queue); else that is refused.
    pub counts_deliveries: bool,
    /// One message can be [given back](Puller::give_back); else that is refused.
    pub gives_back: bool,
    /// The longest payload that is sure to pass, in bytes.
    pub max_payload: usize,
}

impl QueueCapabilities {
    /// Refuses what of a configuration there is not, but for its delivery.
    pub fn check(&self, transport: &'static str, config: &QueueConfig) -> Result<(), ConnectError> {
        if config.most_deliveries.is_none() || self.counts_deliveries && config.delivery == Delivery::AtLeastOnce {
            return Ok(());
        }
        let remedy = match (self.counts_deliveries, config.delivery) {
            (true, _) => "at most once each message is delivered once; use 'at-least-once', or no limit",
            (false, _) => "use a queue of redis://…?streams, nats://…?jetstream or amqp://…?durable, or no limit",
        };
        Err(ConnectError::Unsupported { transport, what: "count how often a message was delivered".to_owned(), remedy })
    }
}

/// Where the messages of a queue go that were delivered too often: another queue, pulled like any.
pub fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}.dead")
}

/// How a queue is opened. Pushers and pullers of one queue must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// What becomes of a message whose puller dies.
    pub delivery: Delivery,
    /// Bytes that the queue holds before it is full, about, where it has a bound; the transport rounds.
    pub capacity_bytes: usize,
    /// Where a transport cannot see that a puller has died: after so long without a sign of life, what it has not
    /// acknowledged comes again. A puller that is merely slow loses it then, too.
    pub silence_ns: u64,
    /// What others pushed, without our header, is handed over as a message of this kind and without a stamp; if none, a
    /// puller refuses a queue that holds such, or skips it: its adapter says which.
    pub foreign: Option<u8>,
    /// At least once: a message that was delivered so often, and never acknowledged, goes to the
    /// [queue of those](dead_letter_queue), once, as it is. None: it comes again for ever.
    pub most_deliveries: Option<NonZeroU32>,
    /// Permissions of what the queue is made of, where it is made of files.
    pub mode: u32,
}

impl QueueConfig {
    /// A queue of 16 MiB, for its owner only, whose pullers may be silent for 30 s.
    pub const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            capacity_bytes: 16 << 20,
            silence_ns: 30_000_000_000,
            foreign: None,
            most_deliveries: None,
            mode: 0o600,
        }
    }
}

/// A message as a puller gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulled<'a> {
    /// The message.
    pub message: Message<'a>,
    /// A puller may have had it already.
    pub redelivered: bool,
    /// How often it was delivered, this time included, where that is counted.
    pub deliveries: Option<u32>,
    /// Names it to this puller, for [`Puller::give_back`]; zero where nothing can be given back.
    pub tag: u64,
}

impl<'a> Pulled<'a> {
    /// Of a queue that counts no deliveries and takes nothing back.
    pub fn plain(message: Message<'a>, redelivered: bool) -> Self {
        Self { message, redelivered, deliveries: None, tag: 0 }
    }
}

/// Pushes to one queue.
pub trait Pusher: Send {
    /// Pushes one message; returns when the queue has it. On an error nothing of it is pushed, but for
    /// [`PublishError::Unknown`], behind which it may be, or be so later.
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError>;

    /// Pushes messages that share a stamp, as cheaply as the transport can: in one pipeline, confirmed together. An
    /// error says what became of each.
    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        for (done, payload) in payloads.iter().enumerate() {
            self.push(stamp, kind, payload).map_err(|error| BatchError::at(done, error))?;
        }
        Ok(())
    }

    /// As [`Publisher::resend`](crate::Publisher::resend): exact where [`QueueCapabilities::exact_resend`] says so.
    fn resend(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    /// How often its connection was lost and made again; none where nobody knows.
    fn reconnects(&self) -> Option<u64> {
        None
    }
}

/// Pulls from one queue.
pub trait Puller: Send {
    /// Takes up to `limit` messages that are there, and hands them over; gives how many. Never waits for one to come. A
    /// transport may bound how many it holds that are not acknowledged, and refuses more in words.
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError>;

    /// Everything that was handed over so far is done with, and never comes again; of what comes again all the same the
    /// error [`ReceiveError::NotAcknowledged`] tells. At most once, it does nothing.
    fn acknowledge(&mut self) -> Result<(), ReceiveError>;

    /// One message that was handed over and is not acknowledged goes back, at once, and comes again, marked, to any puller,
    /// this one too; the others stay as they are, and it is no longer among those that [`acknowledge`](Self::acknowledge)
    /// means. Where [`QueueCapabilities::gives_back`] says no, or the message is nobody's to give any more, that is refused.
    fn give_back(&mut self, _tag: u64) -> Result<(), ReceiveError> {
        Err(ReceiveError::Other("this queue takes no single message back; drop its puller to give back all".into()))
    }

    /// Passes the time as the puller was opened to: until something may be there, or, where it sleeps, until
    /// `timeout_ns` is over. The caller pulls again.
    fn wait(&mut self, timeout_ns: u64);

    /// How often its connection was lost and made again; none where nobody knows.
    fn reconnects(&self) -> Option<u64> {
        None
    }

    /// As [`Subscriber::outage`](crate::Subscriber::outage).
    fn outage(&self) -> Option<String> {
        None
    }
}
