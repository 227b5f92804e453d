//! Settings of a run (client, command, depth, connections), and the rules that refuse impossible ones.

use std::fmt;
use std::str::FromStr;

use super::command::RedisCommand;
use super::load::{MAX_UNREAD_COMMANDS, RunLimit};
use super::target::PipelineTarget;
use tickpath_lab_harness::LabError;
use tickpath_lab_result::named_variants;
use tickpath_lab_tools::python::Python;

/// Min commands of a run without a given number of commands.
const MIN_COMMANDS: u64 = 10_000;

/// Max duration of a run for these commands: a multiple of its duration, and at least this number of seconds.
const MAX_DURATION_RATIO: f64 = 6.0;
const MIN_MAX_SECONDS: f64 = 3.0;

/// Max duration of a run with a given number of commands, in seconds.
const MAX_COUNTED_SECONDS: f64 = 600.0;

const MAX_DEPTH: u64 = 10_000_000;
/// Max connections of a run: a process may open this many without raising its limit.
const MAX_CONNECTIONS: usize = 900;

/// Settings of `pipeline`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server.
    pub target: PipelineTarget,
    /// The client that sends the commands.
    pub client: PipelineClient,
    /// The command.
    pub command: RedisCommand,
    /// Commands per batch.
    pub depth: u64,
    /// The number of connections.
    pub connections: usize,
    /// Commands a second at intended times; a closed loop if there is none.
    pub rate: Option<f64>,
    /// The duration of a run, in seconds.
    pub seconds: f64,
    /// The number of commands of a run, instead of its duration.
    pub count: Option<u64>,
    /// The generator's CPU, and the CPU of a scratch server.
    pub cpus: [usize; 2],
    /// The number of this repetition.
    pub repeat: u32,
    /// The part of the bench that the run belongs to.
    pub part: BenchPart,
    /// The interpreter for redis-py.
    pub python: Option<Python>,
}

/// The client that sends the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineClient {
    /// Our own generator.
    Rust,
    /// The floor of any client: PING as text, and the bytes of the answers counted without parsing.
    Raw,
    /// redis-py with hiredis.
    RedisPy,
}

/// The error for an unknown client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client of this bench; use rust, raw or redis-py")]
pub struct PipelineClientError(String);

/// The part of the bench that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchPart {
    /// A single command at pipelines of every depth.
    Sweep,
    /// A pipeline of a million commands, and a hundred pipelines of ten thousand.
    Long,
    /// Ways to read, compute and write.
    Scripts,
    /// Comparison with redis-benchmark.
    Comparison,
}

named_variants!(PipelineClient { Rust = "rust", Raw = "raw", RedisPy = "redis-py" });

impl PipelineClient {
    /// Returns whether it can send a command over this number of connections, at a rate or not.
    pub fn supports(self, command: RedisCommand, connections: usize, rate: Option<f64>) -> bool {
        match self {
            Self::Rust => command != RedisCommand::GetSet || (connections == 1 && rate.is_none()),
            Self::Raw => command == RedisCommand::Ping,
            Self::RedisPy => RedisCommand::PLAIN.contains(&command) && connections == 1 && rate.is_none(),
        }
    }
}

impl FromStr for PipelineClient {
    type Err = PipelineClientError;

    fn from_str(text: &str) -> Result<Self, PipelineClientError> {
        Self::ALL.into_iter().find(|client| client.name() == text).ok_or_else(|| PipelineClientError(text.to_owned()))
    }
}

impl BenchPart {
    /// Returns the name in results and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Long => "long",
            Self::Scripts => "scripts",
            Self::Comparison => "against",
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, command, depth, connections, .. } = self;
        write!(f, "pipeline {} {command}, depth {depth}, connections {connections}", client.name())
    }
}

impl Settings {
    /// Refuses impossible settings before anything is measured.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        let Self { client, command, depth, connections, rate, .. } = self;
        if !(1..=MAX_DEPTH).contains(depth) {
            return wrong(format!("a depth of {depth} is not possible; use 1 to {MAX_DEPTH}"));
        }
        if !(1..=MAX_CONNECTIONS).contains(connections) {
            return wrong(format!("{connections} connections are not possible; use 1 to {MAX_CONNECTIONS}"));
        }
        if rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
            return wrong("--rate takes a number above 0, up to 100000000".to_owned());
        }
        if !client.supports(*command, *connections, *rate) {
            return wrong(format!(
                "the client {} does not send {command} over {connections} connections{}; raw sends PING alone, \
                 redis-py plain commands over one connection without a rate, and rust all",
                client.name(),
                if rate.is_some() { " at a rate" } else { "" }
            ));
        }
        if *client == PipelineClient::RedisPy && *depth > MAX_UNREAD_COMMANDS {
            return wrong(format!(
                "redis-py writes a pipeline before it reads; use a depth of at most {MAX_UNREAD_COMMANDS}"
            ));
        }
        Ok(())
    }

    pub(super) fn run_limit(&self) -> RunLimit {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let timed = self.rate.map(|rate| ((rate * self.seconds) as u64).max(self.depth));
        let max_seconds = match (self.count, self.rate) {
            (None, None) => (self.seconds * MAX_DURATION_RATIO).max(MIN_MAX_SECONDS),
            (Some(count), Some(rate)) => count as f64 / rate * 2.0 + 1.0,
            (None, Some(_)) => self.seconds * 2.0 + 1.0,
            (Some(_), None) => MAX_COUNTED_SECONDS,
        };
        RunLimit {
            count: self.count.or(timed),
            duration_ns: ns(self.seconds),
            least: MIN_COMMANDS,
            most_ns: ns(max_seconds.min(MAX_COUNTED_SECONDS.max(self.seconds))),
        }
    }

    /// Returns whether replies must be read while commands are still written.
    pub(super) fn reads_while_writing(&self) -> bool {
        // A client that writes a long pipeline first makes the server hold all its replies. Redis does so; a proxy, or
        // a server with a limit, stops reading when its replies are not taken, and then both ends deadlock.
        self.part == BenchPart::Long || self.depth > MAX_UNREAD_COMMANDS
    }
}
