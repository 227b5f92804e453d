//! Redelivered messages of a queue: given back, not acknowledged, or delivered too often.

use std::num::NonZeroU32;

use tickpath_bus_api::conformance::{pull_stamps, resume_process, suspend_process, wait_until};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, MessageId, Puller, QueueConfig, ReceiveError, dead_letter_queue,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::Wait;

use crate::helpers::{KIND, QUEUE, bus, pull_error, puller, pusher, relay_url};
use crate::nats_server::NatsServer;
use crate::server::{ask_jetstream, publish_foreign};

/// A message as it was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PulledDelivery {
    stamp: u64,
    deliveries: Option<u32>,
    tag: u64,
    origin: Option<MessageId>,
}

#[test]
fn one_message_is_returned_and_the_others_are_acknowledged() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    for stamp in 1..=3 {
        pusher.push(stamp, KIND, b"job").unwrap();
    }
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    let received = pull_some(&mut *puller, 3);
    assert!(received.iter().all(|one| one.deliveries == Some(1) && one.tag > 0), "{received:?}");
    puller.give_back(received[1].tag).unwrap();
    let again = pull_some(&mut *puller, 1)[0];
    assert_eq!((again.stamp, again.deliveries, again.origin), (2, Some(2), received[1].origin));
    puller.give_back(again.tag).unwrap();
    puller.acknowledge().unwrap();
    for tag in [0, received[0].tag, received[1].tag, again.tag, again.tag + 1, u64::MAX] {
        let error = puller.give_back(tag).unwrap_err();
        assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{tag}: {error}");
    }
    // The messages not given back are gone; this one may go to any puller.
    drop(puller);
    let mut other = bus.puller(QUEUE, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce), Wait::Block).unwrap();
    let last = pull_some(&mut *other, 1)[0];
    assert_eq!((last.stamp, last.deliveries), (2, Some(3)));
    other.acknowledge().unwrap();
    assert_eq!(pull_nothing(&mut *other), 0);
}

#[test]
fn an_over_delivered_message_moves_whole_to_the_dead_letters() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let dead = dead_letter_queue(QUEUE);
    let config = QueueConfig { max_deliveries: NonZeroU32::new(3), foreign: Some(99), ..at_least_once() };
    let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    let mut puller = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    pusher.push(1, KIND, b"bad").unwrap();
    publish_foreign(server.port(), &format!("queue/{QUEUE}"), &["bad, too"]);
    let mut origins = Vec::new();
    for delivery in 1..=3 {
        let received = pull_some(&mut *puller, 2);
        assert!(received.iter().all(|one| one.deliveries == Some(delivery)), "{received:?}");
        origins = received.iter().map(|one| (one.stamp, one.origin)).collect();
        received.iter().for_each(|one| puller.give_back(one.tag).unwrap());
    }
    pusher.push(2, KIND, b"good").unwrap();
    assert_eq!(pull_stamps(&mut *puller, 1), [(2, false)]);
    puller.acknowledge().unwrap();
    wait_until(|| pull_nothing(&mut *puller) == 0 && bus.count_waiting(&dead).unwrap() == Some(2));
    let mut buried = bus.puller(&dead, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut received: Vec<_> = pull_some(&mut *buried, 2).iter().map(|one| (one.stamp, one.origin)).collect();
    received.sort_by_key(|&(stamp, _origin)| stamp);
    origins.sort_by_key(|&(stamp, _origin)| stamp);
    assert_eq!(received, origins);
    buried.acknowledge().unwrap();
    assert_eq!((pull_nothing(&mut *puller), pull_nothing(&mut *buried)), (0, 0));
}

