//! One line of a recording: a receive time and the exchange's message, as JSON.

use std::borrow::Cow;
use std::io::{self, Write};
use std::str::FromStr;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::tick::MarketTick;
use crate::{DecimalError, Price, Quantity, Side, Symbol, TopOfBook, Trade};

/// Nanoseconds in a millisecond, the unit of the exchange's own times.
const NS_PER_MS: u64 = 1_000_000;

/// Content of a line of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineContent {
    /// Receive time in nanoseconds since the Unix epoch, instrument, and a tick whose symbol id is zero.
    Tick(u64, Symbol, MarketTick),
    /// A depth update or a depth snapshot.
    Depth,
    /// A message of another stream.
    Other,
}

/// Reads a line of a recording, `LOCAL_NS JSON`, without its end. The error is the reason why it is a bad line.
pub fn read_line(line: &[u8]) -> Result<LineContent, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8 from byte {}", error.valid_up_to() + 1))?;
    let (at, json) = text.split_once(' ').ok_or("no receive time and JSON with a space between them")?;
    let at_ns: u64 = at.parse().map_err(|_| "does not start with a receive time in nanoseconds")?;
    let enveloped = from_json::<StreamEnvelope<Option<MessageHead<'_>>>>(json)?.data;
    let is_enveloped = enveloped.is_some();
    let head = match enveloped {
        Some(head) => head,
        None => from_json(json)?,
    };
    match &*head.kind {
        "bookTicker" => payload::<BookTicker<'_>>(json, is_enveloped)?.tick(at_ns),
        "trade" => payload::<TradeMessage<'_>>(json, is_enveloped)?.tick(at_ns),
        "depthUpdate" => Ok(LineContent::Depth),
        "" if head.snapshot.is_some() => Ok(LineContent::Depth),
        "" => Err("neither a message with an `e` field nor a depth snapshot".to_owned()),
        _ => Ok(LineContent::Other),
    }
}

pub(super) fn write(mut out: impl Write, at_ns: u64, symbol: &str, event: &MarketTick) -> io::Result<()> {
    write!(out, "{at_ns} ")?;
    let stream = |name: &str| format!("{}@{name}", symbol.to_lowercase());
    match event {
        MarketTick::Top(top) => {
            let envelope = StreamEnvelope { stream: stream("bookTicker"), data: BookTicker::of(top, symbol) };
            serde_json::to_writer(&mut out, &envelope)?;
        }
        MarketTick::Trade(trade) => {
            let envelope = StreamEnvelope { stream: stream("trade"), data: TradeMessage::of(trade, symbol) };
            serde_json::to_writer(&mut out, &envelope)?;
        }
    }
    writeln!(out)
}

fn payload<'a, T: Deserialize<'a>>(json: &'a str, is_enveloped: bool) -> Result<T, String> {
    if is_enveloped { from_json::<StreamEnvelope<T>>(json).map(|envelope| envelope.data) } else { from_json(json) }
}

fn from_json<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    // The parser sees a single line, so its line number would be mistaken for that of the recording.
    serde_json::from_str(json).map_err(|error| error.to_string().replace(" at line 1 column ", " at JSON column "))
}

/// The exchange's envelope around each message of a combined stream.
#[derive(Serialize, Deserialize)]
struct StreamEnvelope<T> {
    #[serde(skip_deserializing)]
    stream: String,
    data: T,
}

/// The fields that identify a message. A depth snapshot has no `e` field.
#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow, default, rename = "e")]
    kind: Cow<'a, str>,
    #[serde(rename = "lastUpdateId")]
    snapshot: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct BookTicker<'a> {
    #[serde(borrow, rename = "e")]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "s")]
    symbol: Cow<'a, str>,
    #[serde(borrow, rename = "b")]
    bid: Cow<'a, str>,
    #[serde(borrow, rename = "B")]
    bid_quantity: Cow<'a, str>,
    #[serde(borrow, rename = "a")]
    ask: Cow<'a, str>,
    #[serde(borrow, rename = "A")]
    ask_quantity: Cow<'a, str>,
    #[serde(rename = "T")]
    event_ms: u64,
}

