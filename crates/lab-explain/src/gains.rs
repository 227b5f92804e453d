//! Measured gain of each change: base and change take turns, in some rounds of some hundred messages.
//!
//! A change that needs other server settings is tried on a scratch server, and so is its base. The gain is the base's
//! time divided by the change's, in the median round: above one the change is faster, and if its interval contains one,
//! no gain was seen. More changes need more rounds for all intervals to hold together. The import change is tried with
//! messages like the scripts', and has a line without figures if nothing can be measured.

use tickpath_clock::Clock;

use super::bench::ExplainBench;
use super::gain::{FIGURE, GAINS, Gain};
use super::pair::BatchPlan;
use super::server::ExplainedServer;
use super::settings::{ExplainSubject, ExplainedClient, Settings};
use super::testbed::{self, BATCH_SETUP_S, Testbed};
use super::traffic::ScriptTraffic;
use super::trial::{Trial, TrialSide, trial};
use tickpath_bus::url::redact_logins;
use tickpath_lab_compare::{RatioLine, in_turn, pairs_needed, ratio_table};
use tickpath_lab_harness::{LabError, StabilityCheck};
use tickpath_lab_result::{Comparison, MessageCounts, ResultFile, Run, RunPhase, Series};
use tickpath_lab_tools::redis::Persistence;

/// Min number of rounds, and the spare ones, because one may be invalid.
const MIN_ROUNDS: u32 = 5;
const SPARE_ROUNDS: u32 = 1;

/// Messages of a batch and their rate per second.
const MESSAGES: u64 = 200;
const MIN_MESSAGES: u64 = 40;
const RATE: f64 = 500.0;
const MIN_RATE: f64 = 50.0;

/// Note on a change without a valid round.
const NOT_JUDGED: &str = "in no round were both sides measured and valid; let nothing else run, and try again";

/// Share of the total time that gains may take.
const SHARE: f64 = 0.6;

/// Tries all requested changes; notes in the result's first run which cannot be tried here.
pub(super) fn run(bench: &mut ExplainBench<'_>, result: &mut ResultFile) -> Result<(), LabError> {
    if matches!(bench.settings.subject, ExplainSubject::Scripts { .. }) && bench.traffic.is_none() {
        if let Some(run) = result.runs.first_mut().filter(|_| !bench.settings.gains.is_empty()) {
            run.notes.push("no change was tried: the changes are about messages of redis-py".to_owned());
        }
        return Ok(());
    }
    let (mut trials, mut missing) = trials(bench.settings, bench.traffic.as_ref());
    let is_bus = matches!(bench.settings.subject, ExplainSubject::Bus(_));
    if bench.target.is_none() && !is_bus && !trials.is_empty() {
        match ExplainedServer::scratch(bench.lab, Persistence::Rdb, None) {
            Ok(server) => bench.target = Some(server),
            Err(why) => {
                missing.push(format!("no change was tried: {why}"));
                trials.clear();
            }
        }
    }
    // The rate is at most that of the steady run: a faster batch would not be valid. The lower bound keeps the time
    // acceptable.
    let steady = result.runs.iter().filter(|run| run.phase == RunPhase::Steady);
    let rate = steady.filter_map(|run| run.params.number("rate_per_s")).fold(RATE, f64::min).max(MIN_RATE);
    let (rounds, batch) = plan(bench.settings.seconds, trials.len(), rate);
    let as_theirs = batch_of_scripts(bench, trials.len()).unwrap_or(batch);
    let mut testbed = Testbed::new(batch);
    let (mut lines, mut done) = (Vec::new(), Ok(()));
    let mut import = None;
    for trial in trials {
        let is_import = trial.gain == Gain::ImportTickpath;
        testbed.batch = if is_import { as_theirs } else { batch };
        match testbed.prepare(bench, &trial) {
            Ok(()) => done = measure_rounds(&trial, rounds, bench, &mut testbed, result, &mut lines),
            Err(why) if is_import => import = Some(why.to_string()),
            Err(why) => missing.push(format!("not tried: {}: {why}", trial.gain)),
        }
        if is_import && import.is_none() {
            import = Some(NOT_JUDGED.to_owned());
        }
        testbed.close(&trial);
        if done.is_err() {
            break;
        }
    }
    testbed.end(bench.target.as_mut());
    let lines = ratio_table(lines);
    result.comparisons.extend(import.and_then(|why| without_figures(Gain::ImportTickpath, why, &lines)));
    result.comparisons.extend(lines);
    done?;
    if let Some(run) = result.runs.iter_mut().find(|run| !run.stages.is_empty()) {
        run.notes.extend(missing);
    }
    Ok(())
}

