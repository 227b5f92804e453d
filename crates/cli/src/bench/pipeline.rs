//! `tickpath bench pipeline`: Redis commands one by one and in pipelines, and the gain of each round trip saved.

use anyhow::Context;
use clap::Args;
use tickpath_lab_compare::in_turn;
use tickpath_lab_harness::proxy::Proxy;
use tickpath_lab_harness::{Lab, host};
use tickpath_lab_redis::pipeline::{
    self, BATCH, BenchPart, PipelineClient, PipelineTarget, RedisCommand, Settings, compare_long,
    compare_redis_benchmark, why_depth_one_is_slow,
};
use tickpath_lab_result::ResultFile;
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

use super::measure::as_usage_error;
use tickpath_cli_terminal::args::{
    CliUsageError, CpuArgs, OutputArgs, SendRate, bail_usage, bus_url, rate, rtt, seconds,
};
use tickpath_cli_terminal::print::print_note;

/// Default length of a run in seconds, alone and beside redis-benchmark.
const SECONDS: f64 = 0.5;
const BESIDE_BENCHMARK_SECONDS: f64 = 1.0;

/// Default number of repetitions, alone and beside redis-benchmark.
const REPEATS: u32 = 3;
const BESIDE_BENCHMARK_REPEATS: u32 = 5;

const SCRIPT_DEPTH: u64 = 100;

/// The published round trips: loopback, and 250 ms.
const PRESET_RTTS: [f64; 2] = [0.0, 250.0];

/// Time limit for the published PINGs one by one, in milliseconds; within the limit they are 10,000, as in a batch.
const PRESET_MS: f64 = 10_000.0;

/// Least number of the published PINGs.
const PRESET_MIN_PINGS: u64 = 4;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Without options: three clients, four commands at five depths, four ways to read, compute and write, \
                  and a million commands in one pipeline, three times: about two and a half minutes on two processors."
)]
pub struct PipelineArgs {
    /// URL of a Redis server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or redis+unix:///PATH; default: a scratch
    /// server on the system's CPU
    #[arg(long, value_name = "URL", value_parser = bus_url)]
    pub target: Option<String>,
    /// Reach the scratch server by a Unix socket
    #[arg(long, conflicts_with_all = ["target", "rtt"])]
    pub unix: bool,
    /// Senders: rust, raw (PING as text, replies not parsed), redis-py; may be a list; default: all
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    pub client: Vec<PipelineClient>,
    /// PING, SET, GET, INCR; may be a list. The long pipeline has the last of these that is no INCR
    #[arg(long, value_name = "COMMAND", value_delimiter = ',', default_value = "PING,SET,GET,INCR")]
    pub command: Vec<RedisCommand>,
    /// Commands that are sent together; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,10,100,1000,10000", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub depth: Vec<u64>,
    /// Connections that send at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=900))]
    pub connections: u32,
    /// Commands a second, at intended times; or max: each connection sends when it has all replies
    #[arg(long, value_name = "R|max", default_value = "max", value_parser = rate)]
    pub rate: SendRate,
    /// Length of a run in seconds, longer if 10,000 commands need it; default: 0.5, and 1 beside redis-benchmark
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count")]
    pub duration: Option<f64>,
    /// Commands of a run, instead of its duration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub count: Option<u64>,
    /// Measurements: sweep (each command at each depth), scripts (read, compute and write by round trips and by
    /// scripts), long (a million commands in one pipeline); may be a list. Default: all; only sweep with --rtt, --rate,
    /// --count or several connections
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["sweep", "scripts", "long"])]
    pub part: Vec<String>,
    /// Round-trip time that a proxy on loopback adds, in milliseconds; 0 is without a proxy; may be a list
    #[arg(long, value_name = "MS", value_delimiter = ',', value_parser = rtt)]
    pub rtt: Vec<f64>,
    /// Measure beside redis-benchmark, in turn: PING, SET and GET at depths 1, 10, 100 over 1 and 50 connections; four
    /// minutes
    #[arg(long, value_name = "PROGRAM", value_parser = ["redis-benchmark"], conflicts_with_all = ["client", "command", "depth", "connections", "rate", "count", "part", "rtt", "preset"])]
    pub against: Option<String>,
    /// Settings of a published experiment: ping-10k (10,000 PINGs one by one and in one pipeline, at round-trip times
    /// of 0 and 250 ms)
    #[arg(long, value_name = "NAME", value_parser = ["ping-10k"], conflicts_with_all = ["command", "depth", "connections", "rate", "duration", "count", "part"])]
    pub preset: Option<String>,
    /// Number of repetitions, in turn; default: 3, and 5 beside redis-benchmark
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Settings that all runs of the command share.
struct PipelinePlan<'a> {
    args: &'a PipelineArgs,
    clients: Vec<PipelineClient>,
    /// The server at every distance.
    targets: Vec<PipelineTarget>,
    base: Settings,
    repeats: u32,
}

