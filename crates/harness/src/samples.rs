//! Samples in ticks, the host's gaps, and the hops that they become.

use std::fs;
use std::path::Path;

use tickpath_clock::Calibration;
use tickpath_clock::Gap;
use zerocopy::IntoBytes;

use crate::LabError;
use tickpath_result::{Hop, histogram};

/// Stretches from one stamp to another, in ticks.
#[derive(Debug, Default, Clone)]
pub struct Samples(pub Vec<(u64, u64)>);

impl Samples {
    /// None yet, and room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// One more.
    #[inline(always)]
    pub fn push(&mut self, from: u64, to: u64) {
        self.0.push((from, to));
    }

    /// The hop: every sample counts; those that overlap a gap of the host are left out of `unstalled`.
    pub fn hop(&self, calibration: &Calibration, gaps: &[Gap]) -> Hop {
        let (mut all, mut unstalled) = (histogram(), histogram());
        let mut negative = 0;
        let mut worst = [0u64; 3];
        let overlaps = Overlaps::new(gaps);
        for &(from, to) in &self.0 {
            let ns = calibration.ns_between(from, to);
            if ns < 0 {
                // Counted, and shown beside the distribution: as a zero it would only make that look faster.
                negative += 1;
                continue;
            }
            let ns = ns as u64;
            // The bounds grow by themselves; a value that could not be recorded would be a lost sample.
            all.record(ns).expect("an auto-sized histogram takes any value");
            if !overlaps.touches(from, to) {
                unstalled.record(ns).expect("an auto-sized histogram takes any value");
            }
            if ns > worst[0] {
                worst[0] = ns;
                worst.sort_unstable();
            }
        }
        Hop::from_histogram(&all, Some(&unstalled), negative, worst)
    }

    /// The mean of the faster nine tenths, in nanoseconds: finer than the counter's own steps of some nanoseconds, and
    /// without the host's stalls.
    pub fn fast_mean_ns(&self, calibration: &Calibration) -> f64 {
        let mut ns: Vec<i64> = self.0.iter().map(|&(from, to)| calibration.ns_between(from, to)).collect();
        ns.sort_unstable();
        let fast = &ns[..ns.len() - ns.len() / 10];
        fast.iter().sum::<i64>() as f64 / fast.len().max(1) as f64
    }

    /// The median, in nanoseconds.
    pub fn p50_ns(&self, calibration: &Calibration) -> f64 {
        let mut ns: Vec<i64> = self.0.iter().map(|&(from, to)| calibration.ns_between(from, to)).collect();
        if ns.is_empty() {
            return f64::NAN;
        }
        let middle = ns.len() / 2;
        *ns.select_nth_unstable(middle).1 as f64
    }
}

/// Room for `count` rows whose pages are there already: a page fault between two stamps would be ours, not the path's.
pub fn touched_rows<const N: usize>(count: usize) -> Vec<[u64; N]> {
    let mut rows = vec![[1; N]; count];
    rows.clear();
    rows
}

/// Gaps in order, merged, for fast questions.
struct Overlaps(Vec<Gap>);

impl Overlaps {
    fn new(gaps: &[Gap]) -> Self {
        let mut sorted = gaps.to_vec();
        sorted.sort_unstable_by_key(|gap| gap.from);
        let mut merged: Vec<Gap> = Vec::with_capacity(sorted.len());
        for gap in sorted {
            match merged.last_mut() {
                Some(last) if gap.from <= last.to => last.to = last.to.max(gap.to),
                _ => merged.push(gap),
            }
        }
        Self(merged)
    }

    fn touches(&self, from: u64, to: u64) -> bool {
        let next = self.0.partition_point(|gap| gap.to < from);
        self.0.get(next).is_some_and(|gap| gap.from <= to)
    }
}

/// Writes rows of stamps to a file.
pub fn save<const N: usize>(path: &Path, rows: &[[u64; N]]) -> Result<(), LabError> {
    fs::write(path, rows.as_bytes()).map_err(|e| LabError::file(path, e))
}

/// Reads rows of stamps.
pub fn load<const N: usize>(path: &Path) -> Result<Vec<[u64; N]>, LabError> {
    let bytes = fs::read(path).map_err(|e| LabError::file(path, e))?;
    let words: Vec<u64> = bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))).collect();
    Ok(words.chunks_exact(N).map(|row| row.try_into().expect("N")).collect())
}

/// Writes gaps to a file.
pub fn save_gaps(path: &Path, gaps: &[Gap]) -> Result<(), LabError> {
    save(path, &gaps.iter().map(|gap| [gap.from, gap.to]).collect::<Vec<_>>())
}

/// Reads gaps.
pub fn load_gaps(path: &Path) -> Result<Vec<Gap>, LabError> {
    Ok(load::<2>(path)?.into_iter().map(|[from, to]| Gap { from, to }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_overlap_a_gap_are_left_out_of_unstalled_only() {
        let gaps = [Gap { from: 50, to: 60 }, Gap { from: 55, to: 70 }, Gap { from: 200, to: 210 }];
        let samples = Samples(vec![(0, 49), (0, 50), (65, 66), (70, 71), (71, 72), (190, 220), (211, 212)]);
        let hop = samples.hop(&Calibration::nanoseconds(), &gaps);
        assert_eq!((hop.count, hop.unstalled.map(|u| u.count)), (7, Some(3)));
    }

    #[test]
    fn negative_differences_are_counted_not_dropped() {
        let hop = Samples(vec![(10, 5), (10, 15)]).hop(&Calibration::nanoseconds(), &[]);
        assert_eq!((hop.count, hop.negative), (1, 1));
    }
}
