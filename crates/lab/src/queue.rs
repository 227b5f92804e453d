//! `queue`: messages from one pusher to one or more pullers.
//!
//! ```text
//!   pusher (generator's CPU)            queue              pullers (the other CPUs)
//!   number ─ called ─ push ─ returned ───────────────────── called ─ pull ─ returned ─ acknowledge
//!                               └──────────── in_queue ─────────────────────────┘
//! ```
//! A message is a JSON record with its number in it. It cannot carry when its own push will have returned: so each
//! process writes down its calls, pullers also the numbers, and the parent joins the two. All messages of a batch count
//! from the batch's return. What a transport fetches while its puller waits, `pull` hands over without another trip.
//!
//! Valid only if every message came, once where that is promised, and, at a rate, if the generator kept it. At full
//! speed the loop is closed, and says so: the next push begins when the last one is confirmed.
//!
//! | file          | what it holds                                                  |
//! |---------------|----------------------------------------------------------------|
//! | `settings.rs` | how it is run, and which settings make no run                  |
//! | `record.rs`   | the messages                                                   |
//! | `pusher.rs`   | the pusher's process                                           |
//! | `puller.rs`   | a puller's process                                             |
//! | `redis_py.rs` | the same two in Python                                         |
//! | `rows.rs`     | what the processes wrote down                                  |
//! | `join.rs`     | from what they wrote down to a run                             |
//! | `series.rs`   | rates and backlog over the time of the run                     |
//! | `verdict.rs`  | whether the run kept the rules, and the pullers up             |
//! | `plan.rs`     | how many messages fit the time                                 |
//! | `alone.rs`    | one side alone, for containers                                 |

mod alone;
mod join;
mod plan;
mod puller;
mod pusher;
mod record;
mod redis_py;
mod rows;
mod series;
mod settings;
mod verdict;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_bus::{ConnectError, Connection, Delivery, QueueConfig, connect};
use tickpath_clock::{Clock, HostClock, Priority, sleep_ns};

pub use alone::{Alone, pull_alone, push_alone};
pub use plan::{Plan, plan};
pub use puller::QueuePullerRole;
pub use pusher::QueuePusherRole;
pub use record::LEAST_BYTES;
pub use settings::{Client, Keys, PullVariant, PushVariant, RedisPy, Settings, is_list};

use tickpath_harness::Child;
use tickpath_harness::Thread;
use tickpath_harness::targets::is_log;
use tickpath_harness::{Around, Lab, LabError};
use tickpath_result::without_login;
use tickpath_result::{Run, Software};

/// The kind of a benchmark's messages.
const KIND: u8 = 200;

/// What a queue with a bound holds: so many bytes, and so many messages if they are long.
const CAPACITY_BYTES: usize = 16 << 20;
const CAPACITY_MESSAGES: usize = 64;

/// Once the pusher has ended: how long a puller waits for what is still to come, and how long if it cannot know.
const PATIENCE_NS: i64 = 30_000_000_000;
const QUIET_NS: i64 = 1_000_000_000;

/// What a slow target is given, in seconds, if nobody says.
pub const USUAL_S: f64 = 4.0;

/// Between two looks at how many messages wait.
const LOOK_NS: u64 = 50_000_000;

/// Runs once into `runs`. A run that broke off is there too, with what it measured, not valid; then its error is given.
pub fn run(lab: &Lab<'_>, settings: &Settings, runs: &mut Vec<Run>) -> Result<(), LabError> {
    let connection = connect(&settings.target)?;
    let settings = &settings.resolved(&*connection)?;
    let what = format!(
        "queue {}, {} pushed and {} pulled at a time",
        without_login(&settings.target),
        settings.pipeline,
        settings.pull
    );
    lab.step(&what, settings.guess_seconds(USUAL_S))?;
    let around = Around::begin(lab, [settings.cpus[0], settings.cpu_of(0)])?;
    let queues = Queues::fresh(lab, connection, settings)?;
    let ends = match settings.client {
        Client::Rust => Ends::spawn(lab, settings, &queues.names)?,
        Client::RedisPy(variants) => redis_py::spawn(lab, settings, variants, &queues.names)?,
    };
    let told = ends.work(settings, &queues, &lab.clock)?;
    let mut run = join::assemble(lab, settings, &told)?;
    around.end(lab, std::slice::from_mut(&mut run))?;
    runs.push(run);
    told.failed.map_or(Ok(()), |what| Err(LabError::Failed(what)))
}

