//! Cases of pushing and pulling.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tickpath_clock::Wait;

use super::fixture::{ConformanceCase, Fixture, GOOD_NAMES, bad_names, cases, check_name_refused, check_unsupported};
use super::message::{KIND, TestDeadline};
use super::numbered_pull::{
    PulledNumbers, check_each_once, check_marked, check_no_message, hold, next, pull, pull_until, push,
};
use super::queue_process::{killed_anywhere, puller_killed, pusher_killed};
use super::redelivery::{dead_letters, give_back};
use super::scratch::{queue_config, surest_delivery};
use crate::{ConnectError, DeliveryGuarantee, PublishError, Puller};

/// The cases of queues, by name.
pub const QUEUE_CASES: &[(&str, ConformanceCase)] = cases! {
    order, batch, shared, kept, acknowledge, at_most_once, unsupported, second_pusher, count, sizes, kinds, names,
    waiting, removal, give_back, dead_letters, puller_killed, pusher_killed, killed_anywhere,
};

/// Checks that one puller gets every message once, whole, unmarked, and in the order of pushing where that is promised.
fn order(fixture: &Fixture<'_>) {
    const COUNT: u64 = 600;
    for queue in fixture.queues("order") {
        let mut puller = queue.puller(Wait::Yield);
        let mut pusher = queue.pusher();
        let mut taken = PulledNumbers::default();
        for last in (30..=COUNT).step_by(30) {
            push(&mut *pusher, last - 30..last);
            pull_until(&mut *puller, &mut taken, "order", |taken| taken.count() as u64 >= last);
        }
        check_no_message(&mut *puller);
        assert!(taken.redelivered.is_empty(), "marked, though no other puller exists: {:?}", taken.redelivered);
        check_each_once(&taken.fresh, 0..COUNT, "order");
        let numbered = taken.sequences.len() as u64;
        assert!(numbered == 0 || numbered == COUNT, "{numbered} of {COUNT} messages have sequence numbers");
        if queue.capabilities().ordered {
            check_rising(&taken.fresh);
        } else {
            taken.sequences.sort_unstable();
        }
        check_rising(&taken.sequences);
        queue.wait_for_count(0);
    }
}

/// Checks that a batch arrives as its messages; if one does not fit, those before it are pushed and counted.
fn batch(fixture: &Fixture<'_>) {
    let queue = fixture.queue("batch");
    let mut puller = queue.puller(Wait::Yield);
    let mut pusher = queue.pusher();
    let too_large = vec![0; 1 << 25];
    let short: Vec<Vec<u8>> = (0u8..100).map(|n| vec![n; usize::from(n)]).collect();
    let mut payloads: Vec<&[u8]> = short.iter().map(Vec::as_slice).collect();
    pusher.push_batch(7, KIND, &payloads).expect("the batch is pushed");
    pusher.push_batch(7, KIND, &[]).expect("nothing is pushed");
    payloads[50] = &too_large;
    let error = pusher.push_batch(7, KIND, &payloads).expect_err("the message in the middle is too large");
    assert_eq!(error.done, 50, "{error}");
    assert!(matches!(error.error, PublishError::TooLarge { .. }), "{error}");
    let mut pulled: Vec<_> = (0..150).map(|_| next(&mut *puller, "batch")).collect();
    check_no_message(&mut *puller);
    let mut expected: Vec<_> = short.iter().chain(&short[..50]).map(|sent| (7u64, KIND, sent.clone())).collect();
    if !queue.capabilities().ordered {
        pulled.sort_unstable();
        expected.sort_unstable();
    }
    assert!(pulled == expected, "the batches arrived with other messages, or in another order");
}

/// Checks that pullers share the messages: each goes to one of them, once.
fn shared(fixture: &Fixture<'_>) {
    const COUNT: u64 = 3_000;
    for queue in fixture.queues("shared") {
        let pullers: Vec<_> = (0..3).map(|_| queue.puller(Wait::Block)).collect();
        let mut pusher = queue.pusher();
        let together = &AtomicU64::new(0);
        let pulled: Vec<u64> = std::thread::scope(|scope| {
            let start = |puller| scope.spawn(move || pull_together(puller, together, COUNT));
            let pulling: Vec<_> = pullers.into_iter().map(start).collect();
            push(&mut *pusher, 0..COUNT);
            pulling.into_iter().flat_map(|thread| thread.join().expect("pulled").all()).collect()
        });
        check_each_once(&pulled, 0..COUNT, "shared");
    }
}

/// Checks that messages pushed before there is a puller are kept for the next one, where that is promised.
fn kept(fixture: &Fixture<'_>) {
    for queue in fixture.queues("kept") {
        if !queue.capabilities().keeps_without_puller {
            return;
        }
        push(&mut *queue.pusher(), 0..100);
        let mut puller = queue.puller(Wait::Block);
        let mut taken = PulledNumbers::default();
        pull_until(&mut *puller, &mut taken, "kept", |taken| taken.count() >= 100);
        check_no_message(&mut *puller);
        check_each_once(&taken.all(), 0..100, "kept");
    }
}

