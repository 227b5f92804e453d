//! Import of market data files into a recording, with the times of the files.
//!
//! The recording's clock counts nanoseconds since the Unix epoch: a stamp is the time at which its message was
//! received.
//!
//! Invariant: a recording is at its place only when it is complete. Until then its files lie in a subfolder, which a
//! failed import removes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use tickpath_clock::Calibration;
use tickpath_log::{Config, LogPath, Writer};
use tickpath_market::SymbolId;
use tickpath_recordings::{DataFormat, ImportCounts, MarketFile, MarketMessage};

use crate::RelayError;
use crate::merged_files::{TakeMerged, merge};
use crate::record::{SEGMENT_BYTES, check_recording_path, open_error};

/// Subfolder of a recording that is not complete.
const DRAFT_FOLDER: &str = "importing";
/// File with which a log is there: it is moved last.
const DATA_FILE: &str = "data";

/// Configuration of an import.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Files to import. Their messages are merged by their receive times.
    pub files: Vec<PathBuf>,
    /// Format of the files; each file's own if none is given.
    pub format: Option<DataFormat>,
    /// Recording to write.
    pub recording: LogPath,
    /// Numbers of instruments, by name. Other instruments are numbered from 0 on in the order of the files.
    pub symbols: BTreeMap<String, u32>,
}

/// Result of an import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The files.
    pub files: Vec<ImportedFile>,
    /// Number of messages in the recording.
    pub messages: u64,
    /// Instruments with their numbers in the recording.
    pub symbols: Vec<(String, u32)>,
    /// Times at which the first and the last message were received, in nanoseconds since the Unix epoch.
    pub span_utc_ns: (u64, u64),
}

/// An imported file.
#[derive(Debug, Clone)]
pub struct ImportedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: DataFormat,
    /// Counts of its rows and messages.
    pub counts: ImportCounts,
}

/// Reads the files, and writes the recording as they are read.
pub fn run(settings: &Settings) -> Result<Imported, RelayError> {
    let Settings { files, format, recording, symbols } = settings;
    check_recording_path(recording, false)?;
    let names = InstrumentNumbers::new(symbols)?;
    let opened = files.iter().map(|path| MarketFile::open(path, *format));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let formats: Vec<DataFormat> = opened.iter().map(MarketFile::format).collect();

    let draft = DraftRecording::new(recording);
    let config = Config { segment_bytes: SEGMENT_BYTES, ..Config::journal(draft.draft.clone()) };
    let writer = Writer::open(&config, &Calibration::nanoseconds()).map_err(open_error)?;
    let mut written = WrittenMessages { writer, names, messages: 0, span_utc_ns: None };
    let counts = merge(opened, &mut written)?;
    written.names.check_all_used()?;
    let WrittenMessages { writer, names, messages, span_utc_ns } = written;
    writer.sync().map_err(|reason| RelayError::Sync(recording.clone(), reason))?;
    drop(writer);
    draft.publish().map_err(|reason| RelayError::Sync(recording.clone(), reason))?;

    let files = files.iter().zip(formats).zip(counts);
    let files = files.map(|((path, format), counts)| ImportedFile { path: path.clone(), format, counts });
    let span_utc_ns = span_utc_ns.unwrap_or_default();
    Ok(Imported { files: files.collect(), messages, symbols: names.assigned, span_utc_ns })
}

/// Parses an instrument and its number, written as `BTCUSDT=1`.
pub fn read_symbol(text: &str) -> Result<(String, u32), String> {
    let read = text.split_once('=').and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
    read.ok_or_else(|| "write NAME=NUMBER, as BTCUSDT=1".to_owned())
}

/// The recording, as far as it is written.
struct WrittenMessages<'a> {
    writer: Writer,
    names: InstrumentNumbers<'a>,
    messages: u64,
    span_utc_ns: Option<(u64, u64)>,
}

impl TakeMerged for WrittenMessages<'_> {
    fn number(&mut self, name: &str) -> SymbolId {
        SymbolId(self.names.number(name))
    }

    fn take(&mut self, utc_ns: u64, message: MarketMessage) -> Result<(), RelayError> {
        let published = self.writer.publish(utc_ns, message.kind().code(), message.as_bytes());
        published.map_err(RelayError::Record)?;
        self.messages += 1;
        let first_ns = self.span_utc_ns.map_or(utc_ns, |(first_ns, _)| first_ns);
        self.span_utc_ns = Some((first_ns, utc_ns));
        Ok(())
    }
}

/// Numbers of instruments: the given ones, and the next free ones.
struct InstrumentNumbers<'a> {
    given: &'a BTreeMap<String, u32>,
    /// Instruments of the files with their numbers, in the order of the files.
    assigned: Vec<(String, u32)>,
    /// The first number that may be free.
    free: u32,
}

impl<'a> InstrumentNumbers<'a> {
    fn new(given: &'a BTreeMap<String, u32>) -> Result<Self, RelayError> {
        let duplicate =
            given.iter().find(|(name, number)| given.iter().any(|(other, its)| other != *name && its == *number));
        match duplicate {
            Some((name, &number)) => Err(RelayError::SameNumber(name.clone(), number)),
            None => Ok(Self { given, assigned: Vec::new(), free: 0 }),
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some((_, known)) = self.assigned.iter().find(|(assigned, _)| assigned == name) {
            return *known;
        }
        let number = self.given.get(name).copied().unwrap_or_else(|| {
            let is_free = |number: &u32| !self.given.values().any(|used| used == number);
            let number = (self.free..).find(is_free).expect("a number is free");
            self.free = number + 1;
            number
        });
        self.assigned.push((name.to_owned(), number));
        number
    }

    fn check_all_used(&self) -> Result<(), RelayError> {
        let names: Vec<&str> = self.assigned.iter().map(|(name, _)| name.as_str()).collect();
        match self.given.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(RelayError::NoSymbol { name: name.clone(), has: names.join(", ") }),
            None => Ok(()),
        }
    }
}

