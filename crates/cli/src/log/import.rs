//! `tickpath log import`: writes a file of market data to a recording.

use std::path::PathBuf;

use clap::Args;
use tickpath_oms_text::moment;
use tickpath_relay::RelayError;
use tickpath_relay::import::{Settings, read_symbol, run as import};

use super::log_arguments::{as_usage_error, parse_target};
use crate::args::CliUsageError;
use crate::print::print_text;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "The file is plain or gzip: lines as in data/synthetic.txt, or CSV with the columns utc_ns, symbol, \
                  then bid, bid_quantity, ask, ask_quantity, or price, quantity, aggressor (buy or sell), trade_id of \
                  a trade. Times are not changed: utc_ns becomes the stamp, in nanoseconds since the Unix epoch."
)]
pub struct ImportArgs {
    /// The file of market data
    pub file: PathBuf,
    /// Folder of the recording, as file:///FOLDER or a path; it must not have a recording yet
    #[arg(value_name = "FOLDER")]
    pub recording: String,
    /// Number of an instrument, as in an OMS; instruments without this option are numbered from 0 on
    #[arg(long, value_name = "NAME=N", value_parser = read_symbol)]
    pub symbol: Vec<(String, u32)>,
}

pub fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let (file, place, symbols) =
        (args.file.clone(), parse_target(&args.recording)?, args.symbol.iter().cloned().collect());
    let settings = Settings { file, recording: place, symbols };
    let imported = import(&settings).map_err(|error| match error {
        RelayError::HoldsLog(place) => {
            CliUsageError(format!("{place} holds a log already; name another folder")).into()
        }
        error => as_usage_error(error),
    })?;
    let (first, last) = imported.span_utc_ns;
    let symbols: Vec<String> = imported.symbols.iter().map(|(name, number)| format!("{name} is {number}")).collect();
    let (place, tally, symbols) = (settings.recording, imported.tally, symbols.join(", "));
    print_text(&format!("{place}: {tally}; from {} to {}; {symbols}\n", moment(first), moment(last)))
}
