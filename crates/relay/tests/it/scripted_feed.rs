//! A feed that a test writes: frames of text, losses, and the calls that the carrier makes.
//!
//! ```text
//!   q 1 20 500           quote of instrument 1, sequence number 20, bid 500
//!   t 1 30 500           trade 30
//!   s 1 7 b500:2 a501:3  snapshot of a book at 7, with a bid and an offer
//!   u 1 7 8 b500:0       update of the book from 7 to 8
//!   m                    announced maintenance
//!   q 1 20 500.5         a price that does not fit
//! ```

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{
    Arrival, BookUpdate, Feed, FeedEvent, FeedLost, Frame, FrameError, FrameParser, LevelChange, MarketEvent,
};
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

/// The script of a connection, and what the carrier has asked for.
#[derive(Default)]
pub struct FeedScript(Mutex<ScriptState>);

#[derive(Default)]
pub struct ScriptState {
    pub steps: VecDeque<ScriptStep>,
    /// Number of connects.
    pub connects: u64,
    /// Requested snapshots.
    pub requests: Vec<SymbolId>,
}

pub enum ScriptStep {
    Frame(String),
    /// A frame of binary data with the same text.
    Binary(String),
    Lost(&'static str),
    /// Offset of the exchange's clock, in nanoseconds.
    ClockOffset(i64),
}

impl FeedScript {
    pub fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, frame: &str) {
        self.state().steps.push_back(ScriptStep::Frame(frame.to_owned()));
    }

    pub fn push_step(&self, step: ScriptStep) {
        self.state().steps.push_back(step);
    }
}

/// A connection that follows its script: it is up at once.
pub struct ScriptedFeed {
    script: Arc<FeedScript>,
    parser: ScriptParser,
    clock: HostClock,
    is_open: bool,
    is_new: bool,
}

impl ScriptedFeed {
    pub fn new(script: Arc<FeedScript>) -> Self {
        let clock = HostClock::get().expect("the host has a clock");
        Self { script, parser: ScriptParser, clock, is_open: false, is_new: false }
    }

    fn pass_frame(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(FeedEvent<'_>)) {
        let read = self.clock.ticks();
        take(FeedEvent::Frame(frame, Arrival { wire: read - 1, read }));
        let parsed = self.parser.parse(frame, &mut |event| take(FeedEvent::Market(event)));
        if let Err(error) = parsed {
            take(FeedEvent::BadFrame(&error));
        }
    }
}

impl Feed for ScriptedFeed {
    fn address(&self) -> String {
        "script".to_owned()
    }

    fn connect(&mut self) {
        self.script.state().connects += 1;
        (self.is_open, self.is_new) = (true, true);
    }

    fn poll(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, FeedLost> {
        if std::mem::take(&mut self.is_new) {
            take(FeedEvent::Up);
            return Ok(1);
        }
        let step = if self.is_open { self.script.state().steps.pop_front() } else { None };
        match step {
            None => return Ok(0),
            Some(ScriptStep::Frame(text)) => self.pass_frame(Frame::Text(text.as_bytes()), take),
            Some(ScriptStep::Binary(text)) => self.pass_frame(Frame::Binary(text.as_bytes()), take),
            Some(ScriptStep::ClockOffset(offset_ns)) => take(FeedEvent::ClockOffset { offset_ns, round_trip_ns: 10 }),
            Some(ScriptStep::Lost(why)) => {
                self.is_open = false;
                return Err(FeedLost(why.to_owned()));
            }
        }
        Ok(1)
    }

    fn resynchronize(&mut self, symbol: SymbolId) {
        self.script.state().requests.push(symbol);
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Parser of the script's frames.
pub struct ScriptParser;

impl FrameParser for ScriptParser {
    fn parse(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(MarketEvent<'_>)) -> Result<(), FrameError> {
        let (Frame::Text(bytes) | Frame::Binary(bytes)) = frame;
        let malformed = || FrameError::Malformed { bytes: bytes.len(), why: "it is no line of a script".to_owned() };
        let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| malformed());
        match words[..] {
            ["m"] => take(MarketEvent::Maintenance),
            ["q", symbol, sequence, bid] => {
                let (symbol, sequence) = (SymbolId(number(symbol)? as u32), number(sequence)?);
                let misfit = || FrameError::Number {
                    instrument: format!("instrument {symbol}"),
                    symbol,
                    field: "bid",
                    text: bid.to_owned(),
                    decimals: 0,
                };
                if bid.contains('.') {
                    return Err(misfit());
                }
                let bid = Price(number(bid)? as i64);
                take(MarketEvent::Quote {
                    sequence,
                    quote: &TopOfBook { symbol, bid, event_ns: 1, ..Default::default() },
                });
            }
            ["t", symbol, trade_id, price] => {
                let (symbol, trade_id) = (SymbolId(number(symbol)? as u32), number(trade_id)?);
                let price = Price(number(price)? as i64);
                take(MarketEvent::Trade(&Trade { symbol, trade_id, price, ..Default::default() }));
            }
            ["s", symbol, sequence, ref levels @ ..] => {
                let numbers = (number(symbol)?, 0, number(sequence)?);
                let levels = parse_levels(levels).ok_or_else(malformed)?;
                take(MarketEvent::Book(book_update(numbers, true, &levels)));
            }
            ["u", symbol, previous, sequence, ref levels @ ..] => {
                let numbers = (number(symbol)?, number(previous)?, number(sequence)?);
                let levels = parse_levels(levels).ok_or_else(malformed)?;
                take(MarketEvent::Book(book_update(numbers, false, &levels)));
            }
            _ => return Err(malformed()),
        }
        Ok(())
    }
}

fn book_update(
    (symbol, previous, sequence): (u64, u64, u64),
    is_snapshot: bool,
    levels: &[LevelChange],
) -> BookUpdate<'_> {
    let symbol = SymbolId(symbol as u32);
    BookUpdate { symbol, is_snapshot, may_overlap: false, previous, sequence, event_ns: 0, levels }
}

fn parse_levels(words: &[&str]) -> Option<Vec<LevelChange>> {
    let level = |word: &&str| {
        let (side, rest) = match word.split_at_checked(1)? {
            ("b", rest) => (Side::Buy, rest),
            ("a", rest) => (Side::Sell, rest),
            _ => return None,
        };
        let (price, quantity) = rest.split_once(':')?;
        Some(LevelChange { side, price: Price(price.parse().ok()?), quantity: Quantity(quantity.parse().ok()?) })
    };
    words.iter().map(level).collect()
}
