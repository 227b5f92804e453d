//! How a command ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a command that was stopped a second time before it was done.
const CUT_SHORT: i32 = 1;

/// A flag that is set: until somebody clears it, the first signal ends the process at once, whatever else listens.
pub fn end_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let at_once = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGINT, 130, at_once.clone())?;
    flag::register_conditional_default(SIGTERM, at_once.clone())?;
    Ok(at_once)
}

/// A flag that the first signal to end sets. The second ends the process: what lies on a disk is whole at any moment.
pub fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, CUT_SHORT, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// How a command ended.
pub enum Outcome {
    /// It did what it was asked.
    Good,
    /// It measured, and the run broke a rule of honest measuring.
    Invalid,
    /// A --fail-if limit was exceeded.
    LimitExceeded,
    /// It measured, and the run lost what it promised to keep; or a request was refused.
    Lost,
    /// What became of a request is not known.
    Unanswered,
    /// The command line made no sense; the sentence is printed.
    BadUsage,
    /// Ctrl-C; what was measured before is saved.
    Interrupted,
}
