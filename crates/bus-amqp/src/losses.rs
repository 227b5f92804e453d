//! When a loss of which the broker has given notice is told as one that nobody can count, and when the publisher's
//! numbers tell it exactly.
//!
//! ```text
//!   all that came, what was dropped and what follows is of one publisher     his numbers: Missed(n)
//!   anything else: others publish too, he has ended, there are no numbers    Reconnected, before what follows
//! ```
//! The broker counts what it sends, notices and messages alike. So each loss has its place among the messages that are
//! here and not yet handed over, and those with no message between them have the same:
//!
//! ```text
//!   tags   11 message   12 notice   13 notice   14 message   15 message   16 notice   17 message
//!   told       11              Reconnected          14           15      Reconnected      17
//! ```

use std::collections::VecDeque;

use tickpath_bus_api::Origin;

/// What a subscriber knows of what was dropped.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Of whom all messages are that came.
    came: Whose,
    /// What is not told yet, by its place: no more than there are messages here, and one.
    dropped: VecDeque<Dropped>,
}

/// Of whom messages are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// There are none.
    #[default]
    Nobody,
    /// All of one publisher, and this is his next number.
    One { publisher: u64, next: u64 },
    /// Of several, or without numbers.
    Several,
}

/// What was dropped at one place.
#[derive(Debug)]
struct Dropped {
    /// The tag of its first notice: what has a higher one was sent later.
    first: u64,
    /// That of its last notice.
    last: u64,
    whose: Whose,
    /// It may be that nothing follows.
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

    /// Whether this is one of his who published all of them, and his numbers have passed it.
    fn has_passed(self, origin: Origin) -> bool {
        matches!(self, Self::One { publisher, next } if publisher == origin.publisher && origin.number < next)
    }

    /// Whether what came, what was lost and what follows is all of one publisher, whose numbers then tell the loss.
    fn tells(self, lost: Self, now: Option<Origin>) -> bool {
        let (Self::One { publisher: came, .. }, Self::One { publisher: lost, .. }, Some(now)) = (self, lost, now)
        else {
            return false;
        };
        came == lost && lost == now.publisher
    }
}

impl Losses {
    /// A message has come, and was handed over.
    #[inline]
    pub fn came(&mut self, origin: Option<Origin>) {
        self.came = self.came.and(origin);
    }

    /// The broker has given notice of this one, by a message of this tag. To be told in the order of the tags.
    pub fn dropped(&mut self, tag: u64, origin: Option<Origin>, is_last: bool) {
        // A second copy, or told by the numbers already.
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

    /// True once if a loss is to be told before the message of this tag, and its publisher's number does not tell it.
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

    /// True once if there was a loss behind which nothing need follow; where all that was sent before is handed over.
    pub fn are_last(&mut self) -> bool {
        let are_last = self.dropped.iter().any(|dropped| dropped.is_last);
        if are_last {
            self.dropped.clear();
        }
        are_last
    }

    /// The connection was lost: whatever was dropped is part of that.
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

    /// After these came, with these dropped by notices of the tags 10, 11 and so on, whether a loss is told before this
    /// one.
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
        // None of what was sent between them was looked at before.
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
