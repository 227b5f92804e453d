//! What stays when the server is killed: what was asked to, and nothing else; and that is told.

use tickpath_bus_api::conformance::{OwnedEvent, next_event, pull_stamps};
use tickpath_bus_api::{Connection, Delivery, Policy, QueueConfig, ReceiveError, Start, TopicConfig};
use tickpath_clock::Wait;

use crate::nats_server::NatsServer;
use crate::opened::{KIND, QUEUE, TOPIC, bus, publisher, pull, pull_error, puller, pusher};

#[test]
fn what_is_durable_survives_its_server() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut pusher = pusher(&bus, Delivery::AtLeastOnce);
    let mut puller = puller(&bus, Delivery::AtLeastOnce);
    publisher(&bus).publish(1, KIND, b"kept").unwrap();
    pusher.push_batch(1, KIND, &[b"one", b"two"]).unwrap();
    server.kill();
    server.restart();
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false); 2]);
    puller.acknowledge().unwrap();
    pusher.push(2, KIND, b"three").unwrap();
    assert_eq!(pull(&mut *puller), (2, false));
    let mut subscriber = bus.subscriber(TOPIC, Start::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"kept"));
}

#[test]
fn a_queue_in_memory_that_its_server_lost_is_told_once() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    let mut pusher = pusher(&bus, Delivery::AtLeastOnce);
    let mut puller = puller(&bus, Delivery::AtLeastOnce);
    pusher.push(1, KIND, b"lost").unwrap();
    assert_eq!(pull(&mut *puller), (1, false));
    server.kill();
    server.restart();
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::Gone(_)) && error.may_pass(), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(QUEUE) && sentence.contains("what was in it is gone; it is made anew"), "{sentence}");
    pusher.push(2, KIND, b"anew").unwrap();
    // What was handed over is gone: this is not the message that has its place now.
    puller.acknowledge().unwrap();
    assert_eq!(pull(&mut *puller), (2, false));
    puller.acknowledge().unwrap();
}

#[test]
fn what_is_there_and_kept_otherwise_is_refused() {
    let server = NatsServer::start(&[]);
    let memory = bus(&format!("{}?jetstream", server.url()));
    let durable = bus(&format!("{}?jetstream&durable", server.url()));
    let copied = bus(&format!("{}?jetstream&durable&replicas=3", server.url()));
    let (queue, topic) = (QueueConfig::new(Delivery::AtLeastOnce), TopicConfig::new(Policy::Overwrite));
    for (there, wanted, words) in [
        (&memory, &durable, ["in memory, with replicas=1", "in files ('durable'), with replicas=1 was asked for"]),
        (&durable, &memory, ["in files ('durable'), with replicas=1", "in memory, with replicas=1 was asked for"]),
    ] {
        there.pusher(QUEUE, &queue).unwrap_or_else(|e| panic!("{e}"));
        there.publisher(TOPIC, &topic).unwrap_or_else(|e| panic!("{e}"));
        let errors = [
            wanted.pusher(QUEUE, &queue).err(),
            wanted.puller(QUEUE, &queue, Wait::Block).err(),
            wanted.publisher(TOPIC, &topic).err(),
        ];
        for error in errors.map(|error| error.expect("it is kept otherwise").to_string()) {
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        there.remove_queue(QUEUE).unwrap();
        there.remove(TOPIC).unwrap();
    }
    // One server has no others to copy to.
    let error = copied.publisher(TOPIC, &topic).err().expect("there is one server").to_string();
    assert!(error.contains("replicas"), "{error}");
}
