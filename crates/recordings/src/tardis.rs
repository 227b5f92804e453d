//! CSV of tardis.dev: times in microseconds, a row per quote, trade or level.
//!
//! | data type | columns behind `exchange`, `symbol`, `timestamp`, `local_timestamp` |
//! |---|---|
//! | `quotes`, `book_ticker` | `ask_amount`, `ask_price`, `bid_price`, `bid_amount`; a missing side is empty |
//! | `trades` | `id`, `side` (of the taker: `buy`, `sell` or `unknown`), `price`, `amount` |
//! | `incremental_book_L2` | `is_snapshot`, `side` (`bid` or `ask`), `price`, `amount`; 0 removes a level |
//!
//! Rows of a book with the same times are one message of the exchange. A snapshot that follows an update replaces the
//! book, and its first level is flagged for that.

use tickpath_market::{BookLevel, Side, TopOfBook, Trade};

use crate::cells::{Header, Row, TableRows};
use crate::decimal::{digits, price, quantity, unsigned};
use crate::intake::Intake;
use crate::message::MarketMessage;

/// Columns of each data type.
pub(crate) const COMMON_COLUMNS: [&str; 3] = ["symbol", "timestamp", "local_timestamp"];
pub(crate) const QUOTE_COLUMNS: [&str; 4] = ["ask_amount", "ask_price", "bid_price", "bid_amount"];
pub(crate) const TRADE_COLUMNS: [&str; 4] = ["id", "side", "price", "amount"];
pub(crate) const BOOK_COLUMNS: [&str; 4] = ["is_snapshot", "side", "price", "amount"];

const NS_PER_US: u64 = 1_000;

/// Places of the columns that each data type has.
struct CommonCells {
    symbol: usize,
    timestamp: usize,
    local_timestamp: usize,
}

impl CommonCells {
    fn find(header: &Header) -> Result<Self, String> {
        let [symbol, timestamp, local_timestamp] = COMMON_COLUMNS.map(|name| header.need(name));
        Ok(Self { symbol: symbol?, timestamp: timestamp?, local_timestamp: local_timestamp? })
    }

    /// Returns the receive time and the exchange's own time, in nanoseconds.
    fn times(&self, row: &Row<'_>) -> Result<(u64, u64), String> {
        Ok((nanoseconds(row.cell(self.local_timestamp)?)?, nanoseconds(row.cell(self.timestamp)?)?))
    }
}

/// Reader of `quotes` and `book_ticker`.
pub(crate) struct TardisQuotes {
    common: CommonCells,
    /// Columns in the order of [`QUOTE_COLUMNS`].
    columns: [usize; 4],
}

impl TardisQuotes {
    pub fn find(header: &Header) -> Result<Self, String> {
        Ok(Self { common: CommonCells::find(header)?, columns: find_all(header, QUOTE_COLUMNS)? })
    }
}

impl TableRows for TardisQuotes {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let [ask_amount, ask_price, bid_price, bid_amount] = self.columns;
        let (ask, bid) = (row.cell(ask_price)?, row.cell(bid_price)?);
        if ask.is_empty() || bid.is_empty() {
            intake.counts.skip("one-sided quotes");
            return Ok(());
        }
        let (utc_ns, event_ns) = self.common.times(row)?;
        let top = TopOfBook {
            bid: price(bid)?,
            bid_quantity: quantity(row.cell(bid_amount)?)?,
            ask: price(ask)?,
            ask_quantity: quantity(row.cell(ask_amount)?)?,
            event_ns,
            ..TopOfBook::default()
        };
        intake.add_named(utc_ns, row.cell(self.common.symbol)?, MarketMessage::Top(top))
    }
}

/// Reader of `trades`.
pub(crate) struct TardisTrades {
    common: CommonCells,
    /// Columns in the order of [`TRADE_COLUMNS`].
    columns: [usize; 4],
}

impl TardisTrades {
    pub fn find(header: &Header) -> Result<Self, String> {
        Ok(Self { common: CommonCells::find(header)?, columns: find_all(header, TRADE_COLUMNS)? })
    }
}

