//! Market data as CSV: one tick a row, its columns by their names in the first row, in any order; others are not looked at.
//!
//! | column | of each row |
//! |---|---|
//! | `utc_ns` | when it was received, nanoseconds since the Unix epoch |
//! | `symbol` | the instrument |
//! | `bid`, `bid_quantity`, `ask`, `ask_quantity` | the best bid and offer; empty in a trade |
//! | `price`, `quantity` | a trade; empty in a best bid and offer |
//! | `aggressor`, `trade_id` | of a trade, if it is known: who took, `buy` or `sell`; its number |
//! | `event_ns` | the exchange's own time, if it is known |

use std::io::{self, Read};

use csv::{ErrorKind, ReaderBuilder, Trim};
use serde::Deserialize;

use super::event::Event;
use super::feed::{Content, price, quantity, symbol};
use crate::{Side, TopOfBook, Trade};

/// The columns that are read.
#[derive(Deserialize)]
struct Row {
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

/// Reads all rows; what is wrong with one is given in its place.
pub(super) fn read(input: impl Read, mut add: impl FnMut(Result<Content, String>)) -> io::Result<()> {
    let mut rows = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(input);
    for row in rows.deserialize::<Row>() {
        match row {
            Ok(row) => add(row.tick()),
            Err(e) => match e.into_kind() {
                ErrorKind::Io(e) => return Err(e),
                ErrorKind::Deserialize { err, .. } => add(Err(err.to_string())),
                other => add(Err(format!("{other:?}"))),
            },
        }
    }
    Ok(())
}

impl Row {
    fn tick(&self) -> Result<Content, String> {
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
            Event::Top(TopOfBook {
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
            Event::Trade(Trade {
                price: price(&needed("price", &self.price)?)?,
                quantity: quantity(&needed("quantity", &self.quantity)?)?,
                trade_id: self.trade_id.unwrap_or(0),
                aggressor,
                event_ns,
                ..Trade::default()
            })
        };
        Ok(Content::Tick(self.utc_ns, symbol(&self.symbol)?, event))
    }
}
