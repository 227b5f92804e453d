//! Durability across a killed server: exactly the durable topics and queues survive, and every loss is reported.

use tempfile::TempDir;
use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, next_event, pull_stamps, wait_until};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Gap, Policy, Publisher, QueueConfig, ReceiveError, StartPosition, Subscriber,
    TopicConfig,
};
use tickpath_clock::Wait;

use crate::helpers::{KIND, QUEUE, TOPIC, bus, publisher, pull, pull_error, puller, pusher, relay_url, subscriber};
use crate::nats_server::NatsServer;

#[test]
fn durable_messages_survive_a_server_restart() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    publisher(&bus).publish(1, KIND, b"kept").unwrap();
    pusher.push_batch(1, KIND, &[b"one", b"two"]).unwrap();
    server.kill();
    server.restart();
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false); 2]);
    puller.acknowledge().unwrap();
    pusher.push(2, KIND, b"three").unwrap();
    assert_eq!(pull(&mut *puller), (2, false));
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"kept"));
}

#[test]
fn a_topic_restored_from_older_data_reports_a_gap_and_resumes() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    let copy = publish_around_a_backup(&mut server, &mut *publisher, &mut *subscriber);
    let token = subscriber.resume_token().expect("it is there");
    server.kill();
    server.restore(&copy);
    server.restart();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    let resumed = bus.subscriber(TOPIC, StartPosition::After(token), Wait::Block);
    let mut resumed = resumed.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *resumed), OwnedEvent::Gap(Gap::Reconnected));
    publisher.publish(3, KIND, b"four").unwrap();
    for subscriber in [&mut subscriber, &mut resumed] {
        assert_eq!(next_event(&mut **subscriber), OwnedEvent::at(1, 3, b"four"));
        check_no_event(&mut **subscriber);
    }
}

#[test]
fn a_late_subscriber_sees_new_messages_of_a_restored_topic() {
    let mut server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut subscriber = subscriber(&bus(&format!("{}?jetstream&durable", relay_url(&relay))), Wait::Block);
    let mut publisher = publisher(&bus(&format!("{}?jetstream&durable", server.url())));
    let copy = publish_around_a_backup(&mut server, &mut *publisher, &mut *subscriber);
    relay.cut_off();
    server.kill();
    server.restore(&copy);
    server.restart();
    publisher.publish(3, KIND, b"four").unwrap();
    relay.heal();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(1, 3, b"four"));
}

#[test]
fn a_token_resumes_at_the_new_messages_of_a_restored_topic() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut first = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    let copy = publish_around_a_backup(&mut server, &mut *publisher, &mut *first);
    let token = first.resume_token().expect("it is there");
    drop(first);
    server.kill();
    server.restore(&copy);
    server.restart();
    publisher.publish(3, KIND, b"four").unwrap();
    for _ in 0..2 {
        // From the text, as another process would resume.
        let token = token.to_string().parse().expect("it is a token");
        let mut second =
            bus.subscriber(TOPIC, StartPosition::After(token), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(next_event(&mut *second), OwnedEvent::Gap(Gap::Reconnected));
        assert_eq!(next_event(&mut *second), OwnedEvent::at(1, 3, b"four"));
        check_no_event(&mut *second);
    }
}

#[test]
fn a_queue_restored_from_older_data_is_reported_once() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher.push(1, KIND, b"kept").unwrap();
    server.kill();
    let copy = server.back_up();
    server.restart();
    pusher.push(2, KIND, b"lost").unwrap();
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false), (2, false)]);
    server.kill();
    server.restore(&copy);
    server.restart();
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)) && error.to_string().contains("some time ago"), "{error}");
    pusher.push(3, KIND, b"new").unwrap();
    // Another message has the sequence number of the delivered one now.
    puller.acknowledge().unwrap();
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false), (3, false)]);
    puller.acknowledge().unwrap();
}

#[test]
fn messages_of_a_restored_queue_are_not_acknowledged_or_returned() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher.push(1, KIND, b"kept").unwrap();
    server.kill();
    let copy = server.back_up();
    server.restart();
    pusher.push(2, KIND, b"lost").unwrap();
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    let mut tags = Vec::new();
    wait_until(|| {
        puller.wait(1_000_000);
        puller.pull(2, &mut |pulled| tags.push(pulled.tag)).unwrap();
        tags.len() == 2
    });
    server.kill();
    server.restore(&copy);
    server.restart();
    // The puller has not reported yet that the queue was replaced.
    let error = puller.give_back(tags[0]).unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
    let error = puller.acknowledge().unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)), "{error}");
    pusher.push(3, KIND, b"new").unwrap();
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false), (3, false)]);
    puller.acknowledge().unwrap();
}

