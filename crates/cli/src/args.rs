//! The command line. Help comes from here.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use tickpath_clock::{Priority, Wait};
use tickpath_oms::Layout;

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

/// Carries a market tick to an order at a venue, and shows where each nanosecond went.
#[derive(Debug, Parser)]
#[command(name = "tickpath", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value a process")]
pub enum Command {
    /// The path on this machine, with and without a broker, and where the time goes
    Demo(Demo),
    /// Measure a workload
    Bench(Bench),
    /// Render result files again
    Report(Report),
    /// Where the time goes for this broker and client, and what each change would gain
    Explain(crate::explain::ExplainArgs),
    /// Two builds side by side: what changed, by how much, and what is only noise
    Compare(crate::compare::Compare),
    /// Send an order to an OMS, change it, take it back
    Order(crate::order::Order),
    /// The open orders of an order journal, and what becomes of them; safe while its OMS trades
    Orders(crate::orders::Orders),
    /// What an OMS tells others, a line each, by the session of a user who hears a drop copy
    DropCopy(crate::drop_copy::DropCopy),
    /// An OMS as a server: check its configuration, make a first one, change its users
    Oms(crate::oms::Oms),
    /// A running OMS at a glance: orders, positions, sessions, lines, latency now
    Top(crate::top::Top),
    /// A simulated exchange as a process: its orders come from an OMS
    Exchange(crate::exchange::Exchange),
    /// Look into logs and journals
    Log(Log),
    /// What of this host and its brokers costs latency or safety, and the remedy of each
    Doctor(crate::doctor::Doctor),
    /// A process of a bench
    #[command(hide = true)]
    Child {
        /// The process to end with
        parent: u32,
    },
}

#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// A recording of LOCAL_NS JSON lines, gzip or plain; ticks are made up without one
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Measure the TCP connect time to a venue too, and what share of the way each path is
    #[arg(long, value_name = "HOST:PORT")]
    pub venue: Option<String>,
    /// What made-up ticks depend on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, ClapArgs)]
pub struct Bench {
    #[command(subcommand)]
    pub workload: Workload,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value a process")]
pub enum Workload {
    /// The floor: clock, cache line, loopback, and what the host steals from a spinning thread
    Host(HostArgs),
    /// Messages from one process to another
    Pubsub(crate::bench::pubsub::PubsubArgs),
    /// Messages from one pusher to pullers that share the work
    Queue(crate::bench::queue::QueueArgs),
    /// Commands in pipelines of 1 to 1,000,000 to a Redis server: throughput, memory, system calls, the knee
    Pipeline(crate::bench::pipeline::PipelineArgs),
    /// Set a key, get it again: what each client library gets out of a Redis server, near and far
    Clients(crate::bench::clients::ClientsArgs),
    /// From a tick to an order at a venue, every hop
    Path(PathArgs),
    /// Batches of orders through an OMS, in the form of the f9omstw benchmark
    Orders(crate::bench::orders::OrdersArgs),
}

#[derive(Debug, ClapArgs)]
pub struct HostArgs {
    /// How long to spin, in seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    pub duration: f64,
    /// How often to measure
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, ClapArgs)]
pub struct PathArgs {
    /// What carries the ticks: shm://, file:///FOLDER, redis://HOST:PORT; may be repeated, and then they take turns
    #[arg(long, value_name = "URL", default_value = "shm://")]
    pub target: Vec<String>,
    /// A recording of LOCAL_NS JSON lines, gzip or plain; ticks are made up without one
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Ticks a second; the recording's own times if not given and there is one
    #[arg(long, value_name = "R", value_parser = positive)]
    pub rate: Option<f64>,
    /// How much faster than the recording's own times
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "ticks", conflicts_with = "rate")]
    pub speed: f64,
    /// How long a run publishes at its rate, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count", requires = "rate")]
    pub duration: Option<f64>,
    /// Ticks of a run; the recording is looped for as many
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub count: u64,
    /// Which thread does what
    #[arg(long, value_name = "inline|split|mutex", value_delimiter = ',', default_value = "inline")]
    pub layout: Vec<Layout>,
    /// How the strategy waits for ticks
    #[arg(long, value_name = "busy|yield|block", value_delimiter = ',', default_value = "busy")]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// What made-up ticks depend on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How often to run everything, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

/// Where results go.
#[derive(Debug, Clone, ClapArgs)]
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
#[derive(Debug, Clone, ClapArgs)]
pub struct Cpus {
    /// CPUs of generator, system (receiver) and venue; the first two if not given, the venue beside the generator
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
}

#[derive(Debug, ClapArgs)]
pub struct Report {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write a page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a row for each run and hop
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write Markdown tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write percentile curves
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the result file again, in order
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Log {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// The topics in shared memory, or one log: policy, sizes, writer, readers and how far they are. One that nobody uses
    /// any more goes with its folder, /dev/shm/tickpath.NAME
    Ls {
        /// shm://NAME, file:///PATH or a folder
        log: Option<String>,
    },
    /// Print messages, one a line
    Cat(crate::log::cat::CatArgs),
    /// Read everything and check it: frames, checksums, and, in a journal, that a replay comes to the same digests and its
    /// snapshots are good
    Verify {
        /// shm://NAME, file:///PATH or a folder
        log: String,
    },
    /// The latency tables of an order journal, from the journal alone
    Analyse {
        /// The journal's folder
        dir: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Make a snapshot of an order journal as far as it goes: the next start of the OMS reads it, and what came since
    Snapshot {
        /// The journal's folder
        dir: PathBuf,
    },
    /// Write a topic's messages to a folder as they come, losses included
    Record(crate::log::record::RecordArgs),
    /// Publish a recording again, at its own times or others
    Replay(crate::log::replay::ReplayArgs),
    /// Carry topics from one bus to another, until Ctrl-C
    Bridge(crate::log::bridge::BridgeArgs),
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
