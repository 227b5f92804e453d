//! `tickpath compare`: two builds side by side, from result files, or from programs that run in turn.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tickpath_clock::{Clock, sleep_ns};
use tickpath_lab_compare::{
    BuildSide, CompareError, ComparedResults, ComparisonOutcome, FalsePositives, Judgement, MetricLimit, ResultPair,
    Ruling, UnmeasuredMetric, in_turn, judge, markdown, overall_outcome, result_file, text,
};
use tickpath_lab_harness::{Lab, ProgressSink};
use tickpath_lab_result::{ResultFile, save_json};

use crate::bench::measure::new_result;
use crate::progress::approximate_time;
use tickpath_cli_terminal::args::{CliUsageError, OutputArgs, bail_usage};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_note, print_text};

/// Default number of pairs of calls: six are the fewest that separate a change from noise, and one may be invalid.
const PAIRS: u32 = 7;

/// Time limit of one call, in seconds.
const CALL_SECONDS: u64 = 30 * 60;

/// Number of checks for the exit of a call that has closed its standard error, and the time between two checks.
const EXIT_CHECKS: u32 = 500;
const EXIT_CHECK_NS: u64 = 20_000_000;

/// Max bytes kept of a call's standard error.
const MAX_STDERR_BYTES: u64 = 64 << 10;

const FALSE_POSITIVES: &str = "tickpath-false-positives.json";

const NOISE: &str = "\
Ratios are NEW divided by OLD, each with an interval of 95 %. A metric is called changed if its interval excludes 1, \
its median moved by more than its noise floor (2 % in turn, 5 % between files, or what the host's own floor moved \
by), and the movement stands out among all metrics of the table: of identical builds at most 5 % of the tables call \
anything changed, if their calls took turns. That takes 6 valid pairs of calls, or 4 repeats in each file; with \
fewer, and where more than one in four was not valid, every verdict is 'unknown'. Files drift apart in ways that \
their repeats do not show, and no such share is known for them, so prefer programs in turn: A B, B A, A B, …

A limit of --fail-if is exceeded if the whole interval lies beyond it, and kept if the whole interval lies within it. \
Any other limit, and one with too few valid repeats, cannot be judged. A build that loses messages that the old build \
kept fails, whatever its speed.
Exit codes: 4 a limit was exceeded; 3 a limit cannot be judged, NEW lacks a hop that OLD has, or nothing valid was \
left to compare; 2 bad usage; 1 NEW loses messages, or a call failed.

  tickpath compare old.json new.json --fail-if 'tick_to_order.p99 > +10%'
  tickpath compare old/tickpath new/tickpath --repeat 7 -- bench path --count 20000";

#[derive(Debug, Args)]
#[command(after_help = NOISE)]
pub struct CompareArgs {
    /// A result file; or a program, with the bench to run behind --
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The new counterpart of OLD: a result file or a program, as OLD is
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// A limit such as 'tick_to_order.p99 > +10%' or 'throughput_per_s < -5%'; may be repeated
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<MetricLimit>,
    /// Write both results and all ratios as a result file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the table and its conclusions as Markdown, for a comment
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Pairs of calls; default: 7
    #[arg(long, value_name = "N", requires = "bench", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Compare a program with itself this many times, and count how often the comparison finds a difference
    #[arg(long, value_name = "N", requires = "bench", conflicts_with = "markdown",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub false_positives: Option<u32>,
    /// Print nothing on standard error
    #[arg(long)]
    pub quiet: bool,
    /// The bench to run with both programs: bench WORKLOAD and its settings
    #[arg(last = true, value_name = "BENCH")]
    pub bench: Vec<String>,
}

pub fn run(args: &CompareArgs) -> anyhow::Result<CliOutcome> {
    // Both files are checked before anything is measured.
    OutputArgs { json: args.json.clone(), html: args.markdown.clone(), all: false, quiet: args.quiet }.check()?;
    if args.bench.is_empty() {
        return files(args);
    }
    let steps = CallProgress { quiet: args.quiet, is_planned: Cell::new(false) };
    let lab = Lab::new(std::env::current_exe().context("cannot find this program's own file")?, &steps)?;
    let calls = AlternatingCalls::of(args, &lab)?;
    match args.false_positives {
        Some(comparisons) => false_positives(args, &calls, comparisons),
        None => programs(args, &calls),
    }
}

