//! `tickpath log import`: writes files of market data to a recording.

use std::path::PathBuf;

use clap::Args;
use tickpath_oms_text::moment;
use tickpath_recordings::DataFormat;
use tickpath_relay::RelayError;
use tickpath_relay::import::{ImportedFile, Settings, read_symbol, run as import};

use tickpath_cli_terminal::args::CliUsageError;
use tickpath_cli_terminal::log_arguments::{as_usage_error, parse_target};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::print_text;

/// Formats of the files, for the long help.
const FORMATS: &str = "\
The format of a file is recognised by its content, and by its name where the content does not show it:\n\
csv: columns utc_ns, symbol, then bid, bid_quantity, ask, ask_quantity, or price, quantity, aggressor (buy or sell), \
trade_id of a trade, or side, price, quantity, snapshot, last of a level, as `tickpath log export` writes them\n\
json-lines: lines as in data/synthetic.txt, and as hftbacktest's collector writes them\n\
tardis-quotes (also book_ticker), tardis-trades, tardis-book (incremental_book_L2): CSV of tardis.dev\n\
binance-trades, binance-agg-trades, binance-book-ticker: files of data.binance.vision\n\
npz: events of hftbacktest; dbn: Databento's binary encoding\n\
Texts may be gzip or zip, DBN may be zstd. Files of Binance and npz have the instrument in their names, as in \
BTCUSDT-trades-2024-01-01.zip and btcusdt_20240101.npz.\n\n\
Times are not changed: the receive time becomes the stamp, in nanoseconds since the Unix epoch. A file that is cut off \
is imported as far as it goes; the command then ends with exit code 1. A failed import leaves no recording.";

#[derive(Debug, Clone, Args)]
#[command(after_help = FORMATS)]
pub struct ImportArgs {
    /// The files of market data; messages of several files are merged by their receive times
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Folder of the recording, as file:///FOLDER or a path; it must not have a recording yet
    #[arg(value_name = "FOLDER")]
    pub recording: String,
    /// Number of an instrument, as in an OMS; instruments without this option are numbered from 0 on
    #[arg(long, value_name = "NAME=N", value_parser = read_symbol)]
    pub symbol: Vec<(String, u32)>,
    /// Format of the files, if their contents and names do not show it
    #[arg(long, value_name = "NAME")]
    pub format: Option<DataFormat>,
}

pub fn run(args: &ImportArgs) -> anyhow::Result<CliOutcome> {
    let settings = Settings {
        files: args.files.clone(),
        format: args.format,
        recording: parse_target(&args.recording)?,
        symbols: args.symbol.iter().cloned().collect(),
    };
    let imported = import(&settings).map_err(|error| match error {
        RelayError::HoldsLog(place) => {
            CliUsageError(format!("{place} holds a log already; name another folder")).into()
        }
        error => as_usage_error(error),
    })?;
    let files: String = imported.files.iter().map(file_line).collect();
    let (first, last) = imported.span_utc_ns;
    let symbols: Vec<String> = imported.symbols.iter().map(|(name, number)| format!("{name} is {number}")).collect();
    let (place, messages, symbols) = (settings.recording, imported.messages, symbols.join(", "));
    let span = format!("from {} to {}", moment(first), moment(last));
    print_text(&format!("{files}{place}: {messages} messages, {span}; {symbols}\n"))?;
    let is_whole = imported.files.iter().all(|file| !file.counts.truncated);
    Ok(if is_whole { CliOutcome::Success } else { CliOutcome::Lost })
}

fn file_line(file: &ImportedFile) -> String {
    let ImportedFile { path, format, counts } = file;
    let note = if format.has_receive_times() {
        ""
    } else {
        "; the file has no receive times: the exchange's times stand for them"
    };
    format!("{}: {format}, {counts}{note}\n", path.display())
}
