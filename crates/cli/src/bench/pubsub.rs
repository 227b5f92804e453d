//! `tickpath bench pubsub`: every target in one interleaved run, cold, after an idle, steady, and there and back.

use std::sync::atomic::Ordering;

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use tickpath_bus::Policy;
use tickpath_clock::{Priority, Wait};
use tickpath_lab_bus::pubsub::{
    CLIENTS, ClientTarget, Settings, TYPICAL_RUNS, measure_cold, pairs, plan_rate, round_trip, run as steady, search,
};
use tickpath_lab_compare::{Promise, compare_turns, in_turn};
use tickpath_lab_explain as explain;
use tickpath_lab_harness::signals::PauseCycle;
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{Lab, LabError, host, interruption, keep_runs, targets};
use tickpath_lab_result::{ResultFile, Run, RunPhase, short_name};
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

use super::measure::as_usage_error;
use tickpath_cli_terminal::args::{
    ARRIVALS, CliUsageError, CpuArgs, OutputArgs, SendRate, WarmUpArgs, arrivals, bail_usage, bus_url, check_targets,
    policy, positive, rate, seconds, size,
};
use tickpath_cli_terminal::print::print_note;

/// Message size of the headline figures, in bytes.
const HEADLINE: usize = 1024;

/// Message sizes of a bench without `--size`, in bytes.
const SIZES: [usize; 3] = [HEADLINE, 64, 65_536];

/// Seconds of a run at the headline size: enough for the 99.99th percentile at the usual rate; and at other sizes.
const HEADLINE_SECONDS: f64 = 10.0;
const OTHER_SECONDS: f64 = 1.0;

const ROUND_TRIP_SECONDS: f64 = 1.0;

/// Messages a second to a server that is paused at times.
const STALLED_RATE: f64 = 1_000.0;

/// Messages that the 99.99th percentile needs.
const P9999_SAMPLES: u64 = 100_000;

const PUBLISHED_PROCESSES: u32 = 19;

const COLD_TIMES: u64 = 20;

/// Approximate length of an idle run in seconds, and the least and the largest number of its messages.
const IDLE_SECONDS: f64 = 2.0;
const IDLE_MIN_MESSAGES: f64 = 4.0;
const IDLE_MAX_MESSAGES: f64 = 100.0;

/// Name of the client that is our own bus.
const OURS: &str = "rust";

#[derive(Debug, Clone, Args)]
pub struct PubsubArgs {
    /// Transport of the messages: shm://, file:///FOLDER, redis://HOST:PORT[?streams], nats://HOST:PORT[?jetstream],
    /// amqp://HOST:PORT, kafka://HOST:PORT; may be repeated. Default: shm:// and the brokers that scripts/brokers has
    /// started
    #[arg(long, value_name = "URL", value_parser = bus_url)]
    pub target: Vec<String>,
    /// Client that publishes and subscribes: rust is Tickpath's own bus; any other client has the phases steady and
    /// idle. python is the package tickpath, on every target; redis-py and go-redis publish and subscribe on Redis. May
    /// be a list, and then the clients take turns, each on its targets
    #[arg(long, value_name = "CLIENT", value_delimiter = ',', default_value = OURS, value_parser = clients(), conflicts_with_all = ["preset", "stall"])]
    pub client: Vec<String>,
    /// Bytes of a message, 16 to 16777216; may be a list. Default: 1024,64,65536, and 1024 for --rate auto
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = size)]
    pub size: Vec<usize>,
    /// Messages a second, or max, or auto: the highest rate that keeps --slo; a broker that cannot keep up with a
    /// number gets a lower rate, and the run notes it
    #[arg(long, value_name = "R|max|auto", default_value = "10000", value_parser = pace)]
    pub rate: RateOption,
    /// Limit that --rate auto keeps, such as 'one_way.p99 < 50us'
    #[arg(long, value_name = "EXPR")]
    pub slo: Option<Promise>,
    /// Arrival process of the messages: steady, or poisson from --seed, as of independent senders
    #[arg(long, value_name = "steady|poisson", default_value = "steady", value_parser = ARRIVALS)]
    pub arrivals: String,
    /// Seed of the times of --arrivals poisson
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Time for which a run sends at its rate, in seconds; default: 10 at 1,024 bytes and 1 at other sizes
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count")]
    pub duration: Option<f64>,
    /// Messages of a run; default at --rate max: 20 million, or 8 GiB
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub count: Option<u64>,
    /// Phases to measure: steady, idle, cold, round-trip; may be a list. Only steady at --rate max, and by default with
    /// --count
    #[arg(long, value_name = "PHASE", value_delimiter = ',', value_parser = ["steady", "idle", "cold", "round-trip"])]
    pub phase: Vec<String>,
    /// Idle time before a message, in milliseconds; may be a list
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "1,10,100,1000", value_parser = positive)]
    pub idle: Vec<f64>,
    /// Pause a scratch redis-server for this many milliseconds of every second, at 1,000 messages a second: one_way
    /// shows the pauses, service hides them
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=900), conflicts_with_all = ["target", "phase", "preset", "rate", "wait", "readers", "repeat", "idle", "batch", "arrivals"])]
    pub stall: Option<u64>,
    /// Settings of a published experiment: brokers-1k (1 KB, p99.99, all brokers), pubsub-19 (redis-py, one publish a
    /// process, 19 times)
    #[arg(long, value_name = "NAME", value_parser = ["brokers-1k", "pubsub-19"], conflicts_with_all = ["size", "rate", "phase", "count", "arrivals"])]
    pub preset: Option<String>,
    /// Messages that share a stamp at --rate max; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "32,1", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub batch: Vec<u32>,
    /// Policy of a full topic: overwrite, fail or keep; default: that of the transport, and at --rate max fail, if the
    /// transport has it
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Subscriptions, which take turns on the receiver's CPU; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub readers: Vec<u32>,
    /// Wait strategy of both ends: the subscriber for messages, the publisher for their times; may be a list. Default:
    /// busy on logs alone, and block with a broker, which needs a CPU too
    #[arg(long, value_name = "busy|yield|block|adaptive", value_delimiter = ',')]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// Number of repetitions, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub warm: WarmUpArgs,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Value of `--rate`.
