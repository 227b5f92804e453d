//! The verdict of each metric.

use std::collections::BTreeSet;

use super::error::CompareError;
use super::noise::{Contrast, Design, Interval, MAX_SWAP_SHARE, MetricLogs, chances};
use super::ratio::{CONFIDENCE, RatioLine};
use super::sample::{BuildSide, ComparedResults, ComparisonSamples, MetricSamples, ResultPair, collect_samples};
use tickpath_lab_result::median;

/// Min movement that counts between calls in turn, as a share: builds of the same source differ by as much through the
/// addresses of their code.
pub const MIN_MOVE_IN_TURN: f64 = 0.02;

/// Min movement that counts between files: a host drifts by as much from hour to hour, and repeats within a file do not
/// show the drift.
const MIN_MOVE_APART: f64 = 0.05;

/// The share within which a metric is called the same, if a larger change can be ruled out.
pub(super) const MAX_SAME_CHANGE: f64 = 0.1;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The workload of both sides.
    pub workload: String,
    /// The order of the two sides' samples in time.
    pub design: Design,
    /// Samples of each side, the old first.
    pub samples: [usize; 2],
    /// A change for each metric of each setting, in the order of the runs.
    pub changes: Vec<MetricChange>,
    /// Losses of the new build against the old one, or against the promised delivery, in sentences; they make it
    /// worse whatever its speed.
    pub losses: Vec<String>,
    /// Notes for the reader: runs that were left out, and other differences between the two sides.
    pub notes: Vec<String>,
    /// Settings that could not be judged.
    pub unjudged: Vec<String>,
    /// Metrics that only one side has, of settings that both ran: the metric, the setting, and the side.
    pub one_sided: Vec<(String, String, BuildSide)>,
    /// Hops that only the old side measured, in sentences: a hop that is no longer measured is no improvement.
    pub missing: Vec<String>,
}

/// A metric of a setting on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricChange {
    /// The setting: only the parts that distinguish it from the others.
    pub setting: String,
    /// The metric as a result names it: `one_way.p99_ns`, `throughput_per_s`, a figure.
    pub metric: String,
    /// The median of the old samples, in the unit that the metric ends in.
    pub old: f64,
    /// The median of the new samples.
    pub new: f64,
    /// New divided by old; none if a sample is not above zero.
    pub ratio: Option<f64>,
    /// The interval of the ratio; none from a single sample a side.
    pub interval: Option<Interval>,
    /// Whether enough of its runs were valid for a verdict.
    pub has_enough_runs: bool,
    /// Max movement that does not count, as a share.
    pub floor: f64,
    /// The share of swaps in which any metric of the table moves as far as this metric; `None` with too few samples.
    pub chance: Option<f64>,
    /// The resulting verdict.
    pub verdict: Verdict,
}

/// The verdict on a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A time grew, or a rate fell.
    Slower,
    /// A time fell, or a rate grew.
    Faster,
    /// A figure that is neither a time nor a rate grew.
    More,
    /// A figure that is neither a time nor a rate fell.
    Less,
    /// A change beyond ten percent can be ruled out, and none was found.
    Same,
    /// The samples do not suffice for a verdict.
    Unknown,
}

/// Compares all metrics that both sides measured.
pub fn judge(measured: &ComparedResults) -> Result<Judgement, CompareError> {
    let samples = collect_samples(measured)?;
    let design = measured.design();
    let host = host_movement(measured);
    let least = match design {
        Design::InTurn => MIN_MOVE_IN_TURN,
        Design::Apart => host.max(MIN_MOVE_APART),
    };
    let logs: Vec<Option<MetricLogs>> = samples.rows.iter().map(|row| MetricLogs::of(&row.sides, design)).collect();
    let weighed =
        samples.rows.iter().zip(&logs).map(|(row, logs)| judge_row(&samples, row, logs.as_ref(), least, design));
    let mut changes: Vec<MetricChange> = weighed.collect();
    let tellable = changes.iter_mut().zip(&logs).filter(|(change, _)| change.has_enough_samples());
    let contrasts = tellable.filter_map(|(change, logs)| {
        let contrast = Contrast::of(logs.as_ref()?, change.floor.ln_1p());
        Some((change, contrast))
    });
    let (tellable, contrasts): (Vec<&mut MetricChange>, Vec<Contrast>) = contrasts.unzip();
    let units = samples.sample_counts;
    let chances = chances(&contrasts, design, units);
    tellable.into_iter().zip(chances).for_each(|(change, chance)| change.chance = Some(chance));
    changes.iter_mut().for_each(|change| change.verdict = verdict(change));
    let ComparisonSamples { unjudged, one_sided: lone, losses, mut notes, .. } = samples;
    notes.extend(differences(measured, host));
    notes.extend(too_few_samples(design, units, &changes));
    let workload = measured.pairs().first().map_or(String::new(), |pair| pair.new.workload.clone());
    let missing = missing_metrics(&lone, &changes);
    Ok(Judgement { workload, design, samples: units, changes, losses, notes, unjudged, one_sided: lone, missing })
}

