//! Messages that are given back, counted, and dead-lettered.

use std::num::NonZeroU32;

use tickpath_bus_amqp::{AmqpBus, MAX_PREFETCH_BYTES};
use tickpath_bus_api::conformance::{pull_stamps, wait_until};
use tickpath_bus_api::{
    ConnectError, Connection, DeliveryGuarantee, MessageId, Puller, Pusher, QueueConfig, ReceiveError,
    dead_letter_queue,
};
use tickpath_clock::Wait;

use crate::broker::{Broker, Scratch, puller, pusher};
use crate::server::relayed;

const KIND: u8 = 16;

/// A pulled message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PulledFields {
    stamp: u64,
    origin: Option<MessageId>,
    payload: Vec<u8>,
    redelivered: bool,
    deliveries: Option<u32>,
    tag: u64,
}

/// Pulls `count` messages, and acknowledges none.
fn pull_unacknowledged(puller: &mut dyn Puller, count: usize) -> Vec<PulledFields> {
    let mut taken = Vec::new();
    wait_until(|| {
        let pulled = puller.pull(count - taken.len(), &mut |pulled| {
            taken.push(PulledFields {
                stamp: pulled.message.stamp,
                origin: pulled.message.id,
                payload: pulled.message.payload.to_vec(),
                redelivered: pulled.redelivered,
                deliveries: pulled.deliveries,
                tag: pulled.tag,
            });
        });
        pulled.unwrap_or_else(|e| panic!("{e}"));
        taken.len() == count
    });
    taken
}

/// Checks that giving this message back is refused.
fn check_give_back_refused(puller: &mut dyn Puller, tag: u64) {
    match puller.give_back(tag) {
        Err(ReceiveError::NotAcknowledged(sentence)) => {
            assert!(sentence.contains(&format!("message {tag} of queue")), "{sentence}");
            assert!(sentence.contains("cannot be given back"), "{sentence}");
        }
        other => panic!("{tag}: {other:?}"),
    }
}

#[test]
fn a_given_back_message_is_redelivered_and_the_others_stay() {
    let scratch = Scratch::new("back");
    let (relay, bus) = relayed();
    let mut first = puller(&bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let mut pusher = pusher(&scratch.bus, &scratch.name);
    for stamp in 0..4 {
        pusher.push(stamp, KIND, b"message").unwrap();
    }
    let taken = pull_unacknowledged(&mut *first, 4);
    assert!(taken.iter().all(|one| one.deliveries.is_none()), "a classic queue counts nothing: {taken:?}");
    // The last message too: the acknowledged range then ends before it.
    for at in [1, 3] {
        first.give_back(taken[at].tag).unwrap();
        check_give_back_refused(&mut *first, taken[at].tag);
    }
    first.acknowledge().unwrap();
    check_give_back_refused(&mut *first, taken[0].tag);
    check_give_back_refused(&mut *first, u64::MAX);
    let mut again = pull_unacknowledged(&mut *first, 2);
    again.sort_by_key(|one| one.stamp);
    assert_eq!(again.iter().map(|one| (one.stamp, one.redelivered)).collect::<Vec<_>>(), [(1, true), (3, true)]);

    relay.cut();
    let anew = pull_unacknowledged(&mut *first, 2);
    assert_eq!(first.reconnects(), Some(1));
    check_give_back_refused(&mut *first, again[0].tag);
    assert!(matches!(first.acknowledge(), Err(ReceiveError::NotAcknowledged(_))), "those of the lost connection");
    assert!(anew.iter().all(|one| again.iter().all(|old| old.tag < one.tag)), "{anew:?} after {again:?}");
    drop(first);
    scratch.until_waiting(0);

    pusher.push(9, KIND, b"once").unwrap();
    let mut once = puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtMostOnce);
    let tag = pull_unacknowledged(&mut *once, 1)[0].tag;
    check_give_back_refused(&mut *once, tag);
}

/// A queue that counts deliveries, and its dead-letter queue.
struct Counted {
    scratch: Scratch,
    config: QueueConfig,
}