pub fn run(lab: &Lab<'_>, args: &PipelineArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.bench_cpus()?;
    let (clients, python) = clients(lab, args)?;
    // Server and proxies end with this function.
    let (_server, near) = open(lab, args, cpus[1])?;
    let (_proxies, targets) = distances(lab, args, &near)?;
    let against = args.against.is_some();
    let base = Settings {
        target: near,
        client: PipelineClient::Rust,
        command: RedisCommand::Ping,
        depth: 1,
        connections: args.connections as usize,
        rate: args.rate.per_second(),
        seconds: args.duration.unwrap_or(if against { BESIDE_BENCHMARK_SECONDS } else { SECONDS }),
        count: args.count,
        cpus,
        repeat: 1,
        part: BenchPart::Sweep,
        python,
    };
    let repeats = args.repeat.unwrap_or(if against { BESIDE_BENCHMARK_REPEATS } else { REPEATS });
    let plan = PipelinePlan { args, clients, targets, base, repeats };
    result.host = host::measure_host_floor(lab, cpus)?;
    if against {
        let compared = compare_redis_benchmark(lab, &plan.base, repeats, &mut result.runs).map_err(as_usage_error)?;
        result.comparisons.extend(compared);
        return Ok(());
    }
    let done = match &args.preset {
        Some(name) => preset(lab, &plan, name, result),
        None => measure(lab, &plan, result),
    };
    // The conclusions cover the runs so far, even if a later run failed.
    conclude(args, result);
    done
}

/// Runs all parts in turn; the depths are the innermost loop.
fn measure(lab: &Lab<'_>, plan: &PipelinePlan<'_>, result: &mut ResultFile) -> anyhow::Result<()> {
    let (runs, seconds) = estimate(plan);
    lab.progress.plan(runs, seconds);
    for repeat in 1..=plan.repeats {
        for target in &plan.targets {
            let base = Settings { target: target.clone(), repeat, ..plan.base.clone() };
            if is_requested(plan.args, BenchPart::Sweep) {
                sweep(lab, plan, &base, result)?;
            }
            if is_requested(plan.args, BenchPart::Scripts) {
                scripts(lab, &base, result)?;
            }
            if is_requested(plan.args, BenchPart::Long) {
                let last = plan.args.command.iter().rev().find(|command| !command.is_counting());
                let command = last.copied().unwrap_or(RedisCommand::Ping);
                compare_long(lab, &Settings { command, ..base }, &mut result.runs).map_err(as_usage_error)?;
            }
        }
    }
    Ok(())
}

/// Runs each possible combination of client, command and depth.
fn sweep(lab: &Lab<'_>, plan: &PipelinePlan<'_>, base: &Settings, result: &mut ResultFile) -> anyhow::Result<()> {
    for &client in &plan.clients {
        for &command in &plan.args.command {
            if !client.supports(command, base.connections, base.rate) {
                continue;
            }
            for &depth in in_turn(base.repeat, &plan.args.depth) {
                // redis-py writes a whole pipeline before it reads: a deeper pipeline would block.
                if client == PipelineClient::RedisPy && depth > BATCH {
                    continue;
                }
                let settings = Settings { client, command, depth, ..base.clone() };
                pipeline::run(lab, &settings, &mut result.runs).map_err(as_usage_error)?;
            }
        }
    }
    Ok(())
}

/// Measures the ways to read, compute and write.
fn scripts(lab: &Lab<'_>, base: &Settings, result: &mut ResultFile) -> anyhow::Result<()> {
    for command in in_turn(base.repeat, RedisCommand::READ_MODIFY_WRITE) {
        let depth = if command == RedisCommand::EvalShaPipeline { SCRIPT_DEPTH } else { 1 };
        let settings =
            Settings { command, depth, connections: 1, rate: None, part: BenchPart::Scripts, ..base.clone() };
        pipeline::run(lab, &settings, &mut result.runs).map_err(as_usage_error)?;
    }
    Ok(())
}

