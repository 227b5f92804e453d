//! Publisher id and sequence number of a message: detects duplicates and gaps on any broker.
//!
//! ```text
//!   publisher 7a…   0   1   2   2   4        one sequence number per message, counted by its publisher
//!   delivered       0   1   2   –   Missed(1), 4
//! ```

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, Clock, HostClock};

/// Max publishers of one topic that are tracked; beyond it the publisher that was silent longest is forgotten.
const MOST_PUBLISHERS: usize = 1024;

/// Max runs of missing numbers that are kept, over all publishers of a topic; beyond it the oldest run is forgotten.
const MOST_HOLES: usize = 1024;

/// Publisher id and sequence number of a message on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Clock that took the stamp: [`clock_of`] the publisher's host, since its last boot.
    pub clock: u64,
    /// Id of the publisher or pusher, different for each one that is opened.
    pub publisher: u64,
    /// Sequence number, counted by the publisher from 0.
    pub number: u64,
}

/// Returns the id of a host's clock since its last boot, different from any other clock's.
pub fn clock_of(calibration: &Calibration) -> u64 {
    let (high, low) = calibration.boot_id.split_at(8);
    let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("half of 16 bytes"));
    mix(word(high)) ^ word(low)
}

/// Sequence numbers of one publisher's messages.
#[derive(Debug)]
pub struct Numbering {
    next: Origin,
}

impl Numbering {
    /// Starts the numbering of a publisher that is opened now.
    pub fn new(clock: HostClock) -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let calibration = clock.calibration();
        let opened = OPENED.fetch_add(1, Ordering::Relaxed);
        // Unique on this host by ticks, process id and counter; between hosts by their clock.
        let here = mix(clock.ticks()) ^ mix(u64::from(std::process::id()) << 32 | opened);
        let clock = clock_of(calibration);
        Self { next: Origin { clock, publisher: mix(here ^ mix(clock)), number: 0 } }
    }

    /// Returns the origin of the message that is this many messages after the next one.
    pub fn ahead(&self, messages: usize) -> Origin {
        Origin { number: self.next.number + messages as u64, ..self.next }
    }

    /// Marks the numbers of this many messages as used, so that no other message gets them.
    pub fn advance(&mut self, messages: usize) {
        self.next.number += messages as u64;
    }
}

/// Classification of a message by the messages of its publisher seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// Next in sequence, or the first of its publisher with the number 0.
    Next,
    /// First of its publisher that is seen, with a number above 0: earlier ones may predate the subscription.
    First,
    /// This many messages of its publisher are missing for good. The message counts as next when it is passed again.
    After(u64),
    /// Duplicate.
    Again,
    /// Out of order: a later message of its publisher came first. It was reported as missed or as part of a loss, or
    /// predates the subscription.
    Late,
}

/// Last sequence number of each publisher of a topic.
#[derive(Debug, Clone, Default)]
pub struct OriginTracker {
    /// Publisher of the last message, which mostly sends the next one too.
    last: Option<(u64, Place)>,
    /// All other publishers.
    others: HashMap<u64, Place>,
    /// Number of uncounted losses reported, each for all publishers.
    told: u64,
    /// Number of messages seen.
    seen: u64,
    again: u64,
    late: u64,
    /// Publisher and numbers that were missing when a later message of that publisher came, the oldest run first.
    holes: VecDeque<(u64, Range<u64>)>,
    /// Whether a published loss is delivered as a message.
    is_carrier: bool,
}

/// State after a publisher's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSeen {
    /// Publisher id.
    pub publisher: u64,
    /// Next sequence number of the publisher.
    pub next: u64,
    /// A loss was reported after that message: numbers that are missing next are part of it.
    pub is_told: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Next sequence number.
    next: u64,
    /// Number of uncounted losses that had been reported at the publisher's last message.
    told: u64,
    /// Number of messages seen up to the publisher's last message.
    seen: u64,
}

impl OriginTracker {
    /// Classifies a message and records it.
    #[inline]
    pub fn see(&mut self, origin: Origin) -> Sighting {
        self.seen += 1;
        if let Some((publisher, place)) = &mut self.last
            && *publisher == origin.publisher
            && place.next == origin.number
        {
            *place = Place { next: origin.number.saturating_add(1), told: self.told, seen: self.seen };
            return Sighting::Next;
        }
        self.see_other(origin)
    }

    /// Records that an uncounted loss was reported: numbers that are missing next are part of it.
    pub fn told(&mut self) {
        self.told += 1;
    }

    /// Returns a tracker that has seen only these, the last message of each of some publishers, the most recent first.
    pub fn behind(seen: impl IntoIterator<Item = LastSeen>) -> Self {
        let place = |last: &LastSeen| Place { next: last.next, told: u64::from(!last.is_told), seen: 0 };
        let mut seen = seen.into_iter().map(|last| (last.publisher, place(&last)));
        Self { last: seen.next(), others: seen.collect(), told: 1, ..Self::default() }
    }

