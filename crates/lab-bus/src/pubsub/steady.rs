//! A steady stream of messages, or, at a low rate, the first message after an idle period.

use std::path::Path;

use tickpath_bus::Policy;
use tickpath_clock::{Calibration, Clock, GapCause, SchedulingGap, Wait};

use super::role::{PublisherResult, SubscriberResult, topic_name};
use super::settings::{Settings, check, policy, roles, run_of_settings};
use tickpath_bus::url::redact_logins;
use tickpath_lab_harness::attribution::{
    attribute_common_stops, clip_gaps, drop_attribution, note_stalls, stalled_ns, void_attribution,
};
use tickpath_lab_harness::rules::{
    add_lateness, add_receiver_cpu, note_reconnects, refuse_loss, refuse_reordered, refuse_starved,
};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::targets::{TopicGuard, is_log};
use tickpath_lab_harness::{Lab, LabError, StabilityCheck, host};
use tickpath_lab_result::Run;

/// Topics and processes of a run, right before its first message.
#[derive(Debug)]
pub struct PubsubProcesses<'a> {
    /// The topic that is published.
    pub published: &'a str,
    /// The topic that is received: the same topic, unless a bridge is to stand between.
    pub received: &'a str,
    /// The publisher's process id.
    pub publisher: u32,
    /// The subscriber's process id.
    pub subscriber: u32,
}

/// Runs once, with the floor of the same run.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    run_with(lab, settings, false, |_| Ok(()))
}

