//! Receives one topic.

use std::sync::Arc;

use lapin::message::Delivery;
use tickpath_bus_api::{ConnectError, Event, Gap, OriginTracker, PublisherState, ReceiveError, Subscriber, wire};
use tickpath_clock::Wait;

use crate::inlet::Inlet;
use crate::place::Place;
use crate::server::Server;

/// A subscription.
pub(crate) struct AmqpSubscriber {
    inlet: Inlet,
    /// Tells what came twice, and what the broker has dropped.
    tracker: OriginTracker,
    /// A message that waits behind a gap.
    kept: Option<Delivery>,
}

impl AmqpSubscriber {
    /// Connects and subscribes.
    pub fn open(server: Arc<Server>, topic: &str, wait: Wait) -> Result<Self, ConnectError> {
        let place = Place::topic(topic, server.durability());
        Ok(Self { inlet: Inlet::open(server, place, wait)?, tracker: OriginTracker::default(), kept: None })
    }
}

impl Subscriber for AmqpSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        if self.kept.is_none() && self.inlet.is_anew()? {
            handler(Event::Gap(Gap::Reconnected));
            self.tracker.told();
            return Ok(1);
        }
        let mut handed_over = 0;
        while handed_over < limit {
            let Some(delivery) = self.kept.take().or_else(|| self.inlet.take()) else { break };
            let is_over = wire::hand_over(&mut self.tracker, None, &delivery.data, &mut |event| {
                handed_over += 1;
                handler(event);
            });
            if is_over {
                self.inlet.let_go(&delivery);
            } else {
                self.kept = Some(delivery);
            }
        }
        Ok(handed_over)
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.kept.is_none() {
            self.inlet.wait(timeout_ns);
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.inlet.reconnects())
    }
}
