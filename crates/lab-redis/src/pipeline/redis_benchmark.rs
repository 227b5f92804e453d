//! Our generator beside redis-benchmark: the same commands, server, CPUs, connections and depths, in turn.
//!
//! redis-benchmark gets the command itself instead of the name of a test, so that both send the same bytes for the same
//! key, which is ours.

use std::io::Read;
use std::process::{Command as Process, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use tickpath_clock::sleep_ns;

use super::assemble::{OF_CLIENT, OF_SERVER, describe, per_command};
use super::target::ClaimedKey;
use super::usage::ResourceUsage;
use super::{BenchPart, PipelineClient, RedisCommand, Settings, run};
use tickpath_lab_compare::{RatioLine, in_turn, ratio_table};
use tickpath_lab_harness::{Lab, LabError, StabilityCheck};
use tickpath_lab_result::{Comparison, Hop, MessageCounts, Run};

/// The compared cases: every depth with every number of connections and every command.
const DEPTHS: [u64; 3] = [1, 10, 100];
const CONNECTIONS: [usize; 2] = [1, 50];
const COMMANDS: [RedisCommand; 3] = [RedisCommand::Ping, RedisCommand::Set, RedisCommand::Get];

/// Duration of the probe that sets the number of commands of a run, in seconds.
const PROBE_SECONDS: f64 = 0.2;

/// Min and max commands of a run.
const MIN_COMMANDS: u64 = 10_000;
const MAX_COMMANDS: u64 = 50_000_000;

/// Max duration of redis-benchmark as a multiple of ours, and a grace period in seconds.
const MAX_DURATION_RATIO: f64 = 10.0;
const GRACE_SECONDS: f64 = 10.0;

/// The name of redis-benchmark in results and errors.
const NAME: &str = "redis-benchmark";

/// Compared figures: the figure's name, its name in comparisons, and whether it applies to depth 1 only.
const FIGURES: [(&str, &str, bool); 3] = [
    ("throughput_per_s", "throughput", false),
    ("client_cpu_per_command_ns", "cpu", false),
    ("round_trip.p50_ns", "latency", true),
];

/// A case: ours and theirs in turn, `repeats` times.
#[derive(Debug, Clone, Copy)]
struct BenchmarkCase {
    command: RedisCommand,
    depth: u64,
    connections: usize,
    /// The number of commands of a run.
    count: u64,
}

/// Runs all cases; each run is added to `runs` as soon as it ends. Only the server, the CPUs and the duration of
/// `settings` count.
pub fn compare_redis_benchmark(
    lab: &Lab<'_>,
    settings: &Settings,
    repeats: u32,
    runs: &mut Vec<Run>,
) -> Result<Vec<Comparison>, LabError> {
    if settings.target.generator_address.has_password() {
        let sentence = format!(
            "{NAME} takes a password on its command line alone, where every user of this host reads it; compare on a \
             server that wants none"
        );
        return Err(LabError::Setting(sentence));
    }
    let version = version()?;
    let settings =
        Settings { client: PipelineClient::Rust, rate: None, part: BenchPart::Comparison, ..settings.clone() };
    let cases = cases(lab, &settings)?;
    let before = runs.len();
    for repeat in 1..=repeats {
        for case in &cases {
            let settings = case.settings(&settings, repeat);
            for client in in_turn(repeat, [PipelineClient::Rust.name(), NAME]) {
                match client {
                    NAME => runs.push(run_redis_benchmark(lab, &settings, &version)?),
                    _ => run(lab, &settings, runs)?,
                }
            }
        }
    }
    Ok(ratio_table(cases.iter().flat_map(|case| case.lines(&runs[before..]))))
}

/// Returns the cases, each with as many commands as our generator sends in the duration.
fn cases(lab: &Lab<'_>, settings: &Settings) -> Result<Vec<BenchmarkCase>, LabError> {
    let mut cases = Vec::new();
    for depth in DEPTHS {
        for connections in CONNECTIONS {
            for command in COMMANDS {
                let seconds = PROBE_SECONDS;
                let probe = Settings { seconds, depth, connections, command, count: None, ..settings.clone() };
                let mut probes = Vec::new();
                run(lab, &probe, &mut probes)?;
                let reached = probes.first().and_then(|run| run.throughput_per_s).unwrap_or(0.0);
                let count = ((reached * settings.seconds) as u64).clamp(MIN_COMMANDS, MAX_COMMANDS);
                cases.push(BenchmarkCase { command, depth, connections, count });
            }
        }
    }
    Ok(cases)
}

impl BenchmarkCase {
    fn settings(&self, settings: &Settings, repeat: u32) -> Settings {
        let Self { command, depth, connections, count } = *self;
        Settings { command, depth, connections, count: Some(count), repeat, ..settings.clone() }
    }

    /// Returns the lines of ratios of ours to theirs.
    fn lines(&self, runs: &[Run]) -> Vec<RatioLine> {
        let Self { command, depth, connections, .. } = *self;
        let of_case = |run: &&Run| {
            run.params.text("command").as_deref() == Some(command.name())
                && run.params.whole("depth") == Some(depth)
                && run.params.whole("connections") == Some(connections as u64)
        };
        let figures = FIGURES.iter().filter(|(_, _, of_depth_one)| !of_depth_one || depth == 1);
        let line = figures.map(|(figure, what, _)| {
            let name = format!("ours_to_redis_benchmark {what} {command} depth={depth} connections={connections}");
            let (foreign, own): (Vec<&Run>, _) = runs.iter().filter(of_case).partition(|run| run.client == NAME);
            RatioLine::of_runs(&name, figure, own, foreign)
        });
        line.collect()
    }
}

fn run_redis_benchmark(lab: &Lab<'_>, settings: &Settings, version: &str) -> Result<Run, LabError> {
    lab.step(&format!("{NAME} {}, depth {}", settings.command, settings.depth), settings.seconds)?;
    let around = StabilityCheck::begin(lab, settings.cpus)?;
    let key = ClaimedKey::claim(lab, &settings.target, settings.command)?;
    let count = settings.count.unwrap_or(MIN_COMMANDS);
    let before = settings.target.usage();
    let (output, used) = benchmark(settings, &key.name, count)?;
    let served = settings.target.usage().since(before);
    drop(key);
    let measured = BenchmarkResult::parse(&output).ok_or_else(|| {
        LabError::Failed(format!("{NAME} printed no line of eight fields, but: '{}'; use its version 7", output.trim()))
    })?;
    let mut run = Run {
        client: NAME.to_owned(),
        repeat: settings.repeat,
        valid: true,
        counts: MessageCounts { sent: count, received: count, ..MessageCounts::default() },
        elapsed_ns: Some((count as f64 * 1e9 / measured.throughput_per_s) as u64),
        throughput_per_s: Some(measured.throughput_per_s),
        hops: [("round_trip".to_owned(), measured.hop(count))].into(),
        ..Run::default()
    };
    describe(&mut run, settings);
    run.software.client = Some(NAME.to_owned());
    run.software.client_version = Some(version.to_owned());
    per_command(&mut run, served, OF_SERVER);
    // The kernel does not count its socket calls, and redis-benchmark does not report them.
    per_command(&mut run, ResourceUsage { calls: None, ..used }, OF_CLIENT);
    run.notes.push("the client's figures include some milliseconds of its start".to_owned());
    around.end(lab, std::slice::from_mut(&mut run))?;
    Ok(run)
}

/// Results that redis-benchmark reports for a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BenchmarkResult {
    throughput_per_s: f64,
    mean_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
    max_ns: f64,
}