/// Runs like [`run`], but calls `begin` when all is ready and sends the first message when it returns. With `between`
/// the subscriber receives another topic than the published one, and `begin` has to start the bridge that carries the
/// messages.
pub fn run_with(
    lab: &Lab<'_>,
    settings: &Settings,
    between: bool,
    begin: impl FnOnce(&PubsubProcesses<'_>) -> Result<(), LabError>,
) -> Result<Run, LabError> {
    check(settings, None)?;
    let seconds = settings.rate.map_or(2.0, |rate| settings.count as f64 / rate);
    let what = format!("pubsub {} {} B", redact_logins(&settings.target), settings.size);
    lab.step(&what, seconds + 1.0)?;
    let settings = &Settings { policy: Some(policy(settings)?), ..settings.clone() };
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    // Floor of the log only: a broker's path is a thousand times longer.
    let transfer = around.transfer_ns().filter(|_| is_log(&settings.target)).unwrap_or(0.0);
    let idle = host::idle_gaps(&lab.clock, settings.cpus[1])?;
    let topic = topic_name(lab, &settings.target);
    let received_topic = if between { format!("{topic}.heard") } else { topic.clone() };
    let _removed = [&topic, &received_topic].map(|topic| TopicGuard { target: &settings.target, topic });
    let (publisher, subscriber) = roles(lab, settings, &topic, &received_topic);
    // The publisher makes the topic before it sends, so that a `fail` topic has its reader before the first message.
    let (mut publisher, mut subscriber) = match &settings.foreign {
        Some(client) => (client.publisher(lab, &publisher)?, client.subscriber(lab, &subscriber)?),
        None => (lab.spawn(&publisher)?, lab.spawn(&subscriber)?),
    };
    begin(&PubsubProcesses {
        published: &topic,
        received: &received_topic,
        publisher: publisher.id(),
        subscriber: subscriber.id(),
    })?;
    publisher.send("go")?;
    // The slowest reasonable speed of a message of this size.
    let message = if is_log(&settings.target) { 1e-5 } else { 1e-2 };
    let slowest = settings.count as f64 * (message + settings.size as f64 * 1e-8);
    let published: PublisherResult = publisher.result(seconds * 3.0 + slowest)?;
    // The subscriber may have received everything already and exited.
    let _ = subscriber.send("ended");
    let received: SubscriberResult = subscriber.result(10.0)?;
    let mut run = assemble(lab, settings, transfer, &idle, &published, &received)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    match published.broke_off {
        None => Ok(run),
        Some(why) => {
            let sent = run.counts.sent;
            Err(LabError::aborted(vec![run], sent, settings.count, "messages", why))
        }
    }
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    transfer: f64,
    idle: &[SchedulingGap],
    published: &PublisherResult,
    received: &SubscriberResult,
) -> Result<Run, LabError> {
    // Clients in other languages stamp in nanoseconds.
    let calibration = &settings.foreign.as_ref().map_or(*lab.clock.calibration(), |_| Calibration::nanoseconds());
    let elapsed = calibration.ns_between(published.first, received.last).max(0) as u64;
    let mut run = Run {
        batch: Some((settings.batch as u64).into()),
        counts: received.counts(published.sent, settings.readers as u64),
        elapsed_ns: Some(elapsed),
        throughput_per_s: (elapsed > 0).then(|| received.received as f64 * 1e9 / elapsed as f64),
        ..run_of_settings(lab, settings)
    };
    if transfer > 0.0 {
        run.figures.insert("cache_line_transfer_ns".to_owned(), transfer);
    }
    publish_hop(&mut run, &lab.folder().join("publisher"), calibration)?;
    if settings.rate.is_some() {
        // Processes of clients in other languages do not watch for gaps.
        let found = |name: &str| match settings.foreign {
            Some(_) => Ok(Vec::new()),
            None => load_gaps(&lab.folder().join(name)).map(|gaps| clip_gaps(&gaps, published.first, received.last)),
        };
        let (of_subscriber, of_publisher) = (found("subscriber.gaps")?, found("publisher.gaps")?);
        let gaps = attribute_common_stops(&of_subscriber, &[&of_publisher]);
        latency_hops(&mut run, &lab.folder().join("subscriber"), calibration, &gaps, transfer)?;
        if published.sent >= 1_000 {
            run.figures.insert("lateness_own_p99_ns".to_owned(), f64::from(published.own_p99_ns));
        }
        let took_ns = calibration.ns_between(published.first, published.last);
        judge(&mut run, settings, published, took_ns);
        void_attribution(&mut run, idle, &gaps, took_ns as f64 / 1e9);
        // Ends that are threads of one process share one CPU account.
        if !lab.in_threads {
            add_receiver_cpu(&mut run, received.cpu_ns);
        }
        let ends = [
            ("subscriber", gaps, received.waited_ns),
            ("publisher", attribute_common_stops(&of_publisher, &[&of_subscriber]), 0),
        ];
        for (who, gaps, waited_ns) in ends {
            report_stalls(&mut run, settings, (who, &gaps, waited_ns), elapsed, calibration);
        }
    }
    if settings.wait != Wait::Busy || settings.readers > 1 || settings.foreign.is_some() {
        // No thread spun on the receiver's CPU, so the host's share is unknown.
        drop_attribution(&mut run);
    }
    if received.received == 0 {
        run.refuse("nothing was received; look at the server's log, and whether this user may subscribe");
    }
    if published.refused > 0 {
        run.notes.push(format!("the topic was full {} times; the publisher tried again", published.refused));
    }
    note_reconnects(&mut run, "sender", published.reconnects);
    note_reconnects(&mut run, "receiver", received.reconnects);
    refuse_reordered(&mut run);
    if run.counts.lost > 0 && settings.policy != Some(Policy::Overwrite) {
        run.refuse(format!("{} messages were lost on a topic that promises to keep them", run.counts.lost));
    } else if settings.rate.is_some() {
        // At full speed a topic may overwrite messages that its reader has not taken; at a sustained rate none may be
        // lost.
        refuse_loss(&mut run);
    }
    Ok(run)
}

fn publish_hop(run: &mut Run, out: &Path, calibration: &Calibration) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    if rows.is_empty() {
        return Ok(());
    }
    let calls = Samples(rows.iter().map(|&[_, actual, done]| (actual, done)).collect());
    let late = Samples(rows.iter().map(|&[intended, actual, _]| (intended, actual)).collect());
    // The gaps are those of the subscriber's CPU.
    run.hops.insert("publish".to_owned(), calls.unwatched_hop(calibration));
    run.figures.insert("writer_cost_ns".to_owned(), calls.fast_mean_ns(calibration));
    add_lateness(run, &late.unwatched_hop(calibration));
    Ok(())
}

