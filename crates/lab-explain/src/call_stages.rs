//! Stages of a call to an exchange, and of a message from it: the stamps as stages that add up to the whole.
//!
//! ```text
//!   called ─ library ─ sign ─ http_client ─ send ─ answer ─┐ the call
//!   read ─ decrypt ─ decode ─ event_loop ─ parse_json ─ unify ─ hand_over: its answer, or a message
//! ```
//! Each stage lies between two stamps. A stage is the mean over the middle half of the calls, and so is the whole: with
//! the unexplained remainder the stages add up to it exactly. Pauses of the library lie within a stage and are
//! subtracted from it; time next to a missing stamp stays unexplained.

use std::collections::BTreeMap;

use super::stages::{Breakdown, STAGES, measured, unexplained};

/// Stages between the stamps of a call.
const CALL: [&str; 11] = [
    "library",
    "sign",
    "http_client",
    "send",
    "answer",
    "decrypt",
    "decode",
    "event_loop",
    "parse_json",
    "unify",
    "hand_over",
];

/// Number of the first of them that a message has too.
const FIRST_OF_MESSAGE: usize = 5;

/// Pauses within a call.
const PAUSES: [&str; 4] = ["load_markets", "rate_limit", "connect_exchange", "log_on"];

/// Times of one call or message; nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StagedTime {
    whole: u64,
    stages: BTreeMap<&'static str, u64>,
}

impl StagedTime {
    /// Returns the times of a call; none if it has no end.
    pub fn of_call(stamps: &[u64; 12], pauses: &[[u64; 2]; 4]) -> Option<Self> {
        Self::of(stamps, &CALL, pauses)
    }

    /// Returns the times of a message; none if its read has no stamp.
    pub fn of_message(stamps: &[u64; 7]) -> Option<Self> {
        Self::of(stamps, &CALL[FIRST_OF_MESSAGE..], &[])
    }

    fn of(stamps: &[u64], names: &[&'static str], pauses: &[[u64; 2]]) -> Option<Self> {
        let (&first, &last) = (stamps.first()?, stamps.last()?);
        let whole = last.checked_sub(first).filter(|whole| first > 0 && *whole > 0)?;
        let mut stages: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut reached = first;
        for (name, pair) in names.iter().zip(stamps.windows(2)) {
            if pair.contains(&0) {
                continue;
            }
            // A stamp of another task may be later than the one that follows it.
            let from = pair[0].clamp(reached, last);
            let to = pair[1].clamp(from, last);
            reached = to;
            let mut rest = to - from;
            for (pause, [began, ended]) in PAUSES.iter().zip(pauses) {
                let within = to.min(*ended).saturating_sub(from.max(*began)).min(rest);
                *stages.entry(*pause).or_default() += within;
                rest -= within;
            }
            *stages.entry(*name).or_default() += rest;
        }
        Some(Self { whole, stages })
    }

    /// Returns the stages of the middle half, in the order of the path; none without times.
    pub fn breakdown(mut all: Vec<Self>) -> Option<Breakdown> {
        all.sort_by_key(|times| times.whole);
        let aside = all.len() / 4;
        let middle = all.get(aside..all.len() - aside).filter(|middle| !middle.is_empty())?;
        let mean =
            |of: &dyn Fn(&Self) -> u64| middle.iter().map(|times| of(times) as f64).sum::<f64>() / middle.len() as f64;
        let mean_of = |name: &str| mean(&|times| times.stages.get(name).copied().unwrap_or(0)).round();
        let names = STAGES.iter().map(|stage| stage.name);
        let found = names.map(|name| (name, mean_of(name))).filter(|(_, ns)| *ns > 0.0);
        let mut stages: Vec<_> = found.map(|(name, ns)| measured(name, ns)).collect();
        let known: f64 = stages.iter().filter_map(|stage| stage.p50_ns).sum();
        // Rounded stages may exceed the rounded whole.
        let whole_ns = mean(&|times| times.whole).round().max(known);
        stages.extend(unexplained("unexplained", whole_ns - known));
        Some(Breakdown { stages, whole_ns, sum_percent: 100.0 * known / whole_ns })
    }
}

#[cfg(test)]
mod tests {
    use tickpath_lab_result::StageKind;

