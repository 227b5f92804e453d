//! `pubsub`: messages from one process to another over a transport.
//!
//! ```text
//!   publisher (generator's CPU)                 subscriber (receiver's CPU)
//!   intended ─ publish ──── topic ───────────── payload copied
//!      │  └ actual                                 │
//!      └──────────────── one_way ──────────────────┤      service = actual → copied
//! ```
//! A message carries its intended time as its stamp, and in its payload its actual send time and its number. A run is
//! valid only if each message arrived once and in order, the generator kept its rate and was punctual, and each process
//! had a CPU of its own.
//!
//! Three phases, three results: [`run`] is a steady stream, or, at a low rate, the first message after an idle period;
//! `cold` is the first message of a new process, connecting included; `round_trip` waits for each answer.

mod client;
mod clients;
mod cold;
mod go_redis;
mod plan;
mod processes;
mod python;
mod role;
mod round_trip;
mod settings;
mod slo;
mod steady;

pub use client::{ClientEntry, ForeignClient};
pub use clients::{CLIENTS, ClientTarget, pairs};
pub use cold::measure_cold;
pub use plan::{PubsubPlan, plan_rate};
pub use role::{PublisherRole, SubscriberRole};
pub use round_trip::{PingRole, PongRole, round_trip};
pub use settings::Settings;
pub use slo::{TYPICAL_RUNS, search};
pub use steady::{PubsubProcesses, run, run_with};
