//! `explain`: breaks one message's time down for this broker and client, and measures the gain of each possible change.
//!
//! ```text
//!   publisher process                                   subscriber process
//!   start ─ import ─ connect ─ publish: client, encode, send ─┐
//!                                        server, kernel ──────┤ wire
//!                      script <─ hand over <─ parse <─ read ──┘
//! ```
//! The stamps are taken around redis-py's own methods, in both processes, by one clock; a hook on PYTHONPATH takes them
//! in unchanged scripts, and around the methods of ccxt and python-okx in scripts that trade at an exchange. On other brokers our own client's message is compared with bare sockets through a thread that
//! only copies. Cold, first after a pause and steady are three separate results.
//!
//! | file          | content                                                                 |
//! |---------------|-------------------------------------------------------------------------|
//! | `settings.rs` | subject and settings of a run                                           |
//! | `bench.rs`    | shared parts: the server under test, Python, bare sockets               |
//! | `phases.rs`   | our own clients: cold, first after a pause, steady                      |
//! | `scripts.rs`  | the user's scripts, and the published case of one publish per process   |
//! | `rust.rs`     | our own bus over the same server, over any other, and over the log      |
//! | `gain.rs`     | the changes that can be tried                                           |
//! | `gains.rs`    | measured gain of each change, in turns with its base                    |
//! | `trial.rs`    | base and change of each trial                                           |
//! | `traffic.rs`  | message size, rate and waiting of scripts, for the import change        |
//! | `testbed.rs`  | open servers and pairs, and one batch of each                           |
//! | `pair.rs`     | a publisher and a subscriber that stay connected and take orders        |
//! | `command.rs`  | unchanged scripts, each run a new process, stamped by a hook            |
//! | `records.rs`  | the hook's rows, and the matching of sends and receives                 |
//! | `stages.rs`   | rows as stages that add up                                              |
//! | `call_stages.rs` | calls to exchanges, and messages from them, as stages                |
//! | `exchange_runs.rs` | runs of scripts that use an exchange's client                      |
//! | `account.rs`  | rows as figures of a run                                                |
//! | `socket_floor.rs` | the same message over bare sockets                                  |
//! | `server.rs`   | the server under test                                                   |
//! | `findings.rs` | the result in plain sentences                                           |
//! | `exchange_findings.rs` | the same of calls to exchanges                                 |
//! | `text.rs`     | the result for a terminal                                               |
//!
//! # Invariants
//!
//! * A stage states how it is known: between stamps, within its bounds, or by subtraction. The sum of the stages is
//!   reported as it is, beside the whole, with the remainder.
//! * In the scripts of the import change one module carries the messages, by redis-py or by the package: nothing else
//!   differs between the two.

mod account;
mod bench;
mod call_stages;
mod command;
mod exchange_findings;
mod exchange_runs;
mod findings;
mod gain;
mod gains;
mod pair;
mod phases;
mod records;
mod rust;
mod scripts;
mod server;
mod settings;
mod socket_floor;
mod stages;
mod testbed;
mod text;
mod traffic;
mod trial;

pub use findings::WORKLOAD;
pub use gain::{GAINS, Gain, ParseGainError};
pub use server::is_redis;
pub use settings::{ExplainSubject, ExplainedClient, ExplainedClientError, Settings};
pub use text::text;

use bench::ExplainBench;
use exchange_findings::exchange_findings;
use findings::findings;

use tickpath_clock::WakeUpSamples;
use tickpath_lab_harness::{Lab, LabError, host};
use tickpath_lab_result::ResultFile;

/// Measures everything into a result file; earlier parts stay in it if a later one fails.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile) -> Result<(), LabError> {
    settings.check()?;
    let mut bench = ExplainBench::open(lab, settings)?;
    let (runs, seconds) = estimate(settings);
    lab.progress.plan(runs, seconds);
    result.host = host::measure_host_floor(lab, settings.cpus)?;
    let measured = match &settings.subject {
        ExplainSubject::Client(ExplainedClient::Rust) | ExplainSubject::Bus(_) => rust::run(&mut bench, result),
        ExplainSubject::Client(client) => phases::run(&mut bench, *client, result),
        ExplainSubject::Scripts { command, companion } => {
            scripts::explain_user_scripts(&mut bench, command, companion.as_deref(), result)
        }
        ExplainSubject::OnePublishPerProcess => scripts::explain_published_case(&mut bench, result),
    };
    let measured = measured.and_then(|()| gains::run(&mut bench, result));
    let waking = wake_up_finding(settings.cpus, result);
    result.findings = findings(result);
    result.findings.extend(exchange_findings(result));
    result.findings.extend(waking);
    measured
}

/// Returns a finding about this host's wake-up latency, if a stage of a message contains a wake-up.
fn wake_up_finding([waker, sleeper]: [usize; 2], result: &ResultFile) -> Option<String> {
    const ROUNDS: usize = 200;
    let mut stages = result.runs.iter().flat_map(|run| &run.stages);
    let has_some = stages.any(|stage| stage.name.ends_with("_and_wake_up"));
    let woken = has_some.then(|| WakeUpSamples::measure([sleeper, waker], ROUNDS))?.ok()?.medians()?;
    Some(format!("A thread that sleeps runs so long after a message wakes it: {woken}."))
}

/// Returns the number of runs, and their approximate duration in seconds; a guess for the user's scripts.
fn estimate(settings: &Settings) -> (usize, f64) {
    /// Duration of the host's floor measurement, servers and interpreters, in seconds.
    const SETUP_S: f64 = 5.0;
    let (phases, seconds) = match settings.subject {
        ExplainSubject::Client(_) | ExplainSubject::Bus(_) => phases::estimate(settings),
        ExplainSubject::Scripts { .. } | ExplainSubject::OnePublishPerProcess => {
            (1, scripts::estimate(settings.repeat))
        }
    };
    let (changes, more) = gains::estimate(settings);
    (phases + changes, SETUP_S + seconds + more)
}
