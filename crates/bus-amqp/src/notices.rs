//! What the broker says when it drops messages from a subscriber's own queue, of which it would else say nothing.
//!
//! ```text
//!   exchange 'ticks' ──> the subscriber's queue ─────────────────> subscriber      up to so many bytes
//!                             └ dropped ──> the queue of notices ─> subscriber     one waits, and one is sent
//! ```
//! Both come on one channel, which numbers what it sends: what has a higher tag than a notice was sent after it.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions, QueuePurgeOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer};

use crate::error::ServerError;
use crate::link::Link;
use crate::signal::Signal;

/// The queue of notices, and what comes from there.
pub(crate) struct Notices {
    queue: ShortString,
    consumer: Consumer,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Raised when a notice has come, with the flag by which the subscriber is woken.
struct Bell {
    own: Signal,
    woken: Arc<Signal>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.own.raise();
        self.woken.raise();
    }
}

impl Notices {
    /// Makes a queue for them, for this connection alone.
    pub fn open(link: &Link, channel: &Channel, woken: Arc<Signal>) -> Result<Self, ServerError> {
        let own = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(1));
        let declared = link.answer(channel.queue_declare(ShortString::default(), own, arguments))?;
        let queue = declared.name().clone();
        link.answer(channel.basic_qos(1, BasicQosOptions::default()))?;
        let (tag, options) = (ShortString::default(), BasicConsumeOptions::default());
        let consumer = link.answer(channel.basic_consume(queue.clone(), tag, options, FieldTable::default()))?;
        let bell = Arc::new(Bell { own: Signal::new(), woken });
        let waker = Waker::from(bell.clone());
        Ok(Self { queue, consumer, bell, waker })
    }

    /// With these arguments a queue sends there what it drops. Of all reasons that a broker has to drop a message, two
    /// can be those of a subscriber's queue, and both are losses: it holds too much, or the message was to come soon or
    /// never.
    pub fn arguments(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        for (argument, value) in [("x-dead-letter-exchange", ""), ("x-dead-letter-routing-key", self.queue.as_str())] {
            arguments.insert(argument.into(), AMQPValue::LongString(value.into()));
        }
        arguments
    }

    /// The next notice, which is one of the messages that were dropped. To be asked until there is none, after each
    /// message that is taken, and before that is acknowledged: else a later loss would be taken for the same one.
    #[inline]
    pub fn take(&mut self, channel: &Channel) -> Result<Option<Delivery>, ServerError> {
        if !self.bell.own.lower() {
            return Ok(None);
        }
        match self.consumer.poll_next_unpin(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(Ok(notice))) => {
                self.bell.own.restore();
                self.let_others_come(channel, &notice);
                Ok(Some(notice))
            }
            Poll::Ready(Some(Err(e))) => Err(e.into()),
            Poll::Ready(None) => Err(ServerError::Closed),
        }
    }

    /// The notice that waits behind this one tells of the same loss, as what follows it is not sent before something is
    /// acknowledged. Nobody waits for the answers.
    fn let_others_come(&self, channel: &Channel, notice: &Delivery) {
        // The first look at each leaves it to the library, which writes it whether or not anybody looks again.
        let _begun = channel.queue_purge(self.queue.clone(), QueuePurgeOptions::default()).now_or_never();
        let _begun = channel.basic_ack(notice.delivery_tag, BasicAckOptions::default()).now_or_never();
    }
}
