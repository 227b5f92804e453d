//! From the recorded rows to a run: the two sides of each message joined by its number.

use tickpath_clock::{Calibration, Clock};

use super::processes::QueueReports;
use super::pusher::intended_time;
use super::rows::{PullerRows, RecordedRows};
use super::settings::{QueueClient, Settings};
use super::{series, verdict};
use tickpath_lab_harness::rules::add_lateness;
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::{Actor, MessageCounts, Run, RunPhase};

/// Assembles the run from all rows and reports.
pub(super) fn assemble(lab: &Lab<'_>, settings: &Settings, outcome: &QueueReports) -> Result<Run, LabError> {
    let calibration = &match settings.client {
        QueueClient::Rust => *lab.clock.calibration(),
        // Python's stamps are nanoseconds already.
        QueueClient::RedisPy(_) => Calibration::nanoseconds(),
    };
    let rows = RecordedRows::load(lab, settings, outcome.pushed.sent)?;
    let mut joined = JoinedMessages::of(&rows, settings, outcome.pushed.start, calibration);
    let mut run = Run {
        target: settings.target.clone(),
        client: settings.client.name().to_owned(),
        repeat: settings.repeat,
        phase: RunPhase::Steady,
        valid: true,
        batch: Some((settings.pipeline as u64).into()),
        software: outcome.software.clone(),
        counts: joined.counts(outcome),
        ..Run::default()
    };
    settings.describe(&mut run.params);
    let pushes = Samples(rows.pushes.iter().map(|&[called, returned]| (called, returned)).collect());
    let pulls = rows.pullers.iter().flat_map(|puller| &puller.pulls);
    let pulls = Samples(pulls.map(|&[called, returned, _]| (called, returned)).collect());
    let mut hops = vec![("push", pushes), ("pop", pulls), ("in_queue", std::mem::take(&mut joined.in_queue))];
    if settings.rate.is_some() {
        hops.push(("one_way", std::mem::take(&mut joined.one_way)));
    }
    run.hops = hops.iter().map(|(name, samples)| ((*name).to_owned(), samples.unwatched_hop(calibration))).collect();
    let early = run.hops.get("in_queue").map_or(0, |hop| hop.negative);
    if 100 * early > run.counts.received {
        run.notes.push(format!(
            "{early} messages were popped before the call that pushed them returned: in_queue is of the others"
        ));
    }
    add_figures(&mut run, &rows, calibration);
    if outcome.pushed.full > 0 {
        run.figures.insert("full_pushes".to_owned(), outcome.pushed.full as f64);
    }
    if let Some(rate) = settings.rate {
        add_push_lateness(&mut run, &rows, outcome.pushed.start, rate, calibration);
    }
    run.actors = actors(&rows, calibration);
    run.series = series::series(&rows, calibration);
    verdict::judge(&mut run, settings, outcome, rows.last_call(), calibration);
    Ok(run)
}

/// The messages, each with its push and its pull.
struct JoinedMessages {
    in_queue: Samples,
    one_way: Samples,
    /// Distinct messages that arrived.
    distinct: u64,
    duplicated: u64,
    reordered: u64,
    /// Messages that are not from this run.
    foreign: u64,
}

impl JoinedMessages {
    fn of(rows: &RecordedRows, settings: &Settings, start: u64, calibration: &Calibration) -> Self {
        let room = rows.sent as usize;
        let mut joined = Self {
            in_queue: Samples::with_capacity(room),
            one_way: Samples::default(),
            distinct: 0,
            duplicated: 0,
            reordered: 0,
            foreign: 0,
        };
        let mut seen = vec![false; settings.count as usize];
        for puller in &rows.pullers {
            let mut numbers = puller.numbers.iter();
            // One more than the highest number so far.
            let mut next = 0;
            for &[_, returned, messages] in &puller.pulls {
                for &[number] in numbers.by_ref().take(messages as usize) {
                    if !joined.is_first_delivery(number, &mut seen) {
                        continue;
                    }
                    joined.reordered += u64::from(number < next);
                    next = next.max(number + 1);
                    if let Some(push) = rows.pushes.get((number / rows.batch) as usize) {
                        joined.in_queue.push(push[1], returned);
                    }
                    if let Some(rate) = settings.rate {
                        joined.one_way.push(intended_time(calibration, start, number, rate), returned);
                    }
                }
            }
        }
        joined
    }

