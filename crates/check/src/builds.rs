//! Lies about builds: one that differs from itself, and one whose tail has grown and nobody sees it.
//!
//! Real runs of one build are drawn into the sides of comparisons at random, again and again: whatever noise they have,
//! the sides do not differ. Then one side's tail is stretched.

use tickpath_compare::{Judgement, LEVEL, Measured, Pair, Verdict, judge, value};
use tickpath_harness::LabError;
use tickpath_lab::pubsub::{Settings, run};
use tickpath_result::{Hop, ResultFile, Run, histogram};

use crate::stage::{Stage, Told};

/// Runs that are drawn from.
const RUNS: usize = 28;

/// Messages of one: enough for a 99th percentile.
const COUNT: u64 = 1_200;
const RATE: f64 = 4_000.0;

/// Comparisons of a build with itself, and how many of them may call it different: at the stated level more come once in
/// three hundred times.
const COMPARISONS: u32 = 40;
const MOST_ALARMS: u32 = 6;

/// Pairs of a comparison, as `tickpath compare` makes them if nobody says how many; and at most.
const PAIRS: usize = 7;
const MOST_PAIRS: usize = 400;

/// How much slower the slower build is, and from which quantile on.
const SLOWER: f64 = 1.03;
const TAIL: f64 = 0.985;
const METRIC: &str = "one_way.p99_ns";

/// Below this a movement counts as none: builds of one source differ by so much.
const FLOOR: f64 = 1.02;

/// Of so many comparisons so many must find it.
const LOOKS: usize = 10;
const FINDS: usize = 9;

pub(crate) fn identical_in_turn(stage: &Stage<'_>) -> Result<Told, LabError> {
    identical(stage, "in turn", |old, new| Measured::InTurn(pairs(old, new)))
}

pub(crate) fn identical_files(stage: &Stage<'_>) -> Result<Told, LabError> {
    identical(stage, "as two files", |old, new| {
        Measured::Apart(Box::new(Pair { old: as_file(old), new: as_file(new) }))
    })
}

fn identical(
    stage: &Stage<'_>,
    how: &str,
    measured: fn(Vec<ResultFile>, Vec<ResultFile>) -> Measured,
) -> Result<Told, LabError> {
    let runs = stage.runs(measure)?;
    let mut dice = Dice(1);
    let mut alarms = 0;
    for _ in 0..COMPARISONS {
        let drawn = dice.draw_without(runs, 2 * PAIRS);
        let (old, new) = drawn.split_at(PAIRS);
        let judgement = judged(&measured(old.to_vec(), new.to_vec()))?;
        alarms += u32::from(judgement.changes.iter().any(|change| change.is_real()));
    }
    Ok(Told {
        planted: format!("one build and itself {how}, {COMPARISONS} times"),
        reported: format!("called different {alarms} times; {:.0} % are stated", 100.0 * LEVEL),
        is_told: alarms <= MOST_ALARMS,
    })
}

/// Found at the usual length, or the length that it takes here is told; and tried, if it is not too long.
pub(crate) fn slower_tail(stage: &Stage<'_>) -> Result<Told, LabError> {
    let runs = stage.runs(measure)?;
    let mut dice = Dice(2);
    let planted = format!("a build that is {:.0} % slower at p99 alone", 100.0 * (SLOWER - 1.0));
    let usual = finds(&mut dice, runs, PAIRS)?;
    let of = |found: usize, pairs: usize| format!("found in {found} of {LOOKS} comparisons of {pairs} pairs");
    if usual >= FINDS {
        return Ok(Told { planted, reported: of(usual, PAIRS), is_told: true });
    }
    let needed = needed(runs);
    let reported = format!("{}; it takes about {needed} here", of(usual, PAIRS));
    if needed > MOST_PAIRS {
        return Ok(Told { planted, reported, is_told: true });
    }
    let found = finds(&mut dice, runs, needed)?;
    Ok(Told { planted, reported: format!("{reported}: {}", of(found, needed)), is_told: found >= FINDS })
}

