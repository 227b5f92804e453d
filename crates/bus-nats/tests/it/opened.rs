//! How the tests open topics and queues.

use tickpath_bus_api::conformance::pull_stamps;
use tickpath_bus_api::{
    Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueConfig, Start, Subscriber, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::Wait;

pub const TOPIC: &str = "tickpath:test:ticks";
pub const QUEUE: &str = "tickpath:test:jobs";
pub const KIND: u8 = 16;

/// Stamp of the next message, and whether it is marked as redelivered.
pub fn pull(puller: &mut dyn Puller) -> (u64, bool) {
    pull_stamps(puller, 1)[0]
}

pub fn bus(url: &str) -> NatsBus {
    NatsBus::connect(url).unwrap_or_else(|e| panic!("{e}"))
}

pub fn publisher(bus: &NatsBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"))
}

pub fn subscriber(bus: &NatsBus, wait: Wait) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, Start::Now, wait).unwrap_or_else(|e| panic!("{e}"))
}

pub fn pusher(bus: &NatsBus, delivery: Delivery) -> Box<dyn Pusher> {
    bus.pusher(QUEUE, &QueueConfig::new(delivery)).unwrap_or_else(|e| panic!("{e}"))
}

pub fn puller(bus: &NatsBus, delivery: Delivery) -> Box<dyn Puller> {
    bus.puller(QUEUE, &QueueConfig::new(delivery), Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}
