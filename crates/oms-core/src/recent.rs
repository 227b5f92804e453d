//! Latest orders of an account, kept for the duration of its duplicate check.

use std::collections::{HashMap, VecDeque};

use tickpath_market::{OrderType, Side, SymbolId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::order::Order;

/// Fields in which two orders agree that count as duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Like {
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
    pub(crate) like: Like,
    pub(crate) stamp: u64,
}

/// Accepted orders by time, with the latest time of each kind.
#[derive(Default)]
pub(crate) struct Recent {
    orders: VecDeque<RecentOrder>,
    last: HashMap<Like, u64>,
}

impl Like {
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

impl Recent {
    /// Returns when the latest order like this one was accepted.
    pub(crate) fn find(&self, like: &Like) -> Option<u64> {
        self.last.get(like).copied()
    }

    /// Notes an order, and drops those that are too old to matter.
    pub(crate) fn note(&mut self, order: RecentOrder, is_old: impl Fn(u64) -> bool) {
        while let Some(first) = self.orders.pop_front_if(|first| is_old(first.stamp)) {
            if self.last.get(&first.like) == Some(&first.stamp) {
                self.last.remove(&first.like);
            }
        }
        self.last.insert(order.like, order.stamp);
        self.orders.push_back(order);
    }

    /// Returns all kept orders, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecentOrder> {
        self.orders.iter()
    }
}
