//! A subscriber or puller too slow for core NATS: its unread bytes are bounded, and the loss is reported.

use tickpath_bus_api::conformance::{OwnedEvent, next_event, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, Gap, Policy, ReceiveError, SubscriptionEvent, TopicConfig};
use tickpath_bus_nats::MAX_UNREAD_BYTES;
use tickpath_clock::Wait;

use crate::helpers::{KIND, QUEUE, TOPIC, bus, publisher, pull_error, puller, pusher, relay_url, subscriber};
use crate::nats_server::NatsServer;

/// Size at which a limit by message count would not bound the memory.
const BYTES: usize = 1_000_000;

/// Number of messages, more than the limit of unread bytes holds.
const COUNT: u64 = 120;

#[test]
fn a_slow_subscriber_is_cut_off_and_gets_a_gap() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    for stamp in 0..COUNT {
        publisher.publish(stamp, KIND, &[7; BYTES]).unwrap();
    }
    wait_until(|| subscriber.reconnects() > Some(0));
    let (mut bytes, mut is_reported) = (0, false);
    for _ in 0..60_000 {
        subscriber.wait(1_000_000);
        let polled = subscriber.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) => bytes += message.payload.len(),
            other => is_reported = other == SubscriptionEvent::Gap(Gap::Reconnected),
        });
        polled.unwrap();
        if is_reported {
            break;
        }
    }
    assert!(is_reported && bytes <= MAX_UNREAD_BYTES, "told: {is_reported}, after {bytes} bytes");
    // The subscriber may be disconnected once more before it polls.
    let is_back = (0..60_000).any(|_| {
        publisher.publish(COUNT, KIND, b"after").unwrap();
        subscriber.wait(1_000_000);
        let mut received = false;
        let mut look = |event: SubscriptionEvent<'_>| {
            received |= matches!(event, SubscriptionEvent::Message(found) if found.stamp == COUNT)
        };
        subscriber.poll(64, &mut look).unwrap();
        received
    });
    assert!(is_back, "nothing comes any more");
}

#[test]
fn a_jetstream_subscriber_bounds_its_read_ahead_in_bytes() {
    /// Bytes that the client has requested, and those in socket buffers.
    const MAX_AHEAD_BYTES: u64 = 64 << 20;
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let far = bus(&format!("{}?jetstream", server.url()));
    let large = TopicConfig { capacity_bytes: 256 << 20, ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = far.publisher(TOPIC, &large).unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = subscriber(&bus(&format!("{}?jetstream", relay_url(&relay))), Wait::Block);
    for stamp in 0..COUNT {
        publisher.publish(stamp, KIND, &[7; BYTES]).unwrap();
    }
    wait_until(|| relay.answered() > 24 << 20);
    for stamp in 0..COUNT {
        let ahead = relay.answered().saturating_sub(stamp * BYTES as u64);
        assert!(ahead <= MAX_AHEAD_BYTES, "{ahead} bytes beyond message {stamp}");
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(stamp, stamp, &[7; BYTES]), "{stamp}");
    }
}

#[test]
fn a_slow_group_puller_is_cut_off_and_reports_the_loss() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut puller = puller(&bus, DeliveryGuarantee::AtMostOnce);
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtMostOnce);
    for stamp in 0..COUNT {
        pusher.push(stamp, KIND, &[7; BYTES]).unwrap();
    }
    wait_until(|| puller.reconnects() > Some(0));
    let error = pull_error(&mut *puller);
    assert!(matches!(&error, ReceiveError::MessagesLost(sentence) if sentence.contains(QUEUE)), "{error}");
}
