//! Topics that let old messages go, on a server that looks after them every tenth of a second.

use tickpath_bus_api::conformance::{OwnedEvent, next_event, until};
use tickpath_bus_api::{Connection, Gap, Policy, Start, TopicConfig};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::Wait;

use crate::kafka_server::{KafkaServer, in_turn};

const KIND: u8 = 16;

#[test]
fn what_is_too_much_or_too_old_goes_and_is_told_as_missed() {
    let _turn = in_turn();
    let server = KafkaServer::start("", "log.retention.check.interval.ms=100\nlog.initial.task.delay.ms=100\n");
    let bus = KafkaBus::connect(&server.url()).unwrap_or_else(|e| panic!("{e}"));
    goes_by_size(&bus);
    goes_by_age(&bus);
}

/// The event that who starts at the first message of all gets first.
fn first_event(bus: &KafkaBus, topic: &str) -> OwnedEvent {
    let opened = bus.subscriber(topic, Start::Sequence(0), Wait::Block);
    next_event(&mut *opened.unwrap_or_else(|e| panic!("{e}")))
}

fn goes_by_size(bus: &KafkaBus) {
    const COUNT: u64 = 400;
    let topic = "size";
    let config = TopicConfig::new(Policy::Overwrite);
    // The topic is made by who comes first, and shaped by who publishes.
    let mut early = bus.subscriber(topic, Start::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut publisher = bus.publisher(topic, &config).unwrap_or_else(|e| panic!("{e}"));
    let payload = [7u8; 10_000];
    publisher.publish(0, KIND, &payload).unwrap();
    assert_eq!(next_event(&mut *early), OwnedEvent::at(0, 0, &payload));
    let token = early.token().expect("it stands behind the first message");
    (1..COUNT).for_each(|stamp| publisher.publish(stamp, KIND, &payload).unwrap());
    until(|| matches!(first_event(bus, topic), OwnedEvent::Gap(_)));
    for (start, first) in [(Start::Sequence(0), 0), (Start::After(token), 1)] {
        let mut subscriber = bus.subscriber(topic, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        let OwnedEvent::Gap(Gap::Missed(missed)) = next_event(&mut *subscriber) else {
            panic!("what is gone is not told: {start:?}");
        };
        for stamp in first + missed..COUNT {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(stamp, stamp, &payload), "{start:?}");
        }
    }
    bus.publisher(topic, &config).unwrap_or_else(|e| panic!("as before: {e}"));
}

fn goes_by_age(bus: &KafkaBus) {
    let topic = "age";
    let config = TopicConfig { max_age_ns: Some(1_000_000_000), ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = bus.publisher(topic, &config).unwrap_or_else(|e| panic!("{e}"));
    (0..3).for_each(|stamp| publisher.publish(stamp, KIND, b"ours").unwrap());
    until(|| first_event(bus, topic) == OwnedEvent::Gap(Gap::Missed(3)));
}
