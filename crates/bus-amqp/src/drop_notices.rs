//! Notices of the messages that the broker drops from a subscriber's own queue, which it would else not report.
//!
//! ```text
//!   exchange 'ticks' ──> the subscriber's queue ─────────────────> subscriber      up to so many bytes
//!                             └ dropped ──> the queue of notices ─> subscriber     one waits, and one is sent
//! ```
//! Both come on one channel, which numbers what it sends: an item with a higher tag than a notice was sent after it.
//!
//! * **No loss is without a notice.** At most one notice is unacknowledged and one waits, which only a newer notice
//!   replaces (`drop-head`). So behind every dropped message a notice is sent: at once, or when the one before it is
//!   acknowledged. Nothing else removes a notice: emptying their queue when a notice has come, to have one notice per
//!   loss, would remove that of another loss, behind messages sent meanwhile.
//! * **It comes before what follows the loss.** Messages are dropped while the subscriber has no credit; what follows
//!   is sent when it acknowledges some. It acknowledges a notice before any message that it takes afterwards, so that
//!   the next notice is sent first. But the two queues are two processes of the broker: where both send in the same
//!   instant, a notice can come behind a few of the messages, and the loss is reported late, or once more.
//! * **There are few.** One notice comes per round trip, however many messages are dropped, and notices with no message
//!   between them are one loss (see `losses`). A loss of many messages has two notices, for its first and its last
//!   message; it is reported twice where a message slips in between.
//! * **The newest notice waits**, not the oldest, as with `reject-publish`: where the publisher's sequence numbers show
//!   the newest loss, they show those before it, too, but not the other way round.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer};

use crate::connection::AmqpConnection;
use crate::error::AmqpServerError;
use crate::signal::Signal;

/// The queue of notices, and its consumer.
pub(crate) struct DropNotices {
    queue: ShortString,
    consumer: Consumer,
    flags: Arc<NoticeWaker>,
    waker: Waker,
}

/// The waker of the notices: raises a flag of its own, and the one that wakes the subscriber.
struct NoticeWaker {
    notice_signal: Signal,
    subscriber_signal: Arc<Signal>,
}

impl Wake for NoticeWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notice_signal.raise();
        self.subscriber_signal.raise();
    }
}

impl DropNotices {
    pub fn open(link: &AmqpConnection, channel: &Channel, woken: Arc<Signal>) -> Result<Self, AmqpServerError> {
        let own = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(1));
        let declared = link.wait_for_answer(channel.queue_declare(ShortString::default(), own, arguments))?;
        let queue = declared.name().clone();
        link.wait_for_answer(channel.basic_qos(1, BasicQosOptions::default()))?;
        let (tag, options) = (ShortString::default(), BasicConsumeOptions::default());
        let consumer =
            link.wait_for_answer(channel.basic_consume(queue.clone(), tag, options, FieldTable::default()))?;
        let bell = Arc::new(NoticeWaker { notice_signal: Signal::new(), subscriber_signal: woken });
        let waker = Waker::from(bell.clone());
        Ok(Self { queue, consumer, flags: bell, waker })
    }

    /// Returns the arguments by which a queue sends here what it drops. Both reasons that apply to a subscriber's queue
    /// are losses: it holds too much, or a message has expired.
    pub fn arguments(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        for (argument, value) in [("x-dead-letter-exchange", ""), ("x-dead-letter-routing-key", self.queue.as_str())] {
            arguments.insert(argument.into(), AMQPValue::LongString(value.into()));
        }
        arguments
    }

    /// Acknowledges and returns the next notice, which is one of the dropped messages. To be called until there is
    /// none, after each message taken and before that message is acknowledged: its acknowledgement covers all that was
    /// sent before it, and would let what follows a loss come before the notice.
    #[inline]
    pub fn take(&mut self, channel: &Channel) -> Result<Option<Delivery>, AmqpServerError> {
        if !self.flags.notice_signal.lower() {
            return Ok(None);
        }
        match self.consumer.poll_next_unpin(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(Ok(notice))) => {
                self.flags.notice_signal.restore();
                // Does not wait: the first poll passes it to the library, which writes it without further polls.
                let _begun = channel.basic_ack(notice.delivery_tag, BasicAckOptions::default()).now_or_never();
                Ok(Some(notice))
            }
            Poll::Ready(Some(Err(e))) => Err(e.into()),
            Poll::Ready(None) => Err(AmqpServerError::Closed),
        }
    }
}