fn files(args: &CompareArgs) -> anyhow::Result<CliOutcome> {
    if let Some(program) = [&args.old, &args.new].into_iter().find(|file| is_program(file)) {
        let how = format!("tickpath compare {} {} -- bench path", args.old.display(), args.new.display());
        bail_usage!("{} is a program; add the bench to run with both: {how}", program.display());
    }
    let head = new_result("");
    let pair = ResultPair { old: ResultFile::load(&args.old)?, new: ResultFile::load(&args.new)? };
    finish(args, &ComparedResults::Apart(Box::new(pair)), &head)
}

/// Runs the pairs of calls and compares them. If a call fails, the pairs before it are still shown and written.
fn programs(args: &CompareArgs, calls: &AlternatingCalls<'_>) -> anyhow::Result<CliOutcome> {
    let head = new_result("");
    let mut pairs = Vec::new();
    let done = calls.pairs("", &args.fail_if, &mut pairs);
    if pairs.is_empty() {
        done?;
        return Ok(CliOutcome::Success);
    }
    let outcome = finish(args, &ComparedResults::InTurn(pairs), &head);
    done?;
    outcome
}

/// Compares a program with itself, and keeps the rates after each comparison.
fn false_positives(args: &CompareArgs, calls: &AlternatingCalls<'_>, comparisons: u32) -> anyhow::Result<CliOutcome> {
    let [old, new] = &calls.programs;
    if old != new && read(old)? != read(new)? {
        bail_usage!("--false-positives compares a program with itself; name the same one twice");
    }
    let file = args.json.clone().unwrap_or_else(|| PathBuf::from(FALSE_POSITIVES));
    let head = new_result("");
    let mut found = FalsePositives::new(&head.command, &head.started_at, calls.count, &args.fail_if);
    for number in 1..=comparisons {
        let mut pairs = Vec::new();
        calls.pairs(&format!("comparison {number} of {comparisons}, "), &args.fail_if, &mut pairs)?;
        match judge(&ComparedResults::InTurn(pairs)) {
            Ok(judgement) => found.add(&judgement, &args.fail_if),
            Err(CompareError::NothingValid { .. }) => found.skip(),
            Err(error) => return Err(as_usage_error(&error)),
        }
        save_json(&found, &file)?;
    }
    print_text(&format!("{}Kept in {}.\n", found.text(), file.display())).map(|()| CliOutcome::Success)
}

/// Judges the measurements and writes them, then prints the judgement and checks the limits.
fn finish(args: &CompareArgs, measured: &ComparedResults, head: &ResultFile) -> anyhow::Result<CliOutcome> {
    let judged = judge(measured);
    let changes = match &judged {
        Ok(judgement) => judgement.changes.as_slice(),
        Err(CompareError::NothingValid { .. }) => &[],
        Err(error) => return Err(as_usage_error(error)),
    };
    if let Some(file) = &args.json {
        result_file(measured, changes, &head.command, &head.started_at).save(file)?;
    }
    match judged {
        Ok(judgement) => print_judgement(args, &judgement),
        Err(error) => {
            print_note(&format!("tickpath: {error}"));
            let CompareError::NothingValid { losses, .. } = error else { return Ok(CliOutcome::Invalid) };
            losses.iter().for_each(|loss| print_note(&format!("tickpath: {loss}")));
            Ok(if losses.is_empty() { CliOutcome::Invalid } else { CliOutcome::Lost })
        }
    }
}

