//! What is kept of an order, of a cancel or replace, and of a fill.
//!
//! ```text
//!   quantity  the total asked for, as last replaced
//!   reported  the largest cumulative quantity that the venue told
//!   filled    the sum of the fills that came in
//!   leaves    quantity − max(filled, reported): what the venue still works
//!   exposure  quantity − filled: what may still move the position; for an ended order reported − filled
//! ```

use tickpath_market::{
    AccountId, ClientOrderId, OrdStatus, OrderId, OrderType, Price, Quantity, Side, SymbolId, VenueOrderId,
};

use crate::state::{Pending, Phase, status};

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// An order as the core knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderView {
    /// The core's id.
    pub id: OrderId,
    /// The client's id.
    pub client_order_id: ClientOrderId,
    /// The venue's id; zero if it told none.
    pub venue_order_id: VenueOrderId,
    /// The client's session.
    pub session: u16,
    /// For whom.
    pub account: AccountId,
    /// The instrument.
    pub symbol: SymbolId,
    /// The side.
    pub side: Side,
    /// How it is priced.
    pub order_type: OrderType,
    /// The limit price, as last replaced.
    pub price: Price,
    /// The total quantity, as last replaced.
    pub quantity: Quantity,
    /// The sum of its fills.
    pub cumulative: Quantity,
    /// What the venue still works.
    pub leaves: Quantity,
    /// By FIX precedence.
    pub status: OrdStatus,
    /// The highest venue sequence seen; zero if the venue gives none.
    pub venue_sequence: u64,
}

/// An order: 104 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) client: u64,
    pub(crate) venue: u64,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    pub(crate) filled: i64,
    pub(crate) reported: i64,
    /// The highest venue sequence seen.
    pub(crate) sequence: u64,
    /// The venue sequence of the replaced that price and quantity come from.
    pub(crate) terms_sequence: u64,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    /// Slot of its position.
    pub(crate) position: u32,
    /// Slot of the cancel on its way.
    pub(crate) cancel: u32,
    /// Slot of the replace on its way.
    pub(crate) replace: u32,
    pub(crate) session: u16,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) phase: Phase,
}

/// A cancel or a replace that was asked for; a denied one too, for its id is used up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) client: u64,
    /// The total quantity that a replace asks for; zero in a cancel.
    pub(crate) quantity: i64,
    pub(crate) session: u16,
}

/// A fill that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) exec: u64,
    /// Slot of its order.
    pub(crate) order: u32,
    pub(crate) venue: u16,
}

const _: () = assert!(size_of::<Order>() <= 104 && size_of::<Ask>() <= 32 && size_of::<Fill>() <= 16);

impl Order {
    pub(crate) const EMPTY: Self = Self {
        id: 0,
        client: 0,
        venue: 0,
        price: 0,
        quantity: 0,
        filled: 0,
        reported: 0,
        sequence: 0,
        terms_sequence: 0,
        account: AccountId(0),
        symbol: SymbolId(0),
        position: NONE,
        cancel: NONE,
        replace: NONE,
        session: 0,
        side: Side::Buy,
        order_type: OrderType::Limit,
        phase: Phase::Denied,
    };

    pub(crate) fn leaves(&self) -> i64 {
        if self.phase.is_live() { self.quantity.saturating_sub(self.known()).max(0) } else { 0 }
    }

    /// What may still move the position, if a replace on its way asks for this total.
    pub(crate) fn exposure(&self, replacing: i64) -> i64 {
        let most = if self.phase.is_live() { self.quantity.max(replacing) } else { self.reported };
        most.saturating_sub(self.filled).max(0)
    }

    /// The cumulative quantity by the fills or by the venue's word, whichever is ahead.
    pub(crate) fn known(&self) -> i64 {
        self.filled.max(self.reported)
    }

    pub(crate) fn status(&self) -> OrdStatus {
        status(self.phase, self.pending(), self.filled, self.quantity)
    }

    pub(crate) fn view(&self) -> OrderView {
        OrderView {
            id: OrderId(self.id),
            client_order_id: ClientOrderId(self.client),
            venue_order_id: VenueOrderId(self.venue),
            session: self.session,
            account: self.account,
            symbol: self.symbol,
            side: self.side,
            order_type: self.order_type,
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            cumulative: Quantity(self.filled),
            leaves: Quantity(self.leaves()),
            status: self.status(),
            venue_sequence: self.sequence,
        }
    }

    fn pending(&self) -> Pending {
        if self.cancel != NONE {
            Pending::Cancel
        } else if self.replace != NONE {
            Pending::Replace
        } else {
            Pending::Nothing
        }
    }
}

impl Ask {
    /// No bit pattern of zeros, so that a page of these is written when it is built.
    pub(crate) const EMPTY: Self = Self { id: u64::MAX, client: 0, quantity: 0, session: 0 };
}

impl Fill {
    pub(crate) const EMPTY: Self = Self { exec: 0, order: NONE, venue: 0 };
}
