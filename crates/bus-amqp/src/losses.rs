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
//!
//! Design: `docs/design/rabbitmq-losses.md`.

use std::collections::VecDeque;

use tickpath_bus_api::MessageId;

/// A subscriber's record of dropped messages.
#[derive(Debug, Default)]
pub(crate) struct DropTracker {
    /// The publisher of all messages that came.
    received_from: PublisherSet,
    /// The losses not reported yet, by place: one more than there are messages here, at most.
    dropped: VecDeque<DroppedMessages>,
}

/// The publisher of a set of messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PublisherSet {
    #[default]
    Empty,
    Single {
        publisher: u64,
        next: u64,
    },
    /// Several publishers, or messages without numbers.
    Several,
}

/// The messages dropped at one place.
#[derive(Debug)]
struct DroppedMessages {
    /// The tag of the first notice: items with a higher tag were sent later.
    first_tag: u64,
    /// The tag of the last notice.
    last_tag: u64,
    publishers: PublisherSet,
    /// True if perhaps no message follows.
    is_last: bool,
}

impl PublisherSet {
    fn with(self, origin: Option<MessageId>) -> Self {
        let Some(MessageId { publisher, sequence: number, .. }) = origin else { return Self::Several };
        let next = number.saturating_add(1);
        match self {
            Self::Empty => Self::Single { publisher, next },
            Self::Single { publisher: before, next: highest } if before == publisher => {
                Self::Single { publisher, next: next.max(highest) }
            }
            Self::Single { .. } | Self::Several => Self::Several,
        }
    }

    /// Returns true if all messages are from this origin's publisher, and its sequence numbers have passed this one.
    fn has_passed(self, origin: MessageId) -> bool {
        matches!(self, Self::Single { publisher, next } if publisher == origin.publisher && origin.sequence < next)
    }

    /// Returns true if the messages that came, were lost and follow are all from one publisher, whose sequence numbers
    /// then count the loss.
    fn counts_loss(self, lost: Self, now: Option<MessageId>) -> bool {
        let (Self::Single { publisher: came, .. }, Self::Single { publisher: lost, .. }, Some(now)) = (self, lost, now)
        else {
            return false;
        };
        came == lost && lost == now.publisher
    }
}

impl DropTracker {
    /// Records a message that was handed over.
    #[inline]
    pub fn record_received(&mut self, origin: Option<MessageId>) {
        self.received_from = self.received_from.with(origin);
    }

    /// Records a notice of a dropped message; `tag` is the notice's own. To be called in the order of the tags.
    pub fn record_dropped(&mut self, tag: u64, origin: Option<MessageId>, is_last: bool) {
        // A duplicate, or a loss that sequence numbers have already shown.
        let is_known = origin.is_some_and(|origin| self.received_from.has_passed(origin));
        match self.dropped.back_mut() {
            Some(here) if here.last_tag + 1 == tag => {
                here.last_tag = tag;
                if !is_known {
                    here.publishers = here.publishers.with(origin);
                    here.is_last |= is_last;
                }
            }
            _ if is_known => {}
            _ => self.dropped.push_back(DroppedMessages {
                first_tag: tag,
                last_tag: tag,
                publishers: PublisherSet::Empty.with(origin),
                is_last,
            }),
        }
    }

    /// Returns true once if a loss is to be reported before the message of this tag, whose sequence number does not
    /// show it.
    #[inline]
    pub fn take_loss_before(&mut self, tag: u64, origin: Option<MessageId>) -> bool {
        if self.dropped.is_empty() || origin.is_some_and(|origin| self.received_from.has_passed(origin)) {
            return false;
        }
        let mut are_untold = false;
        while let Some(dropped) = self.dropped.pop_front_if(|dropped| dropped.first_tag < tag) {
            are_untold |= !self.received_from.counts_loss(dropped.publishers, origin);
        }
        are_untold
    }

    /// Returns true once if there was a loss that perhaps no message follows; to be called when all earlier messages
    /// are handed over.
    pub fn take_trailing_loss(&mut self) -> bool {
        let are_last = self.dropped.iter().any(|dropped| dropped.is_last);
        if are_last {
            self.dropped.clear();
        }
        are_last
    }

    /// Clears all losses, because the lost connection is reported and covers them.
    pub fn clear(&mut self) {
        self.dropped.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(publisher: u64, number: u64) -> Option<MessageId> {
        Some(MessageId { clock: 1, publisher, sequence: number })
    }

    /// Returns whether a loss is reported before `next`, after `came`, with `dropped` by notices of the tags 10, 11 and
    /// so on.
    fn is_told(came: &[Option<MessageId>], dropped: &[Option<MessageId>], next: Option<MessageId>) -> bool {
        let mut losses = DropTracker::default();
        came.iter().for_each(|&origin| losses.record_received(origin));
        (10..).zip(dropped).for_each(|(tag, &origin)| losses.record_dropped(tag, origin, false));
        assert!(!losses.take_loss_before(9, None), "it was sent before the notice");
        let is_told = losses.take_loss_before(20, next);
        assert!(!is_told || !losses.take_loss_before(21, next), "once");
        is_told
    }

    #[test]
    fn each_loss_is_told_where_it_was_and_notices_with_nothing_between_them_are_one() {
        let mut losses = DropTracker::default();
        losses.record_received(None);
        // None of the messages between them was polled before.
        [12, 13, 16].iter().for_each(|&tag| losses.record_dropped(tag, None, false));
        assert_eq!(losses.dropped.len(), 2);
        let told: Vec<u64> =
            [11, 14, 15, 17, 18].into_iter().filter(|&tag| losses.take_loss_before(tag, None)).collect();
        assert_eq!(told, [14, 17]);
    }

    #[test]
    fn numbers_tell_at_one_place_what_they_do_not_tell_at_another() {
        let mut losses = DropTracker::default();
        losses.record_received(of(1, 0));
        losses.record_dropped(10, of(1, 1), false);
        losses.record_dropped(12, None, false);
        assert!(!losses.take_loss_before(11, of(1, 2)), "his number tells it");
        losses.record_received(of(1, 2));
        assert!(losses.take_loss_before(13, of(1, 3)), "the other one had none");
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
        let mut losses = DropTracker::default();
        losses.record_received(of(1, 4));
        losses.record_dropped(10, of(1, 5), false);
        assert!(!losses.take_loss_before(11, of(1, 3)), "a copy comes");
        assert!(losses.take_loss_before(12, of(2, 0)));
    }

    #[test]
    fn what_may_be_the_last_one_is_told_though_nothing_follows() {
        let mut losses = DropTracker::default();
        losses.record_dropped(10, None, false);
        assert!(!losses.take_trailing_loss());
        losses.record_dropped(11, None, true);
        losses.record_dropped(12, None, false);
        assert!(losses.take_trailing_loss() && !losses.take_trailing_loss() && !losses.take_loss_before(13, None));
        losses.record_dropped(14, None, true);
        losses.clear();
        assert!(!losses.take_trailing_loss());
    }
}