/// Runs 10,000 PINGs one by one and in one pipeline; fewer one by one where 10,000 would take too long.
fn preset(lab: &Lab<'_>, plan: &PipelinePlan<'_>, name: &str, result: &mut ResultFile) -> anyhow::Result<()> {
    let rtts = rtts(plan.args);
    let runs = 2 * plan.repeats as usize * rtts.len() * plan.clients.len();
    // PINGs one by one wait for the distance, but no longer than the preset allows.
    let far = rtts.iter().map(|rtt_ms| (BATCH as f64 * rtt_ms).min(PRESET_MS) / 1e3 + 2.0).sum::<f64>();
    lab.progress.plan(runs, far * f64::from(plan.repeats) * plan.clients.len() as f64);
    for repeat in 1..=plan.repeats {
        for (target, rtt_ms) in plan.targets.iter().zip(&rtts) {
            for &client in &plan.clients {
                let possible = if *rtt_ms > 0.0 { (PRESET_MS / rtt_ms) as u64 } else { BATCH };
                let one_by_one = possible.clamp(PRESET_MIN_PINGS, BATCH);
                for (depth, count) in in_turn(repeat, [(1, one_by_one), (BATCH, BATCH)]) {
                    let target = target.clone();
                    let base = plan.base.clone();
                    let settings = Settings { target, client, depth, count: Some(count), repeat, ..base };
                    let before = result.runs.len();
                    let done = pipeline::run(lab, &settings, &mut result.runs);
                    for run in &mut result.runs[before..] {
                        run.params.set("preset", name);
                        run.notes.extend((count < BATCH).then(|| shrink_reason(count, *rtt_ms)));
                    }
                    done.map_err(as_usage_error)?;
                }
            }
        }
    }
    Ok(())
}

fn shrink_reason(count: u64, rtt_ms: f64) -> String {
    let minutes = BATCH as f64 * rtt_ms / 60_000.0;
    format!("{count} PINGs instead of {BATCH}: one by one, {rtt_ms} ms away, those would take {minutes:.1} minutes")
}

/// Adds the conclusions that all runs together allow.
fn conclude(args: &PipelineArgs, result: &mut ResultFile) {
    if args.preset.is_none() {
        pipeline::add_knees(&mut result.runs);
    }
    result.comparisons.extend(pipeline::compare(&result.runs));
    // Only SET is explained: users ask about this command.
    let is_set = |name: Option<String>| name.as_deref() == Some(RedisCommand::Set.name());
    let ours = result.runs.iter_mut().filter(|run| run.client == PipelineClient::Rust.name());
    let mut explained = ours.filter(|run| is_set(run.params.text("command")));
    if let Some((run, why)) = explained.find_map(|run| why_depth_one_is_slow(run).map(|why| (run, why))) {
        run.notes.push(why);
    }
}

/// Returns the clients that support at least one of the requested commands, and the Python environment of redis-py.
fn clients(lab: &Lab<'_>, args: &PipelineArgs) -> anyhow::Result<(Vec<PipelineClient>, Option<Python>)> {
    let can = |client: &PipelineClient| {
        let commands = if args.preset.is_some() { &vec![RedisCommand::Ping] } else { &args.command };
        commands.iter().any(|command| client.supports(*command, args.connections as usize, args.rate.per_second()))
    };
    if let Some(client) = args.client.iter().find(|client| !can(client)) {
        let remedy = "leave --rate and --connections out, or add --command PING";
        bail_usage!("--client {} sends none of the commands in this way; {remedy}", client.name());
    }
    let too_deep = args.depth.iter().any(|depth| *depth > BATCH);
    if too_deep && args.client.contains(&PipelineClient::RedisPy) {
        bail_usage!("--client redis-py writes a pipeline before it reads; use a --depth of at most {BATCH}");
    }
    let named = !args.client.is_empty();
    let mut clients = if named { args.client.clone() } else { PipelineClient::ALL.into_iter().filter(can).collect() };
    let needed = args.against.is_none() && (args.preset.is_some() || is_requested(args, BenchPart::Sweep));
    if !needed || !clients.contains(&PipelineClient::RedisPy) {
        return Ok((clients, None));
    }
    match Python::prepare(lab.progress) {
        Ok(python) => Ok((clients, Some(python))),
        Err(error) if named => Err(error.into()),
        Err(error) => {
            print_note(&format!("tickpath: redis-py is not measured: {error}"));
            clients.retain(|client| *client != PipelineClient::RedisPy);
            Ok((clients, None))
        }
    }
}

