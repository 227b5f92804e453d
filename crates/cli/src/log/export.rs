//! `tickpath log export`: writes the market data of a recording to tables.

use std::path::PathBuf;

use clap::Args;
use tickpath_recordings::{ExportedFile, TableKind};
use tickpath_relay::export::{Settings, run as export};

use tickpath_cli_terminal::log_arguments::{as_usage_error, parse_existing};
use tickpath_cli_terminal::print::print_text;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "CSV and Parquet have a table a kind of message. Without --kind each kind that the recording has goes \
                  to a file of its own, and FILE gets the kind before its ending: ticks.csv becomes ticks.quotes.csv, \
                  ticks.trades.csv and ticks.book.csv. An npz file has the events of one instrument, of all kinds, as \
                  hftbacktest reads them.\n\n\
                  utc_ns is the stamp, nanoseconds since the Unix epoch; symbol is the instrument's number, because a \
                  recording has no names. `tickpath log import` reads CSV and npz files back."
)]
pub struct ExportArgs {
    /// Folder of the recording, or of any log with market data, as file:///FOLDER or a path; or shm://NAME
    #[arg(value_name = "FOLDER")]
    pub recording: String,
    /// File to write, which must not exist; its ending names the format: .csv, .csv.gz, .parquet or .npz
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Export messages of this kind only, and leave the name of FILE as it is
    #[arg(long, value_name = "quotes|trades|book")]
    pub kind: Option<TableKind>,
    /// Export messages of the instrument with this number only
    #[arg(long, value_name = "N")]
    pub symbol: Option<u32>,
}

pub fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let settings = Settings {
        recording: parse_existing(&args.recording)?,
        target: args.to.clone(),
        kind: args.kind,
        symbol: args.symbol,
    };
    let exported = export(&settings).map_err(as_usage_error)?;
    let mut text: String = exported.files.iter().map(file_line).collect();
    if exported.others > 0 {
        text += &format!("{} messages that are no market data were left out\n", exported.others);
    }
    if exported.gaps > 0 {
        text += &format!("{} gaps in which messages were lost: see tickpath log cat\n", exported.gaps);
    }
    print_text(&text)
}

fn file_line(file: &ExportedFile) -> String {
    let ExportedFile { path, messages, inexact, left_out } = file;
    let count = |count: u64, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
    let rounded = count(*inexact, "values rounded to floating point numbers");
    let left_out = count(*left_out, "without a row, because they change no level");
    format!("{}: {messages} messages{rounded}{left_out}\n", path.display())
}
