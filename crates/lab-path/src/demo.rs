//! `demo`: the path on this machine, beside the same path with a single change at a time, and beside usual Python code.

mod findings;
pub mod text;

use std::net::{TcpStream, ToSocketAddrs};

use tickpath_clock::{Clock, Priority, Wait, cpus};
use tickpath_oms_runtime::Layout;

use self::findings::COMPARED_RATE;
pub use self::findings::{DemoChange, DemoFindings};
use crate::path::{self, Settings as PathSettings, TickSource};
use crate::python_path::{self, ScriptTransport};
use tickpath_lab_compare::{RatioLine, in_turn, ratio_table, value};
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::busy_processes::ProcessTable;
use tickpath_lab_harness::rules::refuse_loss;
use tickpath_lab_harness::{Lab, LabError, host, keep_runs};
use tickpath_lab_result::{MessageCounts, PERCENTILES, ResultFile, Run, RunPhase, median};
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings, one_publish_per_process};
use tickpath_lab_tools::scripts::Library;

const TITLE: &str = "From a tick to an order at a venue";

/// The approximate duration of the demo, in seconds.
pub const SECONDS: u32 = 90;

/// Ticks a second of the path alone, and enough ticks for the 99.99th percentile.
const PATH_RATE: f64 = 20_000.0;
const PATH_TICKS: u64 = 100_000;

const COMPARED_TICKS: u64 = 500;
const TRIED_TICKS: u64 = 300;
/// Pairs per comparison: with seven, all six intervals hold in 90 % of demos.
const ROUNDS: u32 = 7;

/// Processes with a single publish each: as many as a median needs.
const PROCESSES: u64 = PERCENTILES[0].samples;

/// The figure that the ratios compare.
const FIGURE: &str = "tick_to_order.p50_ns";

/// The CPU figure that is reported beside it where both sides spin or sleep by themselves.
const CPU: &str = "receiver_cpu_per_message_ns";

/// Settings of the demo.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A recording; made-up ticks if there is none.
    pub file: Option<std::path::PathBuf>,
    /// The seed of made-up ticks.
    pub seed: u64,
    /// Generator's and system's CPU.
    pub cpus: [usize; 2],
    /// `HOST:PORT` of a venue to connect to.
    pub venue: Option<String>,
}

/// Runs the demo into a result file.
pub fn run(
    lab: &Lab<'_>,
    settings: &Settings,
    result: &mut ResultFile,
    found: &mut DemoFindings,
) -> Result<(), LabError> {
    // Connects first, so that a wrong address costs no measuring time.
    let connect = settings.venue.as_ref().map(|venue| connect_ns(lab, venue)).transpose()?;
    let before = ProcessTable::now(&lab.clock);
    let done = measure(lab, settings, result, found);
    found.others = ProcessTable::now(&lab.clock).busy_since(&before, std::process::id(), &settings.cpus);
    done?;
    if let Some(connect) = connect {
        add_venue_share(connect, result);
    }
    result.title = Some(TITLE.to_owned());
    result.findings = text::findings(result, found);
    Ok(())
}

fn measure(
    lab: &Lab<'_>,
    settings: &Settings,
    result: &mut ResultFile,
    found: &mut DemoFindings,
) -> Result<(), LabError> {
    let (host, floor) = host::run(lab, &host::Settings { seconds: 1.0, cpus: settings.cpus })?;
    result.host = host;
    result.runs.push(floor);
    let log_path = path_settings(settings, "shm://", Wait::Busy, PATH_RATE, PATH_TICKS);
    keep_runs(result, path::run(lab, &log_path).map(|run| vec![run]))?;
    let Some(best) = find_best_placements(lab, settings)? else {
        found.missing.push(
            "redis-server is not installed: with it the same path is run over Redis too. Install it with: \
             apt-get install redis-server"
                .to_owned(),
        );
        return Ok(());
    };
    let (python, tickpath) = (Library::RedisPy.python(lab), Library::Tickpath.python(lab));
    let pythons = [python.as_ref().ok(), tickpath.as_ref().ok()];
    let changes = demo_changes(&best, pythons.map(|python| Some(python?.runtime.as_str())));
    measure_changes(lab, settings, result, found, changes, pythons)?;
    found.missing.extend(tickpath.err().map(|why| format!("the path in Python over the log: {why}")));
    match (python, start(lab, None)?) {
        (Ok(python), Some(server)) => {
            lab.step("python3 with redis-py, one publish a process", 8.0)?;
            let times = one_publish_per_process(lab, &server, &python, PROCESSES)?;
            result.runs.push(one_publish_run(times));
        }
        (Err(why), _) => found.missing.push(format!("the same in Python: {why}")),
        (_, None) => {}
    }
    Ok(())
}

