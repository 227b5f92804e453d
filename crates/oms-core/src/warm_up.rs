//! Memory for the next orders: spare pages, and a warm-up that reads what the next order needs.

use std::hint::black_box;

use zerocopy::IntoBytes;

use crate::OrderView;
use crate::core::Core;
use crate::counts::CoreCounts;
use crate::spare_page::SparePage;
use crate::trading_config::TradingTotals;

/// Reads one byte of each cache line of some memory.
fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        black_box(line[0]);
    }
    black_box(bytes.last());
}

impl Core {
    /// Returns whether the core will need a [`SparePage`] soon. Without one the core builds its own when it needs it.
    pub fn needs_page(&self) -> bool {
        self.orders.needs_page()
    }

    /// Adds memory for the next orders. The results are the same with and without it.
    pub fn add_page(&mut self, page: SparePage) {
        self.orders.add_page(page);
    }

    /// Returns the newest order in memory.
    pub fn latest_order(&self) -> Option<OrderView> {
        self.orders.len().checked_sub(1).map(|slot| self.orders.get(slot).view())
    }

    /// Reads the memory that an order like this one would need if it were journaled next, so that it is in the cache:
    /// its slot, its index entries, account, instrument and position. Changes nothing, and no result depends on it.
    pub fn prefetch_order(&self, next: u64, like: &OrderView) {
        let (id, client) = (self.ids.id(next), like.client_order_id.0.wrapping_add(1));
        self.orders.prefetch(id, like.session, client);
        if let Ok(entry) = self.trading.context(like.account, like.symbol) {
            prefetch(entry.limits.as_bytes());
            prefetch(entry.instrument.as_bytes());
            black_box((entry.open, entry.messages, entry.messages_today, entry.symbol_messages));
        }
        black_box(self.trading.is_entitled(like.session, like.account));
        black_box(self.position(like.account, like.symbol));
        black_box(self.venues.find(like.venue).is_some_and(|venue| venue.sends_at_once()));
        black_box((self.digest(), self.counts, self.gaps.len(), self.triggers.len(), self.retries.rules.is_empty()));
    }

    /// Removes all orders and their open values, and keeps the memory: for warm-up, whose orders are no client's.
    pub fn clear_orders(&mut self) {
        self.orders.clear();
        for account in self.positions.flatten_all() {
            self.trading.change_totals(account, |open| *open = TradingTotals::default());
        }
        self.counts = CoreCounts::default();
        self.gaps.clear();
        self.triggers.clear();
        self.venues.drain_waiting();
        self.rebuild_self_match();
    }
}
