//! Messages of a frame, kept until the whole frame is read, so that a broken frame passes on nothing. The buffers are
//! reused: after the first frames nothing is allocated.

use std::ops::Range;

use tickpath_feed::{BookUpdate, LevelChange, MarketEvent};
use tickpath_market::{SymbolId, TopOfBook, Trade};

/// Messages of a frame.
#[derive(Debug, Default)]
pub(crate) struct MessageBatch {
    messages: Vec<BatchedMessage>,
    levels: Vec<LevelChange>,
    /// Number of levels that belong to a book already.
    taken: usize,
}

/// A message of the batch; the levels of a book are a range of the batch's levels.
#[derive(Debug)]
enum BatchedMessage {
    Quote(u64, TopOfBook),
    Trade(Trade),
    Book(BookHead, Range<usize>),
}

/// A snapshot or an update of a book, without its levels.
#[derive(Debug)]
pub(crate) struct BookHead {
    pub(crate) symbol: SymbolId,
    pub(crate) is_snapshot: bool,
    pub(crate) may_overlap: bool,
    pub(crate) previous: u64,
    pub(crate) sequence: u64,
    pub(crate) event_ns: u64,
}

impl MessageBatch {
    /// Empties the batch.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.levels.clear();
        self.taken = 0;
    }

    pub(crate) fn add_quote(&mut self, sequence: u64, quote: TopOfBook) {
        self.messages.push(BatchedMessage::Quote(sequence, quote));
    }

    pub(crate) fn add_trade(&mut self, trade: Trade) {
        self.messages.push(BatchedMessage::Trade(trade));
    }

    /// Adds a level of the next book.
    pub(crate) fn add_level(&mut self, level: LevelChange) {
        self.levels.push(level);
    }

    /// Adds a book with the levels that were added since the last book.
    pub(crate) fn add_book(&mut self, head: BookHead) {
        let levels = self.taken..self.levels.len();
        self.taken = levels.end;
        self.messages.push(BatchedMessage::Book(head, levels));
    }

    /// Passes on the messages in their order.
    pub(crate) fn pass_on(&self, take: &mut dyn FnMut(MarketEvent<'_>)) {
        for message in &self.messages {
            match message {
                BatchedMessage::Quote(sequence, quote) => take(MarketEvent::Quote { sequence: *sequence, quote }),
                BatchedMessage::Trade(trade) => take(MarketEvent::Trade(trade)),
                BatchedMessage::Book(head, levels) => take(MarketEvent::Book(BookUpdate {
                    symbol: head.symbol,
                    is_snapshot: head.is_snapshot,
                    may_overlap: head.may_overlap,
                    previous: head.previous,
                    sequence: head.sequence,
                    event_ns: head.event_ns,
                    levels: &self.levels[levels.clone()],
                })),
            }
        }
    }
}
