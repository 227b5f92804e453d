//! Phases of our own bus over any server, and over the log: cold, first after a pause, steady. Its time above the floor
//! is its own part, together with a server's that does not report its own.

use tickpath_clock::Wait;
use tickpath_lab_harness::targets::is_log;

use super::account::set_figure;
use super::bench::ExplainBench;
use super::pair::MESSAGE_BYTES;
use super::phases::{INTERVAL_NS, pauses};
use super::server::PUBLISH;
use super::settings::MIN_MESSAGES;
use super::socket_floor::{self, FloorSettings, SocketFloor};
use super::stages::{bounded, measured, unexplained};
use tickpath_lab_bus::pubsub::{self, Settings, plan_rate};
use tickpath_lab_harness::LabError;
use tickpath_lab_result::{ResultFile, Run, RunPhase, Stage, StageKind};

/// Number of processes of the cold run, and the reader's approximate wait between two of them.
const COLD_TIMES: u64 = 20;
const COLD_PAUSE_NS: u64 = 10_000_000;

/// Floor of the path to a server, or through a log, that no client can go below.
enum PathFloor {
    /// The same message over bare sockets and the same Redis server, which reports its own time.
    Redis(SocketFloor),
    /// The same bytes over bare sockets through a thread that only copies, and the network's round trip.
    Server { floor: SocketFloor, network_ns: f64 },
    /// Transfer of a cache line from one core to another.
    Log { transfer_ns: f64 },
}

pub(super) fn run(bench: &mut ExplainBench<'_>, result: &mut ResultFile) -> Result<(), LabError> {
    let (lab, cpus, url) = (bench.lab, bench.settings.cpus, bench.url());
    // Only for servers other than Redis: the floor over Redis includes the network.
    let network_ns = if bench.target.is_none() { socket_floor::network_ns(&url, lab.clock) } else { 0.0 };
    let (pauses, left_out) = pauses(bench.settings.seconds);
    let (rate, count) = (1e9 / INTERVAL_NS as f64, bench.settings.count);
    // A target that cannot keep up shows its queue, not a message.
    let planned =
        plan_rate(lab, &settings(&url, cpus, RunPhase::Steady, rate, count, Wait::Block), rate, count as f64 / rate)?;
    let idle = pauses.iter().map(|order| (RunPhase::Idle, 1e9 / order.pause_ns as f64, order.count));
    let (idle, too_fast): (Vec<_>, Vec<_>) = idle.partition(|(_, rate, _)| *rate <= planned.rate);
    let too_fast = (!too_fast.is_empty()).then(|| {
        format!("pauses of less than {:.0} ms are left out: this target does not keep up with them", 1e3 / planned.rate)
    });
    let steady = (RunPhase::Steady, planned.rate, planned.count.clamp(MIN_MESSAGES, count));
    for (phase, rate, count) in [(RunPhase::Cold, 1.0, COLD_TIMES)].into_iter().chain(idle).chain([steady]) {
        let run_settings = settings(&url, cpus, phase, rate, count, Wait::Block);
        let pause_ns = if phase == RunPhase::Cold { COLD_PAUSE_NS } else { (1e9 / rate) as u64 };
        let below = PathFloor::measure(bench, &url, pause_ns, network_ns, result.host.cache_line_transfer_ns)?;
        let began = bench.target.as_mut().and_then(|target| target.command_stats(PUBLISH));
        let mut run = match phase {
            RunPhase::Cold => pubsub::measure_cold(lab, &run_settings, count)?,
            RunPhase::Idle | RunPhase::Steady => pubsub::run(lab, &run_settings)?,
        };
        let ended = bench.target.as_mut().and_then(|target| target.command_stats(PUBLISH));
        let server_ns = began.zip(ended).and_then(|(began, ended)| ended.since(began));
        explain(&mut run, server_ns, &below);
        if phase == RunPhase::Steady {
            run.notes.extend(planned.note.iter().chain(&too_fast).chain(&left_out).cloned());
        }
        result.runs.push(with_server_name(bench, run));
    }
    Ok(())
}

impl PathFloor {
    fn measure(
        bench: &ExplainBench<'_>,
        url: &str,
        pause_ns: u64,
        network_ns: f64,
        transfer_ns: Option<f64>,
    ) -> Result<Self, LabError> {
        if is_log(url) {
            return Ok(Self::Log { transfer_ns: transfer_ns.unwrap_or(0.0) });
        }
        bench.lab.step("explain: the same message over bare sockets", 0.5)?;
        let (clock, sides) =
            (bench.lab.clock, FloorSettings { spins: false, cpus: Some(bench.settings.cpus), pause_ns });
        Ok(match &bench.target {
            Some(target) => Self::Redis(socket_floor::measure(&target.info, &bench.channel("floor"), sides, clock)?),
            None => Self::Server { floor: socket_floor::measure_through_copy(sides, clock)?, network_ns },
        })
    }
}

/// Returns the settings of one `pubsub` run between processes that wait in this way.
pub(super) fn settings(url: &str, cpus: [usize; 2], phase: RunPhase, rate: f64, count: u64, wait: Wait) -> Settings {
    Settings {
        size: MESSAGE_BYTES,
        rate: Some(rate),
        count,
        phase,
        wait,
        // A spinning publisher takes a CPU from the server.
        pace: Some(Wait::Block),
        ..Settings::new(url, cpus)
    }
}

/// Returns the run under the server's public name.
fn with_server_name(bench: &ExplainBench<'_>, run: Run) -> Run {
    let valid = run.valid;
    let mut run = bench.describe(run);
    run.valid = valid;
    // The bench advises a flag that does not exist here.
    run.notes.iter_mut().for_each(|note| *note = note.replace("; use a lower --rate", ""));
    run
}

