//! `tickpath report`: renders result files again.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tickpath_lab_explain as explain;
use tickpath_lab_result::ResultFile;

use clap::Args;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_text, render_terminal};

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write an HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write CSV, with a row for each run and hop
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write Markdown tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write percentile curves as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print every run in full, on as many screens as needed
    #[arg(long, conflicts_with_all = ["html", "csv", "markdown", "svg", "json"])]
    pub all: bool,
    /// Write the merged result file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub fn run(args: &ReportArgs) -> anyhow::Result<CliOutcome> {
    let mut files = args.files.iter();
    let mut result = ResultFile::load(files.next().context("no file was named")?)?;
    for file in files {
        let more = ResultFile::load(file)?;
        if result.workload == more.workload {
            let news = more.findings.into_iter().filter(|finding| !result.findings.contains(finding));
            result.findings.extend(news.collect::<Vec<_>>());
        } else {
            result.findings.clear();
        }
        // The layout of an explanation fits explanations only.
        if result.workload == explain::WORKLOAD {
            result.workload = more.workload;
        }
        result.runs.extend(more.runs);
        result.comparisons.extend(more.comparisons);
        result.published.extend(more.published);
    }
    type Render = fn(&ResultFile) -> String;
    let rendered: [(&Option<PathBuf>, Render); 5] = [
        (&args.html, tickpath_lab_report::html),
        (&args.csv, tickpath_lab_report::csv),
        (&args.markdown, tickpath_lab_report::markdown),
        (&args.svg, tickpath_lab_report::svg),
        (&args.json, tickpath_lab_report::json),
    ];
    let mut written = false;
    for (file, render) in rendered {
        if let Some(file) = file {
            write(file, &render(&result))?;
            written = true;
        }
    }
    if !written {
        print_text(&render_terminal(&result, args.all))?;
    }
    Ok(CliOutcome::Success)
}

/// Writes a text to a file, or to standard output if the file is named `-`.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if file == Path::new("-") {
        return print_text(text);
    }
    std::fs::write(file, text)
        .map_err(|e| anyhow::anyhow!("cannot write {}: {e}; name a folder that can be written", file.display()))
}
