//! `tickpath bench pubsub`: every target in one interleaved run, cold, after an idle, steady, and there and back.

use anyhow::Context;
use clap::Args;
use tickpath_bus::Policy;
use tickpath_clock::{Priority, Wait};
use tickpath_lab::pubsub::{Settings, cold, is_log, plan, round_trip, run as steady};
use tickpath_lab::redis::{Server, ServerSettings, Stalling};
use tickpath_lab::result::{Phase, ResultFile};
use tickpath_lab::{Lab, host, targets};

use super::{compare_targets, usage};
use crate::args::{Cpus, Output, Rate, Usage, are_targets, positive, rate, seconds, size};

/// The size that a figure without a size is about, in bytes.
const HEADLINE: usize = 1024;

/// Seconds at the headline's size: enough for the 99.99th percentile at the usual rate; and at other sizes.
const HEADLINE_SECONDS: f64 = 10.0;
const OTHER_SECONDS: f64 = 1.0;

/// Seconds of round trips.
const ROUND_TRIP_SECONDS: f64 = 1.0;

/// Messages a second to a server that stands still at times.
const STALLED_RATE: f64 = 1_000.0;

/// Processes of a cold run.
const COLD_TIMES: u64 = 20;

/// An idle run takes about so long, but has so many messages at least and at most.
const IDLE_SECONDS: f64 = 2.0;
const IDLE_LEAST: f64 = 4.0;
const IDLE_MOST: f64 = 100.0;

#[derive(Debug, Clone, Args)]
pub struct PubsubArgs {
    /// What carries the messages: shm://, file:///FOLDER, redis://HOST:PORT[?streams], nats://HOST:PORT[?jetstream],
    /// amqp://HOST:PORT, kafka://HOST:PORT; may be repeated. If not given, shm:// and the brokers that
    /// scripts/brokers has started
    #[arg(long, value_name = "URL")]
    pub target: Vec<String>,
    /// Bytes of a message, 16 to 16777216; may be a list
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1024,64,65536", value_parser = size)]
    pub size: Vec<usize>,
    /// Messages a second, or max; a broker that cannot keep up gets less, and the run says so
    #[arg(long, value_name = "R|max", default_value = "10000", value_parser = rate)]
    pub rate: Rate,
    /// How long a run sends at its rate, in seconds; 10 at 1,024 bytes and 1 at other sizes if not given
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count")]
    pub duration: Option<f64>,
    /// Messages of a run; at max 20 million if not given, or 8 GiB
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub count: Option<u64>,
    /// What to measure: steady, idle, cold, round-trip; may be a list. At --rate max steady alone; steady alone too if
    /// --count is given
    #[arg(long, value_name = "PHASE", value_delimiter = ',', value_parser = ["steady", "idle", "cold", "round-trip"])]
    pub phase: Vec<String>,
    /// Milliseconds of idling before a message; may be a list
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "1,10,100,1000", value_parser = positive)]
    pub idle: Vec<f64>,
    /// Stand a scratch redis-server still for so many milliseconds of every second, at 1,000 messages a second: one_way
    /// shows it, service hides it
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=900), conflicts_with_all = ["target", "phase", "preset"])]
    pub stall: Option<u64>,
    /// Set everything as a published experiment did: brokers-1k (1 KB, p99.99, all brokers)
    #[arg(long, value_name = "NAME", value_parser = ["brokers-1k"], conflicts_with_all = ["size", "rate", "phase", "count"])]
    pub preset: Option<String>,
    /// Messages that share a stamp at --rate max; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "32,1", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub batch: Vec<u32>,
    /// What a full topic does: overwrite, fail, keep. The transport's usual way if not given; at --rate max fail, where
    /// that exists
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Subscriptions, which take turns on the receiver's CPU; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub readers: Vec<u32>,
    /// How both ends wait: the subscriber for messages, the publisher for their times; may be a list. If not given busy
    /// on logs alone, and block where a broker takes part, which needs a CPU too
    #[arg(long, value_name = "busy|yield|block", value_delimiter = ',')]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// How often to run everything, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

pub fn run(lab: &Lab<'_>, args: &PubsubArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    match (&args.preset, args.stall) {
        (Some(name), _) => preset(lab, args, name, result),
        (None, Some(ms)) => stalled(lab, args, ms, result),
        (None, None) => measure(lab, args, result),
    }
}

