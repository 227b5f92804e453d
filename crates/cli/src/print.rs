//! What goes to standard output.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Context;
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

/// Prints. A closed pipe is no error: its reader has read enough.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output takes no more; give it room, or another place")
        }
        _ => Ok(()),
    }
}