    #[inline]
    fn is_first_delivery(&mut self, number: u64, seen: &mut [bool]) -> bool {
        match seen.get_mut(number as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                self.distinct += 1;
                true
            }
            Some(_) => {
                self.duplicated += 1;
                false
            }
            None => {
                self.foreign += 1;
                false
            }
        }
    }

    fn counts(&self, outcome: &QueueReports) -> MessageCounts {
        MessageCounts {
            sent: outcome.pushed.sent,
            received: self.distinct + self.duplicated,
            lost: outcome.pushed.sent.saturating_sub(self.distinct + outcome.remaining),
            duplicated: self.duplicated,
            reordered: self.reordered,
            left: outcome.remaining,
            errors: self.foreign,
        }
    }
}

/// Adds the rates, the pullers' share at the last push, and the drain time after it.
fn add_figures(run: &mut Run, rows: &RecordedRows, calibration: &Calibration) {
    let Some((first, last_push)) = rows.push_interval() else { return };
    let mut figures = vec![("push_rate_per_s", rate_per_s(rows.sent, first, last_push, calibration))];
    if rows.sent > 0 {
        let pulled = rows.pulled_until(last_push).min(rows.sent);
        figures.push(("kept_up_percent", Some(100.0 * pulled as f64 / rows.sent as f64)));
    }
    if let Some(last_pop) = rows.last_pop() {
        run.throughput_per_s = rate_per_s(run.counts.received, first, last_pop, calibration);
        run.elapsed_ns = Some(calibration.ns_between(first, last_pop).max(0) as u64);
        figures.push(("pull_rate_per_s", run.throughput_per_s));
        // A pull may return before the push of its message.
        figures.push(("drain_ns", Some(calibration.ns_between(last_push, last_pop).max(0) as f64)));
    }
    run.figures.extend(figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

/// Reports the lateness of the pushes against the intended time of their last message.
fn add_push_lateness(run: &mut Run, rows: &RecordedRows, start: u64, rate: f64, calibration: &Calibration) {
    let due =
        |index: u64| intended_time(calibration, start, ((index + 1) * rows.batch).min(rows.sent).max(1) - 1, rate);
    let late = Samples((0..).zip(&rows.pushes).map(|(index, push)| (due(index), push[0])).collect());
    add_lateness(run, &late.unwatched_hop(calibration));
}

/// Returns each process's rate, from its own first message to its last.
fn actors(rows: &RecordedRows, calibration: &Calibration) -> Vec<Actor> {
    let Some((first, last)) = rows.push_interval() else { return Vec::new() };
    let actor = |role: &str, number: usize, count: u64, rate_per_s: Option<f64>| Actor {
        name: number.to_string(),
        role: role.to_owned(),
        count,
        rate_per_s,
    };
    let pusher = actor("pusher", 1, rows.sent, rate_per_s(rows.sent, first, last, calibration));
    let puller = |(number, puller): (usize, &PullerRows)| {
        let count = puller.numbers.len() as u64;
        let ends = puller.pulls.first().zip(puller.pulls.last());
        // A call that waited for the first push began before it.
        let rate = ends.and_then(|(from, to)| rate_per_s(count, from[0].max(first), to[1], calibration));
        actor("puller", number, count, rate)
    };
    std::iter::once(pusher).chain((1..).zip(&rows.pullers).map(puller)).collect()
}

/// Returns the rate, or `None` over no time at all.
fn rate_per_s(count: u64, from: u64, to: u64, calibration: &Calibration) -> Option<f64> {
    let ns = calibration.ns_between(from, to);
    (ns > 0).then(|| count as f64 * 1e9 / ns as f64)
}
