//! Behaviour that needs JetStream: keeping a topic or a queue beyond a connection, and losing it with the server.

use tickpath_bus_api::conformance::{OwnedEvent, next_event};
use tickpath_bus_api::{
    ConnectError, Connection, DeliveryGuarantee, Gap, Policy, ReceiveError, StartPosition, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::Wait;

use crate::helpers::{KIND, QUEUE, TOPIC, bus, publisher, pull, pull_error, puller, pusher, relay_url, subscriber};
use crate::nats_server::NatsServer;
use crate::server::publish_foreign;

#[test]
fn a_cut_connection_misses_nothing() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut publisher = publisher(&jetstream(&server.url()));
    let mut subscriber = subscriber(&jetstream(&relay_url(&relay)), Wait::Block);
    for round in 0..5 {
        publisher.publish(2 * round, KIND, b"before").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(2 * round, 2 * round, b"before"));
        relay.cut_off();
        publisher.publish(2 * round + 1, KIND, b"meanwhile").unwrap();
        relay.heal();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(2 * round + 1, 2 * round + 1, b"meanwhile"));
        assert_eq!((publisher.reconnects(), subscriber.reconnects()), (Some(0), Some(round + 1)));
    }
}

#[test]
fn messages_overwritten_during_a_cut_are_counted() {
    const COUNT: u64 = 100;
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let small = TopicConfig { capacity_bytes: 64 << 10, ..TopicConfig::new(Policy::Overwrite) };
    let mut publisher = jetstream(&server.url()).publisher(TOPIC, &small).unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = subscriber(&jetstream(&relay_url(&relay)), Wait::Yield);
    relay.cut_off();
    for stamp in 0..COUNT {
        publisher.publish(stamp, KIND, &[7; 4096]).unwrap();
    }
    relay.heal();
    let OwnedEvent::Gap(Gap::Missed(missed)) = next_event(&mut *subscriber) else {
        panic!("no gap, though the topic is small")
    };
    assert!(0 < missed && missed < COUNT, "{missed} of {COUNT} missed");
    for stamp in missed..COUNT {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(stamp, stamp, &[7; 4096]));
    }
}

#[test]
fn a_topic_lost_by_its_server_reports_a_gap_and_starts_over() {
    let mut server = NatsServer::start(&[]);
    let bus = jetstream(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    publisher.publish_batch(1, KIND, &[b"one", b"two"]).unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"one"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(1, 1, b"two"));
    server.kill();
    server.restart();
    publisher.publish(2, KIND, b"anew").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 2, b"anew"));
}

#[test]
fn a_publisher_recreates_a_removed_topic() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    publisher.publish(1, KIND, b"before").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"before"));
    bus.remove_topic(TOPIC).unwrap();
    publisher.publish(2, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 2, b"after"));
}

#[test]
fn a_topic_has_one_policy() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server.url());
    let open = |policy| bus.publisher(TOPIC, &TopicConfig::new(policy));
    open(Policy::Keep).unwrap_or_else(|e| panic!("{e}"));
    let error = open(Policy::Overwrite).err().expect("it is there by another policy");
    assert!(matches!(error, ConnectError::Server { .. }), "{error}");
    assert!(error.to_string().contains("by the policy 'keep'; open it by that one, or remove it first"), "{error}");
    bus.remove_topic(TOPIC).unwrap();
    open(Policy::Overwrite).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn foreign_messages_have_a_sequence_number_and_queues_skip_them() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server.url());
    let mut publisher = publisher(&bus);
    publish_foreign(server.port(), TOPIC, &["hello", "{\"price\": 64000.25}"]);
    publisher.publish(1, KIND, b"ours").unwrap();
    for (start, wait) in [(StartPosition::Oldest, Wait::Yield), (StartPosition::Sequence(1), Wait::Block)] {
        let mut subscriber = bus.subscriber(TOPIC, start, wait).unwrap_or_else(|e| panic!("{e}"));
        if start == StartPosition::Oldest {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(Some(0), "hello"));
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(Some(1), "{\"price\": 64000.25}"), "{start:?}");
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(2, 1, b"ours"), "{start:?}");
    }
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    publish_foreign(server.port(), &format!("queue/{QUEUE}"), &["hello", "{\"price\": 64000.25}"]);
    pusher.push(2, KIND, b"ours").unwrap();
    assert_eq!(pull(&mut *puller(&bus, DeliveryGuarantee::AtLeastOnce)), (2, false));
}

#[test]
fn a_puller_acknowledges_earlier_messages_after_a_cut() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let (near, far) = (jetstream(&relay_url(&relay)), jetstream(&server.url()));
    let mut pusher = pusher(&far, DeliveryGuarantee::AtLeastOnce);
    let mut first = puller(&near, DeliveryGuarantee::AtLeastOnce);
    for stamp in 0..4 {
        pusher.push(stamp, KIND, b"job").unwrap();
    }
    assert_eq!((pull(&mut *first), pull(&mut *first)), ((0, false), (1, false)));
    relay.cut_off();
    relay.heal();
    first.acknowledge().unwrap();
    assert_eq!((pull(&mut *first), first.reconnects()), ((2, false), Some(1)));
    drop(first);
    // Unacknowledged messages come again at once, acknowledged ones do not.
    let mut second = puller(&far, DeliveryGuarantee::AtLeastOnce);
    assert_eq!((pull(&mut *second), pull(&mut *second)), ((2, true), (3, false)));
    second.acknowledge().unwrap();
    assert_eq!(far.count_waiting(QUEUE).unwrap(), Some(0));
}

#[test]
fn pushed_messages_stay_until_they_are_acknowledged() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server.url());
    assert_eq!(bus.count_waiting(QUEUE).unwrap(), Some(0));
    let payloads = vec![&b"job"[..]; 3000];
    pusher(&bus, DeliveryGuarantee::AtMostOnce).push_batch(1, KIND, &payloads).unwrap();
    assert_eq!(bus.count_waiting(QUEUE).unwrap(), Some(3000));
    bus.remove_queue(QUEUE).unwrap();
    assert_eq!(bus.count_waiting(QUEUE).unwrap(), Some(0));
}

#[test]
fn a_server_without_jetstream_is_reported() {
    let server = NatsServer::start_plain();
    let error = NatsBus::connect(&format!("{}?jetstream", server.url())).expect_err("it keeps nothing");
    let remedy = "has no JetStream; start nats-server with -js, or leave ?jetstream away";
    assert_eq!(error.to_string(), format!("{}: {remedy}", server.url()));
}

#[test]
fn a_server_without_jetstream_is_skipped() {
    let (first, second, plain) = (NatsServer::start(&[]), NatsServer::start(&[]), NatsServer::start_plain());
    let relay = first.relayed();
    let others = [&plain, &second].map(|server| format!("127.0.0.1:{}", server.port())).join(",");
    jetstream(&format!("nats://{others}"));
    let bus = jetstream(&format!("{},{others}", relay_url(&relay)));
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    publisher.publish(1, KIND, b"before").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"before"));
    relay.lead_to(plain.port());
    relay.break_off();
    publisher.publish(2, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 2, b"after"));
    pusher.push(3, KIND, b"after").unwrap();
    assert_eq!(jetstream(&second.url()).count_waiting(QUEUE).unwrap(), Some(1), "it is kept there");
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)), "{error}");
    assert_eq!(pull(&mut *puller), (3, false));
}

fn jetstream(url: &str) -> NatsBus {
    bus(&format!("{url}?jetstream"))
}
