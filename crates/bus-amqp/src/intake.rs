//! What comes in over one connection, for the thread that polls.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::try_join;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions, ChannelFlowOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Consumer};

use crate::error::ServerError;
use crate::link::Link;
use crate::place::Place;
use crate::server::Server;
use crate::signal::Signal;

/// The most messages that a puller holds, handed over or sent ahead, before it must acknowledge.
pub const MAX_UNACKNOWLEDGED: u16 = 1024;

/// A consumer on a connection of its own.
pub(crate) struct Intake {
    /// First, so that it is closed before the consumer is dropped, which would cancel it by itself.
    link: Link,
    channel: Channel,
    consumer: Consumer,
    /// Up if something may have come.
    signal: Arc<Signal>,
    waker: Waker,
    /// The tag of the last message that was handed over and not acknowledged.
    last: Option<u64>,
    /// How many were.
    held: usize,
}

impl Intake {
    /// Connects, and subscribes to a topic or consumes a queue. What is published from now on comes.
    pub fn open(server: &Server, place: &Place) -> Result<Self, ServerError> {
        let link = Link::open(server)?;
        let channel = link.channel()?;
        place.declare(&link, &channel)?;
        let consumer = match place {
            Place::Exchange(exchange) => subscribe(&link, &channel, exchange)?,
            Place::Queue(queue) => consume(&link, &channel, queue)?,
        };
        let signal = Arc::new(Signal::new());
        let waker = Waker::from(signal.clone());
        Ok(Self { link, channel, consumer, signal, waker, last: None, held: 0 })
    }

    /// The next message that is here. An error means that the connection or what was consumed is lost.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Delivery>, ServerError> {
        // The library looks under a lock that its own thread needs for each message.
        if !self.signal.lower() {
            return Ok(None);
        }
        match self.consumer.poll_next_unpin(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(Ok(delivery))) => {
                self.signal.restore();
                Ok(Some(delivery))
            }
            Poll::Ready(Some(Err(e))) => Err(e.into()),
            Poll::Ready(None) => Err(ServerError::Closed),
        }
    }

    /// Sleeps until something may be here, or for so long.
    pub fn wait(&self, timeout: Duration) {
        self.signal.wait(timeout);
    }

    /// Remembers that a message is handed over.
    pub fn hold(&mut self, tag: u64) {
        self.last = Some(tag);
        self.held += 1;
    }

    /// How many messages are handed over and not acknowledged.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Acknowledges all that is handed over; returns when the broker has it.
    pub fn acknowledge(&mut self) -> Result<(), ServerError> {
        let Some(tag) = self.last.take() else { return Ok(()) };
        self.held = 0;
        // What was sent ahead has higher tags.
        let acknowledging = self.channel.basic_ack(tag, BasicAckOptions { multiple: true });
        // The broker answers no acknowledgement. It does answer this, which changes nothing, and in its turn.
        let asking = self.channel.channel_flow(ChannelFlowOptions { active: true });
        self.link.answer(try_join(acknowledging, asking)).map(|_answers| ())
    }

    /// Removes a message that is none of ours.
    pub fn reject(&mut self, tag: u64) -> Result<(), ServerError> {
        self.link.answer(self.channel.basic_reject(tag, BasicRejectOptions { requeue: false }))
    }
}

/// A queue for this connection alone, bound to the exchange.
fn subscribe(link: &Link, channel: &Channel, exchange: &ShortString) -> Result<Consumer, ServerError> {
    let unnamed = ShortString::default();
    let own = QueueDeclareOptions::exclusive().auto_delete();
    let queue = link.answer(channel.queue_declare(unnamed.clone(), own, FieldTable::default()))?;
    let name = queue.name().clone();
    let options = QueueBindOptions::default();
    let binding = channel.queue_bind(name.clone(), exchange.clone(), unnamed.clone(), options, FieldTable::default());
    link.answer(binding)?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    link.answer(channel.basic_consume(name, unnamed, options, FieldTable::default()))
}

fn consume(link: &Link, channel: &Channel, queue: &ShortString) -> Result<Consumer, ServerError> {
    link.answer(channel.basic_qos(MAX_UNACKNOWLEDGED, BasicQosOptions::default()))?;
    let options = BasicConsumeOptions::default();
    link.answer(channel.basic_consume(queue.clone(), ShortString::default(), options, FieldTable::default()))
}
