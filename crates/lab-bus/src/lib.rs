//! The workloads that drive any bus: messages with intended times, every hop measured, and the floor of the same run
//! beside it.
//!
//! [`pubsub`] and [`queue`] each make [`Run`](tickpath_lab_result::Run)s.

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
