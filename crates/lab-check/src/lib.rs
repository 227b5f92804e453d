//! The lies that the instrument must catch, each planted for real, and its reports of them.
//!
//! ```text
//!   publisher ──topic──> tamper: drops, doubles, swaps, holds back ──topic──> subscriber
//!        │                  │ counts what it did                                  │
//!        │  hogs, signals, a server that is killed                                │
//!        └──────────────────┴───── planted | reported | told ─────────────────────┘
//! ```
//! A lie is caught if the result reports the planted fault: exactly where the planter counts, and by name elsewhere.
//! Some rows plant nothing: an instrument with false alarms there proves nothing elsewhere.
//!
//! * `faults.rs`: the table. `context.rs`: the place where a lie is planted.
//! * `tamper.rs`: a tamper between the two ends, on any transport. `fault_relay.rs`: a relay on the wire before a
//!   server.
//! * `messages.rs`, `workloads.rs`: lies about messages. `orders.rs`: lies to orders.
//! * `early.rs`: stamps taken too early. `observer.rs`: another process that records by ptrace when a send has
//!   returned; no stamp of a departure may be earlier.
//! * `machine.rs`, `figures.rs`, `builds.rs`: lies about the owner of lost time, about numbers, about the slower build.
//!
//! Invariant: a lie is planted for real, and a lie that the result does not report is an exit code.

mod builds;
mod context;
mod early;
mod fault_relay;
mod faults;
mod figures;
mod hog;
mod limit;
mod machine;
mod messages;
mod observer;
mod orders;
mod tamper;
mod workloads;

use tickpath_lab_harness::RoleEntry;

pub use context::{CheckContext, FaultReport};
pub use faults::{PLANTED_FAULTS, PlantedFault};

/// Roles of this crate's processes.
pub const ROLES: &[RoleEntry] = &[RoleEntry::of::<hog::HogRole>(), RoleEntry::of::<observer::ObserverRole>()];
