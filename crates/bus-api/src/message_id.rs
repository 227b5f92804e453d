//! Publisher id and sequence number of a message: detects duplicates and gaps on any broker.
//!
//! ```text
//!   publisher 7a…   0         1         2         2           4         numbers of its messages, as they arrive
//!   check           InOrder   InOrder   InOrder   Duplicate   Gap(1)    checked again after the gap: InOrder
//! ```

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, Clock, HostClock};

/// Max publishers of one topic that are tracked; beyond it the publisher that was silent longest is forgotten.
const MAX_PUBLISHERS: usize = 1024;
/// Max gaps that are kept, over all publishers of a topic; beyond it the oldest gap is forgotten.
const MAX_GAPS: usize = 1024;

/// Publisher id and sequence number of a message on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageId {
    /// Clock that took the stamp: the [`clock_id`] of the publisher's host, since its last boot.
    pub clock: u64,
    /// Id of the publisher or pusher, different for each one that is opened.
    pub publisher: u64,
    /// Sequence number, counted by the publisher from 0.
    pub sequence: u64,
}

/// Returns the id of a host's clock since its last boot, different from any other clock's.
pub fn clock_id(calibration: &Calibration) -> u64 {
    let (high, low) = calibration.boot_id.split_at(8);
    let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("half of 16 bytes"));
    mix(word(high)) ^ word(low)
}

/// Sequence numbers of one publisher's messages.
#[derive(Debug)]
pub struct Numbering {
    next: MessageId,
}

impl Numbering {
    /// Starts the numbering of a publisher that is opened now.
    pub fn new(clock: HostClock) -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let calibration = clock.calibration();
        let opened = OPENED.fetch_add(1, Ordering::Relaxed);
        // Unique on this host by ticks, process id and counter; between hosts by their clock.
        let local = mix(clock.ticks()) ^ mix(u64::from(std::process::id()) << 32 | opened);
        let clock = clock_id(calibration);
        Self { next: MessageId { clock, publisher: mix(local ^ mix(clock)), sequence: 0 } }
    }

    /// Returns the id of the message that is this many messages after the next one.
    pub fn peek(&self, messages: usize) -> MessageId {
        MessageId { sequence: self.next.sequence + messages as u64, ..self.next }
    }

    /// Marks the numbers of this many messages as used, so that no other message gets them.
    pub fn advance(&mut self, messages: usize) {
        self.next.sequence += messages as u64;
    }
}

/// Classification of a message by the messages of its publisher seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceCheck {
    /// Next in sequence, or the first of its publisher with the number 0.
    InOrder,
    /// First of its publisher that is seen, with a number above 0: earlier ones may predate the subscription.
    First,
    /// Number of earlier messages lost. The message is not recorded: report the gap, then check the same message again.
    Gap(u64),
    /// Duplicate.
    Duplicate,
    /// Out of order: a later message of its publisher came first. The message was reported as part of a gap, or
    /// predates the subscription.
    OutOfOrder,
}

/// Last sequence number of each publisher of a topic.
#[derive(Debug, Clone, Default)]
pub struct MessageIdTracker {
    /// Publisher of the last message, which mostly sends the next one too.
    last: Option<(u64, PublisherProgress)>,
    /// All other publishers.
    others: HashMap<u64, PublisherProgress>,
    /// Number of uncounted gaps reported, each for all publishers.
    gaps_reported: u64,
    /// Number of messages seen.
    messages_seen: u64,
    duplicates: u64,
    out_of_order: u64,
    /// Publisher and numbers of each gap, the oldest first; numbers that arrive late are removed.
    gaps: VecDeque<(u64, Range<u64>)>,
    /// Whether a published gap is delivered as a message.
    is_bridge: bool,
}

/// State after a publisher's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastMessage {
    /// Publisher id.
    pub publisher: u64,
    /// Next sequence number of the publisher.
    pub next: u64,
    /// An uncounted gap was reported after that message: numbers that are missing next are part of that gap.
    pub is_gap_reported: bool,
}

