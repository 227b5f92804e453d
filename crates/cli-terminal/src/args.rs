//! Options that several commands share: outputs, processors, rates and sizes.

use std::convert::Infallible;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use clap::Args;
use tickpath_bus::Policy;
use tickpath_lab_harness::arrivals::ArrivalProcess;
use tickpath_lab_harness::proxy::MAX_RTT_MS;
use tickpath_lab_harness::targets::check_reachable;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::ResultFile;

/// A mistake in the command's arguments: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CliUsageError(pub String);

impl From<tickpath_exchanges::ExchangeUsageError> for CliUsageError {
    fn from(error: tickpath_exchanges::ExchangeUsageError) -> Self {
        Self(error.0)
    }
}

impl From<tickpath_oms_text::trigger::TriggerError> for CliUsageError {
    fn from(error: tickpath_oms_text::trigger::TriggerError) -> Self {
        Self(format!("--when: {error}"))
    }
}

/// Ends the function with a mistake in the command's arguments, whose text is formatted as by `format!`.
#[macro_export]
macro_rules! bail_usage {
    ($($text:tt)+) => {
        return Err($crate::args::CliUsageError(format!($($text)+)).into())
    };
}

pub use bail_usage;

/// A request without an answer, or whose answer is lost: exit code 5.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnansweredError(pub String);

/// Where results go.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Write the result file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print every run in full, on as many screens as needed
    #[arg(long)]
    pub all: bool,
    /// Print nothing on standard error
    #[arg(long)]
    pub quiet: bool,
}

impl OutputArgs {
    /// Rejects files that cannot be written, before anything is measured.
    pub fn check(&self) -> Result<(), CliUsageError> {
        self.json.iter().chain(&self.html).try_for_each(|file| check_writable(file))
    }
}

/// Rejects a file that cannot be written. Leaves an existing file unchanged, and creates none.
pub fn check_writable(file: &Path) -> Result<(), CliUsageError> {
    let is_new = !file.exists();
    // Opening a pipe or a terminal would wait for its other end.
    if std::fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    match OpenOptions::new().append(true).create(true).open(file) {
        Ok(_) if is_new => {
            // The file was created by this check only.
            let _ = std::fs::remove_file(file);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let remedy = "name a file in a folder that exists and that you may write to";
            bail_usage!("cannot write {}: {error}; {remedy}", file.display())
        }
    }
}

/// Which processors a run uses.
#[derive(Debug, Clone, Args)]
pub struct CpuArgs {
    /// CPUs of the generator (sender), the system (receiver) and, where there is one, the venue; default: the first
    /// two, with the venue on the generator's
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
}

/// Whether spinning threads run a warm-up.
#[derive(Debug, Clone, Args)]
pub struct WarmUpArgs {
    /// Warm-up: whether threads that wait with busy or adaptive process the next message or order on scratch memory
    /// meanwhile, so that the real one finds the caches warm; over logs, and in the OMS
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = ["on", "off"])]
    warm: String,
}

impl WarmUpArgs {
    /// Runs with this setting, and notes it in the runs if it is not the default.
    pub fn apply<'a>(
        &self,
        lab: &mut Lab<'a>,
        result: &mut ResultFile,
        run: impl FnOnce(&Lab<'a>, &mut ResultFile) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        lab.runs_warm_up = self.warm == "on";
        let done = run(lab, result);
        if !lab.runs_warm_up {
            result.runs.iter_mut().for_each(|run| run.params.set("warm", "off"));
        }
        done
    }
}

/// A number of messages a second, or as fast as possible.
#[derive(Debug, Clone, Copy)]
pub enum SendRate {
    /// As fast as possible.
    Max,
    /// Messages a second.
    PerSecond(f64),
}

impl SendRate {
    /// Returns the rate; none if it is as fast as possible.
    pub fn per_second(self) -> Option<f64> {
        if let Self::PerSecond(rate) = self { Some(rate) } else { None }
    }
}

/// Resolves the URL of a bus, which may stand in the environment or in a file, as may its password. Errors are
/// reported at connect: a parse error here would print the whole text, which may hold a password.
pub fn bus_url(text: &str) -> Result<String, Infallible> {
    Ok(tickpath_bus::resolve_url(text).unwrap_or_else(|_| text.to_owned()))
}

