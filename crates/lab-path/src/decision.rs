//! The decision of the lab's strategies: a limit IOC at the touch on each tick, buying and selling in turn. The
//! strategy in Python (`python/bench_strategy.py`) decides the same.

use tickpath_bus::Message;
use tickpath_market::{
    AccountId, ClientOrderId, Kind, NewOrder, OrderType, Price, Quantity, Side, TimeInForce, TopOfBook,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::orders::group::PATH_GROUP;
use crate::trade::SYMBOL;

/// Each order's quantity: small beside what stands at the touch.
pub(crate) const QUANTITY: Quantity = Quantity(100_000);

/// The id of the first order; ids count up from it.
pub(crate) const FIRST_ID: u64 = (PATH_GROUP as u64) << 32;

/// A tick with the time at which the strategy saw it.
#[derive(Debug, Clone, Copy)]
pub struct SeenTick {
    /// Stamp of the tick; the order names it as its cause.
    pub stamp: u64,
    /// Time at which the strategy saw it.
    pub seen: u64,
    /// The quote; none for a message of another kind.
    pub top: Option<TopOfBook>,
}

impl SeenTick {
    /// Reads a message of the topic that was seen at `seen`.
    #[inline(always)]
    pub(crate) fn of(message: &Message<'_>, seen: u64) -> Self {
        let is_top = message.kind == Kind::TopOfBook.code();
        let top = if is_top { TopOfBook::read_from_bytes(message.payload).ok() } else { None };
        Self { stamp: message.stamp, seen, top }
    }
}

/// The last quote and the account of a strategy.
#[derive(Debug)]
pub struct Decision {
    top: TopOfBook,
    pub(crate) account: AccountId,
}

impl Decision {
    /// Returns a strategy that has seen no quote.
    pub fn new(account: AccountId) -> Self {
        Self { top: TopOfBook::default(), account }
    }

    /// Returns the last quote in the bytes of a message.
    pub(crate) fn quote(&self) -> &[u8] {
        self.top.as_bytes()
    }

    /// Returns the order that answers a tick, order `number` from 0; `None` before the first quote, because there is no
    /// touch.
    #[inline(always)]
    pub fn on_tick(&mut self, tick: &SeenTick, number: u64) -> Option<NewOrder> {
        // A recording of several instruments is traded only in its first.
        if let Some(top) = tick.top.filter(|top| top.symbol == SYMBOL) {
            self.top = top;
        }
        let (side, price) =
            if number.is_multiple_of(2) { (Side::Buy, self.top.ask) } else { (Side::Sell, self.top.bid) };
        if price == Price::ZERO {
            return None;
        }
        Some(NewOrder {
            client_order_id: ClientOrderId(FIRST_ID | number),
            price,
            quantity: QUANTITY,
            cause: tick.stamp,
            symbol: SYMBOL,
            account: self.account,
            side: side.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        })
    }
}