/// 1 KB at 10,000 messages a second, steady, until the 99.99th percentile stands.
fn preset(lab: &Lab<'_>, args: &PubsubArgs, name: &str, result: &mut ResultFile) -> anyhow::Result<()> {
    let args = PubsubArgs { size: vec![HEADLINE], phase: vec!["steady".to_owned()], ..args.clone() };
    let done = measure(lab, &args, result);
    result.runs.iter_mut().for_each(|run| run.params.set("preset", name));
    done
}

/// A server that stands still, under a load that knows when each message was meant to be sent.
fn stalled(lab: &Lab<'_>, args: &PubsubArgs, ms: u64, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    result.host = host::floor(lab, cpus)?;
    let server = Server::start(lab.folder(), &ServerSettings::default(), &lab.clock)?;
    let server = server.context("redis-server is not installed; install it with: apt-get install redis-server")?;
    let base = base(args, Wait::Block, cpus, 1);
    let rate = STALLED_RATE;
    let count = args.count.unwrap_or((args.duration.unwrap_or(HEADLINE_SECONDS) * rate) as u64);
    let settings = Settings { target: server.url(), rate: Some(rate), count, ..base };
    let stalling = Stalling::start(&server, ms * 1_000_000);
    let run = steady(lab, &settings);
    drop(stalling);
    let mut run = run.map_err(usage)?;
    run.params.set("stall_ns", ms * 1_000_000);
    run.notes.push(format!(
        "the server stood still for {ms} ms of every second; the sender waits for each reply, so that it sends late: \
         one_way counts from the intended time, service from the send"
    ));
    // Late sends are what is shown here.
    run.valid = run.counts.lost == 0;
    result.runs.push(run);
    Ok(())
}

fn base(args: &PubsubArgs, wait: Wait, cpus: [usize; 2], repeat: u32) -> Settings {
    Settings {
        target: String::new(),
        size: HEADLINE,
        rate: None,
        count: 0,
        batch: 1,
        policy: args.policy,
        phase: Phase::Steady,
        readers: 1,
        wait,
        cpus,
        priority: args.priority,
        repeat,
    }
}

/// All that was asked for.
fn measure(lab: &Lab<'_>, args: &PubsubArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    let all = if args.target.is_empty() { targets::all() } else { args.target.clone() };
    are_targets(&all)?;
    have_policy(&all, args.policy)?;
    if let Some(missing) = args.target.is_empty().then(targets::missing).flatten() {
        eprintln!("tickpath: {missing}");
    }
    let waits = match args.wait[..] {
        [] if all.iter().all(|target| is_log(target)) => vec![Wait::Busy],
        [] => vec![Wait::Block],
        _ => args.wait.clone(),
    };
    if !args.output.quiet {
        eprintln!("tickpath: about {:.0} s", estimate(args, all.len() * waits.len()));
    }
    result.host = host::floor(lab, cpus)?;
    for repeat in 1..=args.repeat {
        for &wait in &waits {
            let base = base(args, wait, cpus, repeat);
            match args.rate {
                Rate::Max => flood(lab, args, &all, &base, result)?,
                Rate::PerSecond(rate) => phases(lab, args, &all, &base, rate, result)?,
            }
        }
    }
    compare_targets(result, "one_way");
    compare_targets(result, "round_trip");
    Ok(())
}

/// As fast as it goes; targets innermost, so that they take turns.
fn flood(
    lab: &Lab<'_>,
    args: &PubsubArgs,
    all: &[String],
    base: &Settings,
    result: &mut ResultFile,
) -> anyhow::Result<()> {
    for &size in &args.size {
        for &batch in &args.batch {
            for &readers in &args.readers {
                for target in all {
                    let most = if is_log(target) { 8 << 30 } else { 256 << 20 };
                    let count = args.count.unwrap_or((most / size as u64).clamp(1, 20_000_000));
                    let (batch, readers) = (batch as usize, readers as usize);
                    let settings = Settings { target: target.clone(), size, count, batch, readers, ..base.clone() };
                    result.runs.push(steady(lab, &settings).map_err(usage)?);
                }
            }
        }
    }
    Ok(())
}

