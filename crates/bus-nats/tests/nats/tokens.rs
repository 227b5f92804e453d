//! Resume tokens: a resumed subscriber has no unreported gap and no duplicate.

use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, next_event, wait_until};
use tickpath_bus_api::{
    Connection, Gap, Policy, ResumeToken, StartPosition, Subscriber, SubscriptionEvent, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::Wait;

use crate::helpers::{KIND, TOPIC, bus, publisher, subscriber};
use crate::nats_server::NatsServer;

#[test]
fn a_token_resumes_without_gap_or_duplicate() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let mut first = subscriber(&bus, Wait::Block);
    assert_eq!(first.resume_token(), None, "nothing is known of it yet");
    let mut publisher = publisher(&bus);
    publisher.publish_batch(1, KIND, &[b"one", b"two", b"three"]).unwrap();
    assert_eq!(next_event(&mut *first), OwnedEvent::at(0, 1, b"one"));
    let token = first.resume_token().expect("it is there");
    let mut second = resume(&bus, token);
    assert_eq!(second.resume_token(), Some(token), "nothing was handed over");
    assert_eq!(next_event(&mut *second), OwnedEvent::at(1, 1, b"two"));
    let mut third = resume(&bus, second.resume_token().expect("it is there"));
    assert_eq!(next_event(&mut *third), OwnedEvent::at(2, 1, b"three"));
    check_no_event(&mut *third);
    let mut now = subscriber(&bus, Wait::Block);
    publisher.publish(2, KIND, b"four").unwrap();
    // The token of a subscriber that has not polled yet is before the next message.
    let mut fourth = resume(&bus, now.resume_token().expect("it is there"));
    for subscriber in [&mut now, &mut third, &mut fourth] {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::at(3, 2, b"four"));
    }
}

#[test]
fn a_token_counts_overwritten_messages_and_repeats_unread_gaps() {
    const COUNT: u64 = 100;
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let small = TopicConfig { capacity_bytes: 64 << 10, ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = bus.publisher(TOPIC, &small).unwrap_or_else(|e| panic!("{e}"));
    let mut first = subscriber(&bus, Wait::Block);
    publisher.publish(0, KIND, b"first").unwrap();
    assert_eq!(next_event(&mut *first), OwnedEvent::at(0, 0, b"first"));
    let token = first.resume_token().expect("it is there");
    drop(first);
    for stamp in 1..COUNT {
        publisher.publish(stamp, KIND, &[7; 4096]).unwrap();
    }
    let mut second = resume(&bus, token);
    assert_eq!(second.resume_token(), Some(token), "the gap is not told yet");
    let OwnedEvent::Gap(Gap::Missed(missed)) = next_event(&mut *second) else { panic!("no gap") };
    // The token is behind the gap, which was reported.
    let mut third = resume(&bus, second.resume_token().expect("it is there"));
    for subscriber in [&mut second, &mut third] {
        for stamp in missed + 1..COUNT {
            assert_eq!(next_event(&mut **subscriber), OwnedEvent::at(stamp, stamp, &[7; 4096]));
        }
    }
}

#[test]
fn a_recreated_topic_is_reported_and_read_from_its_beginning() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let mut first = subscriber(&bus, Wait::Block);
    publisher(&bus).publish_batch(1, KIND, &[b"one", b"two"]).unwrap();
    assert_eq!(next_event(&mut *first), OwnedEvent::at(0, 1, b"one"));
    let token = first.resume_token().expect("it is there");
    drop(first);
    bus.remove_topic(TOPIC).unwrap();
    // The first subscriber is opened before the topic exists again, the second one after that.
    let mut early = resume(&bus, token);
    check_no_event(&mut *early);
    publisher(&bus).publish_batch(2, KIND, &[b"anew", b"and on"]).unwrap();
    let mut late = resume(&bus, token);
    for subscriber in [&mut early, &mut late] {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::Gap(Gap::Reconnected));
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::at(0, 2, b"anew"));
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::at(1, 2, b"and on"));
    }
}

#[test]
fn expired_messages_are_counted_before_anything_follows() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    assert!(bus.capabilities().max_age);
    let short = TopicConfig { max_age_ns: Some(500_000_000), ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = bus.publisher(TOPIC, &short).unwrap_or_else(|e| panic!("{e}"));
    publisher.publish_batch(1, KIND, &[b"old", b"old"]).unwrap();
    wait_until(|| {
        let opened = bus.subscriber(TOPIC, StartPosition::Sequence(0), Wait::Block);
        let mut subscriber = opened.unwrap_or_else(|e| panic!("{e}"));
        // If the messages were deleted after the subscriber was opened, the gap is reported with the next message, and
        // none comes here.
        let mut is_told = false;
        for _ in 0..100 {
            let polled =
                subscriber.poll(1, &mut |event| is_told |= matches!(event, SubscriptionEvent::Gap(Gap::Missed(2))));
            if polled.unwrap_or_else(|e| panic!("{e}")) > 0 {
                break;
            }
            subscriber.wait(10_000_000);
        }
        is_told
    });
    let error = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err().expect("it has an age");
    assert!(error.to_string().contains("for 0.5 s; open it with that age, or remove it first"), "{error}");
}

fn jetstream(server: &NatsServer) -> NatsBus {
    bus(&format!("{}?jetstream", server.url()))
}

fn resume(bus: &NatsBus, token: ResumeToken) -> Box<dyn Subscriber> {
    // From the text, as another process would resume.
    let token = token.to_string().parse().expect("it is a token");
    bus.subscriber(TOPIC, StartPosition::After(token), Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}
