//! Orders with a trigger: they wait at the OMS until the market has a price.
//!
//! ```text
//!   0            16            32     33       40
//!   │ first        │ second        │ join │ zero   │   Trigger
//!   │ price 8 · symbol 4 · price type 1 · direction 1 · zero 2 │   Condition
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::message::codes;
use crate::{AccountId, ClientOrderId, MessageError, NewOrder, Price, Quantity, SymbolId};

codes! {
    /// Which price of an instrument a condition looks at (FIX 1107).
    TriggerPriceType {
        /// The best offer.
        Ask = 1,
        /// The last trade.
        Last = 2,
        /// The best bid.
        Bid = 3,
    }
}
codes! {
    /// Where that price must get to (FIX 1109).
    TriggerDirection {
        /// To the condition's price or above it.
        Up = 1,
        /// To the condition's price or below it.
        Down = 2,
    }
}
codes! {
    /// How the two conditions of a trigger are joined.
    TriggerJoin {
        /// There is the first alone; the second is not read.
        Alone = 0,
        /// Both must hold at once, each by the latest price of its instrument.
        And = 1,
        /// One of them is enough.
        Or = 2,
    }
}

/// A price that a market must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Condition {
    /// The threshold; a price that equals it holds.
    pub price: Price,
    /// The instrument that is watched; it need not be the order's.
    pub symbol: SymbolId,
    /// [`TriggerPriceType`] as its code.
    pub price_type: u8,
    /// [`TriggerDirection`] as its code.
    pub direction: u8,
    /// Zero.
    pub reserved: [u8; 2],
}

/// What must hold before an order leaves: one condition, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Trigger {
    /// Always read.
    pub first: Condition,
    /// Read if `join` says so.
    pub second: Condition,
    /// [`TriggerJoin`] as its code.
    pub join: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// A new order that waits at the OMS, armed, until its trigger fires; then it is a [`NewOrder`] like any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ConditionalOrder {
    /// The order. If its `cause` is zero, it carries the stamp of the tick that fires it. Its `time_in_force` says how long it
    /// stays armed, and how long it works then; one that is filled at once or not at all stays armed for the day.
    pub order: NewOrder,
    /// What fires it.
    pub trigger: Trigger,
}

/// Asks for another price, total quantity and trigger of an order that is armed. (A
/// [`ReplaceOrder`](crate::ReplaceOrder) leaves the trigger as it is.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceConditional {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to change: that of its `ConditionalOrder`.
    pub original: ClientOrderId,
    /// The new limit price; not read of a market order.
    pub price: Price,
    /// The new total quantity.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// The new trigger.
    pub trigger: Trigger,
}

impl Condition {
    /// Whether it holds at this price.
    #[inline]
    pub fn holds(&self, price: Price) -> bool {
        if self.direction == TriggerDirection::Up.code() { price >= self.price } else { price <= self.price }
    }

    fn check(&self) -> Result<(), MessageError> {
        if TriggerPriceType::from_code(self.price_type).is_none() {
            return Err(MessageError::Code { field: "price_type", code: self.price_type });
        }
        if TriggerDirection::from_code(self.direction).is_none() {
            return Err(MessageError::Code { field: "direction", code: self.direction });
        }
        Ok(())
    }
}

impl Trigger {
    /// One condition.
    pub fn on(first: Condition) -> Self {
        Self { first, ..Self::default() }
    }

    /// Two conditions.
    pub fn joined(first: Condition, join: TriggerJoin, second: Condition) -> Self {
        Self { first, second, join: join.code(), reserved: [0; 7] }
    }

    /// The conditions that are read.
    pub fn conditions(&self) -> impl Iterator<Item = Condition> {
        let second = (self.join != TriggerJoin::Alone.code()).then_some(self.second);
        std::iter::once(self.first).chain(second)
    }

    /// Whether it fires at the latest prices, which `price` tells as far as there are some: a condition on a price that
    /// nobody has seen does not hold.
    pub fn fires(&self, mut price: impl FnMut(&Condition) -> Option<Price>) -> bool {
        let mut holds = |condition: Condition| price(&condition).is_some_and(|price| condition.holds(price));
        match self.join == TriggerJoin::And.code() {
            true => self.conditions().all(&mut holds),
            false => self.conditions().any(&mut holds),
        }
    }

    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        if TriggerJoin::from_code(self.join).is_none() {
            return Err(MessageError::Code { field: "join", code: self.join });
        }
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
