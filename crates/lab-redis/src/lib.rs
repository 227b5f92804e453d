//! Workloads of Redis itself: the gain of a pipeline ([`pipeline`]), and the rate of each client library ([`clients`]).

mod address;
pub mod clients;
pub mod pipeline;

use tickpath_lab_harness::Playable;

/// The process roles of both workloads.
pub const ROLES: &[Playable] = &[Playable::of::<pipeline::PipelineRole>(), Playable::of::<clients::SetGetRole>()];
