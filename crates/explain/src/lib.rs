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
//! | `settings.rs` | what is explained, and how                                              |
//! | `bench.rs`    | what all parts share: the server under test, Python, bare sockets       |
//! | `phases.rs`   | our own clients: cold, first after a pause, steady                      |
//! | `scripts.rs`  | the user's scripts, and the published case of one publish a process     |
//! | `rust.rs`     | our own bus over the same server, over any other, and over the log      |
//! | `gain.rs`     | the changes that can be tried                                           |
//! | `gains.rs`    | what each change would gain, in turns with what there is                |
//! | `trial.rs`    | for each change the way there is, and the way that it becomes           |
//! | `traffic.rs`  | what scripts send, and how they wait, for the change of their import    |
//! | `testbed.rs`  | what takes turns, opened: servers, pairs, one batch of each             |
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
mod bench;
mod command;
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
mod settings;
mod stages;
mod testbed;
mod text;
mod traffic;
mod trial;

pub use findings::WORKLOAD;
pub use gain::{GAINS, Gain, ParseGainError};
pub use server::is_redis;
pub use settings::{Client, ParseClientError, Settings, Subject};
pub use text::text;

use bench::Bench;
use findings::findings;

use tickpath_clock::WakeUps;
use tickpath_harness::{Lab, LabError, host};
use tickpath_result::ResultFile;

/// Runs everything into a result file; what there is stays there if a later part fails.
pub fn run(lab: &Lab<'_>, settings: &Settings, result: &mut ResultFile) -> Result<(), LabError> {
    settings.check()?;
    let mut bench = Bench::open(lab, settings)?;
    let (runs, seconds) = estimate(settings);
    lab.progress.plan(runs, seconds);
    result.host = host::floor(lab, settings.cpus)?;
    let measured = match &settings.subject {
        Subject::Client(Client::Rust) | Subject::Bus(_) => rust::run(&mut bench, result),
        Subject::Client(client) => phases::run(&mut bench, *client, result),
        Subject::Scripts { command, companion } => scripts::users(&mut bench, command, companion.as_deref(), result),
        Subject::OnePublishPerProcess => scripts::published(&mut bench, result),
    };
    let measured = measured.and_then(|()| gains::run(&mut bench, result));
    let waking = waking(settings.cpus, result);
    result.findings = findings(result);
    result.findings.extend(waking);
    measured
}

/// What a wake-up takes here, if the stages of a message hold some.
fn waking([waker, sleeper]: [usize; 2], result: &ResultFile) -> Option<String> {
    const ROUNDS: usize = 200;
    let mut stages = result.runs.iter().flat_map(|run| &run.stages);
    let has_some = stages.any(|stage| stage.name.ends_with("_and_wake_up"));
    let woken = has_some.then(|| WakeUps::measure([sleeper, waker], ROUNDS))?.ok()?.middle()?;
    Some(format!("A thread that sleeps runs so long after a message wakes it: {woken}."))
}

/// How many runs there will be, and about how long all of it takes, in seconds; of the user's scripts it is a guess.
fn estimate(settings: &Settings) -> (usize, f64) {
    /// The machine's floor, servers and interpreters.
    const AROUND_S: f64 = 5.0;
    let (phases, seconds) = match settings.subject {
        Subject::Client(_) | Subject::Bus(_) => phases::estimate(settings),
        Subject::Scripts { .. } | Subject::OnePublishPerProcess => (1, scripts::estimate(settings.repeat)),
    };
    let (changes, more) = gains::estimate(settings);
    (phases + changes, AROUND_S + seconds + more)
}