#[derive(Debug, Clone, Copy)]
pub enum RateOption {
    /// A fixed rate, or as fast as possible.
    Fixed(SendRate),
    /// The highest rate that keeps `--slo`.
    Auto,
}

pub fn run(lab: &Lab<'_>, args: &PubsubArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    check(args)?;
    match (&args.preset, args.stall) {
        (Some(name), _) => preset(lab, args, name, result),
        (None, Some(ms)) => measure_stalls(lab, args, ms, result),
        (None, None) => measure(lab, args, result),
    }
}

/// Rejects options that contradict each other.
fn check(args: &PubsubArgs) -> Result<(), CliUsageError> {
    let is_auto = matches!(args.rate, RateOption::Auto);
    if is_auto != args.slo.is_some() {
        bail_usage!("--rate auto and --slo go together: --rate auto --slo 'one_way.p99 < 50us'");
    }
    let is_measured = |slo: &Promise| slo.hop().is_some_and(|hop| ["one_way", "service", "publish"].contains(&hop));
    if args.slo.as_ref().is_some_and(|slo| !is_measured(slo)) {
        bail_usage!("--slo: a run at a rate has the percentiles of one_way, service and publish");
    }
    if is_auto && (args.count.is_some() || !args.phase.is_empty()) {
        bail_usage!("--rate auto sends steady messages, and as many as it needs; leave --count and --phase out");
    }
    if args.arrivals != "steady" && matches!(args.rate, RateOption::Fixed(SendRate::Max)) {
        bail_usage!("--arrivals poisson needs a rate; at --rate max a message is due once the last one is sent");
    }
    Ok(())
}

/// Runs a published experiment: brokers with 1 KB messages at a steady rate until the 99.99th percentile has enough
/// samples, or Python with one publish a process.
fn preset(lab: &Lab<'_>, args: &PubsubArgs, name: &str, result: &mut ResultFile) -> anyhow::Result<()> {
    let done = if name == "pubsub-19" {
        let settings = explain::Settings {
            url: None,
            subject: explain::ExplainSubject::OnePublishPerProcess,
            repeat: PUBLISHED_PROCESSES,
            count: 20,
            seconds: 60.0,
            timeout_s: 60.0,
            gains: Vec::new(),
            cpus: args.cpus.bench_cpus()?,
        };
        explain::run(lab, &settings, result).map_err(as_usage_error)
    } else {
        let (size, phase) = (vec![HEADLINE], vec!["steady".to_owned()]);
        let args = PubsubArgs { size, phase, count: Some(P9999_SAMPLES), ..args.clone() };
        measure(lab, &args, result)
    };
    result.runs.iter_mut().for_each(|run| run.params.set("preset", name));
    done
}

