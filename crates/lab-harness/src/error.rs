//! Error of a bench that has no complete result.

use std::sync::atomic::Ordering;

use tickpath_lab_result::{ResultFile, Run};

use crate::interruption;

/// Error of a bench that has no complete result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A process of the run failed.
    #[error("the {role} process failed: {what}")]
    Child {
        /// Role of the process.
        role: String,
        /// Reason that the process reported.
        what: String,
    },
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The run broke off; its results until then are kept, and are not valid.
    #[error("{why}")]
    Aborted {
        /// Runs until then; the notes of the last run have the reason.
        runs: Vec<Run>,
        /// Reason.
        why: String,
    },
    /// A setting allows no run.
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
        /// Role of the process.
        role: String,
        /// Timeout in seconds.
        seconds: u64,
    },
    /// A file or directory of the run failed.
    #[error("{path}: {reason}")]
    File {
        /// Path of the file or directory.
        path: String,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A part of the path failed.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// A log could not be opened.
    #[error(transparent)]
    Open(#[from] tickpath_log::LogOpenError),
    /// A recording could not be read.
    #[error(transparent)]
    Recording(#[from] tickpath_market::replay::RecordingError),
    /// A pace is not valid.
    #[error(transparent)]
    Pace(#[from] tickpath_market::replay::ReplaySpeedError),
    /// A connection to a transport failed.
    #[error(transparent)]
    Connect(#[from] tickpath_bus::ConnectError),
    /// The clock could not be calibrated.
    #[error(transparent)]
    Clock(#[from] tickpath_clock::CalibrationError),
    /// Pinning or prioritising a thread failed.
    #[error(transparent)]
    Schedule(#[from] tickpath_clock::ScheduleError),
}

impl LabError {
    /// Wraps the error of a part of the path.
    pub fn other(reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Other(Box::new(reason))
    }

    /// Wraps the error of a file.
    pub fn file(path: &std::path::Path, reason: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), reason }
    }

    /// Wraps runs of which the last one broke off after `sent` of `count` `things`, and marks that run as not valid.
    /// After a Ctrl-C the reason is the interruption, whatever error the run's processes reported.
    pub fn aborted(mut runs: Vec<Run>, sent: u64, count: u64, things: &str, why: String) -> Self {
        let why = if interruption().load(Ordering::Relaxed) { Self::Interrupted.to_string() } else { why };
        if let Some(run) = runs.last_mut() {
            run.valid = false;
            run.notes.insert(0, format!("it broke off after {sent} of {count} {things}: {why}"));
        }
        Self::Aborted { runs, why }
    }
}

/// Adds runs to a result. After a broken-off bench it adds the runs until then, and returns the error.
pub fn keep_runs(result: &mut ResultFile, runs: Result<Vec<Run>, LabError>) -> Result<(), LabError> {
    match runs {
        Ok(runs) => result.runs.extend(runs),
        Err(LabError::Aborted { runs, why }) => {
            result.runs.extend(runs);
            return Err(LabError::Failed(why));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
