//! The workloads that drive any bus: messages with intended times, every hop measured, and the floor of the same run
//! beside it.
//!
//! [`pubsub`] and [`queue`] each make [`Run`](tickpath_lab_result::Run)s.

pub mod pubsub;
pub mod queue;

use tickpath_lab_harness::Playable;

/// The process roles of both workloads.
pub const ROLES: &[Playable] = &[
    Playable::of::<pubsub::PublisherRole>(),
    Playable::of::<pubsub::SubscriberRole>(),
    Playable::of::<pubsub::PingRole>(),
    Playable::of::<pubsub::PongRole>(),
    Playable::of::<queue::QueuePusherRole>(),
    Playable::of::<queue::QueuePullerRole>(),
];
