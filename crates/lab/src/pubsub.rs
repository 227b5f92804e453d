//! `pubsub`: messages from one process to another over a transport.
//!
//! ```text
//!   publisher (generator's CPU)                 subscriber (receiver's CPU)
//!   intended ─ publish ──── topic ───────────── payload copied
//!      │  └ actual                                 │
//!      └──────────────── one_way ──────────────────┤      service = actual → copied
//! ```
//! A message carries its intended time as its stamp, and in its payload when it was really sent and its number. Valid
//! only if the generator kept its rate and was punctual, and both processes had a CPU of their own.
//!
//! Three phases, three results: [`run`] is a steady stream, or, at a low rate, the first message after an idle;
//! [`cold`] is the first message of a new process, connecting included; [`round_trip`] waits for each answer.

mod cold;
mod ends;
pub mod go_redis;
mod plan;
mod role;
mod round_trip;
mod search;

use std::path::Path;
use tickpath_harness::arrivals::Arrivals;
use tickpath_harness::attribution::{
    drop_attribution, stood_still_ns, tell_standstills, void_attribution, with_whole_stops, within,
};
use tickpath_harness::rules::{refuse_disorder, refuse_loss, refuse_starved, tell_reconnects};
use tickpath_harness::targets::is_log;

use serde::{Deserialize, Serialize};
use tickpath_bus::{Policy, connect};

use tickpath_clock::{Calibration, Cause, Clock, Gap, Priority, Wait};

pub use cold::cold;
pub use plan::{Plan, plan};
pub use round_trip::round_trip;
pub use round_trip::{PingRole, PongRole};
pub use search::{Search, Tried};

use crate::removed::Removed;
pub use role::{PublisherRole, SubscriberRole};
use tickpath_harness::Thread;
use tickpath_harness::samples::{Samples, load, load_gaps};
use tickpath_harness::{Around, Lab, LabError, host};
use tickpath_result::without_login;
use tickpath_result::{Counts, Phase, Run};
use tickpath_scratch::go::Go;

/// A payload holds at least when it was sent and its number.
const LEAST_BYTES: usize = 16;

/// How `pubsub` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transport's URL.
    pub target: String,
    /// The program of [`go_redis`] at both ends; our own bus if there is none.
    pub go: Option<Go>,
    /// Bytes of a message.
    pub size: usize,
    /// Messages a second; as fast as it goes if there is none.
    pub rate: Option<f64>,
    /// How their intended times lie.
    pub arrivals: Arrivals,
    /// Messages.
    pub count: u64,
    /// Messages that share a stamp.
    pub batch: usize,
    /// What a full topic does; the transport's usual way if there is none.
    pub policy: Option<Policy>,
    /// Whether each message is the first after an idle, or one of a stream.
    pub phase: Phase,
    /// Subscriptions; they take turns on the receiver's CPU.
    pub readers: usize,
    /// How the subscriber waits.
    pub wait: Wait,
    /// How the publisher waits for the next message's time; as the subscriber if there is none.
    pub pace: Option<Wait>,
    /// The generator's and the receiver's CPU.
    pub cpus: [usize; 2],
    /// Of both processes.
    pub priority: Priority,
    /// Which repetition this is.
    pub repeat: u32,
}

impl Settings {
    /// What the client of both ends is called.
    pub fn client(&self) -> &'static str {
        if self.go.is_some() { go_redis::NAME } else { "rust" }
    }
}

/// What the publisher tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Published {
    sent: u64,
    refused: u64,
    first: u64,
    last: u64,
    /// From the first message's intended time to the last one's.
    planned_ns: u64,
    late_share: f64,
    own_p99_ns: u32,
}

/// What the subscriber tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Received {
    received: u64,
    reordered: u64,
    duplicated: u64,
    reconnects: u64,
    last: u64,
}

/// What a run has, right before its first message.
#[derive(Debug)]
pub struct Ends<'a> {
    /// Where messages are published.
    pub published: &'a str,
    /// Where they are heard: the same topic, unless somebody is to come between.
    pub heard: &'a str,
    /// The publisher's process id.
    pub publisher: u32,
    /// The subscriber's process id.
    pub subscriber: u32,
}

/// Runs once, with the floor of the same run.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<Run, LabError> {
    run_with(lab, settings, false, |_| Ok(()))
}

