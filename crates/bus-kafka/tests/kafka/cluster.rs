//! Three servers, one of which is killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tickpath_bus_api::conformance::{OwnedEvent, next_event};
use tickpath_bus_api::{Connection, Fate, Policy, PublishError, Publisher, StartPosition, TopicConfig};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::Wait;

use crate::kafka_server::{KafkaServer, acquire_permit};
use crate::until;

const KIND: u8 = 16;

/// Min number of messages before and after the leader's death.
const ROUND: u64 = 200;

#[test]
fn a_killed_leader_loses_nothing() {
    let _turn = acquire_permit(3);
    let mut servers = KafkaServer::start_cluster();
    let hosts = servers.each_ref().map(KafkaServer::address).join(",");
    check_replica_refusals(&hosts);
    let bus = connect(&format!("kafka://{hosts}?replicas=3"));
    let topic = "fallen";
    let opened = bus.publisher(topic, &TopicConfig::new(Policy::Keep));
    let mut publisher = opened.unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = bus.subscriber(topic, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));

    let (acknowledged, is_enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let published = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish_until(&mut *publisher, &acknowledged, &is_enough));
        // Set even when this thread panics, so that the other one ends.
        let _enough = RaisedFlagGuard(&is_enough);
        let so_far = || acknowledged.load(Ordering::SeqCst);
        let at_least = |count: u64| until(|| publishing.is_finished() || so_far() >= count);
        at_least(ROUND);
        servers[leader_of(&hosts, topic)].kill();
        at_least(so_far() + ROUND);
        is_enough.store(true, Ordering::SeqCst);
        publishing.join().unwrap()
    });
    assert!(published >= 2 * ROUND, "{published} messages");
    for stamp in 0..published {
        match next_event(&mut *subscriber) {
            OwnedEvent::Message { stamp: came, .. } => assert_eq!(came, stamp, "of {published}"),
            other => panic!("{other:?} instead of message {stamp}"),
        }
    }
}

/// Publishes messages, whose stamps are their numbers, until `is_enough`; returns their number. Resends messages in
/// doubt, and republishes those that are not published.
fn publish_until(publisher: &mut dyn Publisher, acknowledged: &AtomicU64, is_enough: &AtomicBool) -> u64 {
    for stamp in 0.. {
        if is_enough.load(Ordering::SeqCst) {
            return stamp;
        }
        until(|| match publisher.publish(stamp, KIND, b"ours") {
            Ok(()) => true,
            Err(PublishError::Unknown(_)) => {
                until(|| publisher.resend().is_ok());
                true
            }
            Err(error) => {
                assert!(error.is_transient() && error.fate() == Fate::NotPublished, "{error}");
                false
            }
        });
        acknowledged.store(stamp + 1, Ordering::SeqCst);
    }
    unreachable!("numbers do not end")
}

/// Checks that a topic with too few replicas, and more replicas than servers, are refused.
fn check_replica_refusals(hosts: &str) {
    let open = |url: &str, topic: &str| connect(url).publisher(topic, &TopicConfig::new(Policy::Keep)).map(drop);
    open(&format!("kafka://{hosts}"), "alone").unwrap_or_else(|e| panic!("{e}"));
    let few = open(&format!("kafka://{hosts}?replicas=3"), "alone").expect_err("it has one copy").to_string();
    assert!(few.contains("'alone' on 1 servers, not on the 3"), "{few}");
    let many = open(&format!("kafka://{hosts}?replicas=4"), "many").expect_err("there are three").to_string();
    assert!(many.contains("fewer servers than replicas"), "{many}");
}

fn connect(url: &str) -> KafkaBus {
    KafkaBus::connect(url).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the index of the server that leads a topic, from 0.
fn leader_of(hosts: &str, topic: &str) -> usize {
    let lookup: BaseConsumer = ClientConfig::new().set("bootstrap.servers", hosts).create().unwrap();
    let found = lookup.fetch_metadata(Some(topic), Duration::from_secs(30)).unwrap();
    let leader = found.topics()[0].partitions()[0].leader();
    usize::try_from(leader - 1).expect("it has a leader")
}

/// Guard that sets its flag on drop.
struct RaisedFlagGuard<'a>(&'a AtomicBool);

impl Drop for RaisedFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
