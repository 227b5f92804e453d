//! What is explained, and how.

use std::fmt;
use std::str::FromStr;

use super::gain::Gain;
use super::server;
use tickpath_harness::LabError;

/// Messages that a median needs.
pub(super) const LEAST_MESSAGES: u64 = 20;

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
