//! Fields of requests and answers: OKX writes all numbers as texts, and clients send some as numbers.

use serde_json::{Map, Value};
use tickpath_market::{DECIMALS, Side, decimal_text};

/// Fields of an answer.
pub(crate) type Row = Map<String, Value>;

/// Nanoseconds of OKX's unit of time.
const NS_PER_MS: u64 = 1_000_000;

/// Returns a field of a request as text; none for an empty one, which OKX takes as absent.
pub(crate) fn text_field(fields: &Value, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Returns whether a field of a request is true, as a boolean or as text.
pub(crate) fn is_true(fields: &Value, name: &str) -> bool {
    text_field(fields, name).is_some_and(|text| text == "true")
}

/// Returns whether a text can be an id of a client: letters and digits, up to a maximum.
pub(crate) fn is_client_text(text: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the fields of an answer that are texts.
pub(crate) fn row<const N: usize>(texts: [(&str, &str); N]) -> Row {
    texts.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect()
}

/// Adds fields with the same text.
pub(crate) fn fill_row(row: &mut Row, text: &str, names: &[&str]) {
    row.extend(names.iter().map(|name| ((*name).to_owned(), Value::from(text))));
}

/// Returns a time as OKX's text, in milliseconds.
pub(crate) fn ms_text(ns: u64) -> String {
    (ns / NS_PER_MS).to_string()
}

/// Returns an amount in units of 10⁻⁸ as text.
pub(crate) fn amount_text(units: i128) -> String {
    decimal_text(units, DECIMALS)
}

/// Returns OKX's name of a side.
pub(crate) fn side_text(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}
