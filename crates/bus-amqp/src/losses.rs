//! When a loss of which the broker has given notice is told as one that nobody can count, and when the publisher's
//! numbers tell it exactly.
//!
//! ```text
//!   all that came, what was dropped and what follows is of one publisher     his numbers: Missed(n)
//!   anything else: others publish too, he has ended, there are no numbers    Reconnected, before what follows
//! ```

use tickpath_bus_api::Origin;

use crate::intake::MAX_BEHIND_BYTES;

/// What a subscriber knows of what was dropped.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Of whom all messages are that came.
    came: Whose,
    dropped: Option<Dropped>,
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

/// What is not told yet.
#[derive(Debug, Clone, Copy)]
struct Dropped {
    /// What has a higher tag was sent later.
    tag: u64,
    whose: Whose,
    /// It may be that nothing follows: one message was more than the queue holds.
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
}

impl Losses {
    /// A message has come, and was handed over.
    #[inline]
    pub fn came(&mut self, origin: Option<Origin>) {
        self.came = self.came.and(origin);
    }

    /// The broker has given notice of this one, by a message of this tag and so many bytes.
    pub fn dropped(&mut self, tag: u64, origin: Option<Origin>, bytes: usize) {
        if origin.is_some_and(|origin| self.came.has_passed(origin)) {
            // A second copy, or told by the numbers already.
            return;
        }
        let before = self.dropped.unwrap_or(Dropped { tag, whose: Whose::Nobody, is_last: false });
        let is_last = before.is_last || bytes > MAX_BEHIND_BYTES;
        self.dropped = Some(Dropped { whose: before.whose.and(origin), is_last, ..before });
    }

    /// True once if a loss is to be told before the message of this tag, and its publisher's number does not tell it.
    #[inline]
    pub fn are_before(&mut self, tag: u64, origin: Option<Origin>) -> bool {
        let Some(dropped) = self.dropped else { return false };
        if tag < dropped.tag || origin.is_some_and(|origin| self.came.has_passed(origin)) {
            return false;
        }
        self.dropped = None;
        let (Whose::One { publisher: came, .. }, Whose::One { publisher: lost, .. }, Some(now)) =
            (self.came, dropped.whose, origin)
        else {
            return true;
        };
        came != lost || lost != now.publisher
    }

    /// True once if there was a loss behind which nothing need follow; where nothing is here now.
    pub fn are_last(&mut self) -> bool {
        self.dropped.take_if(|dropped| dropped.is_last).is_some()
    }

    /// The connection was lost: whatever was dropped is part of that.
    pub fn told(&mut self) {
        self.dropped = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(publisher: u64, number: u64) -> Option<Origin> {
        Some(Origin { clock: 1, publisher, number })
    }

    /// After these came, with these dropped by notices of the tag 10, whether a loss is told before this one.
    fn is_told(came: &[Option<Origin>], dropped: &[Option<Origin>], next: Option<Origin>) -> bool {
        let mut losses = Losses::default();
        came.iter().for_each(|&origin| losses.came(origin));
        dropped.iter().for_each(|&origin| losses.dropped(10, origin, 100));
        assert!(!losses.are_before(9, None), "it was sent before the notice");
        let is_told = losses.are_before(11, next);
        assert!(!is_told || !losses.are_before(12, next), "once");
        is_told
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
        losses.dropped(10, of(1, 5), 100);
        assert!(!losses.are_before(11, of(1, 3)), "a copy comes");
        assert!(losses.are_before(12, of(2, 0)));
    }

    #[test]
    fn a_message_larger_than_all_that_is_kept_may_be_the_last_one() {
        let mut losses = Losses::default();
        losses.dropped(10, None, MAX_BEHIND_BYTES);
        assert!(!losses.are_last());
        losses.dropped(11, None, MAX_BEHIND_BYTES + 1);
        losses.dropped(12, None, 1);
        assert!(losses.are_last() && !losses.are_last() && !losses.are_before(13, None));
        losses.dropped(14, None, MAX_BEHIND_BYTES + 1);
        losses.told();
        assert!(!losses.are_last());
    }
}
