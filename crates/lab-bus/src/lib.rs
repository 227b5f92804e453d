//! The workloads that drive any bus: messages with intended times, every hop measured, and the floor of the same run
//! beside it.
//!
//! [`pubsub`] and [`queue`] each make [`Run`](tickpath_lab_result::Run)s. Each role is a process of its own; the parent
//! joins the rows that the processes recorded.
//!
//! # Invariants
//!
//! * A claim that A is faster than B is a ratio from interleaved runs of one command, beside the host's own floor.
//!   Either one setting differs, or the best form of each side is tried, and the result states which.
//! * On a server of the user a workload changes no setting, and removes its own keys.

pub mod pubsub;
pub mod queue;

use tickpath_lab_harness::RoleEntry;

/// The process roles of both workloads.
pub const ROLES: &[RoleEntry] = &[
    RoleEntry::of::<pubsub::PublisherRole>(),
    RoleEntry::of::<pubsub::SubscriberRole>(),
    RoleEntry::of::<pubsub::PingRole>(),
    RoleEntry::of::<pubsub::PongRole>(),
    RoleEntry::of::<queue::QueuePusherRole>(),
    RoleEntry::of::<queue::QueuePullerRole>(),
];