fn path_settings(settings: &Settings, target: &str, wait: Wait, rate: f64, count: u64) -> PathSettings {
    PathSettings {
        target: target.to_owned(),
        external_client: None,
        layout: Layout::Inline,
        wait,
        cpus: settings.cpus,
        venue_cpu: None,
        generator_wait: None,
        priority: Priority::Normal,
        ticks: TickSource {
            file: settings.file.clone(),
            seed: settings.seed,
            rate: Some(rate),
            arrivals: ArrivalProcess::Steady,
            speed: 1.0,
            count,
        },
        repeat: 1,
    }
}

/// A way to run Redis: the strategy's wait mode, the server's CPU, and the wait mode of feed and venue, which may share
/// that CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RedisPlacement {
    wait: Wait,
    server_cpu: Option<usize>,
    generator_wait: Wait,
}

impl RedisPlacement {
    /// Returns each placement that may be the best. A server gets a CPU of its own if there are more than two;
    /// otherwise a feed that sleeps between ticks leaves its CPU to the server.
    fn all([generator, system]: [usize; 2]) -> Vec<Self> {
        let spare = cpus().into_iter().find(|cpu| ![generator, system].contains(cpu));
        let placed = |wait, server_cpu, generator_wait| Self { wait, server_cpu, generator_wait };
        let mut all = vec![
            placed(Wait::Busy, Some(generator), Wait::Yield),
            placed(Wait::Busy, Some(generator), Wait::Block),
            placed(Wait::Yield, Some(generator), Wait::Yield),
            placed(Wait::Block, Some(generator), Wait::Block),
            placed(Wait::Block, Some(system), Wait::Block),
            placed(Wait::Block, None, Wait::Block),
        ];
        all.extend(spare.map(|spare| placed(Wait::Busy, Some(spare), Wait::Yield)));
        all.extend(spare.map(|spare| placed(Wait::Block, Some(spare), Wait::Block)));
        all
    }

    fn server(self) -> String {
        self.server_cpu.map_or("on any CPU".to_owned(), |cpu| format!("on CPU {cpu}"))
    }
}

/// The fastest ways to run Redis: of all, of those with a spinning strategy, and of those with a sleeping strategy.
#[derive(Debug, Clone, Copy)]
struct BestPlacements {
    of_all: RedisPlacement,
    spinning: RedisPlacement,
    blocking: RedisPlacement,
}

/// Tries each placement briefly; returns `None` without Redis.
fn find_best_placements(lab: &Lab<'_>, settings: &Settings) -> Result<Option<BestPlacements>, LabError> {
    let mut tried: Vec<(RedisPlacement, bool, f64)> = Vec::new();
    for placed in RedisPlacement::all(settings.cpus) {
        let Some(server) = start(lab, placed.server_cpu)? else { return Ok(None) };
        let run = run_over_redis(lab, settings, &server, placed, TRIED_TICKS, 1)?;
        tried.push((placed, run.valid, value(&run, FIGURE).unwrap_or(f64::INFINITY)));
    }
    // A placement that breaks a rule here would break it in the comparison too.
    tried.sort_by(|(_, a_valid, a), (_, b_valid, b)| b_valid.cmp(a_valid).then(a.total_cmp(b)));
    let best = |which: fn(Wait) -> bool| tried.iter().map(|(placed, ..)| *placed).find(|placed| which(placed.wait));
    let found = (best(|_| true), best(|wait| wait == Wait::Busy), best(|wait| wait == Wait::Block));
    let (Some(of_all), Some(busy), Some(block)) = found else { return Ok(None) };
    Ok(Some(BestPlacements { of_all, spinning: busy, blocking: block }))
}

fn start(lab: &Lab<'_>, cpu: Option<usize>) -> Result<Option<ScratchServer>, LabError> {
    ScratchServer::start(lab.folder(), &ServerSettings { cpu, ..ServerSettings::default() }, &lab.clock)
}

