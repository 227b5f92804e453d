//! The complete reader of JSON: any order of keys, white space, escapes and unknown keys.

use serde_json::{Map, Value};
use tickpath_market::{Currency, DECIMALS, Side, parse_decimal};

use crate::message::{
    AnswerId, EventKind, LineFrame, OrderEvent, OrderRecord, OrderState, Refusal, RequestAnswer, TradeRecord,
    UnreadableEntry, UnreadableEvent, printable,
};
use crate::terms::OrderTerms;

/// First letter of the ids of the line's own queries.
pub(crate) const QUERY_PREFIX: char = 'q';

/// Max entries of a list in an answer. A full list may have a successor.
pub(crate) const LIST_LIMIT: usize = 1000;

/// A list in an answer.
pub(crate) struct Listed<T> {
    pub(crate) entries: Vec<T>,
    /// Entries that cannot be read. The others count all the same.
    pub(crate) unreadable: Vec<UnreadableEntry>,
    /// Id from which the list continues; none at its end.
    pub(crate) next_id: Option<u64>,
}

/// Reads a frame and passes it on; the error is a sentence.
pub(crate) fn read(frame: &[u8], take: &mut dyn FnMut(LineFrame<'_>)) -> Result<(), String> {
    let value: Value = serde_json::from_slice(frame)
        .map_err(|error| format!("a frame of {} bytes cannot be read: {error}", frame.len()))?;
    let Value::Object(members) = value else {
        return Err(format!("a frame of {} bytes is no JSON object", frame.len()));
    };
    if let Some(event) = members.get("event") {
        return read_event(event, take);
    }
    match members.contains_key("status") || members.contains_key("error") {
        true => take(LineFrame::Answer(read_answer(members))),
        false => take(LineFrame::Other),
    }
    Ok(())
}

/// Returns the exchange's time in an answer, in milliseconds since the Unix epoch.
pub(crate) fn server_ms(answer: &Value) -> Option<u64> {
    answer.get("serverTime")?.as_u64()
}

/// Reads the state of an order.
pub(crate) fn record(value: &Value) -> Result<OrderRecord, String> {
    let fields = Fields::of(value)?;
    let text = |key| fields.text(key).map(str::as_bytes);
    let words = [text("type")?, text("timeInForce")?, fields.optional_text("selfTradePreventionMode").as_bytes()];
    let terms = OrderTerms {
        price: fields.decimal("price")?,
        quantity: fields.decimal("origQty")?,
        ..OrderTerms::of_words(fields.side("side")?, words)
    };
    Ok(OrderRecord {
        order_id: fields.number("orderId")?,
        client: fields.text("clientOrderId")?.to_owned(),
        terms,
        executed: fields.decimal("executedQty")?,
        prevented: fields.optional_decimal("preventedQuantity")?,
        state: OrderState::of(text("status")?),
    })
}

/// Reads a list of orders.
pub(crate) fn records(value: &Value) -> Result<Listed<OrderRecord>, String> {
    list(value, ("order", "orderId"), record)
}

/// Reads a list of fills.
pub(crate) fn trades(value: &Value) -> Result<Listed<TradeRecord>, String> {
    list(value, ("trade", "id"), trade)
}

/// Returns the filled quantity in the answer to a cancel.
pub(crate) fn executed(answer: &Value) -> Result<i64, String> {
    Fields::of(answer)?.decimal("executedQty")
}

/// Returns the exchange's id of an order in an answer.
pub(crate) fn order_id(answer: &Value) -> Result<u64, String> {
    Fields::of(answer)?.number("orderId")
}

/// Returns the execution id and the new quantity in the answer to an amendment.
pub(crate) fn amendment(answer: &Value) -> Result<(u64, i64), String> {
    let amended = answer.get("amendedOrder").ok_or("an amendment has no order")?;
    Ok((Fields::of(answer)?.number("executionId")?, Fields::of(amended)?.decimal("qty")?))
}

/// Reads a refusal that stands in the answer to a request of two parts; none if the part has succeeded.
pub(crate) fn part_refusal(part: &Value, status: u64) -> Option<Refusal> {
    let code = part.get("code")?.as_i64()?;
    let text = part.get("msg").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(Refusal { status, code, text, data: Value::Null })
}

fn read_answer(mut members: Map<String, Value>) -> RequestAnswer {
    let id = match members.get("id") {
        Some(Value::Number(number)) => number.as_u64().map_or(AnswerId::Unassigned, AnswerId::Number),
        Some(Value::String(text)) => {
            let number = text.strip_prefix(QUERY_PREFIX).and_then(|number| number.parse().ok());
            number.map_or(AnswerId::Unassigned, AnswerId::Query)
        }
        _ => AnswerId::Unassigned,
    };
    let status = members.get("status").and_then(Value::as_u64).unwrap_or(0);
    let outcome = match members.remove("error") {
        Some(mut error) => Err(Refusal {
            status,
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            text: error.get("msg").and_then(Value::as_str).unwrap_or("no reason is given").to_owned(),
            data: error.get_mut("data").map(Value::take).unwrap_or_default(),
        }),
        None if status == 200 => Ok(members.remove("result").unwrap_or_default()),
        None => Err(Refusal { status, code: 0, text: format!("status {status}"), data: Value::Null }),
    };
    RequestAnswer { id, outcome }
}

fn read_event(event: &Value, take: &mut dyn FnMut(LineFrame<'_>)) -> Result<(), String> {
    let fields = Fields::of(event)?;
    match fields.optional_text("e") {
        "executionReport" => take(match order_event(&fields) {
            Ok(event) => LineFrame::Event(event),
            Err(why) => LineFrame::Unreadable(unreadable_event(&fields, why)?),
        }),
        "serverShutdown" => take(LineFrame::Shutdown),
        "eventStreamTerminated" => take(LineFrame::StreamEnded),
        _ => take(LineFrame::Other),
    }
    Ok(())
}

fn order_event<'a>(fields: &Fields<'a>) -> Result<OrderEvent<'a>, String> {
    let text = |key| fields.text(key).map(str::as_bytes);
    let words = [text("o")?, text("f")?, fields.optional_text("V").as_bytes()];
    let terms = OrderTerms {
        price: fields.decimal("p")?,
        quantity: fields.decimal("q")?,
        ..OrderTerms::of_words(fields.side("S")?, words)
    };
    // The reason of an expiry comes with conditional fields; that of a rejection stands in each event.
    let expiry = fields.optional_text("eR").as_bytes();
    Ok(OrderEvent {
        event_ms: fields.number("E")?,
        transact_ms: fields.number("T")?,
        symbol: text("s")?,
        client: text("c")?,
        original: text("C")?,
        terms,
        kind: EventKind::of(text("x")?),
        state: OrderState::of(text("X")?),
        order_id: fields.number("i")?,
        execution_id: fields.number("I")?,
        trade_id: fields.signed("t")?,
        last_price: fields.decimal("L")?,
        last_quantity: fields.decimal("l")?,
        cumulative: fields.decimal("z")?,
        prevented: fields.optional_decimal("A")?,
        fee: fields.decimal("n")?,
        fee_currency: fields.currency("N"),
        is_maker: fields.flag("m")?,
        reason: if expiry.is_empty() { text("r")? } else { expiry },
    })
}

