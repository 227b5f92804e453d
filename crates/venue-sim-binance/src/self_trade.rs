//! Self-trade prevention. The desk lets two orders of one account trade with each other, so the exchange looks at the
//! book before an order enters:
//!
//! ```text
//!   EXPIRE_MAKER   orders of the account that the new one would reach are ended first
//!   EXPIRE_TAKER   the new order trades with the prices before the account's own order, and its rest is ended
//!   EXPIRE_BOTH    as EXPIRE_TAKER, and the account's own order is ended too
//! ```
//!
//! An order at the same price as the account's own order counts as behind it. The account's own orders are ended also
//! if the desk then refuses the new one.

use std::collections::BTreeMap;

use tickpath_market::{Price, Quantity, Side};

use crate::ledger::SpotOrder;
use crate::spot::SpotMarket;

/// Effects of self-trade prevention before an order enters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SelfTradePlan {
    /// Own orders that end.
    pub(crate) ending_makers: Vec<u64>,
    /// The own order at which the new one stops, and the last price before it.
    pub(crate) stop: Option<(u64, Price)>,
}

/// An order that is about to enter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnteringOrder {
    pub(crate) account: usize,
    pub(crate) instrument: usize,
    pub(crate) side: Side,
    /// None for a market order.
    pub(crate) limit: Option<Price>,
    pub(crate) quantity: Quantity,
}

impl SelfTradePlan {
    /// Returns the plan for an order with this mode.
    pub(crate) fn of(spot: &SpotMarket, order: &EnteringOrder, mode: &str) -> Self {
        let mut reached = reached_makers(spot, order);
        match mode {
            "EXPIRE_MAKER" => Self { ending_makers: reached.into_iter().map(|(id, _)| id).collect(), stop: None },
            "EXPIRE_TAKER" | "EXPIRE_BOTH" if !reached.is_empty() => {
                let (id, price) = reached.swap_remove(0);
                let step = spot.instrument(order.instrument).tick.0.max(1);
                let before = match order.side {
                    Side::Buy => Price(price.0 - step),
                    Side::Sell => Price(price.0 + step),
                };
                let ending_makers = if mode == "EXPIRE_BOTH" { vec![id] } else { Vec::new() };
                Self { ending_makers, stop: Some((id, before)) }
            }
            _ => Self::default(),
        }
    }
}

/// Returns the account's own orders that an order would trade with, the best price first.
fn reached_makers(spot: &SpotMarket, order: &EnteringOrder) -> Vec<(u64, Price)> {
    let is_crossed = |maker: &&SpotOrder| {
        let crosses = order.limit.is_none_or(|limit| match order.side {
            Side::Buy => maker.terms.price <= limit,
            Side::Sell => maker.terms.price >= limit,
        });
        maker.instrument == order.instrument && maker.side != order.side && crosses
    };
    let mut own: BTreeMap<i64, Vec<&SpotOrder>> = BTreeMap::new();
    for maker in spot.ledger.open(order.account).filter(is_crossed) {
        own.entry(distance(order.side, maker.terms.price)).or_default().push(maker);
    }
    let mut reached = Vec::new();
    let mut ahead = 0;
    for (price, quantity) in spot.desk.book(order.instrument, order.side.opposite()) {
        if ahead >= order.quantity.0 {
            break;
        }
        let makers = own.remove(&distance(order.side, price)).unwrap_or_default();
        let mine: i64 = makers.iter().map(|maker| maker.quantity.0 - maker.filled.0).sum();
        reached.extend(makers.iter().map(|maker| (maker.id, maker.terms.price)));
        ahead = ahead.saturating_add(quantity.0 - mine);
    }
    reached
}

/// Returns a price such that the best price for a taker of this side is the least.
fn distance(side: Side, price: Price) -> i64 {
    match side {
        Side::Buy => price.0,
        Side::Sell => -price.0,
    }
}
