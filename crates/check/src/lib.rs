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
//! * `lies.rs`: the table. `stage.rs`: where a lie is planted.
//! * `tamper.rs`: somebody between the two ends, on any transport.
//! * `messages.rs`, `machine.rs`, `figures.rs`, `builds.rs`: lies about messages, about whose time it was, about numbers,
//!   and about which build is slower.

mod builds;
mod figures;
mod hog;
mod lies;
mod machine;
mod messages;
mod signals;
mod stage;
mod tamper;

use tickpath_harness::Playable;

pub use lies::{LIES, Lie};
pub use stage::{Stage, Told};

/// What the processes of this crate do.
pub const ROLES: &[Playable] = &[Playable::of::<hog::HogRole>()];
