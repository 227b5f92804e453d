//! Who is too slow for core NATS: what lies unread is bounded in bytes, and the loss is told.

use tickpath_bus_api::conformance::until;
use tickpath_bus_api::{Delivery, Event, Gap, ReceiveError};
use tickpath_bus_nats::MAX_UNREAD_BYTES;
use tickpath_clock::Wait;

use crate::nats_server::NatsServer;
use crate::opened::{KIND, QUEUE, bus, publisher, pull_error, puller, pusher, subscriber};

/// Long enough that a count of messages would not bound them.
const BYTES: usize = 1_000_000;

/// Of these, more than can lie unread.
const COUNT: u64 = 120;

#[test]
fn a_subscriber_that_is_too_far_behind_is_cut_off_and_told_so() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    for stamp in 0..COUNT {
        publisher.publish(stamp, KIND, &[7; BYTES]).unwrap();
    }
    until(|| subscriber.reconnects() > Some(0));
    let (mut bytes, mut is_told) = (0, false);
    for _ in 0..60_000 {
        subscriber.wait(1_000_000);
        let polled = subscriber.poll(1, &mut |event| match event {
            Event::Message(message) => bytes += message.payload.len(),
            other => is_told = other == Event::Gap(Gap::Reconnected),
        });
        polled.unwrap();
        if is_told {
            break;
        }
    }
    assert!(is_told && bytes <= MAX_UNREAD_BYTES, "told: {is_told}, after {bytes} bytes");
    // It may be cut off once more before it has looked.
    let is_back = (0..60_000).any(|_| {
        publisher.publish(COUNT, KIND, b"after").unwrap();
        subscriber.wait(1_000_000);
        let mut came = false;
        let mut look = |event: Event<'_>| came |= matches!(event, Event::Message(found) if found.stamp == COUNT);
        subscriber.poll(64, &mut look).unwrap();
        came
    });
    assert!(is_back, "nothing comes any more");
}

#[test]
fn a_puller_of_a_group_that_is_too_far_behind_is_cut_off_and_told_so() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut puller = puller(&bus, Delivery::AtMostOnce);
    let mut pusher = pusher(&bus, Delivery::AtMostOnce);
    for stamp in 0..COUNT {
        pusher.push(stamp, KIND, &[7; BYTES]).unwrap();
    }
    until(|| puller.reconnects() > Some(0));
    let error = pull_error(&mut *puller);
    assert!(matches!(&error, ReceiveError::Gone(sentence) if sentence.contains(QUEUE)), "{error}");
}
