//! The workloads that drive our path: ticks and orders with intended times, every hop measured, and the floor of the
//! same run beside it.
//!
//! * [`path`], [`orders`]: each makes [`Run`](tickpath_lab_result::Run)s.
//! * [`demo`]: the path, and beside it the same path with one thing changed at a time.
//! * [`analyse`]: the tables of an order journal, from the journal alone.
//! * [`Decision`], [`OmsRole`]: the strategy and the OMS of `path`, for workloads with another market and another venue.
//!
//! Ticks are carried by any bus. `decision.rs` is the decision of every strategy, `clients.rs` the choice of the
//! client.
//!
//! # Invariants
//!
//! * Where two clients take turns, only their code differs: both are processes of their own, logged on alike.
//! * Where feed and venue of `path` share a CPU, they are agents of one thread; a run names the threads that there
//!   were.
//! * A request that did not leave is in no hop of released requests.

pub mod analyse;
mod clients;
mod decision;
pub mod demo;
pub mod orders;
pub mod path;
mod python_path;
mod send_log;
mod strategy;
mod trade;

pub use clients::TradingClient;
pub use decision::{Decision, SeenTick};
pub use orders::{group::PATH_GROUP, is_from_venue};
pub use trade::{OmsRole, VENUE};

use tickpath_lab_harness::RoleEntry;

/// The process roles of all workloads.
pub const ROLES: &[RoleEntry] = &[
    RoleEntry::of::<path::FeedRole>(),
    RoleEntry::of::<strategy::TraderRole>(),
    RoleEntry::of::<path::StrategyRole>(),
    RoleEntry::of::<trade::ExchangeRole>(),
    RoleEntry::of::<trade::OmsRole>(),
    RoleEntry::of::<orders::ClientRole>(),
    RoleEntry::of::<orders::SenderRole>(),
    RoleEntry::of::<orders::SideClientRole>(),
];
