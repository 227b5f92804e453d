//! Kinds of exported tables, their files' formats, and the errors of an export.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::message::MarketMessage;

/// Kind of the messages in an exported table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Best bids and offers.
    Quotes = 0,
    /// Trades.
    Trades = 1,
    /// Levels of order books.
    Book = 2,
}

/// A name that no kind has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no kind of table; use quotes, trades or book")]
pub struct TableKindError(String);

impl TableKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Quotes, Self::Trades, Self::Book];

    /// Returns the kind's name on the command line and in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quotes => "quotes",
            Self::Trades => "trades",
            Self::Book => "book",
        }
    }

    /// Returns the kind of table that holds a message.
    pub fn of(message: &MarketMessage) -> Self {
        match message {
            MarketMessage::Top(_) => Self::Quotes,
            MarketMessage::Trade(_) => Self::Trades,
            MarketMessage::Level(_) => Self::Book,
        }
    }
}

impl FromStr for TableKind {
    type Err = TableKindError;

    fn from_str(text: &str) -> Result<Self, TableKindError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| TableKindError(text.to_owned()))
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Format of an exported file, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Csv,
    CsvGzip,
    Parquet,
    Npz,
}

impl TableFormat {
    /// Returns the format of a file, and its name without the ending.
    pub fn of(path: &Path) -> Result<(Self, &str), ExportError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let formats = [Self::Csv, Self::CsvGzip, Self::Parquet, Self::Npz];
        let found = formats.into_iter().find_map(|format| Some((format, name.strip_suffix(format.ending())?)));
        found.filter(|(_, stem)| !stem.is_empty()).ok_or_else(|| ExportError::Ending(path.to_owned()))
    }

    /// Returns the ending of such a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => ".csv",
            Self::CsvGzip => ".csv.gz",
            Self::Parquet => ".parquet",
            Self::Npz => ".npz",
        }
    }
}

/// Errors of an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ending of the file's name is of no format.
    #[error("{} has no ending of a table; name it FILE.csv, FILE.csv.gz, FILE.parquet or FILE.npz", .0.display())]
    Ending(PathBuf),
    /// This build leaves the format out.
    #[cfg(not(feature = "formats"))]
    #[error("{} is Parquet, which {}", .0.display(), crate::format::LEFT_OUT)]
    LeftOut(PathBuf),
    /// The file exists.
    #[error("{} exists already; name another file, or remove it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written ({}); name a file in a folder with room that you may write to", .0.display(), .1)]
    Write(PathBuf, #[source] io::Error),
    /// The messages of a file with one instrument are of several.
    #[error("an npz file has one instrument, but the messages are of {0} and {1}; export one of them: --symbol {0}")]
    SeveralInstruments(u32, u32),
}

impl ExportError {
    /// Returns true if the call itself was wrong, and nothing has failed.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Write(..))
    }
}

/// Writer of one table.
pub(crate) trait TableSink {
    /// Appends the row of a message.
    fn write(&mut self, utc_ns: u64, message: &MarketMessage) -> Result<(), SinkFault>;

    /// Writes all that is left, so that the file is complete; returns what was lost.
    fn finish(self: Box<Self>) -> Result<SinkLoss, SinkFault>;
}

/// Reason why a table cannot be written any further.
pub(crate) enum SinkFault {
    Io(io::Error),
    /// Another instrument than that of the table.
    Instruments(u32, u32),
}

impl From<io::Error> for SinkFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Counts of values and messages that a format cannot hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SinkLoss {
    /// Prices and quantities that were rounded.
    pub inexact: u64,
    /// Messages without a row.
    pub left_out: u64,
}
