//! Round after round, each case with every system in turn; the floor before and after each run is the lab's.

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
use tickpath_lab_compare::{Line, in_turn, table};
use tickpath_lab_harness::{Lab, LabError, Progress, host, interruption};
use tickpath_lab_bus::pubsub::run_with;
use tickpath_lab_result::{Comparison, ResultFile, Run, firsts};

use crate::clients::{self, Java};
use crate::plan::{Case, How, KINDS, Length, OURS, SYSTEMS, System, cases};
use crate::usage::Usage;

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Write the result file
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
    /// A few cases, short and once: some three minutes
    #[arg(long)]
    quick: bool,
    /// How often everything runs, in turn; 5, or 1 if --quick, where nothing is said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// The CPUs of both ends; the first two if not given
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// These systems alone, and ours; may be a list
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
}

fn names() -> PossibleValuesParser {
    SYSTEMS.iter().map(|system| system.name).into()
}

/// How a command ended.
pub enum Ending {
    /// It did what it was asked.
    Done,
    /// By a Ctrl-C; what was measured before is saved.
    Interrupted,
}

/// Nothing is drawn: the bench says itself how far it is.
struct Silent;

impl Progress for Silent {
    fn step(&self, _what: &str, _seconds: f64) {}
}

/// The share of a rate that whoever keeps it reaches at least.
const KEPT: f64 = 0.9;

/// What all runs share.
struct Bench<'a> {
    /// Whose ends are processes, and whose are threads.
    labs: [Lab<'a>; 2],
    cpus: [usize; 2],
    length: Length,
    java: Option<String>,
    /// The share of the usual rate that a system keeps of a case, where it is not all of it.
    shares: HashMap<(&'static str, String), f64>,
}

/// Measures everything, and saves it.
pub fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    // Two benches at once would measure each other.
    let turn = std::env::temp_dir().join("tickpath-bench.lock");
    let turn = OpenOptions::new().write(true).create(true).truncate(false).open(turn).context("cannot take a turn")?;
    turn.lock().context("cannot wait for another bench")?;
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, interruption().clone())?;
        flag::register(signal, interruption().clone())?;
    }
    clients::sweep();
    let (cases, length) = cases(args.quick);
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 5 });
    let mut result = new_result();
    let java = clients::runtime();
    let is_wanted = |system: &&System| {
        let is_named = args.only.is_empty() || system.name == OURS || args.only.iter().any(|name| name == system.name);
        is_named && (system.how != How::Java || java.is_ok())
    };
    let systems: Vec<&System> = SYSTEMS.iter().filter(is_wanted).collect();
    if let Err(why) = &java {
        eprintln!("tickpath-peers: the peers in Java are left out: {why}");
        result.findings.push(format!("The peers in Java were left out: {why}"));
    }
    let mut bench = Bench { labs: labs()?, cpus: two(&args.cpus)?, length, java: java.ok(), shares: HashMap::new() };
    tell_plan(&cases, &systems, length, rounds);
    result.host = host::floor(&bench.labs[0], bench.cpus)?;
    let mut ending = Ending::Done;
    'rounds: for round in 1..=rounds {
        for &case in &cases {
            eprintln!("tickpath-peers: round {round} of {rounds}: {}", case.name());
            for system in in_turn(round, systems.iter().filter(|system| case.is_of(system))) {
                let run = bench.measure(case, system, round);
                if interruption().load(Ordering::Relaxed) {
                    ending = Ending::Interrupted;
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
    Ok(ending)
}

fn labs() -> anyhow::Result<[Lab<'static>; 2]> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut in_threads = Lab::new(program.clone(), &Silent)?;
    in_threads.in_threads = true;
    Ok([Lab::new(program, &Silent)?, in_threads])
}

/// Both CPUs, which are two: each end has one to itself.
fn two(told: &[usize]) -> anyhow::Result<[usize; 2]> {
    let available = tickpath_clock::cpus();
    let told = if told.is_empty() { &available[..] } else { told };
    match *told {
        [a, b, ..] if a != b && available.contains(&a) && available.contains(&b) => Ok([a, b]),
        _ => bail!("two CPUs are needed, one for each end; available: {available:?}"),
    }
}

fn tell_plan(cases: &[Case], systems: &[&System], length: Length, rounds: u32) {
    let of_case = |case: &Case| {
        let case = *case;
        systems.iter().filter(move |system| case.is_of(system)).map(move |system| case.seconds(system, length))
    };
    let seconds: Vec<f64> = cases.iter().flat_map(of_case).collect();
    let minutes = f64::from(rounds) * seconds.iter().sum::<f64>() / 60.0;
    let runs = seconds.len() * rounds as usize;
    eprintln!("tickpath-peers: {runs} runs, about {minutes:.0} min; a Ctrl-C ends it and saves what there is");
}

impl Bench<'_> {
    /// One run; of one that broke off, that it did.
    fn measure(&mut self, case: Case, system: &System, round: u32) -> Run {
        let key = (system.name, case.name());
        let share = self.shares.get(&key).copied().unwrap_or(1.0);
        let measured = self.once(case, system, round, share);
        let mut run = measured.unwrap_or_else(|error| Run {
            target: system.name.to_owned(),
            client: system.name.to_owned(),
            repeat: round,
            notes: vec![format!("it broke off: {error}")],
            ..Run::default()
        });
        // Who cannot keep a rate gets a tenth of it from the next round on; at unequal rates there is no ratio.
        let sent_per_s = run.elapsed_ns.map(|ns| run.counts.sent as f64 * 1e9 / ns.max(1) as f64);
        if system.name != OURS && case.rate(share).zip(sent_per_s).is_some_and(|(rate, sent)| sent < KEPT * rate) {
            self.shares.insert(key, 0.1);
        }
        run.params.set("system", system.name);
        run.params.set("case", case.name());
        run
    }

    fn once(&self, case: Case, system: &System, round: u32, share: f64) -> Result<Run, LabError> {
        let in_threads = system.how == How::Threads;
        let mut settings = case.settings(system, self.cpus, self.length, share);
        settings.repeat = round;
        if let (How::Java, Some(runtime)) = (system.how, &self.java) {
            settings.foreign = Some(Rc::new(Java::new(system.name, system.package, runtime, case.readers())));
        }
        let mut usage = Usage::begin(in_threads);
        let lab = &self.labs[usize::from(in_threads)];
        let mut run = run_with(lab, &settings, false, |ends| {
            usage.started([ends.publisher, ends.subscriber]);
            Ok(())
        })?;
        let used_ns = usage.end();
        if run.counts.received > 0 {
            run.figures.insert("cpu_per_message_ns".to_owned(), used_ns as f64 / run.counts.received as f64);
        }
        run.params.set("ends", if in_threads { "threads" } else { "processes" });
        // What the lab is told of Java's ends is not what they do.
        run.params.set("readers", case.readers() as u64);
        run.params.set("wait", system.wait.name());
        if system.how != How::Java && system.name != OURS {
            run.software.client = Some(system.name.to_owned());
            run.software.client_version = version(system.package);
        }
        Ok(run)
    }
}

/// The version of a crate, as it is locked; of ZeroMQ, the library's before it.
fn version(package: &str) -> Option<String> {
    let (_, rest) = include_str!("../Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \""))?;
    let version = rest.split('"').next()?;
    Some(if package == "zmq" {
        let (major, minor, patch) = zmq::version();
        format!("{major}.{minor}.{patch}, crate zmq {version}")
    } else {
        version.to_owned()
    })
}

