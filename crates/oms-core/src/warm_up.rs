//! Warm-up: an idle core reads the memory that the next order needs.

use std::hint::black_box;

use zerocopy::IntoBytes;

use crate::OrderView;
use crate::core::Core;
use crate::trading_config::TradingTotals;

/// Reads one byte of each cache line of some memory.
pub(crate) fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        black_box(line[0]);
    }
    black_box(bytes.last());
}

impl Core {
    /// Returns the newest order in memory.
    pub fn latest_order(&self) -> Option<OrderView> {
        self.orders.len().checked_sub(1).map(|slot| self.orders.get(slot).view())
    }

    /// Reads the memory that an order like this one would need if it were journaled next, so that it is in the cache:
    /// its slot, its index entries, account, instrument and position. Changes nothing, and no result depends on it.
    pub fn prefetch_order(&self, next: u64, like: &OrderView) {
        let (session, client) = (like.session, like.client_order_id.0.wrapping_add(1));
        self.orders.prefetch_next();
        self.by_id.prefetch(self.tag(0, self.id(crate::At { sequence: next, stamp: 0 })));
        self.by_client.prefetch(self.tag(session.into(), client));
        black_box(self.find_client(session, client));
        black_box(self.live.next(self.orders.len()));
        self.open.prefetch(&self.orders, session);
        if let Ok(entry) = self.trading.context(like.account, like.symbol) {
            prefetch(entry.limits.as_bytes());
            prefetch(entry.instrument.as_bytes());
            black_box((entry.open, entry.messages, entry.messages_today, entry.symbol_messages));
        }
        black_box(self.trading.is_entitled(session, like.account));
        black_box(self.position(like.account, like.symbol));
        black_box(self.routes.iter().nth(usize::from(like.venue.0)).is_some_and(|route| route.sends_at_once()));
        black_box((self.digest(), self.counts, self.gapped.len(), self.armed.len(), self.retries.has_no_rules()));
    }

    /// Removes all orders and their open values, and keeps the memory: for warm-up, whose orders are no client's.
    pub fn clear_orders(&mut self) {
        self.orders.clear();
        self.pending.clear();
        self.fills.clear();
        self.denied.clear();
        for index in [&mut self.by_id, &mut self.by_client, &mut self.by_exec] {
            index.clear();
        }
        self.live.clear();
        self.open.clear();
        for account in self.positions.flatten_all() {
            self.trading.change_totals(account, |open| *open = TradingTotals::default());
        }
        self.counts = crate::CoreCounts::default();
        self.gapped.clear();
        self.armed.clear();
        self.routes.iter_mut().for_each(|route| drop(route.waiting.drain()));
        self.rebuild_self_match();
    }
}
