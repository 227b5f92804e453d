//! What every workload measures with: processes and their roles, samples, the machine's own floor.
//!
//! ```text
//!   workload ──spawns──> roles (processes of this same program)
//!      │                    │ samples in ticks, gaps that the host made
//!      └── result file <────┘
//! ```
//! * [`Lab`]: what all workloads share. [`role`]: what spawned processes do; [`child`] and [`parent`]: both ends of the
//!   wires between them and us.
//! * [`arrivals`]: when messages are due. [`random`]: chance that is the same everywhere. [`digits`]: round numbers.
//! * [`samples`], [`attribution`]: stretches between stamps, and what of them was the host's.
//! * [`Around`]: whether the machine was the same before and after a run, and its processors show one time.
//! * [`rules`]: what makes a run invalid, whatever the workload.
//! * [`host`]: what the machine takes before any message moves; [`memory`]: what a process holds and waits for;
//!   [`others`]: who else is busy.
//! * [`quiet`]: when a receiver stops waiting. [`targets`]: what is measured if nothing is named, and that a run leaves
//!   nothing there.
//! * [`proxy`]: a distance of our own making. [`signals`]: standstills of our own making. [`evict`]: cold caches of
//!   our own making.
//!
//! Latency counts from intended times, so a stall shows in full; the generator checks its own punctuality; a gap is
//! the host's only between two empty polls of a thread on the path, and if the kernel's account of that thread agrees.

pub mod around;
pub mod arrivals;
pub mod attribution;
pub mod child;
pub mod digits;
mod error;
pub mod evict;
pub mod host;
mod interruption;
mod lab;
pub mod memory;
pub mod others;
pub mod parent;
pub mod proxy;
pub mod quiet;
pub mod random;
pub mod role;
pub mod rules;
pub mod samples;
pub mod signals;
pub mod targets;

pub use around::Around;
pub use child::Child;
pub use error::{LabError, keep};
pub use interruption::interruption;
pub use lab::{Lab, Progress, remove_topics};
pub use parent::Parent;
pub use role::{Playable, Role, Thread};

/// What the processes of the harness itself do.
pub const ROLES: &[Playable] =
    &[Playable::of::<host::EchoRole>(), Playable::of::<proxy::ProxyRole>(), Playable::of::<evict::EvictorRole>()];
