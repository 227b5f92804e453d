//! Our own CSV: columns named by the first line, in any order; other columns are ignored. Exports are of this form.
//!
//! | column | of each row |
//! |---|---|
//! | `utc_ns` | the receive time, nanoseconds since the Unix epoch |
//! | `symbol` | the instrument |
//! | `bid`, `bid_quantity`, `ask`, `ask_quantity` | a best bid and offer; empty in other rows |
//! | `price`, `quantity` | a trade or a level; empty in a best bid and offer |
//! | `aggressor`, `trade_id` | of a trade, if known: the taker's side, `buy` or `sell`; the trade's number |
//! | `side` | makes the row a level: `bid` or `ask`; empty if it changes no level |
//! | `snapshot`, `last` | flags of a level, 1 or 0: the book is emptied before it, is complete after it |
//! | `sequence` | of a level, if known: the exchange's sequence number |
//! | `event_ns`, `wire_age_ns` | the exchange's own time, and the age of the packet, if known |

use tickpath_market::{BookLevel, Price, Quantity, Side, TopOfBook, Trade};

use crate::cells::{Header, Row, TableRows};
use crate::decimal::{price, quantity, quoted, unsigned};
use crate::intake::Intake;
use crate::message::MarketMessage;

/// Columns of every table.
pub(crate) const NEEDED_COLUMNS: [&str; 2] = ["utc_ns", "symbol"];

/// Places of the columns.
pub(crate) struct TickTable {
    utc_ns: usize,
    symbol: usize,
    bid: Option<usize>,
    bid_quantity: Option<usize>,
    ask: Option<usize>,
    ask_quantity: Option<usize>,
    price: Option<usize>,
    quantity: Option<usize>,
    aggressor: Option<usize>,
    trade_id: Option<usize>,
    level: Option<LevelCells>,
    event_ns: Option<usize>,
    wire_age_ns: Option<usize>,
}

/// Places of the columns that only levels have.
struct LevelCells {
    side: usize,
    snapshot: Option<usize>,
    last: Option<usize>,
    sequence: Option<usize>,
}

impl TickTable {
    pub fn find(header: &Header) -> Result<Self, String> {
        let find = |name| header.find(name);
        let level = find("side").map(|side| {
            let (snapshot, last, sequence) = (find("snapshot"), find("last"), find("sequence"));
            LevelCells { side, snapshot, last, sequence }
        });
        Ok(Self {
            utc_ns: header.need("utc_ns")?,
            symbol: header.need("symbol")?,
            bid: find("bid"),
            bid_quantity: find("bid_quantity"),
            ask: find("ask"),
            ask_quantity: find("ask_quantity"),
            price: find("price"),
            quantity: find("quantity"),
            aggressor: find("aggressor"),
            trade_id: find("trade_id"),
            level,
            event_ns: find("event_ns"),
            wire_age_ns: find("wire_age_ns"),
        })
    }

    fn top(&self, row: &Row<'_>) -> Result<TopOfBook, String> {
        Ok(TopOfBook {
            bid: price(needed(row, self.bid, "bid")?)?,
            bid_quantity: quantity(needed(row, self.bid_quantity, "bid_quantity")?)?,
            ask: price(needed(row, self.ask, "ask")?)?,
            ask_quantity: quantity(needed(row, self.ask_quantity, "ask_quantity")?)?,
            event_ns: unsigned_or_zero(row, self.event_ns)?,
            wire_age_ns: self.wire_age_ns(row)?,
            ..TopOfBook::default()
        })
    }

    fn trade(&self, row: &Row<'_>, trade_id: u64) -> Result<Trade, String> {
        let aggressor = match row.optional(self.aggressor) {
            b"" => 0,
            b"buy" => Side::Buy.code(),
            b"sell" => Side::Sell.code(),
            other => return Err(format!("'{}' is no aggressor: write buy or sell, or nothing", quoted(other))),
        };
        Ok(Trade {
            price: price(needed(row, self.price, "price")?)?,
            quantity: quantity(needed(row, self.quantity, "quantity")?)?,
            trade_id,
            event_ns: unsigned_or_zero(row, self.event_ns)?,
            aggressor,
            ..Trade::default()
        })
    }

    fn level(&self, row: &Row<'_>, cells: &LevelCells) -> Result<BookLevel, String> {
        let side = match row.optional(Some(cells.side)) {
            b"" => 0,
            b"bid" => Side::Buy.code(),
            b"ask" => Side::Sell.code(),
            other => return Err(format!("'{}' is no side of a book: write bid or ask", quoted(other))),
        };
        let (price, quantity) = match side {
            0 => (Price::ZERO, Quantity::ZERO),
            _ => (price(needed(row, self.price, "price")?)?, quantity(needed(row, self.quantity, "quantity")?)?),
        };
        let flag = |column, flag| match row.optional(column) {
            b"1" => Ok(flag),
            b"" | b"0" => Ok(0),
            other => Err(format!("'{}' is no flag: write 1 or 0", quoted(other))),
        };
        Ok(BookLevel {
            price,
            quantity,
            event_ns: unsigned_or_zero(row, self.event_ns)?,
            sequence: unsigned_or_zero(row, cells.sequence)?,
            wire_age_ns: self.wire_age_ns(row)?,
            side,
            flags: flag(cells.snapshot, BookLevel::SNAPSHOT)? | flag(cells.last, BookLevel::LAST)?,
            ..BookLevel::default()
        })
    }

    fn wire_age_ns(&self, row: &Row<'_>) -> Result<u32, String> {
        let age_ns = unsigned_or_zero(row, self.wire_age_ns)?;
        u32::try_from(age_ns).map_err(|_| format!("the age of {age_ns} ns does not fit 32 bits"))
    }
}

impl TableRows for TickTable {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let utc_ns = unsigned(row.cell(self.utc_ns)?)?;
        // A row of any kind is bad if its number is none, as it is where a recording is read as a whole.
        let trade_id = unsigned_or_zero(row, self.trade_id)?;
        let is_filled = |column| !row.optional(column).is_empty();
        let is_quote = is_filled(self.bid) || is_filled(self.ask);
        if is_quote && (is_filled(self.price) || is_filled(self.quantity)) {
            return Err("it is a best bid and offer and a trade: give each a row of its own".to_owned());
        }
        let message = match &self.level {
            _ if is_quote => MarketMessage::Top(self.top(row)?),
            Some(cells) => MarketMessage::Level(self.level(row, cells)?),
            None => MarketMessage::Trade(self.trade(row, trade_id)?),
        };
        intake.add_named(utc_ns, row.cell(self.symbol)?, message)
    }
}

fn needed<'a>(row: &Row<'a>, column: Option<usize>, name: &str) -> Result<&'a [u8], String> {
    match row.optional(column) {
        b"" => Err(format!("'{name}' is empty: give the four of a best bid and offer, or the two of a trade")),
        cell => Ok(cell),
    }
}

fn unsigned_or_zero(row: &Row<'_>, column: Option<usize>) -> Result<u64, String> {
    match row.optional(column) {
        b"" => Ok(0),
        cell => unsigned(cell),
    }
}
