//! What comes in over one connection, for the thread that polls.

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

use crate::ahead::Ahead;
use crate::error::ServerError;
use crate::incarnation::{Check, Incarnation, Memory};
use crate::link::Link;
use crate::notices::Notices;
use crate::place::{Place, What};
use crate::server::Server;
use crate::signal::Signal;

/// The most messages that a puller holds, handed over or sent ahead, before it must acknowledge.
pub const MAX_UNACKNOWLEDGED: u16 = 256;

/// The same where a message is given up after so many deliveries: what is sent ahead counts as delivered, and is not to
/// be given up before anybody was handed it.
const MAX_COUNTED: u16 = 1;

/// The most messages that a subscriber is sent ahead of what it has looked at.
pub const MAX_AHEAD: u16 = 128;

/// The most bytes that the broker keeps for a subscriber that is behind; of more, it drops the oldest.
pub const MAX_BEHIND_BYTES: usize = 64 << 20;

/// A subscriber tells the broker that it has messages when they are one in so many of those that are sent ahead:
/// rarely, as each time costs a packet, and before they run out.
const ONE_IN: usize = 4;

/// How often a subscription is looked after.
const CARE_EVERY: Duration = Duration::from_secs(1);

/// Empty looks between two at the clock.
const LOOKS: u32 = 256;

/// A consumer on a connection of its own.
pub(crate) struct Intake {
    /// First of all, as it holds the connection.
    check: Option<Check>,
    /// Consuming with more or fewer messages ahead.
    changing: Option<Changing>,
    /// Before the consumer, so that it is closed before that is dropped, which would cancel it by itself.
    link: Link,
    channel: Channel,
    consumer: Consumer,
    ahead: Ahead,
    /// Of a topic's subscriber.
    notices: Option<Notices>,
    /// Up if something may have come.
    signal: Arc<Signal>,
    waker: Waker,
    /// The tags of the messages that are handed over and not acknowledged, rising.
    held: Vec<u64>,
    /// Of a topic's subscriber.
    care: Option<Care>,
    /// Empty looks.
    looks: u32,
    /// What is received from.
    place: Place,
    /// Of a queue, as far as it can be told.
    incarnation: Option<Incarnation>,
}

/// Ending a consumer, and making another one.
struct Changing {
    begun: Pin<Box<dyn Future<Output = lapin::Result<Consumer>> + Send>>,
    /// The other one. What it is sent waits until the old one has given all.
    made: Option<Consumer>,
    /// The old one has given all that it was sent; or the broker has ended it, as it does when somebody removes the queue.
    is_drained: bool,
}

/// What a subscription is looked after by.
struct Care {
    exchange: ShortString,
    /// The subscriber's own queue.
    queue: ShortString,
    /// The exchange that is gone when the topic was removed, also if somebody has made that anew; none if it cannot be
    /// told.
    incarnation: Option<ShortString>,
    clock: HostClock,
    /// When the next look is due, in ticks.
    due: u64,
}

impl Intake {
    /// Connects, and subscribes to a topic or consumes a queue. What is published from now on comes.
    pub fn open(server: &Server, place: &Place) -> Result<Self, ServerError> {
        Self::start(server, Link::open(server)?, place)
    }

    /// The same after a loss: finds out whether a queue is still there, and is the same, before it is made anew. What
    /// is remembered is kept from one attempt to the next, as the first may make it and fail then.
    pub fn reopen(server: &Server, place: &Place, memory: &mut Memory) -> Result<Self, ServerError> {
        let link = Link::open(server)?;
        memory.is_gone |= matches!(place.what(), What::Queue(_)) && place.waiting(&link)?.is_none();
        let intake = Self::start(server, link, place)?;
        let before_and_now = memory.incarnation.as_ref().zip(intake.incarnation());
        memory.is_gone |= before_and_now.is_some_and(|(before, now)| before != now);
        Ok(intake)
    }

    fn start(server: &Server, link: Link, place: &Place) -> Result<Self, ServerError> {
        let channel = link.channel()?;
        place.declare(server, &link, &channel)?;
        let signal = Arc::new(Signal::new());
        let (mut notices, mut care, mut incarnation) = (None, None, None);
        let (queue, ahead) = match place.what() {
            What::Exchange(exchange) => {
                let dropped = Notices::open(&link, &channel, signal.clone())?;
                // Before it is bound to, whose end is told: it is this one, or one before it.
                let found = Incarnation::of(&link, place)?;
                let queue = subscribe(&link, &channel, exchange, dropped.arguments())?;
                notices = Some(dropped);
                let found = found.as_ref().map(Incarnation::exchange);
                care = Some(Care::new(exchange.clone(), queue.clone(), found)?);
                (queue, Ahead::new(MAX_AHEAD))
            }
            What::Queue(queue) => {
                // Before it is consumed, whose end is told: it is this one, or one before it.
                incarnation = Incarnation::of(&link, place)?;
                (queue.clone(), Ahead::new(if place.gives_up() { MAX_COUNTED } else { MAX_UNACKNOWLEDGED }))
            }
        };
        let consumer = link.answer(consume(channel.clone(), queue, ahead.now()))?;
        let waker = Waker::from(signal.clone());
        Ok(Self {
            check: None,
            changing: None,
            link,
            channel,
            consumer,
            ahead,
            notices,
            signal,
            waker,
            held: Vec::new(),
            care,
            looks: 0,
            place: place.clone(),
            incarnation,
        })
    }

