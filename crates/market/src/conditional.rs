//! Orders with a trigger: they wait at the OMS until the market has a price.
//!
//! ```text
//!   0            16            32     33       40
//!   │ first        │ second        │ join │ zero   │   Trigger
//!   │ price 8 · symbol 4 · price type 1 · direction 1 · zero 2 │   Condition
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::message::{check_code, codes};
use crate::{AccountId, ClientOrderId, MessageError, NewOrder, Price, Quantity, SymbolId};

codes! {
    /// Price of an instrument that a condition watches (FIX 1107).
    TriggerPriceType {
        /// The best offer.
        Ask = 1,
        /// The last trade.
        Last = 2,
        /// The best bid.
        Bid = 3,
    }
    /// Direction in which that price must move (FIX 1109).
    TriggerDirection {
        /// The price rises to the condition's price or above it.
        Up = 1,
        /// The price falls to the condition's price or below it.
        Down = 2,
    }
    /// Connection of the two conditions of a trigger.
    TriggerJoin {
        /// Only the first condition counts; the second is not read.
        Alone = 0,
        /// Both must hold at once, each by the latest price of its instrument.
        And = 1,
        /// One of the conditions is enough.
        Or = 2,
    }
}

/// A price that a market must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Condition {
    /// Threshold; an equal price holds.
    pub price: Price,
    /// Watched instrument, not necessarily the order's.
    pub symbol: SymbolId,
    /// [`TriggerPriceType`] as its code.
    pub price_type: u8,
    /// [`TriggerDirection`] as its code.
    pub direction: u8,
    /// Zero.
    pub reserved: [u8; 2],
}

/// The condition, or the two conditions, under which an order is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Trigger {
    /// First condition, always read.
    pub first: Condition,
    /// Second condition, read unless `join` is [`TriggerJoin::Alone`].
    pub second: Condition,
    /// [`TriggerJoin`] as its code.
    pub join: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// A new order that waits at the OMS, armed, until its trigger fires; from then on it is an ordinary [`NewOrder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ConditionalOrder {
    /// The order. If its `cause` is zero, it carries the stamp of the tick that fires it. Its `time_in_force` sets how
    /// long it stays armed and then works; an IOC or FOK order stays armed for the day.
    pub order: NewOrder,
    /// Trigger of the order.
    pub trigger: Trigger,
}

/// A request for another price, total quantity and trigger of an armed order. (A [`ReplaceOrder`](crate::ReplaceOrder)
/// leaves the trigger unchanged.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceConditional {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to change: the id of its `ConditionalOrder`.
    pub original: ClientOrderId,
    /// The new limit price; not read for a market order.
    pub price: Price,
    /// The new total quantity.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// The new trigger.
    pub trigger: Trigger,
}

impl Condition {
    /// Returns whether the condition holds at this price.
    #[inline]
    pub fn holds(&self, price: Price) -> bool {
        if self.direction == TriggerDirection::Up.code() { price >= self.price } else { price <= self.price }
    }

    fn check(&self) -> Result<(), MessageError> {
        check_code("price_type", self.price_type, TriggerPriceType::from_code(self.price_type).is_some())?;
        check_code("direction", self.direction, TriggerDirection::from_code(self.direction).is_some())
    }
}

impl Trigger {
    /// Creates a trigger of one condition.
    pub fn on(first: Condition) -> Self {
        Self { first, ..Self::default() }
    }

    /// Creates a trigger of two conditions.
    pub fn joined(first: Condition, join: TriggerJoin, second: Condition) -> Self {
        Self { first, second, join: join.code(), reserved: [0; 7] }
    }

    /// Returns the conditions that count.
    pub fn conditions(&self) -> impl Iterator<Item = Condition> {
        let second = (self.join != TriggerJoin::Alone.code()).then_some(self.second);
        std::iter::once(self.first).chain(second)
    }

    /// Returns whether the trigger fires at the latest prices, which `price` returns where they are known. A condition
    /// without a known price does not hold.
    pub fn fires(&self, mut price: impl FnMut(&Condition) -> Option<Price>) -> bool {
        let mut holds = |condition: Condition| price(&condition).is_some_and(|price| condition.holds(price));
        match self.join == TriggerJoin::And.code() {
            true => self.conditions().all(&mut holds),
            false => self.conditions().any(&mut holds),
        }
    }

    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        check_code("join", self.join, TriggerJoin::from_code(self.join).is_some())?;
        self.conditions().try_for_each(|condition| condition.check())
    }
}

impl ConditionalOrder {
    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        self.order.check()?;
        self.trigger.check()
    }
}