/// Pairs with which nine of ten comparisons find it. The middle of so many ratios, which scatter as those of two runs do,
/// has to lie beyond the noise floor, and its interval beyond 1.
fn needed(runs: &[ResultFile]) -> usize {
    /// Quantiles of the normal curve: that of nine of ten, and that of the interval's end; how much wider a median
    /// scatters than a mean.
    const NINE_OF_TEN: f64 = 1.28;
    const END: f64 = 1.96;
    const OF_MEDIAN: f64 = 1.2533;
    let values = runs.iter().flat_map(|result| &result.runs).filter_map(|run| value(run, METRIC));
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
    let error = ((SLOWER / FLOOR).ln() / NINE_OF_TEN).min(SLOWER.ln() / (NINE_OF_TEN + END));
    (2.0 * variance * (OF_MEDIAN / error).powi(2)).ceil().max(PAIRS as f64) as usize
}

fn finds(dice: &mut Dice, runs: &[ResultFile], length: usize) -> Result<usize, LabError> {
    let mut found = 0;
    for _ in 0..LOOKS {
        let old = dice.draw_with(runs, length);
        let new: Vec<ResultFile> = dice.draw_with(runs, length).into_iter().map(stretched).collect();
        let judgement = judged(&Measured::InTurn(pairs(old, new)))?;
        let change = judgement.changes.iter().find(|change| change.metric == METRIC);
        found += usize::from(change.is_some_and(|change| change.verdict == Verdict::Slower));
    }
    Ok(found)
}

fn judged(measured: &Measured) -> Result<Judgement, LabError> {
    judge(measured).map_err(|e| LabError::Failed(e.to_string()))
}

/// Valid runs of one build, a result each.
fn measure(stage: &Stage<'_>) -> Result<Vec<ResultFile>, LabError> {
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

fn pairs(old: Vec<ResultFile>, new: Vec<ResultFile>) -> Vec<Pair> {
    old.into_iter().zip(new).map(|(old, new)| Pair { old, new }).collect()
}

/// Runs as the repeats of one file.
fn as_file(results: Vec<ResultFile>) -> ResultFile {
    let runs = results.into_iter().flat_map(|result| result.runs).zip(1..);
    let runs = runs.map(|(run, repeat)| Run { repeat, ..run }).collect();
    ResultFile { runs, ..ResultFile::new("pubsub", "", "") }
}

/// The same result of a build whose tail is longer.
fn stretched(mut result: ResultFile) -> ResultFile {
    for run in &mut result.runs {
        run.hops.values_mut().for_each(|hop| *hop = longer(hop));
    }
    result
}

fn longer(hop: &Hop) -> Hop {
    let Ok(samples) = hop.histogram() else { return hop.clone() };
    let from = samples.value_at_quantile(TAIL);
    let mut all = histogram();
    let mut worst = hop.worst_ns;
    for sample in samples.iter_recorded() {
        let (value, times) = (sample.value_iterated_to(), sample.count_at_value());
        let value = if value >= from { (value as f64 * SLOWER) as u64 } else { value };
        all.record_n(value, times).expect("an auto-sized histogram takes any value");
    }
    worst.iter_mut().for_each(|ns| *ns = (*ns as f64 * SLOWER) as u64);
    Hop::from_histogram(&all, None, hop.negative, worst)
}

/// SplitMix64: the same runs are drawn alike.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    }

    fn draw_with(&mut self, results: &[ResultFile], count: usize) -> Vec<ResultFile> {
        (0..count).map(|_| results[self.draw(results.len())].clone()).collect()
    }

    fn draw_without(&mut self, results: &[ResultFile], count: usize) -> Vec<ResultFile> {
        let mut places: Vec<usize> = (0..results.len()).collect();
        for place in 0..count {
            let other = place + self.draw(places.len() - place);
            places.swap(place, other);
        }
        places[..count].iter().map(|&place| results[place].clone()).collect()
    }
}
