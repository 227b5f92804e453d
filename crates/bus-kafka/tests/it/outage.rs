//! A server that stands still, falls, or has lost the end of a topic: what became of a message is said, and nothing
//! comes twice.

use std::ops::Range;

use tickpath_bus_api::conformance::{OwnedEvent, go_on, halt, next_event, pull_stamps};
use tickpath_bus_api::{
    Connection, Delivery, Fate, Gap, Policy, PublishError, Publisher, QueueConfig, ReceiveError, Start, Subscriber,
    TopicConfig,
};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::Wait;

use crate::kafka_server::{KafkaServer, in_turn};
use crate::until;

const KIND: u8 = 16;
const TOPIC: &str = "outage";
const QUEUE: &str = "outage";

#[test]
fn what_is_unknown_is_said_so_and_comes_once_when_it_is_sent_again() {
    let _turn = in_turn();
    let mut server = KafkaServer::start("", "");
    let bus = connect(&server);
    let mut publisher = publisher(&bus);
    let mut subscriber = subscriber(&bus);
    let mut pusher =
        bus.pusher(QUEUE, &QueueConfig::new(Delivery::AtLeastOnce)).unwrap_or_else(|e| panic!("no pusher: {e}"));
    publisher.publish(0, KIND, b"ours").unwrap();

    // They are sent, and the server has them when it goes on.
    halt(server.pid());
    let payloads: [&[u8]; 3] = [b"one", b"two", b"three"];
    let (published, pushed) = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| pusher.push(1, KIND, b"ours"));
        (publisher.publish_batch(1, KIND, &payloads), pushing.join().unwrap())
    });
    go_on(server.pid());
    let failed = published.expect_err("the server stood still");
    assert!(matches!(failed.error, PublishError::Unknown(_)), "{failed}");
    assert_eq!((failed.done, failed.unknown().collect::<Vec<_>>()), (0, vec![0, 1, 2]), "{failed}");
    assert_eq!(pushed.expect_err("the server stood still").fate(), Fate::Unknown);
    until(|| publisher.resend().is_ok());
    publisher.resend().expect("nothing is unknown any more");
    publisher.publish(2, KIND, b"ours").unwrap();
    let expected: [(u64, &[u8]); 5] = [(0, b"ours"), (1, b"one"), (1, b"two"), (1, b"three"), (2, b"ours")];
    for (stamp, payload) in expected {
        assert_eq!(next_message(&mut *subscriber), (stamp, payload.to_vec()));
    }
    until(|| pusher.resend().is_ok());
    // The first copy may be there, too.
    until(|| matches!(bus.waiting(QUEUE), Ok(Some(1..=2))));
    assert!(!bus.queue_capabilities().exact_resend);

    // Nobody is there, and that is known before anything is sent.
    server.kill();
    let first = publisher.publish(3, KIND, b"ours").expect_err("the server is gone");
    assert!(first.may_pass(), "{first}");
    let second = publisher.publish(4, KIND, b"ours").expect_err("the server is still gone");
    assert!(matches!(second, PublishError::Unavailable(_)), "{second}");
    assert!(second.to_string().contains("refused the connection"), "{second}");
    server.restart();
    until(|| match publisher.publish(5, KIND, b"ours") {
        Ok(()) => true,
        Err(PublishError::Unavailable(_)) => false,
        Err(other) => panic!("{other}"),
    });
    assert_eq!(next_message(&mut *subscriber), (5, b"ours".to_vec()));
}

#[test]
fn the_end_of_a_topic_that_is_lost_is_a_gap_and_what_is_old_is_not_new() {
    let _turn = in_turn();
    let mut server = KafkaServer::start("", "");
    let bus = connect(&server);
    publish(&bus, 0..100);
    let mut subscriber = subscriber(&bus);
    publish(&bus, 100..110);
    for stamp in 100..110 {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(stamp, stamp, b"ours"));
    }
    let token = subscriber.token().expect("it stands somewhere");
    server.kill();
    server.cut(TOPIC, 50);
    server.restart();
    let bus = connect(&server);
    publish(&bus, 200..203);
    let after = bus.subscriber(TOPIC, Start::After(token), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    for mut subscriber in [subscriber, after] {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        for (sequence, stamp) in (50..).zip(200..203) {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(sequence, stamp, b"ours"));
        }
    }
}

#[test]
fn the_end_of_a_queue_that_is_lost_is_told_and_what_is_new_comes() {
    let _turn = in_turn();
    let mut server = KafkaServer::start("", "");
    let bus = connect(&server);
    let config = QueueConfig::new(Delivery::AtLeastOnce);
    let push = |bus: &KafkaBus, stamps: Range<u64>| {
        let mut pusher = bus.pusher("cut", &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
        stamps.for_each(|stamp| pusher.push(stamp, KIND, b"ours").unwrap());
    };
    push(&bus, 0..60);
    let mut puller = bus.puller("cut", &config, Wait::Block).unwrap_or_else(|e| panic!("no puller: {e}"));
    assert_eq!(pull_stamps(&mut *puller, 60).len(), 60);
    puller.acknowledge().unwrap();
    server.kill();
    // Of the ten of the first partition, five stay.
    server.cut(".cut-queue", 5);
    server.restart();
    push(&connect(&server), 100..112);

    let (mut came, mut is_told) = (Vec::new(), false);
    until(|| {
        let pulled = puller.pull(8, &mut |pulled| came.push(pulled.message.stamp));
        match pulled {
            Ok(_) => {}
            Err(ReceiveError::Gone(sentence)) => is_told |= sentence.contains("cut short"),
            Err(other) => panic!("{other}"),
        }
        came.len() >= 12
    });
    came.sort();
    assert_eq!(came, (100..112).collect::<Vec<_>>());
    assert!(is_told);
    puller.acknowledge().unwrap();
    until(|| matches!(bus.waiting("cut"), Ok(Some(0))));
}

fn connect(server: &KafkaServer) -> KafkaBus {
    KafkaBus::connect(&server.url()).unwrap_or_else(|e| panic!("{e}"))
}

fn publisher(bus: &KafkaBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &KafkaBus) -> Box<dyn Subscriber> {
    bus.subscriber(TOPIC, Start::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

/// Publishes messages whose stamps are these, each alone.
fn publish(bus: &KafkaBus, stamps: Range<u64>) {
    let mut publisher = publisher(bus);
    stamps.for_each(|stamp| publisher.publish(stamp, KIND, b"ours").unwrap());
}

/// Stamp and payload of the next event, which is a message. Its place is not looked at: a copy that is dropped has one.
fn next_message(subscriber: &mut dyn Subscriber) -> (u64, Vec<u8>) {
    match next_event(subscriber) {
        OwnedEvent::Message { stamp, payload, .. } => (stamp, payload),
        other => panic!("{other:?}"),
    }
}
