//! `pipeline`: Redis commands one by one and in pipelines, over sockets of our own.
//!
//! ```text
//!   generator (generator's CPU)                        server (system's CPU)
//!   depth commands ───────── one write ──────────────> read, execute each, keep the replies
//!   depth replies  <── as few reads as it goes ─────── write
//!     └──────────────── round_trip ───────────────┘
//! ```
//! Each connection waits for all replies before it sends the next batch: a closed loop, which shows the time of a
//! service and not that of a queue, and the run says so. With a rate, batches leave at intended times instead. Valid
//! only if every reply came and was no error, numbers that count up came in their order, the number at the end is
//! right, and, with a rate, the generator kept it and was punctual.
//!
//! | file              | what it holds                                                              |
//! |-------------------|----------------------------------------------------------------------------|
//! | `target.rs`       | the server, and the key that a run has on it                               |
//! | `command.rs`      | what is sent                                                               |
//! | `load.rs`         | what is to be sent, over which connections, and how far it is              |
//! | `generator.rs`    | the process that sends it                                                  |
//! | `in_turn.rs`, `side_by_side.rs` | how it does: over one connection, over many                  |
//! | `replies.rs`      | what comes back, counted                                                   |
//! | `usage.rs`        | processor time, system calls and context switches of both ends             |
//! | `assemble.rs`     | a run of all that                                                          |
//! | `long.rs`         | a million commands in one pipeline, and what the server holds for it       |
//! | `against.rs`      | the same beside redis-benchmark                                            |
//! | `findings.rs`     | what the runs say together: gain, knee, why one by one is slow             |
//! | `control.rs`      | logging in; asking the server one thing at a time                          |

mod against;
mod assemble;
mod command;
mod control;
mod findings;
mod generator;
mod in_turn;
mod load;
mod long;
mod replies;
mod side_by_side;
mod target;
mod usage;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use against::against_redis_benchmark;
pub use command::{Command, ParseCommandError, VALUE};
pub use findings::{compare, knee, place_knees, why_depth_one_is_slow};
pub use load::PipelineRole;
pub use long::{BATCH, LONG, long};
pub use target::Target;

use load::{MOST_AT_ONCE, Told, Until};
use target::Key;

use tickpath_harness::Child;
use tickpath_harness::{Lab, LabError};
use tickpath_result::Run;
use tickpath_scratch::python::Python;

/// Commands that a run has at least, if its time is not counted.
const LEAST_COMMANDS: u64 = 10_000;

/// How many times its duration, and how many seconds at least, a run may take for those.
const MOST_TIMES: f64 = 6.0;
const MOST_SECONDS: f64 = 3.0;

/// How long a run of a given number of commands may take, in seconds.
const MOST_COUNTED_SECONDS: f64 = 600.0;

/// The deepest pipeline.
pub const MOST_DEPTH: u64 = 10_000_000;
/// The most connections of a run: what a process may have open without asking for more.
pub const MOST_CONNECTIONS: usize = 900;

/// How `pipeline` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server.
    pub target: Target,
    /// What sends the commands.
    pub client: Client,
    /// Which one.
    pub command: Command,
    /// Commands that are sent together.
    pub depth: u64,
    /// Connections.
    pub connections: usize,
    /// Commands a second at intended times; a closed loop if there is none.
    pub rate: Option<f64>,
    /// How long a run lasts, in seconds.
    pub seconds: f64,
    /// Commands of a run, instead of its duration.
    pub count: Option<u64>,
    /// The generator's CPU, and that of a server of ours.
    pub cpus: [usize; 2],
    /// Which repetition this is.
    pub repeat: u32,
    /// What part of the bench the run belongs to.
    pub part: Part,
    /// For redis-py.
    pub python: Option<Python>,
}

/// What sends the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Our generator.
    Rust,
    /// The floor of any client: PING as text, and the bytes of the answers counted without looking at them.
    Raw,
    /// redis-py with hiredis.
    RedisPy,
}

/// A word that is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client of this bench; use rust, raw or redis-py")]
pub struct ParseClientError(String);

/// What part of the bench a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One command at pipelines of every depth.
    Sweep,
    /// One pipeline of a million commands, and a hundred of ten thousand.
    Long,
    /// Ways to read, compute and write.
    Scripts,
    /// Beside redis-benchmark.
    Against,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rust, Self::Raw, Self::RedisPy];

    /// The word in results and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Raw => "raw",
            Self::RedisPy => "redis-py",
        }
    }

    /// Whether it can send a command over so many connections, at a rate or not.
    pub fn can(self, command: Command, connections: usize, rate: Option<f64>) -> bool {
        match self {
            Self::Rust => command != Command::GetSet || (connections == 1 && rate.is_none()),
            Self::Raw => command == Command::Ping,
            Self::RedisPy => Command::PLAIN.contains(&command) && connections == 1 && rate.is_none(),
        }
    }
}

impl FromStr for Client {
    type Err = ParseClientError;

