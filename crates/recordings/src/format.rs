//! Formats of market data files, and their recognition.

use std::fmt;
use std::str::FromStr;

use crate::cells::Header;
use crate::{binance_vision, tardis, tick_table};

/// Format of a file of market data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// Our own CSV, the form of exports.
    Csv,
    /// Lines `LOCAL_NS JSON` with the messages of the Binance futures streams, the form of hftbacktest's collector.
    JsonLines,
    /// `quotes` or `book_ticker` of tardis.dev.
    TardisQuotes,
    /// `trades` of tardis.dev.
    TardisTrades,
    /// `incremental_book_L2` of tardis.dev.
    TardisBook,
    /// `trades` of data.binance.vision.
    BinanceTrades,
    /// `aggTrades` of data.binance.vision.
    BinanceAggTrades,
    /// `bookTicker` of data.binance.vision.
    BinanceBookTicker,
    /// Events of hftbacktest, in a numpy archive or a plain numpy array.
    Npz,
    /// Databento's binary encoding.
    Dbn,
}

/// End of the sentence about a format that this build leaves out.
#[cfg(not(feature = "formats"))]
pub(crate) const LEFT_OUT: &str = "is not in this build; `cargo build --release`, or `TICKPATH_FORMATS=1 pip install .`, makes one that has \
                        every format";

/// A name that no format has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is no format; use one of {}", .0, DataFormat::names())]
pub struct DataFormatError(String);

impl DataFormat {
    /// All formats.
    pub const ALL: [Self; 10] = [
        Self::Csv,
        Self::JsonLines,
        Self::TardisQuotes,
        Self::TardisTrades,
        Self::TardisBook,
        Self::BinanceTrades,
        Self::BinanceAggTrades,
        Self::BinanceBookTicker,
        Self::Npz,
        Self::Dbn,
    ];

    /// Returns the format's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "json-lines",
            Self::TardisQuotes => "tardis-quotes",
            Self::TardisTrades => "tardis-trades",
            Self::TardisBook => "tardis-book",
            Self::BinanceTrades => "binance-trades",
            Self::BinanceAggTrades => "binance-agg-trades",
            Self::BinanceBookTicker => "binance-book-ticker",
            Self::Npz => "npz",
            Self::Dbn => "dbn",
        }
    }

    /// Returns the names of all formats, for a sentence.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Returns true if the files name the times at which messages were received. In other files the exchange's own time
    /// stands for the receive time.
    pub fn has_receive_times(self) -> bool {
        !matches!(self, Self::BinanceTrades | Self::BinanceAggTrades | Self::BinanceBookTicker)
    }

    /// Returns true if such a file is no text.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Npz | Self::Dbn)
    }

    /// Returns the noun for a row of such a file.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Npz => "event",
            Self::Dbn => "record",
            _ => "line",
        }
    }

    /// Returns the format of a text by its first line, and by its file's name where there is no line of names.
    pub(crate) fn of_text(first_line: &[u8], file_name: &str) -> Option<Self> {
        let digits = first_line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && first_line[digits..].starts_with(b" {") {
            return Some(Self::JsonLines);
        }
        if !has_names(first_line) {
            return Self::of_name(file_name);
        }
        let header = Header::read(first_line);
        if header.has(&tardis::COMMON_COLUMNS) {
            return Self::of_tardis(&header, file_name);
        }
        let known: [(&[&str], Self); 4] = [
            (&tick_table::NEEDED_COLUMNS, Self::Csv),
            (&binance_vision::AGG_TRADE_COLUMNS, Self::BinanceAggTrades),
            (&binance_vision::BOOK_TICKER_COLUMNS, Self::BinanceBookTicker),
            (&binance_vision::TRADE_COLUMNS, Self::BinanceTrades),
        ];
        known.into_iter().find_map(|(columns, format)| header.has(columns).then_some(format))
    }

    fn of_tardis(header: &Header, file_name: &str) -> Option<Self> {
        if header.has(&tardis::QUOTE_COLUMNS) {
            return Some(Self::TardisQuotes);
        }
        if header.has(&tardis::BOOK_COLUMNS) {
            return Some(Self::TardisBook);
        }
        // Liquidations have the columns of trades.
        let is_trades = header.has(&tardis::TRADE_COLUMNS) && !file_name.contains("liquidations");
        is_trades.then_some(Self::TardisTrades)
    }

    /// Returns the format by a name like `BTCUSDT-aggTrades-2024-01-01.csv`.
    fn of_name(file_name: &str) -> Option<Self> {
        let known = [
            ("-trades-", Self::BinanceTrades),
            ("-aggTrades-", Self::BinanceAggTrades),
            ("-bookTicker-", Self::BinanceBookTicker),
        ];
        known.into_iter().find_map(|(part, format)| file_name.contains(part).then_some(format))
    }
}

/// Returns true if a line holds the names of columns: no other line begins with a letter or a quote.
pub(crate) fn has_names(line: &[u8]) -> bool {
    line.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'"')
}

/// Returns the instrument of a file that names it only in its own name, as `BTCUSDT-trades-2024-01-01.zip` or
/// `btcusdt_20240808.npz`.
pub(crate) fn instrument_of(file_name: &str) -> String {
    let parts = ["-trades-", "-aggTrades-", "-bookTicker-"];
    let named = parts.iter().find_map(|part| file_name.split_once(part)).map(|(instrument, _)| instrument);
    let instrument = named.unwrap_or_else(|| file_name.split(['_', '.']).next().unwrap_or(file_name));
    instrument.to_uppercase()
}

impl FromStr for DataFormat {
    type Err = DataFormatError;

    fn from_str(text: &str) -> Result<Self, DataFormatError> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| DataFormatError(text.to_owned()))
    }
}

impl fmt::Display for DataFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