impl TableRows for TardisTrades {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let [id, side, trade_price, amount] = self.columns;
        let (utc_ns, event_ns) = self.common.times(row)?;
        let sides = [("buy", Side::Buy.code()), ("sell", Side::Sell.code()), ("unknown", 0)];
        let trade = Trade {
            price: price(row.cell(trade_price)?)?,
            quantity: quantity(row.cell(amount)?)?,
            // Some exchanges name a trade by a text.
            trade_id: digits(row.cell(id)?).unwrap_or(0),
            event_ns,
            aggressor: row.choose(side, &sides)?,
            ..Trade::default()
        };
        intake.add_named(utc_ns, row.cell(self.common.symbol)?, MarketMessage::Trade(trade))
    }
}

/// Reader of `incremental_book_L2`.
pub(crate) struct TardisBook {
    common: CommonCells,
    /// Columns in the order of [`BOOK_COLUMNS`].
    columns: [usize; 4],
    /// The row before, which is the last of its message or not.
    pending: Option<PendingLevel>,
    /// For each instrument, whether its last row belonged to a snapshot.
    in_snapshot: Vec<bool>,
}

struct PendingLevel {
    utc_ns: u64,
    level: BookLevel,
    is_snapshot: bool,
}

impl TardisBook {
    pub fn find(header: &Header) -> Result<Self, String> {
        let (common, columns) = (CommonCells::find(header)?, find_all(header, BOOK_COLUMNS)?);
        Ok(Self { common, columns, pending: None, in_snapshot: Vec::new() })
    }

    /// Passes on the row before, with its flag.
    fn pass_on(&mut self, is_last: bool, intake: &mut Intake<'_>) {
        if let Some(PendingLevel { utc_ns, mut level, .. }) = self.pending.take() {
            level.flags |= if is_last { BookLevel::LAST } else { 0 };
            intake.add(utc_ns, MarketMessage::Level(level));
        }
    }
}

impl TableRows for TardisBook {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let [is_snapshot, side, level_price, amount] = self.columns;
        let (utc_ns, event_ns) = self.common.times(row)?;
        let is_snapshot = row.choose(is_snapshot, &[("false", false), ("true", true)])?;
        let sides = [("bid", Side::Buy.code()), ("ask", Side::Sell.code())];
        let (side, price) = (row.choose(side, &sides)?, price(row.cell(level_price)?)?);
        let quantity = quantity(row.cell(amount)?)?;
        let symbol = intake.symbol(row.cell(self.common.symbol)?)?;

        let continues = self.pending.as_ref().is_some_and(|before| {
            let BookLevel { symbol: same_symbol, event_ns: same_event_ns, .. } = before.level;
            (same_symbol, before.utc_ns, same_event_ns, before.is_snapshot) == (symbol, utc_ns, event_ns, is_snapshot)
        });
        self.pass_on(!continues, intake);
        let place = symbol.0 as usize;
        if place >= self.in_snapshot.len() {
            self.in_snapshot.resize(place + 1, false);
        }
        let was_snapshot = std::mem::replace(&mut self.in_snapshot[place], is_snapshot);
        let flags = if is_snapshot && !was_snapshot { BookLevel::SNAPSHOT } else { 0 };
        let level = BookLevel { price, quantity, event_ns, symbol, side, flags, ..BookLevel::default() };
        self.pending = Some(PendingLevel { utc_ns, level, is_snapshot });
        Ok(())
    }

    /// A message that may have lost rows stays without its last level's flag: the book is incomplete after it.
    fn finish(&mut self, intake: &mut Intake<'_>, is_cut: bool) {
        self.pass_on(!is_cut, intake);
    }
}

fn find_all(header: &Header, names: [&str; 4]) -> Result<[usize; 4], String> {
    let [first, second, third, fourth] = names.map(|name| header.need(name));
    Ok([first?, second?, third?, fourth?])
}

fn nanoseconds(cell: &[u8]) -> Result<u64, String> {
    let us = unsigned(cell)?;
    us.checked_mul(NS_PER_US).ok_or_else(|| format!("{us} is no time in microseconds"))
}
