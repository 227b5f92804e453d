//! What a run is to be: what sends what, how deep, over how many connections; and what of that is possible.

use std::fmt;
use std::str::FromStr;

use super::command::Command;
use super::load::{MOST_AT_ONCE, Until};
use super::target::Target;
use tickpath_harness::LabError;
use tickpath_scratch::python::Python;

/// Commands that a run has at least, if its time is not counted.
const LEAST_COMMANDS: u64 = 10_000;

/// How many times its duration, and how many seconds at least, a run may take for those.
const MOST_TIMES: f64 = 6.0;
const MOST_SECONDS: f64 = 3.0;

/// How long a run of a given number of commands may take, in seconds.
const MOST_COUNTED_SECONDS: f64 = 600.0;

/// The deepest pipeline.
const MOST_DEPTH: u64 = 10_000_000;
/// The most connections of a run: what a process may have open without asking for more.
const MOST_CONNECTIONS: usize = 900;

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

impl Settings {
    /// Refuses what makes no run, before anything is measured.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        let Self { client, command, depth, connections, rate, .. } = self;
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
                "the client {} does not send {command} over {connections} connections{}; raw sends PING alone, \
                 redis-py plain commands over one connection without a rate, and rust all",
                client.name(),
                if rate.is_some() { " at a rate" } else { "" }
            ));
        }
        if *client == Client::RedisPy && *depth > MOST_AT_ONCE {
            return wrong(format!("redis-py writes a pipeline before it reads; use a depth of at most {MOST_AT_ONCE}"));
        }
        Ok(())
    }

    /// When a run ends.
    pub(super) fn until(&self) -> Until {
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
    pub(super) fn reads_while_writing(&self) -> bool {
        // Whoever writes a long pipeline first has the server hold all its replies. Redis does; a proxy, or a server
        // with a limit, stops reading when its replies are not taken, and then both ends wait for each other for ever.
        self.part == Part::Long || self.depth > MOST_AT_ONCE
    }
}
