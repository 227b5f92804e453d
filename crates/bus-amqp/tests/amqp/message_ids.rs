//! Forwarded messages keep their origin.

use tickpath_bus_api::conformance::{OwnedEvent, ProxyMode, next_event, wait_until};
use tickpath_bus_api::{Fate, Gap, MessageId, PublishError, Subscriber, SubscriptionEvent};
use tickpath_clock::Wait;

use crate::broker::{Scratch, publisher, subscriber};
use crate::server::relayed;

const KIND: u8 = 16;

/// Returns the origin of a message from another bus.
fn foreign_id(number: u64) -> MessageId {
    MessageId { clock: 7, publisher: 8, sequence: number }
}

/// Returns stamp and origin of the next message.
fn next_origin(subscriber: &mut dyn Subscriber) -> (u64, MessageId) {
    let mut next = None;
    wait_until(|| {
        let polled = subscriber.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) => next = message.id.map(|origin| (message.stamp, origin)),
            other => panic!("{other:?}"),
        });
        polled.unwrap_or_else(|e| panic!("{e}"));
        next.is_some()
    });
    next.expect("it came")
}

#[test]
fn a_carried_message_keeps_its_id_and_uses_no_sequence_number() {
    let scratch = Scratch::new("carried");
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&scratch.bus, &scratch.name);
    publisher.publish(1, KIND, b"own").unwrap();
    let (_, own) = next_origin(&mut *subscriber);
    publisher.publish_with_id(foreign_id(5), 2, KIND, b"carried").unwrap();
    assert_eq!(next_origin(&mut *subscriber), (2, foreign_id(5)));
    let error = publisher.publish_with_id(foreign_id(6), 3, KIND, &vec![0; 1 << 25]).unwrap_err();
    assert!(matches!(error, PublishError::TooLarge { .. }), "{error}");
    publisher.publish(4, KIND, b"own").unwrap();
    assert_eq!(next_origin(&mut *subscriber), (4, MessageId { sequence: own.sequence + 1, ..own }));

    // As on the original bus: the duplicate is dropped, and the missing messages are reported.
    publisher.publish_with_id(foreign_id(5), 5, KIND, b"again").unwrap();
    publisher.publish_with_id(foreign_id(8), 6, KIND, b"carried").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(2)));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(6, b"carried"));
    publisher.publish_gap(7, Gap::Missed(3)).unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(3)));
}

#[test]
fn a_carried_message_is_resent_under_the_same_id() {
    let scratch = Scratch::new("carried-again");
    let (relay, bus) = relayed();
    let mut subscriber = subscriber(&scratch.bus, &scratch.name, Wait::Block);
    let mut publisher = publisher(&bus, &scratch.name);
    publisher.publish(1, KIND, b"own").unwrap();
    let (_, own) = next_origin(&mut *subscriber);
    relay.set(ProxyMode::Mute);
    std::thread::scope(|scope| {
        let carrying = scope.spawn(|| publisher.publish_with_id(foreign_id(5), 2, KIND, b"once"));
        assert_eq!(next_origin(&mut *subscriber), (2, foreign_id(5)));
        relay.cut();
        let error = carrying.join().unwrap().unwrap_err();
        assert_eq!(error.fate(), Fate::Unknown, "{error}");
    });
    relay.set(ProxyMode::Open);
    publisher.resend().unwrap_or_else(|e| panic!("{e}"));
    publisher.publish(3, KIND, b"own").unwrap();
    // The copy is not handed over.
    assert_eq!(next_origin(&mut *subscriber), (3, MessageId { sequence: own.sequence + 1, ..own }));
}
