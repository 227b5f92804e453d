//! The complete reader of JSON: any order of keys, white space, escapes and unknown keys.

use serde_json::{Map, Value};
use tickpath_feed::{FeedInstrument, FrameError, LevelChange};
use tickpath_market::{Side, TopOfBook};

use crate::instrument_table::{InstrumentTable, read_price, read_quantity};
use crate::message::{BinanceMessage, DepthHead, TimeUnit, printable, trade};

/// Reads a frame.
pub(crate) fn read(
    frame: &[u8],
    table: &InstrumentTable,
    unit: TimeUnit,
    levels: &mut Vec<LevelChange>,
) -> Result<BinanceMessage, FrameError> {
    levels.clear();
    let value: Value = serde_json::from_slice(frame).map_err(|error| malformed(frame.len(), error))?;
    let outer = MessageFields::of(&value, frame.len())?;
    let reader = MessageReader { table, unit };
    match outer.members.get("data") {
        Some(data) if outer.members.contains_key("stream") => {
            reader.read(&MessageFields::of(data, frame.len())?, Some(outer.text("stream")?), levels)
        }
        _ => reader.read(&outer, None, levels),
    }
}

/// The exchange's answer to a SUBSCRIBE request.
pub(crate) struct StreamAnswer {
    /// Number of the request; none for a refusal of a request that the exchange could not read.
    pub(crate) id: Option<u64>,
    /// Reason of a refusal.
    pub(crate) refusal: Option<String>,
}

/// Reads an answer to a SUBSCRIBE request; none if the frame is something else.
pub(crate) fn read_stream_answer(frame: &[u8]) -> Option<StreamAnswer> {
    let value: Value = serde_json::from_slice(frame).ok()?;
    let members = value.as_object()?;
    let refusal = error_text(members);
    let is_answer = refusal.is_some() || members.contains_key("result");
    is_answer.then(|| StreamAnswer { id: members.get("id").and_then(Value::as_u64), refusal })
}

/// Returns the error that an answer of the REST interface reports, if it is one.
pub(crate) fn read_error(answer: &[u8]) -> Option<String> {
    error_text(serde_json::from_slice::<Value>(answer).ok()?.as_object()?)
}

/// Returns the exchange's time in an answer of the REST interface, in milliseconds since the Unix epoch.
pub(crate) fn read_server_time(answer: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(answer).ok()?.get("serverTime")?.as_u64()
}

/// Returns the text of an error, which stands alone or in the field `error`.
fn error_text(members: &Map<String, Value>) -> Option<String> {
    let error = members.get("error").and_then(Value::as_object).unwrap_or(members);
    let code = error.get("code")?.as_i64()?;
    let message = error.get("msg")?.as_str()?;
    Some(format!("{code}: {}", printable(message)))
}

struct MessageReader<'t> {
    table: &'t InstrumentTable,
    unit: TimeUnit,
}

