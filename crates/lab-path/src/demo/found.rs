//! What the demo sets against what, and what it found beside its result.

use tickpath_harness::others::Busy;

/// Ticks a second that Python over a broker keeps up with too; both sides of a comparison get the same.
pub(super) const COMPARED_RATE: f64 = 1_000.0;

/// What the demo found beside the result.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How to get what was not there.
    pub missing: Vec<String>,
    /// What was set against what; a comparison without a valid pair is not in the result.
    pub changes: Vec<Change>,
    /// Processes that were busy and none of the demo's.
    pub others: Vec<Busy>,
}

/// One thing that was changed on the path, or its best form, or more than one, and what that did.
#[derive(Debug, Clone)]
pub struct Change {
    /// The name of the comparison.
    pub name: &'static str,
    /// What was changed, in words.
    pub what: String,
    /// What both sides are called.
    pub sides: [&'static str; 2],
    /// Why it has no ratio: what else differs.
    pub no_ratio: Option<&'static str>,
    /// What was measured on both sides, in nanoseconds, whether the run kept the rules or not.
    pub raw_ns: [Option<f64>; 2],
    /// What the strategy, with its OMS, took of a processor for a tick; where both sides have no broker, which would need
    /// one too.
    pub cpu_ns: [Option<f64>; 2],
}
