//! What goes to standard output.

use std::io::{IsTerminal, Write};

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

/// Prints. Whoever closed our output has read enough of it.
pub fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
