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
//! [`cold`] is the first message of a new process, connecting included; [`round_trip`] waits for each answer.

mod client;
mod clients;
mod cold;
mod ends;
mod go_redis;
mod plan;
mod python;
mod role;
mod round_trip;
mod settings;
mod slo;
mod steady;

pub use client::{ForeignClient, Listed};
pub use clients::{CLIENTS, Pair, pairs};
pub use cold::cold;
pub use plan::{Plan, plan};
pub use role::{PublisherRole, SubscriberRole};
pub use round_trip::{PingRole, PongRole, round_trip};
pub use settings::Settings;
pub use slo::{USUAL_RUNS, search};
pub use steady::{Ends, run, run_with};
