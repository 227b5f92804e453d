//! Lies about builds: a build that is called different from itself, and a longer tail that goes unnoticed.
//!
//! Real runs of one build are drawn at random into the sides of comparisons, again and again: whatever their noise,
//! the sides do not differ. Then the tail of one side is stretched.

use tickpath_lab_bus::pubsub::{Settings, run};
use tickpath_lab_compare::{
    ComparedResults, Judgement, LEVEL, MIN_MOVE_IN_TURN, RatioLine, ResultPair, Verdict, judge, ratio_table, value,
};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::random::SeededRandom;
use tickpath_lab_result::{Hop, ResultFile, Run, histogram};

use crate::context::{CheckContext, FaultReport};

/// Number of runs to draw from.
const RUNS: usize = 28;

/// Messages of a run: enough for a 99th percentile.
const COUNT: u64 = 1_200;
const RATE: f64 = 4_000.0;

/// Number of comparisons of a build with itself.
const COMPARISONS: u32 = 40;

/// Pairs of a comparison: the default of `tickpath compare`, and the maximum.
const PAIRS: usize = 7;
const MAX_PAIRS: usize = 200;

/// Figures in a table of ratios: as many as keep a level of 95 % with these pairs.
const FIGURES: [&str; 3] = ["one_way.p50_ns", "one_way.p99_ns", "service.p50_ns"];

/// Factor by which the slower build is slower, and the quantile from which on.
const SLOWDOWN: f64 = 1.03;
const TAIL: f64 = 0.985;
const METRIC: &str = "one_way.p99_ns";

/// Number of comparisons, and how many of them must find the slower build.
const DETECTION_TRIES: usize = 10;
const MIN_DETECTIONS: usize = 9;

/// Quantiles of the normal curve: 99 %, which makes nine finds of ten all but sure, and the largest movement of a
/// table by chance; and the ratio of a median's scatter to a mean's.
const QUANTILE_99: f64 = 2.33;
const TABLE_QUANTILE: f64 = 3.1;
const MEDIAN_FACTOR: f64 = 1.2533;

pub(crate) fn identical_in_turn(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    compare_identical(stage, "in turn", "stated are at most", |old, new| {
        let judgement = judged(&ComparedResults::InTurn(pairs(old, new)))?;
        Ok((judgement.changes.iter().any(|change| change.is_real()), LEVEL))
    })
}

/// Compares a build with itself by the table of ratios that the demo, `explain` and the benches print.
pub(crate) fn identical_ratios(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    compare_identical(stage, "as a table of ratios", "stated are at most", |old, new| {
        let (old, new) = (as_file(old), as_file(new));
        let table = ratio_table(FIGURES.map(|figure| RatioLine::of_runs("new_to_old", figure, &new.runs, &old.runs)));
        let excludes_one = |low: Option<f64>, high: Option<f64>| {
            low.is_some_and(|low| low > 1.0) || high.is_some_and(|high| high < 1.0)
        };
        let is_different = table.iter().any(|line| excludes_one(line.low, line.high));
        let level_percent = table.iter().filter_map(|line| line.level_percent).fold(100.0, f64::min);
        Ok((is_different, 1.0 - level_percent / 100.0))
    })
}

/// Compares a build with itself as two files. No rate is stated for separate files, because the drift between them is
/// unknown; runs of one hour dealt at random to two files satisfy the assumption of the label swaps.
pub(crate) fn identical_files(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let stated = "no rate is stated for files, these may be at most";
    compare_identical(stage, "as two files of one hour", stated, |old, new| {
        let judgement = judged(&ComparedResults::Apart(Box::new(ResultPair { old: as_file(old), new: as_file(new) })))?;
        Ok((judgement.changes.iter().any(|change| change.is_real()), LEVEL))
    })
}

/// Function that compares two sides: whether they are called different, and the stated rate of such false alarms.
type DifferenceTest = fn(Vec<ResultFile>, Vec<ResultFile>) -> Result<(bool, f64), LabError>;

