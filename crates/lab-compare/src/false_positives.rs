//! The rate at which identical builds are called different: a check of the noise model on this machine.

use serde::Serialize;

use super::judge::{Judgement, MetricChange};
use super::limit::{LimitStatus, MetricLimit};
use super::noise::LEVEL;

/// The normal quantile of an interval of 95 %.
const Z: f64 = 1.96;

/// Comparisons of a program with itself, and the number that called it different from itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalsePositives {
    /// Always `tickpath.false-positives/1`.
    pub schema: &'static str,
    /// The command line.
    pub command: String,
    /// The start time, in RFC 3339.
    pub started_at: String,
    /// Pairs of calls in each comparison.
    pub pairs: u32,
    /// Comparisons that led to a judgement.
    pub comparisons: u32,
    /// Comparisons without a valid pair.
    pub unjudged: u32,
    /// The rate that the noise model states for the default judgement.
    pub stated_percent: f64,
    /// Tallies of the default judgement, then of each limit.
    pub tallies: Vec<FalseAlarmTally>,
}

/// The number of false alarms of a way to judge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalseAlarmTally {
    /// `any change`, or the limit.
    pub name: String,
    /// Comparisons that it called different.
    pub called_different: u32,
    /// Their share of all comparisons.
    pub rate_percent: f64,
    /// The lower end of the rate's 95 % interval, after Wilson.
    pub low_percent: f64,
    /// The upper end.
    pub high_percent: f64,
    /// The false alarms: the number of the comparison, and each change.
    pub alarms: Vec<String>,
}

impl FalsePositives {
    /// Starts without any comparison; `started_at` is in RFC 3339.
    pub fn new(command: &str, started_at: &str, pairs: u32, limits: &[MetricLimit]) -> Self {
        let names = std::iter::once("any change".to_owned()).chain(limits.iter().map(MetricLimit::to_string));
        Self {
            schema: "tickpath.false-positives/1",
            command: command.to_owned(),
            started_at: started_at.to_owned(),
            pairs,
            comparisons: 0,
            unjudged: 0,
            stated_percent: LEVEL * 100.0,
            tallies: names.map(FalseAlarmTally::new).collect(),
        }
    }

    /// Counts a comparison. `limits` are the limits of [`FalsePositives::new`], in the same order.
    pub fn add(&mut self, judgement: &Judgement, limits: &[MetricLimit]) {
        self.comparisons += 1;
        let changes: Vec<String> =
            judgement.changes.iter().filter(|change| change.is_real()).map(change_text).collect();
        let rulings = limits.iter().map(|limit| {
            let rulings = limit.judge(judgement).unwrap_or_default();
            rulings
                .into_iter()
                .filter(|ruling| ruling.status == LimitStatus::Exceeded)
                .map(|ruling| ruling.sentence)
                .collect::<Vec<String>>()
        });
        for (tally, alarms) in self.tallies.iter_mut().zip(std::iter::once(changes).chain(rulings)) {
            tally.count(self.comparisons, alarms);
        }
    }

    /// Counts a comparison without a judgement.
    pub fn skip(&mut self) {
        self.unjudged += 1;
    }

    /// Returns the rates as sentences.
    pub fn text(&self) -> String {
        let mut text = format!("a program and itself, {} comparisons of {} pairs\n\n", self.comparisons, self.pairs);
        let width = self.tallies.iter().map(|tally| tally.name.chars().count()).max().unwrap_or(0);
        for tally in &self.tallies {
            let [rate, low, high] = [tally.rate_percent, tally.low_percent, tally.high_percent];
            text += &format!(
                "{:<width$}  called different {} times: {rate:.1} % ({low:.1} % to {high:.1} %)\n",
                tally.name, tally.called_different
            );
        }
        text += &format!("\nStated for any change: at most {:.0} %.\n", self.stated_percent);
        if self.unjudged > 0 {
            text += &format!("{} comparisons had no valid pair, and count nowhere.\n", self.unjudged);
        }
        text
    }
}

impl FalseAlarmTally {
    fn new(name: String) -> Self {
        Self { name, called_different: 0, rate_percent: 0.0, low_percent: 0.0, high_percent: 100.0, alarms: Vec::new() }
    }

    fn count(&mut self, comparisons: u32, alarms: Vec<String>) {
        self.called_different += u32::from(!alarms.is_empty());
        self.alarms.extend(alarms.into_iter().map(|alarm| format!("comparison {comparisons}: {alarm}")));
        let (low, high) = wilson(self.called_different, comparisons);
        self.rate_percent = 100.0 * f64::from(self.called_different) / f64::from(comparisons);
        (self.low_percent, self.high_percent) = (100.0 * low, 100.0 * high);
    }
}

fn change_text(change: &MetricChange) -> String {
    format!("{} {} {}", change.setting, change.name(), change.verdict.name())
}

/// Returns the 95 % interval of the probability behind `hits` of `trials`, after Wilson.
fn wilson(hits: u32, trials: u32) -> (f64, f64) {
    let (n, p) = (f64::from(trials), f64::from(hits) / f64::from(trials));
    let centre = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let all = 1.0 + Z * Z / n;
    (((centre - reach) / all).max(0.0), ((centre + reach) / all).min(1.0))
}
