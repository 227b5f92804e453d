//! Measuring apparatus of all workloads: processes and their roles, samples, the machine's own floor.
//!
//! ```text
//!   workload ──spawns──> roles (processes of this same program)
//!      │                    │ samples in ticks, gaps caused by the host
//!      └── result file <────┘
//! ```
//! * [`Lab`]: context of a bench. [`role`]: work of spawned processes, which each workload brings; [`child`] and
//!   [`parent`]: both ends of the pipes between a bench and its processes.
//! * [`arrivals`]: intended send times. [`random`]: reproducible random numbers. [`digits`]: round numbers.
//! * [`samples`], [`attribution`]: times between stamps, and the host's share of them.
//! * [`StabilityCheck`]: checks that the machine did not change during a run, and that its processors' counters agree.
//! * [`rules`]: conditions that make a run of any workload invalid.
//! * [`host`]: the machine's costs without any message; [`memory`]: memory and CPU waits of a process;
//!   [`busy_processes`]: other busy processes.
//! * [`quiet_timer`]: end of a receiver's wait. [`targets`]: default targets of a bench, and the removal of its topics.
//! * [`proxy`]: injected network delay, with its own cost. [`signals`]: injected pauses. [`evict`]: evicted caches.
//!
//! `crates/cli/src/bench/mod.rs` puts the roles of all workloads together, a line for each.
//!
//! # Invariants
//!
//! * Latency counts from intended times, so a stall shows in full; the generator checks its own lateness.
//! * A gap counts as the host's only between two empty polls of a thread on the path, and if the kernel's account of
//!   that thread agrees. An unknown cause is not the host's (`docs/results.md`, What is the host's).
//! * Cold, idle and steady are three results. Percentiles are never averaged, and are null where the samples are too
//!   few.

pub mod arrivals;
pub mod attribution;
pub mod busy_processes;
pub mod child;
pub mod digits;
mod error;
pub mod evict;
pub mod host;
mod interruption;
mod lab;
pub mod memory;
pub mod parent;
pub mod proxy;
pub mod quiet_timer;
pub mod random;
pub mod role;
pub mod rules;
pub mod samples;
pub mod signals;
pub mod stability;
pub mod targets;

pub use child::Child;
pub use error::{LabError, keep_runs};
pub use interruption::interruption;
pub use lab::{Lab, ProgressSink, remove_topics};
pub use parent::Parent;
pub use role::{ProcessRole, RoleEntry, ThreadConfig};
pub use stability::StabilityCheck;

/// Roles that the harness itself provides.
pub const ROLES: &[RoleEntry] =
    &[RoleEntry::of::<host::EchoRole>(), RoleEntry::of::<proxy::ProxyRole>(), RoleEntry::of::<evict::EvictorRole>()];
