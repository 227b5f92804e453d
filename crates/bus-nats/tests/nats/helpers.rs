//! Helpers that open the tests' topics and queues.

use tickpath_bus_api::conformance::{NetworkProxy, OwnedEvent, next_event, pull_stamps};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueConfig, ReceiveError, StartPosition,
    Subscriber, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::Wait;

pub const TOPIC: &str = "tickpath:test:ticks";
pub const QUEUE: &str = "tickpath:test:jobs";
pub const KIND: u8 = 16;

/// Name of the topic's stream.
pub const STREAM: &str = "tickpath-topic-tickpath+test+ticks";

/// Returns the stamp of the next message, and whether it is marked as redelivered.
pub fn pull(puller: &mut dyn Puller) -> (u64, bool) {
    pull_stamps(puller, 1)[0]
}

/// Returns the URL of the server behind a relay.
pub fn relay_url(relay: &NetworkProxy) -> String {
    format!("nats://{}", relay.address())
}

pub fn bus(url: &str) -> NatsBus {
    NatsBus::connect(url).unwrap_or_else(|e| panic!("{e}"))
}

pub fn publisher(bus: &NatsBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"))
}

pub fn subscriber(bus: &NatsBus, wait: Wait) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, StartPosition::Now, wait).unwrap_or_else(|e| panic!("{e}"))
}

pub fn pusher(bus: &NatsBus, delivery: DeliveryGuarantee) -> Box<dyn Pusher> {
    bus.pusher(QUEUE, &QueueConfig::new(delivery)).unwrap_or_else(|e| panic!("{e}"))
}

pub fn puller(bus: &NatsBus, delivery: DeliveryGuarantee) -> Box<dyn Puller> {
    bus.puller(QUEUE, &QueueConfig::new(delivery), Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

/// Checks that connecting fails with these words, and returns the sentence.
pub fn refused(url: &str, words: &[&str]) -> String {
    let error = NatsBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
    error
}

/// Checks that a message passes.
pub fn check_accepted(url: &str) {
    let bus = bus(url);
    let mut subscriber = subscriber(&bus, Wait::Block);
    publisher(&bus).publish(7, KIND, b"let in").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(7, b"let in"));
}

/// Pulls until an error, and returns it; drops the messages before it.
pub fn pull_error(puller: &mut dyn Puller) -> ReceiveError {
    for _ in 0..60_000 {
        match puller.pull(64, &mut |_| {}) {
            Err(error) => return error,
            Ok(_) => puller.wait(1_000_000),
        }
    }
    panic!("nothing is told");
}