    /// Which queue it is, as far as that can be told.
    pub fn incarnation(&self) -> Option<&Incarnation> {
        self.incarnation.as_ref()
    }

    /// Whether the connection stands, as far as is known.
    pub fn is_up(&self) -> bool {
        self.link.is_up() && self.channel.status().connected()
    }

    /// The next message that is here. An error means that the connection or what was consumed is lost.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Delivery>, ServerError> {
        // The library looks under a lock that its own thread needs for each message.
        if !self.signal.lower() {
            self.looks += 1;
            if self.looks >= LOOKS {
                self.look_after();
            }
            return Ok(None);
        }
        let mut context = Context::from_waker(&self.waker);
        match self.consumer.poll_next_unpin(&mut context) {
            Poll::Pending => check_on(&mut self.check, &mut context)?,
            Poll::Ready(Some(Ok(delivery))) => {
                self.signal.restore();
                if self.changing.is_none()
                    && let Some(now) = self.ahead.saw(delivery.data.len())
                {
                    self.change(now)?;
                }
                return Ok(Some(delivery));
            }
            Poll::Ready(Some(Err(e))) => return Err(e.into()),
            Poll::Ready(None) => match &mut self.changing {
                Some(changing) => changing.is_drained = true,
                None => return Err(ServerError::Closed),
            },
        }
        if let Some(consumer) = change_on(&mut self.changing, &mut context)? {
            self.consumer = consumer;
            self.signal.restore();
            // Before it began, or while nobody consumed, somebody may have removed the queue and made it anew.
            if let Some(known) = &self.incarnation {
                self.check = Some(known.check(&self.link, &self.place));
                check_on(&mut self.check, &mut context)?;
            }
            // Who is told that nothing is here takes it that nothing was sent before what he knows of.
            return self.take();
        }
        Ok(None)
    }

    /// From now on so many messages are sent ahead: ends the consumer, which still gives what it was sent, and makes
    /// another one, without waiting for either.
    #[cold]
    fn change(&mut self, ahead: u16) -> Result<(), ServerError> {
        let (channel, tag) = (self.channel.clone(), self.consumer.tag());
        let queue = self.consumer.queue();
        let begun = Box::pin(async move {
            channel.basic_cancel(tag, BasicCancelOptions::default()).await?;
            consume(channel, queue, ahead).await
        });
        self.changing = Some(Changing { begun, made: None, is_drained: false });
        // The first look says to the broker that it is to end. Nothing is drained yet.
        change_on(&mut self.changing, &mut Context::from_waker(&self.waker)).map(drop)
    }

    /// Whether the broker sends nothing more before something is acknowledged.
    pub fn is_full(&self) -> bool {
        self.changing.is_none() && self.held.len() >= usize::from(self.ahead.now())
    }

    /// The next notice of what was dropped, of those that came before the message that was taken last.
    #[inline]
    pub fn take_notice(&mut self) -> Result<Option<Delivery>, ServerError> {
        match &mut self.notices {
            Some(notices) => notices.take(&self.channel),
            None => Ok(None),
        }
    }

    /// Sleeps until something may be here, or for so long.
    pub fn wait(&mut self, timeout: Duration) {
        let mut left = timeout;
        while !self.signal.wait(left.min(CARE_EVERY)) {
            self.look_after();
            left = left.saturating_sub(CARE_EVERY);
            if left.is_zero() {
                return;
            }
        }
    }

    /// Remembers that a message is handed over.
    pub fn hold(&mut self, tag: u64) {
        self.held.push(tag);
    }

    /// How many messages are handed over and not acknowledged.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether this one is.
    pub fn holds(&self, tag: u64) -> bool {
        self.held.binary_search(&tag).is_ok()
    }

    /// Gives one of them back: it comes again, also if the connection is lost before the broker hears of it.
    pub fn give_back(&mut self, tag: u64) -> Result<(), ServerError> {
        self.held.retain(|&held| held != tag);
        let options = BasicNackOptions { multiple: false, requeue: true };
        self.link.answer(self.channel.basic_nack(tag, options))
    }

    /// Acknowledges all that is handed over; returns when the broker has read it.
    pub fn acknowledge(&mut self) -> Result<(), ServerError> {
        let Some(&tag) = self.held.last() else { return Ok(()) };
        // What was sent ahead has higher tags.
        let acknowledging = self.channel.basic_ack(tag, BasicAckOptions { multiple: true });
        // The broker answers no acknowledgement. It does answer this, which changes nothing, and in its turn.
        let asking = self.channel.channel_flow(ChannelFlowOptions { active: true });
        self.link.answer(try_join(acknowledging, asking))?;
        self.held.clear();
        Ok(())
    }

    /// Tells the broker now and then that all that is handed over is here, so that it sends more. Nobody waits for it.
    #[inline]
    pub fn tell(&mut self) {
        if self.held.len() * ONE_IN >= usize::from(self.ahead.now()) {
            self.tell_now();
        }
    }

    /// Removes a message that is none of ours.
    pub fn reject(&mut self, tag: u64) -> Result<(), ServerError> {
        self.link.answer(self.channel.basic_reject(tag, BasicRejectOptions { requeue: false }))
    }

    fn tell_now(&mut self) {
        let Some(&tag) = self.held.last() else { return };
        self.held.clear();
        // The first look at it leaves it to the library, which writes it whether or not anybody looks again.
        let _begun = self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).now_or_never();
    }

    /// Once a second, for a topic's subscriber: asks whether the topic is still the same, and binds its queue again,
    /// which changes nothing as long as the topic is there. If somebody has removed it, this fails; where it cannot be
    /// told from another one, this mends what somebody else made anew.
    #[cold]
    fn look_after(&mut self) {
        self.looks = 0;
        let Some(care) = &mut self.care else { return };
        if !care.is_due() {
            return;
        }
        if self.check.is_none() {
            self.check = Some(care.bind(&self.link));
            // The next look begins it.
            self.signal.raise();
        }
        // The broker gives up who holds a message for too long.
        self.tell_now();
    }
}

