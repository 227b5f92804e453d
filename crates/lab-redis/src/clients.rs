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
//! A closed loop by nature: a worker sends when it has its answer, so a rate is what the client reaches, not what the
//! server could. Connecting is timed apart. Clients take turns (A B C …, … C B A). Valid only if every key held what
//! was set.

mod case;
mod ratios;
mod rust;
mod server;
mod way;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Calibration, Clock};

pub use case::{Client, ParseClientError};

use case::Case;
use server::Target;
use way::Way;

use tickpath_compare::in_turn;
use tickpath_harness::attribution::drop_attribution;
use tickpath_harness::proxy::MOST_RTT_MS;
use tickpath_harness::samples::{Samples, load};
use tickpath_harness::{Lab, LabError};
use tickpath_harness::{Parent, Role};
use tickpath_result::{Counts, ResultFile, Run};
use tickpath_scratch::python::Python;

/// What a Python client runs.
const SCRIPT: (&str, &str) = ("clients.py", include_str!("python/clients.py"));

/// A client may go without an answer for so long, beside twenty round trips: connecting takes some.
const SILENCE_S: f64 = 10.0;

/// How `clients` is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server's URL; a scratch server if there is none.
    pub target: Option<String>,
    /// Who takes part.
    pub clients: Vec<Client>,
    /// Round trips to put between, in milliseconds, over TCP; if there are none, what there is without, over TCP and
    /// over a Unix socket.
    pub rtts_ms: Vec<f64>,
    /// Pairs of a repetition.
    pub count: u64,
    /// Repetitions.
    pub repeat: u32,
    /// A repetition waits for a far server about so long, and has fewer pairs for that.
    pub seconds: f64,
    /// The clients' and a scratch server's CPU.
    pub cpus: [usize; 2],
    /// The proxy's; it shares the server's if there is none.
    pub proxy_cpu: Option<usize>,
}

/// One client: what its process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetGetRole {
    /// Which one.
    pub client: Client,
    /// The server.
    pub url: String,
    /// Workers that take turns.
    pub workers: u64,
    /// What the keys begin with.
    pub keys: String,
    /// Pairs of all workers together.
    pub count: u64,
    /// Its CPU.
    pub cpu: Option<usize>,
    /// How long it waits for an answer.
    pub silence_s: f64,
    /// Where its samples go.
    pub out: PathBuf,
}

impl Role for SetGetRole {
    const NAME: &'static str = "key client";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        rust::set_get(self, parent)
    }
}

/// What a client tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    /// Until each connection has answered a PING.
    connect_ns: u64,
    /// From then on, until the last pair ended.
    elapsed_ns: u64,
    pairs: u64,
    /// Keys that did not hold what was set.
    mismatched: u64,
}

/// Runs everything into a result file, a run for each repetition of each client; what there is stays there if a later
/// one fails.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile) -> Result<(), LabError> {
    settings.check()?;
    let needed = settings.clients.iter().any(|client| client.is_python());
    let python = needed.then(|| Python::prepare(lab.progress)).transpose()?;
    let mut target = Target::open(lab, settings)?;
    let ways = Way::all(lab, settings, &target)?;
    let turns = Turn::all(settings, &ways);
    target.claim(turns.iter().map(|turn| turn.pairs).max().unwrap_or(0))?;
    let done = take(lab, settings, &turns, python.as_ref(), &mut target, result);
    result.comparisons.extend(ratios::comparisons(&result.runs));
    done
}

impl Settings {
    /// Refuses what makes no run, before anything is measured.
    pub fn check(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        if let Some(bad) = self.rtts_ms.iter().find(|rtt| !(0.0..=MOST_RTT_MS).contains(*rtt)) {
            return wrong(format!("--rtt {bad} is not possible; use 0 to {MOST_RTT_MS} milliseconds"));
        }
        if self.clients.is_empty() || self.count == 0 || self.repeat == 0 {
            return wrong("clients, pairs and repetitions start at 1".to_owned());
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return wrong(format!("--duration {} is not possible; use a number of seconds above zero", self.seconds));
        }
        let Some(target) = &self.target else { return Ok(()) };
        server::check(target)?;
        if !self.rtts_ms.is_empty() && !server::is_tcp(target) {
            return wrong("--rtt puts a distance between over TCP; give --target redis://HOST:PORT".to_owned());
        }
        Ok(())
    }
}

