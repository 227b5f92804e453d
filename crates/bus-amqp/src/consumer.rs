//! The receiving side of one connection, for the thread that polls.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::try_join;
use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
    ChannelFlowOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::constants::REPLY_SUCCESS;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer, ExchangeKind};
use tickpath_clock::{Clock, HostClock};

use crate::connection::AmqpConnection;
use crate::destination::{AmqpDestination, AmqpObject};
use crate::drop_notices::DropNotices;
use crate::error::AmqpServerError;
use crate::incarnation::{Incarnation, IncarnationCheck, LastKnownQueue};
use crate::prefetch::PrefetchWindow;
use crate::server::AmqpServer;
use crate::signal::Signal;

/// Max messages that a puller holds, handed over or sent ahead, before it must acknowledge.
pub const MAX_UNACKNOWLEDGED: u16 = 256;

/// The same for a queue with a delivery limit, so that no delivery is counted before the message is handed over.
const MAX_COUNTED: u16 = 1;

/// Max messages that a subscriber is sent ahead of the last message that it polled.
pub const MAX_PREFETCH: u16 = 128;

/// Max bytes that the broker keeps for a subscriber that is behind; beyond it the broker drops the oldest messages.
pub const MAX_BEHIND_BYTES: usize = 64 << 20;

/// A subscriber acknowledges when it has taken one in this many of the messages sent ahead: rarely, because each
/// acknowledgement costs a packet, and before the broker runs out of credit.
const ACKNOWLEDGE_ONE_IN: usize = 4;
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Empty polls between two looks at the clock.
const POLLS_PER_CHECK: u32 = 256;

/// A consumer on a connection of its own.
pub(crate) struct AmqpConsumer {
    /// A check in progress; the first field, because it must be dropped before the connection.
    check: Option<IncarnationCheck>,
    /// A change of the number of messages sent ahead, in progress.
    prefetch_change: Option<PrefetchChange>,
    /// Before the consumer, so that it is closed first: dropping an open consumer would cancel it by itself.
    link: AmqpConnection,
    channel: Channel,
    consumer: Consumer,
    prefetch: PrefetchWindow,
    /// The notices of dropped messages, for a topic's subscriber.
    notices: Option<DropNotices>,
    /// Up if a message may have come.
    signal: Arc<Signal>,
    waker: Waker,
    /// The tags of the messages that are handed over and not acknowledged, rising.
    held: Vec<u64>,
    topic_check: Option<TopicCheck>,
    /// The number of empty polls since the last look at the clock.
    empty_polls: u32,
    destination: AmqpDestination,
    /// The incarnation of a queue, if it can be identified.
    pub incarnation: Option<Incarnation>,
}

/// A change of consumers: the old one ends, and a new one begins.
struct PrefetchChange {
    pending: Pin<Box<dyn Future<Output = lapin::Result<Consumer>> + Send>>,
    /// The new consumer. Its messages wait until the old one is drained.
    new_consumer: Option<Consumer>,
    /// True once the old consumer is drained, or ended by the broker, as it is when the queue is removed.
    is_drained: bool,
}

/// The data for the checks of a subscription.
struct TopicCheck {
    exchange: ShortString,
    /// The subscriber's own queue.
    queue: ShortString,
    /// The exchange that is deleted with the topic, also if the topic is made anew; none if unknown.
    incarnation: Option<ShortString>,
    clock: HostClock,
    /// The time of the next check, in ticks.
    due: u64,
}

impl AmqpConsumer {
    /// Connects, and subscribes to a topic or consumes a queue. Receives all that is published from now on.
    pub fn open(server: &AmqpServer, destination: &AmqpDestination) -> Result<Self, AmqpServerError> {
        Self::start(server, AmqpConnection::open(server)?, destination)
    }