fn run_over_redis(
    lab: &Lab<'_>,
    settings: &Settings,
    server: &ScratchServer,
    placed: RedisPlacement,
    count: u64,
    repeat: u32,
) -> Result<Run, LabError> {
    let generator_wait = Some(placed.generator_wait);
    let over = path_settings(settings, &server.url(), placed.wait, COMPARED_RATE, count);
    let mut run = path::run(lab, &PathSettings { generator_wait, repeat, ..over })?;
    describe_server(&mut run, server, placed);
    Ok(run)
}

fn describe_server(run: &mut Run, server: &ScratchServer, placed: RedisPlacement) {
    run.target = "redis://".to_owned();
    run.software.server = Some("redis-server".to_owned());
    run.software.server_version = Some(server.version.clone());
    run.params.set("server_cpu", placed.server_cpu.map_or("any".to_owned(), |cpu| cpu.to_string()));
}

/// A side of a comparison; Python runs over Redis, or without Redis over the log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DemoSide {
    Log { wait: Wait, generator_wait: Wait },
    Redis(RedisPlacement),
    Python(Option<RedisPlacement>),
}

/// Returns the comparisons and their sides. In the first pair each side runs in its fastest form; in every other pair
/// with a ratio a single thing differs, and the rest is what suits Redis best. Python runs where possible, by redis-py
/// and by the package `tickpath`, each with its runtime.
fn demo_changes(best: &BestPlacements, [redis_py, tickpath]: [Option<&str>; 2]) -> Vec<(DemoChange, [DemoSide; 2])> {
    let change = |name, what: String, sides| DemoChange {
        name,
        what,
        sides,
        no_ratio: None,
        raw_ns: [None; 2],
        cpu_ns: [None; 2],
    };
    let transport = |name, what: String| change(name, what, ["over Redis", "over the log"]);
    let log = |wait, generator_wait| DemoSide::Log { wait, generator_wait };
    let BestPlacements { of_all, spinning: busy, blocking: block } = *best;
    let fastest = format!(
        "Redis in place of the log, each as it is fastest here (log: busy; Redis: {}, its server {})",
        of_all.wait,
        of_all.server()
    );
    let alike =
        |how, placed: RedisPlacement| format!("Redis in place of the log, both {how}, the server {}", placed.server());
    let mut changes = vec![
        (transport("redis_to_log_tick_to_order", fastest), [DemoSide::Redis(of_all), log(Wait::Busy, Wait::Busy)]),
        (
            transport("redis_to_log_tick_to_order_busy", alike("spinning", busy)),
            [DemoSide::Redis(busy), log(Wait::Busy, busy.generator_wait)],
        ),
        (
            transport("redis_to_log_tick_to_order_block", alike("sleeping", block)),
            [DemoSide::Redis(block), log(Wait::Block, block.generator_wait)],
        ),
        (
            change(
                "block_to_busy_tick_to_order_log",
                "A strategy that sleeps in place of one that spins, over the log".to_owned(),
                ["sleeping", "spinning"],
            ),
            [log(Wait::Block, block.generator_wait), log(Wait::Busy, block.generator_wait)],
        ),
        (
            change(
                "adaptive_to_busy_tick_to_order_log",
                "A strategy that sleeps, and wakes in time at so steady a pace, in place of one that spins".to_owned(),
                ["adaptive", "spinning"],
            ),
            [log(Wait::Adaptive, Wait::Busy), log(Wait::Busy, Wait::Busy)],
        ),
    ];
    if redis_py.is_some() {
        let what = "The path in usual Python code, and ours in Rust, both over Redis, sleeping, same CPUs";
        let name = "python_path_to_rust_path_tick_to_order";
        let both = change(name, what.to_owned(), ["in Python", "in Rust"]);
        let no_ratio = Some("no ratio: in Python the order is JSON, goes over Redis, and has no risk check or journal");
        changes.push((DemoChange { no_ratio, ..both }, [DemoSide::Python(Some(block)), DemoSide::Redis(block)]));
    }
    if redis_py.is_some() && tickpath.is_some() {
        let what = "The same path in Python, over the log in place of Redis: one script, JSON both ways, sleeping";
        let both = transport("python_redis_to_python_log_tick_to_order", what.to_owned());
        let no_ratio = (redis_py != tickpath).then_some("no ratio: the two ran on different Pythons");
        changes.push((DemoChange { no_ratio, ..both }, [DemoSide::Python(Some(block)), DemoSide::Python(None)]));
    }
    changes
}

