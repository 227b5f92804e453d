//! The puller of a queue.

use std::sync::Arc;

use lapin::message::Delivery as Delivered;
use lapin::types::AMQPValue;
use tickpath_bus_api::{ConnectError, DeliveryGuarantee, PulledMessage, Puller, QueueConfig, ReceiveError, wire};
use tickpath_clock::Wait;

use crate::consumer::MAX_UNACKNOWLEDGED;
use crate::destination::AmqpDestination;
use crate::prefetch::MAX_PREFETCH_BYTES;
use crate::receiver::{AmqpReceiver, UnacknowledgedCounts};
use crate::server::AmqpServer;

/// A puller, which outlives its connections.
pub(crate) struct AmqpPuller {
    receiver: AmqpReceiver,
    /// The queue's name with the server's, for sentences.
    queue: String,
    delivery: DeliveryGuarantee,
    /// The kind of messages from other programs; they are skipped if none.
    foreign: Option<u8>,
    /// True if the broker counts deliveries in this queue.
    counts_deliveries: bool,
    /// True if the queue gives a message up after a number of deliveries.
    limits_deliveries: bool,
}

type Handler<'a> = &'a mut dyn FnMut(PulledMessage<'_>);

impl AmqpPuller {
    /// Connects, and makes the queue if it does not exist.
    pub fn open(server: Arc<AmqpServer>, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Self, ConnectError> {
        let &QueueConfig { delivery, foreign, max_deliveries, .. } = config;
        let destination = AmqpDestination::queue(queue, server.durability, max_deliveries);
        let counts_deliveries = destination.is_durable();
        let queue = format!("queue '{queue}' on {}", server.name());
        Ok(Self {
            receiver: AmqpReceiver::open(server, destination, wait)?,
            queue,
            delivery,
            foreign,
            counts_deliveries,
            limits_deliveries: max_deliveries.is_some(),
        })
    }

    /// Hands over messages that the caller acknowledges later.
    fn pull_at_least_once(&mut self, limit: usize, handler: Handler<'_>) -> Result<usize, ReceiveError> {
        if limit > 0
            && let Some(count) = self.receiver.unacknowledged_if_full()
        {
            let max_text = if self.limits_deliveries {
                "one at a time of a queue with a delivery limit, so that each counted delivery is handed over"
                    .to_owned()
            } else {
                format!("{MAX_UNACKNOWLEDGED}, or {MAX_PREFETCH_BYTES} bytes by the longest recent message")
            };
            let sentence = format!(
                "{count} messages are handed over and not acknowledged, which is the most that a puller can hold: \
                 {max_text}; acknowledge them, then pull again"
            );
            return Err(ReceiveError::Other(sentence.into()));
        }
        let mut handed_over = 0;
        for _ in 0..limit {
            let Some(delivery) = self.receiver.take_owned() else { break };
            let Some(message) = wire::decode_pulled(&delivery.data, self.foreign) else {
                self.receiver.reject(&delivery);
                continue;
            };
            let tag = self.receiver.hold(&delivery);
            let deliveries = self.counts_deliveries.then(|| deliveries(&delivery));
            handler(PulledMessage { message, redelivered: delivery.redelivered, deliveries, tag });
            handed_over += 1;
        }
        Ok(handed_over)
    }

    /// Hands over messages that are acknowledged before, so that no other puller gets them.
    fn pull_at_most_once(&mut self, limit: usize, handler: Handler<'_>) -> Result<usize, ReceiveError> {
        let mut taken = Vec::new();
        for _ in 0..limit {
            let Some(delivery) = self.receiver.take_owned() else { break };
            self.receiver.hold(&delivery);
            taken.push(delivery);
        }
        if taken.is_empty() {
            return Ok(0);
        }
        // A message that is not surely gone from the queue may be redelivered, and is not handed over.
        match self.receiver.acknowledge() {
            UnacknowledgedCounts { redelivered: 0, unknown: 0 } => {}
            UnacknowledgedCounts { unknown: 0, .. } => return Ok(0),
            UnacknowledgedCounts { unknown: count, .. } => {
                return Err(ReceiveError::MessagesLost(format!(
                    "{count} messages of {} may be gone: the connection was lost while they were taken out of it, \
                     before the broker had answered; messages still in it are redelivered, marked. Use 'at-least-once' where \
                     none may be lost",
                    self.queue
                )));
            }
        }
        let mut handed_over = 0;
        for delivery in &taken {
            if let Some(message) = wire::decode_pulled(&delivery.data, self.foreign) {
                let deliveries = self.counts_deliveries.then(|| deliveries(delivery));
                // The message is acknowledged, and cannot be given back.
                handler(PulledMessage { message, redelivered: delivery.redelivered, deliveries, tag: 0 });
                handed_over += 1;
            }
        }
        Ok(handed_over)
    }
}

impl Puller for AmqpPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        // Messages lost with the connection are redelivered, unless the queue was lost, too.
        if self.receiver.take_reconnected()? && self.receiver.take_queue_gone() {
            return Err(ReceiveError::MessagesLost(format!(
                "{} did not exist any more when the connection was made again, and its messages are gone: the broker \
                 was restarted, or the queue was removed. It was made again and is pulled from; amqp://…?durable keeps \
                 queues on disk",
                self.queue
            )));
        }
        match self.delivery {
            DeliveryGuarantee::AtLeastOnce => self.pull_at_least_once(limit, handler),
            DeliveryGuarantee::AtMostOnce => self.pull_at_most_once(limit, handler),
        }
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if self.delivery == DeliveryGuarantee::AtMostOnce {
            return Ok(());
        }
        let UnacknowledgedCounts { redelivered, unknown } = self.receiver.acknowledge();
        let mut sentences = Vec::new();
        if redelivered > 0 {
            sentences.push(format!(
                "{redelivered} messages of {} are not acknowledged, because their connection was lost: they are \
                 redelivered, marked, unless the queue itself is gone",
                self.queue
            ));
        }
        if unknown > 0 {
            sentences.push(format!(
                "{unknown} messages of {} are in doubt, because the connection was lost before the broker had \
                 answered: they are acknowledged, or are redelivered, marked",
                self.queue
            ));
        }
        if sentences.is_empty() { Ok(()) } else { Err(ReceiveError::NotAcknowledged(sentences.join("; "))) }
    }

    fn give_back(&mut self, tag: u64) -> Result<(), ReceiveError> {
        let why = match self.delivery {
            DeliveryGuarantee::AtMostOnce => {
                "at most once, each is acknowledged before it is handed over; use 'at-least-once'"
            }
            DeliveryGuarantee::AtLeastOnce if self.receiver.give_back(tag) => return Ok(()),
            DeliveryGuarantee::AtLeastOnce => {
                "it was not handed over, or is acknowledged, given back already, or lost with its connection, after \
                 which it is redelivered"
            }
        };
        Err(ReceiveError::NotAcknowledged(format!("message {tag} of {} cannot be given back: {why}", self.queue)))
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.receiver.wait(timeout_ns);
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.receiver.reconnects)
    }

    fn outage(&self) -> Option<String> {
        self.receiver.outage()
    }
}

/// Returns how often a quorum queue has delivered a message, from a header that counts the earlier deliveries.
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