    /// Opens again after a loss, and finds out whether the queue was gone before it is made anew. `last_queue` is kept
    /// across attempts, because an attempt may make the queue and then fail.
    pub fn reopen(
        server: &AmqpServer,
        destination: &AmqpDestination,
        last_queue: &mut LastKnownQueue,
    ) -> Result<Self, AmqpServerError> {
        let link = AmqpConnection::open(server)?;
        last_queue.is_gone |=
            matches!(destination.object, AmqpObject::Queue(_)) && destination.waiting(&link)?.is_none();
        let consumer = Self::start(server, link, destination)?;
        let before_and_now = last_queue.incarnation.as_ref().zip(consumer.incarnation.as_ref());
        last_queue.is_gone |= before_and_now.is_some_and(|(before, now)| before != now);
        Ok(consumer)
    }

    fn start(
        server: &AmqpServer,
        link: AmqpConnection,
        destination: &AmqpDestination,
    ) -> Result<Self, AmqpServerError> {
        let channel = link.channel()?;
        destination.declare(server, &link, &channel)?;
        let signal = Arc::new(Signal::new());
        let (mut notices, mut topic_check, mut incarnation) = (None, None, None);
        let (queue, prefetch) = match &destination.object {
            AmqpObject::Exchange(exchange) => {
                let dropped = DropNotices::open(&link, &channel, signal.clone())?;
                // Read before the binding, so that a removal after it is reported.
                let found = Incarnation::identify(&link, destination)?;
                let queue = subscribe(&link, &channel, exchange, dropped.arguments())?;
                notices = Some(dropped);
                let found = found.as_ref().map(Incarnation::exchange);
                topic_check = Some(TopicCheck::new(exchange.clone(), queue.clone(), found)?);
                (queue, PrefetchWindow::new(MAX_PREFETCH))
            }
            AmqpObject::Queue(queue) => {
                // Read before consuming, so that a removal after it is reported.
                incarnation = Incarnation::identify(&link, destination)?;
                let max = if destination.max_deliveries.is_some() { MAX_COUNTED } else { MAX_UNACKNOWLEDGED };
                (queue.clone(), PrefetchWindow::new(max))
            }
        };
        let consumer = link.wait_for_answer(consume(channel.clone(), queue, prefetch.current))?;
        Ok(Self {
            check: None,
            prefetch_change: None,
            link,
            channel,
            consumer,
            prefetch,
            notices,
            waker: Waker::from(signal.clone()),
            signal,
            held: Vec::new(),
            topic_check,
            empty_polls: 0,
            destination: destination.clone(),
            incarnation,
        })
    }

    pub fn is_up(&self) -> bool {
        self.link.is_up() && self.channel.status().connected()
    }

