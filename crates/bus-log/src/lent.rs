//! Messages lent to a subscriber where they lie in the log.

use tickpath_bus_api::{Gap, Lending, Lent};
use tickpath_log::Policy;

/// Converts a lent message of the log: to a message of the bus, or to the gap that it records.
pub(crate) fn lending(lent: tickpath_log::Lent) -> Lending {
    match Gap::read(lent.kind, lent.payload()) {
        Some(gap) => Lending::Gap(gap),
        None => Lending::Message(Lent::new(Some(lent.sequence), lent.stamp, lent.kind, lent)),
    }
}

/// Returns the reason why a log of this policy lends nothing.
pub(crate) fn why_not(policy: Policy) -> &'static str {
    match policy {
        Policy::Overwrite => {
            "a topic whose policy is 'overwrite' lends nothing, for its publisher overwrites what is read"
        }
        Policy::Fail => {
            "a topic whose policy is 'fail' lends nothing, for its publisher would wait for a message that somebody forgot"
        }
        Policy::Keep => "a topic that a stranger can write to lends nothing",
    }
}

/// Reason why a subscriber that carries messages on is lent none.
pub(crate) const CARRIES: &str = "who carries messages on is lent none, for they get an origin";
