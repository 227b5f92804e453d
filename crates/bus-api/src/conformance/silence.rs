//! A network that drops a connection silently: neither side sees its end, and nothing arrives any more.

use tickpath_clock::Wait;

use super::child::BusConnector;
use super::message::{TestDeadline, publish};
use super::network_proxy::NetworkProxy;
use super::numbered_pull::push;
use super::scratch::default_topic_config;
use crate::{Connection, DeliveryGuarantee, Gap, Puller, QueueConfig, StartPosition, Subscriber, SubscriptionEvent};

/// Max length of one sleep, in nanoseconds; an outage of the server may end it earlier.
const SLEEP_NS: u64 = 50_000_000;
/// Numbers published before the network drops the connections, while it does, and when it works again.
const BEFORE: std::ops::Range<u64> = 0..10;
const MEANWHILE: std::ops::Range<u64> = 10..20;
const AFTER: std::ops::Range<u64> = 20..30;

/// Checks that each receiver reports in bounded time that nothing arrives, why, and when messages can arrive again, and
/// loses nothing silently. Only the relayed URL goes through the relay, with the shortest silence.
pub fn check_silence_reported(direct: &str, relayed: &str, relay: &NetworkProxy, connect: BusConnector) {
    for wait in [Wait::Block, Wait::Yield] {
        let topic = format!("tickpath:test-{}-silence-{}", std::process::id(), wait.name());
        let open = |url: &str| connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        let (near, far) = (open(direct), open(relayed));
        for part in [check_subscriber, check_puller] {
            part(&*near, &*far, relay, &topic, wait);
            relay.heal();
        }
    }
}

fn check_subscriber(near: &dyn Connection, far: &dyn Connection, relay: &NetworkProxy, topic: &str, wait: Wait) {
    let opened = near.publisher(topic, &default_topic_config(near));
    let mut publisher = opened.unwrap_or_else(|e| panic!("no publisher: {e}"));
    let opened = far.subscriber(topic, StartPosition::Now, wait);
    let mut subscriber = opened.unwrap_or_else(|e| panic!("no subscriber: {e}"));
    let (mut received, mut is_lost) = (Vec::new(), false);
    publish(&mut *publisher, BEFORE);
    receive(&mut *subscriber, &mut received, &mut is_lost, |subscriber, received, _| {
        assert_eq!(subscriber.outage(), None, "the network is well");
        received.len() == BEFORE.end as usize
    });
    relay.drop_connections();
    publish(&mut *publisher, MEANWHILE);
    receive(&mut *subscriber, &mut received, &mut is_lost, |subscriber, _, _| subscriber.outage().is_some());
    assert!(!is_lost, "a loss is reported only once it is known");
    relay.heal();
    receive(&mut *subscriber, &mut received, &mut is_lost, |subscriber, received, is_lost| {
        subscriber.outage().is_none() && (is_lost || received.len() == MEANWHILE.end as usize)
    });
    assert_ne!(subscriber.reconnects(), Some(0), "the connection was made again");
    publish(&mut *publisher, AFTER);
    receive(&mut *subscriber, &mut received, &mut is_lost, |_, received, _| received.last() == Some(&(AFTER.end - 1)));
    let all: Vec<u64> = (0..AFTER.end).filter(|number| !is_lost || !MEANWHILE.contains(number)).collect();
    assert_eq!(received, all, "a loss was reported: {is_lost}");
    drop((publisher, subscriber));
    near.remove_topic(topic).unwrap_or_else(|e| panic!("{topic}: {e}"));
}

/// Polls until the condition holds for the subscriber, the numbers that arrived, and whether a loss was reported.
fn receive(
    subscriber: &mut dyn Subscriber,
    received: &mut Vec<u64>,
    is_lost: &mut bool,
    mut is_done: impl FnMut(&dyn Subscriber, &[u64], bool) -> bool,
) {
    let deadline = TestDeadline::new();
    while !is_done(subscriber, received, *is_lost) {
        let polled = subscriber.poll(64, &mut |event| match event {
            SubscriptionEvent::Message(message) => received.push(message.stamp),
            SubscriptionEvent::Gap(Gap::Missed(_) | Gap::Reconnected) => *is_lost = true,
            SubscriptionEvent::Foreign(foreign) => panic!("another program publishes here: {foreign:?}"),
        });
        if polled.unwrap_or_else(|e| panic!("{e}")) == 0 {
            subscriber.wait(SLEEP_NS);
        }
        deadline.check(&format!("silence: {received:?} arrived, a loss was reported: {is_lost}"));
    }
}

fn check_puller(near: &dyn Connection, far: &dyn Connection, relay: &NetworkProxy, queue: &str, wait: Wait) {
    let keeps = far.queue_capabilities().deliveries.contains(&DeliveryGuarantee::AtLeastOnce);
    let config = QueueConfig::new(if keeps { DeliveryGuarantee::AtLeastOnce } else { DeliveryGuarantee::AtMostOnce });
    let mut pusher = near.pusher(queue, &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
    let mut puller = far.puller(queue, &config, wait).unwrap_or_else(|e| panic!("no puller: {e}"));
    let mut received = Vec::new();
    push(&mut *pusher, BEFORE);
    pull(&mut *puller, &mut received, |_, received| received.len() == BEFORE.end as usize);
    relay.drop_connections();
    push(&mut *pusher, MEANWHILE);
    pull(&mut *puller, &mut received, |puller, _| puller.outage().is_some());
    relay.heal();
    pull(&mut *puller, &mut received, |puller, _| puller.outage().is_none());
    if keeps {
        push(&mut *pusher, AFTER);
        pull(&mut *puller, &mut received, |_, received| (0..AFTER.end).all(|number| received.contains(&number)));
    } else {
        // The server may still give messages to the dropped connection.
        pull(&mut *puller, &mut received, |_, received| {
            push(&mut *pusher, AFTER);
            received.iter().any(|number| AFTER.contains(number))
        });
    }
    drop((pusher, puller));
    near.remove_queue(queue).unwrap_or_else(|e| panic!("{queue}: {e}"));
}

/// Pulls and acknowledges until the condition holds; ignores notices of redelivery.
fn pull(puller: &mut dyn Puller, received: &mut Vec<u64>, mut is_done: impl FnMut(&dyn Puller, &[u64]) -> bool) {
    let deadline = TestDeadline::new();
    while !is_done(puller, received) {
        let pulled = puller.pull(64, &mut |pulled| received.push(pulled.message.stamp));
        match pulled {
            Ok(0) => puller.wait(SLEEP_NS),
            Ok(_) => match puller.acknowledge() {
                Err(e) if !e.is_transient() => panic!("{e}"),
                _ => {}
            },
            Err(e) if e.is_transient() => {}
            Err(e) => panic!("{e}"),
        }
        deadline.check(&format!("silence: {received:?} arrived"));
    }
}
