//! Topics whose old messages expire, on a server that checks twice a second.

use tickpath_bus_api::conformance::{OwnedEvent, next_event, wait_until};
use tickpath_bus_api::{Connection, Gap, Policy, StartPosition, TopicConfig};
use tickpath_clock::Wait;

use crate::server::ScratchName;

const KIND: u8 = 16;

/// Returns the first event of a subscriber that starts at sequence number 0.
fn first_event(topic: &ScratchName) -> OwnedEvent {
    let opened = topic.bus.subscriber(&topic.name, StartPosition::Sequence(0), Wait::Block);
    next_event(&mut *opened.unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn messages_beyond_the_capacity_are_removed_and_reported() {
    const COUNT: u64 = 400;
    let large = ScratchName::topic("size");
    let (bus, topic) = (&large.bus, large.name.as_str());
    let config = TopicConfig::new(Policy::Overwrite);
    // The subscriber creates the topic, and the publisher sets its retention.
    let mut early = bus.subscriber(topic, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut publisher = bus.publisher(topic, &config).unwrap_or_else(|e| panic!("{e}"));
    let payload = [7u8; 10_000];
    publisher.publish(0, KIND, &payload).unwrap();
    assert_eq!(next_event(&mut *early), OwnedEvent::at(0, 0, &payload));
    let token = early.resume_token().expect("it stands behind the first message");
    (1..COUNT).for_each(|stamp| publisher.publish(stamp, KIND, &payload).unwrap());
    // Segments of a mebibyte are deleted until the excess is less than one.
    let fits = |count: u64| count * payload.len() as u64 <= 2 * config.capacity_bytes as u64;
    wait_until(|| matches!(first_event(&large), OwnedEvent::Gap(Gap::Missed(missed)) if fits(COUNT - missed)));
    for (start, first) in [(StartPosition::Sequence(0), 0), (StartPosition::After(token), 1)] {
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

#[test]
fn messages_beyond_the_max_age_are_removed_and_reported() {
    let topic = ScratchName::topic("age");
    let config = TopicConfig { max_age_ns: Some(1_000_000_000), ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = topic.bus.publisher(&topic.name, &config).unwrap_or_else(|e| panic!("{e}"));
    (0..3).for_each(|stamp| publisher.publish(stamp, KIND, b"ours").unwrap());
    wait_until(|| first_event(&topic) == OwnedEvent::Gap(Gap::Missed(3)));
}