/// Rejects a URL that names no transport, before anything is measured.
pub fn check_targets(urls: &[String]) -> anyhow::Result<()> {
    urls.iter().try_for_each(|url| check_target(url))
}

/// Rejects a target that is not reachable, or that no transport supports. Ctrl-C ends the wait for a target that does
/// not answer.
pub fn check_target(url: &str) -> anyhow::Result<()> {
    match check_reachable(url) {
        Err(LabError::Connect(error)) if error.is_usage() => Err(CliUsageError(error.to_string()).into()),
        reached => Ok(reached?),
    }
}

/// Rejects a recording that does not exist, before anything is measured.
pub fn check_recording(ticks: &Option<PathBuf>) -> Result<(), CliUsageError> {
    if let Some(file) = ticks.as_ref().filter(|file| !file.is_file()) {
        bail_usage!("--ticks {}: there is no file at this path; give the path of a recording", file.display());
    }
    Ok(())
}

/// Parses a number with its suffix: `k` multiplies by `of_k`, `M` by its square.
fn parse_suffixed(text: &str, of_k: f64) -> Option<f64> {
    let (number, times) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, of_k),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, of_k * of_k)),
    };
    Some(number.parse::<f64>().ok()? * times)
}

/// Parses a rate: a number a second, or `max`.
pub fn rate(text: &str) -> Result<SendRate, String> {
    match text {
        "max" => Ok(SendRate::Max),
        _ => positive(text).map(SendRate::PerSecond).map_err(|why| format!("{why}, or max")),
    }
}

/// Names of the arrival processes, the default first.
pub const ARRIVALS: [&str; 2] = ["steady", "poisson"];

/// Returns the arrival process with this name.
pub fn arrivals(name: &str, seed: u64) -> ArrivalProcess {
    if name == ARRIVALS[0] { ArrivalProcess::Steady } else { ArrivalProcess::Poisson { seed } }
}

/// Parses a number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = parse_suffixed(text, 1_000.0).ok_or("not a number; write one like 10000 or 10k")?;
    if number > 0.0 && number <= 1e8 { Ok(number) } else { Err("use a number above 0, up to 100000000".to_owned()) }
}

/// Parses a duration in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=86_400.0).contains(number));
    number.ok_or_else(|| "use 0.1 to 86400 seconds, a number without a unit: 600 for ten minutes".to_owned())
}

/// Parses one of these names; the error lists all of them.
pub fn one_of<T: Copy>(text: &str, named: &[(&str, T)]) -> Result<T, String> {
    let found = named.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().expect("there are names");
        format!("use {} or {last}", others.join(", "))
    })
}

/// Parses the name of a full policy.
pub fn policy(text: &str) -> Result<Policy, String> {
    one_of(text, &Policy::ALL.map(|policy| (policy.name(), policy)))
}

/// Parses an injected round-trip time, in milliseconds.
pub fn rtt(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=MAX_RTT_MS).contains(number));
    number.ok_or_else(|| format!("use 0 to {MAX_RTT_MS} milliseconds, a number without a unit"))
}

/// Parses a number of bytes, with or without a unit.
pub fn size(text: &str) -> Result<usize, String> {
    let number = parse_suffixed(text, 1_024.0).filter(|number| number.fract() == 0.0);
    let number = number.ok_or("not a whole number; write one like 65536 or 64k")? as usize;
    if (16..=16 << 20).contains(&number) { Ok(number) } else { Err("use 16 to 16777216 bytes".to_owned()) }
}

impl CpuArgs {
    /// Returns the CPU of the venue, if `--cpus` has one.
    pub fn venue_cpu(&self) -> Option<usize> {
        self.cpus.get(2).copied()
    }

    /// Returns the CPUs of the generator and the system; rejects a CPU that this process may not use.
    pub fn bench_cpus(&self) -> Result<[usize; 2], CliUsageError> {
        let available = tickpath_clock::cpus();
        if let Some(missing) = self.cpus.iter().find(|cpu| !available.contains(cpu)) {
            bail_usage!("--cpus: CPU {missing} is not available; available: {available:?}");
        }
        let first = available.first().copied().unwrap_or(0);
        match self.cpus[..] {
            [] => Ok([first, available.get(1).copied().unwrap_or(first)]),
            [one] => Ok([one, one]),
            [generator, system, ..] => Ok([generator, system]),
        }
    }
}