fn latency_hops(
    run: &mut Run,
    out: &Path,
    clock: &Calibration,
    gaps: &[SchedulingGap],
    transfer: f64,
) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    let one_way = Samples(rows.iter().map(|&[intended, _, copied]| (intended, copied)).collect());
    let service = Samples(rows.iter().map(|&[_, actual, copied]| (actual, copied)).collect());
    run.hops.insert("one_way".to_owned(), one_way.hop(clock, gaps));
    run.hops.insert("service".to_owned(), service.hop(clock, gaps));
    if transfer > 0.0 && !rows.is_empty() {
        run.figures.insert("one_way_over_transfer_ratio".to_owned(), one_way.p50_ns(clock) / transfer);
    }
    Ok(())
}

/// Reports a thread's stalls, and refuses a run on a log whose thread lacked a CPU of its own. A thread that finds
/// messages right after its wait shows no gap, but the kernel's account counts that wait.
fn report_stalls(
    run: &mut Run,
    settings: &Settings,
    end: (&str, &[SchedulingGap], u64),
    took_ns: u64,
    clock: &Calibration,
) {
    let (who, gaps, waited_ns) = end;
    note_stalls(run, who, gaps, took_ns, clock);
    let shares = settings.cpus[0] == settings.cpus[1] || settings.wait != Wait::Busy || settings.readers > 1;
    if is_log(&settings.target) && !shares {
        refuse_starved(run, who, waited_ns.max(stalled_ns(gaps, GapCause::Preempted, clock)), took_ns);
    }
}

/// Applies the generator's rules: its rate and its punctuality, which excludes calls that wait.
fn judge(run: &mut Run, settings: &Settings, published: &PublisherResult, took_ns: i64) {
    let reached = published.planned_ns as f64 / took_ns as f64;
    if took_ns > 0 && reached < 0.99 && settings.count > 1 && !settings.is_stalled {
        run.refuse(format!("the generator reached {:.1} % of its rate; use a lower --rate", 100.0 * reached));
    }
    if published.late_share > 0.01 {
        let share = 100.0 * published.late_share;
        run.refuse(format!("{share:.1} % of sends came late by more than the interval or 10 µs; use a lower --rate"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_target_excuses_only_a_missed_rate() {
        let kept =
            PublisherResult { sent: 1_000, planned_ns: 1_000_000_000, late_share: 0.01, ..PublisherResult::default() };
        let late = PublisherResult { late_share: 0.011, ..kept.clone() };
        for (is_stalled, published, took_ns, valid) in [
            (false, &kept, 1_010_000_000, true),
            (false, &kept, 1_100_000_000, false),
            (true, &kept, 1_100_000_000, true),
            (false, &late, 1_000_000_000, false),
            (true, &late, 1_000_000_000, false),
        ] {
            let settings = Settings { count: 1_000, is_stalled, ..Settings::new("redis://host:1", [0, 1]) };
            let mut run = Run { valid: true, ..Run::default() };
            judge(&mut run, &settings, published, took_ns);
            assert_eq!((run.valid, run.notes.is_empty()), (valid, valid), "{is_stalled}, {published:?}, {took_ns} ns");
        }
        let mut run = Run::default();
        judge(&mut run, &Settings::new("redis://host:1", [0, 1]), &kept, 1_000_000_000);
        assert!(!run.valid, "what was refused before stays refused");
    }
}