/// The same; `begin` is called when all is ready, and the first message is sent when it returns. If somebody is to come
/// between, the subscriber hears another topic than is published, and it is `begin`'s to carry what comes.
pub fn run_with(
    lab: &Lab<'_>,
    settings: &Settings,
    between: bool,
    begin: impl FnOnce(&Ends<'_>) -> Result<(), LabError>,
) -> Result<Run, LabError> {
    check(settings)?;
    let seconds = settings.rate.map_or(2.0, |rate| settings.count as f64 / rate);
    let what = format!("pubsub {} {} B", without_login(&settings.target), settings.size);
    lab.step(&what, seconds + 1.0)?;
    let settings = &Settings { policy: Some(policy(settings)?), ..settings.clone() };
    let around = Around::begin(lab, settings.cpus)?;
    // The floor of the log; a broker's path holds a thousand of them.
    let transfer = around.transfer_ns().filter(|_| is_log(&settings.target)).unwrap_or(0.0);
    let idle = host::idle_gaps(&lab.clock, settings.cpus[1], 200_000_000)?;
    let topic = topic_name(lab, &settings.target);
    let _removed = Removed { target: &settings.target, topic: &topic };
    let heard = if between { format!("{topic}.heard") } else { topic.clone() };
    let _removed_too = Removed { target: &settings.target, topic: &heard };
    let (publisher, subscriber) = roles(lab, settings, &topic, &heard);
    // The publisher makes the topic, so that a `fail` topic has its reader before the first message.
    let (mut publisher, mut subscriber) = match &settings.go {
        Some(go) => go_redis::spawn(go, &publisher, &subscriber)?,
        None => (lab.spawn(&publisher)?, lab.spawn(&subscriber)?),
    };
    begin(&Ends { published: &topic, heard: &heard, publisher: publisher.id(), subscriber: subscriber.id() })?;
    publisher.tell("go")?;
    // As slowly as a message of this size can reasonably go.
    let message = if is_log(&settings.target) { 1e-5 } else { 1e-2 };
    let slowest = settings.count as f64 * (message + settings.size as f64 * 1e-8);
    let published: Published = publisher.result(seconds * 3.0 + slowest)?;
    // It may have everything already, and be gone.
    let _ = subscriber.tell("ended");
    let received: Received = subscriber.result(10.0)?;
    let mut run = assemble(lab, settings, transfer, &idle, &published, &received)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

/// On somebody's server a name says whose it is.
fn topic_name(lab: &Lab<'_>, target: &str) -> String {
    match is_log(target) {
        true => format!("{}.pubsub", lab.name),
        false => format!("tickpath:{}:pubsub", lab.name),
    }
}

/// As told, or the transport's usual one; at full speed the publisher is told when a subscriber is too slow, if it can be.
fn policy(settings: &Settings) -> Result<Policy, LabError> {
    if let Some(policy) = settings.policy {
        return Ok(policy);
    }
    let policies = connect(&settings.target)?.capabilities().policies;
    let told = policies.contains(&Policy::Fail) && settings.rate.is_none();
    Ok(if told { Policy::Fail } else { policies[0] })
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: String| Err(LabError::Setting(what));
    if settings.size < LEAST_BYTES || settings.size > 16 << 20 {
        return wrong(format!("a size of {} bytes is not possible; use {LEAST_BYTES} to 16777216", settings.size));
    }
    if settings.count == 0 || settings.batch == 0 || settings.readers == 0 || settings.readers > 256 {
        return wrong("counts, batches and readers start at 1; readers end at 256".to_owned());
    }
    if settings.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
        return wrong("--rate takes a number above 0, up to 100000000, or max".to_owned());
    }
    if settings.cpus[0] == settings.cpus[1] && settings.wait == Wait::Busy {
        return wrong(format!(
            "publisher and subscriber would both spin on CPU {}; name two with --cpus, or use --wait yield or block",
            settings.cpus[0]
        ));
    }
    let usual = settings.readers == 1
        && settings.wait == Wait::Block
        && settings.priority == Priority::Normal
        && settings.arrivals == Arrivals::Steady;
    if settings.go.is_some() && !usual {
        return wrong(format!(
            "--client {}: one subscription, which waits as Go does, at equal distances; leave --readers, --wait, --priority and --arrivals out",
            go_redis::NAME
        ));
    }
    Ok(())
}

/// Refuses a phase that our own bus alone has.
fn refuse_go(settings: &Settings, phase: &str) -> Result<(), LabError> {
    match settings.go {
        Some(_) => Err(LabError::Setting(format!("--client {} has no {phase} phase; leave it out", go_redis::NAME))),
        None => Ok(()),
    }
}

/// What the stamps of a client are.
fn calibration(lab: &Lab<'_>, client: &str) -> Calibration {
    if client == go_redis::NAME { Calibration::nanoseconds() } else { *lab.clock.calibration() }
}

fn roles(lab: &Lab<'_>, settings: &Settings, topic: &str, heard: &str) -> (PublisherRole, SubscriberRole) {
    let Settings { target, size, rate, arrivals, count, batch, policy, readers, wait, pace, cpus, priority, .. } =
        settings.clone();
    // Readers that share the publisher's core need it to give way.
    let pace = pace.unwrap_or(if cpus[0] == cpus[1] && wait == Wait::Busy { Wait::Yield } else { wait });
    let publisher = PublisherRole {
        target: target.clone(),
        topic: topic.to_owned(),
        policy: policy.expect("resolved").to_string(),
        size,
        count,
        rate,
        arrivals,
        batch,
        cold: false,
        thread: Thread::new(cpus[0], pace, priority),
        out: lab.folder().join("publisher"),
    };
    let subscriber = SubscriberRole {
        target,
        topic: heard.to_owned(),
        count,
        stamps: rate.is_some(),
        readers,
        thread: Thread::new(cpus[1], wait, priority),
        out: lab.folder().join("subscriber"),
    };
    (publisher, subscriber)
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    transfer: f64,
    idle: &[Gap],
    published: &Published,
    received: &Received,
) -> Result<Run, LabError> {
    let calibration = calibration(lab, settings.client());
    let elapsed = calibration.ns_between(published.first, received.last).max(0) as u64;
    let mut run = Run {
        target: settings.target.clone(),
        client: settings.client().to_owned(),
        software: lab.software(&settings.target),
        repeat: settings.repeat,
        phase: settings.phase,
        valid: true,
        batch: Some((settings.batch as u64).into()),
        counts: counts(settings, published, received),
        elapsed_ns: Some(elapsed),
        throughput_per_s: (elapsed > 0).then(|| received.received as f64 * 1e9 / elapsed as f64),
        ..Run::default()
    };
    if let Some(go) = &settings.go {
        go_redis::name(go, &mut run.software);
    }
    parameters(&mut run, settings);
    if transfer > 0.0 {
        run.figures.insert("cache_line_transfer_ns".to_owned(), transfer);
    }
    publish_hop(&mut run, &lab.folder().join("publisher"), lab)?;
    if settings.rate.is_some() {
        // The processes of another language watch for none.
        let found = |name: &str| match settings.go {
            Some(_) => Ok(Vec::new()),
            None => load_gaps(&lab.folder().join(name)).map(|gaps| within(&gaps, published.first, received.last)),
        };
        let (ours, theirs) = (found("subscriber.gaps")?, found("publisher.gaps")?);
        let gaps = with_whole_stops(&ours, &[&theirs]);
        latency_hops(&mut run, &lab.folder().join("subscriber"), lab, &gaps, transfer)?;
        if published.sent >= 1_000 {
            run.figures.insert("lateness_own_p99_ns".to_owned(), f64::from(published.own_p99_ns));
        }
        judge(&mut run, settings, published, idle, &gaps, lab);
        for (who, gaps) in [("subscriber", gaps), ("publisher", with_whole_stops(&theirs, &[&ours]))] {
            hold_up(&mut run, settings, who, &gaps, elapsed, lab);
        }
    }
    if settings.wait != Wait::Busy || settings.readers > 1 || settings.go.is_some() {
        // Nobody spun on the receiver's CPU: what the host took is not known.
        drop_attribution(&mut run);
    }
    if received.received == 0 {
        run.valid = false;
        run.notes
            .push("nothing was received; look at the server's log, and whether this user may subscribe".to_owned());
    }
    if published.refused > 0 {
        run.notes.push(format!("the topic was full {} times; the publisher tried again", published.refused));
    }
    tell_reconnects(&mut run, received.reconnects);
    refuse_disorder(&mut run);
    if run.counts.lost > 0 && settings.policy != Some(Policy::Overwrite) {
        run.valid = false;
        run.notes.push(format!("{} messages were lost on a topic that promises to keep them", run.counts.lost));
    } else if settings.rate.is_some() {
        // At full speed a topic may overwrite what its reader has not taken; at a rate that it keeps nothing is lost.
        refuse_loss(&mut run);
    }
    Ok(run)
}

fn counts(settings: &Settings, published: &Published, received: &Received) -> Counts {
    let expected = published.sent * settings.readers as u64;
    Counts {
        sent: published.sent,
        received: received.received,
        lost: expected.saturating_sub(received.received - received.duplicated),
        duplicated: received.duplicated,
        reordered: received.reordered,
        left: 0,
        errors: 0,
    }
}

fn parameters(run: &mut Run, settings: &Settings) {
    run.params.set("size_bytes", settings.size as u64);
    run.params.set("wait", settings.wait.name());
    if let Some(policy) = settings.policy {
        run.params.set("policy", policy.name());
    }
    if let (Phase::Idle, Some(rate)) = (settings.phase, settings.rate) {
        run.params.set("idle_ns", (1e9 / rate) as u64);
    }
    run.params.set("readers", settings.readers as u64);
    run.params.set("cpus", settings.cpus.to_vec());
    run.params.set("count", settings.count);
    match settings.rate {
        Some(rate) => run.params.set("rate_per_s", rate),
        None => run.params.set("rate_per_s", "max"),
    }
    if let Arrivals::Poisson { seed } = settings.arrivals {
        run.params.set("arrivals", "poisson");
        run.params.set("seed", seed);
    }
}

fn publish_hop(run: &mut Run, out: &Path, lab: &Lab<'_>) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    if rows.is_empty() {
        return Ok(());
    }
    let calibration = &calibration(lab, &run.client);
    let calls = Samples(rows.iter().map(|&[_, actual, done]| (actual, done)).collect());
    let late = Samples(rows.iter().map(|&[intended, actual, _]| (intended, actual)).collect());
    // The gaps are those of the subscriber's CPU.
    run.hops.insert("publish".to_owned(), calls.unwatched_hop(calibration));
    run.figures.insert("writer_cost_ns".to_owned(), calls.fast_mean_ns(calibration));
    let late = late.unwatched_hop(calibration);
    let lateness = [("lateness_p50_ns", late.percentiles()[0]), ("lateness_p99_ns", late.percentiles()[3])];
    run.figures.extend(lateness.into_iter().filter_map(|(name, ns)| Some((name.to_owned(), ns? as f64))));
    Ok(())
}

