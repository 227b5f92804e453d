//! Words that the command lines share: where results go, which processors, rates and sizes.

use std::path::PathBuf;

use clap::Args;

/// A mistake in how the command was called: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A request that nobody has answered, or whose answer is lost: exit code 5.
#[derive(Debug)]
pub struct Unanswered(pub String);

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unanswered {}

/// Where results go.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Write the result file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Say nothing on standard error
    #[arg(long)]
    pub quiet: bool,
}

impl Output {
    /// Refuses files that cannot be written, before anything is measured.
    pub fn check(&self) -> Result<(), Usage> {
        for file in self.json.iter().chain(&self.html) {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            if file.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
                return Err(Usage(format!("cannot write {}: name a file in a folder that exists", file.display())));
            }
        }
        Ok(())
    }
}

/// Which processors a run uses.
#[derive(Debug, Clone, Args)]
pub struct Cpus {
    /// CPUs of generator, system (receiver) and venue; the first two if not given, the venue beside the generator
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
}

/// Messages a second, or as fast as it goes.
#[derive(Debug, Clone, Copy)]
pub enum Rate {
    Max,
    PerSecond(f64),
}

/// Refuses a URL that names no transport, before anything is measured.
pub fn are_targets(urls: &[String]) -> anyhow::Result<()> {
    urls.iter().try_for_each(|url| is_target(url))
}

/// Refuses a target that is not there, or that no transport takes.
pub fn is_target(url: &str) -> anyhow::Result<()> {
    match tickpath_bus::connect(url) {
        Ok(_) => Ok(()),
        Err(error) if error.is_usage() => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a recording that is not there, before anything is measured.
pub fn is_file(ticks: &Option<PathBuf>) -> Result<(), Usage> {
    match ticks.as_ref().filter(|file| !file.is_file()) {
        Some(file) => {
            Err(Usage(format!("--ticks {}: no such file, or no file; give the path of a recording", file.display())))
        }
        None => Ok(()),
    }
}

pub fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" { Ok(Rate::Max) } else { positive(text).map(Rate::PerSecond) }
}

pub fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number <= 1e8 { Ok(number) } else { Err("use a number above 0, up to 100000000".to_owned()) }
}

pub fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=86_400.0).contains(&number) { Ok(number) } else { Err("use 0.1 to 86400 seconds".to_owned()) }
}

pub fn size(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "not a whole number".to_owned())?;
    if (16..=16 << 20).contains(&number) { Ok(number) } else { Err("use 16 to 16777216 bytes".to_owned()) }
}

impl Cpus {
    /// The venue's, if one is named.
    pub fn third(&self) -> Option<usize> {
        self.cpus.get(2).copied()
    }

    /// Generator and system, checked against what this process may use.
    pub fn two(&self) -> Result<[usize; 2], Usage> {
        let available = tickpath_clock::cpus();
        if let Some(missing) = self.cpus.iter().find(|cpu| !available.contains(cpu)) {
            return Err(Usage(format!("--cpus: CPU {missing} is not available; available: {available:?}")));
        }
        let last = available.last().copied().unwrap_or(0);
        let first = available.first().copied().unwrap_or(0);
        let second = available.get(1).copied().unwrap_or(last);
        match self.cpus[..] {
            [] => Ok([first, second]),
            [one] => Ok([one, one]),
            [generator, system, ..] => Ok([generator, system]),
        }
    }
}
