//! `tickpath history`: results of one machine over time.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tickpath_lab_compare::histories;
use tickpath_lab_report::trends;
use tickpath_lab_result::{LoadError, ResultFile};

use tickpath_cli_terminal::args::{CliUsageError, bail_usage, check_writable};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_note, print_text};

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// A folder of result files, as --json writes them; other files in it are skipped
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Write a page with a chart for each figure
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

pub fn run(args: &HistoryArgs) -> anyhow::Result<CliOutcome> {
    if let Some(file) = &args.html {
        check_writable(file)?;
    }
    let results = results(&args.folder)?;
    if results.is_empty() {
        let remedy = "write one there with: tickpath bench WORKLOAD --json FILE";
        bail_usage!("{} has no result file; {remedy}", args.folder.display());
    }
    let histories = histories(results);
    let texts: Vec<String> = histories.iter().map(trends::Trends::text).collect();
    if let Some(file) = &args.html {
        std::fs::write(file, trends::page(&histories)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    print_text(&texts.join("\n")).map(|()| CliOutcome::Success)
}

/// Returns every result of a folder. Other JSON files are skipped; a damaged result is an error.
fn results(folder: &Path) -> anyhow::Result<Vec<ResultFile>> {
    let entries =
        std::fs::read_dir(folder).map_err(|e| CliUsageError(format!("{}: {e}; name a folder", folder.display())))?;
    let mut results = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        match ResultFile::load(&path) {
            Ok(result) => results.push(result),
            Err(LoadError::NoSchema { .. }) => {}
            Err(error) => print_note(&format!("tickpath: {error}")),
        }
    }
    Ok(results)
}
