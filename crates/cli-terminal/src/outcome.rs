//! Outcomes and exit codes of a command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit code of a command that a second signal ended before it was done.
const SECOND_SIGNAL_CODE: i32 = 1;

/// Returns a flag that is set: while it is, the first signal ends the process at once, even beside other handlers.
pub fn end_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let at_once = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGINT, 130, at_once.clone())?;
    flag::register_conditional_default(SIGTERM, at_once.clone())?;
    Ok(at_once)
}

/// Returns a flag that the first signal to end sets. The second ends the process: files on disk are whole at all times.
pub fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, SECOND_SIGNAL_CODE, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Outcome of a command, with its exit code.
#[repr(u8)]
pub enum CliOutcome {
    /// The command did its work.
    Success = 0,
    /// The run was measured, and lost messages that it had to keep; or a request was refused.
    Lost = 1,
    /// The command line was wrong; the error is printed.
    BadUsage = 2,
    /// The run was measured, and broke a rule of honest measuring.
    Invalid = 3,
    /// A --fail-if limit was exceeded.
    LimitExceeded = 4,
    /// The outcome of a request is unknown.
    Unanswered = 5,
    /// Ctrl-C; the measurements before it are saved.
    Interrupted = 130,
}
