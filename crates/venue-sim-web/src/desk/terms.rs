//! Checks of an order's terms against its instrument alone.

use tickpath_market::{OrderType, Price, Quantity, Side, SymbolId};
use tickpath_venue_sim::RejectReason;

use super::ledger::value_rounded_up;
use super::listing::SimInstrument;
use super::order::DeskRefusal;

/// Terms of an order that an account must be able to pay.
pub(super) struct PaidTerms {
    pub account: usize,
    pub instrument: usize,
    pub side: Side,
    /// Zero for a market order.
    pub price: Price,
    pub open: Quantity,
    /// Amount that the order reserves already.
    pub reserved: i128,
}

/// Checks price and quantity of an order.
pub(super) fn check_terms(
    listing: &SimInstrument,
    order_type: OrderType,
    price: Price,
    quantity: Quantity,
) -> Result<(), DeskRefusal> {
    if quantity <= Quantity::ZERO || !fits(listing, price, quantity) {
        return Err(DeskRefusal::Other(RejectReason::Quantity));
    }
    match order_type {
        OrderType::Limit if price <= Price::ZERO => return Err(DeskRefusal::Other(RejectReason::Price)),
        OrderType::Market if price != Price::ZERO => return Err(DeskRefusal::Other(RejectReason::Price)),
        OrderType::Limit | OrderType::Market => {}
    }
    if !is_multiple(price.0, listing.tick.0) {
        return Err(DeskRefusal::Tick);
    }
    if !is_multiple(quantity.0, listing.lot.0) {
        return Err(DeskRefusal::Lot);
    }
    if quantity < listing.minimum { Err(DeskRefusal::Minimum) } else { Ok(()) }
}

/// Returns whether the value of a quantity is in the range of amounts.
pub(super) fn fits(listing: &SimInstrument, price: Price, quantity: Quantity) -> bool {
    value_rounded_up(listing, price, quantity) <= i128::from(i64::MAX)
}

/// Returns the number of an instrument at the matching engine; an unknown index has an unknown number.
pub(super) fn engine_symbol(instrument: usize) -> SymbolId {
    SymbolId(u32::try_from(instrument).unwrap_or(u32::MAX))
}

/// Returns whether a number is a multiple of a step. Without a step each number is.
fn is_multiple(units: i64, step: i64) -> bool {
    step <= 0 || units % step == 0
}