/// Each phase that was asked for, targets innermost.
fn phases(
    lab: &Lab<'_>,
    args: &PubsubArgs,
    all: &[String],
    base: &Settings,
    rate: f64,
    result: &mut ResultFile,
) -> anyhow::Result<()> {
    if wants(args, "steady") {
        streams(lab, args, all, base, rate, result)?;
    }
    if wants(args, "idle") {
        for &idle in &args.idle {
            for target in all {
                let count = (IDLE_SECONDS * 1e3 / idle).clamp(IDLE_LEAST, IDLE_MOST) as u64;
                let rate = Some(1e3 / idle);
                let settings = Settings { target: target.clone(), count, rate, phase: Phase::Idle, ..base.clone() };
                result.runs.push(steady(lab, &settings).map_err(usage)?);
            }
        }
    }
    if wants(args, "round-trip") {
        for target in all {
            let count = args.count.unwrap_or(1_000_000);
            let settings = Settings { target: target.clone(), count, ..base.clone() };
            result.runs.push(round_trip(lab, &settings, ROUND_TRIP_SECONDS).map_err(usage)?);
        }
    }
    if wants(args, "cold") {
        for target in all {
            let settings = Settings { target: target.clone(), ..base.clone() };
            result.runs.push(cold(lab, &settings, COLD_TIMES).map_err(usage)?);
        }
    }
    Ok(())
}

/// Messages in a row, at each size and number of readers.
fn streams(
    lab: &Lab<'_>,
    args: &PubsubArgs,
    all: &[String],
    base: &Settings,
    rate: f64,
    result: &mut ResultFile,
) -> anyhow::Result<()> {
    for &size in &args.size {
        for &readers in &args.readers {
            for target in all {
                let settings = Settings { target: target.clone(), size, readers: readers as usize, ..base.clone() };
                let planned = plan(lab, &settings, rate, duration(args, size)).map_err(usage)?;
                let count = args.count.unwrap_or(planned.count);
                let run = steady(lab, &Settings { rate: Some(planned.rate), count, ..settings });
                let mut run = run.map_err(usage)?;
                run.notes.extend(planned.note);
                result.runs.push(run);
            }
        }
    }
    Ok(())
}

fn wants(args: &PubsubArgs, phase: &str) -> bool {
    match args.phase.is_empty() {
        true => args.count.is_none() || phase == "steady",
        false => args.phase.iter().any(|wanted| wanted == phase),
    }
}

fn duration(args: &PubsubArgs, size: usize) -> f64 {
    args.duration.unwrap_or(if size == HEADLINE { HEADLINE_SECONDS } else { OTHER_SECONDS })
}

/// Seconds that all of it takes, about.
fn estimate(args: &PubsubArgs, targets: usize) -> f64 {
    /// Starting and ending the processes of a run, and looking how fast a target is.
    const AROUND: f64 = 0.6;
    let rate = match args.rate {
        Rate::Max => return (args.size.len() * args.batch.len() * args.readers.len() * targets) as f64 * 3.0,
        Rate::PerSecond(rate) => rate,
    };
    let counted = args.count.map(|count| count as f64 / rate);
    let stream = |&size: &usize| (counted.unwrap_or(duration(args, size)) + 2.0 * AROUND) * args.readers.len() as f64;
    let idle = |&ms: &f64| (IDLE_SECONDS * 1e3 / ms).clamp(IDLE_LEAST, IDLE_MOST) * ms / 1e3 + AROUND;
    let phases = [
        ("steady", args.size.iter().map(stream).sum::<f64>()),
        ("idle", args.idle.iter().map(idle).sum()),
        ("round-trip", ROUND_TRIP_SECONDS + AROUND),
        ("cold", COLD_TIMES as f64 * 0.05 + AROUND),
    ];
    let one: f64 = phases.iter().filter(|(phase, _)| wants(args, phase)).map(|(_, seconds)| seconds).sum();
    one * targets as f64 * f64::from(args.repeat)
}

/// Refuses a policy that a target does not have, before anything is measured.
fn have_policy(all: &[String], policy: Option<Policy>) -> anyhow::Result<()> {
    let Some(policy) = policy else { return Ok(()) };
    for target in all {
        let has = tickpath_bus::connect(target)?.capabilities().policies;
        if !has.contains(&policy) {
            let has: Vec<&str> = has.iter().map(|policy| policy.name()).collect();
            let what =
                format!("--policy {policy}: {target} has only {}; name the targets with --target", has.join(", "));
            return Err(Usage(what).into());
        }
    }
    Ok(())
}

fn policy(text: &str) -> Result<Policy, String> {
    let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| "use overwrite, fail or keep".to_owned())
}
