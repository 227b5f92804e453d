//! The measurement: round after round, each case with every system in turn. The lab measures the floor around each run.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;
use tickpath_lab_bus::pubsub::run_with;
use tickpath_lab_compare::{RatioLine, in_turn, ratio_table};
use tickpath_lab_harness::{Lab, LabError, ProgressSink, host, interruption};
use tickpath_lab_result::{Comparison, ResultFile, Run, distinct};

use crate::java::{self, JavaPeer};
use crate::plan::{EndKind, KINDS, OURS, PeerCase, PeerSystem, RunLength, SYSTEMS, cases};
use crate::usage::CpuUsage;

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// File to write the result to
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
    /// Measure a few short cases once, in about three minutes
    #[arg(long)]
    quick: bool,
    /// Number of rounds, each with all cases and systems in turn; 5, or 1 with --quick, if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// CPUs of the two ends; the first two if not given
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Measure only these systems, and our log
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = system_names())]
    only: Vec<String>,
}

fn system_names() -> PossibleValuesParser {
    SYSTEMS.iter().map(|system| system.name).into()
}

/// Outcome of a command.
pub enum BenchOutcome {
    /// The command is complete.
    Done,
    /// A Ctrl-C ended the command; the result until then is saved.
    Interrupted,
}

/// Progress sink that draws nothing: the bench itself reports its progress.
struct NoProgress;

impl ProgressSink for NoProgress {
    fn step(&self, _what: &str, _seconds: f64) {}
}

/// Min share of a rate that a system reaches if it sustains the rate.
const MIN_RATE_SHARE: f64 = 0.9;

/// State that all runs share.
struct PeerBench<'a> {
    /// The labs of ends that are processes, and of ends that are threads.
    labs: [Lab<'a>; 2],
    cpus: [usize; 2],
    length: RunLength,
    /// Version of the Java runtime; `None` without the peers in Java.
    java: Option<String>,
    /// Share of the usual rate that a system sustains in a case, where less than the whole.
    rate_shares: HashMap<(&'static str, String), f64>,
}

/// Measures all cases and saves the result.
pub fn run(args: &BenchArgs) -> anyhow::Result<BenchOutcome> {
    // Two benches at once would measure each other.
    let lock = std::env::temp_dir().join("tickpath-bench.lock");
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&lock);
    let lock_file = opened.with_context(|| format!("cannot open {}; check its permissions", lock.display()))?;
    lock_file.lock().context("cannot wait for another bench to end; run this again")?;
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, interruption().clone())?;
        flag::register(signal, interruption().clone())?;
    }
    java::remove_leftovers();
    let (cases, length) = cases(args.quick);
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 5 });
    let mut result = new_result();
    let runtime = java::find_runtime();
    let is_wanted = |system: &&PeerSystem| {
        let is_named = args.only.is_empty() || system.name == OURS || args.only.iter().any(|name| name == system.name);
        is_named && (system.ends != EndKind::Java || runtime.is_ok())
    };
    let systems: Vec<&PeerSystem> = SYSTEMS.iter().filter(is_wanted).collect();
    if let Err(why) = &runtime {
        eprintln!("tickpath-peers: the peers in Java are left out: {why}");
        result.findings.push(format!("The peers in Java were left out: {why}"));
    }
    let (labs, cpus) = (labs()?, choose_cpus(&args.cpus)?);
    let mut bench = PeerBench { labs, cpus, length, java: runtime.ok(), rate_shares: HashMap::new() };
    print_plan(&cases, &systems, length, rounds);
    result.host = host::measure_host_floor(&bench.labs[0], bench.cpus)?;
    let mut outcome = BenchOutcome::Done;
    'rounds: for round in 1..=rounds {
        for &case in &cases {
            eprintln!("tickpath-peers: round {round} of {rounds}: {}", case.name());
            for system in in_turn(round, systems.iter().filter(|system| case.applies_to(system))) {
                let run = bench.measure(case, system, round);
                if interruption().load(Ordering::Relaxed) {
                    outcome = BenchOutcome::Interrupted;
                    break 'rounds;
                }
                result.runs.push(run);
            }
        }
        save(&mut result, &args.json)?;
    }
    save(&mut result, &args.json)?;
    let invalid = result.runs.iter().filter(|run| !run.valid).count();
    eprintln!("tickpath-peers: {} runs, {invalid} of them not valid: {}", result.runs.len(), args.json.display());
    Ok(outcome)
}