    /// Returns the message seen last; `None` if none had an origin.
    pub fn last(&self) -> Option<LastSeen> {
        self.last.map(|(publisher, place)| self.last_seen(publisher, place))
    }

    /// Returns whether a message, or a later one of its publisher, was seen; true if no message with an origin was
    /// seen.
    pub fn has_seen(&self, origin: Origin) -> bool {
        let known = self.last.filter(|&(publisher, _)| publisher == origin.publisher).map(|(_, place)| place);
        let known = known.or_else(|| self.others.get(&origin.publisher).copied());
        self.last.is_none() || known.is_some_and(|place| origin.number < place.next)
    }

    /// Returns the last message of each of the most recent publishers, the most recent first.
    pub fn latest(&self, publishers: usize) -> Vec<LastSeen> {
        let mut others: Vec<_> = self.others.iter().map(|(&publisher, &place)| (publisher, place)).collect();
        others.sort_unstable_by_key(|(_, place)| Reverse(place.seen));
        let all = self.last.into_iter().chain(others);
        all.take(publishers).map(|(publisher, place)| self.last_seen(publisher, place)).collect()
    }

    fn last_seen(&self, publisher: u64, place: Place) -> LastSeen {
        LastSeen { publisher, next: place.next, is_told: place.told != self.told }
    }

    /// Switches to delivering a published loss as its message, for a bridge.
    pub fn carry_on(&mut self) {
        self.is_carrier = true;
    }

    /// Returns whether a published loss is delivered as its message.
    pub fn is_carrier(&self) -> bool {
        self.is_carrier
    }

    /// Returns the number of duplicates, which were not delivered.
    pub fn again(&self) -> u64 {
        self.again
    }