    fn from_str(text: &str) -> Result<Self, ParseClientError> {
        Self::ALL.into_iter().find(|client| client.name() == text).ok_or_else(|| ParseClientError(text.to_owned()))
    }
}

impl Part {
    /// The word in results and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Long => "long",
            Self::Scripts => "scripts",
            Self::Against => "against",
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, command, depth, connections, .. } = self;
        write!(f, "pipeline {} {command}, depth {depth}, connections {connections}", client.name())
    }
}

/// Runs once. The run is among `runs` also if it failed in the middle, with what it had come to.
pub fn run(lab: &Lab<'_>, settings: &Settings, runs: &mut Vec<Run>) -> Result<(), LabError> {
    check(settings)?;
    lab.step(&settings.to_string(), settings.seconds)?;
    let mut key = Key::claim(lab, &settings.target, settings.command)?;
    let out = lab.folder().join("pipeline");
    let mut client = spawn(lab, settings, &mut key, &out)?;
    let before = settings.target.usage();
    client.tell("go")?;
    let told: Told = client.result(settings.until().most_ns as f64 / 1e9)?;
    let served = settings.target.usage().since(before);
    drop(client);
    let mut run = assemble::assemble(lab, settings, &told, served, &out)?;
    if settings.command.is_counting() {
        assemble::check_number(&mut run, key.number());
    }
    runs.push(run);
    told.failed.map_or(Ok(()), |what| Err(LabError::Failed(what)))
}

impl Settings {
    /// When a run ends.
    fn until(&self) -> Until {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let timed = self.rate.map(|rate| ((rate * self.seconds) as u64).max(self.depth));
        let most = match (self.count, self.rate) {
            (None, None) => (self.seconds * MOST_TIMES).max(MOST_SECONDS),
            (Some(count), Some(rate)) => count as f64 / rate * 2.0 + 1.0,
            (None, Some(_)) => self.seconds * 2.0 + 1.0,
            (Some(_), None) => MOST_COUNTED_SECONDS,
        };
        Until {
            count: self.count.or(timed),
            duration_ns: ns(self.seconds),
            least: LEAST_COMMANDS,
            most_ns: ns(most.min(MOST_COUNTED_SECONDS.max(self.seconds))),
        }
    }

    /// Whether replies must be read while commands are still written.
    fn reads_while_writing(&self) -> bool {
        // Whoever writes a long pipeline first has the server hold all its replies. Redis does; a proxy, or a server
        // with a limit, stops reading when its replies are not taken, and then both ends wait for each other for ever.
        self.part == Part::Long || self.depth > MOST_AT_ONCE
    }
}

fn check(settings: &Settings) -> Result<(), LabError> {
    let wrong = |what: String| Err(LabError::Setting(what));
    let Settings { client, command, depth, connections, rate, .. } = settings;
    if !(1..=MOST_DEPTH).contains(depth) {
        return wrong(format!("a depth of {depth} is not possible; use 1 to {MOST_DEPTH}"));
    }
    if !(1..=MOST_CONNECTIONS).contains(connections) {
        return wrong(format!("{connections} connections are not possible; use 1 to {MOST_CONNECTIONS}"));
    }
    if rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
        return wrong("--rate takes a number above 0, up to 100000000".to_owned());
    }
    if !client.can(*command, *connections, *rate) {
        return wrong(format!(
            "the client {} does not send {command} over {connections} connections{}; raw sends PING alone, redis-py \
             plain commands over one connection without a rate, and rust all",
            client.name(),
            if rate.is_some() { " at a rate" } else { "" }
        ));
    }
    if *client == Client::RedisPy && *depth > MOST_AT_ONCE {
        return wrong(format!("redis-py writes a pipeline before it reads; use a depth of at most {MOST_AT_ONCE}"));
    }
    Ok(())
}

fn spawn(lab: &Lab<'_>, settings: &Settings, key: &mut Key, out: &Path) -> Result<Child, LabError> {
    let digest = if settings.command.is_by_digest() { key.load_script()? } else { String::new() };
    let role = PipelineRole {
        address: settings.target.way().clone(),
        key: key.name().to_owned(),
        command: settings.command,
        digest,
        raw: settings.client == Client::Raw,
        depth: settings.depth,
        connections: settings.connections,
        rate: settings.rate,
        while_writing: settings.reads_while_writing(),
        until: settings.until(),
        cpu: settings.cpus[0],
        out: out.to_owned(),
    };
    match (settings.client, &settings.python) {
        (Client::Rust | Client::Raw, _) => lab.spawn(&role),
        (Client::RedisPy, Some(python)) => {
            python.spawn(lab, "redis-py", &[("pipeline.py", include_str!("python/pipeline.py"))], &role)
        }
        (Client::RedisPy, None) => {
            Err(LabError::Setting("redis-py needs a Python environment; prepare one, or leave redis-py out".to_owned()))
        }
    }
}
