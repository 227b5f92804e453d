//! The warm-up of an idle line: an order of its own becomes text in the line's memory, and leaves into private memory.

use tickpath_clock::HostClock;
use tickpath_market::{ClientOrderId, NewOrder, OrderType, Price, Quantity, Side, TimeInForce};
use tickpath_web_client::Rehearsal;

use crate::config::LineInstrument;
use crate::session::LineSession;

/// An order that is never sent, and a connection to nowhere.
pub(crate) struct LineWarmUp {
    order: NewOrder,
    connection: Rehearsal,
}

impl LineWarmUp {
    /// None if there is nothing to trade, or no memory for it.
    pub(crate) fn new(instruments: &[LineInstrument], clock: HostClock) -> Option<Box<Self>> {
        let first = instruments.first()?;
        let order = NewOrder {
            client_order_id: ClientOrderId(1 << 33),
            price: Price(6_180_025_000_000),
            quantity: Quantity(first.lot.0.max(100_000)),
            symbol: first.symbol,
            side: Side::Buy.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        };
        Some(Box::new(Self { order, connection: Rehearsal::new(clock)? }))
    }

    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub(crate) fn run(&mut self, session: &mut LineSession) {
        if let Some(text) = session.rehearse(&self.order) {
            self.connection.send_text(text);
        }
    }
}