/// Fills in the stages of one message, from its intended time: there are stamps only at its ends and at the call, so
/// that between them only the floor is known.
fn explain(run: &mut Run, server_ns: Option<f64>, below: &PathFloor) {
    let p50 = |name: &str| run.hops.get(name).and_then(|hop| hop.percentiles()[0]).map(|ns| ns as f64);
    let (Some(whole), Some(service)) = (p50("one_way"), p50("service")) else { return };
    let first = match run.phase {
        RunPhase::Cold => ("connect_bus", run.figures.get("connect_ns")),
        RunPhase::Idle | RunPhase::Steady => ("generator_late", run.figures.get("lateness_p50_ns")),
    };
    let first = (first.0, first.1.copied().unwrap_or(0.0));
    let stages = stages(whole, service, first, server_ns, below);
    let known: f64 = stages.iter().filter(|stage| stage.kind != StageKind::Unexplained).filter_map(|s| s.p50_ns).sum();
    set_figure(run, "message_ns", Some(whole));
    run.timed_from = Some("intended time".to_owned());
    set_figure(run, "stages_sum_percent", Some(100.0 * known / whole.max(1.0)));
    set_figure(run, "server_publish_ns", server_ns);
    if let PathFloor::Redis(floor) | PathFloor::Server { floor, .. } = below {
        set_figure(run, "socket_one_way_ns", Some(floor.wire_ns));
        set_figure(run, "socket_round_trip_ns", Some(floor.round_trip_ns));
    }
    run.stages = stages;
}

/// Returns the stage before the call, then those until the reader has the message. Parts measured elsewhere are lower
/// bounds of their stages; the rest above them is one stage.
fn stages(whole: f64, service: f64, first: (&str, f64), server_ns: Option<f64>, below: &PathFloor) -> Vec<Stage> {
    let server_ns = server_ns.unwrap_or(0.0);
    let (parts, rest) = match below {
        PathFloor::Redis(floor) => (
            vec![("send", floor.write_ns), ("server", server_ns), ("kernel_and_wake_up", floor.wire_ns - server_ns)],
            "hand_over",
        ),
        PathFloor::Server { floor, network_ns } => (
            vec![("send", floor.write_ns), ("kernel_and_wake_up", floor.wire_ns), ("network", *network_ns)],
            "server_and_clients",
        ),
        PathFloor::Log { transfer_ns } => (vec![("cache_line", *transfer_ns)], "log_and_wake_up"),
    };
    let left = service - parts.iter().map(|(_, ns)| ns.max(0.0)).sum::<f64>();
    let parts = parts.into_iter().filter(|(_, ns)| *ns > 0.0).map(|(name, ns)| {
        // The time reported by the server is a mean, not a floor.
        let least = if name == "server" { 0.0 } else { ns };
        bounded(name, ns, least, ns + left)
    });
    let rest = [unexplained(rest, left), unexplained("unexplained", whole - first.1 - service)];
    let first = (first.1 > 0.0).then(|| measured(first.0, first.1));
    first.into_iter().chain(parts).chain(rest.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::stages::stage_definition;
    use super::*;

    const FLOOR: SocketFloor = SocketFloor { wire_ns: 24_000.0, write_ns: 10_000.0, round_trip_ns: 50_000.0 };

    #[test]
    fn time_above_bare_sockets_belongs_to_the_bus() {
        let late = ("generator_late", 1_000.0);
        for (below, server_ns, parts) in [
            (
                PathFloor::Redis(FLOOR),
                Some(4_000.0),
                vec![("send", 1e4), ("server", 4e3), ("kernel_and_wake_up", 2e4), ("hand_over", 26e3)],
            ),
            (
                PathFloor::Server { floor: FLOOR, network_ns: 9_000.0 },
                None,
                vec![("send", 1e4), ("kernel_and_wake_up", 24e3), ("network", 9e3), ("server_and_clients", 17e3)],
            ),
            (PathFloor::Log { transfer_ns: 50.0 }, None, vec![("cache_line", 50.0), ("log_and_wake_up", 59_950.0)]),
        ] {
            let found = stages(61_000.0, 60_000.0, late, server_ns, &below);
            let times: Vec<(&str, f64)> = found.iter().map(|s| (s.name.as_str(), s.p50_ns.unwrap())).collect();
            assert_eq!(times, [vec![late], parts].concat());
            assert!(times.iter().all(|(name, _)| stage_definition(name).is_some()), "{times:?}");
        }
    }

    #[test]
    fn a_bus_faster_than_the_floor_adds_no_stage() {
        let found = stages(20_000.0, 20_000.0, ("generator_late", 0.0), Some(4_000.0), &PathFloor::Redis(FLOOR));
        let sum: f64 = found.iter().filter_map(|stage| stage.p50_ns).sum();
        assert_eq!(sum, 34_000.0);
        assert!(found.iter().all(|stage| stage.name != "hand_over"));
    }

    #[test]
    fn the_rest_is_unexplained_and_floor_parts_are_bounded() {
        let below = PathFloor::Server { floor: FLOOR, network_ns: 0.0 };
        let found = stages(61_000.0, 60_000.0, ("generator_late", 1_000.0), None, &below);
        let known: Vec<_> = found.iter().map(|stage| (stage.name.as_str(), stage.kind, stage.bounds_ns)).collect();
        assert_eq!(
            known,
            [
                ("generator_late", StageKind::Measured, None),
                ("send", StageKind::Bounded, Some([10_000.0, 36_000.0])),
                ("kernel_and_wake_up", StageKind::Bounded, Some([24_000.0, 50_000.0])),
                ("server_and_clients", StageKind::Unexplained, None),
            ]
        );
    }
}
