//! `tickpath log cat`: messages as people read them, or as one JSON object a line.
//!
//! ```text
//!   17 2026-02-03T09:30:00.000187000Z tick symbol=1 bid=61800.2 bid_quantity=0.5 …
//!   18 2026-02-03T09:30:00.000201000Z kind_200 68656c6c6f |hello| 5 bytes
//!   19 2026-02-03T09:30:01.000000000Z -- 12 messages were missed
//! ```

use clap::Args;
use serde_json::Value as Json;
use tickpath_bus::Gap;
use tickpath_exchange::JournalRecord;
use tickpath_log::{Next, OpenError, Place, Reader, Registration, Start};
use tickpath_relay::gap_words;

use super::fields::{self, Field, Value};
use super::place::{awaited, existing, moment, place};
use crate::print::{is_closed, note, say};

/// How long a following `cat` waits before it looks again.
const LOOK_NS: u64 = 10_000_000;

/// Bytes of lines that are printed at once.
const MOST_HELD: usize = 1 << 16;

/// Bytes that a line shows of a payload that is not known.
const MOST_BYTES: usize = 64;

#[derive(Debug, Clone, Args)]
pub struct CatArgs {
    /// shm://NAME, file:///PATH or a folder
    pub log: String,
    /// Begin with this sequence number instead of the oldest
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Print so many at most
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Go on waiting for more; for the log itself too, if it is not there yet
    #[arg(long)]
    pub follow: bool,
    /// Print JSON objects; a payload that is not known comes whole, as payload_hex, and as payload_text where it is text
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CatArgs) -> anyhow::Result<()> {
    let start = args.from.map_or(Start::Oldest, Start::Sequence);
    let place = if args.follow { place(&args.log)? } else { existing(&args.log)? };
    let mut log = open(&place, start, args.follow)?;
    let read = if is_of_exchange(&place) { fields::read_of_exchange } else { fields::read };
    let mut text = String::new();
    let (mut left, mut payload) = (args.count.unwrap_or(u64::MAX), Vec::new());
    while left > 0 && !is_closed() {
        let line = match log.next()? {
            Next::Message(message) => {
                left -= 1;
                payload.clear();
                payload.extend_from_slice(message.payload);
                let (sequence, stamp, kind) = (message.sequence, message.stamp, message.kind);
                let utc_ns = log.calibration().utc_ns_of(stamp);
                let entry = Entry { sequence, stamp, utc_ns, kind, payload: &payload, read: read(kind, &payload) };
                if args.json { entry.json() } else { entry.text() }
            }
            Next::Gap(missed) if args.json => gap_json(Gap::Missed(missed)),
            Next::Gap(missed) => format!("-- {}", gap_words(Gap::Missed(missed))),
            Next::Empty if args.follow => {
                say(&std::mem::take(&mut text))?;
                tickpath_clock::sleep_ns(LOOK_NS);
                continue;
            }
            Next::Empty => {
                log.check_end()?;
                break;
            }
        };
        text.push_str(&line);
        text.push('\n');
        if text.len() >= MOST_HELD {
            say(&std::mem::take(&mut text))?;
        }
    }
    say(&text)
}

/// A log; one that is followed is waited for.
fn open(place: &Place, start: Start, follow: bool) -> Result<Reader, OpenError> {
    let mut is_told = false;
    loop {
        match Reader::open(place, start, Registration::Unregistered) {
            Err(OpenError::NotFound(_)) if follow => {}
            opened => return opened,
        }
        if !std::mem::replace(&mut is_told, true) {
            note(&awaited(place));
        }
        tickpath_clock::sleep_ns(LOOK_NS);
    }
}

/// Returns whether the log is the journal of an exchange, whose kinds are its own.
fn is_of_exchange(place: &Place) -> bool {
    let Ok(mut log) = Reader::open(place, Start::Oldest, Registration::Unregistered) else { return false };
    match log.next() {
        Ok(Next::Message(first)) => JournalRecord::begins_journal(first.kind, first.payload),
        _ => false,
    }
}

/// A message with its moment.
struct Entry<'a> {
    sequence: u64,
    stamp: u64,
    utc_ns: u64,
    kind: u8,
    payload: &'a [u8],
    /// Its name and its fields, if they are known.
    read: Option<(&'static str, Vec<Field>)>,
}

impl Entry<'_> {
    fn text(&self) -> String {
        let Self { sequence, kind, payload, .. } = *self;
        let content = match (Gap::read(kind, payload), &self.read) {
            (Some(gap), _) => format!("-- {}", gap_words(gap)),
            (None, Some((name, fields))) => {
                let fields = fields.iter().map(|(key, value)| format!(" {key}={value}"));
                format!("{name}{}", fields.collect::<String>())
            }
            (None, None) => format!("kind_{kind} {}", bytes(payload)),
        };
        format!("{sequence} {} {content}", moment(self.utc_ns))
    }

    fn json(&self) -> String {
        let Self { sequence, stamp, kind, payload, .. } = *self;
        let content = match (Gap::read(kind, payload), &self.read) {
            (Some(gap), _) => gap_content(gap),
            (None, Some((name, fields))) => format!(r#""name":"{name}","fields":{}"#, object(fields)),
            (None, None) => {
                let text = text(payload).map(|text| format!(r#","payload_text":{}"#, Json::from(text)));
                format!(r#""name":"kind_{kind}","payload_hex":"{}"{}"#, hex(payload), text.unwrap_or_default())
            }
        };
        let time = moment(self.utc_ns);
        format!(r#"{{"sequence":{sequence},"time":"{time}","stamp_ticks":{stamp},"kind":{kind},{content}}}"#)
    }
}

/// The fields in their order, which a map would not keep.
fn object(fields: &[Field]) -> String {
    let members = fields.iter().map(|(key, value)| match value {
        Value::Number(number) => format!(r#""{key}":{number}"#),
        Value::Text(text) => format!(r#""{key}":{}"#, Json::from(text.as_str())),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn gap_json(gap: Gap) -> String {
    format!("{{{}}}", gap_content(gap))
}

/// Null where nobody knows how many messages were missed.
fn gap_content(gap: Gap) -> String {
    let missed = match gap {
        Gap::Missed(missed) => missed.to_string(),
        Gap::Reconnected => "null".to_owned(),
    };
    format!(r#""name":"gap","fields":{{"missed":{missed}}}"#)
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

/// A payload that people can read.
fn text(payload: &[u8]) -> Option<&str> {
    let is_text = |letter: char| !letter.is_control() || letter.is_whitespace();
    std::str::from_utf8(payload).ok().filter(|text| !text.is_empty() && text.chars().all(is_text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
