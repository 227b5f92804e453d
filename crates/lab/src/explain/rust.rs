//! Our own bus over the same server: cold, first after a pause, steady. What it adds to bare sockets is its own part.

use tickpath_clock::{Priority, Wait};

use super::Bench;
use super::account::set;
use super::floor::{self, Floor};
use super::pair::MESSAGE_BYTES;
use super::phases::{EVERY_NS, pauses};
use super::server::Target;
use super::stages::stage;
use crate::LabError;
use crate::pubsub::{self, Settings};
use crate::result::{Phase, ResultFile, Run, Stage, StageKind};

/// Processes of the cold run.
const COLD_TIMES: u64 = 20;

/// All phases, one after the other.
pub(super) fn run(bench: &mut Bench<'_>, result: &mut ResultFile) -> Result<(), LabError> {
    let (lab, cpus) = (bench.lab, bench.settings.cpus);
    let Some(target) = &bench.target else { return Ok(()) };
    lab.progress.step("explain: the same message over bare sockets", 0.5);
    let floor = floor::measure(target.info(), &bench.channel("floor"), false, lab.clock)?;
    let (pauses, left_out) = pauses(bench.settings.seconds);
    let idle = pauses.iter().map(|order| (Phase::Idle, 1e9 / order.pause_ns as f64, order.count));
    let steady = (Phase::Steady, 1e9 / EVERY_NS as f64, bench.settings.count);
    for (phase, rate, count) in [(Phase::Cold, 1.0, COLD_TIMES)].into_iter().chain(idle).chain([steady]) {
        let told = settings(&target_url(bench), cpus, phase, rate, count);
        let began = bench.target.as_mut().and_then(Target::executed);
        let mut run = match phase {
            Phase::Cold => pubsub::cold(lab, &told, count)?,
            Phase::Idle | Phase::Steady => pubsub::run(lab, &told)?,
        };
        let ended = bench.target.as_mut().and_then(Target::executed);
        let server_ns = began.zip(ended).and_then(|(began, ended)| ended.since(began));
        explain(&mut run, server_ns, &floor);
        if phase == Phase::Steady {
            run.notes.extend(left_out.clone());
        }
        result.runs.push(named(bench, run));
    }
    Ok(())
}

fn target_url(bench: &Bench<'_>) -> String {
    bench.target.as_ref().map(|target| target.url.clone()).unwrap_or_default()
}

/// One run of `pubsub` between blocking processes.
pub(super) fn settings(url: &str, cpus: [usize; 2], phase: Phase, rate: f64, count: u64) -> Settings {
    Settings {
        target: url.to_owned(),
        size: MESSAGE_BYTES,
        rate: Some(rate),
        count,
        batch: 1,
        policy: None,
        phase,
        readers: 1,
        wait: Wait::Block,
        cpus,
        priority: Priority::Normal,
        repeat: 1,
    }
}

/// A run under the server's public name.
fn named(bench: &Bench<'_>, run: Run) -> Run {
    let valid = run.valid;
    let mut run = bench.describe(run);
    run.valid = valid;
    run.software.client = Some("tickpath bus".to_owned());
    run.software.client_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    run
}

/// The stages of one message, from its intended time: there are stamps at its ends and at the call alone, so that what
/// lies between is bounded by bare sockets.
fn explain(run: &mut Run, server_ns: Option<f64>, floor: &Floor) {
    let p50 = |name: &str| run.hops.get(name).and_then(|hop| hop.percentiles()[0]).map(|ns| ns as f64);
    let (Some(whole), Some(service)) = (p50("one_way"), p50("service")) else { return };
    let first = match run.phase {
        Phase::Cold => ("connect_bus", run.figures.get("connect_ns")),
        Phase::Idle | Phase::Steady => ("generator_late", run.figures.get("lateness_p50_ns")),
    };
    let first = (first.0, first.1.copied().unwrap_or(0.0));
    let stages = stages(whole, service, first, server_ns, floor);
    let known: f64 = stages.iter().filter(|stage| stage.kind != StageKind::Unexplained).filter_map(|s| s.p50_ns).sum();
    set(run, "message_ns", Some(whole));
    set(run, "stages_sum_percent", Some(100.0 * known / whole.max(1.0)));
    set(run, "server_publish_ns", server_ns);
    set(run, "socket_one_way_ns", Some(floor.wire_ns));
    set(run, "socket_round_trip_ns", Some(floor.round_trip_ns));
    run.stages = stages;
}

/// What comes before the call, then the call until the reader has the message.
fn stages(whole: f64, service: f64, first: (&str, f64), server_ns: Option<f64>, floor: &Floor) -> Vec<Stage> {
    let mut left = service;
    let mut take = |ns: f64| {
        let taken = ns.clamp(0.0, left);
        left -= taken;
        taken
    };
    let send = take(floor.write_ns);
    let server = take(server_ns.unwrap_or(0.0));
    let kernel = take(floor.wire_ns - server_ns.unwrap_or(0.0));
    let found = [
        (first.0, first.1, StageKind::Measured),
        ("send", send, StageKind::Bounded),
        ("server", server, StageKind::Measured),
        ("kernel_and_wake_up", kernel, StageKind::Bounded),
        // What is above bare sockets is ours: publishing, receiving and handing over.
        ("hand_over", left, StageKind::Bounded),
        ("unexplained", whole - first.1 - service, StageKind::Unexplained),
    ];
    found.into_iter().filter(|(_, ns, _)| *ns > 0.0).map(|(name, ns, kind)| stage(name, ns, kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Floor = Floor { wire_ns: 24_000.0, write_ns: 10_000.0, round_trip_ns: 50_000.0 };

    #[test]
    fn what_is_above_bare_sockets_is_the_bus() {
        let found = stages(61_000.0, 60_000.0, ("generator_late", 1_000.0), Some(4_000.0), &FLOOR);
        let times: Vec<(&str, f64)> = found.iter().map(|s| (s.name.as_str(), s.p50_ns.unwrap())).collect();
        assert_eq!(
            times,
            [
                ("generator_late", 1_000.0),
                ("send", 10_000.0),
                ("server", 4_000.0),
                ("kernel_and_wake_up", 20_000.0),
                ("hand_over", 26_000.0)
            ]
        );
    }

    #[test]
    fn a_bus_that_was_faster_than_the_floor_adds_nothing() {
        let found = stages(20_000.0, 20_000.0, ("generator_late", 0.0), Some(4_000.0), &FLOOR);
        let sum: f64 = found.iter().filter_map(|stage| stage.p50_ns).sum();
        assert_eq!(sum, 20_000.0);
        assert!(found.iter().all(|stage| stage.name != "hand_over"));
    }
}
