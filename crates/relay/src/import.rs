//! Import of a market data file into a recording, with the times of the file.
//!
//! The file is one that [`Recording`] reads. The recording's clock counts nanoseconds since the Unix epoch: a stamp is
//! the time at which its tick was received.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tickpath_clock::Calibration;
use tickpath_log::{Config, LogPath, Writer};
use tickpath_market::SymbolId;
use tickpath_market::replay::{MarketTick, RecordedTick, Recording, RecordingCounts};

use crate::RelayError;
use crate::record::{SEGMENT_BYTES, check_recording_path, open_error};

/// Configuration of an import.
#[derive(Debug, Clone)]
pub struct Settings {
    /// File to import.
    pub file: PathBuf,
    /// Recording to write.
    pub recording: LogPath,
    /// Numbers of instruments, by name. Other instruments are numbered from 0 on in the order of the file.
    pub symbols: BTreeMap<String, u32>,
}

/// Result of an import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Counts of the file's lines by kind.
    pub tally: RecordingCounts,
    /// Instruments with their numbers in the recording.
    pub symbols: Vec<(String, u32)>,
    /// Times at which the first and the last tick were received, in nanoseconds since the Unix epoch.
    pub span_utc_ns: (u64, u64),
}

/// Reads the whole file, and then writes the recording.
pub fn run(settings: &Settings) -> Result<Imported, RelayError> {
    let Settings { file, recording: path, symbols } = settings;
    check_recording_path(path, false)?;
    let Recording { events, symbols: names, counts: tally } = Recording::open(file)?;
    let names: Vec<String> = names.iter().map(|name| name.as_str().to_owned()).collect();
    let numbers = numbered(&names, symbols)?;
    let config = Config { segment_bytes: SEGMENT_BYTES, ..Config::journal(path.clone()) };
    let mut writer = Writer::open(&config, &Calibration::nanoseconds()).map_err(open_error)?;
    for RecordedTick { at_ns, mut event } in events.iter().copied() {
        let symbol = match &mut event {
            MarketTick::Top(top) => &mut top.symbol,
            MarketTick::Trade(trade) => &mut trade.symbol,
        };
        *symbol = SymbolId(numbers[symbol.0 as usize]);
        writer.publish(at_ns, event.kind().code(), event.as_bytes()).map_err(RelayError::Record)?;
    }
    writer.sync().map_err(|reason| RelayError::Sync(path.clone(), reason))?;
    let at_ns = |tick: Option<&RecordedTick>| tick.map_or(0, |tick| tick.at_ns);
    let span_utc_ns = (at_ns(events.first()), at_ns(events.last()));
    Ok(Imported { tally, symbols: names.into_iter().zip(numbers).collect(), span_utc_ns })
}

/// Parses an instrument and its number, written as `BTCUSDT=1`.
pub fn read_symbol(text: &str) -> Result<(String, u32), String> {
    let read = text.split_once('=').and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
    read.ok_or_else(|| "write NAME=NUMBER, as BTCUSDT=1".to_owned())
}

/// Returns the number of each instrument: the given one, or the next free one.
fn numbered(names: &[String], given: &BTreeMap<String, u32>) -> Result<Vec<u32>, RelayError> {
    if let Some(name) = given.keys().find(|name| !names.contains(name)) {
        return Err(RelayError::NoSymbol { name: name.clone(), has: names.join(", ") });
    }
    let duplicate =
        given.iter().find(|(name, number)| given.iter().any(|(other, its)| other != *name && its == *number));
    if let Some((name, &number)) = duplicate {
        return Err(RelayError::SameNumber(name.clone(), number));
    }
    let mut free = (0..).filter(|number| !given.values().any(|used| used == number));
    let number_of = |name: &String| given.get(name).copied().unwrap_or_else(|| free.next().expect("a number is free"));
    Ok(names.iter().map(number_of).collect())
}

#[cfg(test)]
mod tests {
    use tickpath_log::{Next, Reader, ReaderStart, Registration};

    use super::*;

    #[test]
    fn an_import_keeps_the_times_and_the_requested_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ticks.csv");
        std::fs::write(&file, "utc_ns,symbol,price,quantity\n1704067200000000001,A,1,2\n1704067200000000009,B,3,4\n")
            .unwrap();
        let path = LogPath::folder(folder.path().join("recording"));
        let settings = Settings { file, recording: path.clone(), symbols: BTreeMap::from([("B".to_owned(), 0)]) };
        let imported = run(&settings).unwrap();
        assert_eq!(imported.symbols, [("A".to_owned(), 1), ("B".to_owned(), 0)]);
        let mut log = Reader::open(&path, ReaderStart::Oldest, Registration::Unregistered).unwrap();
        for utc_ns in [1_704_067_200_000_000_001, 1_704_067_200_000_000_009] {
            let Next::Message(message) = log.next().unwrap() else { panic!("a tick is missing") };
            let stamp = message.stamp;
            assert_eq!(log.calibration().utc_ns_of(stamp), utc_ns);
        }
        let again = run(&settings).unwrap_err();
        assert!(again.is_usage() && again.to_string().contains("holds a log already"), "{again}");
        let wrong = Settings {
            recording: LogPath::folder(folder.path().join("other")),
            symbols: BTreeMap::from([("C".to_owned(), 0)]),
            ..settings
        };
        let error = run(&wrong).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("'C'") && error.to_string().contains("A, B"), "{error}");
        assert!(!wrong.recording.exists());
    }
}
