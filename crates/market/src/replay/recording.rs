//! A recording as a file: parsing of lines into ticks, and writing of ticks as lines.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::csv::CsvColumns;
use super::json_line::{self, LineContent};
use super::tick::MarketTick;
use crate::{Symbol, SymbolId};

/// Max length of a line without its end. Longer lines are bad lines, so that memory stays bounded.
const LINE_LIMIT_BYTES: u64 = 16 << 20;
/// Max bad lines that are listed; all are counted.
const MAX_LISTED_BAD_LINES: usize = 10;
/// Max length of a bad line's reason: a parser may quote the line.
const REASON_LIMIT_CHARS: usize = 160;
/// Every gzip stream starts with these bytes, and no receive time does.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A parsed recording, ready to be replayed.
///
/// ```
/// use tickpath_market::replay::{MarketTick, Recording, ReplaySpeed};
///
/// let recording = Recording::synthetic(1, 1_000);
/// for (offset_ns, event) in recording.schedule(ReplaySpeed::Fixed { per_second: 500.0 }, false)? {
///     assert_eq!(offset_ns % 2_000_000, 0);
///     if let MarketTick::Top(top) = event {
///         assert!(top.bid < top.ask);
///     }
/// }
/// # Ok::<(), tickpath_market::replay::ReplaySpeedError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Ticks in the order of the file; their times never decrease.
    pub events: Vec<RecordedTick>,
    /// Instruments in the order of their first tick; a [`crate::SymbolId`] in a tick is an index into this list.
    pub symbols: Vec<Symbol>,
    /// Counts of the lines that were read and left out.
    pub counts: RecordingCounts,
}

/// A tick and its receive time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTick {
    /// Local receive time, nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// The tick.
    pub event: MarketTick,
}

/// Counts of a recording's lines by kind. Every line is counted in exactly one of tops, trades, skipped and bad.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingCounts {
    /// All lines.
    pub lines: u64,
    /// `bookTicker` messages.
    pub tops: u64,
    /// `trade` messages.
    pub trades: u64,
    /// Depth updates and depth snapshots.
    pub skipped_depth: u64,
    /// Messages of other streams.
    pub skipped_other: u64,
    /// Lines that are not a message.
    pub bad: u64,
    /// The first ten bad lines: the line number, from 1, and the reason.
    pub bad_lines: Vec<(u64, String)>,
    /// Ticks with a receive time before that of an earlier tick; they keep their place and get the earlier tick's time.
    pub out_of_order: u64,
    /// The input ended before its gzip stream did; the part before is kept.
    pub truncated: bool,
}

/// Errors of a recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be opened.
    #[error("cannot open {}: {}; give the path of a recording that this user may read", .0.display(), .1)]
    Open(PathBuf, #[source] io::Error),
    /// Reading failed midway.
    #[error("cannot read {name} at line {line}: {source}; if it is a gzip file, test it with `gzip -t`, fetch it anew")]
    Read {
        /// The file, or `the input`.
        name: String,
        /// The unreadable line, from 1.
        line: u64,
        /// The error of the operating system or the decompressor.
        source: io::Error,
    },
    /// The recording has no line that can be replayed.
    #[error(
        "{name} has no bookTicker or trade line ({tally}); record one of these streams as `LOCAL_NS JSON` lines, or \
         write CSV with the columns utc_ns, symbol, bid, bid_quantity, ask, ask_quantity, or price and quantity of trades"
    )]
    NoTick {
        /// The file, or `the input`.
        name: String,
        /// Counts of the lines found instead.
        tally: RecordingCounts,
    },
}

impl fmt::Display for RecordingCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, tops, trades, skipped_depth, skipped_other, bad, .. } = self;
        write!(f, "{lines} lines: {tops} tops of book, {trades} trades, ")?;
        write!(f, "{skipped_depth} depth and {skipped_other} other messages skipped, {bad} bad")?;
        for (number, why) in &self.bad_lines {
            write!(f, "; line {number}: {why}")?;
        }
        if self.out_of_order > 0 {
            write!(f, "; {} ticks with a time that went back", self.out_of_order)?;
        }
        if self.truncated {
            write!(f, "; cut off before the end of its gzip stream")?;
        }
        Ok(())
    }
}

impl Recording {
    /// Reads a recording from a file, plain or gzip.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = File::open(path).map_err(|source| RecordingError::Open(path.to_owned(), source))?;
        read(file, &path.display().to_string())
    }

    /// Reads a recording, plain or gzip, to the end of the input.
    pub fn read(input: impl Read) -> Result<Self, RecordingError> {
        read(input, "the input")
    }

    /// Writes the ticks, uncompressed, in the form that [`Recording::read`] reads.
    ///
    /// Exchange times are written in milliseconds, the exchange's own unit; finer digits are cut off.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        for RecordedTick { at_ns, event } in &self.events {
            let id = match event {
                MarketTick::Top(top) => top.symbol,
                MarketTick::Trade(trade) => trade.symbol,
            };
            json_line::write(&mut out, *at_ns, self.name_of(id)?, event)?;
        }
        out.flush()
    }

    fn name_of(&self, id: SymbolId) -> io::Result<&str> {
        let nameless = || format!("a tick has the symbol id {id}, but `symbols` has no name at this index; add it");
        let name = self.symbols.get(id.0 as usize).map(Symbol::as_str);
        name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, nameless()))
    }
}

