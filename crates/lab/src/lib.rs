//! The lab: load with intended times, every hop measured, and the floor of the same run beside it.
//!
//! ```text
//!   workload ──spawns──> roles (processes: publisher, feed, trader, OMS, exchange, …)
//!      │                    │ samples in ticks, gaps that the host made
//!      └── result file <────┘──> report: terminal, JSON, CSV, Markdown, SVG, HTML
//! ```
//!
//! * [`host`], [`pubsub`], [`path`], [`orders`]: the workloads. Each makes [`tickpath_result::Run`]s.
//! * [`demo`]: the path with and without a broker, in half a minute.
//! * [`analyse`]: the tables of an order journal, from the journal alone.
//! * [`role`]: what the spawned processes do; [`child`]: how they are spawned and stopped.
//! * [`tickpath_result`] is the data, [`report`] its renderings, each a pure function of it.
//!
//! Latency counts from intended times, so a stall shows in full; the generator checks its own punctuality; a gap is
//! the host's only between two empty polls of a thread on the path.

pub mod analyse;
pub mod child;
pub mod clients;
pub mod compare;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod host;
mod memory;
pub mod orders;
pub mod path;
pub mod pipeline;
pub mod proxy;
pub mod published;
pub mod pubsub;
pub mod python;
mod python_path;
pub mod queue;
mod quiet;
pub mod redis;
pub mod relay;
pub mod role;
mod samples;
mod servers;
mod strategy;
pub mod targets;
mod trade;

pub use child::{Lab, Progress};

/// Why a bench did not come to a result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A process of the run failed.
    #[error("the {role} process failed: {what}")]
    Child {
        /// What it was for.
        role: String,
        /// What it said.
        what: String,
    },
    /// A setting that makes no run.
    #[error("{0}")]
    Setting(String),
    /// The run failed.
    #[error("{0}")]
    Failed(String),
    /// A process did not answer in time.
    #[error(
        "the {role} process did not answer within {seconds} s; is the machine overloaded, or a CPU shared by two busy threads?"
    )]
    Silent {
        /// What it was for.
        role: String,
        /// The bound.
        seconds: u64,
    },
    /// A file or directory of the run.
    #[error("{path}: {reason}")]
    File {
        /// Which one.
        path: String,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// The journal or a lane.
    #[error(transparent)]
    Oms(#[from] tickpath_oms::OmsError),
    /// A log.
    #[error(transparent)]
    Open(#[from] tickpath_log::OpenError),
    /// A recording.
    #[error(transparent)]
    Recording(#[from] tickpath_market::replay::RecordingError),
    /// A pace.
    #[error(transparent)]
    Pace(#[from] tickpath_market::replay::PaceError),
    /// A transport.
    #[error(transparent)]
    Connect(#[from] tickpath_bus::ConnectError),
    /// The clock.
    #[error(transparent)]
    Clock(#[from] tickpath_clock::CalibrationError),
    /// Pinning or priority.
    #[error(transparent)]
    Schedule(#[from] tickpath_clock::ScheduleError),
}

impl LabError {
    /// A file's error.
    pub(crate) fn file(path: &std::path::Path, reason: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), reason }
    }
}
