//! A message of a log as one line, for people or as a JSON object.
//!
//! ```text
//!   17 2026-02-03T09:30:00.000187000Z tick symbol=1 bid=61800.2 bid_quantity=0.5 …
//!   18 2026-02-03T09:30:00.000201000Z kind_200 68656c6c6f |hello| 5 bytes
//!   19 2026-02-03T09:30:01.000000000Z -- 12 messages were missed
//! ```

use serde_json::Value as Json;
use tickpath_clock::rfc3339;

use crate::field::MessageField;

/// Max bytes of an unknown payload that a line shows.
const MAX_SHOWN_BYTES: usize = 64;

/// A message of a log.
#[derive(Debug, Clone)]
pub struct LogEntry<'a> {
    /// Sequence number of the message in its log.
    pub sequence: u64,
    /// Time at which the message was written, in ticks of its host's clock.
    pub stamp: u64,
    /// The same time in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
    /// The kind of the message.
    pub kind: u8,
    /// The content of the message.
    pub content: EntryContent<'a>,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent<'a> {
    /// The name of a message of a known kind, and its fields.
    Known(&'static str, Vec<MessageField>),
    /// Payload of a message of an unknown kind.
    Unknown(&'a [u8]),
    /// A note that messages are missing.
    Gap {
        /// Number of missing messages, if it is known.
        missed: Option<u64>,
        /// The same as a sentence.
        sentence: String,
    },
}

impl LogEntry<'_> {
    /// Returns the line for people, without its end.
    pub fn text(&self) -> String {
        let content = match &self.content {
            EntryContent::Gap { sentence, .. } => format!("-- {sentence}"),
            EntryContent::Known(name, fields) => {
                let fields = fields.iter().map(|(key, value)| format!(" {key}={value}"));
                format!("{name}{}", fields.collect::<String>())
            }
            EntryContent::Unknown(payload) => format!("kind_{} {}", self.kind, bytes(payload)),
        };
        format!("{} {} {content}", self.sequence, moment(self.utc_ns))
    }

    /// Returns the message as a JSON object. An unknown payload is included whole, and also as text if it is readable
    /// text.
    pub fn json(&self) -> String {
        let Self { sequence, stamp, utc_ns, kind, .. } = *self;
        let content = match &self.content {
            EntryContent::Gap { missed, .. } => gap_content(*missed),
            EntryContent::Known(name, fields) => format!(r#""name":"{name}","fields":{}"#, object(fields)),
            EntryContent::Unknown(payload) => {
                let text = readable(payload).map(|text| format!(r#","payload_text":{}"#, Json::from(text)));
                format!(r#""name":"kind_{kind}","payload_hex":"{}"{}"#, hex(payload), text.unwrap_or_default())
            }
        };
        let time = moment(utc_ns);
        format!(r#"{{"sequence":{sequence},"time":"{time}","stamp_ticks":{stamp},"kind":{kind},{content}}}"#)
    }
}

/// Returns a JSON object for missing messages that no message of the log notes; their number is null where it is
/// unknown.
pub fn gap_json(missed: Option<u64>) -> String {
    format!("{{{}}}", gap_content(missed))
}

fn gap_content(missed: Option<u64>) -> String {
    let missed = missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
    format!(r#""name":"gap","fields":{{"missed":{missed}}}"#)
}

/// Formats a time in nanoseconds since the Unix epoch as RFC 3339 with all nine decimals.
pub fn moment(utc_ns: u64) -> String {
    let seconds = rfc3339(utc_ns);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), utc_ns % 1_000_000_000)
}

/// Returns the fields as a JSON object in their order, which a map would not keep.
fn object(fields: &[MessageField]) -> String {
    let members = fields.iter().map(|(key, value)| format!(r#""{key}":{}"#, value.json()));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns the first bytes in hex and as ASCII, then their total number.
fn bytes(payload: &[u8]) -> String {
    let shown = &payload[..payload.len().min(MAX_SHOWN_BYTES)];
    let rest = if shown.len() < payload.len() { "…" } else { "" };
    let letter = |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' };
    let letters: String = shown.iter().map(letter).collect();
    match payload.len() {
        0 => "0 bytes".to_owned(),
        length => format!("{}{rest} |{letters}{rest}| {length} bytes", hex(shown)),
    }
}

/// Returns the payload as text, if it is UTF-8 without control characters.
fn readable(payload: &[u8]) -> Option<&str> {
    let is_text = |letter: char| !letter.is_control() || letter.is_whitespace();
    std::str::from_utf8(payload).ok().filter(|text| !text.is_empty() && text.chars().all(is_text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