impl Counted {
    fn new(suffix: &str, max_deliveries: u32) -> Self {
        let mut scratch = Scratch::new(suffix);
        let url = Broker::get().url() + "?durable&replicas=1";
        scratch.bus = AmqpBus::connect(&url).unwrap_or_else(|e| panic!("{e}"));
        let max_deliveries = NonZeroU32::new(max_deliveries);
        Self { scratch, config: QueueConfig { max_deliveries, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) } }
    }

    fn pusher(&self) -> Box<dyn Pusher> {
        self.scratch.bus.pusher(&self.scratch.name, &self.config).unwrap_or_else(|e| panic!("{e}"))
    }

    fn puller(&self) -> Box<dyn Puller> {
        self.scratch.bus.puller(&self.scratch.name, &self.config, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
    }

    fn dead(&self) -> Box<dyn Puller> {
        puller(&self.scratch.bus, &dead_letter_queue(&self.scratch.name), DeliveryGuarantee::AtLeastOnce)
    }

    /// Checks that this message is in the dead-letter queue, unchanged, once, and no longer in the queue.
    fn check_dead(&self, taken: &PulledFields) {
        let mut dead = self.dead();
        let letter = pull_unacknowledged(&mut *dead, 1).remove(0);
        assert_eq!((letter.stamp, letter.origin), (taken.stamp, taken.origin));
        assert_eq!((letter.payload, letter.deliveries), (taken.payload.clone(), Some(1)));
        dead.acknowledge().unwrap();
        drop(dead);
        assert_eq!(self.scratch.bus.count_waiting(&dead_letter_queue(&self.scratch.name)).unwrap(), Some(0), "once");
        self.pusher().push(9, KIND, b"next").unwrap();
        assert_eq!(pull_stamps(&mut *self.puller(), 1), [(9, false)], "it is not in the queue any more");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.scratch.bus.remove_queue(&dead_letter_queue(&self.scratch.name));
    }
}

#[test]
fn a_message_given_back_too_often_becomes_a_dead_letter_unchanged() {
    for most in [1, 3] {
        let counted = Counted::new(&format!("given-back-{most}"), most);
        counted.pusher().push(1, KIND, b"poison").unwrap();
        let mut puller = counted.puller();
        let mut last = None;
        for delivery in 1..=most {
            let taken = pull_unacknowledged(&mut *puller, 1).remove(0);
            assert_eq!((taken.deliveries, taken.redelivered), (Some(delivery), delivery > 1), "{most}");
            puller.give_back(taken.tag).unwrap();
            last = Some(taken);
        }
        drop(puller);
        counted.check_dead(&last.expect("it was delivered"));
    }
}

#[test]
fn a_message_whose_pullers_end_too_often_becomes_a_dead_letter_unchanged() {
    let counted = Counted::new("ended", 3);
    counted.pusher().push(1, KIND, b"poison").unwrap();
    let taken = [1, 2, 3].map(|delivery| {
        let taken = pull_unacknowledged(&mut *counted.puller(), 1).remove(0);
        assert_eq!(taken.deliveries, Some(delivery));
        taken
    });
    counted.check_dead(&taken[0]);
}

#[test]
fn only_messages_handed_over_so_often_become_dead_letters() {
    const COUNT: usize = 10;
    const MOST: u32 = 2;
    let counted = Counted::new("unseen", MOST);
    let mut pusher = counted.pusher();
    for stamp in 0..COUNT as u64 {
        pusher.push(stamp, KIND, b"message").unwrap();
    }
    let mut handed_over = [0; COUNT];
    for _ in 0..2 * MOST {
        let mut puller = counted.puller();
        handed_over[pull_unacknowledged(&mut *puller, 1)[0].stamp as usize] += 1;
        let error = puller.pull(1, &mut |pulled| panic!("{pulled:?}")).unwrap_err().to_string();
        assert!(error.contains("one at a time") && error.contains("acknowledge them"), "{error}");
    }
    let mut puller = counted.puller();
    let (dead_letters, mut came) = (dead_letter_queue(&counted.scratch.name), Vec::new());
    wait_until(|| {
        let pulled = puller.pull(1, &mut |pulled| {
            let stamp = pulled.message.stamp;
            assert_eq!(pulled.deliveries, Some(handed_over[stamp as usize] + 1), "{stamp}");
            came.push(stamp);
        });
        pulled.unwrap_or_else(|e| panic!("{e}"));
        puller.acknowledge().unwrap();
        let dead = counted.scratch.bus.count_waiting(&dead_letters).unwrap().expect("it is counted");
        came.len() + dead as usize == COUNT
    });
    for letter in pull_unacknowledged(&mut *counted.dead(), COUNT - came.len()) {
        assert_eq!(handed_over[letter.stamp as usize], MOST, "{letter:?} after {came:?}");
    }
}

