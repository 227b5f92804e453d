//! Samples in ticks, the host's gaps, and the hops made of both.

use std::fs;
use std::path::Path;

use tickpath_clock::{Calibration, GapCause, SchedulingGap};
use zerocopy::IntoBytes;

use crate::LabError;
use tickpath_lab_result::{Hop, histogram};

/// Pairs of start and end stamps, in ticks.
#[derive(Debug, Default, Clone)]
pub struct Samples(pub Vec<(u64, u64)>);

impl Samples {
    /// Creates an empty list with room for this number of samples.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Adds a sample.
    #[inline(always)]
    pub fn push(&mut self, from: u64, to: u64) {
        self.0.push((from, to));
    }

    /// Returns the hop of all samples. Its `unstalled` part omits each sample that passed for at least nine tenths in
    /// gaps with the cause [`GapCause::Host`], and has every other sample whole.
    pub fn hop(&self, calibration: &Calibration, gaps: &[SchedulingGap]) -> Hop {
        let (mut all, mut unstalled) = (histogram(), histogram());
        let (mut negative, mut negative_max_ns) = (0, None);
        let mut worst = [0u64; 3];
        let overlaps = MergedGaps::new(gaps);
        for &(from, to) in &self.0 {
            let ns = calibration.ns_between(from, to);
            if ns < 0 {
                // Counted beside the distribution, because a zero in it would only make the hop look faster.
                negative += 1;
                negative_max_ns = negative_max_ns.max(Some(ns.unsigned_abs()));
                continue;
            }
            let ns = ns as u64;
            // The histogram's bounds grow by themselves; an unrecorded value would be a lost sample.
            all.record(ns).expect("an auto-sized histogram takes any value");
            if !overlaps.covers(from, to) {
                unstalled.record(ns).expect("an auto-sized histogram takes any value");
            }
            if ns > worst[0] {
                worst[0] = ns;
                worst.sort_unstable();
            }
        }
        Hop { negative_max_ns, ..Hop::from_histogram(&all, Some(&unstalled), negative, worst) }
    }

    /// Returns the hop of a thread without a gap watch, in which the host's share is unknown.
    pub fn unwatched_hop(&self, calibration: &Calibration) -> Hop {
        Hop { unstalled: None, host_stall_share_p999: None, ..self.hop(calibration, &[]) }
    }

    /// Returns the mean of the faster nine tenths, in nanoseconds: finer than the counter's own steps of some
    /// nanoseconds, and without the host's stalls.
    pub fn fast_mean_ns(&self, calibration: &Calibration) -> f64 {
        let mut ns: Vec<i64> = self.0.iter().map(|&(from, to)| calibration.ns_between(from, to)).collect();
        ns.sort_unstable();
        let fast = &ns[..ns.len() - ns.len() / 10];
        fast.iter().sum::<i64>() as f64 / fast.len().max(1) as f64
    }

    /// Returns the median, in nanoseconds.
    pub fn p50_ns(&self, calibration: &Calibration) -> f64 {
        let mut ns: Vec<i64> = self.0.iter().map(|&(from, to)| calibration.ns_between(from, to)).collect();
        if ns.is_empty() {
            return f64::NAN;
        }
        let middle = ns.len() / 2;
        *ns.select_nth_unstable(middle).1 as f64
    }
}

/// Allocates room for `count` rows and touches its pages, because a page fault between two stamps would add our own
/// cost to the path's.
pub fn preallocated_rows<const N: usize>(count: usize) -> Vec<[u64; N]> {
    let mut rows = vec![[1; N]; count];
    rows.clear();
    rows
}

/// Merged gaps of the host in order, for fast queries.
struct MergedGaps {
    gaps: Vec<SchedulingGap>,
    /// Total ticks of the gaps before each gap, and of all gaps last.
    ticks_before: Vec<u64>,
}

impl MergedGaps {
    fn new(gaps: &[SchedulingGap]) -> Self {
        let mut sorted: Vec<SchedulingGap> = gaps.iter().filter(|gap| gap.cause == GapCause::Host).copied().collect();
        sorted.sort_unstable_by_key(|gap| gap.from);
        let mut merged: Vec<SchedulingGap> = Vec::with_capacity(sorted.len());
        for gap in sorted {
            match merged.last_mut() {
                Some(last) if gap.from <= last.to => last.to = last.to.max(gap.to),
                _ => merged.push(gap),
            }
        }
        let sum = |sum: &mut u64, gap: &SchedulingGap| {
            *sum += gap.to - gap.from;
            Some(*sum)
        };
        let before = std::iter::once(0).chain(merged.iter().scan(0, sum)).collect();
        Self { gaps: merged, ticks_before: before }
    }

    /// Returns whether at least nine tenths of the time between two ticks passed in gaps.
    fn covers(&self, from: u64, to: u64) -> bool {
        to > from && u128::from(self.ticks_until(to) - self.ticks_until(from)) * 10 >= u128::from(to - from) * 9
    }

    /// Returns the ticks of all gaps before this moment.
    fn ticks_until(&self, ticks: u64) -> u64 {
        let next = self.gaps.partition_point(|gap| gap.to <= ticks);
        self.ticks_before[next] + self.gaps.get(next).map_or(0, |gap| ticks.saturating_sub(gap.from))
    }
}

/// Writes rows of stamps to a file.
pub fn save<const N: usize>(path: &Path, rows: &[[u64; N]]) -> Result<(), LabError> {
    fs::write(path, rows.as_bytes()).map_err(|e| LabError::file(path, e))
}

/// Reads rows of stamps.
pub fn load<const N: usize>(path: &Path) -> Result<Vec<[u64; N]>, LabError> {
    let bytes = fs::read(path).map_err(|e| LabError::file(path, e))?;
    let numbers: Vec<u64> = bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))).collect();
    Ok(numbers.chunks_exact(N).map(|row| row.try_into().expect("N")).collect())
}

/// Writes gaps to a file.
pub fn save_gaps(path: &Path, gaps: &[SchedulingGap]) -> Result<(), LabError> {
    let code = |gap: &SchedulingGap| {
        GapCause::ALL.iter().position(|cause| *cause == gap.cause).unwrap_or(GapCause::ALL.len()) as u64
    };
    save(path, &gaps.iter().map(|gap| [gap.from, gap.to, code(gap)]).collect::<Vec<_>>())
}

/// Reads gaps.
pub fn load_gaps(path: &Path) -> Result<Vec<SchedulingGap>, LabError> {
    let cause = |code: u64| GapCause::ALL.get(code as usize).copied().unwrap_or_default();
    Ok(load::<3>(path)?.into_iter().map(|[from, to, code]| SchedulingGap { from, to, cause: cause(code) }).collect())
}