/// Measures a server that is paused at times, under a load whose messages have intended send times.
fn measure_stalls(lab: &Lab<'_>, args: &PubsubArgs, ms: u64, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.bench_cpus()?;
    result.host = host::measure_host_floor(lab, cpus)?;
    let server = ScratchServer::start(lab.folder(), &ServerSettings::default(), &lab.clock)?;
    let server = server.context("redis-server is not installed; install it with: apt-get install redis-server")?;
    let base = base(args, Wait::Block, cpus, 1);
    let rate = STALLED_RATE;
    let count = args.count.unwrap_or((args.duration.unwrap_or(HEADLINE_SECONDS) * rate) as u64);
    let settings = Settings { target: server.url(), rate: Some(rate), count, is_stalled: true, ..base };
    let pause_ns = ms * 1_000_000;
    let pauses = PauseCycle::start(&[server.pid()], pause_ns, 1_000_000_000 - pause_ns)?;
    let run = steady(lab, &settings);
    drop(pauses);
    let Ok(mut run) = run else { return keep_run(result, &settings, run) };
    run.params.set("stall_ns", pause_ns);
    run.notes.push(format!(
        "the server was paused for {ms} ms of every second; the sender waits for each reply, so that it sends late: \
         one_way counts from the intended time, service from the send"
    ));
    result.runs.push(run);
    Ok(())
}

fn base(args: &PubsubArgs, wait: Wait, cpus: [usize; 2], repeat: u32) -> Settings {
    let (size, policy, priority) = (sizes(args)[0], args.policy, args.priority);
    Settings { size, policy, wait, priority, repeat, ..Settings::new("", cpus) }
}

/// Runs every phase, size and target that the options ask for.
fn measure(lab: &Lab<'_>, args: &PubsubArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.bench_cpus()?;
    let all = if args.target.is_empty() { targets::all() } else { args.target.clone() };
    check_targets(&all)?;
    check_policy(&all, args.policy)?;
    let pairs = pairs(lab, &args.client, &all).map_err(as_usage_error)?;
    if !is_own_bus_only(args) && args.phase.is_empty() {
        let clients = args.client.join(",");
        print_note(&format!("tickpath: the phases cold and round-trip are left out: --client {clients} lacks them"));
    }
    if let Some(missing) = args.target.is_empty().then(targets::missing).flatten() {
        print_note(&format!("tickpath: {missing}"));
    }
    let waits = match args.wait[..] {
        [] if pairs.iter().all(|(_, target)| is_log(target)) => vec![Wait::Busy],
        [] => vec![Wait::Block],
        _ => args.wait.clone(),
    };
    let (runs, seconds) = estimate(args, pairs.len() * waits.len());
    lab.progress.plan(runs, seconds);
    result.host = host::measure_host_floor(lab, cpus)?;
    for repeat in 1..=args.repeat {
        for wait in in_turn(repeat, waits.iter().copied()) {
            let base = base(args, wait, cpus, repeat);
            let of = |(foreign, target): ClientTarget| Settings { foreign, target, ..base.clone() };
            let all: Vec<Settings> = in_turn(repeat, pairs.clone()).into_iter().map(of).collect();
            match args.rate {
                RateOption::Fixed(SendRate::Max) => measure_max_rate(lab, args, &all, result)?,
                RateOption::Fixed(SendRate::PerSecond(rate)) => phases(lab, args, &all, rate, result)?,
                RateOption::Auto => search_rates(lab, args, &all, result)?,
            }
        }
    }
    if matches!(args.rate, RateOption::Auto) {
        return Ok(());
    }
    result.comparisons.extend(compare_turns(&result.runs, &["one_way", "round_trip"]));
    Ok(())
}

/// Measures at the highest rate possible; clients and targets are the innermost loop, so that they take turns.
fn measure_max_rate(lab: &Lab<'_>, args: &PubsubArgs, all: &[Settings], result: &mut ResultFile) -> anyhow::Result<()> {
    for size in sizes(args) {
        for &batch in &args.batch {
            for &readers in &args.readers {
                for base in all {
                    let (batch, readers) = (batch as usize, readers as usize);
                    let settings = Settings { size, batch, readers, ..base.clone() };
                    let count = match args.count {
                        Some(count) => Ok(count),
                        None if is_log(&base.target) => Ok(((8u64 << 30) / size as u64).clamp(1, 20_000_000)),
                        // As many messages as a broker receives in some seconds.
                        None => plan_rate(lab, &settings, 1e8, 4.0).map(|plan| plan.count),
                    };
                    let run = count.and_then(|count| steady(lab, &Settings { count, ..settings }));
                    keep_run(result, base, run)?;
                }
            }
        }
    }
    Ok(())
}