/// An empty result that says what made it, when.
fn new_result() -> ResultFile {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("tickpath-peers {}", words.join(" "));
    let started_at = tickpath_lab_result::rfc3339(tickpath_clock::utc_ns());
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    ResultFile {
        commit: option_env!("TICKPATH_COMMIT").map(str::to_owned),
        profile: Some(profile.to_owned()),
        ..ResultFile::new("peers", &command, &started_at)
    }
}

fn save(result: &mut ResultFile, file: &Path) -> anyhow::Result<()> {
    result.comparisons = comparisons(&result.runs);
    result.check().context("this is a defect of Tickpath")?;
    Ok(result.save(file)?)
}

/// The name of a ratio of a system to ours.
pub fn ratio_name(system: &str, case: &str) -> String {
    format!("{system}_to_{OURS} {case}")
}

/// The runs of a system in a case.
pub fn runs_of<'a>(runs: &'a [Run], system: &str, case: &str) -> impl Iterator<Item = &'a Run> + use<'a> {
    let wanted = [("system", system.to_owned()), ("case", case.to_owned())];
    runs.iter().filter(move |run| wanted.iter().all(|(name, value)| run.params.text(name).as_ref() == Some(value)))
}

/// The values of a setting, each once.
pub fn values(runs: &[Run], name: &str) -> Vec<String> {
    firsts(runs.iter().filter_map(|run| run.params.text(name)))
}

/// Every system against ours in every case; and 32 B of ours against 64 B of a bare ring, a line a message in both.
fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    let (systems, cases) = (values(runs, "system"), values(runs, "case"));
    let others: Vec<&String> = systems.iter().filter(|system| *system != OURS).collect();
    let mut lines = Vec::new();
    for case in &cases {
        let kind = KINDS.iter().find(|kind| case.starts_with(kind.begins)).expect("every case is of a kind");
        lines.extend(others.iter().map(|other| {
            let name = ratio_name(other, case);
            Line::of_runs(&name, kind.figure, runs_of(runs, other, case), runs_of(runs, OURS, case))
        }));
    }
    for batch in ["by 32", "one by one"] {
        let [ours, bare] = [(32, OURS), (64, "rtrb")]
            .map(|(size, system)| runs_of(runs, system, &format!("throughput {size} B {batch}")).collect::<Vec<_>>());
        lines.push(Line::of_runs(&format!("{OURS}_32_B_to_rtrb_64_B {batch}"), "throughput_per_s", ours, bare));
    }
    table(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_has_a_version() {
        for system in SYSTEMS.iter().filter(|system| system.how != How::Java) {
            assert!(version(system.package).is_some_and(|version| version.contains('.')), "{}", system.name);
        }
    }

    #[test]
    fn a_peer_is_set_against_ours_of_the_same_case() {
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