fn compare_identical(
    stage: &CheckContext<'_>,
    how: &str,
    stated: &str,
    differs: DifferenceTest,
) -> Result<FaultReport, LabError> {
    let runs = stage.runs(measure)?;
    let mut random = SeededRandom::new(1);
    let (mut alarms, mut level) = (0, 0.0);
    for _ in 0..COMPARISONS {
        let mut old = draw_without_replacement(&mut random, runs, 2 * PAIRS);
        let new = old.split_off(PAIRS);
        let (is_different, at_most) = differs(old, new)?;
        alarms += u32::from(is_different);
        level = f64::max(level, at_most);
    }
    let allowed = max_alarms(level);
    let percent = 100.0 * level;
    Ok(FaultReport {
        planted: format!("one build and itself {how}, {COMPARISONS} times"),
        reported: format!("called different {alarms} times; {stated} {percent:.0} %, up to {allowed} by chance"),
        is_detected: alarms <= allowed,
    })
}

/// Returns the largest number of alarms to accept: at this level more occur in at most one of two hundred such rows,
/// by the binomial distribution, because each comparison is drawn independently.
fn max_alarms(level: f64) -> u32 {
    const MAX_CHANCE: f64 = 0.005;
    let odds = level / (1.0 - level);
    let (mut max, mut chance) = (0, (1.0 - level).powi(COMPARISONS as i32));
    let mut more = 1.0 - chance;
    while more > MAX_CHANCE && max < COMPARISONS {
        chance *= odds * f64::from(COMPARISONS - max) / f64::from(max + 1);
        max += 1;
        more -= chance;
    }
    max
}

/// Checks that a slower tail is found at the default number of pairs, or reports the number needed here. If that is
/// too large to try, a build slow enough to be found at the largest number, by the same formula, must be found.
pub(crate) fn slower_tail(stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
    let runs = stage.runs(measure)?;
    let mut random = SeededRandom::new(2);
    let planted = format!("a build that is {:.0} % slower at p99 alone", 100.0 * (SLOWDOWN - 1.0));
    let usual = count_detections(&mut random, runs, SLOWDOWN, PAIRS)?;
    let of = |found: usize, pairs: usize| format!("found in {found} of {DETECTION_TRIES} comparisons of {pairs} pairs");
    if usual >= MIN_DETECTIONS {
        return Ok(FaultReport { planted, reported: of(usual, PAIRS), is_detected: true });
    }
    let variance = variance(runs);
    let needed = pairs_needed(variance, SLOWDOWN);
    let (slower, length) = match needed {
        ..=MAX_PAIRS => (SLOWDOWN, needed),
        _ => (detectable_slowdown(variance, MAX_PAIRS), MAX_PAIRS),
    };
    let found = count_detections(&mut random, runs, slower, length)?;
    let reported = format!(
        "{}; it takes about {needed} here: one that is {:.0} % slower is {}",
        of(usual, PAIRS),
        100.0 * (slower - 1.0),
        of(found, length)
    );
    Ok(FaultReport { planted, reported, is_detected: found >= MIN_DETECTIONS })
}

/// Returns the variance of the metric's logarithm from run to run.
fn variance(runs: &[ResultFile]) -> f64 {
    let values = runs.iter().flat_map(|result| &result.runs).filter_map(|run| value(run, METRIC));
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64
}

/// Returns the number of pairs that finds a build slower by this factor. The median of that many ratios, which scatter
/// as those of two runs, has to lie beyond the noise floor and beyond the chance movements of a whole table.
fn pairs_needed(variance: f64, slower: f64) -> usize {
    let error =
        ((slower / (1.0 + MIN_MOVE_IN_TURN)).ln() / QUANTILE_99).min(slower.ln() / (QUANTILE_99 + TABLE_QUANTILE));
    (2.0 * variance * (MEDIAN_FACTOR / error).powi(2)).ceil().max(PAIRS as f64) as usize
}

/// Returns the inverse of [`pairs_needed`]: the factor by which a build must be slower to be found with so many pairs.
fn detectable_slowdown(variance: f64, pairs: usize) -> f64 {
    let error = MEDIAN_FACTOR * (2.0 * variance / pairs as f64).sqrt();
    (error * QUANTILE_99 + MIN_MOVE_IN_TURN.ln_1p()).max(error * (QUANTILE_99 + TABLE_QUANTILE)).exp()
}

