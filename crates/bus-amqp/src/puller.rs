//! The puller of a queue.

use std::sync::Arc;

use lapin::message::Delivery as Delivered;
use lapin::types::AMQPValue;
use tickpath_bus_api::{ConnectError, Delivery, Pulled, Puller, QueueConfig, ReceiveError, wire};
use tickpath_clock::Wait;

use crate::ahead::MAX_AHEAD_BYTES;
use crate::inlet::{Inlet, Unanswered};
use crate::intake::MAX_UNACKNOWLEDGED;
use crate::place::Place;
use crate::server::Server;

/// A puller, which outlives its connections.
pub(crate) struct AmqpPuller {
    inlet: Inlet,
    /// The queue's name with the server's, for sentences.
    queue: String,
    delivery: Delivery,
    /// The kind of messages from other programs; they are skipped if none.
    foreign: Option<u8>,
    /// True if the broker counts deliveries in this queue.
    is_counted: bool,
    /// True if the queue gives a message up after a number of deliveries.
    gives_up: bool,
}

impl AmqpPuller {
    /// Connects, and makes the queue if it does not exist.
    pub fn open(server: Arc<Server>, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Self, ConnectError> {
        let &QueueConfig { delivery, foreign, most_deliveries, .. } = config;
        let place = Place::queue(queue, server.durability(), most_deliveries);
        let (is_counted, gives_up) = (place.is_durable(), place.gives_up());
        let queue = format!("queue '{queue}' on {}", server.name());
        Ok(Self { inlet: Inlet::open(server, place, wait)?, queue, delivery, foreign, is_counted, gives_up })
    }

    /// Hands over messages that the caller acknowledges later.
    fn lend(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        if limit > 0
            && let Some(count) = self.inlet.full()
        {
            let most = if self.gives_up {
                "one at a time of a queue with a number of most deliveries, so that none is counted unseen".to_owned()
            } else {
                format!("{MAX_UNACKNOWLEDGED}, or {MAX_AHEAD_BYTES} bytes by the longest of late")
            };
            let sentence = format!(
                "{count} messages are handed over and not acknowledged, which is all that a puller can hold: {most}; \
                 acknowledge them, then pull again"
            );
            return Err(ReceiveError::Other(sentence.into()));
        }
        let mut handed_over = 0;
        for _ in 0..limit {
            let Some(delivery) = self.inlet.take_owned() else { break };
            let Some(message) = wire::pulled(&delivery.data, self.foreign) else {
                self.inlet.reject(&delivery);
                continue;
            };
            let tag = self.inlet.hold(&delivery);
            let deliveries = self.is_counted.then(|| deliveries(&delivery));
            handler(Pulled { message, redelivered: delivery.redelivered, deliveries, tag });
            handed_over += 1;
        }
        Ok(handed_over)
    }

    /// Hands over messages that are acknowledged before, so that no other puller gets them.
    fn give(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        let mut taken = Vec::new();
        for _ in 0..limit {
            let Some(delivery) = self.inlet.take_owned() else { break };
            self.inlet.hold(&delivery);
            taken.push(delivery);
        }
        if taken.is_empty() {
            return Ok(0);
        }
        // A message that is not surely gone from the queue may be redelivered, and is not handed over.
        match self.inlet.acknowledge() {
            Unanswered { unsaid: 0, unknown: 0 } => {}
            Unanswered { unknown: 0, .. } => return Ok(0),
            Unanswered { unknown: count, .. } => {
                return Err(ReceiveError::Gone(format!(
                    "{count} messages of {} may be gone: the connection was lost while they were taken out of it, \
                     before the broker had answered; what it has not taken out comes again, marked. Use \
                     'at-least-once' where none may be lost",
                    self.queue
                )));
            }
        }
        let mut handed_over = 0;
        for delivery in &taken {
            if let Some(message) = wire::pulled(&delivery.data, self.foreign) {
                let deliveries = self.is_counted.then(|| deliveries(delivery));
                // The message is acknowledged, and cannot be given back.
                handler(Pulled { message, redelivered: delivery.redelivered, deliveries, tag: 0 });
                handed_over += 1;
            }
        }
        Ok(handed_over)
    }
}

impl Puller for AmqpPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        // Messages lost with the connection are redelivered, unless the queue was lost, too.
        if self.inlet.is_anew()? && self.inlet.is_gone() {
            return Err(ReceiveError::Gone(format!(
                "{} was not there any more when the connection was made again, and what it held is gone: the broker \
                 was started anew, or somebody removed the queue. It has been made again and is pulled from; \
                 amqp://…?durable keeps queues on disk",
                self.queue
            )));
        }
        match self.delivery {
            Delivery::AtLeastOnce => self.lend(limit, handler),
            Delivery::AtMostOnce => self.give(limit, handler),
        }
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if self.delivery == Delivery::AtMostOnce {
            return Ok(());
        }
        let Unanswered { unsaid, unknown } = self.inlet.acknowledge();
        let mut sentences = Vec::new();
        if unsaid > 0 {
            sentences.push(format!(
                "{unsaid} messages of {} are not acknowledged, because the connection was lost that they came by: they \
                 come again, marked, unless the queue itself is gone",
                self.queue
            ));
        }
        if unknown > 0 {
            sentences.push(format!(
                "nobody knows of {unknown} messages of {}, because the connection was lost before the broker had \
                 answered: they are done with, or come again, marked",
                self.queue
            ));
        }
        if sentences.is_empty() { Ok(()) } else { Err(ReceiveError::NotAcknowledged(sentences.join("; "))) }
    }

    fn give_back(&mut self, tag: u64) -> Result<(), ReceiveError> {
        let why = match self.delivery {
            Delivery::AtMostOnce => "at most once, each is acknowledged before it is handed over; use 'at-least-once'",
            Delivery::AtLeastOnce if self.inlet.give_back(tag) => return Ok(()),
            Delivery::AtLeastOnce => {
                "give back what was handed over, and is neither acknowledged, given back already, nor lost with its \
                 connection, after which it comes again by itself"
            }
        };
        Err(ReceiveError::NotAcknowledged(format!("message {tag} of {} is nobody's to give back: {why}", self.queue)))
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inlet.wait(timeout_ns);
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.inlet.reconnects())
    }

    fn outage(&self) -> Option<String> {
        self.inlet.outage()
    }
}

/// Returns how often a quorum queue has delivered a message, this time included. The broker's header counts the
/// deliveries before, and comes from the second delivery on.
fn deliveries(delivered: &Delivered) -> u32 {
    let headers = delivered.properties.headers().as_ref();
    let before = headers.and_then(|headers| headers.inner().get("x-delivery-count"));
    let before = before.map_or(0, |count| match count {
        AMQPValue::LongLongInt(count) => u32::try_from(*count).unwrap_or(0),
        AMQPValue::LongInt(count) => u32::try_from(*count).unwrap_or(0),
        _ => 0,
    });
    before.saturating_add(1)
}
