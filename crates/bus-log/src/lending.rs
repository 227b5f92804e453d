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
            "a topic whose policy is 'overwrite' lends nothing, for its publisher overwrites what is read"
        }
        OverflowPolicy::Fail => {
            "a topic whose policy is 'fail' lends nothing, for its publisher would wait for a message that somebody forgot"
        }
        OverflowPolicy::Keep => "a topic that a stranger can write to lends nothing",
    }
}

/// Reason why a subscriber that carries messages on is lent none.
pub(crate) const BRIDGE_REFUSAL: &str = "who carries messages on is lent none, for they get an origin";
