//! A field: a name and a value, and the conversion of numbers, codes and ids into values.

use std::fmt;

use tickpath_market::{
    AccountId, ClientOrderId, ExecId, OrderId, Price, Quantity, Symbol, SymbolId, VenueId, VenueOrderId,
};

/// A field's name and its value.
pub type MessageField = (&'static str, MessageFieldValue);

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageFieldValue {
    /// A whole number.
    Number(i128),
    /// A word, or a decimal: a floating point number could not hold every price.
    Text(String),
}

impl fmt::Display for MessageFieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl MessageFieldValue {
    /// Returns the value as JSON: a number, or a string in its quotes.
    pub(crate) fn json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        }
    }
}

macro_rules! values {
    (numbers: $($number:ty),+; ids: $($id:ty),+; texts: $($text:ty),+) => {
        $(impl From<$number> for MessageFieldValue {
            fn from(number: $number) -> Self {
                Self::Number(number.into())
            }
        })+
        $(impl From<$id> for MessageFieldValue {
            fn from(id: $id) -> Self {
                Self::Number(id.0.into())
            }
        })+
        $(impl From<$text> for MessageFieldValue {
            fn from(text: $text) -> Self {
                Self::Text(text.to_string())
            }
        })+
    };
}

values! {
    numbers: u8, u16, u32, u64, i64, i128;
    ids: AccountId, ClientOrderId, ExecId, OrderId, SymbolId, VenueId, VenueOrderId;
    texts: Price, Quantity, Symbol, &str, String
}

/// Makes a field of a whole number.
pub fn number(name: &'static str, value: impl Into<i128>) -> MessageField {
    (name, MessageFieldValue::Number(value.into()))
}

/// Makes a field of a text, or of a decimal with its digits unchanged.
pub fn text(name: &'static str, value: impl fmt::Display) -> MessageField {
    (name, MessageFieldValue::Text(value.to_string()))
}

/// Makes a field of a code, as a word. An unknown code stays a number.
pub(crate) fn code(name: &'static str, known: Option<impl fmt::Debug>, code: impl Into<i128>) -> MessageField {
    match known {
        Some(known) => (name, MessageFieldValue::Text(code_name(known))),
        None => number(name, code),
    }
}

/// Returns the name of a code: `GoodTillCancel` is `good_till_cancel`.
pub fn code_name(code: impl fmt::Debug) -> String {
    let mut word = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// Writes an order's id as the epoch of its start and its journal sequence: `3474042.12`.
pub fn order_id(id: OrderId) -> String {
    format!("{}.{}", id.epoch(), id.sequence())
}
