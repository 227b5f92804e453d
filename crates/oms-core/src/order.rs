//! Stored data of an order, its fills, its pending requests and its sequence gap.
//!
//! ```text
//!   quantity    the total requested, as last replaced
//!   reported    the cumulative quantity that the venue reported with its highest sequence; without sequences the
//!               largest
//!   filled      the sum of the booked fills
//!   leaves      quantity − max(filled, reported): the quantity that the venue still works
//!   exposure    max(quantity, a pending replace's total, reported) − filled: the quantity that may still move the
//!               position; for an ended order reported − filled; zero for an order that waits for its trigger
//!   reversible  filled − reported of an unknown order: the quantity that its venue may have taken back
//! ```

use tickpath_market::{
    AccountId, ClientOrderId, NewOrder, OrdStatus, OrderId, OrderType, Price, Quantity, Side, SymbolId, TimeInForce,
    VenueId, VenueOrderId,
};
use tickpath_oms_risk::{ContractSize, MAX_VALUE};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::state::{OrderPhase, PendingKind, status};

/// Slot value for "none".
pub(crate) const NONE: u32 = u32::MAX;

/// An order as the core knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderView {
    /// The core's id.
    pub id: OrderId,
    /// The client's id.
    pub client_order_id: ClientOrderId,
    /// The venue's id; zero if the venue reported none.
    pub venue_order_id: VenueOrderId,
    /// The client's session.
    pub session: u16,
    /// The account that the order trades for.
    pub account: AccountId,
    /// The instrument.
    pub symbol: SymbolId,
    /// The side.
    pub side: Side,
    /// The pricing of the order: limit or market.
    pub order_type: OrderType,
    /// The time for which the order works.
    pub time_in_force: TimeInForce,
    /// The venue that the order was admitted for.
    pub venue: VenueId,
    /// The limit price, as last replaced.
    pub price: Price,
    /// The total quantity, as last replaced.
    pub quantity: Quantity,
    /// The sum of its fills.
    pub cumulative: Quantity,
    /// The quantity that the venue still works.
    pub leaves: Quantity,
    /// The status, by FIX precedence.
    pub status: OrdStatus,
    /// The highest venue sequence seen; zero if the venue gives none.
    pub venue_sequence: u64,
}

/// Stored order, 120 bytes.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) client: u64,
    pub(crate) venue_order_id: u64,
    pub(crate) price: i64,
    /// Price that one unit is valued at: the limit price, or a market order's reference price at admission.
    pub(crate) valuation_price: i64,
    pub(crate) quantity: i64,
    pub(crate) filled: i64,
    pub(crate) reported: i64,
    /// The highest venue sequence seen.
    pub(crate) sequence: u64,
    /// Venue sequence of the report that price and quantity come from.
    pub(crate) terms_sequence: u64,
    /// Bit set of the last 64 venue sequences seen: bit n stands for the highest less n.
    pub(crate) seen: u64,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    /// Slot of its position.
    pub(crate) position: u32,
    /// Slot of the pending cancel.
    pub(crate) cancel: u32,
    /// Slot of the pending replace.
    pub(crate) replace: u32,
    /// Venue of the order, from its admission on.
    pub(crate) venue: VenueId,
    pub(crate) session: u16,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) phase: OrderPhase,
    /// Sum of [`SEQUENCE_LOST`], [`HAS_GAP`], [`UNSEQUENCED_END`], [`IN_DOUBT`], [`HAS_MANUAL_FILL`],
    /// [`CLIENT_ID_FREED`], [`MAY_HAVE_RETRIED`] and [`END_TIME_PASSED`].
    pub(crate) marks: u8,
    pub(crate) reserved: [u8; 3],
}

/// [`Order::marks`]: a venue sequence was never seen, and is too old to wait for.
pub(crate) const SEQUENCE_LOST: u8 = 1;
/// [`Order::marks`]: the order is in the list of orders that miss a venue sequence.
pub(crate) const HAS_GAP: u8 = 2;
/// [`Order::marks`]: the order ended without a venue sequence, so any later sign of life contradicts the end.
pub(crate) const UNSEQUENCED_END: u8 = 4;
/// [`Order::marks`]: messages of the order may be lost, and its venue has answered no status request since. Only such
/// an answer, its end or an operator takes it out of doubt: any other report may be from before the loss.
pub(crate) const IN_DOUBT: u8 = 8;
/// [`Order::marks`]: an operator has entered some of the filled quantity, which is or was the fill [`MANUAL_FILL`].
pub(crate) const HAS_MANUAL_FILL: u8 = 16;
/// [`Order::marks`]: the order's day is over, so another order may have its client id.
pub(crate) const CLIENT_ID_FREED: u8 = 32;
/// [`Order::marks`]: the venue may have rejected the order and work a later retry, whose id was lost with the journal's
/// tail. A rejection does not end it.
pub(crate) const MAY_HAVE_RETRIED: u8 = 64;

