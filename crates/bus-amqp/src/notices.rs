//! What the broker says when it drops messages from a subscriber's own queue, of which it would else say nothing.
//!
//! ```text
//!   exchange 'ticks' ──> the subscriber's queue ─────────────────> subscriber      up to so many bytes
//!                             └ dropped ──> the queue of notices ─> subscriber     one waits, and one is sent
//! ```
//! Both come on one channel, which numbers what it sends: what has a higher tag than a notice was sent after it.
//!
//! * **No loss is without a notice.** One at most is sent and not acknowledged, one at most waits, and that one gives way
//!   to a newer one alone (`drop-head`). So behind whatever is dropped a notice is sent: at once, or as soon as the one
//!   before it is acknowledged. Nothing else takes a notice away. Emptying their queue when one has come, to have one for
//!   each loss, would take away that of another loss, behind what was sent meanwhile.
//! * **It comes before what follows the loss.** Messages are dropped while the subscriber may be sent no more; what
//!   follows is sent when it acknowledges some. It acknowledges a notice before any message that it takes from then on,
//!   so that the next one is on its way first. But the two queues are two processes of the broker: where both send in
//!   the same instant, a notice can come behind a few of the messages. The loss is then told late, or once more.
//! * **There are few.** One comes a round trip, however many messages are dropped, and those with no message between
//!   them are one loss (see `losses`). A loss of many messages has two, its first and its last one; it is told twice
//!   where a message slips in between.
//! * **The newest one waits**, and not the oldest, as with `reject-publish`: what the publisher's numbers tell of the
//!   newest they tell of those before it, too, but not the other way round.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
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

    /// The next notice, which is one of the messages that were dropped; acknowledges it. To be asked until there is none,
    /// after each message that is taken, and before that is acknowledged: that does away with all that was sent before
    /// it, and would let come what follows a loss before its notice.
    #[inline]
    pub fn take(&mut self, channel: &Channel) -> Result<Option<Delivery>, ServerError> {
        if !self.bell.own.lower() {
            return Ok(None);
        }
        match self.consumer.poll_next_unpin(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(Ok(notice))) => {
                self.bell.own.restore();
                // Nobody waits for it: the first look leaves it to the library, which writes it whether or not anybody
                // looks again.
                let _begun = channel.basic_ack(notice.delivery_tag, BasicAckOptions::default()).now_or_never();
                Ok(Some(notice))
            }
            Poll::Ready(Some(Err(e))) => Err(e.into()),
            Poll::Ready(None) => Err(ServerError::Closed),
        }
    }
}