impl Care {
    fn new(exchange: ShortString, queue: ShortString, incarnation: Option<ShortString>) -> Result<Self, ServerError> {
        let clock = HostClock::get().map_err(|e| ServerError::Here(io::Error::other(e)))?;
        let mut care = Self { exchange, queue, incarnation, clock, due: 0 };
        care.is_due();
        Ok(care)
    }

    /// Whether it is time; then it is not for another second.
    fn is_due(&mut self) -> bool {
        let now = self.clock.ticks();
        let is_due = now >= self.due;
        if is_due {
            self.due = now + self.clock.calibration().ticks_of_ns(CARE_EVERY.as_nanos() as u64);
        }
        is_due
    }

    /// On a channel of its own: a refusal ends it, and the library remembers each binding of a channel as long as that.
    fn bind(&self, link: &Link) -> Check {
        let (opening, queue, exchange) = (link.channel_later(), self.queue.clone(), self.exchange.clone());
        let incarnation = self.incarnation.clone();
        Box::pin(async move {
            let channel = opening.await?;
            // First, so that nothing comes from another topic before it is told.
            if let Some(incarnation) = incarnation {
                let (kind, none) = (ExchangeKind::Fanout, FieldTable::default());
                let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
                channel.exchange_declare(incarnation, kind, options, none).await?;
            }
            let (key, options) = (ShortString::default(), QueueBindOptions::default());
            channel.queue_bind(queue, exchange, key, options, FieldTable::default()).await?;
            channel.close(REPLY_SUCCESS, "OK".into()).await.map_err(ServerError::from)
        })
    }
}

/// Goes on with a check that has begun. An error means that what was received from is not there, or another one.
fn check_on(check: &mut Option<Check>, context: &mut Context<'_>) -> Result<(), ServerError> {
    let Some(begun) = check else { return Ok(()) };
    let Poll::Ready(checked) = begun.poll_unpin(context) else { return Ok(()) };
    *check = None;
    checked
}

/// Goes on with a change that has begun. Gives the new consumer once, when the old one has given all.
fn change_on(changing: &mut Option<Changing>, context: &mut Context<'_>) -> Result<Option<Consumer>, ServerError> {
    let Some(Changing { begun, made, is_drained }) = changing else { return Ok(None) };
    if made.is_none()
        && let Poll::Ready(consumed) = begun.poll_unpin(context)
    {
        *made = Some(consumed?);
    }
    let consumer = if *is_drained { made.take() } else { None };
    if consumer.is_some() {
        *changing = None;
    }
    Ok(consumer)
}

/// A queue for this connection alone, with these arguments, bound to the exchange; gives its name.
fn subscribe(
    link: &Link,
    channel: &Channel,
    exchange: &ShortString,
    mut arguments: FieldTable,
) -> Result<ShortString, ServerError> {
    let unnamed = ShortString::default();
    // It is not deleted with its consumer, as another one may follow.
    let own = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    arguments.insert("x-max-length-bytes".into(), AMQPValue::LongLongInt(MAX_BEHIND_BYTES as i64));
    let queue = link.answer(channel.queue_declare(unnamed.clone(), own, arguments))?;
    let name = queue.name().clone();
    let options = QueueBindOptions::default();
    link.answer(channel.queue_bind(name.clone(), exchange.clone(), unnamed, options, FieldTable::default()))?;
    Ok(name)
}

/// A consumer that is sent so many messages ahead.
async fn consume(channel: Channel, queue: ShortString, ahead: u16) -> lapin::Result<Consumer> {
    channel.basic_qos(ahead, BasicQosOptions::default()).await?;
    let (tag, options) = (ShortString::default(), BasicConsumeOptions::default());
    channel.basic_consume(queue, tag, options, FieldTable::default()).await
}
