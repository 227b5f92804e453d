//! Validation of new orders: their terms, and whether the venue can accept them.

use tickpath_market::{
    NewOrder, OrderId, OrderType, Price, Quantity, SelfTradeMode, Side, TimeInForce, TradeMode, VenueOrderId,
};

use crate::{BookOrder, RejectReason};

/// Terms of a new order, read from its codes.
pub(crate) struct OrderTerms {
    pub side: Side,
    pub time_in_force: TimeInForce,
    pub remainder: RemainderPolicy,
}

/// Fate of the part of an order that does not fill at once.
#[derive(PartialEq, Eq)]
pub(crate) enum RemainderPolicy {
    Rests,
    Expires,
    /// The order expires without any fill unless it can fill completely.
    FillOrExpire,
}

impl OrderTerms {
    /// Returns the order that the venue accepts on these terms.
    pub fn order(&self, new: &NewOrder, venue_order_id: VenueOrderId) -> BookOrder {
        BookOrder {
            id: OrderId(new.client_order_id.0),
            venue_order_id,
            price: new.price,
            quantity: new.quantity,
            filled: Quantity::ZERO,
            events: 0,
            account: new.account,
            side: self.side,
            time_in_force: self.time_in_force,
            is_post_only: is_post_only(new),
        }
    }
}

/// Reads the terms of a new order, or the reason for its rejection at a venue with this number of symbols.
pub(crate) fn read_terms(new: &NewOrder, symbols: usize) -> Result<OrderTerms, RejectReason> {
    new.check().map_err(|_| RejectReason::UnknownCode)?;
    let side = Side::from_code(new.side).ok_or(RejectReason::UnknownCode)?;
    let order_type = OrderType::from_code(new.order_type).ok_or(RejectReason::UnknownCode)?;
    let time_in_force = TimeInForce::from_code(new.time_in_force).ok_or(RejectReason::UnknownCode)?;
    if new.symbol.0 as usize >= symbols {
        return Err(RejectReason::UnknownSymbol);
    }
    match order_type {
        OrderType::Limit => limit_and_quantity(new.price, new.quantity)?,
        OrderType::Market if new.quantity <= Quantity::ZERO => return Err(RejectReason::Quantity),
        OrderType::Market if new.price != Price::ZERO => return Err(RejectReason::Price),
        OrderType::Market => {}
    }
    if has_unsupported_terms(new) {
        return Err(RejectReason::Unsupported);
    }
    let remainder = match (time_in_force, order_type) {
        (TimeInForce::FillOrKill, _) => RemainderPolicy::FillOrExpire,
        (TimeInForce::ImmediateOrCancel, _) | (_, OrderType::Market) => RemainderPolicy::Expires,
        (TimeInForce::Day | TimeInForce::GoodTillCancel, OrderType::Limit) => RemainderPolicy::Rests,
        // A plain order has no end time: its check has refused it.
        (TimeInForce::GoodTillDate, OrderType::Limit) => return Err(RejectReason::UnknownCode),
    };
    if is_post_only(new) && remainder != RemainderPolicy::Rests {
        return Err(RejectReason::PostOnly);
    }
    Ok(OrderTerms { side, time_in_force, remainder })
}

/// Rejects a limit or a quantity that is not above zero.
pub(crate) fn limit_and_quantity(price: Price, quantity: Quantity) -> Result<(), RejectReason> {
    if quantity <= Quantity::ZERO {
        return Err(RejectReason::Quantity);
    }
    if price <= Price::ZERO {
        return Err(RejectReason::Price);
    }
    Ok(())
}

fn is_post_only(new: &NewOrder) -> bool {
    new.instructions & NewOrder::POST_ONLY != 0
}

/// Returns whether an order has an instruction or a mode that needs a position, a margin or the owner's other orders.
fn has_unsupported_terms(new: &NewOrder) -> bool {
    new.instructions & NewOrder::REDUCE_ONLY != 0
        || new.self_trade_mode != SelfTradeMode::Default.code()
        || new.trade_mode != TradeMode::Default.code()
}
