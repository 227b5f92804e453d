//! A message of a log as one line, for people or as a JSON object.
//!
//! ```text
//!   17 2026-02-03T09:30:00.000187000Z tick symbol=1 bid=61800.2 bid_quantity=0.5 …
//!   18 2026-02-03T09:30:00.000201000Z kind_200 68656c6c6f |hello| 5 bytes
//!   19 2026-02-03T09:30:01.000000000Z -- 12 messages were missed
//! ```

use serde_json::Value as Json;
use tickpath_result::rfc3339;

use crate::field::Field;

/// Bytes that a line shows of a payload that is not known.
const MOST_BYTES: usize = 64;

/// A message of a log.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The message's number in its log.
    pub sequence: u64,
    /// When the message was written, in ticks of its host's clock.
    pub stamp: u64,
    /// The same moment in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
    /// The kind of the message.
    pub kind: u8,
    /// The content of the message.
    pub content: Content<'a>,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// The name of a message of a known kind, and its fields.
    Known(&'static str, Vec<Field>),
    /// The payload of a message of a kind that is not known.
    Unknown(&'a [u8]),
    /// A note that messages are missing.
    Gap {
        /// How many, if that is known.
        missed: Option<u64>,
        /// The same as a sentence.
        words: String,
    },
}

impl Entry<'_> {
    /// Returns the line for people, without its end.
    pub fn text(&self) -> String {
        let content = match &self.content {
            Content::Gap { words, .. } => format!("-- {words}"),
            Content::Known(name, fields) => {
                let fields = fields.iter().map(|(key, value)| format!(" {key}={value}"));
                format!("{name}{}", fields.collect::<String>())
            }
            Content::Unknown(payload) => format!("kind_{} {}", self.kind, bytes(payload)),
        };
        format!("{} {} {content}", self.sequence, moment(self.utc_ns))
    }

    /// Returns the message as a JSON object. A payload that is not known comes whole, and as text too where it is text.
    pub fn json(&self) -> String {
        let Self { sequence, stamp, utc_ns, kind, .. } = *self;
        let content = match &self.content {
            Content::Gap { missed, .. } => gap_content(*missed),
            Content::Known(name, fields) => format!(r#""name":"{name}","fields":{}"#, object(fields)),
            Content::Unknown(payload) => {
                let text = readable(payload).map(|text| format!(r#","payload_text":{}"#, Json::from(text)));
                format!(r#""name":"kind_{kind}","payload_hex":"{}"{}"#, hex(payload), text.unwrap_or_default())
            }
        };
        let time = moment(utc_ns);
        format!(r#"{{"sequence":{sequence},"time":"{time}","stamp_ticks":{stamp},"kind":{kind},{content}}}"#)
    }
}

/// Returns a JSON object for messages that are missing where no message notes it: null where their number is not known.
pub fn gap_json(missed: Option<u64>) -> String {
    format!("{{{}}}", gap_content(missed))
}

fn gap_content(missed: Option<u64>) -> String {
    let missed = missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
    format!(r#""name":"gap","fields":{{"missed":{missed}}}"#)
}

/// Writes a moment, nanoseconds since the Unix epoch, as people read it and to the last digit.
pub fn moment(utc_ns: u64) -> String {
    let seconds = rfc3339(utc_ns);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), utc_ns % 1_000_000_000)
}

/// The fields in their order, which a map would not keep.
fn object(fields: &[Field]) -> String {
    let members = fields.iter().map(|(key, value)| format!(r#""{key}":{}"#, value.json()));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The first bytes as numbers and as letters, then how many there are.
fn bytes(payload: &[u8]) -> String {
    let shown = &payload[..payload.len().min(MOST_BYTES)];
    let rest = if shown.len() < payload.len() { "…" } else { "" };
    let letter = |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' };
    let letters: String = shown.iter().map(letter).collect();
    match payload.len() {
        0 => "0 bytes".to_owned(),
        length => format!("{}{rest} |{letters}{rest}| {length} bytes", hex(shown)),
    }
}

/// The text of a payload that people can read.
fn readable(payload: &[u8]) -> Option<&str> {
    let is_text = |letter: char| !letter.is_control() || letter.is_whitespace();
    std::str::from_utf8(payload).ok().filter(|text| !text.is_empty() && text.chars().all(is_text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
