//! Order of a feed's messages: which connection brings a message first, and whether a book is complete.
//!
//! A wrapper of [`Race`] and [`BookOrder`] for the events of a feed.

use tickpath_feed::{BookOrder, BookStep, BookUpdate, MarketEvent, MessageKey, MessageStream, Race, RaceCounts};
use tickpath_market::SymbolId;

pub(super) struct MarketOrder {
    race: Race,
    books: BookOrder,
}

impl MarketOrder {
    pub fn new(connections: usize) -> Self {
        Self { race: Race::new(connections), books: BookOrder::new() }
    }

    pub fn connected(&mut self, connection: usize) {
        self.race.connected(connection);
    }

    pub fn disconnected(&mut self, connection: usize) {
        self.race.disconnected(connection);
    }

    /// Returns whether a message is to be taken from this connection, because it is the first of its kind. Snapshots do
    /// not race: one that is older than the last update may be the one that was requested.
    pub fn is_first(&mut self, connection: usize, event: &MarketEvent<'_>) -> bool {
        let (symbol, stream, sequence) = match event {
            MarketEvent::Quote { sequence, quote } => (quote.symbol, MessageStream::Quote, *sequence),
            MarketEvent::Trade(trade) => (trade.symbol, MessageStream::Trade, trade.trade_id),
            MarketEvent::Book(update) if !update.is_snapshot => (update.symbol, MessageStream::Book, update.sequence),
            MarketEvent::Book(_) | MarketEvent::Maintenance => return true,
        };
        self.race.is_first(connection, MessageKey { symbol, stream, sequence })
    }

    /// Takes a snapshot or an update of a book, and passes on the steps that follow from it.
    pub fn take_book(&mut self, update: BookUpdate<'_>, take: &mut dyn FnMut(BookStep<'_>)) {
        self.books.take(update, take);
    }

    /// Marks a book as incomplete: it is valid again after its next snapshot.
    pub fn invalidate(&mut self, symbol: SymbolId) {
        self.books.invalidate(symbol);
    }

    pub fn invalidate_all(&mut self) {
        self.books.invalidate_all();
    }

    /// Returns the counts of a connection's messages.
    pub fn counts(&self, connection: usize) -> RaceCounts {
        self.race.counts(connection)
    }
}
