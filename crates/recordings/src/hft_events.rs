//! Events of hftbacktest: rows of 64 bytes, and the messages that they stand for.
//!
//! | events | message |
//! |---|---|
//! | a best bid and a best offer with the same times | a best bid and offer |
//! | a trade | a trade; its side is the taker's |
//! | depth events with the same times | levels of one message |
//! | clear events, then snapshot events with the same times | levels of a snapshot, which replaces the book |
//!
//! `order_id`, which such feeds leave zero, carries the id of a trade and the sequence number of a level. Prices and
//! quantities are 64-bit floating point numbers, which hold up to 15 digits; they are rounded to eight decimals.

use std::io::{self, BufReader, ErrorKind, Read};

use tickpath_market::{BookLevel, Price, Quantity, SCALE, Side, TopOfBook, Trade};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::decimal::positive_price;
use crate::intake::Intake;
use crate::message::MarketMessage;
use crate::npy::read_header;
use crate::read_fault::ReadFault;

/// Flags of an event, and its kind in the lowest byte.
pub(crate) const EXCHANGE: u64 = 1 << 31;
pub(crate) const LOCAL: u64 = 1 << 30;
pub(crate) const BUY: u64 = 1 << 29;
pub(crate) const SELL: u64 = 1 << 28;
const KIND: u64 = 0xff;
pub(crate) const DEPTH: u64 = 1;
pub(crate) const TRADE: u64 = 2;
pub(crate) const CLEAR: u64 = 3;
pub(crate) const SNAPSHOT: u64 = 4;
pub(crate) const BEST: u64 = 5;

/// Bytes of an event.
const EVENT_BYTES: usize = 64;
const BUFFER_BYTES: usize = 256 << 10;

/// An event, as it lies in the array.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct HftEvent {
    /// Kind and flags.
    pub ev: u64,
    /// The exchange's own time, nanoseconds since the Unix epoch.
    pub exch_ts: i64,
    /// The receive time, nanoseconds since the Unix epoch.
    pub local_ts: i64,
    pub px: f64,
    pub qty: f64,
    pub order_id: u64,
    pub ival: i64,
    pub fval: f64,
}

/// Reads an array of events.
pub(crate) fn read_events(input: impl Read, instrument: &str, intake: &mut Intake<'_>) -> Result<(), ReadFault> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let rows = read_header(&mut input)?;
    let mut reader = EventReader::new(instrument);
    let mut bytes = [0; EVENT_BYTES];
    for _ in 0..rows {
        match input.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                intake.counts.truncated = true;
                break;
            }
            Err(error) => return Err(error.into()),
        }
        intake.begin_row();
        let event = HftEvent::read_from_bytes(&bytes).expect("the array has the length of an event");
        let read = reader.read(&event, intake);
        intake.end_row(read);
        if intake.is_stopped() {
            return Ok(());
        }
    }
    reader.finish(intake);
    // An archive compares its checksum when its end is read.
    io::copy(&mut input, &mut io::sink())?;
    Ok(())
}

