//! Changes of a book between two times, as the streams of book updates send them.
//!
//! ```text
//!   book 7 ── changes ──> book 9 ── changes ──> book 10
//!            U=8, u=9              U=10, u=10
//! ```

use std::collections::BTreeMap;

use tickpath_market::{Price, Quantity, Side};

use crate::spot::SpotMarket;

/// Levels of a book: bids and offers.
type BookSides = [BTreeMap<Price, Quantity>; 2];

/// A book as it was sent last.
#[derive(Debug)]
pub(crate) struct DepthTracker {
    sequence: u64,
    sides: BookSides,
}

/// Changes of a book.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DepthUpdate {
    /// Number of the first change.
    pub(crate) first: u64,
    /// Number of the last change.
    pub(crate) last: u64,
    /// Changed bids and offers with their new quantities; zero for a level that is gone.
    pub(crate) sides: [Vec<(Price, Quantity)>; 2],
}

impl DepthTracker {
    /// Begins with the book as it is.
    pub(crate) fn new(spot: &SpotMarket, index: usize) -> Self {
        Self { sequence: spot.desk.book_sequence(index), sides: read_sides(spot, index) }
    }

    /// Returns the changes since the last call; none if the book is the same.
    pub(crate) fn update(&mut self, spot: &SpotMarket, index: usize) -> Option<DepthUpdate> {
        let last = spot.desk.book_sequence(index);
        if last == self.sequence {
            return None;
        }
        let now = read_sides(spot, index);
        let [bids, asks] = &now;
        let [former_bids, former_asks] = &self.sides;
        let sides = [changes(former_bids, bids), changes(former_asks, asks)];
        let first = self.sequence + 1;
        (self.sequence, self.sides) = (last, now);
        Some(DepthUpdate { first, last, sides })
    }
}

fn read_sides(spot: &SpotMarket, index: usize) -> BookSides {
    [Side::Buy, Side::Sell].map(|side| spot.desk.book(index, side).collect())
}

fn changes(before: &BTreeMap<Price, Quantity>, now: &BTreeMap<Price, Quantity>) -> Vec<(Price, Quantity)> {
    let gone = before.keys().filter(|price| !now.contains_key(*price)).map(|price| (*price, Quantity::ZERO));
    let changed = now.iter().filter(|(price, quantity)| before.get(*price) != Some(*quantity));
    gone.chain(changed.map(|(price, quantity)| (*price, *quantity))).collect()
}