impl SetGetRole {
    /// A key and the value that it is set to.
    fn pair(&self, number: u64) -> (String, String) {
        (format!("{}:{number}", self.keys), format!("value:{number}"))
    }
}

/// One repetition of one client on one way.
struct Turn<'a> {
    case: Case,
    way: &'a Way,
    repeat: u32,
    pairs: u64,
}

impl<'a> Turn<'a> {
    /// All, clients innermost, so that they take turns.
    fn all(settings: &Settings, ways: &'a [Way]) -> Vec<Self> {
        let cases = Case::of(&settings.clients);
        let mut turns = Vec::new();
        for repeat in 1..=settings.repeat {
            for way in ways {
                turns.extend(in_turn(repeat, &cases).into_iter().map(|&case| {
                    let pairs = case.pairs(settings.count, way.network_ns, settings.seconds);
                    Self { case, way, repeat, pairs }
                }));
            }
        }
        turns
    }

    /// About how long it takes.
    fn seconds(&self) -> f64 {
        self.case.seconds(self.pairs, self.way.network_ns)
    }

    /// Runs it.
    fn run(
        &self,
        lab: &Lab<'_>,
        settings: &Settings,
        python: Option<&Python>,
        target: &Target,
    ) -> Result<Run, LabError> {
        let Self { case: Case { client, workers, .. }, way, pairs, .. } = *self;
        let role = SetGetRole {
            client,
            url: way.url.clone(),
            workers,
            keys: target.keys.clone(),
            count: pairs,
            cpu: Some(settings.cpus[0]),
            silence_s: SILENCE_S + 20.0 * way.measured_rtt_ns / 1e9,
            out: lab.folder().join("clients"),
        };
        let mut child = match python.filter(|_| client.is_python()) {
            Some(python) => python.spawn(lab, client.name(), &[SCRIPT], &role)?,
            None => lab.spawn(&role)?,
        };
        child.tell("go")?;
        let told: Told = child.result(10.0 * self.seconds())?;
        let rows = load::<2>(&role.out)?;
        // Python's stamps are nanoseconds already.
        let calibration = if client.is_python() { Calibration::nanoseconds() } else { *lab.clock.calibration() };
        let samples = Samples(rows.iter().map(|&[began, ended]| (began, ended)).collect());
        let mut run = self.describe(settings, python, target);
        run.hops.insert("round_trip".to_owned(), samples.hop(&calibration, &[]));
        // Nobody watched for the host's gaps.
        drop_attribution(&mut run);
        tell(&mut run, &told, pairs);
        Ok(run)
    }

    /// What is known before it has run.
    fn describe(&self, settings: &Settings, python: Option<&Python>, target: &Target) -> Run {
        let Self { case: Case { client, workers, .. }, way, .. } = *self;
        let mut run = Run {
            target: target.name(way.transport),
            client: client.name().to_owned(),
            repeat: self.repeat,
            valid: true,
            batch: client.is_pipeline().then(|| 2.into()),
            software: target.software.clone(),
            ..Run::default()
        };
        name_client(&mut run, client, python);
        run.params.set("command", "set-get");
        run.params.set("loop", "closed");
        run.params.set("transport", way.transport);
        run.params.set("rtt_ms", way.rtt_ms);
        run.params.set("measured_rtt_ns", way.measured_rtt_ns.round());
        run.params.set("workers", workers);
        run.params.set("count", self.pairs);
        run.params.set("cpus", settings.cpus.to_vec());
        run.figures.extend(way.proxy_cost_ns.map(|ns| ("proxy_cost_ns".to_owned(), ns)));
        run.notes.push("a closed loop: a worker sends when it has its answer".to_owned());
        run.notes.extend(target.notes.iter().cloned());
        if !target.is_scratch() {
            run.notes.push(format!("a PING takes {:.3} ms to the server and back", way.measured_rtt_ns / 1e6));
        }
        if self.pairs < settings.count {
            let all_s = self.case.seconds(settings.count, way.network_ns);
            run.notes.push(format!(
                "{} of {} pairs: all would take about {all_s:.0} s a repetition; a longer --duration gets more",
                self.pairs, settings.count
            ));
        }
        run
    }