/// Checks that acknowledged messages are never redelivered, and that those held by a dropped puller are, marked.
fn acknowledge(fixture: &Fixture<'_>) {
    let Some(queue) = fixture.queue_if_supported("acknowledge", DeliveryGuarantee::AtLeastOnce) else { return };
    let [mut done, mut held, mut rest] = <[PulledNumbers; 3]>::default();
    let mut first = queue.puller(Wait::Block);
    push(&mut *queue.pusher(), 0..50);
    hold(&mut *first, &mut done, 10, "to be acknowledged");
    first.acknowledge().expect("acknowledged");
    hold(&mut *first, &mut held, 10, "to be held");
    drop(first);
    let mut second = queue.puller(Wait::Block);
    pull_until(&mut *second, &mut rest, "after a dropped puller", |rest| rest.count() >= 40);
    check_no_message(&mut *second);
    let done = done.all();
    check_each_once(&rest.all(), (0..50).filter(|number| !done.contains(number)), "after a dropped puller");
    check_marked(&rest, &held.all());
    if queue.capabilities().ordered {
        check_rising(&rest.fresh);
    }
}

/// Checks, at most once, that delivered messages never come again, even unacknowledged, and that the rest is kept.
fn at_most_once(fixture: &Fixture<'_>) {
    let Some(queue) = fixture.queue_if_supported("taken", DeliveryGuarantee::AtMostOnce) else { return };
    if !queue.capabilities().keeps_without_puller {
        return;
    }
    let [mut gone, mut rest] = <[PulledNumbers; 2]>::default();
    let mut first = queue.puller(Wait::Block);
    push(&mut *queue.pusher(), 0..50);
    hold(&mut *first, &mut gone, 10, "at most once");
    drop(first);
    let mut second = queue.puller(Wait::Block);
    pull_until(&mut *second, &mut rest, "after a dropped puller", |rest| rest.count() >= 40);
    check_no_message(&mut *second);
    let gone = gone.all();
    check_each_once(&rest.all(), (0..50).filter(|number| !gone.contains(number)), "after a dropped puller");
}

/// Checks that a kind of delivery that does not exist here is refused with a clear error.
fn unsupported(fixture: &Fixture<'_>) {
    for delivery in DeliveryGuarantee::ALL {
        let queue = fixture.queue_by("unsupported", delivery);
        if !queue.capabilities().deliveries.contains(&delivery) {
            check_unsupported(queue.connection.pusher(&queue.name, &queue.config), delivery.name());
            check_unsupported(queue.connection.puller(&queue.name, &queue.config, Wait::Yield), delivery.name());
        }
    }
}

