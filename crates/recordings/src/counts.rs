//! Counts of a file's rows and messages.

use std::collections::BTreeMap;
use std::fmt;

/// Max bad rows that are listed; all are counted.
const MAX_LISTED_BAD_ROWS: usize = 10;
/// Max length of a bad row's reason, which may quote the row.
const REASON_LIMIT_CHARS: usize = 160;

/// Counts of a file's rows, and of the messages made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportCounts {
    /// Noun for a row of the file: `line`, `event` or `record`.
    pub unit: &'static str,
    /// All rows, a line of names included.
    pub rows: u64,
    /// Best bids and offers.
    pub tops: u64,
    /// Trades.
    pub trades: u64,
    /// Levels of order books.
    pub levels: u64,
    /// Rows that are no message here, by their kind.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Rows that cannot be read.
    pub bad: u64,
    /// The first ten bad rows: the number, from 1, and the reason.
    pub bad_rows: Vec<(u64, String)>,
    /// Messages with a receive time before that of an earlier message; they keep their place and get the earlier
    /// message's time.
    pub out_of_order: u64,
    /// Prices and quantities of the file that were rounded to eight decimals by more than one part in 10⁹.
    pub inexact: u64,
    /// The file ended before its compressed stream, its array or its last record did; the part before is kept.
    pub truncated: bool,
}

impl ImportCounts {
    pub(crate) fn new(unit: &'static str) -> Self {
        Self {
            unit,
            rows: 0,
            tops: 0,
            trades: 0,
            levels: 0,
            skipped: BTreeMap::new(),
            bad: 0,
            bad_rows: Vec::new(),
            out_of_order: 0,
            inexact: 0,
            truncated: false,
        }
    }

    /// Returns the number of messages.
    pub fn messages(&self) -> u64 {
        self.tops + self.trades + self.levels
    }

    /// Counts the current row as no message.
    pub(crate) fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    /// Counts the current row as bad.
    pub(crate) fn add_bad(&mut self, why: &str) {
        self.bad += 1;
        if self.bad_rows.len() < MAX_LISTED_BAD_ROWS {
            self.bad_rows.push((self.rows, why.chars().take(REASON_LIMIT_CHARS).collect()));
        }
    }
}

impl fmt::Display for ImportCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, rows, tops, trades, levels, skipped, bad, .. } = self;
        write!(f, "{rows} {unit}s: {tops} tops of book, {trades} trades, {levels} levels, ")?;
        for (kind, count) in skipped {
            write!(f, "{count} {kind} skipped, ")?;
        }
        write!(f, "{bad} bad")?;
        for (number, why) in &self.bad_rows {
            write!(f, "; {unit} {number}: {why}")?;
        }
        if self.out_of_order > 0 {
            write!(f, "; {} messages with a time that went back", self.out_of_order)?;
        }
        if self.inexact > 0 {
            write!(f, "; {} values rounded to eight decimals", self.inexact)?;
        }
        if self.truncated {
            write!(f, "; cut off before its end")?;
        }
        Ok(())
    }
}
