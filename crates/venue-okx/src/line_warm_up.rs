//! The warm-up of an idle line: an order of its own becomes text and leaves into private memory.

use tickpath_clock::HostClock;
use tickpath_market::{ClientOrderId, NewOrder, OrderType, Price, Quantity, Request, Side, TimeInForce};
use tickpath_web_client::Rehearsal;

use crate::config::LineInstrument;
use crate::order_encoder::OrderEncoder;

/// Expiry in the orders, in milliseconds since the Unix epoch: as many digits as a real one.
const EXPIRES_MS: u64 = 1_749_044_570_306;

/// The send path on private memory.
pub(crate) struct LineWarmUp {
    encoder: OrderEncoder,
    order: Request,
    connection: Rehearsal,
}

impl LineWarmUp {
    /// None if there is nothing to trade, or no memory for it.
    pub(crate) fn new(instruments: &[LineInstrument], clock: HostClock) -> Option<Box<Self>> {
        let first = instruments.first()?;
        let encoder = OrderEncoder::new(instruments, 1).ok()?;
        let order = Request::New(NewOrder {
            client_order_id: ClientOrderId(1 << 33),
            price: Price(6_180_025_000_000),
            quantity: Quantity(first.lot.0.max(first.contract.0)),
            symbol: first.symbol,
            side: Side::Buy.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        });
        Some(Box::new(Self { encoder, order, connection: Rehearsal::new(clock)? }))
    }

    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub(crate) fn run(&mut self) {
        let Self { encoder, order, connection } = self;
        if let Some(text) = encoder.encode(1, order, EXPIRES_MS) {
            connection.send_text(text);
        }
    }
}