/// [`Order::marks`]: the OMS has canceled the order at its end time, so the venue's cancel is its expiry.
pub(crate) const END_TIME_PASSED: u8 = 128;

/// Execution id of the quantity that an operator has booked; no venue's fill has this id.
pub(crate) const MANUAL_FILL: u64 = 0;

/// Cancel or replace that was sent or waits.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PendingRequest {
    pub(crate) id: u64,
    pub(crate) client: u64,
    /// The total quantity that a replace asks for; zero in a cancel.
    pub(crate) quantity: i64,
    /// The price that a replace asks for; zero in a cancel.
    pub(crate) price: i64,
    pub(crate) session: u16,
    /// 1 while the request waits in the OMS for its venue.
    pub(crate) waits: u8,
    pub(crate) reserved: [u8; 5],
}

/// Used client id of a request that is stored nowhere else: a denied request, a mass cancel, or a replace of an armed
/// order.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct UsedClientId {
    pub(crate) client: u64,
    pub(crate) session: u16,
    pub(crate) reserved: [u8; 6],
}

/// Counted fill, or an amendment that arrived in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Fill {
    pub(crate) exec: u64,
    /// Quantity that holds; zero if the fill was taken back. A quantity that an operator has booked may be negative.
    pub(crate) quantity: i64,
    /// Slot of its order.
    pub(crate) order: u32,
    /// Venue sequence of the latest amendment, 1 if the amendment has none; zero for a fill that was not amended.
    pub(crate) changed: u32,
}

/// Order that misses a venue sequence.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SequenceGap {
    /// Slot of the order.
    pub(crate) slot: u32,
    pub(crate) reserved: u32,
    /// Time at which the gap was seen, in ticks; zero if it was in another boot of the host.
    pub(crate) since: u64,
}

const _: () = assert!(size_of::<Order>() == 120 && size_of::<PendingRequest>() == 40 && size_of::<Fill>() == 24);

impl Order {
    pub(crate) const EMPTY: Self = Self {
        id: 0,
        client: 0,
        venue_order_id: 0,
        price: 0,
        valuation_price: 0,
        quantity: 0,
        filled: 0,
        reported: 0,
        sequence: 0,
        terms_sequence: 0,
        seen: 0,
        account: AccountId(0),
        symbol: SymbolId(0),
        position: NONE,
        cancel: NONE,
        replace: NONE,
        venue: VenueId(0),
        session: 0,
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        phase: OrderPhase::Denied,
        marks: 0,
        reserved: [0; 3],
    };

    /// Builds an order with the terms of a request; none if the request has an unknown code.
    #[inline]
    pub(crate) fn of_request(new: &NewOrder) -> Option<Self> {
        new.check().ok()?;
        Some(Self {
            client: new.client_order_id.0,
            price: new.price.0,
            valuation_price: new.price.0,
            quantity: new.quantity.0,
            account: new.account,
            symbol: new.symbol,
            side: Side::from_code(new.side)?,
            order_type: OrderType::from_code(new.order_type)?,
            time_in_force: TimeInForce::from_code(new.time_in_force)?,
            ..Self::EMPTY
        })
    }

    pub(crate) fn leaves(&self) -> i64 {
        if self.phase.is_live() { self.quantity.saturating_sub(self.known_filled()).max(0) } else { 0 }
    }

    /// Returns the quantity that may still move the position, if a pending replace asks for this total.
    pub(crate) fn exposure(&self, replacing: i64) -> i64 {
        if self.phase == OrderPhase::Armed {
            return 0;
        }
        // A venue that reports more than the known total has replaced the order, and the report of the replace is lost.
        let total = if self.phase.is_live() { self.quantity.max(replacing).max(self.reported) } else { self.reported };
        total.saturating_sub(self.filled).max(0)
    }

    /// Returns the quantity that an unknown order's venue counts less than was booked: it may move the position back.
    pub(crate) fn reversible(&self) -> i64 {
        if self.phase.is_unknown() { self.filled.saturating_sub(self.reported).max(0) } else { 0 }
    }

    /// Returns the largest value that may still trade, if a pending replace asks for this total and price: 10⁻¹⁶ units.
    pub(crate) fn value(&self, replacing: i64, price: i64, size: ContractSize) -> i128 {
        let each = i128::from(self.valuation_price.unsigned_abs().max(price.unsigned_abs()));
        size.value(each * i128::from(self.exposure(replacing))).min(MAX_VALUE)
    }