fn print_judgement(args: &CompareArgs, judgement: &Judgement) -> anyhow::Result<CliOutcome> {
    let rulings = rulings(judgement, &args.fail_if);
    let shown = rulings.as_deref().unwrap_or_default();
    if let Some(file) = &args.markdown {
        fs::write(file, markdown(judgement, shown)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    print_text(&text(judgement, shown))?;
    let rulings = match rulings {
        // A metric may be missing because its program lost messages: the limit then names no wrong metric.
        Err(_) if !judgement.losses.is_empty() => return Ok(CliOutcome::Lost),
        rulings => rulings.map_err(|error| as_usage_error(&error))?,
    };
    Ok(match overall_outcome(judgement, &rulings) {
        ComparisonOutcome::Lost => CliOutcome::Lost,
        ComparisonOutcome::Exceeded => CliOutcome::LimitExceeded,
        ComparisonOutcome::Undecided => CliOutcome::Invalid,
        ComparisonOutcome::Good => CliOutcome::Success,
    })
}

/// Two programs that run the same bench in turn.
struct AlternatingCalls<'a> {
    /// The old program, then the new one.
    programs: [PathBuf; 2],
    bench: &'a [String],
    count: u32,
    /// Number of calls of all comparisons.
    total: u64,
    lab: &'a Lab<'a>,
}

impl<'a> AlternatingCalls<'a> {
    fn of(args: &'a CompareArgs, lab: &'a Lab<'a>) -> anyhow::Result<Self> {
        let bench = args.bench.as_slice();
        if bench.first().is_none_or(|argument| argument != "bench") {
            bail_usage!("name the bench behind --, as in: -- bench path --count 20000");
        }
        if let Some(json) = bench.iter().find(|argument| *argument == "--json" || argument.starts_with("--json=")) {
            bail_usage!("{json} behind --: compare itself reads the bench's result; write --json before --");
        }
        let programs = [program(&args.old)?, program(&args.new)?];
        let count = args.repeat.unwrap_or(PAIRS);
        let all = 2 * u64::from(count) * u64::from(args.false_positives.unwrap_or(1));
        Ok(Self { programs, bench, count, total: all, lab })
    }

    /// Runs pairs in the order A B, B A, A B, …: drift and the costs of the first call then affect both sides alike. A
    /// limit on a metric that the bench lacks is rejected after the first pair.
    fn pairs(&self, label: &str, limits: &[MetricLimit], into: &mut Vec<ResultPair>) -> anyhow::Result<()> {
        let mut seconds = 0.0;
        for index in 0..self.count {
            let mut call = |nth: u32, side: BuildSide| {
                let what = format!("{label}call {} of {}: {}", 2 * index + nth, 2 * self.count, side.name());
                self.lab.step(&what, seconds)?;
                let begun = self.lab.clock.ticks();
                let result = self.call(side);
                seconds = self.lab.clock.ns_between(begun, self.lab.clock.ticks()) as f64 / 1e9;
                // The first call shows the length of a bench.
                self.lab.progress.plan(self.total as usize, seconds * self.total as f64);
                result
            };
            let mut results = [None, None];
            for (nth, side) in (1..).zip(in_turn(index + 1, BuildSide::BOTH)) {
                results[usize::from(side == BuildSide::New)] = Some(call(nth, side)?);
            }
            let [Some(old), Some(new)] = results else { bail!("this is a defect of Tickpath: a side had no turn") };
            into.push(ResultPair { old, new });
            if index == 0 {
                check_first_pair(&into[0], limits)?;
            }
        }
        Ok(())
    }

    /// Runs the bench with one program. Invalid runs are marked as such in the result.
    fn call(&self, side: BuildSide) -> anyhow::Result<ResultFile> {
        let program = match side {
            BuildSide::Old => &self.programs[0],
            BuildSide::New => &self.programs[1],
        };
        let file = self.lab.folder().join("call.json");
        // A file left by an earlier call must not be taken for this call's result.
        let _ = fs::remove_file(&file);
        let mut command = Command::new(program);
        command.args(self.bench).arg("--json").arg(&file);
        if !self.bench.iter().any(|argument| argument == "--quiet") {
            command.arg("--quiet");
        }
        let what = format!("{} {}", program.display(), self.bench.join(" "));
        let (stderr, status) = run_bounded(&mut command).with_context(|| what.clone())?;
        // A run that lost messages exits with 1 and its result has the number lost.
        let lossy = |file: &ResultFile| file.runs.iter().any(|run| run.counts.lost > 0);
        match status.code() {
            Some(1) if ResultFile::load(&file).is_ok_and(|file| lossy(&file)) => Ok(ResultFile::load(&file)?),
            Some(0 | 3) => ResultFile::load(&file).with_context(|| format!("{what} wrote no result that can be read")),
            Some(2) => bail_usage!("{what} refuses its arguments: {stderr}"),
            _ => bail!("{what} failed ({status}): {stderr}"),
        }
    }
}

/// Prints the number of the running call on standard error. Nothing is drawn meanwhile: drawing would take time from
/// the measurement.
struct CallProgress {
    quiet: bool,
    is_planned: Cell<bool>,
}

impl ProgressSink for CallProgress {
    fn step(&self, what: &str, seconds: f64) {
        if !self.quiet {
            let about = if seconds > 0.0 { format!(", about {seconds:.0} s") } else { String::new() };
            print_note(&format!("{what}{about}"));
        }
    }

    fn plan(&self, calls: usize, seconds: f64) {
        if !self.is_planned.replace(true) && !self.quiet {
            print_note(&format!("tickpath: {}: {calls} calls", approximate_time(seconds)));
        }
    }
}

/// Checks that the first pair can be compared and has the metrics of the limits. A pair with invalid runs passes.
fn check_first_pair(pair: &ResultPair, limits: &[MetricLimit]) -> anyhow::Result<()> {
    if pair.old.runs.iter().chain(&pair.new.runs).any(|run| !run.valid) {
        return Ok(());
    }
    let judgement = judge(&ComparedResults::InTurn(vec![pair.clone()])).map_err(|error| as_usage_error(&error))?;
    rulings(&judgement, limits).map_err(|error| as_usage_error(&error))?;
    Ok(())
}

fn rulings(judgement: &Judgement, limits: &[MetricLimit]) -> Result<Vec<Ruling>, UnmeasuredMetric> {
    let judged = limits.iter().map(|limit| limit.judge(judgement)).collect::<Result<Vec<_>, _>>()?;
    Ok(judged.into_iter().flatten().collect())
}

/// Runs a command to its end, or kills it at the time limit. Returns its standard error and its exit status.
///
/// This process stays idle meanwhile: the end of the child's standard error shows the child's end.
fn run_bounded(command: &mut Command) -> anyhow::Result<(String, ExitStatus)> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the program does not start")?;
    let collected = collect_stderr(child.stderr.take().expect("it is piped"));
    let stderr = collected.recv_timeout(Duration::from_secs(CALL_SECONDS)).ok();
    let status = if stderr.is_some() { exit_status(&mut child)? } else { None };
    match (stderr, status) {
        (Some(stderr), Some(status)) => Ok((stderr, status)),
        _ => {
            child.kill().context("the program cannot be killed")?;
            child.wait().context("the exit status of the program cannot be read")?;
            bail!("the call took longer than {} minutes and was killed; measure less in one call", CALL_SECONDS / 60)
        }
    }
}