impl BenchmarkResult {
    /// Parses the last line: a title, commands a second, and in milliseconds the mean, min, p50, p95, p99 and max.
    fn parse(output: &str) -> Option<Self> {
        let line = output.lines().rev().find(|line| !line.trim().is_empty())?;
        let fields: Vec<&str> = line.trim().split(',').map(|field| field.trim_matches('"')).collect();
        // The title may contain a comma; the fields behind it do not.
        let numbers = fields.get(fields.len().checked_sub(7)?..)?;
        let numbers: Vec<f64> = numbers.iter().map(|text| text.parse::<f64>().ok()).collect::<Option<_>>()?;
        let &[throughput_per_s, mean, _, p50, _, p99, max] = &numbers[..] else { return None };
        let [mean_ns, p50_ns, p99_ns, max_ns] = [mean, p50, p99, max].map(|ms| ms * 1e6);
        (throughput_per_s > 0.0).then_some(Self { throughput_per_s, mean_ns, p50_ns, p99_ns, max_ns })
    }

    fn hop(&self, count: u64) -> Hop {
        let max = self.max_ns as u64;
        Hop {
            count,
            mean_ns: Some(self.mean_ns),
            p50_ns: Some(self.p50_ns as u64),
            p99_ns: Some(self.p99_ns as u64),
            max_ns: Some(max),
            worst_ns: [0, 0, max],
            ..Hop::default()
        }
    }
}