#[derive(Debug, Clone, Copy)]
struct PublisherProgress {
    /// Next sequence number.
    next: u64,
    /// Number of uncounted gaps that had been reported at the publisher's last message.
    gaps_reported: u64,
    /// Number of messages seen up to the publisher's last message.
    seen_at: u64,
}

impl MessageIdTracker {
    /// Classifies a message and records it.
    #[inline]
    pub fn check(&mut self, id: MessageId) -> SequenceCheck {
        self.messages_seen += 1;
        if let Some((publisher, progress)) = &mut self.last
            && *publisher == id.publisher
            && progress.next == id.sequence
        {
            *progress = PublisherProgress {
                next: id.sequence.saturating_add(1),
                gaps_reported: self.gaps_reported,
                seen_at: self.messages_seen,
            };
            return SequenceCheck::InOrder;
        }
        self.check_unexpected(id)
    }

    /// Records that an uncounted gap was reported: numbers that are missing next are part of that gap.
    pub fn gap_reported(&mut self) {
        self.gaps_reported += 1;
    }

    /// Returns a tracker that has seen only these, the last message of each of some publishers, the most recent first.
    pub fn resumed_after(seen: impl IntoIterator<Item = LastMessage>) -> Self {
        let progress = |last: &LastMessage| PublisherProgress {
            next: last.next,
            gaps_reported: u64::from(!last.is_gap_reported),
            seen_at: 0,
        };
        let mut seen = seen.into_iter().map(|last| (last.publisher, progress(&last)));
        Self { last: seen.next(), others: seen.collect(), gaps_reported: 1, ..Self::default() }
    }

    /// Returns the message seen last; `None` if none had a message id.
    pub fn last(&self) -> Option<LastMessage> {
        self.last.map(|(publisher, progress)| self.last_message(publisher, progress))
    }

    /// Returns whether a message, or a later one of its publisher, was seen; true if no message with an id was seen.
    pub fn has_seen(&self, id: MessageId) -> bool {
        let last = self.last.filter(|&(publisher, _)| publisher == id.publisher).map(|(_, progress)| progress);
        let known = last.or_else(|| self.others.get(&id.publisher).copied());
        self.last.is_none() || known.is_some_and(|progress| id.sequence < progress.next)
    }

    /// Returns the last message of each of the most recent publishers, the most recent first.
    pub fn latest_publishers(&self, publishers: usize) -> Vec<LastMessage> {
        let mut others: Vec<_> = self.others.iter().map(|(&publisher, &progress)| (publisher, progress)).collect();
        others.sort_unstable_by_key(|(_, progress)| Reverse(progress.seen_at));
        let all = self.last.into_iter().chain(others);
        all.take(publishers).map(|(publisher, progress)| self.last_message(publisher, progress)).collect()
    }

    fn last_message(&self, publisher: u64, progress: PublisherProgress) -> LastMessage {
        let is_gap_reported = progress.gaps_reported != self.gaps_reported;
        LastMessage { publisher, next: progress.next, is_gap_reported }
    }

    /// Switches to delivering a published gap as its message, for a bridge.
    pub fn enable_bridge_mode(&mut self) {
        self.is_bridge = true;
    }

    /// Returns whether a published gap is delivered as its message.
    pub fn is_bridge(&self) -> bool {
        self.is_bridge
    }

