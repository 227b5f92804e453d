//! Messages lent to a subscriber where they lie in the log.

use tickpath_bus_api::{Gap, LendOutcome, LentMessage};
use tickpath_log::OverflowPolicy;

/// Converts a lent message of the log: to a message of the bus, or to the gap that it records.
pub(crate) fn lend_outcome(lent: tickpath_log::LentFrame) -> LendOutcome {
    match Gap::decode(lent.kind, lent.payload()) {
        Some(gap) => LendOutcome::Gap(gap),
        None => LendOutcome::Message(LentMessage::new(Some(lent.sequence), lent.stamp, lent.kind, lent)),
    }
}

/// Returns the reason why a log of this policy lends nothing.
pub(crate) fn refusal_reason(policy: OverflowPolicy) -> &'static str {
    match policy {
        OverflowPolicy::Overwrite => {
            "a topic whose policy is 'overwrite' lends nothing, because its publisher overwrites messages"
        }
        OverflowPolicy::Fail => {
            "a topic whose policy is 'fail' lends nothing, because its publisher would wait for a forgotten message"
        }
        OverflowPolicy::Keep => "a topic that another user can write to lends nothing",
    }
}

/// Reason why the subscriber of a bridge is lent no message.
pub(crate) const BRIDGE_REFUSAL: &str = "a bridge is lent no messages, because each gets a message id";