/// Place of a recording until it is complete. Dropped before, it removes what was written.
struct DraftRecording {
    recording: LogPath,
    draft: LogPath,
    /// The recording's folder was there before.
    had_folder: bool,
    is_published: bool,
}

impl DraftRecording {
    fn new(recording: &LogPath) -> Self {
        let draft = LogPath::folder(recording.dir().join(DRAFT_FOLDER));
        Self { had_folder: recording.dir().exists(), recording: recording.clone(), draft, is_published: false }
    }

    /// Moves the files to the recording's folder.
    fn publish(mut self) -> io::Result<()> {
        let (from, to) = (self.draft.dir(), self.recording.dir());
        let entries: io::Result<Vec<_>> = fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect();
        let (data, others): (Vec<_>, Vec<_>) = entries?.into_iter().partition(|name| *name == DATA_FILE);
        for name in others.iter().chain(&data) {
            fs::rename(from.join(name), to.join(name))?;
        }
        fs::remove_dir(from)?;
        File::open(to)?.sync_all()?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for DraftRecording {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        // Files that stay are in the subfolder, which is named for what it is.
        let _ = self.draft.remove();
        if !self.had_folder {
            let _ = fs::remove_dir(self.recording.dir());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tickpath_log::{Next, Reader, ReaderStart, Registration};

    use super::*;

    const NS: u64 = 1_704_067_200_000_000_000;

    fn settings(folder: &Path, files: &[(&str, &str)], symbols: &[(&str, u32)]) -> Settings {
        let paths = files.iter().map(|(name, text)| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        });
        let symbols = symbols.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let recording = LogPath::folder(folder.join("recording"));
        Settings { files: paths.collect(), format: None, recording, symbols }
    }

    /// Returns the times and instruments of a recording's messages.
    fn recorded(recording: &LogPath) -> Vec<(u64, u32)> {
        let mut log = Reader::open(recording, ReaderStart::Oldest, Registration::Unregistered).unwrap();
        let mut found = Vec::new();
        while let Next::Message(message) = log.next().unwrap() {
            let (stamp, read) = (message.stamp, MarketMessage::read(message.kind, message.payload).unwrap());
            found.push((log.calibration().utc_ns_of(stamp), read.symbol().0));
        }
        found
    }

    #[test]
    fn an_import_keeps_the_times_and_the_requested_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let table = "utc_ns,symbol,price,quantity\n1704067200000000001,A,1,2\n1704067200000000009,B,3,4\n";
        let settings = settings(folder.path(), &[("ticks.csv", table)], &[("B", 0)]);
        let imported = run(&settings).unwrap();
        assert_eq!(imported.symbols, [("A".to_owned(), 1), ("B".to_owned(), 0)]);
        assert_eq!((imported.messages, imported.span_utc_ns), (2, (NS + 1, NS + 9)));
        assert_eq!(recorded(&settings.recording), [(NS + 1, 1), (NS + 9, 0)]);
        let again = run(&settings).unwrap_err();
        assert!(again.is_usage() && again.to_string().contains("holds a log already"), "{again}");
    }

    #[test]
    fn a_failed_import_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let table = "utc_ns,symbol,price,quantity\n1704067200000000001,A,1,2\n1704067200000000009,B,3,4\n";
        let unknown = settings(folder.path(), &[("ticks.csv", table)], &[("C", 0)]);
        let error = run(&unknown).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("'C'") && error.to_string().contains("A, B"), "{error}");
        assert!(!unknown.recording.dir().exists());

        let bad = "utc_ns,symbol,price,quantity\nyesterday,A,1,2\n";
        let bad = settings(folder.path(), &[("ticks.csv", table), ("bad.csv", bad)], &[]);
        fs::create_dir(bad.recording.dir()).unwrap();
        let error = run(&bad).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("line 2"), "{error}");
        assert_eq!(fs::read_dir(bad.recording.dir()).unwrap().count(), 0);
    }

    #[test]
    fn files_are_merged_by_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let rows = |symbol: &str, times: &[u64]| {
            let rows = times.iter().map(|ns| format!("{},{symbol},1,1\n", NS + ns));
            "utc_ns,symbol,price,quantity\n".to_owned() + &rows.collect::<String>()
        };
        let many: Vec<u64> = (0..5_000).map(|number| 1_000 + 2 * number).collect();
        let files = [
            ("a.csv", rows("A", &[1, 5, 7, 5_001, 20_000])),
            ("b.csv", rows("B", &many)),
            ("c.csv", rows("C", &[5, 6, 30_000])),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let settings = settings(folder.path(), &files, &[]);
        assert_eq!(run(&settings).unwrap().messages, 5_008);
        let found = recorded(&settings.recording);
        assert!(found.is_sorted_by_key(|(utc_ns, _)| *utc_ns), "{found:?}");
        // Numbers are in the order of the files, and so are messages with one time.
        let begin = [(NS + 1, 0), (NS + 5, 0), (NS + 5, 2), (NS + 6, 2), (NS + 7, 0), (NS + 1_000, 1)];
        assert_eq!(found[..6], begin);
        for (symbol, count) in [(0, 5), (1, 5_000), (2, 3)] {
            assert_eq!(found.iter().filter(|message| message.1 == symbol).count(), count);
        }
    }
}