#[test]
fn a_replaced_message_is_not_acknowledged() {
    let mut server = NatsServer::start(&[]);
    let relay = server.relayed();
    let mut pusher = pusher(&bus(&format!("{}?jetstream&durable", server.url())), DeliveryGuarantee::AtLeastOnce);
    pusher.push(1, KIND, b"kept").unwrap();
    server.kill();
    let copy = server.back_up();
    server.restart();
    pusher.push(2, KIND, b"lost").unwrap();
    let mut puller = puller(&bus(&format!("{}?jetstream&durable", relay_url(&relay))), DeliveryGuarantee::AtLeastOnce);
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false), (2, false)]);
    relay.cut_off();
    server.kill();
    server.restore(&copy);
    server.restart();
    // The queue has its old length again before the puller looks.
    pusher.push(3, KIND, b"new").unwrap();
    relay.heal();
    let error = puller.acknowledge().unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)), "{error}");
    assert_eq!(pull_stamps(&mut *puller, 2), [(1, false), (3, false)]);
    puller.acknowledge().unwrap();
}

#[test]
fn at_most_once_hands_over_no_message_that_the_server_restored() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream&durable", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtMostOnce);
    pusher.push(1, KIND, b"kept").unwrap();
    server.kill();
    let copy = server.back_up();
    server.restart();
    pusher.push(2, KIND, b"lost").unwrap();
    let mut puller = puller(&bus, DeliveryGuarantee::AtMostOnce);
    // Until the first message is buffered here.
    puller.wait(60_000_000_000);
    server.kill();
    server.restore(&copy);
    server.restart();
    wait_until(|| puller.reconnects() == Some(1));
    let (mut received, mut losses) = (Vec::new(), 0);
    wait_until(|| {
        match puller.pull(8, &mut |pulled| received.push(pulled.message.stamp)) {
            Err(ReceiveError::MessagesLost(_)) => losses += 1,
            pulled => _ = pulled.unwrap(),
        }
        puller.wait(1_000_000);
        !received.is_empty()
    });
    assert!(losses > 0, "it is told before the message is handed over that comes again");
    assert_eq!(received, [1]);
}

#[test]
fn a_memory_queue_lost_by_its_server_is_reported_once() {
    let mut server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher.push(1, KIND, b"lost").unwrap();
    assert_eq!(pull(&mut *puller), (1, false));
    server.kill();
    server.restart();
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)) && error.is_transient(), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(QUEUE) && sentence.contains("its messages are gone; it is recreated"), "{sentence}");
    pusher.push(2, KIND, b"anew").unwrap();
    // The delivered message is lost: another one has its sequence number now.
    puller.acknowledge().unwrap();
    assert_eq!(pull(&mut *puller), (2, false));
    puller.acknowledge().unwrap();
}

#[test]
fn a_topic_or_queue_with_other_storage_is_refused() {
    let server = NatsServer::start(&[]);
    let memory = bus(&format!("{}?jetstream", server.url()));
    let durable = bus(&format!("{}?jetstream&durable", server.url()));
    let copied = bus(&format!("{}?jetstream&durable&replicas=3", server.url()));
    let (queue, topic) = (QueueConfig::new(DeliveryGuarantee::AtLeastOnce), TopicConfig::new(Policy::Overwrite));
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
        there.remove_topic(TOPIC).unwrap();
    }
    // A single server cannot replicate.
    let error = copied.publisher(TOPIC, &topic).err().expect("there is one server").to_string();
    assert!(error.contains("replicas"), "{error}");
}

/// Publishes one message before the server's data is copied and two after it, and receives all three.
fn publish_around_a_backup(
    server: &mut NatsServer,
    publisher: &mut dyn Publisher,
    subscriber: &mut dyn Subscriber,
) -> TempDir {
    publisher.publish(1, KIND, b"one").unwrap();
    assert_eq!(next_event(subscriber), OwnedEvent::at(0, 1, b"one"));
    server.kill();
    let copy = server.back_up();
    server.restart();
    publisher.publish_batch(2, KIND, &[b"two", b"three"]).unwrap();
    for (sequence, payload) in [(1, &b"two"[..]), (2, &b"three"[..])] {
        assert_eq!(next_event(subscriber), OwnedEvent::at(sequence, 2, payload));
    }
    copy
}
