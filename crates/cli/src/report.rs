//! `tickpath report`: renders result files again.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tickpath_explain as explain;
use tickpath_result::ResultFile;

use crate::Outcome;
use crate::args::Report;

/// Columns of a terminal whose width is not known.
const WIDTH: usize = 120;

pub fn run(args: &Report) -> anyhow::Result<Outcome> {
    let mut files = args.files.iter();
    let mut result = ResultFile::load(files.next().context("no file was named")?)?;
    for file in files {
        let more = ResultFile::load(file)?;
        if result.workload == more.workload {
            result.findings.extend(more.findings);
        } else {
            result.findings.clear();
        }
        // The form of an explanation is for explanations alone.
        if result.workload == explain::WORKLOAD {
            result.workload = more.workload;
        }
        result.runs.extend(more.runs);
        result.comparisons.extend(more.comparisons);
        result.published.extend(more.published);
    }
    type Render = fn(&ResultFile) -> String;
    let rendered: [(&Option<PathBuf>, Render); 5] = [
        (&args.html, tickpath_report::html),
        (&args.csv, tickpath_report::csv),
        (&args.markdown, tickpath_report::markdown),
        (&args.svg, tickpath_report::svg),
        (&args.json, tickpath_report::json),
    ];
    let mut written = false;
    for (file, render) in rendered {
        if let Some(file) = file {
            write(file, &render(&result))?;
            written = true;
        }
    }
    if !written {
        say(&terminal(&result));
    }
    Ok(Outcome::Good)
}

/// The result for this terminal.
pub fn terminal(result: &ResultFile) -> String {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(WIDTH);
    match result.workload.as_str() {
        explain::WORKLOAD => explain::text(result, width),
        _ => tickpath_report::terminal(result, width, colour),
    }
}

/// Prints. Whoever closed our output has read enough of it.
pub fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text)
        .with_context(|| format!("cannot write {}; name a file that may be written", file.display()))
}
