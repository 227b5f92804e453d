//! Phases of our own publisher and subscriber with redis-py: cold, first after a pause, steady.
//!
//! A run is valid only if the publisher kept its rate and was punctual, and no message was lost.

use super::account::{fill_connect, fill_stages, fill_waiting, set_figure};
use super::bench::ExplainBench;
use super::pair::{BatchPlan, BatchResult, Flavour, MESSAGE_BYTES, MessagePath, PairConfig, ProcessPair, ReceiveMode};
use super::records::{ProcessTrace, match_messages};
use super::scripts;
use super::server::{ExplainedServer, PUBLISH};
use super::settings::{ExplainedClient, Settings};
use super::stages::{PathFacts, PollTiming, breakdown};
use tickpath_lab_harness::{LabError, StabilityCheck};
use tickpath_lab_result::{ResultFile, Run, RunPhase, Software, median};
use tickpath_lab_tools::scripts::Library;

/// Nanoseconds between messages of a steady run: 1,000 per second.
pub(super) const INTERVAL_NS: u64 = 1_000_000;

/// Pauses before a message, and the share of the total time that each may take.
const PAUSES_NS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
const PAUSE_SHARE: f64 = 0.04;

/// Bounds for the number of messages after a pause: a median needs the minimum, and more than the maximum adds little.
const MIN_AFTER_PAUSE: u64 = 20;
const MAX_AFTER_PAUSE: u64 = 200;

/// Max share of the total time for a pause's min number of messages; a longer pause is left out.
const MAX_PAUSE_SHARE: f64 = 0.35;

/// Returns the number of runs of all phases, and their approximate duration in seconds.
pub(super) fn estimate(settings: &Settings) -> (usize, f64) {
    /// Seconds per run beside its messages, including bare sockets before it.
    const SETUP_S: f64 = 1.5;
    let (pauses, _) = pauses(settings.seconds);
    let steady = BatchPlan { count: settings.count, every_ns: INTERVAL_NS, pause_ns: 0 };
    let seconds: f64 = pauses.iter().chain([&steady]).map(|order| order.seconds() + SETUP_S).sum();
    (pauses.len() + 2, scripts::estimate(scripts::PUBLISHED_RUNS) + seconds)
}

pub(super) fn run(
    bench: &mut ExplainBench<'_>,
    client: ExplainedClient,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    let flavour = if client == ExplainedClient::RedisPyAsyncio { Flavour::Asyncio } else { Flavour::Blocking };
    scripts::explain_cold(bench, flavour, result)?;
    let config = PairConfig {
        url: bench.target.as_ref().map(ExplainedServer::python_url).unwrap_or_default(),
        library: Library::RedisPy,
        flavour,
        path: MessagePath::Channel,
        receive: ReceiveMode::Listen,
        size: MESSAGE_BYTES,
        hiredis: false,
        cpus: None,
    };
    let mut pair = ProcessPair::open(bench.lab, bench.python(), &config, &bench.channel("stages"), Some(&bench.hook))?;
    let (pauses, left_out) = pauses(bench.settings.seconds);
    let steady = BatchPlan { count: bench.settings.count, every_ns: INTERVAL_NS, pause_ns: 0 };
    let orders = pauses.into_iter().map(|order| (RunPhase::Idle, order)).chain([(RunPhase::Steady, steady)]);
    for (phase, order) in orders {
        let mut run = describe(bench, client, &config, phase, &order);
        bench.lab.step(&format!("explain: {} {}", client.name(), phase.name()), order.seconds() + 0.2)?;
        let between = bench.path_facts(false, order.every_ns.max(order.pause_ns))?;
        let around = StabilityCheck::begin(bench.lab, bench.settings.cpus)?;
        let done = measure(bench, &mut pair, order, between, &mut run);
        if let Err(error) = &done {
            run.refuse(error.to_string());
        } else if phase == RunPhase::Steady {
            run.notes.extend(left_out.clone());
        }
        let ended = around.end(bench.lab, std::slice::from_mut(&mut run));
        result.runs.push(run);
        done.and(ended)?;
    }
    Ok(())
}

