//! The changes that the demo measures, and its finds beside the result.

use tickpath_harness::others::Busy;

/// Ticks a second that Python over a broker keeps up with too; both sides of a comparison get the same.
pub(super) const COMPARED_RATE: f64 = 1_000.0;

/// Finds of the demo beside the result.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How to get what was not there.
    pub missing: Vec<String>,
    /// Changes that were measured; a comparison without a valid pair is not in the result.
    pub changes: Vec<Change>,
    /// Processes that were busy and none of the demo's.
    pub others: Vec<Busy>,
}

/// One thing that was changed on the path, or its best form, or more than one, and what that did.
#[derive(Debug, Clone)]
pub struct Change {
    /// The name of the comparison.
    pub name: &'static str,
    /// The change, in words.
    pub what: String,
    /// Names of both sides.
    pub sides: [&'static str; 2],
    /// Why it has no ratio: what else differs.
    pub no_ratio: Option<&'static str>,
    /// Medians of both sides, in nanoseconds, whether the run kept the rules or not.
    pub raw_ns: [Option<f64>; 2],
    /// Processor time of the strategy, with its OMS, for a tick; where both sides have no broker, which would need
    /// one too.
    pub cpu_ns: [Option<f64>; 2],
}
