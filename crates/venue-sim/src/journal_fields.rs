//! Records of a venue's journal as named fields, for people.

use tickpath_market::{Price, Quantity, Request};
use zerocopy::{FromBytes, IntoBytes};

use crate::faults::FaultChances;
use crate::journal::{
    BUST, CONFIRMED, CORRECT, CorrectRecord, END_OF_DAY, FAULTS, LaneJoin, MARKET, NAMED_LINE, NamedLine, REPORTS,
    REQUESTS, ROUTE, SYMBOLS_ADDED, TICK, TickHeader, VENUE_IDENTITY, VenueIdentity,
};

/// A record of a venue's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalRecord<'a> {
    /// A request, with its sequence number in its lane.
    Request {
        /// The sequence number.
        sequence: u64,
        /// The request: a message of the record's kind.
        message: &'a [u8],
    },
    /// Any other record, with its name and its named fields.
    Other(&'static str, Vec<(&'static str, FieldValue)>),
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A whole number.
    Number(u64),
    /// A price or a quantity, as a decimal.
    Decimal(String),
}

impl<'a> JournalRecord<'a> {
    /// Returns whether the first message of a log is that of a venue's journal.
    pub fn begins_journal(kind: u8, payload: &[u8]) -> bool {
        kind == VENUE_IDENTITY && VenueIdentity::read_from_bytes(payload).is_ok()
    }

    /// Reads a record. Returns none if no venue of this version can have written it.
    pub fn read(kind: u8, payload: &'a [u8]) -> Option<Self> {
        let (name, fields) = match kind {
            VENUE_IDENTITY => {
                let VenueIdentity { rules, symbols, venue } = VenueIdentity::read_from_bytes(payload).ok()?;
                let fields = [("rules", rules), ("symbols", symbols), ("venue", venue)];
                ("venue_founded", fields.map(|(name, value)| number(name, value)).to_vec())
            }
            REQUESTS => ("requests_lane", lane(payload)?),
            REPORTS => ("reports_lane", lane(payload)?),
            MARKET => ("market_lane", lane(payload)?),
            TICK => ("venue_tick", tick(payload)?),
            BUST => ("bust", vec![number("exec_id", u64::read_from_bytes(payload).ok()?)]),
            CORRECT => {
                let CorrectRecord { exec_id, price, quantity } = CorrectRecord::read_from_bytes(payload).ok()?;
                let decimals = [decimal("price", Price(price)), decimal("quantity", Quantity(quantity))];
                ("correct", [vec![number("exec_id", exec_id)], decimals.to_vec()].concat())
            }
            END_OF_DAY => ("end_of_day", Vec::new()),
            SYMBOLS_ADDED => ("listed", vec![number("symbols", u32::read_from_bytes(payload).ok()?)]),
            FAULTS => {
                ("faults", FaultChances::read_from_bytes(payload).ok()?.fields().map(|(n, v)| number(n, v)).to_vec())
            }
            ROUTE => ("way", vec![number("way", u32::read_from_bytes(payload).ok()?)]),
            NAMED_LINE => {
                let NamedLine { lane, oms } = NamedLine::read_from_bytes(payload).ok()?;
                ("named_line", [self::lane(lane.as_bytes())?, vec![number("oms", oms)]].concat())
            }
            CONFIRMED => ("trimmed", vec![number("report", u64::read_from_bytes(payload).ok()?)]),
            kind => {
                let (sequence, message) = u64::read_from_prefix(payload).ok()?;
                Request::read(kind, message).ok()?;
                return Some(Self::Request { sequence, message });
            }
        };
        Some(Self::Other(name, fields))
    }
}

fn lane(payload: &[u8]) -> Option<Vec<(&'static str, FieldValue)>> {
    let LaneJoin { journal, incarnation, first } = LaneJoin::read_from_bytes(payload).ok()?;
    Some(vec![number("journal", journal), number("incarnation", incarnation), number("first", first)])
}

/// Returns the fields of a tick, of its four numbers only those that differ from the symbol's last tick.
fn tick(payload: &[u8]) -> Option<Vec<(&'static str, FieldValue)>> {
    let (TickHeader { sequence, symbol, changed }, mut numbers) = TickHeader::read_from_prefix(payload).ok()?;
    let mut fields = vec![number("lane_sequence", sequence), number("symbol", symbol)];
    for (bit, name) in ["bid", "bid_quantity", "ask", "ask_quantity"].into_iter().enumerate() {
        if changed & 1 << bit != 0 {
            let (units, rest) = i64::read_from_prefix(numbers).ok()?;
            fields.push(decimal(name, Price(units)));
            numbers = rest;
        }
    }
    numbers.is_empty().then_some(fields)
}

fn number(name: &'static str, value: impl Into<u64>) -> (&'static str, FieldValue) {
    (name, FieldValue::Number(value.into()))
}

fn decimal(name: &'static str, value: impl ToString) -> (&'static str, FieldValue) {
    (name, FieldValue::Decimal(value.to_string()))
}
