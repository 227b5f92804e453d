//! The lies that the instrument must catch, each planted for real, and what it reported of them.
//!
//! ```text
//!   publisher ──topic──> tamper: drops, doubles, swaps, holds back ──topic──> subscriber
//!        │                  │ counts what it did                                  │
//!        │  hogs, signals, a server that is gone                                  │
//!        └──────────────────┴───── planted | reported | told ─────────────────────┘
//! ```
//! A lie is told if the result says what was planted: exactly where whoever planted it counts, and by name elsewhere.
//! Some rows plant nothing: who cries wolf there tells nothing by crying elsewhere.
//!
//! * `lies.rs`: the table. `stage.rs`: where a lie is planted.
//! * `tamper.rs`: somebody between the two ends, on any transport. `relay.rs`: somebody on the wire before a server.
//! * `messages.rs`, `workloads.rs`: lies about messages. `orders.rs`: lies to orders.
//! * `early.rs`: stamps that are taken too early. `observer.rs`: who holds them against system calls.
//! * `machine.rs`, `figures.rs`, `builds.rs`: about whose time it was, about numbers, and about which build is slower.

mod builds;
mod early;
mod figures;
mod hog;
mod lies;
mod limit;
mod machine;
mod messages;
mod observer;
mod orders;
mod relay;
mod stage;
mod tamper;
mod workloads;

use tickpath_harness::Playable;

pub use lies::{LIES, Lie};
pub use stage::{Finding, Stage};

/// What the processes of this crate do.
pub const ROLES: &[Playable] = &[Playable::of::<hog::HogRole>(), Playable::of::<observer::ObserverRole>()];
