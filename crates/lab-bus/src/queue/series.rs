//! Rates of each process and the backlog, over the time of the run.

use tickpath_clock::Calibration;

use super::rows::RecordedRows;
use tickpath_lab_result::Series;

/// Interval between two values.
const INTERVAL_NS: u64 = 100_000_000;

/// Returns a value for each tenth of a second from the first push to the last pop: each process's rate within that
/// step, and the messages in the queues at its end.
pub(super) fn series(rows: &RecordedRows, calibration: &Calibration) -> Vec<Series> {
    let Some((first, last_push)) = rows.push_interval() else { return Vec::new() };
    let end = rows.last_pop().map_or(last_push, |pop| pop.max(last_push));
    let Some(steps) = TimeSteps::new(first, end, calibration) else { return Vec::new() };
    let pushed = steps.counts(rows.push_counts());
    let pulled: Vec<Vec<u64>> = rows.pullers.iter().map(|puller| steps.counts(puller.pull_counts())).collect();
    let mut series = vec![steps.series("pusher_rate_per_s".to_owned(), steps.rates(&pushed))];
    for (number, pulled) in (1..).zip(&pulled) {
        series.push(steps.series(format!("puller{number}_rate_per_s"), steps.rates(pulled)));
    }
    series.push(steps.series("backlog".to_owned(), backlog(&pushed, &pulled)));
    series
}

/// The run cut into steps. The last step takes the rest, so that it lasts between half a step and one and a half,
/// unless the whole run is shorter.
struct TimeSteps<'a> {
    calibration: &'a Calibration,
    /// In ticks.
    first: u64,
    /// The end of each step, from `first`.
    ends_ns: Vec<u64>,
}

impl<'a> TimeSteps<'a> {
    /// Returns `None` if the run took no time.
    fn new(first: u64, end: u64, calibration: &'a Calibration) -> Option<Self> {
        let elapsed_ns = u64::try_from(calibration.ns_between(first, end)).ok().filter(|ns| *ns > 0)?;
        let count = ((elapsed_ns + INTERVAL_NS / 2) / INTERVAL_NS).max(1);
        let mut ends_ns: Vec<u64> = (1..=count).map(|step| step * INTERVAL_NS).collect();
        ends_ns[count as usize - 1] = elapsed_ns;
        Some(Self { calibration, first, ends_ns })
    }

    /// Counts the messages of each step.
    fn counts(&self, messages: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        let mut counts = vec![0; self.ends_ns.len()];
        let last = counts.len() - 1;
        for (moment, count) in messages {
            let step = self.calibration.ns_between(self.first, moment).max(0) as u64 / INTERVAL_NS;
            counts[(step as usize).min(last)] += count;
        }
        counts
    }

    fn rates(&self, counts: &[u64]) -> Vec<f64> {
        let begins = std::iter::once(&0).chain(&self.ends_ns);
        let lengths = begins.zip(&self.ends_ns).map(|(begin, end)| end - begin);
        counts.iter().zip(lengths).map(|(count, ns)| *count as f64 * 1e9 / ns as f64).collect()
    }

    fn series(&self, name: String, value: Vec<f64>) -> Series {
        Series { name, t_ns: self.ends_ns.clone(), value }
    }
}

/// Returns the messages pushed and not yet pulled, at the end of each step.
fn backlog(pushed: &[u64], pulled: &[Vec<u64>]) -> Vec<f64> {
    let (mut pushes, mut pulls) = (0u64, 0u64);
    let step = |(index, count): (usize, &u64)| {
        pushes += count;
        pulls += pulled.iter().map(|puller| puller[index]).sum::<u64>();
        pushes.saturating_sub(pulls) as f64
    };
    pushed.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::rows::PullerRows;

    /// Builds `count` messages pushed a millisecond apart, each pulled `after_ns` later; a tick is a nanosecond.
    fn rows(count: u64, after_ns: u64) -> RecordedRows {
        let pushes: Vec<[u64; 2]> = (0..count).map(|n| [n * 1_000_000, n * 1_000_000 + 500]).collect();
        let pulls = pushes.iter().map(|push| [push[1], push[1] + after_ns, 1]).collect();
        let numbers = (0..count).map(|number| [number]).collect();
        RecordedRows { pushes, pullers: vec![PullerRows { pulls, numbers }], batch: 1, sent: count }
    }

    /// Checks that each message is counted in exactly one step for runs of any length, and that no backlog remains.
    #[test]
    fn series_hold_every_message() {
        for (count, after_ns) in [(1, 1), (10, 100), (149, 1), (151, 1), (1_000, 1), (1_000, 450_000_000)] {
            let series = series(&rows(count, after_ns), &Calibration::nanoseconds());
            let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
            assert_eq!(names, ["pusher_rate_per_s", "puller1_rate_per_s", "backlog"]);
            for rates in &series[..2] {
                let begins = std::iter::once(&0).chain(&rates.t_ns);
                let lengths = begins.zip(&rates.t_ns).map(|(begin, end)| (end - begin) as f64 / 1e9);
                let messages: f64 = rates.value.iter().zip(lengths).map(|(rate, seconds)| rate * seconds).sum();
                assert_eq!(messages.round() as u64, count, "{} of {count} messages", rates.name);
            }
            assert_eq!(series[2].value.last(), Some(&0.0), "{count} messages, {after_ns} ns");
        }
    }
}
