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

type HostCheck = fn(&HostFiles) -> Finding;

/// All checks, in the order of the report.
const CHECKS: &[HostCheck] = &[
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
    memory::shared_memory_at_logout,
    system::steal,
    system::quota,
    system::allowed_cpus,
    system::hypervisor,
    system::real_time,
    system::real_time_share,
    system::interrupt_balancing,
    system::network_interrupts,
    system::open_files,
    system::open_files_of_tickpath,
];

/// Runs all checks on the host.
pub fn check_host(host: &HostFiles) -> Vec<Finding> {
    CHECKS.iter().map(|check| check(host)).collect()
}
