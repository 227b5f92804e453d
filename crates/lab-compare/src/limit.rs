//! Limits: parsed from text, and checked against a judgement.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::judge::{Judgement, MetricChange, movement};
use super::noise::Design;
use super::ratio::CONFIDENCE;
use tickpath_lab_report::figure;
use tickpath_lab_result::{FIGURES, OWN_PREFIX, PERCENTILES, is_hop};

/// Allowed movement of a metric: `tick_to_order.p99 > +10%`, `throughput_per_s < -5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricLimit {
    /// The original text.
    text: String,
    /// The metric's name in results.
    metric: String,
    /// Whether the limit is an upper bound; otherwise a lower bound.
    above: bool,
    /// The ratio at the bound.
    ratio: f64,
}

/// The error for a text that is not a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// The text has another form.
    #[error("'{0}' is no limit; write 'METRIC > +10%' or 'METRIC < -5%'")]
    Form(String),
    /// No bench measures the metric.
    #[error(
        "no bench measures '{0}'; a metric is a hop with p50, p75, p90, p99, p999 or p9999 (tick_to_order.p99), \
         also one of your own code (own.decode.p99), throughput_per_s, or a figure of docs/results.md"
    )]
    Metric(String),
}

/// The error for a metric that no compared run has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing measured {metric}; measured are {measured}")]
pub struct UnmeasuredMetric {
    /// The metric of the limit.
    pub metric: String,
    /// The metrics that were measured.
    pub measured: String,
}

/// The result of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Whether the limit was exceeded.
    pub status: LimitStatus,
    /// The ruling as a sentence.
    pub sentence: String,
}

/// Whether a limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitStatus {
    /// The whole interval lies beyond the limit.
    Exceeded,
    /// The whole interval lies within the limit, and there are enough repeats for the ruling.
    Kept,
    /// The repeats do not suffice for a ruling.
    Undecided,
}

/// The outcome of a comparison, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// The new build loses messages, however fast it is.
    Lost,
    /// A limit was exceeded.
    Exceeded,
    /// A limit cannot be judged, for at least one setting; or the new build does not measure a hop that the old one
    /// does.
    Undecided,
    /// No loss, no exceeded and no open limit.
    Good,
}

/// Returns the outcome of a judgement and the rulings of all limits.
pub fn overall_outcome(judgement: &Judgement, rulings: &[Ruling]) -> ComparisonOutcome {
    let is_any = |ruled| rulings.iter().any(|ruling| ruling.status == ruled);
    if !judgement.losses.is_empty() {
        ComparisonOutcome::Lost
    } else if is_any(LimitStatus::Exceeded) {
        ComparisonOutcome::Exceeded
    } else if is_any(LimitStatus::Undecided)
        || (!rulings.is_empty() && !judgement.unjudged.is_empty())
        || !judgement.missing.is_empty()
    {
        ComparisonOutcome::Undecided
    } else {
        ComparisonOutcome::Good
    }
}

impl FromStr for MetricLimit {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<Self, ParseLimitError> {
        let form = || ParseLimitError::Form(text.to_owned());
        let (name, above, number) = split_bound(text).ok_or_else(form)?;
        let percent = number.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        // A ratio is above zero, so -100 % is never exceeded.
        let percent = percent.filter(|percent| percent.is_finite() && *percent > -100.0).ok_or_else(form)?;
        Ok(Self { text: text.trim().to_owned(), metric: metric_of(name)?, above, ratio: 1.0 + percent / 100.0 })
    }
}

impl fmt::Display for MetricLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl MetricLimit {
    /// Checks the limit against every setting: returns a ruling for each setting that exceeded it or cannot be judged,
    /// or a single ruling if all settings kept it.
    pub fn judge(&self, judgement: &Judgement) -> Result<Vec<Ruling>, UnmeasuredMetric> {
        let changes: Vec<&MetricChange> =
            judgement.changes.iter().filter(|change| change.metric == self.metric).collect();
        // A side with too few samples for a percentile has not kept a limit on it.
        let alone = judgement.one_sided.iter().filter(|(metric, ..)| *metric == self.metric);
        let alone: Vec<Ruling> = alone
            .map(|(_, what, side)| {
                let sentence = format!("limit cannot be judged: {self}: of {what} only {} has it", side.name());
                Ruling { status: LimitStatus::Undecided, sentence }
            })
            .collect();
        if changes.is_empty() && alone.is_empty() {
            return Err(self.unmeasured(judgement));
        }
        let ruled = changes.iter().map(|change| (self.status(change), *change));
        let broken: Vec<(LimitStatus, &MetricChange)> =
            ruled.filter(|(ruled, _)| *ruled != LimitStatus::Kept).collect();
        if broken.is_empty() && alone.is_empty() {
            return Ok(vec![Ruling {
                status: LimitStatus::Kept,
                sentence: self.kept_sentence(&changes, judgement.design),
            }]);
        }
        let rulings = broken
            .into_iter()
            .map(|(ruled, change)| Ruling { status: ruled, sentence: self.broken_sentence(ruled, change) });
        Ok(rulings.chain(alone).collect())
    }

