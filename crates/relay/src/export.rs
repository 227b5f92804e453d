//! Export of a recording's market data to tables.
//!
//! Any log whose messages are of our kinds can be exported; of a topic that overwrites, what it holds now.

use std::path::PathBuf;

use tickpath_bus::Gap;
use tickpath_log::{LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_recordings::{ExportedFile, Exporter, MarketMessage, TableKind};

use crate::RelayError;

/// Configuration of an export.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Log to read.
    pub recording: LogPath,
    /// File to write; its ending names the format.
    pub target: PathBuf,
    /// Kind of the messages to export; each kind in a file of its own if none is given.
    pub kind: Option<TableKind>,
    /// Number of the instrument to export; all if none is given.
    pub symbol: Option<u32>,
}

/// Result of an export.
#[derive(Debug, Clone, Default)]
pub struct Exported {
    /// The files.
    pub files: Vec<ExportedFile>,
    /// Messages that are no market data, such as the states of a feed.
    pub others: u64,
    /// Losses in the log, each of one message or more.
    pub gaps: u64,
}

/// Reads the log to its end, and writes the files as it is read.
pub fn run(settings: &Settings) -> Result<Exported, RelayError> {
    let Settings { recording, target, kind, symbol } = settings;
    let mut exporter = Exporter::new(target, *kind)?;
    let mut log = Reader::open(recording, ReaderStart::Oldest, Registration::Unregistered)?;
    let mut exported = Exported::default();
    loop {
        let (stamp, read) = match log.next()? {
            Next::Message(message) if Gap::decode(message.kind, message.payload).is_some() => {
                exported.gaps += 1;
                continue;
            }
            Next::Message(message) => (message.stamp, MarketMessage::read(message.kind, message.payload)),
            Next::Gap(_) => {
                exported.gaps += 1;
                continue;
            }
            Next::Empty => break,
        };
        match read {
            Some(message) if symbol.is_none_or(|symbol| message.symbol().0 == symbol) && exporter.takes(&message) => {
                exporter.write(log.calibration().utc_ns_of(stamp), &message)?;
            }
            Some(_) => {}
            None => exported.others += 1,
        }
    }
    log.check_end()?;
    exported.files = exporter.finish()?;
    if exported.files.is_empty() {
        let kind = kind.map_or("market data", TableKind::name);
        let whose = symbol.map(|symbol| format!(" of instrument {symbol}")).unwrap_or_default();
        return Err(RelayError::NothingToExport(recording.clone(), format!("{kind}{whose}")));
    }
    Ok(exported)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tickpath_clock::Calibration;
    use tickpath_log::{Config, Writer};
    use tickpath_market::{FeedStatus, Kind, Price, SymbolId, TopOfBook, Trade};
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn the_market_data_of_a_log_is_exported_and_the_rest_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let recording = LogPath::folder(folder.path().join("recording"));
        let mut writer = Writer::open(&Config::journal(recording.clone()), &Calibration::nanoseconds()).unwrap();
        let top = TopOfBook { bid: Price(1), symbol: SymbolId(3), ..TopOfBook::default() };
        let trade = Trade { price: Price(150_000_000), symbol: SymbolId(4), ..Trade::default() };
        writer.publish(10, Kind::TopOfBook.code(), top.as_bytes()).unwrap();
        writer.publish(20, Kind::FeedStatus.code(), FeedStatus::default().as_bytes()).unwrap();
        writer.publish(30, Kind::Trade.code(), trade.as_bytes()).unwrap();
        writer.sync().unwrap();

        let settings = |name: &str, kind, symbol| {
            let target = folder.path().join(name);
            Settings { recording: recording.clone(), target, kind, symbol }
        };
        let exported = run(&settings("all.csv", None, None)).unwrap();
        let names: Vec<_> = exported.files.iter().map(|file| file.path.file_name().unwrap().to_owned()).collect();
        assert_eq!((names[0].to_str(), names[1].to_str()), (Some("all.quotes.csv"), Some("all.trades.csv")));
        assert_eq!((exported.files.len(), exported.others, exported.gaps), (2, 1, 0));
        let table = fs::read_to_string(&exported.files[1].path).unwrap();
        assert_eq!(table, "utc_ns,symbol,price,quantity,aggressor,trade_id,event_ns\n30,4,1.5,0,,0,0\n");

        let exported = run(&settings("one.csv", Some(TableKind::Quotes), Some(3))).unwrap();
        assert_eq!((exported.files.len(), exported.files[0].messages), (1, 1));
        let nothing = run(&settings("none.csv", Some(TableKind::Trades), Some(3))).unwrap_err();
        assert!(nothing.to_string().contains("no trades of instrument 3"), "{nothing}");
        let two = run(&settings("two.npz", None, None)).unwrap_err();
        assert!(two.is_usage() && two.to_string().contains("--symbol 3"), "{two}");
        let again = run(&settings("one.csv", Some(TableKind::Quotes), None)).unwrap_err();
        assert!(again.is_usage() && again.to_string().contains("exists already"), "{again}");
        // Neither a failed export nor an ended one leaves a file that is not complete.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