/// Returns the hops and other metrics that the old side has of a setting and for which the new side has no percentile.
fn missing_metrics(lone: &[(String, String, BuildSide)], changes: &[MetricChange]) -> Vec<String> {
    let hop = |metric: &str| metric.rsplit_once('.').map_or(metric, |(hop, _)| hop).to_owned();
    let of_old = lone.iter().filter(|(.., side)| *side == BuildSide::Old).map(|(metric, what, _)| (what, hop(metric)));
    let is_measured =
        |what: &str, name: &str| changes.iter().any(|change| change.setting == what && hop(&change.metric) == name);
    let missing: BTreeSet<_> = of_old.filter(|(what, name)| !is_measured(what, name)).collect();
    missing.into_iter().map(|(what, name)| format!("NEW does not measure {name}, {what}; OLD does")).collect()
}

impl MetricChange {
    /// Returns whether the metric changed beyond noise.
    pub fn is_real(&self) -> bool {
        match self.verdict {
            Verdict::Slower | Verdict::Faster | Verdict::More | Verdict::Less => true,
            Verdict::Same | Verdict::Unknown => false,
        }
    }

    /// Returns whether the medians lie further apart than the noise floor.
    pub fn exceeds_floor(&self) -> bool {
        match self.ratio {
            Some(ratio) => ratio.ln().abs() > self.floor.ln_1p(),
            None => self.old != self.new,
        }
    }

    /// Returns the metric in its usual notation: `one_way.p99`, `throughput_per_s`, a figure.
    pub fn name(&self) -> &str {
        match self.metric.contains('.') {
            true => self.metric.trim_end_matches("_ns"),
            false => &self.metric,
        }
    }

    /// Returns whether it has enough samples for a verdict.
    pub(super) fn has_enough_samples(&self) -> bool {
        self.has_enough_runs && self.interval.is_some_and(|interval| interval.level >= CONFIDENCE)
    }
}

