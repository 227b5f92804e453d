//! Search for the highest rate at which a target keeps a promise.

use tickpath_lab_compare::{Promise, Search};
use tickpath_lab_harness::{Lab, LabError, keep_runs};
use tickpath_lab_report::figure;
use tickpath_lab_result::{ResultFile, Run, short_name};

use super::{Settings, run as steady};

/// The typical number of rates that a search tries.
pub const TYPICAL_RUNS: usize = 9;

/// Max messages of a run, and the min multiple of the messages that the percentile needs.
const MAX_MESSAGES: f64 = 2e6;
const MIN_SAMPLE_MULTIPLE: u64 = 2;

/// Max duration of a run for its percentile, in seconds: the search skips rates that would take longer.
const MAX_RUN_S: f64 = 10.0;

/// Searches for one target's rate and adds the runs to the result. Returns the finding as text.
pub fn search(
    lab: &Lab<'_>,
    promise: &Promise,
    settings: &Settings,
    seconds: f64,
    result: &mut ResultFile,
) -> Result<String, LabError> {
    let needed = promise.samples() * MIN_SAMPLE_MULTIPLE;
    let mut search = Search::new(needed as f64 / MAX_RUN_S);
    let mut seen = RateObservations::default();
    while let Some(rate) = search.next_rate() {
        let count = (rate * seconds).clamp(needed as f64, MAX_MESSAGES.max(needed as f64)) as u64;
        let settings = Settings { rate: Some(rate), count, ..settings.clone() };
        let run = try_rate(lab, promise, &settings);
        if let Ok(run) = &run {
            // Every message arrived within the promise at the requested rate.
            let kept = run.valid && run.counts.lost == 0 && promise.is_kept(run) == Some(true);
            search.record(rate, kept);
            seen.record(promise, run, rate, kept);
        }
        keep_runs(result, run.map(|run| vec![run])).inspect_err(|_| {
            let finding = seen.finding(promise, search.highest_kept(), search.lowest_broken());
            result.findings.push(format!("until it broke off, {} {finding}", short_name(&settings.target)));
        })?;
    }
    Ok(seen.finding(promise, search.highest_kept(), search.lowest_broken()))
}

/// Runs once, and once more if the run broke a rule that is unrelated to the promise.
fn try_rate(lab: &Lab<'_>, promise: &Promise, settings: &Settings) -> Result<Run, LabError> {
    let searched = |mut run: Run| {
        run.params.set("slo", promise.to_string());
        run
    };
    let mut run = steady(lab, settings);
    if let Ok(first) = &run
        && !first.valid
        && promise.is_kept(first) == Some(true)
        && first.counts.lost == 0
    {
        run = steady(lab, settings);
    }
    match run {
        Err(LabError::Aborted { runs, why }) => {
            Err(LabError::Aborted { runs: runs.into_iter().map(searched).collect(), why })
        }
        run => run.map(searched),
    }
}

/// Observations at both ends of the bracket.
#[derive(Default)]
struct RateObservations(Vec<(f64, String)>);

impl RateObservations {
    fn record(&mut self, promise: &Promise, run: &Run, rate: f64, kept: bool) {
        let value = promise.value_text(run).unwrap_or_else(|| "too few messages".to_owned());
        let why = match (kept, promise.is_kept(run)) {
            (false, _) if run.counts.lost > 0 => format!("{} messages lost", run.counts.lost),
            (false, Some(true)) => format!("{value}, and {}", run.notes.join("; ")),
            _ => value,
        };
        self.0.push((rate, why));
    }

    fn observation_at(&self, rate: f64) -> &str {
        let seen = self.0.iter().rev().find(|(tried, _)| *tried == rate);
        seen.map_or("", |(_, why)| why.as_str())
    }

    fn finding(&self, promise: &Promise, kept: Option<f64>, broken: Option<f64>) -> String {
        let name = |rate: f64| figure("_per_s", rate);
        match (kept, broken) {
            (Some(kept), Some(broken)) => format!(
                "keeps {promise} up to {}: {} there, and at {} {}.",
                name(kept),
                self.observation_at(kept),
                name(broken),
                self.observation_at(broken)
            ),
            (Some(kept), None) => {
                format!(
                    "keeps {promise} at every rate tried, up to {}: {} there.",
                    name(kept),
                    self.observation_at(kept)
                )
            }
            (None, Some(broken)) => {
                format!("keeps {promise} at no rate tried: at {} {}.", name(broken), self.observation_at(broken))
            }
            (None, None) => format!("was not tried for {promise}."),
        }
    }
}