#[test]
fn a_dead_letter_without_room_is_reported_once_and_moved_later() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let dead = dead_letter_queue(QUEUE);
    let (stream, subject) = ("tickpath-queue-tickpath+test+jobs=dead", format!("queue/{dead}"));
    let kept = "\"retention\":\"workqueue\",\"storage\":\"memory\",\"num_replicas\":1";
    let full = "\"max_msgs\":1,\"discard\":\"new\"";
    let json = format!("{{\"name\":\"{stream}\",\"subjects\":[\"{subject}\"],{kept},{full}}}");
    ask_jetstream(server.port(), &format!("STREAM.CREATE.{stream}"), &json);
    publish_foreign(server.port(), &subject, &["in the way"]);
    let config = QueueConfig { max_deliveries: NonZeroU32::new(1), ..at_least_once() };
    let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    let mut puller = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    pusher.push(1, KIND, b"bad").unwrap();
    let received = pull_some(&mut *puller, 1)[0];
    puller.give_back(received.tag).unwrap();
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("not moved to its dead letters"), "{error}");
    pusher.push(2, KIND, b"good").unwrap();
    assert_eq!(pull_stamps(&mut *puller, 1), [(2, false)]);
    puller.acknowledge().unwrap();
    assert_eq!(puller.reconnects(), Some(0), "an answer is no loss");
    ask_jetstream(server.port(), &format!("STREAM.PURGE.{stream}"), "");
    wait_until(|| pull_nothing(&mut *puller) == 0 && bus.count_waiting(&dead).unwrap() == Some(1));
    let mut buried = bus.puller(&dead, &at_least_once(), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let found = pull_some(&mut *buried, 1)[0];
    assert_eq!((found.stamp, found.origin), (1, received.origin));
    buried.acknowledge().unwrap();
}

#[test]
fn a_message_of_another_puller_is_not_returned_or_acknowledged() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let config = QueueConfig { silence_ns: 1_000_000_000, ..at_least_once() };
    let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    let mut first = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    pusher.push_batch(1, KIND, &[&b"job"[..]; 3]).unwrap();
    let received = pull_some(&mut *first, 3);
    let mut second = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    pull_some(&mut *second, 3);
    let error = first.give_back(received[0].tag).unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
    assert!(error.to_string().contains("another puller may have it by now"), "{error}");
    let error = first.acknowledge().unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("2 messages were held for longer"), "{error}");
    first.acknowledge().expect("it is told once");
}

#[test]
fn a_delivery_limit_is_refused_where_nothing_counts() {
    let server = NatsServer::start(&[]);
    let limited = |delivery| QueueConfig { max_deliveries: NonZeroU32::new(3), ..QueueConfig::new(delivery) };
    let core = bus(&server.url());
    let error =
        core.puller(QUEUE, &limited(DeliveryGuarantee::AtMostOnce), Wait::Block).err().expect("it keeps nothing");
    assert!(error.to_string().contains("count how often a message was delivered"), "{error}");
    let once = jetstream(&server).puller(QUEUE, &limited(DeliveryGuarantee::AtMostOnce), Wait::Block).err();
    assert!(once.expect("at most once it is once").to_string().contains("use 'at-least-once', or no limit"));
    let name = "q".repeat(126);
    let long = jetstream(&server).puller(&name, &limited(DeliveryGuarantee::AtLeastOnce), Wait::Block).err();
    assert!(long.expect("its dead letters have no name").to_string().contains(".dead"));
    let mut puller = puller(&jetstream(&server), DeliveryGuarantee::AtMostOnce);
    pusher(&jetstream(&server), DeliveryGuarantee::AtMostOnce).push(1, KIND, b"job").unwrap();
    let received = pull_some(&mut *puller, 1)[0];
    assert_eq!((received.deliveries, received.tag), (Some(1), 0));
    let error = puller.give_back(received.tag).unwrap_err();
    assert!(error.to_string().contains("handed over at least once"), "{error}");
}

#[test]
fn an_acknowledgement_to_a_silent_server_is_in_doubt() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher(&bus, DeliveryGuarantee::AtLeastOnce).push_batch(1, KIND, &[&b"job"[..]; 3]).unwrap();
    assert_eq!(pull_stamps(&mut *puller, 3), [(1, false); 3]);
    suspend_process(server.pid());
    let acknowledged = puller.acknowledge();
    resume_process(server.pid());
    let error = acknowledged.expect_err("nobody has said so");
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("3 messages are in doubt: they are acknowledged, or come again"), "{error}");
    puller.acknowledge().expect("it is told once");
}

