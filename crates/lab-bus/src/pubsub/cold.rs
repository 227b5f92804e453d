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

use super::role::{First, PublisherRole, Received, topic_name};
use super::settings::{Settings, check, described, policy, roles};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::targets::Removed;
use tickpath_lab_harness::{Around, Lab, LabError};
use tickpath_lab_result::{Phase, Run};

/// Measures the first message of `times` new processes.
pub fn cold(lab: &Lab<'_>, settings: &Settings, times: u64) -> Result<Run, LabError> {
    lab.step(&format!("pubsub {} cold", tickpath_bus::url::without_login(&settings.target)), times as f64 * 0.1)?;
    let one = Settings { phase: Phase::Cold, count: times, rate: Some(1.0), readers: 1, batch: 1, ..settings.clone() };
    check(&one, Some("cold"))?;
    let settings = &Settings { policy: Some(policy(&one)?), ..one };
    let around = Around::begin(lab, settings.cpus)?;
    let topic = topic_name(lab, &settings.target);
    let _removed = Removed { target: &settings.target, topic: &topic };
    let _ = connect(&settings.target)?.remove(&topic);
    let (publisher, subscriber) = roles(lab, settings, &topic, &topic);
    let mut subscriber = lab.spawn(&subscriber)?;
    let mut firsts: Vec<First> = Vec::new();
    for number in 0..times {
        let role = PublisherRole { cold: true, count: number, ..publisher.clone() };
        let mut process = lab.spawn(&role)?;
        process.tell("go")?;
        firsts.push(process.result(10.0)?);
    }
    let _ = subscriber.tell("ended");
    let received: Received = subscriber.result(10.0)?;
    let mut run = assemble(lab, settings, &firsts, &received)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

fn assemble(lab: &Lab<'_>, settings: &Settings, firsts: &[First], received: &Received) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let out = lab.folder().join("subscriber");
    let gaps = load_gaps(&out.with_extension("gaps"))?;
    let rows = load::<3>(&out)?;
    let mut run = described(lab, settings);
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
    received.hold(&mut run, firsts.len() as u64);
    Ok(run)
}