/// Returns the pauses that fit into the time, and a note about those that do not.
pub(super) fn pauses(seconds: f64) -> (Vec<BatchPlan>, Option<String>) {
    let least_s = |pause: u64| MIN_AFTER_PAUSE as f64 * pause as f64 / 1e9;
    let (fitting, too_long): (Vec<u64>, Vec<u64>) =
        PAUSES_NS.into_iter().partition(|pause| least_s(*pause) <= seconds * MAX_PAUSE_SHARE);
    let order = |pause_ns: u64| {
        let possible = (seconds * PAUSE_SHARE * 1e9 / pause_ns as f64) as u64;
        BatchPlan { count: possible.clamp(MIN_AFTER_PAUSE, MAX_AFTER_PAUSE), every_ns: 0, pause_ns }
    };
    let left_out = too_long.iter().copied().max().map(|longest| {
        format!(
            "pauses of {} ms and more do not fit into {seconds:.0} s; give --seconds {:.0} for all of them",
            too_long.iter().min().map_or(0, |pause| pause / 1_000_000),
            (least_s(longest) / MAX_PAUSE_SHARE).ceil()
        )
    });
    (fitting.into_iter().map(order).collect(), left_out)
}

/// Returns the run with everything known before anything is sent.
fn describe(
    bench: &ExplainBench<'_>,
    client: ExplainedClient,
    config: &PairConfig,
    phase: RunPhase,
    order: &BatchPlan,
) -> Run {
    let python = bench.python();
    let software = Software {
        client: Some("redis-py".to_owned()),
        client_version: python.version_of("redis").map(|version| format!("{version} without hiredis")),
        runtime: Some(python.runtime.clone()),
        ..Software::default()
    };
    let mut run = bench.describe(Run { client: client.name().to_owned(), phase, software, ..Run::default() });
    run.params.set("receive", config.receive.name());
    run.params.set("size_bytes", config.size as u64);
    run.params.set("count", order.count);
    match order.pause_ns {
        0 => run.params.set("rate_per_s", 1e9 / order.every_ns as f64),
        pause => {
            run.params.set("idle_ns", pause);
            run.notes.push("a closed loop: a message is sent when the pause after the one before is over".to_owned());
        }
    }
    run
}

fn measure(
    bench: &mut ExplainBench<'_>,
    pair: &mut ProcessPair,
    order: BatchPlan,
    between: PathFacts,
    run: &mut Run,
) -> Result<(), LabError> {
    let began = bench.target.as_mut().and_then(|target| target.command_stats(PUBLISH));
    let batch = pair.run(order)?;
    let ended = bench.target.as_mut().and_then(|target| target.command_stats(PUBLISH));
    let server_ns = began.zip(ended).and_then(|(began, ended)| ended.since(began));
    let between = PathFacts { server_ns, ..between };
    run.counts = batch.counts();
    run.hops.insert("one_way".to_owned(), batch.one_way());
    run.hops.insert("service".to_owned(), batch.service());
    run.hops.insert("publish".to_owned(), batch.publish());
    if let Some([publisher, subscriber]) = &batch.traces {
        fill(run, publisher, subscriber, &batch, between);
    }
    judge(run, &batch, &order);
    Ok(())
}

fn fill(run: &mut Run, publisher: &ProcessTrace, subscriber: &ProcessTrace, batch: &BatchResult, between: PathFacts) {
    let matched = match_messages(publisher.sent.iter(), &subscriber.received);
    let between = PathFacts { polls: PollTiming::of(&subscriber.received), ..between };
    fill_stages(run, breakdown(&matched.journeys, &between), &between);
    let received: Vec<_> = matched.journeys.iter().map(|journey| journey.received).collect();
    fill_waiting(run, &received, Some(batch.cpu_percent));
    fill_connect(run, &publisher.sent, Some(subscriber));
}

/// Applies the run's own rules: rate, punctuality, and that all messages arrive.
fn judge(run: &mut Run, batch: &BatchResult, order: &BatchPlan) {
    set_figure(run, "lateness_p50_ns", median(batch.lateness_ns()));
    let wrong = batch.broken_rules(order);
    run.valid &= wrong.is_empty();
    run.notes.extend(wrong);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_fit_into_the_time_there_is() {
        let cases = [(100.0, 4, false), (60.0, 4, false), (50.0, 3, true), (5.0, 2, true), (0.01, 0, true)];
        for (seconds, kept, reported) in cases {
            let (orders, left_out) = pauses(seconds);
            assert_eq!((orders.len(), left_out.is_some()), (kept, reported), "{seconds} s: {left_out:?}");
            assert!(orders.iter().all(|order| order.count >= MIN_AFTER_PAUSE && order.count <= MAX_AFTER_PAUSE));
        }
        let (_, left_out) = pauses(50.0);
        assert!(left_out.unwrap().contains("--seconds 58"));
    }
}
