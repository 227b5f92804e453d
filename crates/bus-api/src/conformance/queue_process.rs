//! Cases in which pusher or puller processes are killed.

use std::ops::Range;

use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use super::child::{HELD_MESSAGES, RoleProcess};
use super::fixture::Fixture;
use super::message::TestDeadline;
use super::numbered_pull::{
    PulledNumbers, check_each_once, check_marked, check_no_duplicates, check_no_message, pull, pull_until, push,
};
use super::role::ChildRole;
use super::scratch::ScratchQueue;
use crate::message_id::mix;
use crate::{DeliveryGuarantee, Puller, Pusher};

/// Checks that the messages of a killed puller are redelivered, marked, and none is lost; at most once, they are gone.
pub(super) fn puller_killed(fixture: &Fixture<'_>) {
    const COUNT: u64 = 1_000;
    for queue in fixture.queues("puller-killed").map(ScratchQueue::with_short_silence) {
        if !queue.capabilities().keeps_without_puller {
            return;
        }
        let (role, is_redelivered) = match queue.config.delivery {
            DeliveryGuarantee::AtLeastOnce => (ChildRole::Holder, true),
            DeliveryGuarantee::AtMostOnce => (ChildRole::AtMostOnceHolder, false),
        };
        push(&mut *queue.pusher(), 0..COUNT);
        let mut child = RoleProcess::spawn(fixture, role, &queue.name);
        let held: Vec<u64> = child.until_ready().split_whitespace().map(|n| n.parse().expect("a number")).collect();
        assert_eq!(held.len(), HELD_MESSAGES, "{held:?}");
        child.kill();
        let mut expected: Vec<u64> = (0..COUNT).collect();
        expected.retain(|number| is_redelivered || !held.contains(number));
        let mut puller = queue.puller(Wait::Block);
        let mut taken = PulledNumbers::default();
        pull_until(&mut *puller, &mut taken, "after a killed puller", |taken| taken.count() >= expected.len());
        check_no_message(&mut *puller);
        check_each_once(&taken.all(), expected, "after a killed puller");
        if is_redelivered {
            check_marked(&taken, &held);
        }
    }
}

/// Checks that the messages of a killed pusher arrive without a hole, each once, and that the next pusher continues.
pub(super) fn pusher_killed(fixture: &Fixture<'_>) {
    /// First number of the next pusher.
    const NEXT: u64 = 1 << 40;
    for round in 0..3 {
        let queue = fixture.queue(&format!("pusher-killed-{round}"));
        let mut puller = queue.puller(Wait::Block);
        let mut taken = PulledNumbers::default();
        let mut child = RoleProcess::start(fixture, ChildRole::Pusher, &queue.name);
        pull_until(&mut *puller, &mut taken, "from a child", |taken| taken.count() >= 200);
        child.kill();
        let mut pusher = queue.pusher();
        std::thread::scope(|scope| {
            // Pushes concurrently, because the child may have left the queue full.
            scope.spawn(move || push(&mut *pusher, NEXT..NEXT + 10));
            pull_until(&mut *puller, &mut taken, "after a killed pusher", |taken| {
                let (old, new): (Vec<u64>, Vec<u64>) = taken.all().into_iter().partition(|&number| number < NEXT);
                new.len() >= 10 && old.iter().all(|&number| number < old.len() as u64)
            });
        });
        let pulled = taken.all();
        let old = pulled.iter().filter(|&&number| number < NEXT).count() as u64;
        check_each_once(&pulled, (0..old).chain(NEXT..NEXT + 10), "after a killed pusher");
    }
}

/// Checks that after random kills of pullers the queue still works: no unmarked duplicate arrives, and it becomes
/// empty.
pub(super) fn killed_anywhere(fixture: &Fixture<'_>) {
    const ROUNDS: u64 = 10;
    const COUNT: u64 = 200;
    let queue = fixture.queue("killed-anywhere").with_short_silence();
    let is_kept = queue.capabilities().keeps_without_puller;
    let seed = HostClock::get().expect("the host has a clock").ticks();
    println!("seed {seed}");
    // Where nothing is kept without a puller, one exists from the start.
    let early = (!is_kept).then(|| queue.puller(Wait::Block));
    let mut pusher = queue.pusher();
    for round in 0..ROUNDS {
        let child = RoleProcess::spawn(fixture, ChildRole::Puller, &queue.name);
        if round.is_multiple_of(2) {
            child.until_ready();
        }
        push_and_kill(&mut *pusher, round * COUNT..(round + 1) * COUNT, child, mix(seed ^ round) % COUNT);
    }
    let mut puller = early.unwrap_or_else(|| queue.puller(Wait::Block));
    let mut taken = PulledNumbers::default();
    let fresh = ROUNDS * COUNT;
    let end = push_until_received(&mut *pusher, &mut *puller, &mut taken, fresh);
    pull_until(&mut *puller, &mut taken, "the remaining messages", |taken| {
        let pulled = taken.all();
        (!is_kept || (fresh..end).all(|number| pulled.contains(&number))) && matches!(queue.waiting(), None | Some(0))
    });
    check_no_duplicates(&taken.fresh, "messages that are not marked as redelivered");
}

/// Pushes these numbers, and kills the child after this many of them.
fn push_and_kill(pusher: &mut dyn Pusher, numbers: Range<u64>, mut child: RoleProcess, after: u64) {
    let last = numbers.start + after;
    for number in numbers {
        push(pusher, number..number + 1);
        if number == last {
            child.kill();
        }
        // Slows pushing down, so that not all is pushed before the child is at work.
        sleep_ns(200_000);
    }
}

/// Pushes from this number on until one of the new messages arrives, because a server may give unkept messages to a
/// puller that it does not know to be dead yet. Returns the number after the last.
fn push_until_received(pusher: &mut dyn Pusher, puller: &mut dyn Puller, taken: &mut PulledNumbers, first: u64) -> u64 {
    let deadline = TestDeadline::new();
    let mut next = first;
    while taken.all().iter().all(|&number| number < first) {
        push(pusher, next..next + 1);
        next += 1;
        for _ in 0..10 {
            pull(puller, taken, 64, "after killed pullers");
        }
        deadline.check("after killed pullers");
    }
    next
}
