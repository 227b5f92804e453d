//! Pushing and pulling of numbered messages, and their results.

use std::collections::BTreeSet;
use std::ops::Range;

use tickpath_clock::sleep_ns;

use super::message::{KIND, TestDeadline, payload};
use crate::{PublishError, PulledMessage, Puller, Pusher};

/// Time for which a sleeping puller waits at once, in nanoseconds.
const PAUSE_NS: u64 = 10_000_000;

/// Numbered messages that pullers got, each checked to be whole.
#[derive(Debug, Default)]
pub(super) struct PulledNumbers {
    /// Numbers in the order of arrival, without messages marked as redelivered.
    pub fresh: Vec<u64>,
    /// Numbers of marked messages.
    pub redelivered: Vec<u64>,
    /// Sequence numbers in the order of arrival, where the transport gives them.
    pub sequences: Vec<u64>,
}

impl PulledNumbers {
    /// Checks and records one message.
    pub fn record(&mut self, pulled: PulledMessage<'_>) {
        let message = pulled.message;
        let number = message.stamp;
        assert!(message.kind == KIND && message.payload == payload(number), "message {number} is torn");
        self.sequences.extend(message.sequence);
        if pulled.redelivered { self.redelivered.push(number) } else { self.fresh.push(number) }
    }

    pub fn count(&self) -> usize {
        self.fresh.len() + self.redelivered.len()
    }

    /// Returns all numbers, the marked ones last.
    pub fn all(&self) -> Vec<u64> {
        [&self.fresh[..], &self.redelivered[..]].concat()
    }
}

/// Pushes these numbers; waits for a puller where the queue is full.
pub(super) fn push(pusher: &mut dyn Pusher, numbers: Range<u64>) {
    for number in numbers {
        let deadline = TestDeadline::new();
        while !try_push(pusher, number) {
            sleep_ns(1_000_000);
            deadline.check("a full queue");
        }
    }
}

/// Pushes a number; returns false where the queue is full.
pub(super) fn try_push(pusher: &mut dyn Pusher, number: u64) -> bool {
    match pusher.push(number, KIND, &payload(number)) {
        Ok(()) => true,
        Err(PublishError::Full) => false,
        Err(e) => panic!("message {number} is not pushed: {e}"),
    }
}

/// Pulls once, and acknowledges the messages; waits a moment if there are none. Returns their number.
pub(super) fn pull(puller: &mut dyn Puller, taken: &mut PulledNumbers, limit: usize, what: &str) -> usize {
    let pulled = pull_once(puller, taken, limit, what);
    if pulled > 0 {
        puller.acknowledge().unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    pulled
}

/// Pulls and acknowledges until the condition holds.
pub(super) fn pull_until(
    puller: &mut dyn Puller,
    taken: &mut PulledNumbers,
    what: &str,
    mut is_done: impl FnMut(&PulledNumbers) -> bool,
) {
    let mut deadline = TestDeadline::new();
    while !is_done(&*taken) {
        let fresh = taken.fresh.len();
        pull(puller, taken, 64, what);
        // Redelivered messages are no progress.
        if taken.fresh.len() > fresh {
            deadline = TestDeadline::new();
        }
        deadline.check(what);
    }
}

/// Pulls exactly this many messages, and acknowledges none.
pub(super) fn hold(puller: &mut dyn Puller, taken: &mut PulledNumbers, count: usize, what: &str) {
    let deadline = TestDeadline::new();
    let mut missing = count;
    while missing > 0 {
        missing -= pull_once(puller, taken, missing, what);
        deadline.check(what);
    }
}

/// Returns stamp, kind and payload of the next message, and acknowledges it.
pub(super) fn next(puller: &mut dyn Puller, what: &str) -> (u64, u8, Vec<u8>) {
    let deadline = TestDeadline::new();
    let mut found = None;
    while found.is_none() {
        let pulled = puller.pull(1, &mut |pulled| {
            let message = pulled.message;
            found = Some((message.stamp, message.kind, message.payload.to_vec()));
        });
        if pulled.unwrap_or_else(|e| panic!("{what}: {e}")) == 0 {
            puller.wait(PAUSE_NS);
        }
        deadline.check(what);
    }
    puller.acknowledge().unwrap_or_else(|e| panic!("{what}: {e}"));
    found.expect("found")
}

/// Checks that no message arrives.
pub(super) fn check_no_message(puller: &mut dyn Puller) {
    for _ in 0..10 {
        let pulled = puller.pull(8, &mut |pulled| panic!("a message arrived, and none was pushed: {pulled:?}"));
        assert_eq!(pulled.expect("pulled"), 0);
        puller.wait(1_000_000);
    }
}

/// Checks that exactly these numbers arrived, each once, in any order.
pub(super) fn check_each_once(numbers: &[u64], expected: impl IntoIterator<Item = u64>, what: &str) {
    check_no_duplicates(numbers, what);
    let numbers: BTreeSet<u64> = numbers.iter().copied().collect();
    let expected: BTreeSet<u64> = expected.into_iter().collect();
    let lost: Vec<_> = expected.difference(&numbers).collect();
    let wrong: Vec<_> = numbers.difference(&expected).collect();
    assert!(lost.is_empty() && wrong.is_empty(), "{what}: lost {lost:?}, and got unexpected {wrong:?}");
}

/// Checks that no number arrived twice.
pub(super) fn check_no_duplicates(numbers: &[u64], what: &str) {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let twice: Vec<u64> = sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    assert!(twice.is_empty(), "{what}: arrived more than once: {twice:?}");
}

/// Pulls once; waits a moment if nothing arrived. Returns the number of messages.
fn pull_once(puller: &mut dyn Puller, taken: &mut PulledNumbers, limit: usize, what: &str) -> usize {
    let before = taken.count();
    let pulled = puller.pull(limit, &mut |pulled| taken.record(pulled));
    let pulled = pulled.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(pulled, taken.count() - before, "{what}: the returned number is that of the messages");
    assert!(pulled <= limit, "{what}: {pulled} messages arrived, and {limit} were asked for");
    if pulled == 0 {
        puller.wait(PAUSE_NS);
    }
    pulled
}

/// Checks that messages that were held and not acknowledged are marked as redelivered.
pub(super) fn check_marked(taken: &PulledNumbers, held: &[u64]) {
    let unmarked: Vec<_> = held.iter().filter(|number| !taken.redelivered.contains(number)).collect();
    assert!(unmarked.is_empty(), "these were held by another puller, and are not marked as redelivered: {unmarked:?}");
}