    /// Returns the next message. An error means that the connection, topic or queue is lost.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Delivery>, AmqpServerError> {
        // The flag comes first, because the library takes a lock that its own thread needs for each message.
        if !self.signal.lower() {
            self.empty_polls += 1;
            if self.empty_polls >= POLLS_PER_CHECK {
                self.check_topic();
            }
            return Ok(None);
        }
        let mut context = Context::from_waker(&self.waker);
        match self.consumer.poll_next_unpin(&mut context) {
            Poll::Pending => poll_check(&mut self.check, &mut context)?,
            Poll::Ready(Some(Ok(delivery))) => {
                self.signal.restore();
                if self.prefetch_change.is_none()
                    && let Some(now) = self.prefetch.record_length(delivery.data.len())
                {
                    self.start_prefetch_change(now)?;
                }
                return Ok(Some(delivery));
            }
            Poll::Ready(Some(Err(e))) => return Err(e.into()),
            Poll::Ready(None) => match &mut self.prefetch_change {
                Some(change) => change.is_drained = true,
                None => return Err(AmqpServerError::Closed),
            },
        }
        if let Some(consumer) = poll_prefetch_change(&mut self.prefetch_change, &mut context)? {
            self.consumer = consumer;
            self.signal.restore();
            // The queue may have been removed and made anew before this consumer began, or while there was none.
            if let Some(known) = &self.incarnation {
                self.check = Some(known.check(&self.link, &self.destination));
                poll_check(&mut self.check, &mut context)?;
            }
            // An empty result would mean that no message was sent before the last known notice.
            return self.take();
        }
        Ok(None)
    }

    /// Changes the number of messages sent ahead: drains the consumer, and makes another one, without waiting.
    #[cold]
    fn start_prefetch_change(&mut self, ahead: u16) -> Result<(), AmqpServerError> {
        let (channel, tag) = (self.channel.clone(), self.consumer.tag());
        let queue = self.consumer.queue();
        let pending = Box::pin(async move {
            channel.basic_cancel(tag, BasicCancelOptions::default()).await?;
            consume(channel, queue, ahead).await
        });
        self.prefetch_change = Some(PrefetchChange { pending, new_consumer: None, is_drained: false });
        // The first poll sends the cancel to the broker. Nothing is drained yet.
        poll_prefetch_change(&mut self.prefetch_change, &mut Context::from_waker(&self.waker)).map(drop)
    }

    /// Returns true if the broker sends no more before an acknowledgement.
    pub fn is_full(&self) -> bool {
        self.prefetch_change.is_none() && self.held.len() >= usize::from(self.prefetch.current)
    }

    /// Returns the next notice of dropped messages that came before the last message taken.
    #[inline]
    pub fn take_notice(&mut self) -> Result<Option<Delivery>, AmqpServerError> {
        match &mut self.notices {
            Some(notices) => notices.take(&self.channel),
            None => Ok(None),
        }
    }

    /// Sleeps until a message may have come, or until the timeout.
    pub fn wait(&mut self, timeout: Duration) {
        let mut left = timeout;
        while !self.signal.wait(left.min(CHECK_INTERVAL)) {
            self.check_topic();
            left = left.saturating_sub(CHECK_INTERVAL);
            if left.is_zero() {
                return;
            }
        }
    }

    /// Records that a message is handed over.
    pub fn hold(&mut self, tag: u64) {
        self.held.push(tag);
    }

    /// Returns the number of messages that are handed over and not acknowledged.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    pub fn holds(&self, tag: u64) -> bool {
        self.held.binary_search(&tag).is_ok()
    }

    /// Gives a message back. It is redelivered, also if the connection is lost before the broker reads this.
    pub fn give_back(&mut self, tag: u64) -> Result<(), AmqpServerError> {
        self.held.retain(|&held| held != tag);
        let options = BasicNackOptions { multiple: false, requeue: true };
        self.link.wait_for_answer(self.channel.basic_nack(tag, options))
    }

    /// Acknowledges all messages handed over; returns when the broker has read it.
    pub fn acknowledge(&mut self) -> Result<(), AmqpServerError> {
        let Some(&tag) = self.held.last() else { return Ok(()) };
        // Messages that were sent ahead have higher tags.
        let acknowledging = self.channel.basic_ack(tag, BasicAckOptions { multiple: true });
        // The broker answers no acknowledgement. It does answer this no-op, in order.
        let asking = self.channel.channel_flow(ChannelFlowOptions { active: true });
        self.link.wait_for_answer(try_join(acknowledging, asking))?;
        self.held.clear();
        Ok(())
    }

    /// Acknowledges all messages handed over, now and then and without waiting, so that the broker sends more.
    #[inline]
    pub fn acknowledge_if_due(&mut self) {
        if self.held.len() * ACKNOWLEDGE_ONE_IN >= usize::from(self.prefetch.current) {
            self.acknowledge_now();
        }
    }

    /// Removes a foreign message.
    pub fn reject(&mut self, tag: u64) -> Result<(), AmqpServerError> {
        self.link.wait_for_answer(self.channel.basic_reject(tag, BasicRejectOptions { requeue: false }))
    }

    fn acknowledge_now(&mut self) {
        let Some(&tag) = self.held.last() else { return };
        self.held.clear();
        // The first poll passes it to the library, which writes it without further polls.
        let _begun = self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).now_or_never();
    }

    /// Checks once a second that a topic is still the same, and binds the queue again, a no-op while the topic exists.
    /// Fails if the topic was removed; where incarnations are indistinguishable, binds to the new topic.
    #[cold]
    fn check_topic(&mut self) {
        self.empty_polls = 0;
        let Some(topic_check) = &mut self.topic_check else { return };
        if !topic_check.is_due() {
            return;
        }
        if self.check.is_none() {
            self.check = Some(topic_check.check_and_bind(&self.link));
            // The next poll begins the check.
            self.signal.raise();
        }
        // The broker closes the connection of a consumer that holds a message for too long.
        self.acknowledge_now();
    }
}

