//! The first message of a new process: the time includes making the connection.
//!
//! ```text
//!   new process ── go ── connect, open the topic ── publish ── topic ── payload copied     (again, and again)
//!                  │                                │                       │
//!                  ├────────── connect ─────────────┤                       │
//!                  └───────────────────── one_way ──────────────────────────┘
//! ```
//! The subscriber stays; each message comes from a new process. The figure excludes loading the program: a script's
//! interpreter costs more than any connection, and `tickpath explain` reports it separately.

use tickpath_bus::connect;
use tickpath_clock::Clock;

use super::role::{ColdPublishResult, PublisherRole, SubscriberResult, topic_name};
use super::settings::{Settings, check, policy, roles, run_of_settings};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::targets::TopicGuard;
use tickpath_lab_harness::{Lab, LabError, StabilityCheck};
use tickpath_lab_result::{Run, RunPhase};

/// Measures the first message of `times` new processes.
pub fn measure_cold(lab: &Lab<'_>, settings: &Settings, times: u64) -> Result<Run, LabError> {
    lab.step(&format!("pubsub {} cold", tickpath_bus::url::redact_logins(&settings.target)), times as f64 * 0.1)?;
    let one =
        Settings { phase: RunPhase::Cold, count: times, rate: Some(1.0), readers: 1, batch: 1, ..settings.clone() };
    check(&one, Some("cold"))?;
    let settings = &Settings { policy: Some(policy(&one)?), ..one };
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let topic = topic_name(lab, &settings.target);
    let _removed = TopicGuard { target: &settings.target, topic: &topic };
    let _ = connect(&settings.target)?.remove_topic(&topic);
    let (publisher, subscriber) = roles(lab, settings, &topic, &topic);
    let mut subscriber = lab.spawn(&subscriber)?;
    let mut firsts: Vec<ColdPublishResult> = Vec::new();
    for number in 0..times {
        let role = PublisherRole { cold: true, count: number, ..publisher.clone() };
        let mut process = lab.spawn(&role)?;
        process.send("go")?;
        firsts.push(process.result(10.0)?);
    }
    let _ = subscriber.send("ended");
    let received: SubscriberResult = subscriber.result(10.0)?;
    let mut run = assemble(lab, settings, &firsts, &received)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    firsts: &[ColdPublishResult],
    received: &SubscriberResult,
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let out = lab.folder().join("subscriber");
    let gaps = load_gaps(&out.with_extension("gaps"))?;
    let rows = load::<3>(&out)?;
    let mut run = run_of_settings(lab, settings);
    run.notes.push("a new process for each message, connecting included".to_owned());
    run.params.0.remove("rate_per_s");
    let hop = |samples: Vec<(u64, u64)>| Samples(samples).hop(calibration, &gaps);
    run.hops.insert("one_way".to_owned(), hop(rows.iter().map(|&[go, _, copied]| (go, copied)).collect()));
    run.hops.insert("service".to_owned(), hop(rows.iter().map(|&[_, sent, copied]| (sent, copied)).collect()));
    let publishes = Samples(firsts.iter().map(|f| (f.connected, f.published)).collect());
    run.hops.insert("publish".to_owned(), publishes.unwatched_hop(calibration));
    let connects = Samples(firsts.iter().map(|f| (f.go, f.connected)).collect());
    run.figures.insert("connect_ns".to_owned(), connects.p50_ns(calibration));
    if settings.wait != tickpath_clock::Wait::Busy {
        tickpath_lab_harness::attribution::drop_attribution(&mut run);
    }
    received.check_counts(&mut run, firsts.len() as u64);
    Ok(run)
}
