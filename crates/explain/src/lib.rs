//! `explain`: where one message's time goes for this broker and client, and what each change would gain.
//!
//! ```text
//!   publisher process                                   subscriber process
//!   start ─ import ─ connect ─ publish: client, encode, send ─┐
//!                                        server, kernel ──────┤ wire
//!                      script <─ hand over <─ parse <─ read ──┘
//! ```
//! The stamps are taken around redis-py's own methods, in both processes, by one clock. Cold, first after a pause and
//! steady are three results, never one. The sum of the stages stands beside the whole, and what remains is told.
//!
//! | file          | what it does                                                            |
//! |---------------|-------------------------------------------------------------------------|
//! | `phases.rs`   | our own clients: cold, first after a pause, steady                      |
//! | `scripts.rs`  | the user's scripts, and the published case of one publish a process     |
//! | `rust.rs`     | our own bus over the same server, over any other, and over the log      |
//! | `gain.rs`     | the changes that can be tried                                           |
//! | `gains.rs`    | what each change would gain, in turns with what there is                |
//! | `trial.rs`    | for each change the way there is, and the way that it becomes           |
//! | `field.rs`    | what takes turns, opened: servers, pairs, one batch of each             |
//! | `pair.rs`     | a publisher and a subscriber that stay connected and take orders        |
//! | `command.rs`  | scripts as they are, each run a new process, watched by a hook          |
//! | `records.rs`  | what the hook wrote, and which row of both sides belongs together       |
//! | `stages.rs`   | rows as stages that add up                                              |
//! | `account.rs`  | rows as figures of a run                                                |
//! | `floor.rs`    | the same message over bare sockets                                      |
//! | `server.rs`   | the server under test                                                   |
//! | `findings.rs` | the result in plain sentences                                           |
//! | `text.rs`     | the result for a terminal                                               |

mod account;
mod command;
mod field;
mod findings;
mod floor;
mod gain;
mod gains;
mod pair;
mod phases;
mod records;
mod rust;
mod scripts;
mod server;
mod stages;
mod text;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use gain::{GAINS, Gain, ParseGainError};
pub use server::is_redis;
pub use text::text;

use findings::findings;
use floor::{Floor, Sides};
use server::Target;
use stages::Between;

use tickpath_harness::{Lab, LabError, host};
use tickpath_result::{ResultFile, Run};
use tickpath_scratch::python::Python;
use tickpath_scratch::redis::{Persistence, ServerSettings};

/// The workload that its results name.
pub const WORKLOAD: &str = "explain";

/// The client whose message is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// redis-py, blocking.
    RedisPy,
    /// redis-py on asyncio.
    RedisPyAsyncio,
    /// Our own bus.
    Rust,
}

/// A word that is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client that can be explained; use redis-py, redis-py-asyncio or rust")]
pub struct ParseClientError(String);

/// What is explained.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Our own copy of a publisher and a subscriber, over Redis.
    Client(Client),
    /// The same with our own bus over the server of this URL, on which redis-py is not explained, or over the log.
    Bus(String),
    /// The user's scripts.
    Scripts {
        /// The command that publishes, and ends.
        command: Vec<String>,
        /// What runs beside it, as one types it.
        companion: Option<String>,
    },
    /// The published case: one publish a process, to a subscriber that spins.
    OnePublishPerProcess,
}

/// How `explain` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server; a scratch server if there is none, or, for scripts, the one that they connect to.
    pub url: Option<String>,
    /// What is explained.
    pub subject: Subject,
    /// How often a command is run.
    pub repeat: u32,
    /// Messages of the steady run.
    pub count: u64,
    /// About how long all of it may take; less time, fewer messages.
    pub seconds: f64,
    /// How long one run of a command may take.
    pub timeout_s: f64,
    /// The changes to try.
    pub gains: Vec<Gain>,
    /// The CPUs of publisher and subscriber, for what is pinned.
    pub cpus: [usize; 2],
}

/// Runs everything into a result file; what there is stays there if a later part fails.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile) -> Result<(), LabError> {
    settings.check()?;
    let mut bench = Bench::open(lab, settings)?;
    result.host = host::floor(lab, settings.cpus)?;
    let measured = match &settings.subject {
        Subject::Client(Client::Rust) | Subject::Bus(_) => rust::run(&mut bench, result),
        Subject::Client(client) => phases::run(&mut bench, *client, result),
        Subject::Scripts { command, companion } => scripts::users(&mut bench, command, companion.as_deref(), result),
        Subject::OnePublishPerProcess => scripts::published(&mut bench, result),
    };
    let measured = measured.and_then(|()| gains::run(&mut bench, result));
    result.findings = findings(result);
    measured
}

