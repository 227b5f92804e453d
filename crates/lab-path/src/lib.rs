//! The workloads that drive our path: ticks and orders with intended times, every hop measured, and the floor of the
//! same run beside it.
//!
//! * [`path`], [`orders`]: each makes [`Run`](tickpath_lab_result::Run)s.
//! * [`demo`]: the path, and beside it the same path with one thing changed at a time.
//! * [`analyse`]: the tables of an order journal, from the journal alone.

pub mod analyse;
mod clients;
mod decision;
pub mod demo;
pub mod orders;
pub mod path;
mod python_path;
mod sends;
mod strategy;
mod trade;

pub use clients::Client;

use tickpath_lab_harness::Playable;

/// The process roles of all workloads.
pub const ROLES: &[Playable] = &[
    Playable::of::<path::FeedRole>(),
    Playable::of::<strategy::TraderRole>(),
    Playable::of::<path::StrategyRole>(),
    Playable::of::<trade::ExchangeRole>(),
    Playable::of::<trade::OmsRole>(),
    Playable::of::<orders::ClientRole>(),
    Playable::of::<orders::SenderRole>(),
    Playable::of::<orders::BesideRole>(),
];