/// Runs every side in turn, in reverse order every second time, and compares them.
fn measure_changes(
    lab: &Lab<'_>,
    settings: &Settings,
    result: &mut ResultFile,
    found: &mut DemoFindings,
    changes: Vec<(DemoChange, [DemoSide; 2])>,
    pythons: [Option<&Python>; 2],
) -> Result<(), LabError> {
    // The figure of each run, the figure again only if the run is valid (an invalid run proves nothing), and its CPU
    // time.
    let mut sides: Vec<(DemoSide, Vec<[Option<f64>; 3]>)> = Vec::new();
    for side in changes.iter().flat_map(|(_, sides)| sides) {
        if sides.iter().all(|(known, _)| known != side) {
            sides.push((*side, Vec::new()));
        }
    }
    for repeat in 1..=ROUNDS {
        for (side, measured) in in_turn(repeat, &mut sides) {
            let run = run_side(lab, settings, *side, pythons, repeat);
            if let Ok(run) = &run {
                let p50_ns = value(run, FIGURE);
                measured.push([p50_ns, p50_ns.filter(|_| run.valid), value(run, CPU)]);
            }
            keep_runs(result, run.map(|run| vec![run]))?;
        }
    }
    let of = |side: DemoSide| sides.iter().find(|(known, _)| *known == side).map_or(&[][..], |(_, measured)| measured);
    let middle = |side, index: usize| median(of(side).iter().filter_map(|measured| measured[index]).collect());
    let line = |(change, [a, b]): &(DemoChange, [DemoSide; 2])| {
        let pairs = of(*a).iter().zip(of(*b)).map(|([_, a, _], [_, b, _])| [*a, *b]).collect();
        RatioLine { no_ratio: change.no_ratio.map(str::to_owned), ..RatioLine::new(change.name, FIGURE, pairs) }
    };
    result.comparisons.extend(ratio_table(changes.iter().map(line)).into_iter().map(|mut of| {
        let change = changes.iter().map(|(change, _)| change).find(|change| change.name == of.name);
        of.change = change.map(|change| change.what.clone());
        of.sides = change.map(|change| change.sides.map(str::to_owned));
        of
    }));
    let measured_change = |(change, both): (DemoChange, [DemoSide; 2])| {
        let waits_alone = both.iter().all(|side| matches!(side, DemoSide::Log { .. }));
        let cpu_ns = both.map(|side| middle(side, 2).filter(|_| waits_alone));
        DemoChange { raw_ns: both.map(|side| middle(side, 0)), cpu_ns, ..change }
    };
    found.changes = changes.into_iter().map(measured_change).collect();
    Ok(())
}

fn run_side(
    lab: &Lab<'_>,
    settings: &Settings,
    side: DemoSide,
    [redis_py, tickpath]: [Option<&Python>; 2],
    repeat: u32,
) -> Result<Run, LabError> {
    let server = |placed: RedisPlacement| {
        let gone = || LabError::Failed("redis-server is no longer installed".to_owned());
        start(lab, placed.server_cpu)?.ok_or_else(gone)
    };
    let in_python = |library, python: Option<&Python>, url: &str| {
        let python = python.ok_or_else(|| LabError::Failed("there is no Python".to_owned()))?;
        let over = ScriptTransport { library, python, url };
        python_path::run(lab, over, settings.cpus, COMPARED_RATE as u64, COMPARED_TICKS, repeat)
    };
    match side {
        DemoSide::Python(Some(placed)) => {
            let server = server(placed)?;
            let mut run = in_python(Library::RedisPy, redis_py, &server.url())?;
            describe_server(&mut run, &server, placed);
            Ok(run)
        }
        DemoSide::Python(None) => in_python(Library::Tickpath, tickpath, "shm://"),
        DemoSide::Redis(placed) => run_over_redis(lab, settings, &server(placed)?, placed, COMPARED_TICKS, repeat),
        DemoSide::Log { wait, generator_wait } => {
            let over = path_settings(settings, "shm://", wait, COMPARED_RATE, COMPARED_TICKS);
            path::run(lab, &PathSettings { generator_wait: Some(generator_wait), repeat, ..over })
        }
    }
}

