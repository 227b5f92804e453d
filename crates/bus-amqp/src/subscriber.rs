//! Receives one topic.

use std::sync::Arc;

use tickpath_bus_api::{ConnectError, Event, Gap, PublisherState, ReceiveError, Subscriber, wire};
use tickpath_clock::Wait;

use crate::inlet::Inlet;
use crate::place::Place;
use crate::server::Server;

/// A subscription.
pub(crate) struct AmqpSubscriber {
    inlet: Inlet,
}

impl AmqpSubscriber {
    /// Connects and subscribes.
    pub fn open(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        Ok(Self { inlet: Inlet::open(server, Place::topic(topic), wait)? })
    }
}

impl Subscriber for AmqpSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if self.inlet.is_anew()? {
            handler(Event::Gap(Gap::Reconnected));
            return Ok(1);
        }
        let mut handed_over = 0;
        for _ in 0..limit {
            let Some(delivery) = self.inlet.take() else { break };
            handler(wire::event(None, &delivery.data));
            handed_over += 1;
        }
        Ok(handed_over)
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inlet.wait(timeout_ns);
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.inlet.reconnects())
    }
}
