//! Promises of a system: parsed from text, and checked against a run.

use std::fmt;
use std::str::FromStr;

use super::limit::{ParseLimitError, metric_of, split_bound};
use super::ratio::value;
use tickpath_lab_report::figure;
use tickpath_lab_result::{PERCENTILES, Run};

/// Bound that a metric has to keep: `one_way.p99 < 50us`, `throughput_per_s > 10000`.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// The original text.
    text: String,
    /// The metric's name in results.
    metric: String,
    /// Whether the metric has to be above the bound; otherwise below it.
    above: bool,
    /// The bound in the metric's own unit.
    bound: f64,
}

/// The error for a text that is not a promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParsePromiseError {
    /// The text has another form.
    #[error("'{0}' is no promise; write 'one_way.p99 < 50us' with ns, us, ms or s, or 'throughput_per_s > 10000'")]
    Form(String),
    /// No bench measures the metric.
    #[error(transparent)]
    Metric(#[from] ParseLimitError),
}

impl FromStr for Promise {
    type Err = ParsePromiseError;

    fn from_str(text: &str) -> Result<Self, ParsePromiseError> {
        let form = || ParsePromiseError::Form(text.to_owned());
        let (name, above, bound) = split_bound(text).ok_or_else(form)?;
        let metric = metric_of(name)?;
        let bound = if metric.ends_with("_ns") { nanoseconds(bound) } else { bound.parse().ok() };
        let bound = bound.filter(|bound: &f64| bound.is_finite() && *bound > 0.0).ok_or_else(form)?;
        Ok(Self { text: text.trim().to_owned(), metric, above, bound })
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Promise {
    /// Returns the metric of a run; `None` if the run lacks it or has too few samples for it.
    pub fn value(&self, run: &Run) -> Option<f64> {
        value(run, &self.metric)
    }

    /// Returns whether a run keeps the promise; `None` if its metric is unknown.
    pub fn is_kept(&self, run: &Run) -> Option<bool> {
        let value = self.value(run)?;
        Some(if self.above { value > self.bound } else { value < self.bound })
    }

    /// Returns the metric of a run in words.
    pub fn value_text(&self, run: &Run) -> Option<String> {
        self.value(run).map(|value| figure(&self.metric, value))
    }

    /// Returns the number of samples that the metric needs.
    pub fn samples(&self) -> u64 {
        let key = self.metric.rsplit_once('.').map_or("", |(_, key)| key);
        PERCENTILES.iter().find(|percentile| percentile.key == key).map_or(1, |percentile| percentile.samples)
    }

    /// Returns the hop of its percentile; `None` for a figure.
    pub fn hop(&self) -> Option<&str> {
        self.metric.rsplit_once('.').map(|(hop, _)| hop)
    }
}

/// Parses a time with its unit, in nanoseconds.
fn nanoseconds(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, scale) = units.into_iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    Some(number.trim().parse::<f64>().ok()? * scale)
}
