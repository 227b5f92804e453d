//! Prices of an account's own open orders, for self-match prevention.

use std::collections::BTreeMap;

use tickpath_market::{OrderType, Side};

use crate::order::Order;

/// Number of open orders by position, side and price. Empty if no account has self-match prevention.
#[derive(Default)]
pub(crate) struct SelfMatchBook {
    pub(crate) is_enabled: bool,
    orders: BTreeMap<(u32, u8, i64), u32>,
}

impl SelfMatchBook {
    /// Adds an open order at its price and at the price that its pending replace asks for.
    pub(crate) fn add(&mut self, order: &Order, replacing: Option<i64>) {
        for key in keys(order, replacing) {
            *self.orders.entry(key).or_default() += 1;
        }
    }

    /// Removes an order that was added with these prices.
    pub(crate) fn remove(&mut self, order: &Order, replacing: Option<i64>) {
        for key in keys(order, replacing) {
            if let Some(count) = self.orders.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.orders.remove(&key);
                }
            }
        }
    }

    /// Returns the price of the best opposite order that an order of this side and price would trade with.
    pub(crate) fn best_match(&self, position: u32, side: Side, price: i64) -> Option<i64> {
        let key = |price| (position, side.opposite().code(), price);
        let met = match side {
            Side::Buy => self.orders.range(key(i64::MIN)..=key(price)).next(),
            Side::Sell => self.orders.range(key(price)..=key(i64::MAX)).next_back(),
        };
        met.map(|(&(_, _, price), _)| price)
    }
}

/// Returns the worst price at which an order with this limit may trade.
pub(crate) fn worst_price(order_type: OrderType, side: Side, limit: i64) -> i64 {
    match (order_type, side) {
        (OrderType::Limit, _) => limit,
        (OrderType::Market, Side::Buy) => i64::MAX,
        (OrderType::Market, Side::Sell) => i64::MIN,
    }
}

fn keys(order: &Order, replacing: Option<i64>) -> impl Iterator<Item = (u32, u8, i64)> {
    let Order { position, side, order_type, valuation_price: valued, .. } = *order;
    [Some(valued), replacing]
        .into_iter()
        .flatten()
        .map(move |limit| (position, side.code(), worst_price(order_type, side, limit)))
}