/// Returns a channel that receives the whole standard error of a child once the child has closed it.
fn collect_stderr(mut stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A read error is ignored: the exit code decides.
        let _ = (&mut stderr).take(MAX_STDERR_BYTES).read_to_end(&mut bytes);
        let _ = io::copy(&mut stderr, &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&bytes).trim().to_owned());
    });
    receiver
}

/// Returns the exit status of a child that has closed its standard error; none if the child still runs.
fn exit_status(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    for _ in 0..EXIT_CHECKS {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep_ns(EXIT_CHECK_NS);
    }
    Ok(None)
}

/// Returns the absolute path of a program: a bare name would be searched for in PATH.
fn program(file: &Path) -> Result<PathBuf, CliUsageError> {
    if !is_program(file) {
        let why = "with a bench behind --, OLD and NEW must be programs; name executable files";
        bail_usage!("{} is no program: {why}", file.display());
    }
    file.canonicalize().map_err(|reason| CliUsageError(format!("{}: {reason}", file.display())))
}

/// Returns whether the file is executable and no JSON file with the executable bit set.
fn is_program(file: &Path) -> bool {
    let executable = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(64).read_to_end(&mut beginning));
    let is_json = read.is_ok() && beginning.trim_ascii_start().starts_with(b"{");
    fs::metadata(file).is_ok_and(executable) && !is_json
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Turns an error about results that cannot be compared, or about limits on missing metrics, into bad usage.
fn as_usage_error(error: &dyn std::error::Error) -> anyhow::Error {
    CliUsageError(error.to_string()).into()
}
