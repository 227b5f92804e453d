//! Cases of unwanted messages: one is given back, and one that is never acknowledged becomes a dead letter.

use std::num::NonZeroU32;

use tickpath_clock::Wait;

use super::fixture::{Fixture, check_unsupported};
use super::message::{KIND, TestDeadline, payload};
use super::numbered_pull::{check_no_message, next, push};
use super::scratch::{ScratchQueue, queue_config};
use crate::{DeliveryGuarantee, PulledMessage, Puller, ReceiveError, dead_letter_queue};

/// A message as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PullRecord {
    number: u64,
    redelivered: bool,
    deliveries: Option<u32>,
    tag: u64,
}

/// Checks that a given back message is redelivered, marked, without the others; that of another puller is refused.
pub(super) fn give_back(fixture: &Fixture<'_>) {
    let Some(queue) = fixture.queue_if_supported("given_back", DeliveryGuarantee::AtLeastOnce) else { return };
    let capabilities = queue.capabilities();
    let mut puller = queue.puller(Wait::Block);
    push(&mut *queue.pusher(), 0..10);
    let held = pull_unacknowledged(&mut *puller, 10);
    if !capabilities.gives_back {
        let refused = puller.give_back(held[4].tag).expect_err("it takes nothing back").to_string();
        assert!(refused.contains("no single message back"), "{refused}");
        return;
    }
    let counted = |count| capabilities.counts_deliveries.then_some(count);
    assert!(held.iter().all(|record| !record.redelivered && record.deliveries == counted(1)), "{held:?}");
    for index in [4, 7] {
        puller.give_back(held[index].tag).expect("given back");
    }
    let twice = puller.give_back(held[4].tag).expect_err("it is not held any more");
    assert!(matches!(twice, ReceiveError::NotAcknowledged(_)), "{twice}");
    puller.acknowledge().expect("the others are acknowledged");
    let again = pull_unacknowledged(&mut *puller, 2);
    let mut numbers: Vec<_> = again.iter().map(|record| record.number).collect();
    numbers.sort_unstable();
    let mut expected = [held[4].number, held[7].number];
    expected.sort_unstable();
    assert_eq!(numbers, expected);
    assert!(again.iter().all(|record| record.redelivered && record.deliveries == counted(2)), "{again:?}");
    let acknowledged = puller.give_back(held[0].tag).expect_err("it is acknowledged");
    assert!(matches!(acknowledged, ReceiveError::NotAcknowledged(_)), "{acknowledged}");
    // Redelivery goes to another puller, too.
    puller.give_back(again[0].tag).expect("given back");
    puller.acknowledge().expect("acknowledged");
    drop(puller);
    let mut other = queue.puller(Wait::Block);
    let third = pull_unacknowledged(&mut *other, 1)[0];
    assert_eq!((third.number, third.redelivered, third.deliveries), (again[0].number, true, counted(3)));
    other.acknowledge().expect("acknowledged");
    check_no_message(&mut *other);
    queue.wait_for_count(0);
}

/// Checks that a message delivered as often as the limit goes to the dead-letter queue, whole, and is never
/// redelivered. Where deliveries are not counted, a limit is refused.
pub(super) fn dead_letters(fixture: &Fixture<'_>) {
    const LIMIT: u32 = 3;
    let Some(mut queue) = fixture.queue_if_supported("limited", DeliveryGuarantee::AtLeastOnce) else { return };
    queue.config.max_deliveries = NonZeroU32::new(LIMIT);
    if !queue.capabilities().counts_deliveries {
        check_unsupported(queue.connection.pusher(&queue.name, &queue.config), "how often");
        check_unsupported(queue.connection.puller(&queue.name, &queue.config, Wait::Yield), "how often");
        return;
    }
    let dead = ScratchQueue {
        connection: (fixture.connect)(),
        name: dead_letter_queue(&queue.name),
        config: queue_config(DeliveryGuarantee::AtLeastOnce),
    };
    let mut puller = queue.puller(Wait::Block);
    push(&mut *queue.pusher(), 0..3);
    let mut deliveries = Vec::new();
    let (mut acknowledged, deadline) = (0, TestDeadline::new());
    // Number 1 is never acknowledged; the others are.
    while acknowledged < 2 || deliveries.len() < LIMIT as usize {
        for record in pull_once(&mut *puller, 8) {
            if record.number == 1 {
                deliveries.push(record.deliveries.expect("they are counted"));
                puller.give_back(record.tag).expect("given back");
            } else {
                acknowledged += 1;
            }
        }
        puller.acknowledge().expect("acknowledged");
        deadline.check("dead letters");
    }
    assert_eq!(deliveries, [1, 2, 3]);
    let mut buried = dead.puller(Wait::Yield);
    let deadline = TestDeadline::new();
    let mut letter = None;
    while letter.is_none() {
        // Some transports move the message only when the next puller would get it.
        assert_eq!(pull_once(&mut *puller, 8), [], "it is not redelivered");
        let pulled = buried.pull(1, &mut |pulled| {
            letter = Some((pulled.message.stamp, pulled.message.kind, pulled.message.payload.to_vec()));
        });
        pulled.expect("pulled");
        deadline.check("the queue of dead letters");
    }
    assert_eq!(letter, Some((1, KIND, payload(1))));
    buried.acknowledge().expect("acknowledged");
    check_no_message(&mut *buried);
    // The queue still works.
    push(&mut *queue.pusher(), 5..6);
    assert_eq!(next(&mut *puller, "behind a dead letter").0, 5);
}

/// Pulls exactly this many messages, and acknowledges none.
fn pull_unacknowledged(puller: &mut dyn Puller, count: usize) -> Vec<PullRecord> {
    let (mut records, deadline) = (Vec::new(), TestDeadline::new());
    while records.len() < count {
        records.extend(pull_once(puller, count - records.len()));
        deadline.check("messages to hold");
    }
    records
}

/// Pulls once; waits a moment if nothing arrived.
fn pull_once(puller: &mut dyn Puller, limit: usize) -> Vec<PullRecord> {
    let mut records = Vec::new();
    let pulled = puller.pull(limit, &mut |pulled| {
        let PulledMessage { message, redelivered, deliveries, tag } = pulled;
        assert_eq!(message.payload, payload(message.stamp), "message {} is torn", message.stamp);
        records.push(PullRecord { number: message.stamp, redelivered, deliveries, tag });
    });
    if pulled.expect("pulled") == 0 {
        puller.wait(10_000_000);
    }
    records
}