    /// Returns whether the order is live and not filled yet.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.is_live() && !self.is_filled()
    }

    /// Returns whether the order may trade against another order: an armed order is at no venue.
    #[inline]
    pub(crate) fn may_match(&self) -> bool {
        self.is_open() && self.phase != OrderPhase::Armed
    }

    /// Returns whether the order is filled for good. A pending replace may still enlarge it, and the answer to a
    /// pending cancel may be lost, so both keep it open.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.phase == OrderPhase::Open && self.filled >= self.quantity && self.replace == NONE && self.cancel == NONE
    }

    /// Returns whether two states of the order agree in exposure, value and openness.
    pub(crate) fn has_same_exposure(&self, other: &Self) -> bool {
        let holds = |order: &Self| (order.quantity, order.filled, order.reported, order.valuation_price, order.replace);
        holds(self) == holds(other)
            && self.phase.is_live() == other.phase.is_live()
            && self.phase.is_unknown() == other.phase.is_unknown()
            && self.is_open() == other.is_open()
            && (self.phase == OrderPhase::Armed) == (other.phase == OrderPhase::Armed)
    }

    /// Notes a venue sequence; returns false if it was seen before. A sequence too old for the window counts as new.
    pub(crate) fn note_sequence(&mut self, sequence: u64) -> bool {
        if sequence > self.sequence {
            let by = sequence - self.sequence;
            // A sequence that leaves the window unseen stays a hole.
            let known = self.sequence.min(64) as u32;
            let kept = 64_u64.saturating_sub(by).min(u64::from(known)) as u32;
            let leaving = if kept >= known { 0 } else { mask(known) & !mask(kept) };
            if by > 64 || self.seen & leaving != leaving {
                self.marks |= SEQUENCE_LOST;
            }
            self.seen = if by >= 64 { 1 } else { self.seen << by | 1 };
            self.sequence = sequence;
            return true;
        }
        let distance = self.sequence - sequence;
        if distance >= 64 {
            return true;
        }
        let bit = 1 << distance;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }

    /// Returns whether every event up to the highest venue sequence was seen.
    pub(crate) fn is_contiguous(&self) -> bool {
        let known = mask(self.sequence.min(64) as u32);
        self.marks & SEQUENCE_LOST == 0 && self.seen & known == known
    }

    /// Marks all events up to this sequence as seen, because the venue has reported their result.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.seen = u64::MAX;
        self.marks &= !SEQUENCE_LOST;
    }

    /// Returns whether the fills equal the venue's quantity and do not exceed the total, as they must once every event
    /// is known.
    pub(crate) fn adds_up(&self) -> bool {
        self.filled == self.reported && self.filled <= self.quantity
    }

    /// Returns the cumulative quantity by the fills or by the venue's reports, whichever is larger.
    pub(crate) fn known_filled(&self) -> i64 {
        self.filled.max(self.reported)
    }

    pub(crate) fn status(&self) -> OrdStatus {
        status(self.phase, self.pending(), self.filled, self.quantity)
    }

    pub(crate) fn view(&self) -> OrderView {
        OrderView {
            id: OrderId(self.id),
            client_order_id: ClientOrderId(self.client),
            venue_order_id: VenueOrderId(self.venue_order_id),
            session: self.session,
            account: self.account,
            symbol: self.symbol,
            side: self.side,
            order_type: self.order_type,
            time_in_force: self.time_in_force,
            venue: self.venue,
            price: Price(self.price),
            quantity: Quantity(self.quantity),
            cumulative: Quantity(self.filled),
            leaves: Quantity(self.leaves()),
            status: self.status(),
            venue_sequence: self.sequence,
        }
    }

    fn pending(&self) -> PendingKind {
        if self.cancel != NONE {
            PendingKind::Cancel
        } else if self.replace != NONE {
            PendingKind::Replace
        } else {
            PendingKind::Nothing
        }
    }
}

impl PendingRequest {
    /// Not all zeros, so that building a page writes its memory.
    pub(crate) const EMPTY: Self =
        Self { id: u64::MAX, client: 0, quantity: 0, price: 0, session: 0, waits: 0, reserved: [0; 5] };
}

impl UsedClientId {
    pub(crate) const EMPTY: Self = Self { client: u64::MAX, session: 0, reserved: [0; 6] };
}

impl Fill {
    pub(crate) const EMPTY: Self = Self { exec: 0, quantity: 0, order: NONE, changed: 0 };
}

/// Returns a mask of the lowest `bits` bits.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
