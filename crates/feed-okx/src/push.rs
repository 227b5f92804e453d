//! The complete reader of push messages: any order of keys, escapes, white space and unknown keys.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickpath_feed::{FeedInstrument, FrameError, LevelChange};
use tickpath_market::{DecimalError, Price, Quantity, Side, TopOfBook, Trade, parse_decimal};

use crate::batch::{BookHead, MessageBatch};
use crate::channels::{BOOKS, FAST_BOOKS, QUOTES, TRADES};
use crate::complaint::{malformed, shown};
use crate::envelope::PushHead;

/// Nanoseconds of OKX's unit of time.
pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// Returns the sequence number that a book follows; none for an update without a valid one.
pub(crate) fn previous_sequence(is_snapshot: bool, previous: Option<i64>) -> Option<u64> {
    if is_snapshot { Some(0) } else { previous.and_then(|number| u64::try_from(number).ok()) }
}

/// Reads a push message into the batch.
pub(crate) fn read_push(
    frame: &[u8],
    head: &PushHead,
    instrument: &FeedInstrument,
    batch: &mut MessageBatch,
) -> Result<(), FrameError> {
    let reader = RowReader { frame, instrument };
    match head.key.channel.as_str() {
        QUOTES => reader.rows::<QuoteRow>()?.iter().try_for_each(|row| reader.quote(row, batch)),
        TRADES => reader.rows::<TradeRow>()?.iter().try_for_each(|row| reader.trade(row, batch)),
        BOOKS | FAST_BOOKS => {
            let is_snapshot = match head.action.as_deref() {
                Some("snapshot") => true,
                Some("update") => false,
                _ => return Err(reader.malformed("its action is neither 'snapshot' nor 'update'")),
            };
            reader.rows::<BookRow>()?.iter().try_for_each(|row| reader.book(is_snapshot, row, batch))
        }
        other => Err(reader.malformed(&format!("the channel '{other}' is not read"))),
    }
}

#[derive(Deserialize)]
struct PushRows<T> {
    data: Vec<T>,
}

/// A row of quotes. A level is a list of price, quantity, an abandoned field and the number of orders.
#[derive(Deserialize)]
struct QuoteRow {
    asks: Vec<Vec<String>>,
    bids: Vec<Vec<String>>,
    ts: String,
    #[serde(rename = "seqId")]
    sequence: u64,
}

#[derive(Deserialize)]
struct TradeRow {
    #[serde(rename = "tradeId")]
    trade_id: String,
    px: String,
    sz: String,
    side: String,
    ts: String,
}

#[derive(Deserialize)]
struct BookRow {
    asks: Vec<Vec<String>>,
    bids: Vec<Vec<String>>,
    ts: String,
    #[serde(rename = "seqId")]
    sequence: u64,
    #[serde(rename = "prevSeqId")]
    previous: Option<i64>,
}

/// Reader of the rows of a frame.
struct RowReader<'a> {
    frame: &'a [u8],
    instrument: &'a FeedInstrument,
}

impl RowReader<'_> {
    fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>, FrameError> {
        let rows: PushRows<T> = serde_json::from_slice(self.frame).map_err(|e| malformed(self.frame.len(), e))?;
        Ok(rows.data)
    }

    fn quote(&self, row: &QuoteRow, batch: &mut MessageBatch) -> Result<(), FrameError> {
        let best = |levels: &[Vec<String>]| match levels.first() {
            Some(level) => self.level(level),
            None => Ok((Price::ZERO, Quantity::ZERO)),
        };
        let ((ask, ask_quantity), (bid, bid_quantity)) = (best(&row.asks)?, best(&row.bids)?);
        let (event_ns, symbol) = (self.event_ns(&row.ts)?, self.instrument.symbol);
        let quote = TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, wire_age_ns: 0 };
        batch.add_quote(row.sequence, quote);
        Ok(())
    }

    fn trade(&self, row: &TradeRow, batch: &mut MessageBatch) -> Result<(), FrameError> {
        let trade_id = row.trade_id.parse::<u64>().map_err(|_| self.malformed("its tradeId is no number"))?;
        let aggressor = match row.side.as_str() {
            "buy" => Side::Buy.code(),
            "sell" => Side::Sell.code(),
            _ => return Err(self.malformed("its side is neither 'buy' nor 'sell'")),
        };
        batch.add_trade(Trade {
            price: self.price("px", &row.px)?,
            quantity: self.quantity("sz", &row.sz)?,
            trade_id,
            event_ns: self.event_ns(&row.ts)?,
            symbol: self.instrument.symbol,
            aggressor,
            reserved: [0; 3],
        });
        Ok(())
    }

    fn book(&self, is_snapshot: bool, row: &BookRow, batch: &mut MessageBatch) -> Result<(), FrameError> {
        for (side, levels) in [(Side::Sell, &row.asks), (Side::Buy, &row.bids)] {
            for level in levels {
                let (price, quantity) = self.level(level)?;
                batch.add_level(LevelChange { side, price, quantity });
            }
        }
        let missing = || self.malformed("an update of a book has no prevSeqId, or a negative one");
        let previous = previous_sequence(is_snapshot, row.previous).ok_or_else(missing)?;
        let (symbol, sequence, event_ns) = (self.instrument.symbol, row.sequence, self.event_ns(&row.ts)?);
        batch.add_book(BookHead { symbol, is_snapshot, may_overlap: false, previous, sequence, event_ns });
        Ok(())
    }

    fn level(&self, level: &[String]) -> Result<(Price, Quantity), FrameError> {
        let [price, quantity, ..] = level else {
            return Err(self.malformed("a level has less than two fields"));
        };
        Ok((self.price("price", price)?, self.quantity("quantity", quantity)?))
    }

    fn price(&self, field: &'static str, text: &str) -> Result<Price, FrameError> {
        self.units(field, text, self.instrument.price_decimals).map(Price)
    }

    fn quantity(&self, field: &'static str, text: &str) -> Result<Quantity, FrameError> {
        match self.units(field, text, self.instrument.quantity_decimals)? {
            ..0 => Err(self.malformed(&format!("its {field} '{}' is negative", shown(text)))),
            units => Ok(Quantity(units)),
        }
    }

    fn units(&self, field: &'static str, text: &str, decimals: u8) -> Result<i64, FrameError> {
        parse_decimal(text, decimals).map_err(|error| match error {
            DecimalError::NotANumber => self.malformed(&format!("its {field} '{text}' is no decimal number")),
            DecimalError::TooPrecise | DecimalError::TooLarge => {
                let (instrument, symbol) = (self.instrument.name.clone(), self.instrument.symbol);
                FrameError::Number { instrument, symbol, field, text: shown(text), decimals }
            }
        })
    }

    fn event_ns(&self, text: &str) -> Result<u64, FrameError> {
        let ns = text.parse::<u64>().ok().and_then(|ms| ms.checked_mul(NS_PER_MS));
        ns.ok_or_else(|| self.malformed("its ts is no time in milliseconds"))
    }

    fn malformed(&self, why: &str) -> FrameError {
        malformed(self.frame.len(), why)
    }
}