#[test]
fn a_deleted_consumer_redelivers_unless_acknowledging_succeeds() {
    let server = NatsServer::start(&[]);
    let bus = jetstream(&server);
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher(&bus, DeliveryGuarantee::AtLeastOnce).push_batch(1, KIND, &[&b"job"[..]; 3]).unwrap();
    assert_eq!(pull_stamps(&mut *puller, 3), [(1, false); 3]);
    ask_jetstream(server.port(), "CONSUMER.DELETE.tickpath-queue-tickpath+test+jobs.tickpath", "");
    // Some servers do not answer if no puller holds the message, others count it as acknowledged.
    if let Err(error) = puller.acknowledge() {
        assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
        assert_eq!(pull_stamps(&mut *puller, 3), [(1, false); 3]);
        puller.acknowledge().unwrap();
    }
    assert_eq!(pull_nothing(&mut *puller), 0);
}

#[test]
fn a_dead_letter_is_stored_once_despite_a_cut_during_the_move() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let far = jetstream(&server);
    let dead = dead_letter_queue(QUEUE);
    let config = QueueConfig { max_deliveries: NonZeroU32::new(1), silence_ns: 1_000_000_000, ..at_least_once() };
    let near = bus(&format!("{}?jetstream", relay_url(&relay)));
    let mut puller = near.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut pusher = far.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    pusher.push(1, KIND, b"bad").unwrap();
    let received = pull_some(&mut *puller, 1)[0];
    puller.give_back(received.tag).unwrap();
    for round in 0..5 {
        wait_until(|| {
            pull_only_uncounted(&mut *puller);
            puller.wait(1_000_000);
            puller.reconnects() >= Some(round)
        });
        // Wherever the move has got to, it starts over.
        relay.break_off();
    }
    wait_until(|| {
        pull_only_uncounted(&mut *puller);
        far.count_waiting(&dead).unwrap() == Some(1)
    });
    let mut buried = far.puller(&dead, &at_least_once(), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let found = pull_some(&mut *buried, 1)[0];
    assert_eq!((found.stamp, found.origin), (1, received.origin));
    buried.acknowledge().unwrap();
    assert_eq!((pull_nothing(&mut *puller), pull_nothing(&mut *buried)), (0, 0));
}

/// Pulls beyond a limit of one delivery, where only a message whose count the server has lost may come, and gives it
/// back. Version 2.9.10 loses the count if a connection ends just when it delivers.
fn pull_only_uncounted(puller: &mut dyn Puller) {
    let mut uncounted = None;
    let pulled = puller.pull(1, &mut |pulled| {
        assert_eq!(pulled.deliveries, Some(1), "{pulled:?} came too often");
        uncounted = Some(pulled.tag);
    });
    pulled.unwrap();
    // If the connection is lost again, the message comes back by itself.
    let _ = uncounted.map(|tag| puller.give_back(tag));
}

fn jetstream(server: &NatsServer) -> NatsBus {
    bus(&format!("{}?jetstream", server.url()))
}

fn at_least_once() -> QueueConfig {
    QueueConfig::new(DeliveryGuarantee::AtLeastOnce)
}

/// Waits for the next `count` messages, and returns them.
fn pull_some(puller: &mut dyn Puller, count: usize) -> Vec<PulledDelivery> {
    let mut received = Vec::new();
    wait_until(|| {
        let missing = count - received.len();
        let pulled = puller.pull(missing, &mut |pulled| {
            let (stamp, origin) = (pulled.message.stamp, pulled.message.id);
            received.push(PulledDelivery { stamp, deliveries: pulled.deliveries, tag: pulled.tag, origin });
        });
        pulled.unwrap();
        if received.len() < count {
            puller.wait(1_000_000);
        }
        received.len() == count
    });
    received
}

/// Returns the number of messages that come, where none is expected.
fn pull_nothing(puller: &mut dyn Puller) -> usize {
    let looks = (0..20).map(|_| {
        puller.wait(1_000_000);
        puller.pull(8, &mut |_| {}).unwrap()
    });
    looks.sum()
}