/// Returns the server of `--target`, or a scratch server.
fn open(lab: &Lab<'_>, args: &PipelineArgs, cpu: usize) -> anyhow::Result<(Option<ScratchServer>, PipelineTarget)> {
    if let Some(url) = &args.target {
        return Ok((None, PipelineTarget::inspect_url(url).map_err(as_usage_error)?));
    }
    let settings = ServerSettings { cpu: Some(cpu), unix_socket: args.unix, ..ServerSettings::default() };
    let server = ScratchServer::start(lab.folder(), &settings, &lab.clock)?;
    let server = server.context(
        "redis-server is not installed; install it with: apt-get install redis-server   (or name a server with \
         --target redis://HOST:PORT)",
    )?;
    let target = PipelineTarget::inspect_scratch(&server)?;
    Ok((Some(server), target))
}

/// Returns the server at every requested distance, with the proxies that add the distance.
fn distances(
    lab: &Lab<'_>,
    args: &PipelineArgs,
    near: &PipelineTarget,
) -> anyhow::Result<(Vec<Proxy>, Vec<PipelineTarget>)> {
    let (mut proxies, mut targets) = (Vec::new(), Vec::new());
    for rtt_ms in rtts(args) {
        if rtt_ms == 0.0 {
            targets.push(near.clone());
            continue;
        }
        let endpoint = near
            .endpoint()
            .ok_or_else(|| CliUsageError("--rtt delays TCP only; name the server as redis://HOST:PORT".to_owned()))?;
        let proxy = Proxy::start(lab, &endpoint, rtt_ms).map_err(as_usage_error)?;
        targets.push(near.via_proxy(&proxy));
        proxies.push(proxy);
    }
    Ok((proxies, targets))
}

fn rtts(args: &PipelineArgs) -> Vec<f64> {
    match (&args.rtt[..], &args.preset) {
        ([], Some(_)) if args.unix => vec![0.0],
        ([], Some(_)) => PRESET_RTTS.to_vec(),
        ([], None) => vec![0.0],
        (rtts, _) => rtts.to_vec(),
    }
}

fn is_requested(args: &PipelineArgs, part: BenchPart) -> bool {
    if !args.part.is_empty() {
        return args.part.iter().any(|wanted| wanted == part.name());
    }
    let special =
        !args.rtt.is_empty() || args.rate.per_second().is_some() || args.count.is_some() || args.connections > 1;
    part == BenchPart::Sweep || !special
}

/// Returns the number of runs, and the approximate length of all runs in seconds.
fn estimate(plan: &PipelinePlan<'_>) -> (usize, f64) {
    /// Seconds to start and end the process of a run; and seconds of the long pipelines of one repetition.
    const PROCESS_SECONDS: f64 = 0.3;
    const LONG_PIPELINE_SECONDS: f64 = 6.0;
    let one = plan.base.seconds + PROCESS_SECONDS;
    let can = |client: PipelineClient| {
        let commands = plan.args.command.iter();
        commands.filter(|command| client.supports(**command, plan.base.connections, plan.base.rate)).count()
    };
    let ways: usize = plan.clients.iter().map(|client| can(*client)).sum();
    let sweep = ways * plan.args.depth.len();
    let scripts = RedisCommand::READ_MODIFY_WRITE.len();
    let parts = [
        (BenchPart::Sweep, sweep, sweep as f64 * one),
        (BenchPart::Scripts, scripts, scripts as f64 * one),
        (BenchPart::Long, 1, LONG_PIPELINE_SECONDS),
    ];
    let turns = plan.targets.len() * plan.repeats as usize;
    let wanted = parts.into_iter().filter(|(part, ..)| is_requested(plan.args, *part));
    let (runs, seconds) = wanted.fold((0, 0.0), |(runs, all), (_, more, seconds)| (runs + more, all + seconds));
    (runs * turns, seconds * turns as f64)
}
