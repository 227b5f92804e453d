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
use crate::reconnect::{AmqpReconnect, AmqpReconnectOutcome, AmqpReconnectTarget, RECONNECT_BACKOFF};
use crate::server::AmqpServer;

/// A topic or queue that is received from, which outlives its connections.
pub(crate) struct AmqpReceiver {
    server: Arc<AmqpServer>,
    destination: AmqpDestination,
    wait: Wait,
    /// The current connection; none during a reconnect.
    consumer: Option<AmqpConsumer>,
    /// The reconnect in progress.
    reconnect: Option<AmqpReconnect>,
    reconnects: u64,
    /// The number of messages that lost connections had handed over and not acknowledged, until it is reported.
    redelivered: usize,
    /// The pauses between reconnects.
    backoff: ReconnectBackoff,
    /// The memory of a queue.
    last_queue: LastKnownQueue,
    /// The highest tag given out on earlier connections; the broker counts from 1 on each connection.
    tags_before: u64,
    /// The last tag given out.
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
    /// Connects.
    pub fn open(server: Arc<AmqpServer>, place: AmqpDestination, wait: Wait) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let intake = AmqpConsumer::open(&server, &place).map_err(|e| server.error(&e))?;
        let memory = LastKnownQueue { incarnation: intake.incarnation().cloned(), is_gone: false };
        Ok(Self {
            server,
            destination: place,
            wait,
            consumer: Some(intake),
            reconnect: None,
            reconnects: 0,
            redelivered: 0,
            backoff: ReconnectBackoff::new(RECONNECT_BACKOFF, clock),
            last_queue: memory,
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

    /// Returns the number of reconnects.
    pub fn reconnects(&self) -> u64 {
        self.reconnects
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn outage(&self) -> Option<String> {
        self.reconnect.as_ref().and_then(AmqpReconnect::reason)
    }

    /// Returns the next message that is here.
    #[inline]
    pub fn take(&mut self) -> Option<Delivery> {
        match self.consumer.as_mut()?.take() {
            Ok(delivery) => delivery,
            Err(why) => {
                self.start_reconnect(&why);
                None
            }
        }
    }

    /// Returns the next message for a puller. Unread messages of a connection known to be lost are redelivered to any
    /// puller, so they are dropped here.
    pub fn take_owned(&mut self) -> Option<Delivery> {
        let delivery = self.take()?;
        if self.consumer.as_ref().is_some_and(AmqpConsumer::is_up) {
            return Some(delivery);
        }
        self.start_reconnect(&AmqpServerError::Closed);
        None
    }

    /// Returns the next notice of messages that the broker has dropped. To be called until there is none, after each
    /// message taken.
    #[inline]
    pub fn take_notice(&mut self) -> Option<Delivery> {
        match self.consumer.as_mut()?.take_notice() {
            Ok(notice) => notice,
            Err(why) => {
                self.start_reconnect(&why);
                None
            }
        }
    }

    /// Idles or sleeps until a message may have come, or until the timeout.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            self.wait.idle();
            return;
        }
        let timeout = Duration::from_nanos(timeout_ns);
        if let Some(intake) = &mut self.consumer {
            intake.wait(timeout);
        } else if let Some(reconnect) = &mut self.reconnect {
            reconnect.wait(timeout);
        }
    }

    /// Records that a message is handed over, and is acknowledged later. Returns its tag, which is unique over
    /// connections.
    pub fn hold(&mut self, delivery: &Delivery) -> u64 {
        if let Some(intake) = &mut self.consumer {
            intake.hold(delivery.delivery_tag);
        }
        self.last_tag = self.tags_before + delivery.delivery_tag;
        self.last_tag
    }

    /// Gives a message back. Returns false if it is not held: handed over by this connection and not acknowledged.
    pub fn give_back(&mut self, tag: u64) -> bool {
        let delivery_tag = tag.saturating_sub(self.tags_before);
        let is_held = self.consumer.as_ref().is_some_and(|intake| intake.holds(delivery_tag));
        if is_held {
            self.settle(|intake| intake.give_back(delivery_tag));
        }
        is_held
    }

    /// Hands over a message that the caller does not acknowledge.
    #[inline]
    pub fn hold_unacknowledged(&mut self, delivery: &Delivery) {
        if let Some(intake) = &mut self.consumer {
            intake.hold(delivery.delivery_tag);
            intake.acknowledge_if_due();
        }
    }

    /// Returns the number of messages handed over and not acknowledged, if the broker sends no more before an
    /// acknowledgement.
    pub fn unacknowledged_if_full(&self) -> Option<usize> {
        self.consumer.as_ref().filter(|intake| intake.is_full()).map(AmqpConsumer::held)
    }

    /// Acknowledges all messages handed over. Returns once how many may be redelivered, because their connection is
    /// lost.
    pub fn acknowledge(&mut self) -> UnacknowledgedCounts {
        let unsaid = std::mem::take(&mut self.redelivered);
        let is_said = self.consumer.as_ref().is_some_and(AmqpConsumer::is_up);
        self.settle(AmqpConsumer::acknowledge);
        let lost = std::mem::take(&mut self.redelivered);
        if is_said {
            UnacknowledgedCounts { redelivered: unsaid, unknown: lost }
        } else {
            UnacknowledgedCounts { redelivered: unsaid + lost, unknown: 0 }
        }
    }

    /// Removes a foreign message.
    pub fn reject(&mut self, delivery: &Delivery) {
        self.settle(|intake| intake.reject(delivery.delivery_tag));
    }

    fn settle(&mut self, how: impl FnOnce(&mut AmqpConsumer) -> Result<(), AmqpServerError>) {
        if let Some(intake) = &mut self.consumer
            && let Err(why) = how(intake)
        {
            self.start_reconnect(&why);
        }
    }

    #[cold]
    fn start_reconnect(&mut self, why: &AmqpServerError) {
        let lost = self.consumer.take();
        self.tags_before = self.last_tag;
        self.redelivered += lost.as_ref().map_or(0, AmqpConsumer::held);
        let (server, place, memory) = (self.server.clone(), self.destination.clone(), self.last_queue.clone());
        let pause = self.backoff.next_backoff().current();
        self.reconnect = Some(AmqpReconnect::start(
            AmqpReconnectTarget { server, destination: place, last_queue: memory },
            why,
            lost,
            pause,
        ));
    }

    #[cold]
    fn finish_reconnect(&mut self) -> Result<bool, ReceiveError> {
        let Some(AmqpReconnectOutcome { connected: made, last_queue: memory }) =
            self.reconnect.as_mut().and_then(AmqpReconnect::outcome)
        else {
            return Ok(false);
        };
        self.last_queue = memory;
        match made {
            Ok(intake) => {
                self.last_queue.incarnation = intake.incarnation().cloned();
                self.consumer = Some(intake);
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
