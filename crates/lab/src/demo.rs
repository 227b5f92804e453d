//! `demo`: the path on this machine, with and without a broker, in half a minute.

use std::net::{TcpStream, ToSocketAddrs};

use tickpath_clock::{Clock, Priority, Wait};
use tickpath_oms::Layout;

use crate::path::Ticks;
use crate::path::{self, Settings as PathSettings};
use crate::python_path;
use tickpath_compare::{Line, in_turn, table, value};
use tickpath_harness::{Lab, LabError, host};
use tickpath_result::{ResultFile, Run, median};
use tickpath_scratch::python::Python;
use tickpath_scratch::redis::{Server, ServerSettings, one_publish_per_process};

/// Ticks a second of the path alone, and enough of them for the 99.99th percentile.
const PATH_RATE: f64 = 20_000.0;
const PATH_TICKS: u64 = 100_000;

/// Ticks a second that a broker keeps up with too; both sides of a comparison get the same.
const COMPARED_RATE: f64 = 2_000.0;
const COMPARED_TICKS: u64 = 1_200;
const TRIED_TICKS: u64 = 600;
const REPEATS: u32 = 3;

/// What the ratios compare.
const FIGURE: &str = "tick_to_order.p50_ns";

/// What the demo is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A recording; made-up ticks if there is none.
    pub file: Option<std::path::PathBuf>,
    /// What made-up ticks depend on.
    pub seed: u64,
    /// Generator's and system's CPU.
    pub cpus: [usize; 2],
    /// `HOST:PORT` of a venue to connect to.
    pub venue: Option<String>,
}

/// What the demo found beside the result.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How to get what was not there.
    pub missing: Vec<String>,
    /// The wait and placement that suited Redis best.
    pub redis_best: Option<String>,
}

/// Runs the demo into a result file.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile, found: &mut Found) -> Result<(), LabError> {
    // First, so that a wrong address costs nothing.
    let connect = settings.venue.as_ref().map(|venue| connect_ns(lab, venue)).transpose()?;
    let (host, floor) = host::run(lab, &host::Settings { seconds: 1.0, cpus: settings.cpus })?;
    result.host = host;
    result.runs.push(floor);
    let ours = path_settings(settings, "shm://", Wait::Busy, PATH_RATE, PATH_TICKS);
    result.runs.push(path::run(lab, &ours)?);
    compare_with_redis(lab, settings, result, found)?;
    if let Some(connect) = connect {
        share_the_way(connect, result);
    }
    Ok(())
}

fn path_settings(settings: &Settings, target: &str, wait: Wait, rate: f64, count: u64) -> PathSettings {
    PathSettings {
        target: target.to_owned(),
        layout: Layout::Inline,
        wait,
        cpus: settings.cpus,
        venue_cpu: None,
        priority: Priority::Normal,
        ticks: Ticks { file: settings.file.clone(), seed: settings.seed, rate: Some(rate), speed: 1.0, count },
        repeat: 1,
    }
}

/// One way to run Redis: how the strategy waits, and the server's CPU.
#[derive(Debug, Clone, Copy)]
struct Way {
    wait: Wait,
    cpu: Option<usize>,
}

fn compare_with_redis(
    lab: &Lab<'_>,
    settings: &Settings,
    result: &mut ResultFile,
    found: &mut Found,
) -> Result<(), LabError> {
    let [generator, system] = settings.cpus;
    let ways = [
        Way { wait: Wait::Busy, cpu: Some(generator) },
        Way { wait: Wait::Yield, cpu: Some(generator) },
        Way { wait: Wait::Block, cpu: Some(generator) },
        Way { wait: Wait::Block, cpu: Some(system) },
        Way { wait: Wait::Block, cpu: None },
    ];
    let mut tried: Vec<(Way, f64)> = Vec::new();
    for way in ways {
        let Some(server) = start(lab, way.cpu)? else {
            found.missing.push(
                "redis-server is not installed: with it the same path is run over Redis too. Install it with: \
                 apt-get install redis-server"
                    .to_owned(),
            );
            return Ok(());
        };
        let run = path::run(lab, &path_settings(settings, &server.url(), way.wait, COMPARED_RATE, TRIED_TICKS))?;
        let p50 = value(&run, FIGURE).unwrap_or(f64::INFINITY);
        tried.push((way, p50));
    }
    tried.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some(&(best, _)) = tried.first() else { return Ok(()) };
    let Some(&(blocking, _)) = tried.iter().find(|(way, _)| way.wait == Wait::Block) else { return Ok(()) };
    let place = best.cpu.map_or("on any CPU".to_owned(), |cpu| format!("on CPU {cpu}"));
    found.redis_best = Some(format!("{}, the server {place}", best.wait));
    let python = Python::prepare(lab.progress);
    interleave(lab, settings, result, [best, blocking], python.as_ref().ok())?;
    match (python, start(lab, None)?) {
        (Ok(python), Some(server)) => {
            lab.progress.step("python3 with redis-py, one publish a process", 3.0);
            let (publish, message) = one_publish_per_process(&server, &python.program, 5)?;
            push_python(result, publish, message);
        }
        (Err(why), _) => found.missing.push(format!("the same in Python: {why}")),
        (_, None) => {}
    }
    Ok(())
}