fn read(mut input: impl Read, name: &str) -> Result<Recording, RecordingError> {
    let failed = |line, source| RecordingError::Read { name: name.to_owned(), line, source };
    let mut head = Vec::new();
    input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head).map_err(|source| failed(1, source))?;
    let compressed = head == GZIP_MAGIC;
    let whole = io::Cursor::new(head).chain(input);

    let mut collector = RecordingBuilder::default();
    let collected = if compressed {
        collector.collect(BufReader::new(MultiGzDecoder::new(whole)))
    } else {
        collector.collect(BufReader::new(whole))
    };
    let Recording { events, counts: tally, .. } = &collector.recording;
    collected.map_err(|source| failed(tally.lines + 1, source))?;
    if events.is_empty() {
        return Err(RecordingError::NoTick { name: name.to_owned(), tally: tally.clone() });
    }
    Ok(collector.recording)
}

#[derive(Default)]
struct RecordingBuilder {
    recording: Recording,
    ids: HashMap<Symbol, SymbolId>,
}

impl RecordingBuilder {
    fn collect(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let (mut line, mut columns) = (Vec::new(), None);
        loop {
            let read = next_line(&mut input, &mut line);
            // A file from Windows may begin with a byte order mark.
            let line = match self.recording.counts.lines {
                0 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
                _ => &line,
            };
            let is_cut = match read {
                Ok(LineRead::End) => return Ok(()),
                Ok(LineRead::TooLong) => {
                    self.add(Err(format!("longer than {} MiB", LINE_LIMIT_BYTES >> 20)));
                    continue;
                }
                Ok(LineRead::Whole) => false,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
                Err(error) => return Err(error),
            };
            if !is_cut || !line.is_empty() {
                // A line of the JSON form begins with a time.
                let names_columns = line.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'"');
                match &columns {
                    None if self.recording.counts.lines == 0 && names_columns => {
                        columns = CsvColumns::read(line).map_err(|why| self.add(Err(why))).ok();
                        self.recording.counts.lines = 1;
                    }
                    None => self.add(json_line::read_line(line)),
                    Some(columns) => self.add(columns.parse(line)),
                }
            }
            if is_cut {
                self.recording.counts.truncated = true;
                return Ok(());
            }
        }
    }

    fn add(&mut self, content: Result<LineContent, String>) {
        let tally = &mut self.recording.counts;
        tally.lines += 1;
        match content {
            Ok(LineContent::Tick(at_ns, symbol, event)) => self.add_tick(at_ns, symbol, event),
            Ok(LineContent::Depth) => tally.skipped_depth += 1,
            Ok(LineContent::Other) => tally.skipped_other += 1,
            Err(why) => {
                tally.bad += 1;
                if tally.bad_lines.len() < MAX_LISTED_BAD_LINES {
                    tally.bad_lines.push((tally.lines, why.chars().take(REASON_LIMIT_CHARS).collect()));
                }
            }
        }
    }

    fn add_tick(&mut self, at_ns: u64, symbol: Symbol, mut event: MarketTick) {
        let Recording { events, symbols, counts: tally } = &mut self.recording;
        let id = *self.ids.entry(symbol).or_insert_with(|| {
            symbols.push(symbol);
            SymbolId(symbols.len() as u32 - 1)
        });
        match &mut event {
            MarketTick::Top(top) => {
                top.symbol = id;
                tally.tops += 1;
            }
            MarketTick::Trade(trade) => {
                trade.symbol = id;
                tally.trades += 1;
            }
        }
        let latest_ns = events.last().map_or(0, |recorded| recorded.at_ns);
        tally.out_of_order += u64::from(at_ns < latest_ns);
        events.push(RecordedTick { at_ns: at_ns.max(latest_ns), event });
    }
}

enum LineRead {
    Whole,
    TooLong,
    End,
}

/// Reads the next line, without its end. On an error `line` holds the bytes before it.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    input.by_ref().take(LINE_LIMIT_BYTES + 1).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(LineRead::End);
    }
    if line.ends_with(b"\n") {
        line.pop();
    } else if line.len() as u64 > LINE_LIMIT_BYTES {
        input.skip_until(b'\n')?;
        return Ok(LineRead::TooLong);
    }
    Ok(LineRead::Whole)
}