/// Checks that a queue has one pusher if the transport requires it, and that the error of the second names the first.
fn second_pusher(fixture: &Fixture<'_>) {
    let queue = fixture.queue("second");
    let mut puller = queue.puller(Wait::Block);
    let mut first = queue.pusher();
    let second = queue.connection.pusher(&queue.name, &queue.config);
    let mut second = if queue.capabilities().single_pusher {
        let error = second.err().expect("a second pusher is refused");
        assert!(matches!(error, ConnectError::HasPublisher(_)), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        push(&mut *first, 0..1);
        drop(first);
        queue.pusher()
    } else {
        push(&mut *first, 0..1);
        second.expect("a second pusher is welcome")
    };
    push(&mut *second, 1..2);
    let mut taken = PulledNumbers::default();
    pull_until(&mut *puller, &mut taken, "two pushers", |taken| taken.count() >= 2);
    check_each_once(&taken.all(), 0..2, "two pushers");
}

/// Checks that waiting messages are counted where the transport can; a queue that does not exist has none.
fn count(fixture: &Fixture<'_>) {
    for queue in fixture.queues("count") {
        queue.wait_for_count(0);
        if !queue.capabilities().keeps_without_puller {
            return;
        }
        // There is no puller yet: messages that a puller has prefetched may not count.
        push(&mut *queue.pusher(), 0..25);
        queue.wait_for_count(25);
        let mut puller = queue.puller(Wait::Block);
        let mut taken = PulledNumbers::default();
        pull_until(&mut *puller, &mut taken, "count", |taken| taken.count() >= 25);
        queue.wait_for_count(0);
    }
}

/// Checks that the empty and the longest payload pass, and that a longer one is refused with the true limit.
fn sizes(fixture: &Fixture<'_>) {
    const FAR_TOO_LARGE: usize = 1 << 25;
    let queue = fixture.queue("sizes");
    let mut puller = queue.puller(Wait::Yield);
    let mut pusher = queue.pusher();
    let error = pusher.push(0, KIND, &vec![0; FAR_TOO_LARGE]).expect_err("far too large");
    let PublishError::TooLarge { bytes: FAR_TOO_LARGE, limit } = error else { panic!("{error}") };
    let max = queue.capabilities().max_payload;
    assert!(limit >= max, "{limit} passes, but {max} is promised");
    let larger = pusher.push(0, KIND, &vec![0; limit + 1]).expect_err("one more than the limit");
    assert!(matches!(larger, PublishError::TooLarge { .. }), "{larger}");
    for bytes in [0, 1, 7, 8, 9, 63, 64, 65, 4096, max - 1, max, limit] {
        let sent: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
        pusher.push(bytes as u64, KIND, &sent).expect("it fits");
        let message = next(&mut *puller, "sizes");
        assert!(message == (bytes as u64, KIND, sent), "{bytes} bytes arrived as {} bytes", message.2.len());
    }
}

/// Checks that kinds from 16 on arrive as sent, with their stamps, and that lower, reserved kinds are refused.
fn kinds(fixture: &Fixture<'_>) {
    let queue = fixture.queue("kinds");
    let mut puller = queue.puller(Wait::Yield);
    let mut pusher = queue.pusher();
    for kind in 0..=u8::MAX {
        let stamp = u64::MAX - u64::from(kind);
        let pushed = pusher.push(stamp, kind, &[kind]);
        if kind < 16 {
            let error = pushed.expect_err("reserved kinds are refused");
            assert!(error.to_string().contains("use 16 to 255"), "{error}");
        } else {
            pushed.expect("pushed");
            assert_eq!(next(&mut *puller, "kinds"), (stamp, kind, vec![kind]));
        }
    }
    check_no_message(&mut *puller);
}

/// Checks that names that could leave the place, or that another transport could not carry, are refused everywhere.
fn names(fixture: &Fixture<'_>) {
    let connection = (fixture.connect)();
    let config = queue_config(surest_delivery(&*connection));
    for bad in &bad_names() {
        check_name_refused(connection.pusher(bad, &config).err(), "queue", bad);
        check_name_refused(connection.puller(bad, &config, Wait::Yield).err(), "queue", bad);
        check_name_refused(connection.count_waiting(bad).err(), "queue", bad);
        check_name_refused(connection.remove_queue(bad).err(), "queue", bad);
    }
    for good in GOOD_NAMES {
        let queue = fixture.queue(good);
        let mut puller = queue.puller(Wait::Block);
        push(&mut *queue.pusher(), 0..1);
        assert_eq!(next(&mut *puller, good).0, 0);
    }
}

/// Checks that each message ends the waiting of a puller, however it waits.
fn waiting(fixture: &Fixture<'_>) {
    const COUNT: u64 = 100;
    const LONG_NS: u64 = 120_000_000_000;
    for wait in [Wait::Busy, Wait::Yield, Wait::Block, Wait::Adaptive] {
        let queue = fixture.queue(wait.name());
        let mut puller = queue.puller(wait);
        let mut pusher = queue.pusher();
        let mut taken = PulledNumbers::default();
        let deadline = TestDeadline::new();
        std::thread::scope(|scope| {
            let (ask, asked) = sync_channel(1);
            scope.spawn(move || {
                for number in asked {
                    push(&mut *pusher, number..number + 1);
                }
            });
            for number in 0..COUNT {
                ask.send(number).expect("the pusher lives");
                while taken.count() as u64 <= number {
                    puller.wait(LONG_NS);
                    puller.pull(8, &mut |pulled| taken.record(pulled)).expect("pulled");
                    // A puller that is not woken sleeps beyond this deadline.
                    deadline.check(wait.name());
                }
                puller.acknowledge().expect("acknowledged");
            }
        });
        check_each_once(&taken.all(), 0..COUNT, wait.name());
    }
}

/// Checks that a queue can be removed, also twice or if it never existed: its messages are gone, and its name is free.
fn removal(fixture: &Fixture<'_>) {
    for queue in fixture.queues("removal") {
        queue.remove();
        for first in [0, 100] {
            let mut puller = queue.puller(Wait::Block);
            check_no_message(&mut *puller);
            push(&mut *queue.pusher(), first..first + 10);
            let mut taken = PulledNumbers::default();
            hold(&mut *puller, &mut taken, 5, "a queue anew");
            puller.acknowledge().expect("acknowledged");
            assert!(taken.all().iter().all(|&number| number >= first), "from a removed queue: {taken:?}");
            drop(puller);
            queue.remove();
            queue.wait_for_count(0);
        }
        queue.remove();
    }
}

fn check_rising(numbers: &[u64]) {
    assert!(numbers.is_sorted_by(|a, b| a < b), "not in the order of pushing: {numbers:?}");
}

/// Pulls until all threads together have this many messages.
fn pull_together(mut puller: Box<dyn Puller>, together: &AtomicU64, count: u64) -> PulledNumbers {
    let mut taken = PulledNumbers::default();
    // Restarts with each message, because it detects a stall and not a slow run.
    let mut deadline = TestDeadline::new();
    while together.load(Ordering::Relaxed) < count {
        let pulled = pull(&mut *puller, &mut taken, 16, "shared");
        if pulled > 0 {
            deadline = TestDeadline::new();
        }
        together.fetch_add(pulled as u64, Ordering::Relaxed);
        deadline.check("shared");
    }
    taken
}
