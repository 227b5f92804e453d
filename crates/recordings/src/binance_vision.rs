//! CSV of data.binance.vision. The instrument is in the file's name, and older spot files have no line of names.
//!
//! | data type | columns |
//! |---|---|
//! | `trades` | id, price, quantity, quote quantity, time, buyer is maker |
//! | `aggTrades` | id, price, quantity, first trade, last trade, time, buyer is maker |
//! | `bookTicker` | update id, bid, bid quantity, ask, ask quantity, transaction time, event time |
//!
//! Times are in milliseconds, on the spot market in microseconds since 2025, as their size shows. There is no receive
//! time: the exchange's own time stands for it.

use tickpath_market::{Side, TopOfBook, Trade};

use crate::cells::{Row, TableRows};
use crate::decimal::{price, quantity, unsigned};
use crate::intake::Intake;
use crate::message::MarketMessage;

/// Names of the columns by which a file with a line of names is recognised.
pub(crate) const TRADE_COLUMNS: [&str; 6] = ["id", "price", "qty", "quote_qty", "time", "is_buyer_maker"];
pub(crate) const AGG_TRADE_COLUMNS: [&str; 5] =
    ["agg_trade_id", "price", "quantity", "transact_time", "is_buyer_maker"];
pub(crate) const BOOK_TICKER_COLUMNS: [&str; 5] =
    ["update_id", "best_bid_price", "best_bid_qty", "best_ask_price", "best_ask_qty"];

/// Texts of the column that names the taker: the seller took if the buyer's order was in the book already.
const AGGRESSORS: [(&str, Side); 4] =
    [("true", Side::Sell), ("false", Side::Buy), ("True", Side::Sell), ("False", Side::Buy)];

/// Times from here on are in microseconds, in nanoseconds: in the longer unit they lie behind the year 2286.
const FIRST_US: u64 = 10_000_000_000_000;
const FIRST_NS: u64 = 10_000_000_000_000_000;

/// Reader of `trades` or `aggTrades`.
pub(crate) struct BinanceTrades {
    instrument: String,
    /// Column of the time; the taker's is the next one.
    time: usize,
}

impl BinanceTrades {
    /// Creates a reader of `trades`.
    pub fn single(instrument: String) -> Self {
        Self { instrument, time: 4 }
    }

    /// Creates a reader of `aggTrades`.
    pub fn aggregated(instrument: String) -> Self {
        Self { instrument, time: 5 }
    }
}

impl TableRows for BinanceTrades {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let event_ns = nanoseconds(row.cell(self.time)?)?;
        let trade = Trade {
            price: price(row.cell(1)?)?,
            quantity: quantity(row.cell(2)?)?,
            trade_id: unsigned(row.cell(0)?)?,
            event_ns,
            aggressor: row.choose(self.time + 1, &AGGRESSORS)?.code(),
            ..Trade::default()
        };
        intake.add_named(event_ns, self.instrument.as_bytes(), MarketMessage::Trade(trade))
    }
}

/// Reader of `bookTicker`.
pub(crate) struct BinanceBookTicker {
    instrument: String,
}

impl BinanceBookTicker {
    pub fn new(instrument: String) -> Self {
        Self { instrument }
    }
}

impl TableRows for BinanceBookTicker {
    fn read(&mut self, row: &Row<'_>, intake: &mut Intake<'_>) -> Result<(), String> {
        let event_ns = nanoseconds(row.cell(5)?)?;
        let sent_ns = match row.optional(Some(6)) {
            b"" => event_ns,
            cell => nanoseconds(cell)?,
        };
        let top = TopOfBook {
            bid: price(row.cell(1)?)?,
            bid_quantity: quantity(row.cell(2)?)?,
            ask: price(row.cell(3)?)?,
            ask_quantity: quantity(row.cell(4)?)?,
            event_ns,
            ..TopOfBook::default()
        };
        intake.add_named(sent_ns, self.instrument.as_bytes(), MarketMessage::Top(top))
    }
}

fn nanoseconds(cell: &[u8]) -> Result<u64, String> {
    let time = unsigned(cell)?;
    let ns_per_unit = match time {
        0..FIRST_US => 1_000_000,
        FIRST_US..FIRST_NS => 1_000,
        _ => 1,
    };
    Ok(time * ns_per_unit)
}
