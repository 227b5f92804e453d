//! Workloads of Redis itself: what a pipeline gains ([`pipeline`]), and what each client library reaches ([`clients`]).

mod address;
pub mod clients;
pub mod pipeline;

use tickpath_harness::Playable;

/// What their processes do.
pub const ROLES: &[Playable] = &[Playable::of::<pipeline::PipelineRole>(), Playable::of::<clients::SetGetRole>()];