#[test]
fn a_message_without_a_delivery_limit_is_redelivered_for_ever() {
    // More often than any broker's default limit.
    const OFTEN: u32 = 25;
    let mut counted = Counted::new("for-ever", 1);
    counted.config.max_deliveries = None;
    counted.pusher().push(1, KIND, b"poison").unwrap();
    let mut puller = counted.puller();
    for delivery in 1..=OFTEN {
        let taken = pull_unacknowledged(&mut *puller, 1).remove(0);
        assert_eq!(taken.deliveries, Some(delivery));
        puller.give_back(taken.tag).unwrap();
    }
}

#[test]
fn a_puller_with_another_delivery_limit_is_refused() {
    let counted = Counted::new("agree", 3);
    let _pusher = counted.pusher();
    let (bus, name) = (&counted.scratch.bus, &counted.scratch.name);
    for max_deliveries in [None, NonZeroU32::new(4)] {
        let config = QueueConfig { max_deliveries, ..counted.config };
        for error in [bus.pusher(name, &config).err(), bus.puller(name, &config, Wait::Block).err()] {
            let error = error.expect("the broker refuses it").to_string();
            assert!(error.contains("another delivery limit") && error.contains("remove it"), "{error}");
        }
    }
    let at_most_once = QueueConfig { delivery: DeliveryGuarantee::AtMostOnce, ..counted.config };
    assert!(matches!(bus.pusher(name, &at_most_once), Err(ConnectError::Unsupported { .. })));
    let plain = Scratch::new("counts-nothing");
    assert!(matches!(plain.bus.pusher(&plain.name, &counted.config), Err(ConnectError::Unsupported { .. })));
    // The name of its dead-letter queue would be too long.
    let long = "x".repeat(128);
    assert!(matches!(bus.pusher(&long, &counted.config), Err(ConnectError::Name(_))));
}

#[test]
fn a_puller_holds_no_more_bytes_than_its_bound() {
    const LARGE: usize = 1 << 20;
    const COUNT: usize = 100;
    let scratch = Scratch::new("bytes");
    let (large, mut pusher) = (vec![7; LARGE], pusher(&scratch.bus, &scratch.name));
    pusher.push_batch(1, KIND, &[large.as_slice(); COUNT]).unwrap();
    let mut puller = puller(&scratch.bus, &scratch.name, DeliveryGuarantee::AtLeastOnce);
    let (mut came, mut full) = (0, None);
    wait_until(|| {
        match puller.pull(COUNT, &mut |_| came += 1) {
            Ok(_) => puller.wait(1_000_000),
            Err(error) => full = Some(error.to_string()),
        }
        full.is_some()
    });
    let full = full.expect("it was refused");
    assert!(full.starts_with(&format!("{came} messages")) && full.contains("acknowledge them"), "{full}");
    assert!(came * LARGE <= MAX_PREFETCH_BYTES, "{came} messages were handed over");
    let waiting = scratch.bus.count_waiting(&scratch.name).unwrap().expect("it is counted");
    assert!(waiting as usize * LARGE >= COUNT * LARGE - MAX_PREFETCH_BYTES, "only {waiting} messages wait");
    while came < COUNT {
        puller.acknowledge().unwrap();
        came += pull_stamps(&mut *puller, 1).len();
    }
    puller.acknowledge().unwrap();
    drop(puller);
    scratch.until_waiting(0);
}
