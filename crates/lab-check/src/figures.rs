//! Lies about numbers.

use tickpath_clock::{Calibration, ClockOffset, SimulatedClock};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::host::TransferTiming;
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::stability::judge;
use tickpath_lab_result::{PERCENTILES, Run};

use crate::context::{CheckContext, FaultReport};

/// Checks that a percentile with too few samples is not reported.
pub(crate) fn few_samples(_: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let hop_of = |count: u64| Samples((0..count).map(|n| (0, n)).collect()).hop(&Calibration::nanoseconds(), &[]);
    let is_right = |index: usize, count: u64, is_there: bool| hop_of(count).percentiles()[index].is_some() == is_there;
    let right = PERCENTILES.iter().enumerate().filter(|(index, percentile)| {
        is_right(*index, percentile.samples - 1, false) && is_right(*index, percentile.samples, true)
    });
    let right = right.map(|(_, percentile)| percentile.label).collect::<Vec<_>>();
    Ok(FaultReport {
        planted: format!("a sample too few for each of {} percentiles", PERCENTILES.len()),
        reported: format!("none of {}", right.join(", ")),
        is_detected: right.len() == PERCENTILES.len(),
    })
}

/// Error of a wrong counter, in nanoseconds: its lead, or its step back.
const WRONG_NS: i64 = 2_000;

/// One-way time between two CPUs in nanoseconds, and number of round trips with stamps.
const ONE_WAY_NS: u64 = 100;
const TRIPS: usize = 20;

pub(crate) fn counter_ahead(_: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    clocks("is 2 µs ahead on one CPU", "ns ahead", |_| WRONG_NS)
}

pub(crate) fn counter_back(_: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    clocks("steps back by 2 µs on one CPU", "stepped back", |trip| if trip < TRIPS / 2 { 0 } else { -WRONG_NS })
}

/// Judges a run between two simulated clocks: no real host can be given such clocks.
fn clocks(planted: &str, word: &str, ahead_ns: fn(usize) -> i64) -> Result<FaultReport, LabError> {
    let crossing = |ahead_ns: &dyn Fn(usize) -> i64| {
        let trips = SimulatedClock::at(1_000_000).round_trips(&[(ONE_WAY_NS, ONE_WAY_NS); TRIPS], ahead_ns);
        let offset = ClockOffset::of(&trips, &Calibration::nanoseconds());
        offset.map(|offset| TransferTiming { transfer_ns: ONE_WAY_NS as f64, offset })
    };
    let judged = |ahead_ns: &dyn Fn(usize) -> i64| {
        let mut run = Run { valid: true, ..Run::default() };
        let around = crossing(&|_| 0).zip(crossing(ahead_ns)).map(|(before, after)| [before, after]);
        around.into_iter().for_each(|around| judge(&mut run, around, None));
        run
    };
    let (honest, run) = (judged(&|_| 0), judged(&ahead_ns));
    let note_found = run.notes.iter().find(|note| note.contains(word));
    Ok(FaultReport {
        planted: format!("a simulated counter that {planted}"),
        reported: note_found.cloned().unwrap_or_else(|| "nothing".to_owned()),
        is_detected: honest.valid && honest.notes.is_empty() && !run.valid && note_found.is_some(),
    })
}
