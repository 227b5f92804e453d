//! `doctor`: what of this host and of its brokers costs latency or safety, what it costs, and how to mend it.
//!
//! It reads and changes nothing. What cannot be read is a finding too: `unknown`, with the reason.
//!
//! | file        | what it looks at                                                        |
//! |-------------|-------------------------------------------------------------------------|
//! | `cpu.rs`    | frequency, siblings, isolation, idle states, clock, timer tick          |
//! | `memory.rs` | huge pages, swap, locked memory, `/dev/shm`                             |
//! | `system.rs` | what the host gives to others: steal, interrupts, priorities, limits    |
//! | `broker.rs` | Redis, NATS, RabbitMQ, Kafka: persistence, acknowledgement, buffers     |
//! | `script.rs` | the remedies as a script, a GRUB line and a systemd unit                |

mod broker;
mod cpu;
mod memory;
mod script;
mod system;

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

pub use broker::broker;
pub use script::script;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How it is here.
    pub value: String,
    /// What that means.
    pub state: State,
    /// What it costs, or risks.
    pub why: String,
    /// What to do; empty where nothing is to be done.
    pub remedy: String,
}

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// It costs time.
    CostsLatency,
    /// It can lose data or orders.
    RisksSafety,
    /// It could not be read.
    Unknown,
}

impl State {
    /// The words for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::CostsLatency => "costs latency",
            Self::RisksSafety => "risks safety",
            Self::Unknown => "unknown",
        }
    }
}

/// The host, as its files tell of it; tests lay files of their own.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This host.
    pub fn here() -> Self {
        Self::under("/")
    }

    /// The host whose `/proc` and `/sys` lie in this folder.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A file's text without the line end; none if it cannot be read.
    fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// A file's number.
    fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    /// The names in a folder.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path.trim_start_matches('/'))).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The number behind `name:` in a file of such lines.
    fn field(&self, path: &str, name: &str) -> Option<u64> {
        let text = self.read(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// How many processors there are.
    fn processors(&self) -> usize {
        let is_cpu = |name: &&String| {
            name.strip_prefix("cpu").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        self.names("/sys/devices/system/cpu").iter().filter(is_cpu).count()
    }
}

type Check = fn(&Host) -> Finding;

/// Everything that is looked at, in the order of the report.
const CHECKS: &[Check] = &[
    cpu::governor,
    cpu::frequency,
    cpu::siblings,
    cpu::isolated,
    cpu::tickless,
    cpu::idle_states,
    cpu::clock_source,
    cpu::timer_tick,
    memory::transparent_huge_pages,
    memory::huge_pages,
    memory::swap,
    memory::locked_memory,
    memory::shared_memory,
    system::steal,
    system::hypervisor,
    system::real_time,
    system::real_time_share,
    system::interrupt_balancing,
    system::network_interrupts,
    system::open_files,
];

/// Looks at the host.
pub fn host(host: &Host) -> Vec<Finding> {
    CHECKS.iter().map(|check| check(host)).collect()
}

impl Finding {
    fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), state: State::Good, why: String::new(), remedy: String::new() }
    }

    fn latency(name: &'static str, value: impl Into<String>, why: &str, remedy: impl Into<String>) -> Self {
        let (value, remedy) = (value.into(), remedy.into());
        Self { name, value, state: State::CostsLatency, why: why.to_owned(), remedy }
    }

    fn safety(name: &'static str, value: impl Into<String>, why: &str, remedy: impl Into<String>) -> Self {
        let (value, remedy) = (value.into(), remedy.into());
        Self { name, value, state: State::RisksSafety, why: why.to_owned(), remedy }
    }

    fn unknown(name: &'static str, why: impl Into<String>) -> Self {
        let value = "not told here".to_owned();
        Self { name, value, state: State::Unknown, why: why.into(), remedy: String::new() }
    }
}
