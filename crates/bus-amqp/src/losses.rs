//! Losses of which the broker has given notice: reported as uncountable, unless the publisher's sequence numbers count
//! them.
//!
//! ```text
//!   all that came, what was dropped and what follows is of one publisher     its numbers: Missed(n)
//!   anything else: several publishers, one that has ended, or no numbers     Reconnected, before what follows
//! ```
//! The broker numbers what it sends, notices and messages alike. So each loss has its place among the messages that are
//! here and not yet handed over, and losses with no message between them have the same place:
//!
//! ```text
//!   tags   11 message   12 notice   13 notice   14 message   15 message   16 notice   17 message
//!   reported   11              Reconnected          14           15      Reconnected      17
//! ```

use std::collections::VecDeque;

use tickpath_bus_api::Origin;

/// A subscriber's record of dropped messages.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The publisher of all messages that came.
    came: Whose,
    /// The losses not reported yet, by place: one more than there are messages here, at most.
    dropped: VecDeque<Dropped>,
}

/// The publisher of a set of messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// An empty set.
    #[default]
    Nobody,
    /// A single publisher, with its next sequence number.
    One { publisher: u64, next: u64 },
    /// Several publishers, or messages without numbers.
    Several,
}

/// The messages dropped at one place.
#[derive(Debug)]
struct Dropped {
    /// The tag of the first notice: items with a higher tag were sent later.
    first: u64,
    /// The tag of the last notice.
    last: u64,
    whose: Whose,
    /// True if perhaps no message follows.
    is_last: bool,
}

impl Whose {
    fn and(self, origin: Option<Origin>) -> Self {
        let Some(Origin { publisher, number, .. }) = origin else { return Self::Several };
        let next = number.saturating_add(1);
        match self {
            Self::Nobody => Self::One { publisher, next },
            Self::One { publisher: before, next: highest } if before == publisher => {
                Self::One { publisher, next: next.max(highest) }
            }
            Self::One { .. } | Self::Several => Self::Several,
        }
    }

    /// Returns true if all messages are from this origin's publisher, and its sequence numbers have passed this one.
    fn has_passed(self, origin: Origin) -> bool {
        matches!(self, Self::One { publisher, next } if publisher == origin.publisher && origin.number < next)
    }

    /// Returns true if the messages that came, were lost and follow are all from one publisher, whose sequence numbers
    /// then count the loss.
    fn tells(self, lost: Self, now: Option<Origin>) -> bool {
        let (Self::One { publisher: came, .. }, Self::One { publisher: lost, .. }, Some(now)) = (self, lost, now)
        else {
            return false;
        };
        came == lost && lost == now.publisher
    }
}

impl Losses {
    /// Records a message that was handed over.
    #[inline]
    pub fn came(&mut self, origin: Option<Origin>) {
        self.came = self.came.and(origin);
    }

    /// Records a notice of a dropped message; `tag` is the notice's own. To be called in the order of the tags.
    pub fn dropped(&mut self, tag: u64, origin: Option<Origin>, is_last: bool) {
        // A duplicate, or a loss that sequence numbers have already shown.
        let is_known = origin.is_some_and(|origin| self.came.has_passed(origin));
        match self.dropped.back_mut() {
            Some(here) if here.last + 1 == tag => {
                here.last = tag;
                if !is_known {
                    here.whose = here.whose.and(origin);
                    here.is_last |= is_last;
                }
            }
            _ if is_known => {}
            _ => self.dropped.push_back(Dropped { first: tag, last: tag, whose: Whose::Nobody.and(origin), is_last }),
        }
    }

    /// Returns true once if a loss is to be reported before the message of this tag, whose sequence number does not
    /// show it.
    #[inline]
    pub fn are_before(&mut self, tag: u64, origin: Option<Origin>) -> bool {
        if self.dropped.is_empty() || origin.is_some_and(|origin| self.came.has_passed(origin)) {
            return false;
        }
        let mut are_untold = false;
        while let Some(dropped) = self.dropped.pop_front_if(|dropped| dropped.first < tag) {
            are_untold |= !self.came.tells(dropped.whose, origin);
        }
        are_untold
    }

