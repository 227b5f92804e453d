//! Pulls from one queue.

use std::sync::Arc;

use tickpath_bus_api::{ConnectError, Delivery, Pulled, Puller, ReceiveError, wire};
use tickpath_clock::Wait;

use crate::inlet::Inlet;
use crate::intake::MAX_UNACKNOWLEDGED;
use crate::place::Place;
use crate::server::Server;

/// A puller.
pub(crate) struct AmqpPuller {
    inlet: Inlet,
    delivery: Delivery,
}

impl AmqpPuller {
    /// Connects, and makes the queue if it is not there.
    pub fn open(server: Arc<Server>, queue: &str, delivery: Delivery, wait: Wait) -> Result<Self, ConnectError> {
        Ok(Self { inlet: Inlet::open(server, Place::queue(queue), wait)?, delivery })
    }

    /// Hands over what is acknowledged later.
    fn lend(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        if limit > 0 && self.inlet.held() >= usize::from(MAX_UNACKNOWLEDGED) {
            let sentence = format!(
                "{MAX_UNACKNOWLEDGED} messages are handed over and not acknowledged, which is all that a puller can \
                 hold; acknowledge them, then pull again"
            );
            return Err(ReceiveError::Other(sentence.into()));
        }
        let mut handed_over = 0;
        for _ in 0..limit {
            let Some(delivery) = self.inlet.take() else { break };
            let Some(message) = wire::decode(&delivery.data) else {
                self.inlet.reject(&delivery);
                continue;
            };
            self.inlet.hold(&delivery);
            handler(Pulled { message, redelivered: delivery.redelivered });
            handed_over += 1;
        }
        Ok(handed_over)
    }

    /// Hands over what nobody gets again.
    fn give(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> usize {
        let mut taken = Vec::new();
        for _ in 0..limit {
            let Some(delivery) = self.inlet.take() else { break };
            self.inlet.hold(&delivery);
            taken.push(delivery);
        }
        // What is not surely gone from the queue is left to come again.
        if taken.is_empty() || !self.inlet.acknowledge() {
            return 0;
        }
        let mut handed_over = 0;
        for delivery in &taken {
            if let Some(message) = wire::decode(&delivery.data) {
                handler(Pulled { message, redelivered: delivery.redelivered });
                handed_over += 1;
            }
        }
        handed_over
    }
}

impl Puller for AmqpPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        // What was lost with the connection comes again by itself: a gap is nothing that a queue has.
        self.inlet.is_anew()?;
        match self.delivery {
            Delivery::AtLeastOnce => self.lend(limit, handler),
            Delivery::AtMostOnce => Ok(self.give(limit, handler)),
        }
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        // If the connection was lost, the messages come again, which is what at least once means. At most once, there
        // is nothing left to acknowledge.
        self.inlet.acknowledge();
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inlet.wait(timeout_ns);
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.inlet.reconnects())
    }
}
