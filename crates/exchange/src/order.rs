//! An order as the venue keeps it.

use tickpath_market::{AccountId, OrderId, Price, Quantity, Side, TimeInForce, VenueOrderId};

/// An accepted order of a client, or a quote of the market maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// What the client calls the order; zero for a quote of the market maker.
    pub id: OrderId,
    /// What the venue calls it; zero for a quote.
    pub venue_order_id: VenueOrderId,
    /// The limit; zero for any price. Only an order with a limit can rest.
    pub price: Price,
    /// The total: what is filled and what is open. A fill that is taken back leaves it, and nothing comes to the book.
    pub quantity: Quantity,
    /// Filled so far, from zero to `quantity`.
    pub filled: Quantity,
    /// Events reported so far.
    pub events: u64,
    /// For whom.
    pub account: AccountId,
    /// Buys or sells.
    pub side: Side,
    /// How long it works.
    pub time_in_force: TimeInForce,
}

impl Order {
    /// What is still to fill.
    pub fn open(&self) -> Quantity {
        Quantity(self.quantity.0 - self.filled.0)
    }

    /// Whether all of it is filled.
    pub fn is_filled(&self) -> bool {
        self.filled == self.quantity
    }

    /// Whether it is a quote of the market maker, of which nobody gets reports.
    pub fn is_quote(&self) -> bool {
        self.id == OrderId(0)
    }

    /// A quote of the market maker; none if price or quantity are not above zero.
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
        })
    }
}
