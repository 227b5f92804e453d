//! Latest orders of an account, kept for the duration of its duplicate check.

use std::collections::{HashMap, VecDeque};

use tickpath_market::{OrderType, Side, SymbolId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;

/// Fields in which two orders agree that count as duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DuplicateKey {
    price: i64,
    quantity: i64,
    symbol: SymbolId,
    side: u8,
    order_type: u8,
    reserved: u16,
}

/// Accepted order with its time, in ticks.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RecentOrder {
    pub(crate) key: DuplicateKey,
    pub(crate) stamp: u64,
}

/// Accepted orders by time, with the latest time of each kind.
#[derive(Default)]
pub(crate) struct RecentOrders {
    orders: VecDeque<RecentOrder>,
    latest: HashMap<DuplicateKey, u64>,
}

impl DuplicateKey {
    pub(crate) fn of(order: &Order) -> Self {
        Self {
            price: if order.order_type == OrderType::Market { 0 } else { order.price },
            quantity: order.quantity,
            symbol: order.symbol,
            side: match order.side {
                Side::Buy => 1,
                Side::Sell => 2,
            },
            order_type: order.order_type.code(),
            reserved: 0,
        }
    }
}

impl RecentOrders {
    /// Returns when the latest order like this one was accepted.
    pub(crate) fn find(&self, like: &DuplicateKey) -> Option<u64> {
        self.latest.get(like).copied()
    }

    /// Notes an order, and drops those that are too old to matter.
    pub(crate) fn add(&mut self, order: RecentOrder, is_old: impl Fn(u64) -> bool) {
        while let Some(first) = self.orders.pop_front_if(|first| is_old(first.stamp)) {
            if self.latest.get(&first.key) == Some(&first.stamp) {
                self.latest.remove(&first.key);
            }
        }
        self.latest.insert(order.key, order.stamp);
        self.orders.push_back(order);
    }

    /// Returns all kept orders, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecentOrder> {
        self.orders.iter()
    }
}
