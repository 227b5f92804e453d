//! The one place that writes to standard output and standard error: no command prints by itself.
//!
//! A reader that closed the pipe has read enough: the command goes on, prints nothing more, and ends with the exit code of
//! its work. Any other failure to write is an error, which a command reports once its work is done.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use tickpath_explain as explain;
use tickpath_report::Screen;
use tickpath_result::ResultFile;

/// Columns of a terminal whose width is not known.
const WIDTH: usize = 80;

/// The result for this terminal: a screen of it, or all.
pub fn terminal(result: &ResultFile, all: bool) -> String {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(WIDTH);
    let report = || tickpath_report::terminal(result, &Screen { width, colour, all });
    match (result.workload.as_str(), all) {
        (explain::WORKLOAD, false) => explain::text(result, width),
        (explain::WORKLOAD, true) => explain::text(result, width) + "\n" + &report(),
        _ => report(),
    }
}

/// Whether the reader of standard output has closed it.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Prints a text on standard output, and flushes it. A closed pipe is no error; [`is_closed`] then holds.
pub fn say(text: &str) -> anyhow::Result<()> {
    if is_closed() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Judges what came of writing to standard output.
pub fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(why) if why.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(why) => {
            bail!(
                "standard output cannot be written: {why}; make room where it goes. What the command has done is done: look at \
                 `tickpath orders` or the log before you run it again"
            )
        }
    }
}

/// Returns whether the reader of standard output has closed it: a command that follows something ends then.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Prints a line on standard error. A failure is not reported: standard error is where it would go.
pub fn note(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints in the midst of work that must be finished whatever becomes of the output: the first failure ends the printing, and
/// [`Printer::end`] returns it.
#[derive(Debug, Default)]
pub struct Printer {
    failed: Option<anyhow::Error>,
}

impl Printer {
    /// Prints a text on standard output, as [`say`] does.
    pub fn say(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = say(text).err();
        }
    }

    /// Returns what the work came to, or why the output is not whole. An error of the work comes first.
    pub fn end<T>(self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        match (done, self.failed) {
            (Ok(_), Some(why)) => Err(why),
            (Err(error), Some(why)) => {
                note(&format!("tickpath: {why:#}"));
                Err(error)
            }
            (done, None) => done,
        }
    }
}
