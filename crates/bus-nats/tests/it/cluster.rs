//! A cluster that has no leader, as it is while its servers start: it answers, and keeps nothing yet.

use tickpath_bus_api::conformance::{OwnedEvent, next_event};
use tickpath_bus_api::{Connection, Delivery, Policy, Start, TopicConfig};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::{Wait, sleep_ns};

use crate::nats_server::NatsServer;
use crate::opened::{KIND, QUEUE, TOPIC, pull, puller, pusher};

#[test]
fn a_cluster_without_a_leader_is_waited_for_by_who_receives_and_told_to_who_sends() {
    let [first, mut second] = NatsServer::start_cluster();
    let url = format!("{}?jetstream", first.url());
    let bus = until(|| NatsBus::connect(&url));
    // Until it is there, a subscriber asks for its topic again and again.
    let mut subscriber = until(|| bus.subscriber(TOPIC, Start::Oldest, Wait::Block));
    second.kill();
    // It takes the server some seconds to know.
    let told = until(|| match bus.waiting(QUEUE) {
        Err(e) if e.to_string().contains("has no leader") => Ok(e.to_string()),
        other => Err(format!("{other:?}")),
    });
    assert!(told.contains("try again in a moment, or start its other servers"), "{told}");
    let publisher = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).err().expect("nobody keeps it");
    assert!(publisher.to_string().contains("has no leader"), "{publisher}");
    assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} without a leader")).unwrap(), 0);
    second.restart();
    let mut publisher = until(|| bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)));
    publisher.publish(1, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"after"));
    pusher(&bus, Delivery::AtLeastOnce).push(2, KIND, b"after").unwrap();
    assert_eq!(pull(&mut *puller(&bus, Delivery::AtLeastOnce)), (2, false));
}

/// What comes of it when it no longer fails, which is waited for up to a minute or more.
fn until<T, E: std::fmt::Display>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let mut last = String::new();
    for _ in 0..600 {
        match attempt() {
            Ok(done) => return done,
            Err(e) => last = e.to_string(),
        }
        sleep_ns(100_000_000);
    }
    panic!("it fails for ever: {last}");
}
