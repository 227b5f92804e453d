//! Fields of any bytes as a JSON object: those of a Redis stream's entry, and those that come with a payload.
//!
//! A value that is not UTF-8 becomes `{"base64":"…"}`; a name that is not UTF-8, or that begins with `base64:` itself,
//! becomes `base64:…`. So no byte is lost. Fields keep the order in which they are added.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::topic::{ForeignMessage, SubscriptionEvent};

/// Passes an event to the handler; an event of another program gets its details.
#[inline]
pub fn deliver_with_details(
    event: SubscriptionEvent<'_>,
    details: impl FnOnce() -> Option<String>,
    handler: &mut dyn FnMut(SubscriptionEvent<'_>),
) {
    match event {
        SubscriptionEvent::Foreign(foreign) => {
            let details = details();
            handler(SubscriptionEvent::Foreign(ForeignMessage { details: details.as_deref(), ..foreign }));
        }
        event => handler(event),
    }
}

/// Prefix of the name of a field that is not text, before its bytes in base64.
const BASE64: &str = "base64:";

/// Builder of a JSON object.
#[derive(Debug, Default)]
pub struct JsonObject {
    text: String,
}

impl JsonObject {
    /// Adds a field of any bytes.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.add_json(name, &json_value(value).to_string());
    }

    /// Adds a field of several texts: an array, unless there is exactly one.
    pub fn add_all<'a>(&mut self, name: &[u8], values: impl Iterator<Item = &'a str>) {
        let mut values: Vec<Value> = values.map(Value::from).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        self.add_json(name, &value.to_string());
    }

    /// Adds a field whose value is JSON already.
    pub fn add_json(&mut self, name: &[u8], value: &str) {
        let before = if self.text.is_empty() { '{' } else { ',' };
        write!(self.text, "{before}{}:{value}", json_name(name)).expect("a string takes all");
    }

    /// Adds a field that is an object itself, unless that has no fields.
    pub fn add_object(&mut self, name: &[u8], object: Self) {
        if !object.text.is_empty() {
            self.add_json(name, &object.into_json());
        }
    }

    /// Returns the object, if it has any fields.
    pub fn into_json_if_any(self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.into_json())
    }

    /// Returns the object.
    pub fn into_json(mut self) -> String {
        self.text.push_str(if self.text.is_empty() { "{}" } else { "}" });
        self.text
    }
}

fn json_name(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) if !text.starts_with(BASE64) => Value::from(text),
        _ => Value::from(format!("{BASE64}{}", STANDARD.encode(bytes))),
    }
}

fn json_value(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}
