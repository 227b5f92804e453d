//! Losses reported by the broker: a gap without a count, unless the publisher's sequence numbers count them.
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

    /// Returns true if all messages are from one publisher, whose sequence numbers then count the loss.
    fn counts_loss(self, lost: Self, now: Option<MessageId>) -> bool {
        let publisher = now.map(|now| now.publisher);
        let is_only = |set: Self| matches!(set, Self::Single { publisher: only, .. } if Some(only) == publisher);
        is_only(self) && is_only(lost)
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
            Some(loss) if loss.last_tag + 1 == tag => {
                loss.last_tag = tag;
                if !is_known {
                    loss.publishers = loss.publishers.with(origin);
                    loss.is_last |= is_last;
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

    /// Returns true once if a loss is to be reported before this message, whose sequence number does not show it.
    #[inline]
    pub fn take_loss_before(&mut self, tag: u64, origin: Option<MessageId>) -> bool {
        if self.dropped.is_empty() || origin.is_some_and(|origin| self.received_from.has_passed(origin)) {
            return false;
        }
        let mut is_uncounted = false;
        while let Some(dropped) = self.dropped.pop_front_if(|dropped| dropped.first_tag < tag) {
            is_uncounted |= !self.received_from.counts_loss(dropped.publishers, origin);
        }
        is_uncounted
    }

    /// Returns true once if there was a loss that perhaps no message follows, when all earlier ones are handed over.
    pub fn take_trailing_loss(&mut self) -> bool {
        let is_trailing = self.dropped.iter().any(|dropped| dropped.is_last);
        if is_trailing {
            self.dropped.clear();
        }
        is_trailing
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

    /// Returns whether a loss of `dropped`, by notices of the tags 10, 11 and so on, is reported before `next`.
    fn is_reported(received: &[Option<MessageId>], dropped: &[Option<MessageId>], next: Option<MessageId>) -> bool {
        let mut losses = DropTracker::default();
        received.iter().for_each(|&origin| losses.record_received(origin));
        (10..).zip(dropped).for_each(|(tag, &origin)| losses.record_dropped(tag, origin, false));
        assert!(!losses.take_loss_before(9, None), "it was sent before the notice");
        let is_reported = losses.take_loss_before(20, next);
        assert!(!is_reported || !losses.take_loss_before(21, next), "once");
        is_reported
    }

    #[test]
    fn adjacent_notices_are_one_loss_reported_in_its_place() {
        let mut losses = DropTracker::default();
        losses.record_received(None);
        // None of the messages between them was polled before.
        [12, 13, 16].iter().for_each(|&tag| losses.record_dropped(tag, None, false));
        assert_eq!(losses.dropped.len(), 2);
        let reported: Vec<u64> =
            [11, 14, 15, 17, 18].into_iter().filter(|&tag| losses.take_loss_before(tag, None)).collect();
        assert_eq!(reported, [14, 17]);
    }

    #[test]
    fn each_loss_is_counted_or_reported_by_its_own_publishers() {
        let mut losses = DropTracker::default();
        losses.record_received(of(1, 0));
        losses.record_dropped(10, of(1, 1), false);
        losses.record_dropped(12, None, false);
        assert!(!losses.take_loss_before(11, of(1, 2)), "the sequence number shows it");
        losses.record_received(of(1, 2));
        assert!(losses.take_loss_before(13, of(1, 3)), "the other message had no number");
    }

    #[test]
    fn sequence_numbers_count_the_losses_of_a_single_publisher() {
        assert!(!is_reported(&[of(1, 0), of(1, 1)], &[of(1, 2)], of(1, 9)));
        assert!(!is_reported(&[of(1, 0)], &[], of(1, 9)), "nothing was dropped");
        assert!(is_reported(&[], &[of(1, 2)], of(1, 9)), "the publisher's first number is unknown");
    }

    #[test]
    fn losses_that_sequence_numbers_do_not_count_are_reported() {
        assert!(is_reported(&[of(1, 0)], &[of(1, 1)], of(2, 5)), "the publisher has ended");
        assert!(is_reported(&[of(1, 0)], &[of(2, 0)], of(2, 5)), "the second publisher's start is unseen");
        assert!(is_reported(&[of(1, 0)], &[of(2, 0)], of(1, 5)), "the second publisher came and ended unseen");
        assert!(is_reported(&[of(1, 0), of(2, 0)], &[of(1, 1)], of(1, 5)), "the second publisher's end is unseen");
        assert!(is_reported(&[None], &[None], None), "messages without numbers");
        assert!(is_reported(&[of(1, 0)], &[None], of(1, 1)));
        assert!(is_reported(&[of(1, 0)], &[of(1, 1)], None));
    }

    #[test]
    fn a_duplicate_is_no_loss_and_ends_none() {
        assert!(!is_reported(&[of(1, 0), of(1, 1)], &[of(1, 0)], of(2, 0)), "a duplicate was dropped");
        let mut losses = DropTracker::default();
        losses.record_received(of(1, 4));
        losses.record_dropped(10, of(1, 5), false);
        assert!(!losses.take_loss_before(11, of(1, 3)), "a duplicate arrives");
        assert!(losses.take_loss_before(12, of(2, 0)));
    }

    #[test]
    fn the_loss_of_a_last_message_is_reported_without_a_successor() {
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
