//! A network that drops a connection silently: neither side sees its end, and nothing arrives any more.

use tickpath_clock::Wait;

use super::child::Connect;
use super::message::{Deadline, KIND, payload, publish};
use super::relay::Relay;
use super::scratch::usual;
use crate::{Connection, Delivery, Event, Gap, Puller, Pusher, QueueConfig, Start, Subscriber};

/// Max length of one sleep, in nanoseconds; an outage of the server may end it earlier.
const SLEEP_NS: u64 = 50_000_000;

/// Numbers published before the network drops the connections, while it does, and when it works again.
const BEFORE: std::ops::Range<u64> = 0..10;
const MEANWHILE: std::ops::Range<u64> = 10..20;
const AFTER: std::ops::Range<u64> = 20..30;

/// Checks that each receiver reports in bounded time that nothing arrives, why, and when messages can arrive again, and
/// loses nothing silently. The relayed URL goes through the relay and gives a server up after the shortest silence; the
/// direct one does not.
pub fn silence_is_told(direct: &str, relayed: &str, relay: &Relay, connect: Connect) {
    for wait in [Wait::Block, Wait::Yield] {
        let topic = format!("tickpath:test-{}-silence-{}", std::process::id(), wait.name());
        let open = |url: &str| connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        let (near, far) = (open(direct), open(relayed));
        for part in [subscriber_is_told, puller_is_told] {
            part(&*near, &*far, relay, &topic, wait);
            relay.heal();
        }
    }
}

fn subscriber_is_told(near: &dyn Connection, far: &dyn Connection, relay: &Relay, topic: &str, wait: Wait) {
    let opened = near.publisher(topic, &usual(near));
    let mut publisher = opened.unwrap_or_else(|e| panic!("no publisher: {e}"));
    let opened = far.subscriber(topic, Start::Now, wait);
    let mut subscriber = opened.unwrap_or_else(|e| panic!("no subscriber: {e}"));
    let (mut came, mut is_lost) = (Vec::new(), false);
    publish(&mut *publisher, BEFORE);
    receive(&mut *subscriber, &mut came, &mut is_lost, |subscriber, came, _| {
        assert_eq!(subscriber.outage(), None, "the network is well");
        came.len() == BEFORE.end as usize
    });
    relay.forget();
    publish(&mut *publisher, MEANWHILE);
    receive(&mut *subscriber, &mut came, &mut is_lost, |subscriber, _, _| subscriber.outage().is_some());
    assert!(!is_lost, "a loss is told when it is known");
    relay.heal();
    receive(&mut *subscriber, &mut came, &mut is_lost, |subscriber, came, is_lost| {
        subscriber.outage().is_none() && (is_lost || came.len() == MEANWHILE.end as usize)
    });
    assert_ne!(subscriber.reconnects(), Some(0), "it was connected to again");
    publish(&mut *publisher, AFTER);
    receive(&mut *subscriber, &mut came, &mut is_lost, |_, came, _| came.last() == Some(&(AFTER.end - 1)));
    let all: Vec<u64> = (0..AFTER.end).filter(|number| !is_lost || !MEANWHILE.contains(number)).collect();
    assert_eq!(came, all, "a loss was told: {is_lost}");
    drop((publisher, subscriber));
    near.remove(topic).unwrap_or_else(|e| panic!("{topic}: {e}"));
}

/// Polls until the condition holds for the subscriber, the numbers that arrived, and whether a loss was reported.
fn receive(
    subscriber: &mut dyn Subscriber,
    came: &mut Vec<u64>,
    is_lost: &mut bool,
    mut is_done: impl FnMut(&dyn Subscriber, &[u64], bool) -> bool,
) {
    let deadline = Deadline::new();
    while !is_done(subscriber, came, *is_lost) {
        let polled = subscriber.poll(64, &mut |event| match event {
            Event::Message(message) => came.push(message.stamp),
            Event::Gap(Gap::Missed(_) | Gap::Reconnected) => *is_lost = true,
            Event::Foreign(foreign) => panic!("somebody else publishes here: {foreign:?}"),
        });
        if polled.unwrap_or_else(|e| panic!("{e}")) == 0 {
            subscriber.wait(SLEEP_NS);
        }
        deadline.check(&format!("silence: {came:?} came, a loss was told: {is_lost}"));
    }
}

fn puller_is_told(near: &dyn Connection, far: &dyn Connection, relay: &Relay, queue: &str, wait: Wait) {
    let keeps = far.queue_capabilities().deliveries.contains(&Delivery::AtLeastOnce);
    let config = QueueConfig::new(if keeps { Delivery::AtLeastOnce } else { Delivery::AtMostOnce });
    let mut pusher = near.pusher(queue, &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
    let mut puller = far.puller(queue, &config, wait).unwrap_or_else(|e| panic!("no puller: {e}"));
    let mut came = Vec::new();
    push(&mut *pusher, BEFORE);
    pull(&mut *puller, &mut came, |_, came| came.len() == BEFORE.end as usize);
    relay.forget();
    push(&mut *pusher, MEANWHILE);
    pull(&mut *puller, &mut came, |puller, _| puller.outage().is_some());
    relay.heal();
    pull(&mut *puller, &mut came, |puller, _| puller.outage().is_none());
    if keeps {
        push(&mut *pusher, AFTER);
        pull(&mut *puller, &mut came, |_, came| (0..AFTER.end).all(|number| came.contains(&number)));
    } else {
        // The server may still give messages to the dropped connection.
        pull(&mut *puller, &mut came, |_, came| {
            push(&mut *pusher, AFTER);
            came.iter().any(|number| AFTER.contains(number))
        });
    }
    drop((pusher, puller));
    near.remove_queue(queue).unwrap_or_else(|e| panic!("{queue}: {e}"));
}

fn push(pusher: &mut dyn Pusher, numbers: std::ops::Range<u64>) {
    for number in numbers {
        pusher.push(number, KIND, &payload(number)).unwrap_or_else(|e| panic!("{number} is not pushed: {e}"));
    }
}

/// Pulls and acknowledges until the condition holds for the puller and the numbers that arrived. Notices of redelivery
/// are ignored.
fn pull(puller: &mut dyn Puller, came: &mut Vec<u64>, mut is_done: impl FnMut(&dyn Puller, &[u64]) -> bool) {
    let deadline = Deadline::new();
    while !is_done(puller, came) {
        let pulled = puller.pull(64, &mut |pulled| came.push(pulled.message.stamp));
        match pulled {
            Ok(0) => puller.wait(SLEEP_NS),
            Ok(_) => match puller.acknowledge() {
                Err(e) if !e.may_pass() => panic!("{e}"),
                _ => {}
            },
            Err(e) if e.may_pass() => {}
            Err(e) => panic!("{e}"),
        }
        deadline.check(&format!("silence: {came:?} came"));
    }
}
