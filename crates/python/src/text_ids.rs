//! Text ids of a session's orders, by the OMS's id of the order.

use std::collections::{HashMap, VecDeque};

use tickpath_market::TextId;

/// Max orders whose text ids are kept, so that memory does not grow with the session's orders.
pub const MAX_TEXT_IDS: usize = 1 << 16;

/// Text ids of the latest orders that have one.
#[derive(Default)]
pub struct TextIds {
    by_order: HashMap<u64, TextId>,
    /// Orders in `by_order`, in the order of their first reports.
    orders: VecDeque<u64>,
}

impl TextIds {
    /// Adds the text id of an order. Drops that of the oldest order beyond [`MAX_TEXT_IDS`].
    pub fn insert(&mut self, order: u64, text_id: TextId) {
        if self.by_order.insert(order, text_id).is_some() {
            return;
        }
        self.orders.push_back(order);
        if self.orders.len() > MAX_TEXT_IDS
            && let Some(oldest) = self.orders.pop_front()
        {
            self.by_order.remove(&oldest);
        }
    }

    /// Returns the text id of an order, if it is kept.
    pub fn get(&self, order: u64) -> Option<TextId> {
        self.by_order.get(&order).copied()
    }
}