/// Runs each requested phase; clients and targets are the innermost loop, so that they take turns.
fn phases(
    lab: &Lab<'_>,
    args: &PubsubArgs,
    all: &[Settings],
    rate: f64,
    result: &mut ResultFile,
) -> anyhow::Result<()> {
    if is_requested(args, "steady") {
        measure_steady(lab, args, all, rate, result)?;
    }
    if is_requested(args, "idle") {
        for &idle in &args.idle {
            for base in all {
                let count = (IDLE_SECONDS * 1e3 / idle).clamp(IDLE_MIN_MESSAGES, IDLE_MAX_MESSAGES) as u64;
                let rate = Some(1e3 / idle);
                let settings = Settings { count, rate, phase: RunPhase::Idle, ..base.clone() };
                keep_run(result, base, steady(lab, &settings))?;
            }
        }
    }
    if is_requested(args, "round-trip") {
        for base in all {
            let settings = Settings { count: args.count.unwrap_or(1_000_000), ..base.clone() };
            keep_run(result, base, round_trip(lab, &settings, ROUND_TRIP_SECONDS))?;
        }
    }
    if is_requested(args, "cold") {
        for base in all {
            keep_run(result, base, measure_cold(lab, base, COLD_TIMES))?;
        }
    }
    Ok(())
}

/// Runs the steady phase at each size and number of readers.
fn measure_steady(
    lab: &Lab<'_>,
    args: &PubsubArgs,
    all: &[Settings],
    rate: f64,
    result: &mut ResultFile,
) -> anyhow::Result<()> {
    let arrivals = arrivals(&args.arrivals, args.seed);
    for size in sizes(args) {
        for &readers in &args.readers {
            for base in all {
                let settings = Settings { size, readers: readers as usize, arrivals, ..base.clone() };
                let planned = match plan_rate(lab, &settings, rate, duration(args, size)) {
                    Ok(planned) => planned,
                    Err(error) => return keep_run(result, base, Err(error)),
                };
                let count = args.count.unwrap_or(planned.count);
                let run = steady(lab, &Settings { rate: Some(planned.rate), count, ..settings });
                keep_run(result, base, run)?;
                result.runs.iter_mut().last().into_iter().for_each(|run| run.notes.extend(planned.note.clone()));
            }
        }
    }
    Ok(())
}

/// Searches the highest rate that keeps the promise, for each client and target, size and number of readers.
fn search_rates(lab: &Lab<'_>, args: &PubsubArgs, all: &[Settings], result: &mut ResultFile) -> anyhow::Result<()> {
    let promise = args.slo.as_ref().context("--rate auto has a promise")?;
    let (arrivals, seconds) = (arrivals(&args.arrivals, args.seed), args.duration.unwrap_or(OTHER_SECONDS));
    for bytes in sizes(args) {
        for &readers in &args.readers {
            for base in all {
                let settings = Settings { size: bytes, readers: readers as usize, arrivals, ..base.clone() };
                let found = search(lab, promise, &settings, seconds, result).map_err(as_usage_error)?;
                let details = [
                    (args.client.len() > 1, base.client().to_owned()),
                    (sizes(args).len() > 1, tickpath_lab_report::size(bytes as f64)),
                    (args.readers.len() > 1, format!("{readers} readers")),
                    (args.wait.len() > 1, base.wait.name().to_owned()),
                    (args.repeat > 1, format!("search {} of {}", base.repeat, args.repeat)),
                ];
                let shown = details.into_iter().filter(|(varies, _)| *varies).map(|(_, words)| format!(", {words}"));
                result.findings.push(format!("{}{} {found}", short_name(&base.target), shown.collect::<String>()));
            }
        }
    }
    Ok(())
}

/// Keeps a run. A failed run is kept with its reason, so that earlier measurements of the bench still count.
fn keep_run(result: &mut ResultFile, base: &Settings, run: Result<Run, LabError>) -> anyhow::Result<()> {
    if let Err(error) = &run
        && !matches!(error, LabError::Setting(_) | LabError::Aborted { .. })
    {
        if interruption().load(Ordering::Relaxed) {
            return Err(LabError::Interrupted.into());
        }
        result.runs.push(Run {
            target: base.target.clone(),
            client: base.client().to_owned(),
            repeat: base.repeat,
            notes: vec![format!("the run broke off: {error}")],
            ..Run::default()
        });
    }
    keep_runs(result, run.map(|run| vec![run])).map_err(as_usage_error)
}