    use super::*;

    /// Stamps 10 µs apart.
    const CALLED: [u64; 12] =
        [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000, 90_000, 100_000, 110_000, 120_000];

    fn times(stamps: [u64; 12], pauses: [[u64; 2]; 4]) -> Breakdown {
        let found = StagedTime::of_call(&stamps, &pauses).expect("it has an end");
        StagedTime::breakdown(vec![found; 3]).expect("there are some")
    }

    fn stage(found: &Breakdown, name: &str) -> f64 {
        found.stages.iter().filter(|stage| stage.name == name).filter_map(|stage| stage.p50_ns).sum()
    }

    fn sum(found: &Breakdown) -> f64 {
        found.stages.iter().filter_map(|stage| stage.p50_ns).sum()
    }

    #[test]
    fn every_stage_of_a_call_is_measured_and_named() {
        let found = times(CALLED, [[0; 2]; 4]);
        let names: Vec<&str> = found.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert!(CALL.iter().all(|name| names.contains(name)) && names.len() == CALL.len(), "{names:?}");
        assert!(found.stages.iter().all(|stage| stage.kind == StageKind::Measured && stage.label.is_some()));
        assert_eq!((found.whole_ns, found.sum_percent), (110_000.0, 100.0));
        let message =
            StagedTime::of_message(&[1, 3, 5, 6, 8, 10, 12]).and_then(|times| StagedTime::breakdown(vec![times]));
        let names: Vec<String> = message.expect("it has an end").stages.into_iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), CALL.len() - FIRST_OF_MESSAGE, "{names:?}");
    }

    #[test]
    fn stages_and_the_remainder_are_the_whole_for_any_stamps() {
        for missing in 0..=11 {
            for late in 1..11 {
                let mut stamps = CALLED;
                stamps[late] += 35_000;
                if (1..11).contains(&missing) {
                    stamps[missing] = 0;
                }
                for pause in [[0, 0], [12_000, 18_000], [5_000, 65_000], [90_000, 500_000]] {
                    let found = times(stamps, [pause, [13_000, 33_000], [0, 0], pause]);
                    assert_eq!(sum(&found), found.whole_ns, "{stamps:?} {pause:?}");
                    assert_eq!(found.whole_ns, 110_000.0);
                }
            }
        }
    }

    #[test]
    fn time_next_to_a_missing_stamp_is_unexplained() {
        let mut stamps = CALLED;
        stamps[4] = 0;
        let found = times(stamps, [[0; 2]; 4]);
        assert_eq!(
            [stage(&found, "send"), stage(&found, "answer"), stage(&found, "unexplained")],
            [0.0, 0.0, 20_000.0]
        );
    }

    #[test]
    fn a_pause_is_a_stage_of_its_own() {
        let found = times(CALLED, [[0; 2], [12_000, 16_000], [31_000, 39_000], [0; 2]]);
        let parts = ["library", "rate_limit", "http_client", "connect_exchange"].map(|name| stage(&found, name));
        assert_eq!(parts, [6_000.0, 4_000.0, 2_000.0, 8_000.0]);
    }

    #[test]
    fn the_whole_is_the_mean_of_the_middle_half() {
        let call = |ns: u64| {
            let mut stamps = CALLED;
            stamps[11] += ns;
            StagedTime::of_call(&stamps, &[[0; 2]; 4]).expect("it has an end")
        };
        let found = StagedTime::breakdown([0, 1, 4, 90_000].map(call).to_vec()).expect("there are some");
        // 2.5 ns more, rounded in both.
        assert_eq!((found.whole_ns, sum(&found)), (110_003.0, 110_003.0));
        assert_eq!(StagedTime::breakdown(Vec::new()), None);
        assert_eq!(StagedTime::of_message(&[0, 3, 5, 6, 8, 10, 12]), None);
    }
}