/// Returns the number of tried changes, and their approximate duration in seconds.
pub(super) fn estimate(settings: &Settings) -> (usize, f64) {
    let (trials, _) = trials(settings, None);
    let (rounds, batch) = plan(settings.seconds, trials.len(), RATE);
    let sides = trials.iter().flat_map(|trial| [&trial.base, &trial.change]);
    (trials.len(), f64::from(rounds) * sides.map(|side| testbed::seconds(side, &batch)).sum::<f64>())
}

/// Returns the batch for scripts with a known rate.
fn batch_of_scripts(bench: &ExplainBench<'_>, trials: usize) -> Option<BatchPlan> {
    let traffic = bench.traffic.as_ref()?;
    let (_, batch) = plan(bench.settings.seconds, trials, traffic.rate()?);
    Some(traffic.batch_plan(batch, MIN_MESSAGES))
}

/// Returns a line with the reason for a requested change that has no figures.
fn without_figures(gain: Gain, why: String, lines: &[Comparison]) -> Option<Comparison> {
    let name = format!("gain_{gain}");
    let has_one = lines.iter().any(|line| line.name == name);
    let line = Comparison { name, figure: FIGURE.to_owned(), note: Some(why), ..Comparison::default() };
    (!has_one).then_some(line)
}

/// Returns the possible trials of the requested changes, and the reasons against the others.
fn trials(settings: &Settings, traffic: Option<&ScriptTraffic>) -> (Vec<Trial>, Vec<String>) {
    let (mut trials, mut missing) = (Vec::new(), Vec::new());
    // Without a named server a scratch server is used.
    let is_scratch = settings.url.is_none();
    for &gain in &settings.gains {
        match trial(gain, &settings.subject, is_scratch, traffic) {
            Ok(trial) => trials.push(trial),
            Err(Some(why)) => missing.push(format!("not tried: {gain}: {why}")),
            // A request for all changes means those that apply.
            Err(None) if settings.gains.len() == GAINS.len() => {}
            Err(None) => missing.push(format!("not tried: {gain}: to this client it is no change")),
        }
    }
    (trials, missing)
}

/// Returns the number of rounds, as many as all trials together need if the time permits, and the batch.
fn plan(seconds: f64, trials: usize, rate: f64) -> (u32, BatchPlan) {
    let round_of = |messages: f64| 2.0 * trials.max(1) as f64 * (BATCH_SETUP_S + messages / rate);
    let needed = pairs_needed(trials) + SPARE_ROUNDS;
    let possible = (seconds * SHARE / round_of(MIN_MESSAGES as f64)) as u32;
    let rounds = possible.clamp(MIN_ROUNDS, needed);
    let batches = 2.0 * trials.max(1) as f64 * f64::from(rounds);
    let messages = (seconds * SHARE / batches - BATCH_SETUP_S) * rate;
    let count = (messages.max(0.0) as u64).clamp(MIN_MESSAGES, MESSAGES);
    (rounds, BatchPlan { count, every_ns: (1e9 / rate) as u64, pause_ns: 0 })
}

