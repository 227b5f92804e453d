//! What each change would gain: what there is and the change take turns, some rounds of some hundred messages.
//!
//! A change that needs other settings of the server is tried on a scratch server, and so is what it is compared with.
//! The gain is the median time of what there is divided by that of the change, between the least and the largest of a
//! round: above one the change is faster, and where the interval holds one, no gain was seen.

use tickpath_clock::Clock;

use super::field::Field;
use super::gain::GAINS;
use super::pair::Order;
use super::trial::{Trial, trial};
use super::{Bench, Client, Subject, scratch};
use tickpath_harness::LabError;
use tickpath_result::without_login;
use tickpath_result::{Comparison, Counts, Phase, ResultFile, Run, Series};
use tickpath_scratch::redis::Persistence;

/// What the gains compare.
pub(super) const FIGURE: &str = "one_way.p50_ns";

/// Rounds; messages of a batch, and how many a second.
const ROUNDS: u32 = 5;
const MESSAGES: u64 = 200;
const LEAST_MESSAGES: u64 = 40;
const RATE: f64 = 500.0;
const LEAST_RATE: f64 = 50.0;

/// The share of all time that gains may take, and what a batch takes beside its messages.
const SHARE: f64 = 0.6;
const AROUND_S: f64 = 0.1;

/// Tries all that were asked for; what cannot be tried here is told in the result's first run.
pub(super) fn run(bench: &mut Bench<'_>, result: &mut ResultFile) -> Result<(), LabError> {
    let wanted = &bench.settings.gains;
    let mut missing = Vec::new();
    let mut trials = Vec::new();
    for &gain in wanted {
        match trial(gain, &bench.settings.subject) {
            Ok(trial) => trials.push(trial),
            Err(Some(why)) => missing.push(format!("not tried: {gain}: {why}")),
            // Who asks for all of them asks for those that there are.
            Err(None) if wanted.len() == GAINS.len() => {}
            Err(None) => missing.push(format!("not tried: {gain}: to this client it is no change")),
        }
    }
    let is_bus = matches!(bench.settings.subject, Subject::Bus(_));
    if bench.target.is_none() && !is_bus && !trials.is_empty() {
        match scratch(bench.lab, Persistence::Rdb, None) {
            Ok(server) => bench.target = Some(server),
            Err(why) => {
                missing.push(format!("no change was tried: {why}"));
                trials.clear();
            }
        }
    }
    // As slow as the steady run had to be: what cannot keep up makes no valid batch. Slower, and nobody would wait for it.
    let steady = result.runs.iter().filter(|run| run.phase == Phase::Steady);
    let rate = steady.filter_map(|run| run.params.0.get("rate_per_s")?.as_f64()).fold(RATE, f64::min).max(LEAST_RATE);
    let batch = batch(bench.settings.seconds, trials.len(), rate);
    let mut field = Field::new(batch);
    for trial in trials {
        match field.prepare(bench, &trial) {
            Ok(()) => take_turns(&trial, bench, &mut field, result)?,
            Err(why) => missing.push(format!("not tried: {}: {why}", trial.gain)),
        }
        field.close(&trial);
    }
    if let Some(run) = result.runs.iter_mut().find(|run| !run.stages.is_empty()) {
        run.notes.extend(missing);
    }
    Ok(())
}

/// Messages of a batch, so that all fit into their share of the time.
fn batch(seconds: f64, trials: usize, rate: f64) -> Order {
    let batches = f64::from(trials.max(1) as u32 * 2 * ROUNDS);
    let possible = (seconds * SHARE / batches - AROUND_S) * rate;
    let count = (possible.max(0.0) as u64).clamp(LEAST_MESSAGES, MESSAGES);
    Order { count, every_ns: (1e9 / rate) as u64, pause_ns: 0 }
}

/// Both sides take turns; what came of it goes into the result, in part too if it failed.
fn take_turns(
    trial: &Trial,
    bench: &mut Bench<'_>,
    field: &mut Field,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    let name = format!("gain_{}", trial.gain);
    let mut run = describe(trial, bench, field);
    let (mut times, mut failed) = (Vec::new(), None);
    let clock = bench.lab.clock;
    let start = clock.ticks();
    let empty = |name: &str| Series { name: name.to_owned(), ..Series::default() };
    let mut series = ["base_one_way_p50_ns", "change_one_way_p50_ns"].map(empty);
    for turn in 1..=ROUNDS {
        let what = format!("explain: {} ({turn}/{ROUNDS})", trial.gain);
        bench.lab.progress.step(&what, 2.0 * (field.batch.seconds() + AROUND_S));
        let (base, change) = match one_turn(trial, bench, field, &mut run.counts) {
            Ok(pair) => pair,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        times.push((base, change));
        let at = clock.ns_between(start, clock.ticks()).max(0) as u64;
        for (series, value) in series.iter_mut().zip([base, change]) {
            // What was not measured is in no series; the comparison leaves it out too.
            if value.is_finite() {
                series.t_ns.push(at);
                series.value.push(value);
            }
        }
    }
    run.series = series.into();
    run.notes.extend(failed.as_ref().map(ToString::to_string));
    run.valid = failed.is_none();
    let comparison = Comparison::of_pairs(&name, FIGURE, &times);
    if comparison.is_none() && failed.is_none() {
        run.notes.push(format!(
            "not judged: {}: in no round were both sides measured and valid; let nothing else run, and try again",
            trial.gain
        ));
    }
    result.runs.push(run);
    result.comparisons.extend(comparison);
    failed.map_or(Ok(()), Err)
}

/// Both once: their medians.
fn one_turn(
    trial: &Trial,
    bench: &mut Bench<'_>,
    field: &mut Field,
    counts: &mut Counts,
) -> Result<(f64, f64), LabError> {
    Ok((field.measure(bench, &trial.base, counts)?, field.measure(bench, &trial.change, counts)?))
}

fn describe(trial: &Trial, bench: &Bench<'_>, field: &Field) -> Run {
    let (client, target) = match &bench.settings.subject {
        Subject::Client(Client::Rust) => ("rust", String::new()),
        Subject::Bus(url) => ("rust", without_login(url)),
        _ => ("redis-py", String::new()),
    };
    let mut run = bench.describe(Run { client: client.to_owned(), target, phase: Phase::Steady, ..Run::default() });
    // The server's notes stand with the runs that are about it.
    run.notes.clear();
    run.params.set("gain", trial.gain.name());
    run.params.set("base", trial.base.text());
    run.params.set("change", trial.change.text());
    run.params.set("rate_per_s", field.batch.rate());
    run.params.set("count", field.batch.count);
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fit_into_the_time_and_never_have_too_few_messages() {
        for (seconds, trials, least, most) in [
            (1_000.0, 14, MESSAGES, MESSAGES),
            (9.0, 0, MESSAGES, MESSAGES),
            (70.0, 14, 95, 105),
            (1.0, 14, LEAST_MESSAGES, LEAST_MESSAGES),
        ] {
            let count = batch(seconds, trials, RATE).count;
            assert!((least..=most).contains(&count), "{count} for {trials} in {seconds} s");
        }
    }
}
