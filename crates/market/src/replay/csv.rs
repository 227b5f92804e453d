//! Market data as CSV: one tick per row, columns named by the first row, in any order; other columns are ignored.
//!
//! | column | of each row |
//! |---|---|
//! | `utc_ns` | the receive time, nanoseconds since the Unix epoch |
//! | `symbol` | the instrument |
//! | `bid`, `bid_quantity`, `ask`, `ask_quantity` | the best bid and offer; empty in a trade |
//! | `price`, `quantity` | a trade; empty in a best bid and offer |
//! | `aggressor`, `trade_id` | of a trade, if known: the taker's side, `buy` or `sell`; the trade's number |
//! | `event_ns` | the exchange's own time, if known |

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use serde::Deserialize;

use super::json_line::{LineContent, price, quantity, symbol};
use super::tick::MarketTick;
use crate::{Side, TopOfBook, Trade};

#[derive(Deserialize)]
struct TickRow {
    utc_ns: u64,
    symbol: String,
    bid: Option<String>,
    bid_quantity: Option<String>,
    ask: Option<String>,
    ask_quantity: Option<String>,
    price: Option<String>,
    quantity: Option<String>,
    aggressor: Option<String>,
    trade_id: Option<u64>,
    event_ns: Option<u64>,
}

/// Names of the columns: the first line of a file.
pub(super) struct CsvColumns(StringRecord);

impl CsvColumns {
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        cells(line).map(|names| Self(names.unwrap_or_default()))
    }

    /// Reads a row. Each line is one row, so that an unclosed quote swallows no other rows.
    pub(super) fn parse(&self, line: &[u8]) -> Result<LineContent, String> {
        match cells(line)? {
            Some(row) => row.deserialize::<TickRow>(Some(&self.0)).map_err(error_text)?.tick(),
            None => Ok(LineContent::Other),
        }
    }
}

/// Reads the cells of a line; none for an empty line.
fn cells(line: &[u8]) -> Result<Option<StringRecord>, String> {
    let mut options = ReaderBuilder::new();
    options.has_headers(false).flexible(true).trim(Trim::All).buffer_capacity(line.len().max(1));
    options.from_reader(line).into_records().next().transpose().map_err(error_text)
}

fn error_text(error: csv::Error) -> String {
    match error.into_kind() {
        ErrorKind::Deserialize { err, .. } => err.to_string(),
        ErrorKind::Utf8 { err, .. } => err.to_string(),
        other => format!("{other:?}"),
    }
}

impl TickRow {
    fn tick(&self) -> Result<LineContent, String> {
        let needed = |name: &str, cell: &Option<String>| {
            cell.clone().ok_or_else(|| {
                format!("'{name}' is empty: give the four of a best bid and offer, or the two of a trade")
            })
        };
        let event_ns = self.event_ns.unwrap_or(0);
        if (self.bid.is_some() || self.ask.is_some()) && (self.price.is_some() || self.quantity.is_some()) {
            return Err("it is a best bid and offer and a trade: give each a row of its own".to_owned());
        }
        let event = if self.bid.is_some() || self.ask.is_some() {
            MarketTick::Top(TopOfBook {
                bid: price(&needed("bid", &self.bid)?)?,
                bid_quantity: quantity(&needed("bid_quantity", &self.bid_quantity)?)?,
                ask: price(&needed("ask", &self.ask)?)?,
                ask_quantity: quantity(&needed("ask_quantity", &self.ask_quantity)?)?,
                event_ns,
                ..TopOfBook::default()
            })
        } else {
            let aggressor = match self.aggressor.as_deref() {
                None => 0,
                Some("buy") => Side::Buy.code(),
                Some("sell") => Side::Sell.code(),
                Some(other) => return Err(format!("'{other}' is no aggressor: write buy or sell, or nothing")),
            };
            MarketTick::Trade(Trade {
                price: price(&needed("price", &self.price)?)?,
                quantity: quantity(&needed("quantity", &self.quantity)?)?,
                trade_id: self.trade_id.unwrap_or(0),
                aggressor,
                event_ns,
                ..Trade::default()
            })
        };
        Ok(LineContent::Tick(self.utc_ns, symbol(&self.symbol)?, event))
    }
}