    /// Returns the number of messages out of order, which were not delivered.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn see_other(&mut self, origin: Origin) -> Sighting {
        if let Some((publisher, place)) = self.last.take() {
            self.others.insert(publisher, place);
        }
        let known = self.others.remove(&origin.publisher);
        let next = known.map_or(0, |place| place.next);
        let sighting = match known {
            Some(_) if origin.number < next => match self.fill_hole(origin) {
                true => Sighting::Late,
                false => Sighting::Again,
            },
            Some(place) if origin.number > next && place.told == self.told => Sighting::After(origin.number - next),
            None if origin.number > 0 => Sighting::First,
            _ => Sighting::Next,
        };
        if origin.number > next {
            self.open_hole(origin.publisher, next..origin.number);
        }
        let next = match sighting {
            Sighting::Again | Sighting::Late => next,
            Sighting::After(_) => origin.number,
            Sighting::Next | Sighting::First => origin.number.saturating_add(1),
        };
        self.again += u64::from(sighting == Sighting::Again);
        self.late += u64::from(sighting == Sighting::Late);
        if self.others.len() >= MOST_PUBLISHERS {
            self.forget_one();
        }
        self.last = Some((origin.publisher, Place { next, told: self.told, seen: self.seen }));
        sighting
    }

    /// Records these numbers as missing.
    fn open_hole(&mut self, publisher: u64, numbers: Range<u64>) {
        if self.holes.len() >= MOST_HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back((publisher, numbers));
    }

    /// Removes this number from the missing ones; returns whether it was missing.
    fn fill_hole(&mut self, origin: Origin) -> bool {
        let is_there = |(publisher, numbers): &(u64, Range<u64>)| {
            *publisher == origin.publisher && numbers.contains(&origin.number)
        };
        let Some(at) = self.holes.iter().rposition(is_there) else { return false };
        let (_, numbers) = &mut self.holes[at];
        let behind = origin.number + 1..numbers.end;
        numbers.end = origin.number;
        if numbers.is_empty() {
            self.holes.remove(at);
        }
        if !behind.is_empty() {
            self.open_hole(origin.publisher, behind);
        }
        true
    }

    fn forget_one(&mut self) {
        if let Some(&silent) = self.others.iter().min_by_key(|(_, place)| place.seen).map(|(publisher, _)| publisher) {
            self.others.remove(&silent);
            self.holes.retain(|(publisher, _)| *publisher != silent);
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

    fn from(publisher: u64, number: u64) -> Origin {
        Origin { clock: 1, publisher, number }
    }

    #[test]
    fn what_comes_twice_or_never_is_seen_for_each_publisher() {
        let mut tracker = OriginTracker::default();
        for (publisher, number, sighting) in [
            (1, 5, Sighting::First),
            (1, 6, Sighting::Next),
            (2, 0, Sighting::Next),
            (1, 6, Sighting::Again),
            (1, 7, Sighting::Next),
            (1, 9, Sighting::After(1)),
            (1, 9, Sighting::Next),
            (1, 8, Sighting::Late),
            (1, 8, Sighting::Again),
            (1, 4, Sighting::Late),
            (2, 1, Sighting::Next),
            (2, 4, Sighting::After(2)),
        ] {
            assert_eq!(tracker.see(from(publisher, number)), sighting, "{number} of {publisher}");
        }
        assert_eq!((tracker.again(), tracker.late()), (2, 2));
        for (publisher, number, is_seen) in [(1, 9, true), (1, 10, false), (2, 0, true), (2, 4, false), (3, 0, false)] {
            assert_eq!(tracker.has_seen(from(publisher, number)), is_seen, "{number} of {publisher}");
        }
        assert!(OriginTracker::default().has_seen(from(3, 0)), "nobody knows");
    }

    #[test]
    fn a_gap_that_was_told_is_not_told_again_by_numbers() {
        let mut tracker = OriginTracker::default();
        for publisher in [1, 2] {
            assert_eq!(tracker.see(from(publisher, 0)), Sighting::Next);
        }
        tracker.told();
        for publisher in [1, 2] {
            assert_eq!(tracker.see(from(publisher, 0)), Sighting::Again, "it is known all the same");
            assert_eq!(tracker.see(from(publisher, 1)), Sighting::Next);
            assert_eq!(tracker.see(from(publisher, 3)), Sighting::After(1), "once only");
            assert_eq!(tracker.see(from(publisher, 3)), Sighting::Next);
        }
    }

    #[test]
    fn a_gap_that_was_told_excuses_what_is_missing_next() {
        let mut tracker = OriginTracker::default();
        assert_eq!(tracker.see(from(1, 0)), Sighting::Next);
        tracker.told();
        assert_eq!(tracker.see(from(1, 7)), Sighting::Next);
        assert_eq!(tracker.see(from(1, 9)), Sighting::After(1));
    }

    #[test]
    fn the_highest_number_is_one_like_others() {
        let mut tracker = OriginTracker::default();
        assert_eq!(tracker.see(from(1, u64::MAX)), Sighting::First);
        assert_eq!(tracker.see(from(2, 0)), Sighting::Next);
        assert_eq!(tracker.see(from(1, 7)), Sighting::Late);
    }

    #[test]
    fn holes_are_bounded_and_the_newest_ones_stay() {
        let mut tracker = OriginTracker::default();
        assert_eq!(tracker.see(from(1, 0)), Sighting::Next);
        for number in (2..=4 * MOST_HOLES as u64).step_by(2) {
            assert_eq!(tracker.see(from(1, number)), Sighting::After(1));
            assert_eq!(tracker.see(from(1, number)), Sighting::Next);
        }
        assert!(tracker.holes.len() <= MOST_HOLES);
        assert_eq!(tracker.see(from(1, 1)), Sighting::Again, "it was forgotten that it was missing");
        assert_eq!(tracker.see(from(1, 4 * MOST_HOLES as u64 - 1)), Sighting::Late);
    }

    proptest! {
        /// Compares with a model that keeps everything: delivered numbers rise, and with the reported gaps cover all
        /// numbers.
        #[test]
        fn nothing_is_handed_over_twice_or_lost_in_silence(
            steps in prop::collection::vec((0u64..3, prop_oneof![8 => Just(0i64), 1 => 1..5i64, 1 => -4..0i64]), 1..200),
        ) {
            let mut tracker = OriginTracker::default();
            let mut next = [0u64; 3];
            let mut came = HashSet::new();
            for (publisher, jump) in steps {
                let expected = &mut next[publisher as usize];
                let number = expected.saturating_add_signed(jump);
                let is_known = *expected > 0;
                let sighting = tracker.see(from(publisher, number));
                let is_new = matches!(sighting, Sighting::After(_)) || came.insert((publisher, number));
                match sighting {
                    Sighting::Again => prop_assert!(is_known && number < *expected && !is_new),
                    Sighting::Late => prop_assert!(is_known && number < *expected && is_new),
                    Sighting::First => {
                        prop_assert!(!is_known && number > 0);
                        *expected = number + 1;
                    }
                    Sighting::Next => {
                        prop_assert!(number == *expected);
                        *expected = number + 1;
                    }
                    Sighting::After(missed) => {
                        prop_assert_eq!(missed, number - *expected);
                        *expected = number;
                    }
                }
            }
        }

        #[test]
        fn publishers_beyond_the_most_are_forgotten_and_memory_is_bounded(publishers in 1u64..3000) {
            let mut tracker = OriginTracker::default();
            for publisher in 0..publishers {
                tracker.see(from(publisher, 0));
            }
            prop_assert!(tracker.others.len() <= MOST_PUBLISHERS);
            prop_assert_eq!(tracker.see(from(publishers - 1, 0)), Sighting::Again);
        }
    }

    #[test]
    fn two_publishers_of_one_process_are_two() {
        let clock = HostClock::get().unwrap();
        let (one, mut other) = (Numbering::new(clock), Numbering::new(clock));
        assert_ne!(one.ahead(0).publisher, other.ahead(0).publisher);
        assert_eq!(one.ahead(0).clock, other.ahead(0).clock);
        other.advance(3);
        assert_eq!(other.ahead(2).number, 5);
    }
}