fn latency_hops(run: &mut Run, out: &Path, lab: &Lab<'_>, gaps: &[Gap], transfer: f64) -> Result<(), LabError> {
    let rows = load::<3>(out)?;
    let calibration = &calibration(lab, &run.client);
    let one_way = Samples(rows.iter().map(|&[intended, _, copied]| (intended, copied)).collect());
    let service = Samples(rows.iter().map(|&[_, actual, copied]| (actual, copied)).collect());
    run.hops.insert("one_way".to_owned(), one_way.hop(calibration, gaps));
    run.hops.insert("service".to_owned(), service.hop(calibration, gaps));
    if transfer > 0.0 && !rows.is_empty() {
        run.figures.insert("one_way_over_transfer_ratio".to_owned(), one_way.p50_ns(calibration) / transfer);
    }
    Ok(())
}

/// What held a thread up. Where nothing but the two ends runs, each has its CPU to itself.
fn hold_up(run: &mut Run, settings: &Settings, who: &str, gaps: &[Gap], took_ns: u64, lab: &Lab<'_>) {
    let calibration = lab.clock.calibration();
    tell_standstills(run, who, gaps, took_ns, calibration);
    let shares = settings.cpus[0] == settings.cpus[1] || settings.wait != Wait::Busy || settings.readers > 1;
    if is_log(&settings.target) && !shares {
        refuse_starved(run, who, stood_still_ns(gaps, Cause::Preempted, calibration), took_ns);
    }
}

/// The run's own rules: rate, punctuality, and whether the host was calmer than while it idled.
fn judge(run: &mut Run, settings: &Settings, published: &Published, idle: &[Gap], gaps: &[Gap], lab: &Lab<'_>) {
    let calibration = &calibration(lab, &run.client);
    let planned = published.planned_ns as f64 / 1e9;
    let took = calibration.ns_between(published.first, published.last) as f64 / 1e9;
    if took > 0.0 && planned / took < 0.99 && settings.count > 1 {
        run.valid = false;
        run.notes
            .push(format!("the generator reached {:.1} % of its rate; use a lower --rate", 100.0 * planned / took));
    }
    if published.late_share > 0.01 {
        run.valid = false;
        let share = 100.0 * published.late_share;
        run.notes
            .push(format!("{share:.1} % of sends came late by more than the interval or 10 µs; use a lower --rate"));
    }
    void_attribution(run, idle, gaps, took);
}