fn start(lab: &Lab<'_>, cpu: Option<usize>) -> Result<Option<Server>, LabError> {
    Server::start(lab.folder(), &ServerSettings { cpu, ..ServerSettings::default() }, &lab.clock)
}

/// Log and Redis in turn, each at the wait that suits it, then both blocking, then Python over Redis.
fn interleave(
    lab: &Lab<'_>,
    settings: &Settings,
    result: &mut ResultFile,
    ways: [Way; 2],
    python: Option<&Python>,
) -> Result<(), LabError> {
    let mut pairs: [Vec<[Option<f64>; 2]>; 2] = Default::default();
    let mut python_pairs = Vec::new();
    for repeat in 1..=REPEATS {
        for ((ours, theirs), pairs) in [Wait::Busy, Wait::Block].into_iter().zip(ways).zip(&mut pairs) {
            let mut p50 = [None; 2];
            for (target, wait) in in_turn(repeat, [(None, ours), (Some(theirs.cpu), theirs.wait)]) {
                let server = match target {
                    Some(cpu) => start(lab, cpu)?,
                    None => None,
                };
                let url = server.as_ref().map_or("shm://".to_owned(), Server::url);
                let mut run = path::run(
                    lab,
                    &PathSettings { repeat, ..path_settings(settings, &url, wait, COMPARED_RATE, COMPARED_TICKS) },
                )?;
                if let Some(server) = &server {
                    run.target = "redis://".to_owned();
                    run.software.server = Some("redis-server".to_owned());
                    run.software.server_version = Some(server.version.clone());
                    run.params.set("server_cpu", theirs.cpu.map_or("any".to_owned(), |cpu| cpu.to_string()));
                }
                // A run that broke a rule proves nothing.
                p50[usize::from(target.is_none())] = value(&run, FIGURE).filter(|_| run.valid);
                result.runs.push(run);
            }
            pairs.push(p50);
        }
        if let (Some(python), Some(server)) = (python, start(lab, None)?) {
            let run = python_path::run(lab, python, &server, COMPARED_RATE as u64, COMPARED_TICKS, repeat)?;
            let log = pairs[0].last().and_then(|[_, log]| *log);
            python_pairs.push([value(&run, FIGURE).filter(|_| run.valid), log]);
            result.runs.push(run);
        }
    }
    let [best, block] = pairs;
    result.comparisons.extend(table([
        Line::new("redis_to_log_tick_to_order", FIGURE, best),
        Line::new("redis_to_log_tick_to_order_block", FIGURE, block),
        Line::new("python_redis_to_log_tick_to_order", FIGURE, python_pairs),
    ]));
    Ok(())
}

fn push_python(result: &mut ResultFile, publish: f64, message: f64) {
    let mut run = Run {
        target: "redis://".to_owned(),
        client: "redis-py".to_owned(),
        repeat: 1,
        phase: tickpath_result::Phase::Cold,
        valid: true,
        notes: vec![
            "one publish a process through a lazy connection, to a subscriber that spins on get_message()".to_owned(),
        ],
        ..Run::default()
    };
    run.figures.insert("publish_one_process_ns".to_owned(), publish);
    run.figures.insert("message_one_process_ns".to_owned(), message);
    result.runs.push(run);
}

/// The venue's distance: the median of some TCP connects, in nanoseconds.
fn connect_ns(lab: &Lab<'_>, venue: &str) -> Result<f64, LabError> {
    lab.progress.step("connecting to the venue", 1.0);
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

/// Each path's share of the way to the venue.
fn share_the_way(connect: f64, result: &mut ResultFile) {
    for run in &mut result.runs {
        let Some(path) = run.hops.get("tick_to_venue").and_then(|hop| hop.percentiles()[0]) else { continue };
        run.figures.insert("tcp_connect_ns".to_owned(), connect);
        let share = 100.0 * path as f64 / (path as f64 + connect / 2.0);
        run.figures.insert("path_share_percent".to_owned(), share);
    }
}
