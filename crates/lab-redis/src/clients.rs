//! `clients`: the same work through every client: set a key, get it again, compare.
//!
//! ```text
//!   client process (generator's CPU)                  server (system's CPU)
//!   began ── SET key value ──────┐
//!            OK <────────────────┤    tcp, unix, or tcp through a delaying proxy,
//!            GET key ────────────┤    which has the third CPU or shares the server's
//!   ended <─ value ──────────────┘
//!     └── round_trip of one pair; a worker begins the next one at once
//! ```
//! A closed loop by nature: a worker sends when it has its answer, so a rate is the client's limit, not the server's.
//! Connecting is timed separately. Clients take turns (A B C …, … C B A). A run is valid only if every key held the
//! value that was set.

mod client;
mod go_redis;
mod ratios;
mod redis_py;
mod role;
mod route;
mod runtimes;
mod rust;
mod server;
mod settings;

use std::str::FromStr;

pub use client::SetGetClient;
pub use role::SetGetRole;
pub use settings::Settings;

use client::{ClientCase, ClientRuntime};
use role::SetGetResult;
use route::ServerRoute;
use runtimes::Runtimes;
use server::SetGetServer;

use tickpath_lab_compare::in_turn;
use tickpath_lab_harness::attribution::drop_attribution;
use tickpath_lab_harness::samples::{Samples, load};
use tickpath_lab_harness::{Lab, LabError, Parent, ProcessRole, StabilityCheck};
use tickpath_lab_result::{MessageCounts, ResultFile, Run};

/// All clients, in the order of their turns. A new client adds its file and its entry here.
const CLIENTS: [&[SetGetClient]; 3] = [redis_py::CLIENTS, rust::CLIENTS, go_redis::CLIENTS];

/// Max time without an answer, beyond twenty round trips: connecting takes some of them.
const MAX_SILENCE_S: f64 = 10.0;

/// The error for an unknown client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no client; use {names}", names = SetGetClient::all().map(|client| client.name).collect::<Vec<_>>().join(", "))]
pub struct SetGetClientError(String);

impl SetGetClient {
    /// Returns all clients in the order of their turns.
    pub fn all() -> impl Iterator<Item = Self> {
        CLIENTS.into_iter().flatten().copied()
    }
}

impl FromStr for SetGetClient {
    type Err = SetGetClientError;

    fn from_str(text: &str) -> Result<Self, SetGetClientError> {
        Self::all().find(|client| client.name == text).ok_or_else(|| SetGetClientError(text.to_owned()))
    }
}

impl ProcessRole for SetGetRole {
    const NAME: &'static str = "key client";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let client: SetGetClient =
            self.client.parse().map_err(|e: SetGetClientError| LabError::Setting(e.to_string()))?;
        match client.runtime {
            ClientRuntime::Rust { work, .. } => rust::set_get(self, work, parent),
            _ => Err(LabError::Setting(format!("the client {client} is not written in Rust"))),
        }
    }
}

/// Runs everything and adds a run for each repetition of each client to a result file; earlier runs stay in it if a
/// later run fails.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile) -> Result<(), LabError> {
    settings.check()?;
    let (runtimes, missing) = Runtimes::prepare(lab, &settings.clients)?;
    let settings = &match missing {
        Some(error) if settings.all_needed => return Err(error.into()),
        Some(error) => settings.without_go(&error.to_string(), result),
        None => settings.clone(),
    };
    let mut target = SetGetServer::open(lab, settings)?;
    let routes = ServerRoute::all(lab, settings, &target)?;
    let turns = ClientRepetition::all(settings, &routes);
    target.claim_keys(turns.iter().map(|turn| turn.pairs).max().unwrap_or(0))?;
    let done = run_repetitions(lab, settings, &turns, &runtimes, &mut target, result);
    result.comparisons.extend(ratios::comparisons(&result.runs));
    done
}

/// A repetition of a client over a route.
struct ClientRepetition<'a> {
    case: ClientCase,
    route: &'a ServerRoute,
    repeat: u32,
    pairs: u64,
}

impl<'a> ClientRepetition<'a> {
    /// Returns all turns, with the clients as the innermost loop, so that they take turns.
    fn all(settings: &Settings, routes: &'a [ServerRoute]) -> Vec<Self> {
        // In the order of the table, whatever the order on the command line.
        let wanted = SetGetClient::all().filter(|client| settings.clients.contains(client));
        let cases: Vec<ClientCase> = wanted.flat_map(ClientCase::of).collect();
        let mut turns = Vec::new();
        for repeat in 1..=settings.repeat {
            for route in routes {
                turns.extend(in_turn(repeat, &cases).into_iter().map(|&case| {
                    let pairs = case.pairs(settings.count, route.network_ns, settings.seconds);
                    Self { case, route, repeat, pairs }
                }));
            }
        }
        turns
    }

    fn seconds(&self) -> f64 {
        self.case.seconds(self.pairs, self.route.network_ns)
    }

    fn run(
        &self,
        lab: &Lab<'_>,
        settings: &Settings,
        runtimes: &Runtimes,
        target: &SetGetServer,
    ) -> Result<Run, LabError> {
        let Self { case: ClientCase { client, workers, .. }, route, pairs, .. } = *self;
        let role = SetGetRole {
            client: client.name.to_owned(),
            url: route.url.clone(),
            workers,
            keys: target.keys.clone(),
            count: pairs,
            cpu: Some(settings.cpus[0]),
            silence_s: MAX_SILENCE_S + 20.0 * route.measured_rtt_ns / 1e9,
            out: lab.folder().join("clients"),
        };
        let mut child = runtimes.spawn(lab, client, &role)?;
        child.send("go")?;
        let outcome: SetGetResult = child.result(10.0 * self.seconds())?;
        let rows = load::<2>(&role.out)?;
        let samples = Samples(rows.iter().map(|&[began, ended]| (began, ended)).collect());
        let mut run = self.describe(settings, runtimes, target);
        run.hops.insert("round_trip".to_owned(), samples.hop(&Runtimes::calibration(client, lab), &[]));
        // No thread watched for the host's gaps.
        drop_attribution(&mut run);
        add_outcome(&mut run, &outcome, pairs);
        Ok(run)
    }