/// The processes of a run.
struct Ends {
    pusher: Child,
    pullers: Vec<Child>,
    software: Software,
}

/// What they told, and what is left.
struct Told {
    pushed: Pushed,
    pulled: Vec<Pulled>,
    software: Software,
    /// Messages that wait still.
    left: u64,
    /// Whether the transport promises to keep what nobody pulls yet.
    keeps: bool,
    /// Why the run broke off, if it did.
    failed: Option<String>,
}

/// What the pusher tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pushed {
    sent: u64,
    /// Pushes that found the queue full.
    full: u64,
    /// The intended time of message 0, in the process's own ticks.
    start: u64,
    late_share: f64,
    failed: Option<String>,
    /// Where the client can tell.
    server_version: Option<String>,
}

/// What a puller tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pulled {
    /// Messages that were marked as redelivered.
    redelivered: u64,
    failed: Option<String>,
}

impl Ends {
    /// Our own; the pusher first, so that a queue that must be made is there.
    fn spawn(lab: &Lab<'_>, settings: &Settings, queues: &[String]) -> Result<Self, LabError> {
        let pusher = QueuePusherRole {
            target: settings.target.clone(),
            queues: queues.to_vec(),
            delivery: settings.usual_delivery().name().to_owned(),
            size: settings.size,
            count: settings.count,
            rate: settings.rate,
            batch: settings.pipeline,
            seed: settings.seed,
            thread: Thread::new(settings.cpus[0], settings.wait, Priority::Normal),
            out: pusher_file(lab),
        };
        let puller = |index: usize| {
            lab.spawn(&QueuePullerRole {
                target: settings.target.clone(),
                queue: queues[settings.queue_of(index)].clone(),
                delivery: settings.usual_delivery().name().to_owned(),
                size: settings.size,
                limit: settings.pull,
                share: settings.share(index),
                expected: settings.expected(index),
                thread: Thread::new(settings.cpu_of(index), settings.wait, Priority::Normal),
                out: puller_file(lab, index),
            })
        };
        let software = lab.software(&settings.target);
        let pusher = lab.spawn(&pusher)?;
        let pullers = (0..settings.pullers).map(puller).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { pusher, pullers, software })
    }

    /// From the first push until all is pulled.
    fn work(mut self, settings: &Settings, queues: &Queues, clock: &HostClock) -> Result<Told, LabError> {
        for puller in &mut self.pullers {
            puller.tell("go")?;
        }
        self.pusher.tell("go")?;
        let pushed: Pushed = self.pusher.result(settings.bound_seconds())?;
        let mut failed = pushed.failed.clone();
        if failed.is_none() && settings.share(0).is_none() {
            // A puller that shares a queue cannot know what is still to come to it.
            failed = queues.until_taken(clock, PATIENCE_NS).err().map(|error| error.to_string());
        }
        for puller in &mut self.pullers {
            // It may have failed, and be gone.
            let _ = puller.tell("ended");
        }
        let results = self.pullers.iter_mut().map(|puller| puller.result::<Pulled>(settings.bound_seconds()));
        let pulled = results.collect::<Result<Vec<_>, _>>()?;
        failed = failed.or_else(|| pulled.iter().find_map(|pulled| pulled.failed.clone()));
        let left = match queues.until_taken(clock, QUIET_NS) {
            Ok(left) => left,
            Err(error) => {
                failed = failed.or(Some(error.to_string()));
                0
            }
        };
        for child in self.pullers.into_iter().chain([self.pusher]) {
            // All of them leave in order only now: where members of a group are told of each other, leaving disturbs.
            let _left = child.stop::<()>();
        }
        let told = pushed.server_version.clone().or(self.software.server_version.clone());
        let software = Software { server_version: told, ..self.software };
        Ok(Told { pushed, pulled, software, left, keeps: queues.keep(), failed })
    }
}

