//! What tests publish, and what they see of it.

use tickpath_bus_api::{
    Connection, Delivery, Event, Gap, Policy, Publisher, Puller, Pusher, QueueConfig, Start, Subscriber, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::{Wait, sleep_ns};

pub const TOPIC: &str = "tickpath:test:ticks";
pub const QUEUE: &str = "tickpath:test:jobs";
pub const KIND: u8 = 16;

/// An event that stays.
#[derive(Debug, PartialEq)]
pub enum Seen {
    Message { sequence: Option<u64>, stamp: u64, payload: Vec<u8> },
    Foreign { sequence: Option<u64>, bytes: Vec<u8> },
    Gap(Gap),
}

impl Seen {
    /// A message of core NATS.
    pub fn message(stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: None, stamp, payload: payload.to_vec() }
    }

    /// A message of JetStream, with its place in the topic.
    pub fn at(sequence: u64, stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: Some(sequence), stamp, payload: payload.to_vec() }
    }

    /// What others publish, with its place where that is counted.
    pub fn foreign(sequence: Option<u64>, text: &str) -> Self {
        Self::Foreign { sequence, bytes: text.into() }
    }
}

/// The next event, waited for up to a minute or so.
pub fn next(subscriber: &mut dyn Subscriber) -> Seen {
    let mut seen = None;
    for _ in 0..60_000 {
        let polled = subscriber.poll(1, &mut |event| {
            seen = Some(match event {
                Event::Message(message) => Seen::Message {
                    sequence: message.sequence,
                    stamp: message.stamp,
                    payload: message.payload.to_vec(),
                },
                Event::Foreign(foreign) => Seen::Foreign { sequence: foreign.sequence, bytes: foreign.bytes.to_vec() },
                Event::Gap(gap) => Seen::Gap(gap),
            });
        });
        polled.unwrap();
        if let Some(seen) = seen {
            return seen;
        }
        subscriber.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("nothing came");
}

/// Stamp of the next message, and whether it is marked as redelivered; waited for up to a minute or so.
pub fn pull(puller: &mut dyn Puller) -> (u64, bool) {
    let mut seen = None;
    for _ in 0..60_000 {
        let pulled = puller.pull(1, &mut |pulled| seen = Some((pulled.message.stamp, pulled.redelivered)));
        pulled.unwrap();
        if let Some(seen) = seen {
            return seen;
        }
        puller.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("nothing came");
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