/// Makes the run of single publishes per process: nanoseconds of each publish call and of each message. Too few of them
/// have no median.
fn one_publish_run([publishes, messages]: [Vec<f64>; 2]) -> Run {
    let received = messages.len() as u64;
    let mut run = Run {
        target: "redis://".to_owned(),
        client: "redis-py".to_owned(),
        repeat: 1,
        phase: RunPhase::Cold,
        valid: true,
        counts: MessageCounts { sent: PROCESSES, received, lost: PROCESSES - received, ..MessageCounts::default() },
        notes: vec![
            "one publish a process through a lazy connection, to a subscriber that spins on get_message()".to_owned(),
        ],
        ..Run::default()
    };
    refuse_loss(&mut run);
    for (name, times) in [("publish_one_process_ns", publishes), ("message_one_process_ns", messages)] {
        let enough = times.len() as u64 >= PERCENTILES[0].samples;
        run.figures.extend(median(times).filter(|_| enough).map(|ns| (name.to_owned(), ns)));
    }
    run
}

/// Measures the venue's distance: the median of several TCP connects, in nanoseconds.
fn connect_ns(lab: &Lab<'_>, venue: &str) -> Result<f64, LabError> {
    lab.step("connecting to the venue", 1.0)?;
    let failed =
        |what: String| LabError::Setting(format!("--venue {venue}: {what}; write HOST:PORT of a server that listens"));
    let address = venue.to_socket_addrs().map_err(|e| failed(e.to_string()))?.next();
    let address = address.ok_or_else(|| failed("no address".to_owned()))?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let from = lab.clock.ticks();
        let limit = std::time::Duration::from_secs(5);
        TcpStream::connect_timeout(&address, limit).map_err(|e| failed(e.to_string()))?;
        times.push(lab.clock.ns_between(from, lab.clock.ticks()) as f64);
    }
    Ok(median(times).unwrap_or(f64::NAN))
}

/// Adds each path's share of the time to the venue.
fn add_venue_share(connect: f64, result: &mut ResultFile) {
    for run in &mut result.runs {
        let Some(path) = run.hops.get("tick_to_venue").and_then(|hop| hop.percentiles()[0]) else { continue };
        run.figures.insert("tcp_connect_ns".to_owned(), connect);
        let share = 100.0 * path as f64 / (path as f64 + connect / 2.0);
        run.figures.insert("path_share_percent".to_owned(), share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_message_removes_the_median_and_invalidates_the_run() {
        let times = |count: u64| vec![5.0; count as usize];
        let whole = one_publish_run([times(PROCESSES), times(PROCESSES)]);
        assert!(whole.valid && whole.figures["message_one_process_ns"] == 5.0);
        let short = one_publish_run([times(PROCESSES), times(PROCESSES - 1)]);
        assert!(!short.valid && !short.figures.contains_key("message_one_process_ns"));
        assert_eq!((short.counts.received, short.counts.lost), (19, 1));
    }

    #[test]
    fn sides_with_several_differences_have_no_ratio() {
        let placed = RedisPlacement { wait: Wait::Block, server_cpu: None, generator_wait: Wait::Block };
        let best = BestPlacements {
            of_all: placed,
            spinning: RedisPlacement { wait: Wait::Busy, ..placed },
            blocking: placed,
        };
        let ratios = |pythons| {
            let changes = demo_changes(&best, pythons);
            for (change, sides) in &changes {
                let in_python = sides.iter().filter(|side| matches!(side, DemoSide::Python(_))).count();
                let differ = in_python == 1 || in_python == 2 && pythons[0] != pythons[1];
                assert_eq!(change.no_ratio.is_some(), differ, "{}", change.name);
            }
            (changes.len(), changes.iter().filter(|(change, _)| change.no_ratio.is_none()).count())
        };
        let [old, new] = [Some("CPython 3.11.7"), Some("CPython 3.14.0")];
        assert_eq!(
            [[None, None], [old, None], [None, new], [old, old], [old, new]].map(ratios),
            [(5, 5), (6, 5), (5, 5), (7, 6), (7, 5)]
        );
    }
}