/// The queues of a run, removed at its end, however it ends.
struct Queues {
    connection: Box<dyn Connection>,
    names: Vec<String>,
}

impl Queues {
    /// One, or one a puller; refused if somebody has them already.
    fn fresh(lab: &Lab<'_>, connection: Box<dyn Connection>, settings: &Settings) -> Result<Self, LabError> {
        let names: Vec<String> = (0..settings.queues()).map(|_| name(lab, &settings.target)).collect();
        for name in &names {
            refuse_waiting(&*connection, &settings.target, name)?;
        }
        Ok(Self { connection, names })
    }

    /// Waits until all is taken, as far as the transport can tell; a number that stands still for so long is not waited
    /// for. Gives how many messages wait still.
    fn until_taken(&self, clock: &HostClock, patience_ns: i64) -> Result<u64, ConnectError> {
        let (mut least, mut since) = (u64::MAX, clock.ticks());
        loop {
            let waiting = self.waiting()?;
            if waiting < least {
                (least, since) = (waiting, clock.ticks());
            }
            if waiting == 0 || clock.ns_between(since, clock.ticks()) > patience_ns {
                return Ok(waiting);
            }
            sleep_ns(LOOK_NS);
        }
    }

    /// Messages that nobody has taken; none where the transport cannot tell.
    fn waiting(&self) -> Result<u64, ConnectError> {
        let mut waiting = 0;
        for name in &self.names {
            waiting += self.connection.waiting(name)?.unwrap_or(0);
        }
        Ok(waiting)
    }

    fn keep(&self) -> bool {
        self.connection.queue_capabilities().keeps_without_puller
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for name in &self.names {
            // A server that has gone keeps what it has; the run's own error says so.
            let _ = self.connection.remove_queue(name);
        }
    }
}

/// A name that was never used before: a broker may still be removing the last one. On somebody's server it says whose
/// it is.
fn name(lab: &Lab<'_>, target: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    match is_log(target) {
        true => format!("{}.queue{number}", lab.name),
        false => format!("tickpath:{}:queue:{number}", lab.name),
    }
}

/// Messages that are there already would be counted as this run's.
fn refuse_waiting(connection: &dyn Connection, target: &str, queue: &str) -> Result<(), LabError> {
    match connection.waiting(queue)? {
        Some(waiting @ 1..) => Err(LabError::Failed(format!(
            "the queue {queue} of {} holds {waiting} messages already; pull or remove them, or use another queue",
            without_login(target)
        ))),
        _ => Ok(()),
    }
}

/// How both ends open a queue of messages of this size.
fn config(delivery: &str, size: usize) -> Result<QueueConfig, LabError> {
    /// What a message takes beside its payload, at most, in bytes.
    const AROUND: usize = 64;
    let delivery = Delivery::ALL.into_iter().find(|one| one.name() == delivery).ok_or_else(|| {
        let all = Delivery::ALL.map(Delivery::name).join(" or ");
        LabError::Setting(format!("'{delivery}' is no delivery; use {all}"))
    })?;
    let capacity_bytes = CAPACITY_BYTES.max(CAPACITY_MESSAGES * (size + AROUND));
    Ok(QueueConfig { capacity_bytes, ..QueueConfig::new(delivery) })
}

/// Where the pusher writes down its calls.
fn pusher_file(lab: &Lab<'_>) -> PathBuf {
    lab.folder().join("queue-pusher")
}

/// Where a puller writes down its calls; beside it lie the numbers.
fn puller_file(lab: &Lab<'_>, index: usize) -> PathBuf {
    lab.folder().join(format!("queue-puller{index}"))
}

/// Where it writes down the numbers of its messages.
fn numbers_file(puller_file: &Path) -> PathBuf {
    puller_file.with_extension("numbers")
}