    /// What is left of it if it failed.
    fn failed(&self, settings: &Settings, python: Option<&Python>, target: &Target, error: &LabError) -> Run {
        let mut run = self.describe(settings, python, target);
        run.valid = false;
        run.notes.push(error.to_string());
        run
    }
}

/// One turn after the other, until one fails.
fn take(
    lab: &Lab<'_>,
    settings: &Settings,
    turns: &[Turn<'_>],
    python: Option<&Python>,
    target: &mut Target,
    result: &mut ResultFile,
) -> Result<(), LabError> {
    /// Starting and ending the process of a turn, and taking its keys away.
    const AROUND_S: f64 = 0.7;
    lab.progress.plan(turns.len(), turns.iter().map(|turn| turn.seconds() + AROUND_S).sum());
    for turn in turns {
        let Turn { case, way, repeat, .. } = turn;
        let who = format!("{} ×{} {} {} ms", case.client, case.workers, way.transport, way.rtt_ms);
        lab.progress.step(&format!("clients {repeat}/{}: {who}", settings.repeat), turn.seconds());
        match turn.run(lab, settings, python, target) {
            Ok(run) => result.runs.push(run),
            Err(error) => {
                result.runs.push(turn.failed(settings, python, target, &error));
                return Err(error);
            }
        }
        target.delete(turn.pairs)?;
    }
    Ok(())
}

/// The client's library and what that runs on.
fn name_client(run: &mut Run, client: Client, python: Option<&Python>) {
    let software = &mut run.software;
    let Some(python) = python.filter(|_| client.is_python()) else {
        software.client = Some("redis-rs".to_owned());
        software.client_version = Some(rust::VERSION.to_owned());
        software.runtime = (client == Client::RustAsync).then(|| "tokio, one thread".to_owned());
        return;
    };
    let version = |package| python.version_of(package).unwrap_or("?");
    let with_hiredis = !matches!(client, Client::RedisPyPure | Client::RedisPyPipelinePure);
    software.client = Some("redis-py".to_owned());
    software.client_version = Some(match with_hiredis {
        true => format!("{} with hiredis {}", version("redis"), version("hiredis")),
        false => format!("{} without hiredis", version("redis")),
    });
    software.runtime = Some(match client {
        Client::RedisPyUvloop => format!("{}, uvloop {}", python.runtime, version("uvloop")),
        _ => python.runtime.clone(),
    });
}

/// Fills in what the client told, and judges it.
fn tell(run: &mut Run, told: &Told, wanted: u64) {
    let Told { connect_ns, elapsed_ns, pairs, mismatched } = *told;
    let per_s = |ns: u64| (ns > 0).then(|| pairs as f64 * 1e9 / ns as f64);
    run.counts =
        Counts { sent: wanted, received: pairs, lost: wanted.saturating_sub(pairs), errors: mismatched, ..run.counts };
    run.elapsed_ns = Some(elapsed_ns);
    run.throughput_per_s = per_s(elapsed_ns);
    run.figures.insert("connect_ns".to_owned(), connect_ns as f64);
    let with_connect = per_s(connect_ns + elapsed_ns).map(|rate| ("throughput_with_connect_per_s".to_owned(), rate));
    run.figures.extend(with_connect);
    if mismatched > 0 {
        run.valid = false;
        run.notes.push(format!(
            "{mismatched} keys did not hold what was set; look for somebody else who writes to them, or a server that \
             evicts keys"
        ));
    }
    if pairs != wanted {
        run.valid = false;
        run.notes.push(format!("{pairs} of {wanted} pairs came to their end; try again"));
    }
}