impl<'a> BookTicker<'a> {
    fn tick(&self, at_ns: u64) -> Result<LineContent, String> {
        let top = TopOfBook {
            bid: price(&self.bid)?,
            bid_quantity: quantity(&self.bid_quantity)?,
            ask: price(&self.ask)?,
            ask_quantity: quantity(&self.ask_quantity)?,
            event_ns: event_ns(self.event_ms)?,
            ..TopOfBook::default()
        };
        Ok(LineContent::Tick(at_ns, symbol(&self.symbol)?, MarketTick::Top(top)))
    }

    fn of(top: &TopOfBook, symbol: &'a str) -> Self {
        Self {
            kind: "bookTicker".into(),
            symbol: symbol.into(),
            bid: top.bid.to_string().into(),
            bid_quantity: top.bid_quantity.to_string().into(),
            ask: top.ask.to_string().into(),
            ask_quantity: top.ask_quantity.to_string().into(),
            event_ms: top.event_ns / NS_PER_MS,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct TradeMessage<'a> {
    #[serde(borrow, rename = "e")]
    kind: Cow<'a, str>,
    #[serde(rename = "T")]
    event_ms: u64,
    #[serde(borrow, rename = "s")]
    symbol: Cow<'a, str>,
    #[serde(rename = "t")]
    trade_id: u64,
    #[serde(borrow, rename = "p")]
    price: Cow<'a, str>,
    #[serde(borrow, rename = "q")]
    quantity: Cow<'a, str>,
    /// True if the buyer's order was in the book already, so that the seller was the taker.
    #[serde(rename = "m")]
    buyer_is_maker: bool,
}

impl<'a> TradeMessage<'a> {
    fn tick(&self, at_ns: u64) -> Result<LineContent, String> {
        let aggressor = if self.buyer_is_maker { Side::Sell } else { Side::Buy };
        let trade = Trade {
            price: price(&self.price)?,
            quantity: quantity(&self.quantity)?,
            trade_id: self.trade_id,
            event_ns: event_ns(self.event_ms)?,
            aggressor: aggressor.code(),
            ..Trade::default()
        };
        Ok(LineContent::Tick(at_ns, symbol(&self.symbol)?, MarketTick::Trade(trade)))
    }

    fn of(trade: &Trade, symbol: &'a str) -> Self {
        Self {
            kind: "trade".into(),
            event_ms: trade.event_ns / NS_PER_MS,
            symbol: symbol.into(),
            trade_id: trade.trade_id,
            price: trade.price.to_string().into(),
            quantity: trade.quantity.to_string().into(),
            buyer_is_maker: trade.aggressor == Side::Sell.code(),
        }
    }
}

pub(super) fn price(text: &str) -> Result<Price, String> {
    let price: Price = decimal(text)?;
    if price > Price::ZERO { Ok(price) } else { Err(format!("the price {text} is not above zero")) }
}

pub(super) fn quantity(text: &str) -> Result<Quantity, String> {
    let quantity: Quantity = decimal(text)?;
    if quantity >= Quantity::ZERO { Ok(quantity) } else { Err(format!("the quantity {text} is below zero")) }
}

fn decimal<T: FromStr<Err = DecimalError>>(text: &str) -> Result<T, String> {
    // The decimal parser cuts the text by bytes, so each character must be one byte.
    let parsed = if text.is_ascii() { text.parse::<T>() } else { Err(DecimalError::NotANumber) };
    parsed.map_err(|error| format!("'{text}': {error}"))
}

pub(super) fn symbol(text: &str) -> Result<Symbol, String> {
    text.parse::<Symbol>().map_err(|error| error.to_string())
}

fn event_ns(event_ms: u64) -> Result<u64, String> {
    event_ms.checked_mul(NS_PER_MS).ok_or_else(|| format!("{event_ms} is no time in milliseconds"))
}