impl Verdict {
    /// Returns the name in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::More => "more",
            Self::Less => "less",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

/// Judges a row except for its chance and verdict, which depend on the whole table.
fn judge_row(
    samples: &ComparisonSamples,
    row: &MetricSamples,
    logs: Option<&MetricLogs>,
    least: f64,
    design: Design,
) -> MetricChange {
    let [old, new] = side_medians(row, logs);
    let ratio = logs.map(|_| new / old);
    let drift = match design {
        Design::InTurn => 0.0,
        Design::Apart => least.ln_1p(),
    };
    // The ratio of two medians may lie slightly outside the drawn interval, and has to be included.
    let interval = ratio.zip(logs.and_then(|logs| logs.interval(drift))).map(|(ratio, interval)| Interval {
        low: interval.low.min(ratio),
        high: interval.high.max(ratio),
        ..interval
    });
    // Times are whole nanoseconds.
    let last_digit = if row.metric.ends_with("_ns") { 1.0 / old.min(new).max(1.0) } else { 0.0 };
    let floor = least.max(last_digit);
    let (what, metric) = (samples.titles[row.setting].clone(), row.metric.clone());
    let enough = !samples.excluded[row.setting].is_too_many();
    MetricChange {
        setting: what,
        metric,
        old,
        new,
        ratio,
        interval,
        has_enough_runs: enough,
        floor,
        chance: None,
        verdict: Verdict::Unknown,
    }
}

/// Returns the value of each side: for pairs the pair with the middle ratio, otherwise both medians.
fn side_medians(row: &MetricSamples, logs: Option<&MetricLogs>) -> [f64; 2] {
    if let Some(MetricLogs::Pairs(_)) = logs {
        let [old, new] = &row.sides;
        let pairs = old.iter().zip(new).map(|(old, new)| [*new, *old]).collect();
        let (new, old) = RatioLine::new("", &row.metric, pairs).median_pair().expect("a row has a whole pair");
        return [old, new];
    }
    let medians = row.sides.each_ref().map(|side| median(side.iter().flatten().copied().collect()));
    medians.map(|median| median.expect("a row has samples on both sides"))
}

fn verdict(change: &MetricChange) -> Verdict {
    let (Some(ratio), Some(interval)) = (change.ratio, change.interval) else {
        let equal = change.ratio.is_none() && change.old == change.new;
        return if equal { Verdict::Same } else { Verdict::Unknown };
    };
    let Some(chance) = change.chance else { return Verdict::Unknown };
    let excludes_one = interval.low > 1.0 || interval.high < 1.0;
    if excludes_one && change.exceeds_floor() && chance <= MAX_SWAP_SHARE {
        return direction(&change.metric, ratio);
    }
    let max = 1.0 + MAX_SAME_CHANGE;
    if interval.low > 1.0 / max && interval.high < max { Verdict::Same } else { Verdict::Unknown }
}

fn direction(metric: &str, ratio: f64) -> Verdict {
    let grew = ratio > 1.0;
    match (metric.ends_with("_ns"), metric.ends_with("_per_s")) {
        (true, _) if grew => Verdict::Slower,
        (true, _) => Verdict::Faster,
        (_, true) if grew => Verdict::Faster,
        (_, true) => Verdict::Slower,
        _ if grew => Verdict::More,
        _ => Verdict::Less,
    }
}

/// Returns the movement of the host's own floor between two files, as a share. Calls in turn share their host.
fn host_movement(measured: &ComparedResults) -> f64 {
    let ComparedResults::Apart(pair) = measured else { return 0.0 };
    let [old, new] = [&pair.old.host, &pair.new.host];
    let floors = [(old.cache_line_transfer_ns, new.cache_line_transfer_ns), (old.clock_cost_ns, new.clock_cost_ns)];
    let moved = floors.into_iter().filter_map(|(old, new)| Some((new? / old?).ln().abs()));
    moved.filter(|moved| moved.is_finite()).fold(0.0, f64::max).exp_m1()
}

/// Returns the differences between two files other than the builds.
fn differences(measured: &ComparedResults, host: f64) -> Vec<String> {
    let ComparedResults::Apart(pair) = measured else { return Vec::new() };
    let ResultPair { old, new } = pair.as_ref();
    let mut notes = Vec::new();
    for (name, old, new) in
        [("processor", &old.host.cpu, &new.host.cpu), ("kernel", &old.host.kernel, &new.host.kernel)]
    {
        if old != new {
            notes.push(format!("another {name}: OLD was measured on '{old}', NEW on '{new}'"));
        }
    }
    if host > MIN_MOVE_APART {
        notes.push(format!(
            "the host's own floor (one cache line, one stamp) moved by {:.0} % between the files; no change up to that \
             counts, so compare the programs in turn",
            host * 100.0
        ));
    }
    notes
}

/// Returns a sentence with the remedy if the samples are too few for any verdict, and `None` if any metric has enough.
fn too_few_samples(design: Design, samples: [usize; 2], changes: &[MetricChange]) -> Option<String> {
    if changes.iter().any(MetricChange::has_enough_samples) {
        return None;
    }
    let found = match samples {
        [1, 1] => "one run each, so the noise is unknown",
        _ => "too few repeats to tell a change from noise",
    };
    let remedy = match design {
        Design::InTurn => "it takes six valid pairs, so use --repeat 7 or more",
        Design::Apart => "it takes four valid repeats in each file, so measure with --repeat 5 or more",
    };
    Some(format!("{found}; {remedy}"))
}

/// Returns the difference of a ratio from 1: `+12.3 %`.
pub(super) fn movement(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "−")
}