fn count_detections(
    random: &mut SeededRandom,
    runs: &[ResultFile],
    slower: f64,
    length: usize,
) -> Result<usize, LabError> {
    let slowed: Vec<ResultFile> = runs.iter().map(|result| with_longer_tail(result.clone(), slower)).collect();
    let mut found = 0;
    for _ in 0..DETECTION_TRIES {
        let old = draw_with_replacement(random, runs, length);
        let new = draw_with_replacement(random, &slowed, length);
        let judgement = judged(&ComparedResults::InTurn(pairs(old, new)))?;
        let change = judgement.changes.iter().find(|change| change.metric == METRIC);
        found += usize::from(change.is_some_and(|change| change.verdict == Verdict::Slower));
    }
    Ok(found)
}

fn judged(measured: &ComparedResults) -> Result<Judgement, LabError> {
    judge(measured).map_err(|e| LabError::Failed(e.to_string()))
}

/// Measures valid runs of one build, each a result of its own.
fn measure(stage: &CheckContext<'_>) -> Result<Vec<ResultFile>, LabError> {
    let settings = Settings { rate: Some(RATE), count: COUNT, ..stage.settings("shm://") };
    let mut results = Vec::new();
    for _ in 0..2 * RUNS {
        let run = run(stage.lab, &settings)?;
        if run.valid {
            results.push(ResultFile { runs: vec![run], ..ResultFile::new("pubsub", "", "") });
        }
        if results.len() == RUNS {
            return Ok(results);
        }
    }
    let (valid, all) = (results.len(), 2 * RUNS);
    Err(LabError::Failed(format!("{valid} of {all} runs were valid, too few to compare; leave the machine alone")))
}

fn pairs(old: Vec<ResultFile>, new: Vec<ResultFile>) -> Vec<ResultPair> {
    old.into_iter().zip(new).map(|(old, new)| ResultPair { old, new }).collect()
}

/// Returns the runs as repeats of one file.
fn as_file(results: Vec<ResultFile>) -> ResultFile {
    let runs = results.into_iter().flat_map(|result| result.runs).zip(1..);
    let runs = runs.map(|(run, repeat)| Run { repeat, ..run }).collect();
    ResultFile { runs, ..ResultFile::new("pubsub", "", "") }
}

/// Returns the result of a build with a longer tail.
fn with_longer_tail(mut result: ResultFile, slower: f64) -> ResultFile {
    for run in &mut result.runs {
        run.hops.values_mut().for_each(|hop| *hop = lengthen_tail(hop, slower));
    }
    result
}

fn lengthen_tail(hop: &Hop, slower: f64) -> Hop {
    let Ok(samples) = hop.histogram() else { return hop.clone() };
    let from = samples.value_at_quantile(TAIL);
    let mut all = histogram();
    let mut worst = hop.worst_ns;
    for sample in samples.iter_recorded() {
        let (value, times) = (sample.value_iterated_to(), sample.count_at_value());
        let value = if value >= from { (value as f64 * slower) as u64 } else { value };
        all.record_n(value, times).expect("an auto-sized histogram takes any value");
    }
    worst.iter_mut().for_each(|ns| *ns = (*ns as f64 * slower) as u64);
    Hop::from_histogram(&all, None, hop.negative, worst)
}

/// Draws some results, with replacement.
fn draw_with_replacement(random: &mut SeededRandom, results: &[ResultFile], count: usize) -> Vec<ResultFile> {
    (0..count).map(|_| results[random.below(results.len())].clone()).collect()
}

/// Draws some results, without replacement.
fn draw_without_replacement(random: &mut SeededRandom, results: &[ResultFile], count: usize) -> Vec<ResultFile> {
    let mut places: Vec<usize> = (0..results.len()).collect();
    for index in 0..count {
        let other = index + random.below(places.len() - index);
        places.swap(index, other);
    }
    places[..count].iter().map(|&index| results[index].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_alarms_than_the_level_allows_are_too_many() {
        for (level, max) in [(0.0, 0), (0.01, 3), (0.05, 6), (0.5, 28)] {
            assert_eq!(max_alarms(level), max, "{level}");
        }
    }

    #[test]
    fn a_detectable_build_needs_the_computed_number_of_pairs() {
        for (variance, pairs) in [(0.001, 50), (0.1, 200), (1.0, 200)] {
            let needed = pairs_needed(variance, detectable_slowdown(variance, pairs));
            assert!((pairs..=pairs + 1).contains(&needed), "{needed} for {pairs}");
        }
    }
}
