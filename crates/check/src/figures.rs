//! Lies about numbers.

use tickpath_clock::Calibration;
use tickpath_harness::LabError;
use tickpath_harness::samples::Samples;
use tickpath_result::PERCENTILES;

use crate::{Stage, Told};

/// A percentile that too few samples are behind is no percentile.
pub(crate) fn few_samples(_: &Stage<'_>) -> Result<Told, LabError> {
    let told = |count: u64| Samples((0..count).map(|n| (0, n)).collect()).hop(&Calibration::nanoseconds(), &[]);
    let is_right = |place: usize, count: u64, is_there: bool| told(count).percentiles()[place].is_some() == is_there;
    let right = PERCENTILES.iter().enumerate().filter(|(place, percentile)| {
        is_right(*place, percentile.samples - 1, false) && is_right(*place, percentile.samples, true)
    });
    let right = right.map(|(_, percentile)| percentile.label).collect::<Vec<_>>();
    Ok(Told {
        planted: format!("a sample too few for each of {} percentiles", PERCENTILES.len()),
        reported: format!("none of {}", right.join(", ")),
        is_told: right.len() == PERCENTILES.len(),
    })
}