fn version() -> Result<String, LabError> {
    let output = Process::new(NAME).arg("--version").output().map_err(|e| {
        LabError::Failed(format!("{NAME} does not start ({e}); install it with: apt-get install redis-tools"))
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_whitespace().nth(1).unwrap_or("unknown").to_owned())
}

/// Runs redis-benchmark; returns its output and its resource usage.
fn benchmark(settings: &Settings, key: &str, count: u64) -> Result<(String, ResourceUsage), LabError> {
    let failed = |what: String| LabError::Failed(format!("{NAME} {what}; try again, or compare without it"));
    let mut process = Process::new("setpriv");
    // It ends with this process, however this process ends.
    process.args(["--pdeathsig", "KILL", "taskset", "-c", &settings.cpus[0].to_string(), NAME]);
    process.args(settings.target.generator_address.arguments()).arg("--csv");
    let numbers = [("-n", count), ("-c", settings.connections as u64), ("-P", settings.depth)];
    process.args(numbers.into_iter().flat_map(|(flag, number)| [flag.to_owned(), number.to_string()]));
    process.args(settings.command.words(key, ""));
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = BenchmarkProcess(process.spawn().map_err(|e| failed(format!("does not start ({e})")))?);
    let mut out = running.0.stdout.take().expect("it is a pipe");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut all = String::new();
        let _ = out.read_to_string(&mut all);
        sender.send(all)
    });
    let seconds = settings.seconds * MAX_DURATION_RATIO + GRACE_SECONDS;
    let received = receiver.recv_timeout(Duration::from_secs_f64(seconds));
    let all = received.map_err(|_| failed(format!("was not done within {seconds:.0} s")))?;
    let used = running.last_usage();
    let status = running.0.wait().map_err(|e| failed(e.to_string()))?;
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    Ok((all, used))
}

/// A process that ends with this value.
struct BenchmarkProcess(std::process::Child);

impl BenchmarkProcess {
    /// Returns the total usage: an exited process keeps its counts until its parent waits for it.
    fn last_usage(&self) -> ResourceUsage {
        const MAX_POLLS: usize = 2_000;
        let pid = self.0.id();
        for _ in 0..MAX_POLLS {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name before it may contain any character, a parenthesis too.
            if stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z')) {
                break;
            }
            sleep_ns(1_000_000);
        }
        ResourceUsage::of(pid)
    }
}

impl Drop for BenchmarkProcess {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_line_is_read_under_any_title() {
        let head = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
                    \"p99_latency_ms\",\"max_latency_ms\"\n";
        let numbers = "\"199600.80\",\"0.140\",\"0.040\",\"0.135\",\"0.215\",\"0.303\",\"1.031\"\n";
        let expected = BenchmarkResult {
            throughput_per_s: 199_600.8,
            mean_ns: 0.140 * 1e6,
            p50_ns: 0.135 * 1e6,
            p99_ns: 0.303 * 1e6,
            max_ns: 1.031 * 1e6,
        };
        for title in ["\"PING\",", "\"SET tickpath:lab-1:pipeline xxx\",", "\"a,b\","] {
            assert_eq!(BenchmarkResult::parse(&format!("{head}{title}{numbers}")), Some(expected), "{title}");
            assert_eq!(BenchmarkResult::parse(&format!("{title}{numbers}\n")), Some(expected), "{title}");
        }
    }

    #[test]
    fn output_without_a_result_is_none() {
        let head = "\"test\",\"rps\",\"avg\",\"min\",\"p50\",\"p95\",\"p99\",\"max\"\n";
        for output in ["", "\n", "Could not connect to Redis", head, "1,2,3"] {
            assert_eq!(BenchmarkResult::parse(output), None, "{output:?}");
        }
    }
}