fn labs() -> anyhow::Result<[Lab<'static>; 2]> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut in_threads = Lab::new(program.clone(), &NoProgress)?;
    in_threads.in_threads = true;
    Ok([Lab::new(program, &NoProgress)?, in_threads])
}

/// Returns the CPUs of the two ends, by default the first two available ones.
fn choose_cpus(requested: &[usize]) -> anyhow::Result<[usize; 2]> {
    let available = tickpath_clock::cpus();
    let requested = if requested.is_empty() { &available[..] } else { requested };
    match *requested {
        [a, b, ..] if a != b && available.contains(&a) && available.contains(&b) => Ok([a, b]),
        _ => bail!("each end needs a CPU of its own; name two of {available:?} with --cpus"),
    }
}

/// Prints the number of runs and their approximate duration.
fn print_plan(cases: &[PeerCase], systems: &[&PeerSystem], length: RunLength, rounds: u32) {
    let of_case = |case: &PeerCase| {
        let case = *case;
        systems.iter().filter(move |system| case.applies_to(system)).map(move |system| case.seconds(system, length))
    };
    let seconds: Vec<f64> = cases.iter().flat_map(of_case).collect();
    let minutes = f64::from(rounds) * seconds.iter().sum::<f64>() / 60.0;
    let runs = seconds.len() * rounds as usize;
    let ending = "a Ctrl-C ends the bench and saves the result so far";
    eprintln!("tickpath-peers: {runs} runs, about {minutes:.0} min; {ending}");
}

impl PeerBench<'_> {
    /// Measures once. A run that broke off is not valid, and its note has the reason.
    fn measure(&mut self, case: PeerCase, system: &PeerSystem, round: u32) -> Run {
        let key = (system.name, case.name());
        let share = self.rate_shares.get(&key).copied().unwrap_or(1.0);
        let measured = self.run_once(case, system, round, share);
        let mut run = measured.unwrap_or_else(|error| Run {
            target: system.name.to_owned(),
            client: system.name.to_owned(),
            repeat: round,
            notes: vec![format!("it broke off: {error}")],
            ..Run::default()
        });
        // A system that cannot sustain the rate gets a tenth of the rate from the next round on, because times at
        // unequal rates have no ratio.
        let sent_per_s = run.elapsed_ns.map(|ns| run.counts.sent as f64 * 1e9 / ns.max(1) as f64);
        let is_slow = case.rate(share).zip(sent_per_s).is_some_and(|(rate, sent)| sent < MIN_RATE_SHARE * rate);
        if system.name != OURS && is_slow {
            self.rate_shares.insert(key, 0.1);
        }
        run.params.set("system", system.name);
        run.params.set("case", case.name());
        run
    }

    fn run_once(&self, case: PeerCase, system: &PeerSystem, round: u32, share: f64) -> Result<Run, LabError> {
        let in_threads = system.ends == EndKind::Threads;
        let mut settings = case.settings(system, self.cpus, self.length, share);
        settings.repeat = round;
        if let (EndKind::Java, Some(runtime)) = (system.ends, &self.java) {
            settings.foreign = Some(Rc::new(JavaPeer::new(system.name, system.package, runtime, case.readers())));
        }
        let mut usage = CpuUsage::begin(in_threads);
        let lab = &self.labs[usize::from(in_threads)];
        let mut run = run_with(lab, &settings, false, |ends| {
            usage.mark_start([ends.publisher, ends.subscriber]);
            Ok(())
        })?;
        let used_ns = usage.end();
        if run.counts.received > 0 {
            run.figures.insert("cpu_per_message_ns".to_owned(), used_ns as f64 / run.counts.received as f64);
        }
        run.params.set("ends", if in_threads { "threads" } else { "processes" });
        // The settings of the ends in Java name one reader and another wait strategy.
        run.params.set("readers", case.readers() as u64);
        run.params.set("wait", system.wait.name());
        if system.ends != EndKind::Java && system.name != OURS {
            run.software.client = Some(system.name.to_owned());
            run.software.client_version = crate_version(system.package);
        }
        Ok(run)
    }
}

