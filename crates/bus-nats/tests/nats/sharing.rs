//! Sharing between JetStream pullers: none holds back messages that it does not hand over.

use tickpath_bus_api::conformance::pull_stamps;
use tickpath_bus_api::{Connection, DeliveryGuarantee, Puller, QueueConfig};
use tickpath_clock::Wait;

use crate::helpers::{KIND, QUEUE, bus, puller, pusher};
use crate::nats_server::NatsServer;
use crate::server::publish_foreign;

#[test]
fn a_second_puller_gets_new_messages_while_the_first_works() {
    let server = NatsServer::start(&[]);
    for delivery in DeliveryGuarantee::ALL {
        let bus = bus(&format!("{}?jetstream", server.url()));
        let mut pusher = pusher(&bus, delivery);
        pusher.push_batch(1, KIND, &[&b"job"[..]; 3]).unwrap();
        let mut busy = puller(&bus, delivery);
        assert_eq!(pull_many(&mut *busy, 1024), 3, "all that are there come together");
        pusher.push_batch(2, KIND, &[&b"job"[..]; 10]).unwrap();
        let mut other = puller(&bus, delivery);
        assert_eq!(pull_stamps(&mut *other, 10), [(2, false); 10]);
        other.acknowledge().unwrap();
        busy.acknowledge().unwrap();
        assert_eq!(bus.count_waiting(QUEUE).unwrap(), Some(0));
        // Pullers would recreate a removed queue, so they are dropped first.
        drop((busy, other));
        bus.remove_queue(QUEUE).unwrap();
    }
}

#[test]
fn messages_too_long_for_one_request_come_one_by_one() {
    let server = NatsServer::start_by("max_payload: 12582912");
    let bus = bus(&format!("{}?jetstream", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    let long = vec![7; 9 << 20];
    for (stamp, payload) in [(0, &b"short"[..]), (1, &long[..]), (2, &long[..]), (3, &b"short"[..])] {
        pusher.push(stamp, KIND, payload).unwrap();
    }
    let received = pull_stamps(&mut *puller(&bus, DeliveryGuarantee::AtLeastOnce), 4);
    assert_eq!(received, [(0, false), (1, false), (2, false), (3, false)]);
}

#[test]
fn foreign_messages_are_pulled_under_the_configured_kind() {
    let server = NatsServer::start(&[]);
    for (query, delivery) in [("?jetstream", DeliveryGuarantee::AtLeastOnce), ("", DeliveryGuarantee::AtMostOnce)] {
        let bus = bus(&format!("{}{query}", server.url()));
        let config = QueueConfig { foreign: Some(99), ..QueueConfig::new(delivery) };
        let mut puller = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        publish_foreign(server.port(), &format!("queue/{QUEUE}"), &["hello", "world"]);
        let mut received = Vec::new();
        for _ in 0..60_000 {
            let mut keep = |kind, payload: &[u8]| received.push((kind, String::from_utf8_lossy(payload).into_owned()));
            puller.pull(1, &mut |pulled| keep(pulled.message.kind, pulled.message.payload)).unwrap();
            if received.len() == 2 {
                break;
            }
            puller.wait(1_000_000);
        }
        assert_eq!(received, [(99, "hello".to_owned()), (99, "world".to_owned())], "{query}");
        puller.acknowledge().unwrap();
        drop(puller);
        bus.remove_queue(QUEUE).unwrap();
    }
}

/// Returns the number of messages of the first pull that finds any.
fn pull_many(puller: &mut dyn Puller, limit: usize) -> usize {
    for _ in 0..60_000 {
        let count = puller.pull(limit, &mut |_| {}).unwrap();
        if count > 0 {
            return count;
        }
        puller.wait(1_000_000);
    }
    panic!("nothing came");
}
