//! Warm-up: an idle core reads the memory that the next order needs.

use std::hint::black_box;

use zerocopy::IntoBytes;

use crate::OrderView;
use crate::core::Core;
use crate::desk::Open;

/// Reads one byte of each cache line of some memory.
pub(crate) fn look_at(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        black_box(line[0]);
    }
    black_box(bytes.last());
}

impl Core {
    /// Returns the newest order in memory.
    pub fn newest(&self) -> Option<OrderView> {
        self.orders.len().checked_sub(1).map(|slot| self.orders.get(slot).view())
    }

    /// Reads the memory that an order like this one would need if it were journaled next, so that it is in the cache:
    /// its slot, its index entries, account, instrument and position. Changes nothing, and no result depends on it.
    pub fn look_ahead(&self, next: u64, like: &OrderView) {
        let (session, client) = (like.session, like.client_order_id.0.wrapping_add(1));
        self.orders.look_ahead();
        self.by_id.look_at(self.tag(0, self.id(crate::At { sequence: next, stamp: 0 })));
        self.by_client.look_at(self.tag(session.into(), client));
        black_box(self.find_client(session, client));
        black_box(self.live.next(self.orders.len()));
        self.open.look_ahead(&self.orders, session);
        if let Ok(entry) = self.desk.entry(like.account, like.symbol) {
            look_at(entry.limits.as_bytes());
            look_at(entry.instrument.as_bytes());
            black_box((entry.open, entry.messages, entry.messages_today, entry.symbol_messages));
        }
        black_box(self.desk.is_entitled(session, like.account));
        black_box(self.position(like.account, like.symbol));
        black_box(self.routes.iter().nth(usize::from(like.venue.0)).is_some_and(|route| route.is_clear()));
        black_box((self.digest(), self.counts, self.gapped.len(), self.armed.len(), self.again.has_no_rules()));
    }

    /// Removes all orders and their open values, and keeps the memory: for warm-up, whose orders are no client's.
    pub fn forget_orders(&mut self) {
        self.orders.clear();
        self.asks.clear();
        self.fills.clear();
        self.denied.clear();
        for index in [&mut self.by_id, &mut self.by_client, &mut self.by_exec] {
            index.clear();
        }
        self.live.clear();
        self.open.empty();
        for account in self.positions.forget() {
            self.desk.change_open(account, |open| *open = Open::default());
        }
        self.counts = crate::Counts::default();
        self.gapped.clear();
        self.armed.clear();
        self.routes.iter_mut().for_each(|route| drop(route.waiting.take()));
        self.count_own();
    }
}
