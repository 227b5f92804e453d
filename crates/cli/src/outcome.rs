//! How a command ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a command that was stopped a second time before it was done.
const CUT_SHORT: i32 = 1;

/// The exit code of Ctrl-C where there is nothing to end in good order.
const INTERRUPTED: i32 = 130;

/// As long as this is so, the first signal to end does it at once, whatever else waits for signals.
pub fn end_on_signals_while(condition: &Arc<AtomicBool>) -> std::io::Result<()> {
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, condition.clone())?;
    flag::register_conditional_default(SIGTERM, condition.clone())?;
    Ok(())
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
    /// Ctrl-C; what was measured before is saved.
    Interrupted,
}
