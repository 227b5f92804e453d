//! The lies that the instrument must catch, each planted for real, and what it reported of them.
//!
//! ```text
//!   publisher ──topic──> tamper: drops, doubles, swaps, holds back ──topic──> subscriber
//!        │                  │ counts what it did                                  │
//!        │  hogs, signals, a server that is gone                                  │
//!        └──────────────────┴───── planted | reported | told ─────────────────────┘
//! ```
//! A lie is told if the result says what was planted: exactly where whoever planted it counts, and by name or by a run that
//! is not valid elsewhere. Two rows plant nothing: who cries wolf there tells nothing by crying elsewhere.
//!
//! * `tamper.rs`: somebody between the two ends, on any transport.
//! * `messages.rs`, `machine.rs`, `figures.rs`, `builds.rs`: lies about messages, about whose time it was, about numbers,
//!   and about which build is slower.

mod builds;
mod figures;
mod hog;
mod machine;
mod messages;
mod signals;
mod tamper;

use std::cell::OnceCell;

use tickpath_clock::{Priority, Wait};
use tickpath_harness::arrivals::Arrivals;
use tickpath_harness::{Lab, LabError, Playable};
use tickpath_lab::pubsub::Settings;
use tickpath_result::{Phase, ResultFile};
use tickpath_scratch::redis::{Server, ServerSettings};

/// What the processes of this crate do.
pub const ROLES: &[Playable] = &[Playable::of::<hog::HogRole>()];

/// A lie, and how it is planted.
#[derive(Debug, Clone, Copy)]
pub struct Lie {
    /// Its name on the command line.
    pub name: &'static str,
    /// What carries the messages, or which of two; empty where there is one way.
    pub target: &'static str,
    plant: fn(&Stage<'_>) -> Result<Told, LabError>,
}

/// What was planted, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What was planted.
    pub planted: String,
    /// What the instrument said.
    pub reported: String,
    /// Whether that is what was planted.
    pub is_told: bool,
}

/// All of them, in the order of the table.
pub const LIES: &[Lie] = &[
    Lie { name: "nothing", target: "log", plant: |stage| messages::nothing(stage, ON_LOG) },
    Lie { name: "nothing", target: "redis", plant: |stage| messages::nothing(stage, ON_REDIS) },
    Lie { name: "dropped", target: "log", plant: |stage| messages::dropped(stage, ON_LOG) },
    Lie { name: "dropped", target: "redis", plant: |stage| messages::dropped(stage, ON_REDIS) },
    Lie { name: "doubled", target: "log", plant: |stage| messages::doubled(stage, ON_LOG) },
    Lie { name: "doubled", target: "redis", plant: |stage| messages::doubled(stage, ON_REDIS) },
    Lie { name: "swapped", target: "log", plant: |stage| messages::swapped(stage, ON_LOG) },
    Lie { name: "swapped", target: "redis", plant: |stage| messages::swapped(stage, ON_REDIS) },
    Lie { name: "late", target: "log", plant: |stage| messages::late(stage, ON_LOG) },
    Lie { name: "late", target: "redis", plant: |stage| messages::late(stage, ON_REDIS) },
    Lie { name: "stalled", target: "log", plant: |stage| messages::stalled(stage, ON_LOG) },
    Lie { name: "stalled", target: "redis", plant: messages::server_stalled },
    Lie { name: "cut", target: "redis", plant: messages::cut },
    Lie { name: "gone", target: "redis", plant: messages::gone },
    Lie { name: "killed", target: "log", plant: messages::killed },
    Lie { name: "starved-publisher", target: "log", plant: machine::starved_publisher },
    Lie { name: "starved-subscriber", target: "log", plant: machine::starved_subscriber },
    Lie { name: "all-stopped", target: "redis", plant: machine::all_stopped },
    Lie { name: "server-stopped", target: "redis", plant: machine::server_stopped },
    Lie { name: "counter", target: "ahead", plant: figures::counter_ahead },
    Lie { name: "counter", target: "back", plant: figures::counter_back },
    Lie { name: "few-samples", target: "", plant: figures::few_samples },
    Lie { name: "identical", target: "in turn", plant: builds::identical_in_turn },
    Lie { name: "identical", target: "files", plant: builds::identical_files },
    Lie { name: "slower-tail", target: "", plant: builds::slower_tail },
];

const ON_LOG: bool = true;
const ON_REDIS: bool = false;

/// Where a lie is planted.
pub struct Stage<'a> {
    /// The lab.
    pub lab: &'a Lab<'a>,
    /// The publisher's and the subscriber's CPU.
    pub cpus: [usize; 2],
    /// Runs of this build, measured once for all lies about builds.
    runs: OnceCell<Vec<ResultFile>>,
}

impl Lie {
    /// What people call it.
    pub fn title(&self) -> String {
        if self.target.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.target) }
    }

    /// Plants it, and hears what the instrument says.
    pub fn plant(&self, stage: &Stage<'_>) -> Result<Told, LabError> {
        (self.plant)(stage)
    }
}

/// Messages a second, and messages.
const RATE: f64 = 2_000.0;
const COUNT: u64 = 4_000;

impl<'a> Stage<'a> {
    /// An empty one.
    pub fn new(lab: &'a Lab<'a>, cpus: [usize; 2]) -> Self {
        Self { lab, cpus, runs: OnceCell::new() }
    }

    fn runs(&self, measure: fn(&Self) -> Result<Vec<ResultFile>, LabError>) -> Result<&[ResultFile], LabError> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let runs = measure(self)?;
        Ok(self.runs.get_or_init(|| runs))
    }

    /// A server of the lie's own, for some lies end it.
    fn server(&self) -> Result<Server, LabError> {
        let settings = ServerSettings { cpu: Some(self.cpus[0]), ..ServerSettings::default() };
        let server = Server::start(self.lab.folder(), &settings, &self.lab.clock)?;
        let missing = "redis-server is not installed; install it with: apt-get install redis-server";
        server.ok_or_else(|| LabError::Failed(missing.to_owned()))
    }

    fn settings(&self, target: &str) -> Settings {
        Settings {
            target: target.to_owned(),
            go: None,
            size: 64,
            rate: Some(RATE),
            arrivals: Arrivals::Steady,
            count: COUNT,
            batch: 1,
            policy: None,
            phase: Phase::Steady,
            readers: 1,
            wait: Wait::Block,
            pace: None,
            cpus: self.cpus,
            priority: Priority::Normal,
            repeat: 1,
        }
    }
}

fn ms(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{:.1} ms", ns as f64 / 1e6))
}
