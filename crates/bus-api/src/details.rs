//! Fields of any bytes as an object in JSON: those of a Redis stream's entry, and what other programs send beside a payload.
//!
//! A value that is no UTF-8 is an object there, `{"base64":"…"}`; a name that is none is `base64:…`, and so is one that begins
//! like that itself. So no byte is lost. They stay in the order in which they are added.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::topic::{Event, Foreign};

/// Hands an event over, with what came beside the bytes if it is of another program.
#[inline]
pub fn hand_over(event: Event<'_>, details: impl FnOnce() -> Option<String>, handler: &mut dyn FnMut(Event<'_>)) {
    match event {
        Event::Foreign(foreign) => {
            let details = details();
            handler(Event::Foreign(Foreign { details: details.as_deref(), ..foreign }));
        }
        event => handler(event),
    }
}

/// Prefix of a field's name that is no text, before its bytes in base64.
const BASE64: &str = "base64:";

/// An object in JSON that is being made.
#[derive(Debug, Default)]
pub struct Object {
    text: String,
}

impl Object {
    /// A field of any bytes.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.add_json(name, &value_in_json(value).to_string());
    }

    /// A field of several texts: an array, if there are more than one.
    pub fn add_all<'a>(&mut self, name: &[u8], values: impl Iterator<Item = &'a str>) {
        let mut values: Vec<Value> = values.map(Value::from).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        self.add_json(name, &value.to_string());
    }

    /// A field whose value is JSON already.
    pub fn add_json(&mut self, name: &[u8], value: &str) {
        let before = if self.text.is_empty() { '{' } else { ',' };
        write!(self.text, "{before}{}:{value}", name_in_json(name)).expect("a string takes all");
    }

    /// A field that is an object itself, unless that has no fields.
    pub fn add_object(&mut self, name: &[u8], object: Self) {
        if !object.text.is_empty() {
            self.add_json(name, &object.into_json());
        }
    }

    /// The object, if it has any fields.
    pub fn if_any(self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.into_json())
    }

    /// The object.
    pub fn into_json(mut self) -> String {
        self.text.push_str(if self.text.is_empty() { "{}" } else { "}" });
        self.text
    }
}

fn name_in_json(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) if !text.starts_with(BASE64) => Value::from(text),
        _ => Value::from(format!("{BASE64}{}", STANDARD.encode(bytes))),
    }
}

fn value_in_json(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}
