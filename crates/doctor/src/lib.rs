//! `doctor`: what of this host and of its brokers costs latency or safety, what it costs, and how to mend it.
//!
//! It reads, measures where a machine may be told wrong, and changes nothing. What cannot be read is a finding too: `unknown`, with the reason.
//!
//! | file        | what it looks at                                                        |
//! |-------------|-------------------------------------------------------------------------|
//! | `cpu.rs`    | frequency, siblings, isolation, idle states, clock, timer tick          |
//! | `neighbours.rs` | what the processors are to each other, measured                     |
//! | `wake_up.rs` | what it takes to wake a thread that sleeps, measured                   |
//! | `memory.rs` | huge pages, swap, locked memory, `/dev/shm`                             |
//! | `system.rs` | what the host gives to others: steal, quotas, interrupts, limits        |
//! | `finding.rs`| what is looked at, and what is found                                    |
//! | `broker.rs` | what each transport knows of its server                                  |
//! | `script.rs` | the remedies as a script, a GRUB line and a systemd unit                |

mod broker;
mod cpu;
mod finding;
mod memory;
mod neighbours;
mod script;
mod system;
mod wake_up;

pub use broker::broker;
pub use finding::{Finding, Host, State};
pub use neighbours::{Neighbour, judged, neighbours};
pub use script::script;
pub use wake_up::{wake_up, woken};

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

/// Looks at the host.
pub fn host(host: &Host) -> Vec<Finding> {
    CHECKS.iter().map(|check| check(host)).collect()
}
