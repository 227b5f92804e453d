//! The venue's orders and quotes.

use tickpath_market::{AccountId, OrderId, Price, Quantity, Side, TimeInForce, VenueOrderId};

/// Accepted client order, or quote of the market maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookOrder {
    /// Client's order id; zero for a quote of the market maker.
    pub id: OrderId,
    /// Venue's order id; zero for a quote.
    pub venue_order_id: VenueOrderId,
    /// Limit price; zero for any price. Only an order with a limit can rest.
    pub price: Price,
    /// Total quantity, filled and open. A busted fill lowers it, and the open quantity stays.
    pub quantity: Quantity,
    /// Filled quantity, from zero to `quantity`.
    pub filled: Quantity,
    /// Number of events reported so far.
    pub events: u64,
    /// Account of the order.
    pub account: AccountId,
    /// Buy or sell.
    pub side: Side,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// Whether the order may only rest: a replace that would trade at once is rejected.
    pub is_post_only: bool,
}

impl BookOrder {
    /// Returns the open quantity.
    pub fn open(&self) -> Quantity {
        Quantity(self.quantity.0 - self.filled.0)
    }

    /// Returns whether the whole order is filled.
    pub fn is_filled(&self) -> bool {
        self.filled == self.quantity
    }

    /// Returns whether this is a quote of the market maker, for which no reports are made.
    pub fn is_quote(&self) -> bool {
        self.id == OrderId(0)
    }

    /// Creates a quote of the market maker. Returns none if price or quantity is not above zero.
    pub fn quote(side: Side, price: Price, quantity: Quantity) -> Option<Self> {
        (price > Price::ZERO && quantity > Quantity::ZERO).then_some(Self {
            id: OrderId(0),
            venue_order_id: VenueOrderId(0),
            price,
            quantity,
            filled: Quantity::ZERO,
            events: 0,
            account: AccountId(0),
            side,
            time_in_force: TimeInForce::Day,
            is_post_only: false,
        })
    }
}