/// Returns the version of a crate in `Cargo.lock`; for ZeroMQ, the version of the library as well.
fn crate_version(package: &str) -> Option<String> {
    let (_, rest) = include_str!("../Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \""))?;
    let version = rest.split('"').next()?;
    Some(if package == "zmq" {
        let (major, minor, patch) = zmq::version();
        format!("{major}.{minor}.{patch}, crate zmq {version}")
    } else {
        version.to_owned()
    })
}

/// Returns an empty result with its command, time and build.
fn new_result() -> ResultFile {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("tickpath-peers {}", arguments.join(" "));
    let started_at = tickpath_clock::rfc3339(tickpath_clock::utc_ns());
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    ResultFile {
        commit: option_env!("TICKPATH_COMMIT").map(str::to_owned),
        profile: Some(profile.to_owned()),
        ..ResultFile::new("peers", &command, &started_at)
    }
}

fn save(result: &mut ResultFile, file: &Path) -> anyhow::Result<()> {
    result.comparisons = comparisons(&result.runs);
    result.check().context("the result is not valid, which is a defect of Tickpath; report it with the command")?;
    Ok(result.save(file)?)
}

/// Returns the name of the comparison of a system with ours in a case.
pub fn ratio_name(system: &str, case: &str) -> String {
    format!("{system}_to_{OURS} {case}")
}

/// Returns the runs of a system in a case.
pub fn runs_of<'a>(runs: &'a [Run], system: &str, case: &str) -> impl Iterator<Item = &'a Run> + use<'a> {
    let wanted = [("system", system.to_owned()), ("case", case.to_owned())];
    runs.iter().filter(move |run| wanted.iter().all(|(name, value)| run.params.text(name).as_ref() == Some(value)))
}

/// Returns the distinct values of a setting, in order of appearance.
pub fn distinct_values(runs: &[Run], name: &str) -> Vec<String> {
    distinct(runs.iter().filter_map(|run| run.params.text(name)))
}

/// Compares every system with ours in every case, and 32 B of ours with 64 B of rtrb, where both use a cache line per
/// message.
fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    let (systems, cases) = (distinct_values(runs, "system"), distinct_values(runs, "case"));
    let others: Vec<&String> = systems.iter().filter(|system| *system != OURS).collect();
    let mut lines = Vec::new();
    for case in &cases {
        let kind = KINDS.iter().find(|kind| case.starts_with(kind.prefix)).expect("every case has a kind");
        lines.extend(others.iter().map(|other| {
            let name = ratio_name(other, case);
            RatioLine::of_runs(&name, kind.figure, runs_of(runs, other, case), runs_of(runs, OURS, case))
        }));
    }
    for batch in ["by 32", "one by one"] {
        let [ours, rtrb] = [(32, OURS), (64, "rtrb")]
            .map(|(size, system)| runs_of(runs, system, &format!("throughput {size} B {batch}")).collect::<Vec<_>>());
        lines.push(RatioLine::of_runs(&format!("{OURS}_32_B_to_rtrb_64_B {batch}"), "throughput_per_s", ours, rtrb));
    }
    ratio_table(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_has_a_version() {
        for system in SYSTEMS.iter().filter(|system| system.ends != EndKind::Java) {
            assert!(crate_version(system.package).is_some_and(|version| version.contains('.')), "{}", system.name);
        }
    }

    #[test]
    fn a_peer_is_compared_with_ours_in_the_same_case() {
        let run = |system: &str, per_s: f64| {
            let mut run = Run { repeat: 1, valid: true, throughput_per_s: Some(per_s), ..Run::default() };
            run.params.set("system", system);
            run.params.set("case", "throughput 64 B by 32");
            run
        };
        let found = comparisons(&[run(OURS, 50.0), run("rtrb", 100.0)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name.as_str(), found[0].ratio), ("rtrb_to_log throughput 64 B by 32", Some(2.0)));
    }
}
