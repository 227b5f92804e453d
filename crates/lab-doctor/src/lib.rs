//! `doctor`: settings of this host and its brokers that cost latency or safety, their price, and the remedies.
//!
//! The checks read, and measure where a machine may report wrong values. A value that cannot be read is a finding too:
//! `unknown`, with the reason. Facts about a broker come by the contract of `bus-api`.
//!
//! | file            | contents                                                                |
//! |-----------------|-------------------------------------------------------------------------|
//! | `cpu.rs`        | frequency, siblings, isolation, idle states, clock, timer tick          |
//! | `neighbours.rs` | relations between the processors, measured                              |
//! | `wake_up.rs`    | cost of waking a sleeping thread, measured                              |
//! | `memory.rs`     | huge pages, swap, locked memory, `/dev/shm`                             |
//! | `system.rs`     | time taken by the host and limits: steal, quotas, interrupts, files     |
//! | `finding.rs`    | the findings, and the host that they are read from                      |
//! | `broker.rs`     | settings of the brokers, as their transports report them                |
//! | `script.rs`     | the remedies as a script, a GRUB line and a systemd unit                |
//!
//! Invariant: nothing on the host or a broker is changed.

mod broker;
mod cpu;
mod finding;
mod memory;
mod neighbours;
mod script;
mod system;
mod wake_up;

pub use broker::broker;
pub use finding::{Finding, FindingState, HostFiles};
pub use neighbours::{CpuNeighbour, check_neighbours, judge_neighbours};
pub use script::script;
pub use wake_up::{check_wake_up, judge_wake_up};

/// The name of a check, and the check itself.
type HostCheck = (&'static str, fn(&HostFiles) -> Finding);

/// All checks, in the order of the report.
const CHECKS: &[HostCheck] = &[
    ("frequency governor", cpu::governor),
    ("frequency now, of the highest", cpu::frequency),
    ("hyperthreads", cpu::siblings),
    ("isolated CPUs", cpu::isolated),
    ("CPUs without a timer tick", cpu::tickless),
    ("deepest idle state", cpu::idle_states),
    ("clock source", cpu::clock_source),
    ("timer tick", cpu::timer_tick),
    ("transparent huge pages", memory::transparent_huge_pages),
    ("reserved huge pages", memory::huge_pages),
    ("swap", memory::swap),
    ("memory that may be locked", memory::locked_memory),
    ("/dev/shm", memory::shared_memory),
    ("/dev/shm at logout", memory::shared_memory_at_logout),
    ("time taken by the hypervisor", system::steal),
    ("CPU quota", system::quota),
    ("CPUs of this process", system::allowed_cpus),
    ("hypervisor", system::hypervisor),
    ("real-time priority", system::real_time),
    ("share of real-time threads", system::real_time_share),
    ("irqbalance", system::interrupt_balancing),
    ("CPUs that take device interrupts", system::network_interrupts),
    ("open files", system::open_files),
    ("open files of running processes", system::open_files_of_tickpath),
];

/// Runs all checks on the host.
pub fn check_host(host: &HostFiles) -> Vec<Finding> {
    CHECKS.iter().map(|(name, check)| check(host).named(name)).collect()
}
