//! Subject and settings of a run.

use std::fmt;
use std::str::FromStr;

use super::gain::Gain;
use super::server;
use tickpath_lab_harness::LabError;
use tickpath_lab_result::named_variants;

/// Min number of messages for a median.
pub(super) const MIN_MESSAGES: u64 = 20;

/// Settings of `explain`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the server; without one a scratch server, or, for scripts, the server that they connect to.
    pub url: Option<String>,
    /// Subject of the run.
    pub subject: ExplainSubject,
    /// Number of runs of a command.
    pub repeat: u32,
    /// Number of messages of the steady run.
    pub count: u64,
    /// Approximate time limit in seconds; a shorter time means fewer messages.
    pub seconds: f64,
    /// Timeout of one run of a command, in seconds.
    pub timeout_s: f64,
    /// Changes to try.
    pub gains: Vec<Gain>,
    /// CPUs of publisher and subscriber, for processes that are pinned.
    pub cpus: [usize; 2],
}

/// Subject of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainSubject {
    /// Our own publisher and subscriber, over Redis.
    Client(ExplainedClient),
    /// Our own bus over the server of this URL, on which redis-py is not explained, or over the log.
    Bus(String),
    /// The user's scripts.
    Scripts {
        /// Command that publishes, and ends.
        command: Vec<String>,
        /// Shell command that runs beside it.
        companion: Option<String>,
    },
    /// The published case: one publish per process, to a subscriber that spins.
    OnePublishPerProcess,
}

/// Client whose message is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainedClient {
    /// redis-py, blocking.
    RedisPy,
    /// redis-py on asyncio.
    RedisPyAsyncio,
    /// Our own bus.
    Rust,
}

/// A word that names no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client that can be explained; use redis-py, redis-py-asyncio or rust")]
pub struct ExplainedClientError(String);

impl Settings {
    /// Rejects settings that make no run, before anything is measured.
    pub fn check(&self) -> Result<(), LabError> {
        let wrong = |what: &str| Err(LabError::Setting(what.to_owned()));
        match (&self.subject, &self.url) {
            (ExplainSubject::Bus(_), _) | (_, None) => {}
            (_, Some(url)) => server::check(url)?,
        }
        if matches!(&self.subject, ExplainSubject::Scripts { command, .. } if command.is_empty()) {
            return wrong("there is no command; write it behind --: tickpath explain --repeat 19 -- python3 p.py p");
        }
        if self.repeat == 0 || self.count < MIN_MESSAGES {
            return wrong("a command runs at least once, and a steady run has at least 20 messages");
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite() && self.timeout_s > 0.0 && self.timeout_s.is_finite()) {
            return wrong("--seconds and --timeout take a number of seconds above zero");
        }
        Ok(())
    }
}

named_variants!(ExplainedClient { RedisPy = "redis-py", RedisPyAsyncio = "redis-py-asyncio", Rust = "rust" });

impl fmt::Display for ExplainedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ExplainedClient {
    type Err = ExplainedClientError;

    fn from_str(text: &str) -> Result<Self, ExplainedClientError> {
        let found = Self::ALL.into_iter().find(|client| client.name() == text);
        found.ok_or_else(|| ExplainedClientError(text.to_owned()))
    }
}
