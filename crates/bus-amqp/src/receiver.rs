//! The receiving side over one connection after another.

use std::sync::Arc;
use std::time::Duration;

use lapin::message::Delivery;
use tickpath_bus_api::{ConnectError, ReceiveError, ReconnectBackoff};
use tickpath_clock::{HostClock, Wait};

use crate::consumer::AmqpConsumer;
use crate::destination::AmqpDestination;
use crate::error::AmqpServerError;
use crate::incarnation::LastKnownQueue;
use crate::reconnect::{AmqpReconnect, AmqpReconnectTarget, RECONNECT_BACKOFF};
use crate::server::AmqpServer;

/// A topic or queue that is received from, which outlives its connections.
pub(crate) struct AmqpReceiver {
    server: Arc<AmqpServer>,
    destination: AmqpDestination,
    wait: Wait,
    /// The current connection; none during a reconnect.
    consumer: Option<AmqpConsumer>,
    reconnect: Option<AmqpReconnect>,
    pub reconnects: u64,
    /// The number of messages that lost connections had handed over and not acknowledged, until it is reported.
    redelivered: usize,
    backoff: ReconnectBackoff,
    last_queue: LastKnownQueue,
    /// The highest tag given out on earlier connections; the broker counts from 1 on each connection.
    tags_before: u64,
    last_tag: u64,
}

/// The number of messages handed over without an answer to their acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnacknowledgedCounts {
    /// Messages that are redelivered: their connection was lost before they were acknowledged.
    pub redelivered: usize,
    /// Messages in doubt: their connection was lost after that.
    pub unknown: usize,
}

