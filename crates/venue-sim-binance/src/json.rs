//! JSON objects whose fields keep their order, which the exchange's own messages have, too.

use std::fmt::{Display, Write};

/// Writer of a JSON object.
#[derive(Debug)]
pub(crate) struct OrderedObject {
    text: String,
}

impl OrderedObject {
    /// Begins an object.
    pub(crate) fn new() -> Self {
        Self { text: "{".to_owned() }
    }

    /// Adds a string.
    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, &quoted(value))
    }

    /// Adds a number, or true or false.
    pub(crate) fn plain(mut self, key: &str, value: impl Display) -> Self {
        self.begin(key);
        write!(self.text, "{value}").expect("a string takes any text");
        self
    }

    /// Adds JSON text.
    pub(crate) fn raw(mut self, key: &str, json: &str) -> Self {
        self.begin(key);
        self.text.push_str(json);
        self
    }

    /// Ends the object.
    pub(crate) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn begin(&mut self, key: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(key);
        self.text.push_str("\":");
    }
}

/// Returns a string in quotes, with escapes where JSON needs them.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("any text is a JSON string")
}

/// Returns an array of JSON texts.
pub(crate) fn array(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(","))
}
