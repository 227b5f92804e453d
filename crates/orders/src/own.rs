//! The prices of an account's own open orders, where it must not trade with itself.

use std::collections::BTreeMap;

use tickpath_market::{OrderType, Side};

use crate::order::Order;

/// Open orders by position, side and price: how many there are. Empty if no account asks for it.
#[derive(Default)]
pub(crate) struct OwnOrders {
    is_kept: bool,
    orders: BTreeMap<(u32, u8, i64), u32>,
}

impl OwnOrders {
    /// None yet; they are kept from now on.
    pub(crate) fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Notes an open order, with the price that a replace on its way asks for.
    pub(crate) fn note(&mut self, order: &Order, replacing: Option<i64>) {
        for key in keys(order, replacing) {
            *self.orders.entry(key).or_default() += 1;
        }
    }

    /// Takes out what was noted so.
    pub(crate) fn forget(&mut self, order: &Order, replacing: Option<i64>) {
        for key in keys(order, replacing) {
            if let Some(count) = self.orders.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.orders.remove(&key);
                }
            }
        }
    }

    /// The price of the best order on the other side that one of this side at this price would meet.
    pub(crate) fn met(&self, position: u32, side: Side, price: i64) -> Option<i64> {
        let key = |price| (position, side.opposite().code(), price);
        let met = match side {
            Side::Buy => self.orders.range(key(i64::MIN)..=key(price)).next(),
            Side::Sell => self.orders.range(key(price)..=key(i64::MAX)).next_back(),
        };
        met.map(|(&(_, _, price), _)| price)
    }
}

/// The worst price at which an order may trade, if it has this limit.
pub(crate) fn worst(order_type: OrderType, side: Side, limit: i64) -> i64 {
    match (order_type, side) {
        (OrderType::Limit, _) => limit,
        (OrderType::Market, Side::Buy) => i64::MAX,
        (OrderType::Market, Side::Sell) => i64::MIN,
    }
}

fn keys(order: &Order, replacing: Option<i64>) -> impl Iterator<Item = (u32, u8, i64)> {
    let Order { position, side, order_type, valued, .. } = *order;
    [Some(valued), replacing]
        .into_iter()
        .flatten()
        .map(move |limit| (position, side.code(), worst(order_type, side, limit)))
}