impl Settings {
    /// Refuses what makes no run, before anything is measured.
    pub fn check(&self) -> Result<(), LabError> {
        let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
        match (&self.subject, &self.url) {
            (Subject::Bus(_), _) | (_, None) => {}
            (_, Some(url)) => server::check(url)?,
        }
        if matches!(&self.subject, Subject::Scripts { command, .. } if command.is_empty()) {
            return wrong("there is no command; write it behind --: tickpath explain --repeat 19 -- python3 p.py p");
        }
        if self.repeat == 0 || self.count < LEAST_MESSAGES {
            return wrong("a command runs at least once, and a steady run has at least 20 messages");
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite() && self.timeout_s > 0.0 && self.timeout_s.is_finite()) {
            return wrong("--seconds and --timeout take a number of seconds above zero");
        }
        Ok(())
    }
}

/// Messages that a median needs.
const LEAST_MESSAGES: u64 = 20;

/// What all parts share.
struct Bench<'a> {
    lab: &'a Lab<'a>,
    settings: &'a Settings,
    /// None where nothing of Python takes part.
    python: Option<Python>,
    /// The hook's folder.
    hook: PathBuf,
    /// The Redis server that is named, or a scratch one; none if scripts bring their own, or the bus goes elsewhere.
    target: Option<Target>,
    /// What bare sockets need, by whether the subscriber spins, and by the pause before each message.
    floors: BTreeMap<(bool, u64), Floor>,
}

impl<'a> Bench<'a> {
    fn open(lab: &'a Lab<'a>, settings: &'a Settings) -> Result<Self, LabError> {
        let target = match (&settings.subject, &settings.url) {
            (Subject::Bus(_), _) | (Subject::Scripts { .. }, None) => None,
            (_, Some(url)) => Some(Target::named(lab, url)?),
            // As a server is that nobody has set up otherwise.
            (_, None) => Some(scratch(lab, Persistence::Rdb, None)?),
        };
        let needs_python = !matches!(settings.subject, Subject::Client(Client::Rust) | Subject::Bus(_));
        let python = needs_python.then(|| Python::prepare(lab.progress)).transpose()?;
        Ok(Self { lab, settings, python, hook: command::hook(lab)?, target, floors: BTreeMap::new() })
    }

    fn python(&self) -> &Python {
        self.python.as_ref().expect("prepared for every subject but our own bus")
    }

    /// The server's URL for our own bus.
    fn url(&self) -> String {
        match (&self.settings.subject, &self.target) {
            (Subject::Bus(url), _) => url.clone(),
            (_, target) => target.as_ref().map(|target| target.url.clone()).unwrap_or_default(),
        }
    }

    /// A channel of ours, which nobody else has.
    fn channel(&self, what: &str) -> String {
        format!("tickpath:{}:{what}", self.lab.name)
    }

    /// What is known of the way between publisher and subscriber, but for the server's own time.
    fn between(&mut self, spins: bool, pause_ns: u64) -> Result<Between, LabError> {
        let Some(target) = &self.target else { return Ok(Between::default()) };
        let known = match self.floors.get(&(spins, pause_ns)) {
            Some(known) => *known,
            None => {
                self.lab.step("explain: the same message over bare sockets", 0.5)?;
                let sides = Sides { spins, cpus: None, pause_ns };
                floor::measure(target.info(), &self.channel("floor"), sides, self.lab.clock)?
            }
        };
        self.floors.insert((spins, pause_ns), known);
        Ok(Between { wire_ns: Some(known.wire_ns), round_trip_ns: Some(known.round_trip_ns), ..Between::default() })
    }

    /// A run that says what it ran on.
    fn describe(&self, run: Run) -> Run {
        let mut run = Run { repeat: 1, valid: true, ..run };
        // Whoever is not subscribed misses a message: Redis promises no more. Our own bus has said what it promises.
        if run.params.text("policy").is_none() {
            run.params.set("policy", "overwrite");
        }
        let Some(target) = &self.target else { return run };
        run.target = target.name.clone();
        let told = (run.software.client.take(), run.software.client_version.take(), run.software.runtime.take());
        run.software = target.software.clone();
        (run.software.client, run.software.client_version, run.software.runtime) = told;
        run.notes.extend(target.notes.iter().cloned());
        run
    }
}

/// A server of our own; it has a Unix socket too.
fn scratch(lab: &Lab<'_>, persistence: Persistence, cpu: Option<usize>) -> Result<Target, LabError> {
    Target::scratch(lab, &ServerSettings { cpu, unix_socket: true, persistence })
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RedisPy, Self::RedisPyAsyncio, Self::Rust];

    /// The word on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RedisPy => "redis-py",
            Self::RedisPyAsyncio => "redis-py-asyncio",
            Self::Rust => "rust",
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Client {
    type Err = ParseClientError;

    fn from_str(text: &str) -> Result<Self, ParseClientError> {
        let found = Self::ALL.into_iter().find(|client| client.name() == text);
        found.ok_or_else(|| ParseClientError(text.to_owned()))
    }
}
