//! Recordings of market data, and their replay.
//!
//! A recording is text, plain or gzip, one message a line: `LOCAL_NS JSON`, the local receive time in nanoseconds since
//! the Unix epoch, then the exchange's own message as it came, in the form of the Binance futures streams:
//!
//! ```text
//! 1704067200001234567 {"stream":"synusdt@bookTicker","data":{"e":"bookTicker","s":"SYNUSDT","b":"61800.20",…}}
//! ```
//!
//! `bookTicker` and `trade` messages become ticks, depth is skipped and counted, and a line that is no message is
//! counted and named by its number. All of it is parsed before the first tick is handed out, so that a measurement
//! that replays a recording measures no parsing.

mod feed;
mod recording;
mod schedule;
mod synthetic;

use std::fmt;

use zerocopy::IntoBytes;

use crate::{Kind, Symbol, TopOfBook, Trade};

pub use recording::RecordingError;
pub use schedule::{Pace, PaceError, Schedule};

/// A parsed recording, ready to be replayed.
///
/// ```
/// use tickpath_market::replay::{Event, Pace, Recording};
///
/// let recording = Recording::synthetic(1, 1_000);
/// for (offset_ns, event) in recording.schedule(Pace::Fixed { per_second: 500.0 }, false)? {
///     assert_eq!(offset_ns % 2_000_000, 0);
///     if let Event::Top(top) = event {
///         assert!(top.bid < top.ask);
///     }
/// }
/// # Ok::<(), tickpath_market::replay::PaceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The ticks in the order of the file; their times never go back.
    pub events: Vec<Recorded>,
    /// The instruments in the order of their first tick; a [`crate::SymbolId`] in a tick is an index into it.
    pub symbols: Vec<Symbol>,
    /// What was read and what was left out.
    pub tally: Tally,
}

/// A tick and when it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Local receive time, nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// The tick.
    pub event: Event,
}

/// A tick: what a market data feed says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The best bid and offer changed.
    Top(TopOfBook),
    /// A trade happened.
    Trade(Trade),
}

impl Event {
    /// The frame kind of this tick.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Top(_) => Kind::TopOfBook,
            Self::Trade(_) => Kind::Trade,
        }
    }

    /// The bytes of this tick, as they lie in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Top(top) => top.as_bytes(),
            Self::Trade(trade) => trade.as_bytes(),
        }
    }
}

/// What the lines of a recording were. Every line is counted in exactly one of tops, trades, skipped and bad.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// All lines.
    pub lines: u64,
    /// `bookTicker` messages.
    pub tops: u64,
    /// `trade` messages.
    pub trades: u64,
    /// Depth updates and depth snapshots.
    pub skipped_depth: u64,
    /// Messages of other streams.
    pub skipped_other: u64,
    /// Lines that are no message.
    pub bad: u64,
    /// The first ten bad lines: the line number, from 1, and what is wrong with it.
    pub bad_lines: Vec<(u64, String)>,
    /// Ticks whose receive time lay before that of an earlier tick; they keep their place and get the earlier time.
    pub backwards: u64,
    /// The input ended before its gzip stream did; what came until then is kept.
    pub truncated: bool,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, tops, trades, skipped_depth, skipped_other, bad, .. } = self;
        write!(f, "{lines} lines: {tops} tops of book, {trades} trades, ")?;
        write!(f, "{skipped_depth} depth and {skipped_other} other messages skipped, {bad} bad")?;
        for (number, why) in &self.bad_lines {
            write!(f, "; line {number}: {why}")?;
        }
        if self.backwards > 0 {
            write!(f, "; {} ticks with a time that went back", self.backwards)?;
        }
        if self.truncated {
            write!(f, "; cut off before the end of its gzip stream")?;
        }
        Ok(())
    }
}