/// Measures base and change in turns; the result gets what was measured, even after a failure.
fn measure_rounds(
    trial: &Trial,
    rounds: u32,
    bench: &mut ExplainBench<'_>,
    testbed: &mut Testbed,
    result: &mut ResultFile,
    lines: &mut Vec<RatioLine>,
) -> Result<(), LabError> {
    let around = StabilityCheck::begin(bench.lab, bench.settings.cpus)?;
    let mut run = describe(trial, bench, testbed);
    let (mut pairs, mut done) = (Vec::new(), Ok(()));
    let clock = bench.lab.clock;
    let start = clock.ticks();
    let empty = |name: &str| Series { name: name.to_owned(), ..Series::default() };
    run.series = ["base_one_way_p50_ns", "change_one_way_p50_ns"].map(empty).into();
    for round in 1..=rounds {
        let what = format!("explain: {} ({round}/{rounds})", trial.gain);
        bench.lab.step(&what, 2.0 * (testbed.batch.seconds() + BATCH_SETUP_S))?;
        let pair = match measure_round(round, trial, bench, testbed, &mut run.counts) {
            Ok(pair) => pair,
            Err(error) => {
                run.refuse(error.to_string());
                done = Err(error);
                break;
            }
        };
        pairs.push(pair);
        let elapsed_ns = clock.ns_between(start, clock.ticks()).max(0) as u64;
        // Invalid batches are in no series.
        for (series, ns) in run.series.iter_mut().zip(pair) {
            series.t_ns.extend(ns.map(|_| elapsed_ns));
            series.value.extend(ns);
        }
    }
    if done.is_ok() && pairs.iter().all(|pair| pair.contains(&None)) {
        run.notes.push(format!("not judged: {}: {NOT_JUDGED}", trial.gain));
    }
    let was_valid = run.valid;
    let ended = around.end(bench.lab, std::slice::from_mut(&mut run));
    if was_valid && !run.valid {
        // A wrong clock is wrong in all rounds.
        pairs.clear();
    }
    result.runs.push(run);
    lines.push(RatioLine::new(&format!("gain_{}", trial.gain), FIGURE, pairs));
    done.and(ended)
}

/// Measures both sides once, in this round's order: returns the base's median, then the change's.
fn measure_round(
    round: u32,
    trial: &Trial,
    bench: &mut ExplainBench<'_>,
    testbed: &mut Testbed,
    counts: &mut MessageCounts,
) -> Result<[Option<f64>; 2], LabError> {
    let mut pair = [None; 2];
    for (index, side) in in_turn(round, [&trial.base, &trial.change].into_iter().enumerate()) {
        pair[index] = testbed.measure(bench, side, counts)?;
    }
    Ok(pair)
}

fn describe(trial: &Trial, bench: &ExplainBench<'_>, testbed: &Testbed) -> Run {
    let (client, target) = match &bench.settings.subject {
        ExplainSubject::Client(ExplainedClient::Rust) => ("rust", String::new()),
        ExplainSubject::Bus(url) => ("rust", redact_logins(url)),
        _ => ("redis-py", String::new()),
    };
    let mut run = bench.describe(Run { client: client.to_owned(), target, phase: RunPhase::Steady, ..Run::default() });
    // The server's notes belong to the runs that are about it.
    run.notes.clear();
    run.params.set("gain", trial.gain.name());
    run.params.set("base", trial.base.text());
    run.params.set("change", trial.change.text());
    run.params.set("rate_per_s", testbed.batch.rate());
    run.params.set("count", testbed.batch.count);
    if let (Gain::ImportTickpath, TrialSide::Pair(setup)) = (trial.gain, &trial.base) {
        testbed.note_both(setup, &mut run);
        run.notes.extend(bench.traffic.as_ref().map(|traffic| traffic.text(&testbed.batch)));
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fit_into_the_time_and_never_have_too_few_messages() {
        for (seconds, trials, rounds, min, max) in [
            (1_000.0, 14, 11, MESSAGES, MESSAGES),
            (12.0, 0, 7, MESSAGES, MESSAGES),
            (100.0, 14, 11, 45, 50),
            (60.0, 14, 7, 40, 50),
            (1.0, 14, MIN_ROUNDS, MIN_MESSAGES, MIN_MESSAGES),
        ] {
            let (found, order) = plan(seconds, trials, RATE);
            assert_eq!(found, rounds, "{trials} in {seconds} s");
            assert!((min..=max).contains(&order.count), "{} for {trials} in {seconds} s", order.count);
        }
    }

    #[test]
    fn a_change_without_figures_has_a_line_with_the_reason() {
        let measured = Comparison::new("gain_hiredis", FIGURE, 120e3, 100e3, None);
        let line = |lines: &[Comparison]| without_figures(Gain::ImportTickpath, "no package".to_owned(), lines);
        let found = line(std::slice::from_ref(&measured)).unwrap();
        assert_eq!((found.name.as_str(), found.note.as_deref()), ("gain_import_tickpath", Some("no package")));
        assert_eq!([found.a, found.b, found.ratio, found.low, found.high], [None; 5]);
        assert_eq!(line(&[measured, Comparison { note: None, ..found }]), None);
    }
}
