//! Limits: read from a text, and held against a judgement.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::judge::{Change, Judgement, movement};
use super::noise::CONFIDENCE;
use tickpath_report::figure;
use tickpath_result::{FIGURES, HOPS, PERCENTILES};

/// How far a metric may move: `tick_to_order.p99 > +10%`, `throughput_per_s < -5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As it was written.
    text: String,
    /// The metric as a result names it.
    metric: String,
    /// Whether it binds above; below otherwise.
    above: bool,
    /// The ratio that may not be exceeded.
    ratio: f64,
}

/// A text that is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// It has another form.
    #[error("'{0}' is no limit; write 'METRIC > +10%' or 'METRIC < -5%'")]
    Form(String),
    /// No bench measures that.
    #[error(
        "no bench measures '{0}'; a metric is a hop with p50, p75, p90, p99, p999 or p9999 (tick_to_order.p99), \
         throughput_per_s, or a figure of docs/results.md"
    )]
    Metric(String),
}

/// A metric that no compared run has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing measured {metric}; measured are {measured}")]
pub struct NotMeasured {
    /// The metric of the limit.
    pub metric: String,
    /// All that there are.
    pub measured: String,
}

/// What a limit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Whether it was exceeded.
    pub exceeded: bool,
    /// The same in a sentence.
    pub sentence: String,
}

impl FromStr for Limit {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<Self, ParseLimitError> {
        let form = || ParseLimitError::Form(text.to_owned());
        let (name, above, number) = split(text).ok_or_else(form)?;
        let percent = number.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        // A ratio is above zero, so -100 % is never exceeded.
        let percent = percent.filter(|percent| percent.is_finite() && *percent > -100.0).ok_or_else(form)?;
        Ok(Self { text: text.trim().to_owned(), metric: metric_of(name)?, above, ratio: 1.0 + percent / 100.0 })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Limit {
    /// Holds the limit against every setting: a ruling for each that exceeded it, or one that says that none did. It is
    /// exceeded if the whole interval lies beyond it; where there is no interval the plain ratio decides, and the ruling
    /// says so.
    pub fn judge(&self, judgement: &Judgement) -> Result<Vec<Ruling>, NotMeasured> {
        let changes: Vec<&Change> = judgement.changes.iter().filter(|change| change.metric == self.metric).collect();
        if changes.is_empty() {
            return Err(self.not_measured(judgement));
        }
        let exceeded = changes.iter().filter(|change| self.is_exceeded(change));
        let mut rulings: Vec<Ruling> =
            exceeded.map(|change| Ruling { exceeded: true, sentence: self.sentence(change) }).collect();
        if rulings.is_empty() {
            let caveat = changes.iter().find_map(|change| caveat(change)).unwrap_or_default();
            rulings.push(Ruling { exceeded: false, sentence: format!("limit kept: {self}{caveat}") });
        }
        Ok(rulings)
    }

    fn is_exceeded(&self, change: &Change) -> bool {
        let Some(ratio) = change.ratio else { return false };
        let (low, high) = change.interval.map_or((ratio, ratio), |interval| (interval.low, interval.high));
        if self.above { low > self.ratio } else { high < self.ratio }
    }

    fn sentence(&self, change: &Change) -> String {
        let [old, new] = [change.old, change.new].map(|value| figure(&change.metric, value));
        let moved = change.ratio.map(movement).unwrap_or_default();
        let between = change
            .interval
            .map_or(String::new(), |interval| format!(" ({} to {})", movement(interval.low), movement(interval.high)));
        let caveat = caveat(change).unwrap_or_default();
        format!("limit exceeded: {self}: {} went from {old} to {new}, {moved}{between}{caveat}", change.what)
    }

    fn not_measured(&self, judgement: &Judgement) -> NotMeasured {
        let names: BTreeSet<&str> = judgement.changes.iter().map(Change::name).collect();
        let metric = self.text.split(['<', '>']).next().unwrap_or_default().trim().to_owned();
        NotMeasured { metric, measured: names.into_iter().collect::<Vec<_>>().join(", ") }
    }
}

/// What makes a ruling weaker than it looks; none if it rests on a full interval.
fn caveat(change: &Change) -> Option<String> {
    match (change.ratio, change.interval) {
        (None, _) => Some("; a sample is not above zero, so there is no ratio to judge".to_owned()),
        (Some(_), None) => Some("; one run each: no noise is known, so this is a guess".to_owned()),
        (Some(_), Some(interval)) if interval.level < CONFIDENCE => {
            Some(format!("; too few repeats: the interval is one of {:.0} %", interval.level * 100.0))
        }
        (Some(_), Some(_)) => None,
    }
}

/// A metric's name, whether it is bound above, and the bound.
pub(super) fn split(text: &str) -> Option<(&str, bool, &str)> {
    let (name, above, bound) = match (text.split_once('>'), text.split_once('<')) {
        (Some((name, bound)), None) => (name, true, bound),
        (None, Some((name, bound))) => (name, false, bound),
        _ => return None,
    };
    Some((name.trim(), above, bound.trim()))
}

/// The metric as a result names it.
pub(super) fn metric_of(name: &str) -> Result<String, ParseLimitError> {
    key(name).ok_or_else(|| ParseLimitError::Metric(name.to_owned()))
}

/// The metric as a result names it; none if no bench measures it. `p99.9` is `p999`.
fn key(name: &str) -> Option<String> {
    let listed = |table: &[(&str, &str)], name: &str| table.iter().any(|(known, _)| *known == name);
    let Some((hop, percentile)) = name.split_once('.') else {
        return (name == "throughput_per_s" || listed(FIGURES, name)).then(|| name.to_owned());
    };
    let percentile = format!("{}_ns", percentile.trim_end_matches("_ns").replace('.', ""));
    let known = listed(HOPS, hop) && PERCENTILES.iter().any(|one| one.key == percentile);
    known.then(|| format!("{hop}.{percentile}"))
}