/// Returns whether only our own bus is measured: no other client has all phases.
fn is_own_bus_only(args: &PubsubArgs) -> bool {
    args.client.iter().all(|client| client == OURS)
}

fn is_requested(args: &PubsubArgs, phase: &str) -> bool {
    match args.phase.is_empty() {
        true if !is_own_bus_only(args) && ["cold", "round-trip"].contains(&phase) => false,
        true => args.count.is_none() || phase == "steady",
        false => args.phase.iter().any(|wanted| wanted == phase),
    }
}

fn duration(args: &PubsubArgs, size: usize) -> f64 {
    args.duration.unwrap_or(if size == HEADLINE { HEADLINE_SECONDS } else { OTHER_SECONDS })
}

/// Returns the sizes of `--size`, or the default sizes for the rate.
fn sizes(args: &PubsubArgs) -> Vec<usize> {
    match (&args.size[..], args.rate) {
        ([], RateOption::Auto) => vec![HEADLINE],
        ([], RateOption::Fixed(_)) => SIZES.to_vec(),
        (sizes, _) => sizes.to_vec(),
    }
}

/// Returns the number of runs, and the approximate length of all runs in seconds.
fn estimate(args: &PubsubArgs, targets: usize) -> (usize, f64) {
    /// Seconds to start and end the processes of a run, and to probe the speed of a target.
    const PROCESS_SECONDS: f64 = 0.6;
    let streams = sizes(args).len() * args.readers.len();
    let turns = targets * args.repeat as usize;
    let rate = match args.rate {
        RateOption::Fixed(SendRate::Max) => {
            let runs = streams * args.batch.len() * turns;
            return (runs, runs as f64 * 3.0);
        }
        RateOption::Auto => {
            let runs = streams * turns * TYPICAL_RUNS;
            return (runs, runs as f64 * (args.duration.unwrap_or(OTHER_SECONDS) + PROCESS_SECONDS));
        }
        RateOption::Fixed(SendRate::PerSecond(rate)) => rate,
    };
    let counted = args.count.map(|count| count as f64 / rate);
    let stream =
        |size: usize| (counted.unwrap_or(duration(args, size)) + 2.0 * PROCESS_SECONDS) * args.readers.len() as f64;
    let idle =
        |&ms: &f64| (IDLE_SECONDS * 1e3 / ms).clamp(IDLE_MIN_MESSAGES, IDLE_MAX_MESSAGES) * ms / 1e3 + PROCESS_SECONDS;
    let phases = [
        ("steady", streams, sizes(args).into_iter().map(stream).sum::<f64>()),
        ("idle", args.idle.len(), args.idle.iter().map(idle).sum()),
        ("round-trip", 1, ROUND_TRIP_SECONDS + PROCESS_SECONDS),
        ("cold", 1, COLD_TIMES as f64 * 0.05 + PROCESS_SECONDS),
    ];
    let wanted = phases.into_iter().filter(|(phase, ..)| is_requested(args, phase));
    let (runs, seconds) = wanted.fold((0, 0.0), |(runs, all), (_, more, seconds)| (runs + more, all + seconds));
    (runs * turns, seconds * turns as f64)
}

/// Rejects a policy that a target lacks, before anything is measured.
fn check_policy(all: &[String], policy: Option<Policy>) -> anyhow::Result<()> {
    let Some(policy) = policy else { return Ok(()) };
    for target in all {
        let has = tickpath_bus::connect(target)?.capabilities().policies;
        if !has.contains(&policy) {
            let has: Vec<&str> = has.iter().map(|policy| policy.name()).collect();
            bail_usage!("--policy {policy}: {target} has only {}; name the targets with --target", has.join(", "));
        }
    }
    Ok(())
}

fn clients() -> PossibleValuesParser {
    std::iter::once(OURS).chain(CLIENTS.iter().map(|client| client.name)).into()
}

fn pace(text: &str) -> Result<RateOption, String> {
    match text {
        "auto" => Ok(RateOption::Auto),
        _ => rate(text).map(RateOption::Fixed).map_err(|why| format!("{why}, or auto")),
    }
}