    /// Returns true once if there was a loss that perhaps no message follows; to be called when all earlier messages
    /// are handed over.
    pub fn are_last(&mut self) -> bool {
        let are_last = self.dropped.iter().any(|dropped| dropped.is_last);
        if are_last {
            self.dropped.clear();
        }
        are_last
    }

    /// Clears all losses, because the lost connection is reported and covers them.
    pub fn told(&mut self) {
        self.dropped.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(publisher: u64, number: u64) -> Option<Origin> {
        Some(Origin { clock: 1, publisher, number })
    }

    /// Returns whether a loss is reported before `next`, after `came`, with `dropped` by notices of the tags 10, 11 and
    /// so on.
    fn is_told(came: &[Option<Origin>], dropped: &[Option<Origin>], next: Option<Origin>) -> bool {
        let mut losses = Losses::default();
        came.iter().for_each(|&origin| losses.came(origin));
        (10..).zip(dropped).for_each(|(tag, &origin)| losses.dropped(tag, origin, false));
        assert!(!losses.are_before(9, None), "it was sent before the notice");
        let is_told = losses.are_before(20, next);
        assert!(!is_told || !losses.are_before(21, next), "once");
        is_told
    }

    #[test]
    fn each_loss_is_told_where_it_was_and_notices_with_nothing_between_them_are_one() {
        let mut losses = Losses::default();
        losses.came(None);
        // None of the messages between them was polled before.
        [12, 13, 16].iter().for_each(|&tag| losses.dropped(tag, None, false));
        assert_eq!(losses.dropped.len(), 2);
        let told: Vec<u64> = [11, 14, 15, 17, 18].into_iter().filter(|&tag| losses.are_before(tag, None)).collect();
        assert_eq!(told, [14, 17]);
    }

    #[test]
    fn numbers_tell_at_one_place_what_they_do_not_tell_at_another() {
        let mut losses = Losses::default();
        losses.came(of(1, 0));
        losses.dropped(10, of(1, 1), false);
        losses.dropped(12, None, false);
        assert!(!losses.are_before(11, of(1, 2)), "his number tells it");
        losses.came(of(1, 2));
        assert!(losses.are_before(13, of(1, 3)), "the other one had none");
    }

    #[test]
    fn numbers_tell_what_one_publisher_alone_has_lost() {
        assert!(!is_told(&[of(1, 0), of(1, 1)], &[of(1, 2)], of(1, 9)));
        assert!(!is_told(&[of(1, 0)], &[], of(1, 9)), "nothing was dropped");
        assert!(is_told(&[], &[of(1, 2)], of(1, 9)), "nobody knows what was his first one");
    }

    #[test]
    fn what_no_numbers_tell_is_told() {
        assert!(is_told(&[of(1, 0)], &[of(1, 1)], of(2, 5)), "he has ended");
        assert!(is_told(&[of(1, 0)], &[of(2, 0)], of(2, 5)), "nobody has seen his first ones");
        assert!(is_told(&[of(1, 0)], &[of(2, 0)], of(1, 5)), "he came and ended unseen");
        assert!(is_told(&[of(1, 0), of(2, 0)], &[of(1, 1)], of(1, 5)), "the other one's last ones are gone, too");
        assert!(is_told(&[None], &[None], None), "others have no numbers");
        assert!(is_told(&[of(1, 0)], &[None], of(1, 1)));
        assert!(is_told(&[of(1, 0)], &[of(1, 1)], None));
    }

    #[test]
    fn a_copy_is_no_loss_and_no_end_of_one() {
        assert!(!is_told(&[of(1, 0), of(1, 1)], &[of(1, 0)], of(2, 0)), "a copy of what came was dropped");
        let mut losses = Losses::default();
        losses.came(of(1, 4));
        losses.dropped(10, of(1, 5), false);
        assert!(!losses.are_before(11, of(1, 3)), "a copy comes");
        assert!(losses.are_before(12, of(2, 0)));
    }

    #[test]
    fn what_may_be_the_last_one_is_told_though_nothing_follows() {
        let mut losses = Losses::default();
        losses.dropped(10, None, false);
        assert!(!losses.are_last());
        losses.dropped(11, None, true);
        losses.dropped(12, None, false);
        assert!(losses.are_last() && !losses.are_last() && !losses.are_before(13, None));
        losses.dropped(14, None, true);
        losses.told();
        assert!(!losses.are_last());
    }
}