    /// Returns the number of duplicates, which were not delivered.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the number of messages out of order, which were not delivered.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    fn check_unexpected(&mut self, id: MessageId) -> SequenceCheck {
        if let Some((publisher, progress)) = self.last.take() {
            self.others.insert(publisher, progress);
        }
        let known = self.others.remove(&id.publisher);
        let next = known.map_or(0, |progress| progress.next);
        let check = match known {
            Some(_) if id.sequence < next => match self.fill_gap(id) {
                true => SequenceCheck::OutOfOrder,
                false => SequenceCheck::Duplicate,
            },
            Some(progress) if id.sequence > next && progress.gaps_reported == self.gaps_reported => {
                SequenceCheck::Gap(id.sequence - next)
            }
            None if id.sequence > 0 => SequenceCheck::First,
            _ => SequenceCheck::InOrder,
        };
        if id.sequence > next {
            self.open_gap(id.publisher, next..id.sequence);
        }
        let next = match check {
            SequenceCheck::Duplicate | SequenceCheck::OutOfOrder => next,
            SequenceCheck::Gap(_) => id.sequence,
            SequenceCheck::InOrder | SequenceCheck::First => id.sequence.saturating_add(1),
        };
        self.duplicates += u64::from(check == SequenceCheck::Duplicate);
        self.out_of_order += u64::from(check == SequenceCheck::OutOfOrder);
        if self.others.len() >= MAX_PUBLISHERS {
            self.evict_silent_publisher();
        }
        self.last = Some((
            id.publisher,
            PublisherProgress { next, gaps_reported: self.gaps_reported, seen_at: self.messages_seen },
        ));
        check
    }

    /// Records these numbers as a gap.
    fn open_gap(&mut self, publisher: u64, numbers: Range<u64>) {
        if self.gaps.len() >= MAX_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back((publisher, numbers));
    }

    /// Removes this number from its gap; returns whether a gap had it.
    fn fill_gap(&mut self, id: MessageId) -> bool {
        let has_number =
            |(publisher, numbers): &(u64, Range<u64>)| *publisher == id.publisher && numbers.contains(&id.sequence);
        let Some(index) = self.gaps.iter().rposition(has_number) else { return false };
        let (_, numbers) = &mut self.gaps[index];
        let behind = id.sequence + 1..numbers.end;
        numbers.end = id.sequence;
        if numbers.is_empty() {
            self.gaps.remove(index);
        }
        if !behind.is_empty() {
            self.open_gap(id.publisher, behind);
        }
        true
    }

    fn evict_silent_publisher(&mut self) {
        let silent = self.others.iter().min_by_key(|(_, progress)| progress.seen_at).map(|(&publisher, _)| publisher);
        if let Some(silent) = silent {
            self.others.remove(&silent);
            self.gaps.retain(|(publisher, _)| *publisher != silent);
        }
    }
}