/// Returns an event without its numbers; the error is that of an event whose order is not named either.
fn unreadable_event<'a>(fields: &Fields<'a>, why: String) -> Result<UnreadableEvent<'a>, String> {
    let (Ok(symbol), Ok(client)) = (fields.text("s"), fields.text("c")) else { return Err(why) };
    let original = fields.optional_text("C");
    let client = if original.is_empty() { client } else { original };
    let name =
        if matches!(fields.signed("t"), Ok(None)) { fields.name("event", "I") } else { fields.name("trade", "t") };
    Ok(UnreadableEvent { symbol: symbol.as_bytes(), client: client.as_bytes(), name, why })
}

fn trade(value: &Value) -> Result<TradeRecord, String> {
    let fields = Fields::of(value)?;
    Ok(TradeRecord {
        id: fields.number("id")?,
        order_id: fields.number("orderId")?,
        side: if fields.flag("isBuyer")? { Side::Buy } else { Side::Sell },
        price: fields.decimal("price")?,
        quantity: fields.decimal("qty")?,
        fee: fields.decimal("commission")?,
        fee_currency: fields.currency("commissionAsset"),
        time_ms: fields.number("time")?,
        is_maker: fields.flag("isMaker")?,
    })
}

/// Reads a list whose entries are of this kind, and have their ids under this key.
fn list<T>(
    value: &Value,
    (kind, id_key): (&str, &str),
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Listed<T>, String> {
    let list = value.as_array().ok_or("an answer is no list")?;
    let (mut entries, mut unreadable) = (Vec::with_capacity(list.len()), Vec::new());
    for entry in list {
        match read(entry) {
            Ok(entry) => entries.push(entry),
            Err(why) => {
                let fields = Fields::of(entry)?;
                let client = fields.optional_text("clientOrderId").to_owned();
                let (name, order_id) = (fields.name(kind, id_key), fields.number("orderId").ok());
                unreadable.push(UnreadableEntry { name, order_id, client, why });
            }
        }
    }
    let last_id = list.iter().rev().find_map(|entry| entry.get(id_key)?.as_u64());
    let next_id = last_id.filter(|_| list.len() >= LIST_LIMIT).map(|id| id.saturating_add(1));
    Ok(Listed { entries, unreadable, next_id })
}

/// The fields of an object.
struct Fields<'a> {
    members: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value) -> Result<Self, String> {
        value.as_object().map(|members| Self { members }).ok_or_else(|| "a part of a message is no object".to_owned())
    }

    fn text(&self, key: &str) -> Result<&'a str, String> {
        let text = self.members.get(key).and_then(Value::as_str);
        text.ok_or_else(|| format!("the field '{key}' of a message is missing, or no text"))
    }

    /// Returns a text; empty if there is none.
    fn optional_text(&self, key: &str) -> &'a str {
        self.members.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        let number = self.members.get(key).and_then(Value::as_u64);
        number.ok_or_else(|| format!("the field '{key}' of a message is missing, or no number of 64 bits"))
    }

    /// Returns a number; none if it is negative.
    fn signed(&self, key: &str) -> Result<Option<u64>, String> {
        let number = self.members.get(key).and_then(Value::as_i64);
        let number = number.ok_or_else(|| format!("the field '{key}' of a message is missing, or no number"))?;
        Ok(u64::try_from(number).ok())
    }

    fn decimal(&self, key: &str) -> Result<i64, String> {
        let text = self.text(key)?;
        parse_decimal(text, DECIMALS)
            .map_err(|error| format!("the field '{key}' of a message is '{}': {error}", printable(text)))
    }

    /// Returns a decimal; zero if there is none.
    fn optional_decimal(&self, key: &str) -> Result<i64, String> {
        if self.members.contains_key(key) { self.decimal(key) } else { Ok(0) }
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        let flag = self.members.get(key).and_then(Value::as_bool);
        flag.ok_or_else(|| format!("the field '{key}' of a message is missing, or neither true nor false"))
    }

    fn side(&self, key: &str) -> Result<Side, String> {
        match self.text(key)? {
            "BUY" => Ok(Side::Buy),
            "SELL" => Ok(Side::Sell),
            other => Err(format!("the field '{key}' of a message is '{}', no side", printable(other))),
        }
    }

    /// Returns a name for a message: a kind of thing, and its id as the exchange has written it.
    fn name(&self, kind: &str, id_key: &str) -> String {
        let id = self.members.get(id_key).map_or_else(|| "without id".to_owned(), Value::to_string);
        format!("{kind} {}", printable(&id))
    }

    /// Returns a currency; none for null, and for a name that is no currency here.
    fn currency(&self, key: &str) -> Currency {
        self.optional_text(key).parse().unwrap_or_default()
    }
}
