//! Snapshots and updates of order books.

use tickpath_market::{Price, Quantity, Side, SymbolId};

/// A snapshot or an update of an order book.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BookUpdate<'a> {
    /// Instrument of the book.
    pub symbol: SymbolId,
    /// The levels are the whole book; otherwise they are changes.
    pub is_snapshot: bool,
    /// The snapshot comes from elsewhere than the updates, which may overlap it: updates up to its sequence number are
    /// dropped, and the first one after it may begin below it.
    pub may_overlap: bool,
    /// Sequence number that this update follows. Not read in a snapshot.
    pub previous: u64,
    /// Sequence number of the book after this update.
    pub sequence: u64,
    /// The exchange's own time, nanoseconds since the Unix epoch; zero if it sends none.
    pub event_ns: u64,
    /// Levels, bids and offers in any order.
    pub levels: &'a [LevelChange],
}

impl BookUpdate<'_> {
    /// Returns the update without its levels, for a holder that owns these.
    pub(crate) fn without_levels(&self) -> BookUpdate<'static> {
        let Self { symbol, is_snapshot, may_overlap, previous, sequence, event_ns, levels: _ } = *self;
        BookUpdate { symbol, is_snapshot, may_overlap, previous, sequence, event_ns, levels: &[] }
    }
}

/// New quantity of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelChange {
    /// Side of the book: buy for bids.
    pub side: Side,
    /// Price of the level.
    pub price: Price,
    /// New quantity; zero removes the level.
    pub quantity: Quantity,
}
