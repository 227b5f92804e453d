//! Description of a client: a library and its use, its numbers of workers, and its amount of work.

use std::fmt;

use tickpath_clock::HostClock;

use super::role::{SetGetResult, SetGetRole};

/// A client library and its use: a row of the table of clients.
#[derive(Debug, Clone, Copy)]
pub struct SetGetClient {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// The library's name.
    pub library: &'static str,
    /// Whether both commands of a pair are sent together.
    pub is_pipeline: bool,
    /// Its processes: the number of workers of each, and the approximate CPU time of a pair in microseconds, which
    /// serves only estimates.
    pub(super) processes: &'static [(u64, u64)],
    pub(super) runtime: ClientRuntime,
}

/// The runtime of a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClientRuntime {
    /// This program, in a process of its own.
    Rust {
        work: SetGetWork,
        /// The runtime's name, if the client needs more than a thread.
        runtime: Option<&'static str>,
    },
    /// A Python interpreter.
    Python {
        /// The script: its name and its text.
        source: (&'static str, &'static str),
        /// Whether hiredis encodes and decodes the protocol.
        hiredis: bool,
        /// The package of its event loop, if it is not Python's own.
        event_loop: Option<&'static str>,
    },
    /// A Go program, built from this file: its name and its text.
    Go((&'static str, &'static str)),
}

/// The work of a client in this program; returns the start and the end of each pair, in ticks.
pub(super) type SetGetWork =
    fn(&SetGetRole, &redis::Client, &HostClock) -> redis::RedisResult<(SetGetResult, Vec<[u64; 2]>)>;

impl PartialEq for SetGetClient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for SetGetClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// A client with a number of workers, which run in the same process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClientCase {
    pub client: SetGetClient,
    pub workers: u64,
    pair_us: u64,
}

/// Min pairs of each worker.
const MIN_PAIRS_PER_WORKER: u64 = 4;

/// Overhead of a repetition in seconds: the process, its imports, its keys.
const OVERHEAD_S: f64 = 0.25;

impl ClientCase {
    /// Returns the cases of a client, in the order of their turns.
    pub fn of(client: SetGetClient) -> impl Iterator<Item = Self> {
        client.processes.iter().map(move |&(workers, pair_us)| Self { client, workers, pair_us })
    }

    /// Returns the pairs of a repetition: the wanted number, limited to the number that waits for the network for
    /// `seconds`, and at least four per worker.
    pub fn pairs(&self, wanted: u64, network_ns: f64, seconds: f64) -> u64 {
        let possible = seconds * 1e9 / self.network_wait_ns(network_ns);
        // Without a network the limit is infinite, and the cast gives the largest integer.
        wanted.min(possible as u64).max(MIN_PAIRS_PER_WORKER * self.workers)
    }

    /// Estimates the duration of a repetition of `pairs` pairs, in seconds.
    pub fn seconds(&self, pairs: u64, network_ns: f64) -> f64 {
        OVERHEAD_S + pairs as f64 * (self.pair_us as f64 / 1e6 + self.network_wait_ns(network_ns) / 1e9)
    }

    /// Returns the time for which a pair waits for the network at this round trip, divided by the workers that wait in
    /// parallel.
    fn network_wait_ns(&self, network_ns: f64) -> f64 {
        let round_trips = if self.client.is_pipeline { 1.0 } else { 2.0 };
        round_trips * network_ns / self.workers as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_server_gets_fewer_pairs_but_some_for_each_worker() {
        let case = |is_pipeline, workers| {
            let runs = ClientRuntime::Go(("", ""));
            let client = SetGetClient { name: "a client", library: "", is_pipeline, processes: &[], runtime: runs };
            ClientCase { client, workers, pair_us: 100 }
        };
        let (sync, pipeline, crowd) = (case(false, 1), case(true, 1), case(false, 100));
        for (case, wanted, network_ms, seconds, pairs) in [
            (sync, 20_000, 0.0, 5.0, 20_000),
            (sync, 20_000, 0.1, 5.0, 20_000),
            (sync, 20_000, 1.0, 5.0, 2_500),
            (sync, 20_000, 250.0, 5.0, 10),
            (sync, 20_000, 2_000.0, 0.1, 4),
            (sync, 1, 0.0, 5.0, 4),
            (pipeline, 20_000, 1.0, 5.0, 5_000),
            (crowd, 20_000, 1.0, 5.0, 20_000),
            (crowd, 20_000, 250.0, 5.0, 1_000),
            (crowd, 20_000, 2_000.0, 5.0, 400),
        ] {
            assert_eq!(case.pairs(wanted, network_ms * 1e6, seconds), pairs, "{case:?} at {network_ms} ms");
        }
    }
}