    /// Returns a run with everything that is known before it has run.
    fn describe(&self, settings: &Settings, runtimes: &Runtimes, target: &SetGetServer) -> Run {
        let Self { case: ClientCase { client, workers, .. }, route, .. } = *self;
        let mut run = Run {
            target: target.name(route.transport),
            client: client.name.to_owned(),
            repeat: self.repeat,
            valid: true,
            batch: client.is_pipeline.then(|| 2.into()),
            software: target.software.clone(),
            ..Run::default()
        };
        runtimes.add_software(client, &mut run.software);
        run.params.set("command", "set-get");
        run.params.set("loop", "closed");
        run.params.set("transport", route.transport);
        run.params.set("rtt_ms", route.rtt_ms);
        run.params.set("measured_rtt_ns", route.measured_rtt_ns.round());
        run.params.set("workers", workers);
        run.params.set("count", self.pairs);
        run.params.set("cpus", settings.cpus.to_vec());
        run.figures.extend(route.proxy_cost_ns.map(|ns| ("proxy_cost_ns".to_owned(), ns)));
        run.notes.push("a closed loop: a worker sends when it has its answer".to_owned());
        run.notes.extend(target.notes.iter().cloned());
        if !target.is_scratch() {
            run.notes.push(format!("a PING takes {:.3} ms to the server and back", route.measured_rtt_ns / 1e6));
        }
        if self.pairs < settings.count {
            let all_s = self.case.seconds(settings.count, route.network_ns);
            run.notes.push(format!(
                "{} of {} pairs: all would take about {all_s:.0} s a repetition; a longer --duration gets more",
                self.pairs, settings.count
            ));
        }
        run
    }

    /// Returns the run of a failed turn.
    fn failed(&self, settings: &Settings, runtimes: &Runtimes, target: &SetGetServer, error: &LabError) -> Run {
        let mut run = self.describe(settings, runtimes, target);
        run.refuse(error.to_string());
        run
    }
}

/// Runs turn after turn, until one fails. The machine is inspected before and after each round of all clients over a
/// route.
fn run_repetitions(
    lab: &Lab<'_>,
    settings: &Settings,
    turns: &[ClientRepetition<'_>],
    runtimes: &Runtimes,
    target: &mut SetGetServer,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    /// Seconds to start and end the process of a turn, and to delete its keys.
    const SETUP_S: f64 = 0.7;
    lab.progress.plan(turns.len(), turns.iter().map(|turn| turn.seconds() + SETUP_S).sum());
    for round in turns.chunk_by(|a, b| a.repeat == b.repeat && std::ptr::eq(a.route, b.route)) {
        let around = StabilityCheck::begin(lab, settings.cpus)?;
        let first = result.runs.len();
        let done = round.iter().try_for_each(|turn| {
            let ClientRepetition { case, route, repeat, .. } = turn;
            let who = format!("{} ×{} {} {} ms", case.client, case.workers, route.transport, route.rtt_ms);
            lab.step(&format!("clients {repeat}/{}: {who}", settings.repeat), turn.seconds())?;
            match turn.run(lab, settings, runtimes, target) {
                Ok(run) => result.runs.push(run),
                Err(error) => {
                    result.runs.push(turn.failed(settings, runtimes, target, &error));
                    return Err(error);
                }
            }
            target.delete_keys(turn.pairs)
        });
        done.and(around.end(lab, &mut result.runs[first..]))?;
    }
    Ok(())
}

/// Adds the client's result to the run, and judges it.
fn add_outcome(run: &mut Run, outcome: &SetGetResult, wanted: u64) {
    let SetGetResult { connect_ns, elapsed_ns, pairs, mismatched } = *outcome;
    let per_s = |ns: u64| (ns > 0).then(|| pairs as f64 * 1e9 / ns as f64);
    run.counts = MessageCounts {
        sent: wanted,
        received: pairs,
        lost: wanted.saturating_sub(pairs),
        errors: mismatched,
        ..run.counts
    };
    run.elapsed_ns = Some(elapsed_ns);
    run.throughput_per_s = per_s(elapsed_ns);
    run.figures.insert("connect_ns".to_owned(), connect_ns as f64);
    let with_connect = per_s(connect_ns + elapsed_ns).map(|rate| ("throughput_with_connect_per_s".to_owned(), rate));
    run.figures.extend(with_connect);
    if mismatched > 0 {
        run.refuse(format!(
            "{mismatched} keys did not hold what was set; look for another client that writes to them, or a server \
             that evicts keys"
        ));
    }
    if pairs != wanted {
        run.refuse(format!("{pairs} of {wanted} pairs completed; try again"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_unique_name_and_a_process() {
        for client in SetGetClient::all() {
            assert_eq!(client.name.parse(), Ok(client));
            assert!(ClientCase::of(client).count() > 0, "{client} has no workers");
        }
        let error = "jedis".parse::<SetGetClient>().unwrap_err().to_string();
        assert!(error.contains("jedis") && error.contains("redis-py-uvloop"), "{error}");
    }
}
