//! The changes that the demo measures, and its finds beside the result.

use tickpath_lab_harness::busy_processes::BusyProcess;

/// Ticks a second that Python over a broker can sustain too; both sides of a comparison get the same.
pub(super) const COMPARED_RATE: f64 = 1_000.0;

/// Finds of the demo beside the result.
#[derive(Debug, Clone, Default)]
pub struct DemoFindings {
    /// Instructions for installing missing software.
    pub missing: Vec<String>,
    /// Changes that were measured; a comparison without a valid pair is not in the result.
    pub changes: Vec<DemoChange>,
    /// Processes that were busy and do not belong to the demo.
    pub others: Vec<BusyProcess>,
}

/// A change to the path, or to its best form, and its effect; a change may cover more than one difference.
#[derive(Debug, Clone)]
pub struct DemoChange {
    /// The name of the comparison.
    pub name: &'static str,
    /// The change, in words.
    pub what: String,
    /// Names of both sides.
    pub sides: [&'static str; 2],
    /// The reason for the lack of a ratio: the other difference.
    pub no_ratio: Option<&'static str>,
    /// Medians of both sides, in nanoseconds, whether the run kept the rules or not.
    pub raw_ns: [Option<f64>; 2],
    /// CPU time per tick of the strategy with its OMS, where both sides have no broker, which would need CPU too.
    pub cpu_ns: [Option<f64>; 2],
}