    fn status(&self, change: &MetricChange) -> LimitStatus {
        let Some((ratio, interval)) = change.ratio.zip(change.interval).filter(|_| change.has_enough_samples()) else {
            // A metric that is zero on both sides has not moved.
            let same = change.has_enough_runs && change.ratio.is_none() && change.old == change.new;
            return if same { LimitStatus::Kept } else { LimitStatus::Undecided };
        };
        let is_beyond = |ratio: f64| if self.above { ratio > self.ratio } else { ratio < self.ratio };
        match (is_beyond(interval.low), is_beyond(interval.high)) {
            (true, true) => LimitStatus::Exceeded,
            (false, false) if !is_beyond(ratio) => LimitStatus::Kept,
            _ => LimitStatus::Undecided,
        }
    }

    /// Returns the max movement that is still possible; for files, on the assumption that the drift between them stays
    /// within the noise model's.
    fn kept_sentence(&self, changes: &[&MetricChange], design: Design) -> String {
        let ends = changes.iter().filter_map(|change| change.interval);
        let worst = match self.above {
            true => ends.map(|interval| interval.high).reduce(f64::max),
            false => ends.map(|interval| interval.low).reduce(f64::min),
        };
        let by = match design {
            Design::InTurn => "by calls in turn",
            Design::Apart => "by files measured apart, unless more drifted between them",
        };
        let worst = worst.map_or(String::new(), |worst| format!(", {} at most {by}", movement(worst)));
        format!("limit kept: {self}{worst}")
    }

    fn broken_sentence(&self, ruled: LimitStatus, change: &MetricChange) -> String {
        let [old, new] = [change.old, change.new].map(|value| figure(&change.metric, value));
        let moved = change.ratio.map_or(String::new(), |ratio| format!(", {}", movement(ratio)));
        let between = change
            .interval
            .map_or(String::new(), |interval| format!(" ({} to {})", movement(interval.low), movement(interval.high)));
        let (word, why) = match ruled {
            LimitStatus::Undecided => ("limit cannot be judged", undecided_reason(change)),
            LimitStatus::Exceeded | LimitStatus::Kept => ("limit exceeded", String::new()),
        };
        format!("{word}: {self}: {} went from {old} to {new}{moved}{between}{why}", change.setting)
    }

    fn unmeasured(&self, judgement: &Judgement) -> UnmeasuredMetric {
        let names: BTreeSet<&str> = judgement.changes.iter().map(MetricChange::name).collect();
        let metric = self.text.split(['<', '>']).next().unwrap_or_default().trim().to_owned();
        UnmeasuredMetric { metric, measured: names.into_iter().collect::<Vec<_>>().join(", ") }
    }
}

/// Returns the reason for which a change does not suffice for a limit.
fn undecided_reason(change: &MetricChange) -> String {
    match (change.ratio, change.interval) {
        (None, _) => "; a sample is not above zero, so there is no ratio to judge".to_owned(),
        (Some(_), _) if !change.has_enough_runs => "; too many of its runs were left out".to_owned(),
        (Some(_), None) => "; one run each, so the noise is unknown".to_owned(),
        (Some(_), Some(interval)) if interval.level < CONFIDENCE => {
            format!("; too few repeats: the interval is one of {:.0} %", interval.level * 100.0)
        }
        (Some(_), Some(_)) => "; the interval lies on both sides of the limit: more repeats may tell".to_owned(),
    }
}

/// Splits a text into the metric's name, whether the bound is an upper bound, and the bound.
pub(super) fn split_bound(text: &str) -> Option<(&str, bool, &str)> {
    let (name, above, bound) = match (text.split_once('>'), text.split_once('<')) {
        (Some((name, bound)), None) => (name, true, bound),
        (None, Some((name, bound))) => (name, false, bound),
        _ => return None,
    };
    Some((name.trim(), above, bound.trim()))
}

/// Returns the metric's name in results.
pub(super) fn metric_of(name: &str) -> Result<String, ParseLimitError> {
    metric_key(name).ok_or_else(|| ParseLimitError::Metric(name.to_owned()))
}

/// Returns the metric's name in results; `None` if no bench measures it. `p99.9` is `p999`.
fn metric_key(name: &str) -> Option<String> {
    let Some((hop, percentile)) = split_metric(name) else {
        let is_listed = FIGURES.iter().any(|(known, _)| *known == name);
        return (name == "throughput_per_s" || is_listed).then(|| name.to_owned());
    };
    let percentile = format!("{}_ns", percentile.trim_end_matches("_ns").replace('.', ""));
    let known = is_hop(hop) && PERCENTILES.iter().any(|one| one.key == percentile);
    known.then(|| format!("{hop}.{percentile}"))
}

/// Splits a name into the hop and its part: `own.decode.p99.9` is `own.decode` and `p99.9`.
fn split_metric(name: &str) -> Option<(&str, &str)> {
    let begin = if name.starts_with(OWN_PREFIX) { OWN_PREFIX.len() } else { 0 };
    let dot = begin + name[begin..].find('.')?;
    Some((&name[..dot], &name[dot + 1..]))
}
