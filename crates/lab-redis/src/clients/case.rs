//! Which clients there are, how many workers each has, and how much it is given to do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A client library and the way in which it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// redis-py with hiredis, a command at a time.
    RedisPy,
    /// redis-py with hiredis, both commands of a pair in one pipeline.
    RedisPyPipeline,
    /// redis-py without hiredis, a command at a time.
    RedisPyPure,
    /// redis-py without hiredis, both commands of a pair in one pipeline.
    RedisPyPipelinePure,
    /// redis-py with hiredis on asyncio's own loop; each worker has its connection.
    RedisPyAsyncio,
    /// The same on uvloop.
    RedisPyUvloop,
    /// The crate redis, a command at a time.
    RustBlocking,
    /// The crate redis, both commands of a pair in one pipeline.
    RustPipeline,
    /// The crate redis on tokio, one thread; the workers share a connection.
    RustAsync,
}

/// A word that is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client; use {names}", names = Client::ALL.map(Client::name).join(", "))]
pub struct ParseClientError(String);

impl Client {
    /// All of them, in the order in which they take turns.
    pub const ALL: [Self; 9] = [
        Self::RedisPy,
        Self::RedisPyPipeline,
        Self::RedisPyPure,
        Self::RedisPyPipelinePure,
        Self::RedisPyAsyncio,
        Self::RedisPyUvloop,
        Self::RustBlocking,
        Self::RustPipeline,
        Self::RustAsync,
    ];

    /// The word on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RedisPy => "redis-py",
            Self::RedisPyPipeline => "redis-py-pipeline",
            Self::RedisPyPure => "redis-py-pure",
            Self::RedisPyPipelinePure => "redis-py-pipeline-pure",
            Self::RedisPyAsyncio => "redis-py-asyncio",
            Self::RedisPyUvloop => "redis-py-uvloop",
            Self::RustBlocking => "rust-blocking",
            Self::RustPipeline => "rust-pipeline",
            Self::RustAsync => "rust-async",
        }
    }

    /// Whether it runs in an interpreter.
    pub const fn is_python(self) -> bool {
        !matches!(self, Self::RustBlocking | Self::RustPipeline | Self::RustAsync)
    }

    /// Whether both commands of a pair go out together.
    pub const fn is_pipeline(self) -> bool {
        matches!(self, Self::RedisPyPipeline | Self::RedisPyPipelinePure | Self::RustPipeline)
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

/// A client with a number of workers: what one process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub client: Client,
    pub workers: u64,
    /// About how many microseconds of processors a pair takes: for estimates alone.
    pair_us: u64,
}

/// The workers of each client, in the order in which they take turns.
const CASES: [Case; 14] = [
    Case { client: Client::RedisPy, workers: 1, pair_us: 140 },
    Case { client: Client::RedisPyPipeline, workers: 1, pair_us: 80 },
    Case { client: Client::RedisPyPure, workers: 1, pair_us: 155 },
    Case { client: Client::RedisPyPipelinePure, workers: 1, pair_us: 90 },
    Case { client: Client::RedisPyAsyncio, workers: 1, pair_us: 155 },
    Case { client: Client::RedisPyAsyncio, workers: 10, pair_us: 90 },
    Case { client: Client::RedisPyAsyncio, workers: 100, pair_us: 75 },
    Case { client: Client::RedisPyUvloop, workers: 1, pair_us: 155 },
    Case { client: Client::RedisPyUvloop, workers: 10, pair_us: 70 },
    Case { client: Client::RedisPyUvloop, workers: 100, pair_us: 65 },
    Case { client: Client::RustBlocking, workers: 1, pair_us: 60 },
    Case { client: Client::RustPipeline, workers: 1, pair_us: 40 },
    Case { client: Client::RustAsync, workers: 1, pair_us: 80 },
    Case { client: Client::RustAsync, workers: 100, pair_us: 15 },
];

/// Pairs that each worker has at least.
const LEAST_A_WORKER: u64 = 4;

/// Seconds around the work of a repetition: the process, its imports, its keys.
const AROUND_S: f64 = 0.25;

impl Case {
    /// Those of some clients.
    pub fn of(clients: &[Client]) -> Vec<Self> {
        CASES.into_iter().filter(|case| clients.contains(&case.client)).collect()
    }

    /// Pairs of a repetition: as many as wanted, but no more than wait for the network for so many seconds, and at
    /// least four a worker.
    pub fn pairs(&self, wanted: u64, network_ns: f64, seconds: f64) -> u64 {
        let possible = seconds * 1e9 / self.waits_ns(network_ns);
        // Without a network all are possible: the quotient is infinite, and so is the number as far as it goes.
        wanted.min(possible as u64).max(LEAST_A_WORKER * self.workers)
    }

    /// About how long a repetition of so many pairs takes, in seconds.
    pub fn seconds(&self, pairs: u64, network_ns: f64) -> f64 {
        AROUND_S + pairs as f64 * (self.pair_us as f64 / 1e6 + self.waits_ns(network_ns) / 1e9)
    }

    /// How long a pair waits for the network, at this round trip, while no other worker's pair does.
    fn waits_ns(&self, network_ns: f64) -> f64 {
        let round_trips = if self.client.is_pipeline() { 1.0 } else { 2.0 };
        round_trips * network_ns / self.workers as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_on_the_command_line_and_in_json() {
        for client in Client::ALL {
            assert_eq!(client.name().parse(), Ok(client));
            assert_eq!(serde_json::to_string(&client).unwrap(), format!("\"{client}\""));
            assert!(!Case::of(&[client]).is_empty(), "{client} has no workers");
        }
        let error = "jedis".parse::<Client>().unwrap_err().to_string();
        assert!(error.contains("jedis") && error.contains("redis-py-uvloop"), "{error}");
    }

    #[test]
    fn a_far_server_gets_fewer_pairs_but_some_for_each_worker() {
        let sync = CASES[0];
        let crowd = CASES[6];
        for (case, wanted, network_ms, seconds, pairs) in [
            (sync, 20_000, 0.0, 5.0, 20_000),
            (sync, 20_000, 0.1, 5.0, 20_000),
            (sync, 20_000, 1.0, 5.0, 2_500),
            (sync, 20_000, 250.0, 5.0, 10),
            (sync, 20_000, 2_000.0, 0.1, 4),
            (sync, 1, 0.0, 5.0, 4),
            (CASES[1], 20_000, 1.0, 5.0, 5_000),
            (crowd, 20_000, 1.0, 5.0, 20_000),
            (crowd, 20_000, 250.0, 5.0, 1_000),
            (crowd, 20_000, 2_000.0, 5.0, 400),
        ] {
            assert_eq!(case.pairs(wanted, network_ms * 1e6, seconds), pairs, "{case:?} at {network_ms} ms");
        }
    }
}
