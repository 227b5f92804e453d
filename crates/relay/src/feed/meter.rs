//! Totals of a carried feed: messages, losses, connections, and the delay of each stage.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

/// Longest delay that a histogram resolves, in nanoseconds: a minute.
const LONGEST_DELAY_NS: u64 = 60_000_000_000;

/// Digits of a delay: a histogram stays small enough to be copied between two messages.
const DELAY_DIGITS: u8 = 2;

/// Totals of a carried feed, readable from any thread. The carrier copies its totals here about once a second, and at
/// its end, so that no message waits for a reader.
#[derive(Debug, Default)]
pub struct FeedMeter(Mutex<FeedTotals>);

impl FeedMeter {
    /// Returns the totals that were copied last.
    pub fn totals(&self) -> FeedTotals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn store(&self, totals: &FeedTotals) {
        let copy = totals.clone();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = copy;
    }
}

/// Totals of a carried feed.
#[derive(Debug, Clone, Default)]
pub struct FeedTotals {
    /// Published messages: quotes, trades, levels of books, and events of the feed.
    pub messages: u64,
    /// Published best bids and offers.
    pub quotes: u64,
    /// Published trades.
    pub trades: u64,
    /// Published snapshots and updates of books; each is a message a level.
    pub book_updates: u64,
    /// Messages that the topic did not accept, or that stay in doubt.
    pub lost: u64,
    /// Gaps of books, also those of lost messages and lost connections.
    pub gaps: u64,
    /// Frames in the files of raw frames; known at the end.
    pub raw_frames: u64,
    /// Frames missing from the files of raw frames.
    pub raw_missing: u64,
    /// Messages whose exchange time lies after their arrival, by the two clocks.
    pub from_the_future: u64,
    /// Arrival times of the first and the last frame, in nanoseconds since the Unix epoch.
    pub span_utc_ns: Option<(u64, u64)>,
    /// Totals of each connection.
    pub connections: Vec<ConnectionTotals>,
    /// Time from the arrival of a frame's last packet in the kernel to the end of the read.
    pub wire_to_read: StageDelays,
    /// Time from the read of a frame to each of its parsed messages.
    pub read_to_parsed: StageDelays,
    /// Time from a parsed message to the end of its publication.
    pub parsed_to_published: StageDelays,
    /// Time from the exchange's own time of a message to its arrival, by two clocks: it includes their offset.
    pub event_to_arrival: StageDelays,
}

/// Totals of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionTotals {
    /// Attempts to connect.
    pub attempts: u64,
    /// Established connections: all beyond the first one are reconnects.
    pub established: u64,
    /// Frames.
    pub frames: u64,
    /// Frames that could not be read.
    pub bad_frames: u64,
    /// Messages, duplicates of another connection included.
    pub messages: u64,
    /// Messages that arrived here first while another connection was up.
    pub won: u64,
    /// Messages that arrived here first while no other connection was up.
    pub alone: u64,
    /// Last measured offset of the exchange's clock, exchange minus local, and the round trip of its measurement, in
    /// nanoseconds.
    pub clock_offset_ns: Option<(i64, u64)>,
}

impl ConnectionTotals {
    /// Returns the number of reconnects.
    pub fn reconnects(&self) -> u64 {
        self.established.saturating_sub(1)
    }
}

/// Delays of one stage, in nanoseconds, to one part in a hundred.
#[derive(Debug, Clone)]
pub struct StageDelays(Histogram<u64>);

impl Default for StageDelays {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_DELAY_NS, DELAY_DIGITS).expect("these bounds are possible"))
    }
}

impl StageDelays {
    /// Adds a delay; a negative one counts as zero.
    pub(super) fn add(&mut self, ns: i64) {
        self.0.saturating_record(ns.max(0) as u64);
    }

    /// Returns the number of delays.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns a quantile, in nanoseconds; `None` unless ten delays are expected above it.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.0.len() as f64 * (1.0 - quantile) >= 10.0).then(|| self.0.value_at_quantile(quantile))
    }

    /// Returns the longest delay, in nanoseconds; `None` if there is none.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }
}

impl fmt::Display for FeedTotals {
    /// Writes messages, losses and gaps in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        write!(f, "{} ({}, ", plural(self.messages, "message"), plural(self.quotes, "quote"))?;
        write!(f, "{}, {})", plural(self.trades, "trade"), plural(self.book_updates, "book update"))?;
        write!(f, ", {} lost, {}", self.lost, plural(self.gaps, "book gap"))?;
        let bad: u64 = self.connections.iter().map(|connection| connection.bad_frames).sum();
        if bad > 0 {
            write!(f, ", {}", plural(bad, "bad frame"))?;
        }
        if self.raw_missing > 0 {
            write!(f, ", {} missing from the file", plural(self.raw_missing, "frame"))?;
        }
        Ok(())
    }
}