/// Returns a number that looks random (the finaliser of SplitMix64).
pub(crate) const fn mix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn from(publisher: u64, number: u64) -> MessageId {
        MessageId { clock: 1, publisher, sequence: number }
    }

    #[test]
    fn duplicates_and_gaps_are_detected_for_each_publisher() {
        let mut tracker = MessageIdTracker::default();
        for (publisher, number, check) in [
            (1, 5, SequenceCheck::First),
            (1, 6, SequenceCheck::InOrder),
            (2, 0, SequenceCheck::InOrder),
            (1, 6, SequenceCheck::Duplicate),
            (1, 7, SequenceCheck::InOrder),
            (1, 9, SequenceCheck::Gap(1)),
            (1, 9, SequenceCheck::InOrder),
            (1, 8, SequenceCheck::OutOfOrder),
            (1, 8, SequenceCheck::Duplicate),
            (1, 4, SequenceCheck::OutOfOrder),
            (2, 1, SequenceCheck::InOrder),
            (2, 4, SequenceCheck::Gap(2)),
        ] {
            assert_eq!(tracker.check(from(publisher, number)), check, "{number} of {publisher}");
        }
        assert_eq!((tracker.duplicates(), tracker.out_of_order()), (2, 2));
        for (publisher, number, is_seen) in [(1, 9, true), (1, 10, false), (2, 0, true), (2, 4, false), (3, 0, false)] {
            assert_eq!(tracker.has_seen(from(publisher, number)), is_seen, "{number} of {publisher}");
        }
        assert!(MessageIdTracker::default().has_seen(from(3, 0)), "no message was seen");
    }

    #[test]
    fn a_reported_loss_is_no_gap_of_the_next_message() {
        let mut tracker = MessageIdTracker::default();
        for publisher in [1, 2] {
            assert_eq!(tracker.check(from(publisher, 0)), SequenceCheck::InOrder);
        }
        tracker.gap_reported();
        for publisher in [1, 2] {
            assert_eq!(tracker.check(from(publisher, 0)), SequenceCheck::Duplicate, "it was seen before the loss");
            assert_eq!(tracker.check(from(publisher, 1)), SequenceCheck::InOrder);
            assert_eq!(tracker.check(from(publisher, 3)), SequenceCheck::Gap(1), "once only");
            assert_eq!(tracker.check(from(publisher, 3)), SequenceCheck::InOrder);
        }
    }

    #[test]
    fn numbers_missing_after_a_reported_loss_are_part_of_it() {
        let mut tracker = MessageIdTracker::default();
        assert_eq!(tracker.check(from(1, 0)), SequenceCheck::InOrder);
        tracker.gap_reported();
        assert_eq!(tracker.check(from(1, 7)), SequenceCheck::InOrder);
        assert_eq!(tracker.check(from(1, 9)), SequenceCheck::Gap(1));
    }

    #[test]
    fn the_highest_sequence_number_does_not_overflow() {
        let mut tracker = MessageIdTracker::default();
        assert_eq!(tracker.check(from(1, u64::MAX)), SequenceCheck::First);
        assert_eq!(tracker.check(from(2, 0)), SequenceCheck::InOrder);
        assert_eq!(tracker.check(from(1, 7)), SequenceCheck::OutOfOrder);
    }

    #[test]
    fn gaps_are_bounded_and_the_newest_stay() {
        let mut tracker = MessageIdTracker::default();
        assert_eq!(tracker.check(from(1, 0)), SequenceCheck::InOrder);
        for number in (2..=4 * MAX_GAPS as u64).step_by(2) {
            assert_eq!(tracker.check(from(1, number)), SequenceCheck::Gap(1));
            assert_eq!(tracker.check(from(1, number)), SequenceCheck::InOrder);
        }
        assert!(tracker.gaps.len() <= MAX_GAPS);
        assert_eq!(tracker.check(from(1, 1)), SequenceCheck::Duplicate, "it was forgotten that it was missing");
        assert_eq!(tracker.check(from(1, 4 * MAX_GAPS as u64 - 1)), SequenceCheck::OutOfOrder);
    }

    proptest! {
        /// Compares with a model that keeps everything: delivered numbers rise, and with the gaps cover all numbers.
        #[test]
        fn no_message_is_delivered_twice_or_lost_silently(
            steps in prop::collection::vec((0u64..3, prop_oneof![8 => Just(0i64), 1 => 1..5i64, 1 => -4..0i64]), 1..200),
        ) {
            let mut tracker = MessageIdTracker::default();
            let mut next = [0u64; 3];
            let mut seen = HashSet::new();
            for (publisher, jump) in steps {
                let expected = &mut next[publisher as usize];
                let number = expected.saturating_add_signed(jump);
                let is_known = *expected > 0;
                let check = tracker.check(from(publisher, number));
                let is_new = matches!(check, SequenceCheck::Gap(_)) || seen.insert((publisher, number));
                match check {
                    SequenceCheck::Duplicate => prop_assert!(is_known && number < *expected && !is_new),
                    SequenceCheck::OutOfOrder => prop_assert!(is_known && number < *expected && is_new),
                    SequenceCheck::First => {
                        prop_assert!(!is_known && number > 0);
                        *expected = number + 1;
                    }
                    SequenceCheck::InOrder => {
                        prop_assert!(number == *expected);
                        *expected = number + 1;
                    }
                    SequenceCheck::Gap(missed) => {
                        prop_assert_eq!(missed, number - *expected);
                        *expected = number;
                    }
                }
            }
        }

        #[test]
        fn publishers_beyond_the_max_are_forgotten(publishers in 1u64..3000) {
            let mut tracker = MessageIdTracker::default();
            for publisher in 0..publishers {
                tracker.check(from(publisher, 0));
            }
            prop_assert!(tracker.others.len() <= MAX_PUBLISHERS);
            prop_assert_eq!(tracker.check(from(publishers - 1, 0)), SequenceCheck::Duplicate);
        }
    }

    #[test]
    fn two_publishers_of_one_process_have_different_ids() {
        let clock = HostClock::get().unwrap();
        let (one, mut other) = (Numbering::new(clock), Numbering::new(clock));
        assert_ne!(one.peek(0).publisher, other.peek(0).publisher);
        assert_eq!(one.peek(0).clock, other.peek(0).clock);
        other.advance(3);
        assert_eq!(other.peek(2).sequence, 5);
    }
}