impl TopicCheck {
    fn new(
        exchange: ShortString,
        queue: ShortString,
        incarnation: Option<ShortString>,
    ) -> Result<Self, AmqpServerError> {
        let clock = HostClock::get().map_err(|e| AmqpServerError::LocalResource(io::Error::other(e)))?;
        let mut check = Self { exchange, queue, incarnation, clock, due: 0 };
        check.is_due();
        Ok(check)
    }

    /// Returns true if a check is due; the next one is due a second later.
    fn is_due(&mut self) -> bool {
        let now = self.clock.ticks();
        let is_due = now >= self.due;
        if is_due {
            self.due = now + self.clock.calibration().ticks_of_ns(CHECK_INTERVAL.as_nanos() as u64);
        }
        is_due
    }

    /// Checks the topic and binds the queue, on a channel of its own: a refusal ends it, and it remembers bindings.
    fn check_and_bind(&self, link: &AmqpConnection) -> IncarnationCheck {
        let (opening, queue, exchange) = (link.begin_channel(), self.queue.clone(), self.exchange.clone());
        let incarnation = self.incarnation.clone();
        Box::pin(async move {
            let channel = opening.await?;
            // The check comes first, so that no message of another topic arrives before the loss is reported.
            if let Some(incarnation) = incarnation {
                let (kind, none) = (ExchangeKind::Fanout, FieldTable::default());
                let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
                channel.exchange_declare(incarnation, kind, options, none).await?;
            }
            let (key, options) = (ShortString::default(), QueueBindOptions::default());
            channel.queue_bind(queue, exchange, key, options, FieldTable::default()).await?;
            channel.close(REPLY_SUCCESS, "OK".into()).await.map_err(AmqpServerError::from)
        })
    }
}

/// Polls a check in progress. An error means that the topic or queue is gone, or is another one.
fn poll_check(check: &mut Option<IncarnationCheck>, context: &mut Context<'_>) -> Result<(), AmqpServerError> {
    let Some(pending) = check else { return Ok(()) };
    let Poll::Ready(checked) = pending.poll_unpin(context) else { return Ok(()) };
    *check = None;
    checked
}

/// Polls a change in progress. Returns the new consumer once, when the old one is drained.
fn poll_prefetch_change(
    change: &mut Option<PrefetchChange>,
    context: &mut Context<'_>,
) -> Result<Option<Consumer>, AmqpServerError> {
    let Some(PrefetchChange { pending, new_consumer, is_drained }) = change else { return Ok(None) };
    if new_consumer.is_none()
        && let Poll::Ready(consumed) = pending.poll_unpin(context)
    {
        *new_consumer = Some(consumed?);
    }
    let consumer = if *is_drained { new_consumer.take() } else { None };
    if consumer.is_some() {
        *change = None;
    }
    Ok(consumer)
}

/// Declares a queue for this connection alone, with these arguments, and binds it to the exchange; returns its name.
fn subscribe(
    link: &AmqpConnection,
    channel: &Channel,
    exchange: &ShortString,
    mut arguments: FieldTable,
) -> Result<ShortString, AmqpServerError> {
    let unnamed = ShortString::default();
    // Not deleted with its consumer, because another consumer may follow.
    let own = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    arguments.insert("x-max-length-bytes".into(), AMQPValue::LongLongInt(MAX_BEHIND_BYTES as i64));
    let queue = link.wait_for_answer(channel.queue_declare(unnamed.clone(), own, arguments))?;
    let name = queue.name().clone();
    let options = QueueBindOptions::default();
    link.wait_for_answer(channel.queue_bind(name.clone(), exchange.clone(), unnamed, options, FieldTable::default()))?;
    Ok(name)
}

/// Starts a consumer with this number of messages sent ahead.
async fn consume(channel: Channel, queue: ShortString, ahead: u16) -> lapin::Result<Consumer> {
    channel.basic_qos(ahead, BasicQosOptions::default()).await?;
    let (tag, options) = (ShortString::default(), BasicConsumeOptions::default());
    channel.basic_consume(queue, tag, options, FieldTable::default()).await
}
