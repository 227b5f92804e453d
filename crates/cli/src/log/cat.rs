//! `tickpath log cat`: messages as text, or as one JSON object a line.

use clap::Args;
use tickpath_bus::Gap;
use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_oms_text::{self as fields, EntryContent, LogEntry, MessageField, gap_json};
use tickpath_relay::describe_gap;
use tickpath_venue_sim::{FieldValue, JournalRecord};

use crate::follower_output::has_reader;
use tickpath_cli_terminal::log_arguments::{parse_existing, parse_log, waiting_note};
use tickpath_cli_terminal::print::{is_closed, print_note, print_text};

/// Sleep of `--follow` between two reads, in nanoseconds.
const POLL_NS: u64 = 10_000_000;

const MAX_BUFFERED_BYTES: usize = 1 << 16;

/// Function that decodes a message of a log into a name and fields, if its kind is known.
type KindDecoder = fn(u8, &[u8]) -> Option<(&'static str, Vec<MessageField>)>;

#[derive(Debug, Clone, Args)]
pub struct CatArgs {
    /// shm://NAME, file:///PATH or a folder
    pub log: String,
    /// Begin with this sequence number instead of the oldest
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Print at most this many messages
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Wait for further messages, and for the log itself if it does not exist yet
    #[arg(long)]
    pub follow: bool,
    /// Print JSON objects, with the payload of an unknown kind as payload_hex, and as payload_text if it is text
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CatArgs) -> anyhow::Result<()> {
    let start = args.from.map_or(ReaderStart::Oldest, ReaderStart::Sequence);
    let place = if args.follow { parse_log(&args.log)? } else { parse_existing(&args.log)? };
    let Some(mut log) = open(&place, start, args.follow)? else { return Ok(()) };
    let read: KindDecoder = if is_exchange_journal(&place) { decode_exchange_record } else { fields::read };
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
                let entry = LogEntry { sequence, stamp, utc_ns, kind, content: decode_content(read, kind, &payload) };
                if args.json { entry.json() } else { entry.text() }
            }
            Next::Gap(missed) if args.json => gap_json(Some(missed)),
            Next::Gap(missed) => format!("-- {}", describe_gap(Gap::Missed(missed))),
            Next::Empty if args.follow => {
                print_text(&std::mem::take(&mut text))?;
                if !has_reader() {
                    break;
                }
                tickpath_clock::sleep_ns(POLL_NS);
                continue;
            }
            Next::Empty => {
                log.check_end()?;
                break;
            }
        };
        text.push_str(&line);
        text.push('\n');
        if text.len() >= MAX_BUFFERED_BYTES {
            print_text(&std::mem::take(&mut text))?;
        }
    }
    print_text(&text)
}

/// Opens a log. With `follow` it waits for a missing log, as long as the reader of standard output is there.
fn open(place: &LogPath, start: ReaderStart, follow: bool) -> Result<Option<Reader>, LogOpenError> {
    let mut is_noted = false;
    loop {
        match Reader::open(place, start, Registration::Unregistered) {
            Err(LogOpenError::NotFound(_)) if follow => {}
            opened => return opened.map(Some),
        }
        if !std::mem::replace(&mut is_noted, true) {
            print_note(&waiting_note(place));
        }
        if !has_reader() {
            return Ok(None);
        }
        tickpath_clock::sleep_ns(POLL_NS);
    }
}

/// Returns whether the log is the journal of an exchange, which has record kinds of its own.
fn is_exchange_journal(place: &LogPath) -> bool {
    let Ok(mut log) = Reader::open(place, ReaderStart::Oldest, Registration::Unregistered) else { return false };
    match log.next() {
        Ok(Next::Message(first)) => JournalRecord::begins_journal(first.kind, first.payload),
        _ => false,
    }
}

/// Returns the content of a message, decoded by the kinds of its log.
fn decode_content<'a>(read: KindDecoder, kind: u8, payload: &'a [u8]) -> EntryContent<'a> {
    if let Some(gap) = Gap::decode(kind, payload) {
        let missed = match gap {
            Gap::Missed(missed) => Some(missed),
            Gap::Reconnected => None,
        };
        return EntryContent::Gap { missed, sentence: describe_gap(gap) };
    }
    read(kind, payload).map_or(EntryContent::Unknown(payload), |(name, fields)| EntryContent::Known(name, fields))
}

/// Decodes a record of an exchange's journal; none if its kind is unknown.
fn decode_exchange_record(kind: u8, payload: &[u8]) -> Option<(&'static str, Vec<MessageField>)> {
    match JournalRecord::read(kind, payload)? {
        JournalRecord::Request { sequence, message } => {
            let (name, fields) = fields::read(kind, message)?;
            Some((name, [vec![fields::number("lane_sequence", sequence)], fields].concat()))
        }
        JournalRecord::Other(name, shown) => {
            let field = |(name, value)| match value {
                FieldValue::Number(value) => fields::number(name, value),
                FieldValue::Decimal(value) => fields::text(name, value),
            };
            Some((name, shown.into_iter().map(field).collect()))
        }
    }
}