impl MessageReader<'_> {
    fn read(
        &self,
        object: &MessageFields<'_>,
        stream: Option<&str>,
        levels: &mut Vec<LevelChange>,
    ) -> Result<BinanceMessage, FrameError> {
        if object.members.contains_key("e") {
            return match object.text("e")? {
                "bookTicker" => self.quote(object),
                "trade" => self.trade(object, "t"),
                "aggTrade" => self.trade(object, "a"),
                "depthUpdate" => self.book_update(object, levels),
                "serverShutdown" => Ok(BinanceMessage::Maintenance),
                other => Err(object.malformed(format!("its event '{}' is not known", printable(other)))),
            };
        }
        let has = |key: &str| object.members.contains_key(key);
        if has("lastUpdateId") {
            return self.snapshot(object, stream, levels);
        }
        if has("u") && has("b") {
            return self.quote(object);
        }
        match error_text(object.members) {
            Some(error) => Err(FrameError::Exchange(error)),
            None if has("result") => Ok(BinanceMessage::Answer),
            None => Err(object.malformed("it is no message of the market data streams")),
        }
    }

    fn quote(&self, object: &MessageFields<'_>) -> Result<BinanceMessage, FrameError> {
        let instrument = self.instrument(object)?;
        let quote = TopOfBook {
            bid: read_price(instrument, object.text("b")?)?,
            bid_quantity: read_quantity(instrument, object.text("B")?)?,
            ask: read_price(instrument, object.text("a")?)?,
            ask_quantity: read_quantity(instrument, object.text("A")?)?,
            event_ns: self.event_ns(object)?,
            symbol: instrument.symbol,
            wire_age_ns: 0,
        };
        Ok(BinanceMessage::Quote { sequence: object.number("u")?, quote })
    }

    fn trade(&self, object: &MessageFields<'_>, id: &str) -> Result<BinanceMessage, FrameError> {
        let instrument = self.instrument(object)?;
        let price = read_price(instrument, object.text("p")?)?;
        let quantity = read_quantity(instrument, object.text("q")?)?;
        let (id, event_ns) = (object.number(id)?, self.event_ns(object)?);
        Ok(BinanceMessage::Trade(trade(instrument.symbol, id, price, quantity, event_ns, object.flag("m")?)))
    }

    /// Reads an update, which follows that of the field `pu`, and without this field the one before its first.
    fn book_update(
        &self,
        object: &MessageFields<'_>,
        levels: &mut Vec<LevelChange>,
    ) -> Result<BinanceMessage, FrameError> {
        let instrument = self.instrument(object)?;
        let first = object.number("U")?;
        let head = DepthHead {
            symbol: instrument.symbol,
            is_snapshot: false,
            previous: object.optional_number("pu")?.unwrap_or(first.saturating_sub(1)),
            sequence: object.number("u")?,
            event_ns: self.event_ns(object)?,
        };
        object.levels("b", instrument, Side::Buy, levels)?;
        object.levels("a", instrument, Side::Sell, levels)?;
        Ok(BinanceMessage::Book(head))
    }

    fn snapshot(
        &self,
        object: &MessageFields<'_>,
        stream: Option<&str>,
        levels: &mut Vec<LevelChange>,
    ) -> Result<BinanceMessage, FrameError> {
        let instrument = match stream {
            Some(stream) => self
                .table
                .find_by_stream(stream.as_bytes())
                .ok_or_else(|| FrameError::UnknownInstrument(printable(stream)))?,
            None => self
                .table
                .only()
                .ok_or_else(|| object.malformed("it is a snapshot without a symbol, and there are several"))?,
        };
        let head = DepthHead {
            symbol: instrument.symbol,
            is_snapshot: true,
            previous: 0,
            sequence: object.number("lastUpdateId")?,
            event_ns: self.event_ns(object)?,
        };
        object.levels("bids", instrument, Side::Buy, levels)?;
        object.levels("asks", instrument, Side::Sell, levels)?;
        Ok(BinanceMessage::Book(head))
    }

    fn instrument(&self, object: &MessageFields<'_>) -> Result<&FeedInstrument, FrameError> {
        let name = object.text("s")?;
        self.table.find(name.as_bytes()).ok_or_else(|| FrameError::UnknownInstrument(printable(name)))
    }

    /// Returns the time of the matching engine if the message has one, otherwise its own, and zero without both.
    fn event_ns(&self, object: &MessageFields<'_>) -> Result<u64, FrameError> {
        let time = match object.optional_number("T")? {
            Some(time) => time,
            None => object.optional_number("E")?.unwrap_or(0),
        };
        self.unit.ns(time).ok_or_else(|| object.malformed("its time does not fit 64 bits of nanoseconds"))
    }
}

/// The fields of a message, with the frame's length for errors.
struct MessageFields<'a> {
    members: &'a Map<String, Value>,
    bytes: usize,
}

impl<'a> MessageFields<'a> {
    fn of(value: &'a Value, bytes: usize) -> Result<Self, FrameError> {
        let members = value.as_object().ok_or_else(|| malformed(bytes, "it is no JSON object"))?;
        Ok(Self { members, bytes })
    }

    fn number(&self, key: &str) -> Result<u64, FrameError> {
        let number = self.members.get(key).and_then(Value::as_u64);
        number.ok_or_else(|| self.malformed(format!("its field '{key}' is missing, or no number of 64 bits")))
    }

    fn optional_number(&self, key: &str) -> Result<Option<u64>, FrameError> {
        if self.members.contains_key(key) { self.number(key).map(Some) } else { Ok(None) }
    }

    fn text(&self, key: &str) -> Result<&'a str, FrameError> {
        let text = self.members.get(key).and_then(Value::as_str);
        text.ok_or_else(|| self.malformed(format!("its field '{key}' is missing, or no text")))
    }

    fn flag(&self, key: &str) -> Result<bool, FrameError> {
        let flag = self.members.get(key).and_then(Value::as_bool);
        flag.ok_or_else(|| self.malformed(format!("its field '{key}' is missing, or neither true nor false")))
    }

    fn levels(
        &self,
        key: &str,
        instrument: &FeedInstrument,
        side: Side,
        levels: &mut Vec<LevelChange>,
    ) -> Result<(), FrameError> {
        let no_levels = || self.malformed(format!("its field '{key}' is no list of price and quantity"));
        for level in self.members.get(key).and_then(Value::as_array).ok_or_else(no_levels)? {
            let Some([Value::String(price), Value::String(quantity)]) = level.as_array().map(Vec::as_slice) else {
                return Err(no_levels());
            };
            let price = read_price(instrument, price)?;
            let quantity = read_quantity(instrument, quantity)?;
            levels.push(LevelChange { side, price, quantity });
        }
        Ok(())
    }

    fn malformed(&self, why: impl ToString) -> FrameError {
        malformed(self.bytes, why)
    }
}

fn malformed(bytes: usize, why: impl ToString) -> FrameError {
    FrameError::Malformed { bytes, why: why.to_string() }
}