/// Builds messages out of events.
struct EventReader<'a> {
    instrument: &'a str,
    /// The last level, which ends its message or does not.
    level: Option<PendingLevel>,
    /// A clear event without its snapshot yet: its times, and the sides that it clears.
    clear: Option<(EventTimes, u64)>,
    /// The latest best bid and best offer.
    bid: Option<(Price, Quantity)>,
    ask: Option<(Price, Quantity)>,
    /// Changes of the best bid and offer that are not passed on yet: their times and sides.
    best: Option<(EventTimes, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct EventTimes {
    utc_ns: u64,
    event_ns: u64,
}

struct PendingLevel {
    times: EventTimes,
    is_snapshot: bool,
    level: BookLevel,
}

impl<'a> EventReader<'a> {
    fn new(instrument: &'a str) -> Self {
        Self { instrument, level: None, clear: None, bid: None, ask: None, best: None }
    }

    fn read(&mut self, event: &HftEvent, intake: &mut Intake<'_>) -> Result<(), String> {
        if event.ev & EXCHANGE != 0 && event.ev & LOCAL == 0 {
            intake.counts.skip("events of the exchange's side");
            return Ok(());
        }
        let time = |ns: i64| u64::try_from(ns).map_err(|_| format!("the time {ns} is before 1970"));
        let times = EventTimes { utc_ns: time(event.local_ts)?, event_ns: time(event.exch_ts)? };
        match event.ev & KIND {
            DEPTH => self.read_level(event, times, false, intake),
            SNAPSHOT => self.read_level(event, times, true, intake),
            CLEAR => self.read_clear(event, times, intake),
            BEST => self.read_best(event, times, intake),
            TRADE => {
                let trade = Trade {
                    price: price(event.px, intake)?,
                    quantity: quantity(event.qty, intake)?,
                    trade_id: event.order_id,
                    event_ns: times.event_ns,
                    aggressor: side_of(event).map_or(0, Side::code),
                    ..Trade::default()
                };
                self.pass_on_all(intake)?;
                self.add(times, MarketMessage::Trade(trade), intake)
            }
            _ => {
                intake.counts.skip("events of other kinds");
                Ok(())
            }
        }
    }

    fn read_level(
        &mut self,
        event: &HftEvent,
        times: EventTimes,
        is_snapshot: bool,
        intake: &mut Intake<'_>,
    ) -> Result<(), String> {
        let side = side_of(event).ok_or("it has neither the flag of a bid nor that of an offer")?;
        let mut level = BookLevel {
            price: price(event.px, intake)?,
            quantity: quantity(event.qty, intake)?,
            event_ns: times.event_ns,
            sequence: event.order_id,
            side: side.code(),
            ..BookLevel::default()
        };
        self.pass_on_best(intake)?;
        if self.is_in_message(times, is_snapshot) {
            self.pass_on_level(false, intake)?;
        } else {
            self.pass_on_level(true, intake)?;
            if is_snapshot {
                level.flags = BookLevel::SNAPSHOT;
                self.clear = self.clear.filter(|(cleared, _)| *cleared != times);
            }
            self.pass_on_clear(intake)?;
        }
        self.level = Some(PendingLevel { times, is_snapshot, level });
        Ok(())
    }

    fn read_clear(&mut self, event: &HftEvent, times: EventTimes, intake: &mut Intake<'_>) -> Result<(), String> {
        self.pass_on_best(intake)?;
        // A snapshot clears the other side after the levels of the first.
        if self.is_in_message(times, true) {
            return Ok(());
        }
        self.pass_on_level(true, intake)?;
        let sides = match event.ev & (BUY | SELL) {
            0 => BUY | SELL,
            sides => sides,
        };
        let known = self.clear.filter(|(cleared, _)| *cleared == times).map_or(0, |(_, sides)| sides);
        if known == 0 {
            self.pass_on_clear(intake)?;
        }
        self.clear = Some((times, known | sides));
        Ok(())
    }

    fn read_best(&mut self, event: &HftEvent, times: EventTimes, intake: &mut Intake<'_>) -> Result<(), String> {
        let side = side_of(event).ok_or("it has neither the flag of a bid nor that of an offer")?;
        let quote = Some((price(event.px, intake)?, quantity(event.qty, intake)?));
        let flag = if side == Side::Buy { BUY } else { SELL };
        self.pass_on_level(true, intake)?;
        self.pass_on_clear(intake)?;
        if self.best.is_some_and(|(pending, sides)| pending != times || sides & flag != 0) {
            self.pass_on_best(intake)?;
        }
        match side {
            Side::Buy => self.bid = quote,
            Side::Sell => self.ask = quote,
        }
        let sides = self.best.map_or(0, |(_, sides)| sides) | flag;
        self.best = Some((times, sides));
        if sides == BUY | SELL { self.pass_on_best(intake) } else { Ok(()) }
    }

    /// A message that may have lost rows stays without its last level's flag: the book is incomplete after it.
    fn finish(&mut self, intake: &mut Intake<'_>) {
        let is_whole = !intake.counts.truncated;
        let passed = self.pass_on_level(is_whole, intake);
        let passed = passed.and_then(|()| self.pass_on_clear(intake)).and_then(|()| self.pass_on_best(intake));
        intake.end_row(passed);
    }

    fn is_in_message(&self, times: EventTimes, is_snapshot: bool) -> bool {
        self.level.as_ref().is_some_and(|before| (before.times, before.is_snapshot) == (times, is_snapshot))
    }

    fn pass_on_all(&mut self, intake: &mut Intake<'_>) -> Result<(), String> {
        self.pass_on_level(true, intake)?;
        self.pass_on_clear(intake)?;
        self.pass_on_best(intake)
    }

    fn pass_on_level(&mut self, is_last: bool, intake: &mut Intake<'_>) -> Result<(), String> {
        let Some(PendingLevel { times, mut level, .. }) = self.level.take() else { return Ok(()) };
        level.flags |= if is_last { BookLevel::LAST } else { 0 };
        self.add(times, MarketMessage::Level(level), intake)
    }

    /// Passes on a clear event that no snapshot follows: an empty book, unless it clears one side.
    fn pass_on_clear(&mut self, intake: &mut Intake<'_>) -> Result<(), String> {
        let Some((times, sides)) = self.clear.take() else { return Ok(()) };
        if sides != BUY | SELL {
            intake.counts.skip("clear events of one side");
            return Ok(());
        }
        let flags = BookLevel::SNAPSHOT | BookLevel::LAST;
        let level = BookLevel { event_ns: times.event_ns, flags, ..BookLevel::default() };
        self.add(times, MarketMessage::Level(level), intake)
    }

    fn pass_on_best(&mut self, intake: &mut Intake<'_>) -> Result<(), String> {
        let Some((times, _)) = self.best.take() else { return Ok(()) };
        let (Some((bid, bid_quantity)), Some((ask, ask_quantity))) = (self.bid, self.ask) else {
            intake.counts.skip("one-sided quotes");
            return Ok(());
        };
        let event_ns = times.event_ns;
        let top = TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, ..TopOfBook::default() };
        self.add(times, MarketMessage::Top(top), intake)
    }

    fn add(&self, times: EventTimes, message: MarketMessage, intake: &mut Intake<'_>) -> Result<(), String> {
        intake.add_named(times.utc_ns, self.instrument.as_bytes(), message)
    }
}

fn side_of(event: &HftEvent) -> Option<Side> {
    match (event.ev & BUY != 0, event.ev & SELL != 0) {
        (true, false) => Some(Side::Buy),
        (false, true) => Some(Side::Sell),
        _ => None,
    }
}

fn price(value: f64, intake: &mut Intake<'_>) -> Result<Price, String> {
    positive_price(units(value, intake)?)
}

fn quantity(value: f64, intake: &mut Intake<'_>) -> Result<Quantity, String> {
    match units(value, intake)? {
        units if units < 0 => Err(format!("the quantity {value} is below zero")),
        units => Ok(Quantity(units)),
    }
}

/// Rounds a value to units of 10⁻⁸.
fn units(value: f64, intake: &mut Intake<'_>) -> Result<i64, String> {
    let scaled = (value * SCALE as f64).round();
    if scaled.is_nan() || scaled.abs() >= i64::MAX as f64 {
        return Err(format!("{value} does not fit 64 bits at eight decimals"));
    }
    let lost = (scaled / SCALE as f64 - value).abs();
    intake.counts.inexact += u64::from(lost > value.abs() * 1e-9);
    Ok(scaled as i64)
}
