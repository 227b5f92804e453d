//! Workloads of Redis itself: the gain of a pipeline ([`pipeline`]), and the rate of each client library ([`clients`]).
//!
//! Invariant: a client is one file and one line of a list (`CLIENTS`). Whatever its language, it is a process that
//! speaks the protocol of `docs/clients.md`.

mod address;
pub mod clients;
pub mod pipeline;

use tickpath_lab_harness::RoleEntry;

/// The process roles of both workloads.
pub const ROLES: &[RoleEntry] = &[RoleEntry::of::<pipeline::PipelineRole>(), RoleEntry::of::<clients::SetGetRole>()];