impl AmqpReceiver {
    pub fn open(server: Arc<AmqpServer>, destination: AmqpDestination, wait: Wait) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let consumer = AmqpConsumer::open(&server, &destination).map_err(|e| server.error(&e))?;
        let last_queue = LastKnownQueue { incarnation: consumer.incarnation.clone(), is_gone: false };
        Ok(Self {
            server,
            destination,
            wait,
            consumer: Some(consumer),
            reconnect: None,
            reconnects: 0,
            redelivered: 0,
            backoff: ReconnectBackoff::new(RECONNECT_BACKOFF, clock),
            last_queue,
            tags_before: 0,
            last_tag: 0,
        })
    }

    /// Returns true once after a reconnect.
    #[inline]
    pub fn take_reconnected(&mut self) -> Result<bool, ReceiveError> {
        if self.reconnect.is_some() { self.finish_reconnect() } else { Ok(false) }
    }

    /// Returns true once after the queue was gone, also if it was made anew.
    pub fn take_queue_gone(&mut self) -> bool {
        std::mem::take(&mut self.last_queue.is_gone)
    }

    pub fn outage(&self) -> Option<String> {
        self.reconnect.as_ref().and_then(AmqpReconnect::reason)
    }

    /// Returns the next message that is here.
    #[inline]
    pub fn take(&mut self) -> Option<Delivery> {
        let taken = self.consumer.as_mut()?.take();
        self.reconnect_on_error(taken)
    }

    /// Returns the next message for a puller; drops those of a lost connection, which are redelivered to any puller.
    pub fn take_owned(&mut self) -> Option<Delivery> {
        let delivery = self.take()?;
        if self.consumer.as_ref().is_some_and(AmqpConsumer::is_up) {
            return Some(delivery);
        }
        self.start_reconnect(&AmqpServerError::Closed);
        None
    }

    /// Returns the next notice of dropped messages. To be called after each message taken, until there is none.
    #[inline]
    pub fn take_notice(&mut self) -> Option<Delivery> {
        let taken = self.consumer.as_mut()?.take_notice();
        self.reconnect_on_error(taken)
    }

    /// Idles or sleeps until a message may have come, or until the timeout.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            self.wait.idle();
            return;
        }
        let timeout = Duration::from_nanos(timeout_ns);
        if let Some(consumer) = &mut self.consumer {
            consumer.wait(timeout);
        } else if let Some(reconnect) = &mut self.reconnect {
            reconnect.wait(timeout);
        }
    }

    /// Records a message as handed over, to be acknowledged later. Returns its tag, which is unique over connections.
    pub fn hold(&mut self, delivery: &Delivery) -> u64 {
        if let Some(consumer) = &mut self.consumer {
            consumer.hold(delivery.delivery_tag);
        }
        self.last_tag = self.tags_before + delivery.delivery_tag;
        self.last_tag
    }

    /// Gives a message back. Returns false if it is not held: handed over by this connection and not acknowledged.
    pub fn give_back(&mut self, tag: u64) -> bool {
        let delivery_tag = tag.saturating_sub(self.tags_before);
        let is_held = self.consumer.as_ref().is_some_and(|consumer| consumer.holds(delivery_tag));
        if is_held {
            self.settle(|consumer| consumer.give_back(delivery_tag));
        }
        is_held
    }

    /// Hands over a message that the caller does not acknowledge.
    #[inline]
    pub fn hold_unacknowledged(&mut self, delivery: &Delivery) {
        if let Some(consumer) = &mut self.consumer {
            consumer.hold(delivery.delivery_tag);
            consumer.acknowledge_if_due();
        }
    }

    /// Returns the number of unacknowledged messages, if the broker sends no more before an acknowledgement.
    pub fn unacknowledged_if_full(&self) -> Option<usize> {
        self.consumer.as_ref().filter(|consumer| consumer.is_full()).map(AmqpConsumer::held)
    }

    /// Acknowledges all messages handed over. Returns once how many may be redelivered after a lost connection.
    pub fn acknowledge(&mut self) -> UnacknowledgedCounts {
        let redelivered = std::mem::take(&mut self.redelivered);
        let is_sent = self.consumer.as_ref().is_some_and(AmqpConsumer::is_up);
        self.settle(AmqpConsumer::acknowledge);
        let lost = std::mem::take(&mut self.redelivered);
        if is_sent {
            UnacknowledgedCounts { redelivered, unknown: lost }
        } else {
            UnacknowledgedCounts { redelivered: redelivered + lost, unknown: 0 }
        }
    }

    pub fn reject(&mut self, delivery: &Delivery) {
        self.settle(|consumer| consumer.reject(delivery.delivery_tag));
    }

    #[inline]
    fn reconnect_on_error(&mut self, taken: Result<Option<Delivery>, AmqpServerError>) -> Option<Delivery> {
        taken.unwrap_or_else(|why| {
            self.start_reconnect(&why);
            None
        })
    }

    fn settle(&mut self, how: impl FnOnce(&mut AmqpConsumer) -> Result<(), AmqpServerError>) {
        if let Some(consumer) = &mut self.consumer
            && let Err(why) = how(consumer)
        {
            self.start_reconnect(&why);
        }
    }

    #[cold]
    fn start_reconnect(&mut self, why: &AmqpServerError) {
        let lost = self.consumer.take();
        self.tags_before = self.last_tag;
        self.redelivered += lost.as_ref().map_or(0, AmqpConsumer::held);
        let (server, destination) = (self.server.clone(), self.destination.clone());
        let target = AmqpReconnectTarget { server, destination, last_queue: self.last_queue.clone() };
        let pause = self.backoff.next_backoff().current();
        self.reconnect = Some(AmqpReconnect::start(target, why, lost, pause));
    }

    #[cold]
    fn finish_reconnect(&mut self) -> Result<bool, ReceiveError> {
        let Some(outcome) = self.reconnect.as_mut().and_then(AmqpReconnect::outcome) else { return Ok(false) };
        self.last_queue = outcome.last_queue;
        match outcome.connected {
            Ok(consumer) => {
                self.last_queue.incarnation = consumer.incarnation.clone();
                self.consumer = Some(consumer);
                self.reconnect = None;
                self.reconnects += 1;
                Ok(true)
            }
            Err(e) => {
                self.start_reconnect(&e);
                Err(ReceiveError::Other(self.server.sentence(&e).into()))
            }
        }
    }
}
