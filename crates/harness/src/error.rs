//! Why a bench did not come to a result.

use std::sync::atomic::Ordering;

use tickpath_result::{ResultFile, Run};

use crate::interruption;

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
    /// There was a Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The run ended before it was done, and what was measured until then is here, not valid.
    #[error("{why}")]
    BrokeOff {
        /// Runs until then; the last one says why it ended.
        runs: Vec<Run>,
        /// Why.
        why: String,
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
    /// A part of the path.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
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
    /// What a part of the path says, whole.
    pub fn other(reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Other(Box::new(reason))
    }

    /// A file's error.
    pub fn file(path: &std::path::Path, reason: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), reason }
    }
}

impl LabError {
    /// Runs until one ended early, of whose `count` of `things` so many were `sent`. That is the last run, and not
    /// valid. A Ctrl-C is named as such, whatever it made of the run's processes.
    pub fn broke_off(mut runs: Vec<Run>, sent: u64, count: u64, things: &str, why: String) -> Self {
        let why = if interruption().load(Ordering::Relaxed) { Self::Interrupted.to_string() } else { why };
        if let Some(run) = runs.last_mut() {
            run.valid = false;
            run.notes.insert(0, format!("it broke off after {sent} of {count} {things}: {why}"));
        }
        Self::BrokeOff { runs, why }
    }
}

/// Takes runs into a result; of a bench that broke off those that there are, and then its error.
pub fn keep(result: &mut ResultFile, runs: Result<Vec<Run>, LabError>) -> Result<(), LabError> {
    match runs {
        Ok(runs) => result.runs.extend(runs),
        Err(LabError::BrokeOff { runs, why }) => {
            result.runs.extend(runs);
            return Err(LabError::Failed(why));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
