//! What is kept of an order, of its trigger, of a cancel or replace, and of a fill.
//!
//! ```text
//!   quantity  the total asked for, as last replaced
//!   reported  the cumulative quantity that the venue told with its highest number; without numbers the largest one
//!   filled    the sum of the fills that came in
//!   leaves    quantity − max(filled, reported): what the venue still works
//!   exposure  max(quantity, reported) − filled: what may still move the position; for an ended order reported − filled; none
//!             of one that waits for its trigger
//!   recall    filled − reported of an unknown order: what its venue may have taken back
//! ```

use tickpath_market::{
    AccountId, ClientOrderId, OrdStatus, OrderId, OrderType, Price, Quantity, Side, SymbolId, TimeInForce, Trigger,
    VenueId, VenueOrderId,
};
use tickpath_risk::{MOST_VALUE, times};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

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
    /// How long it works.
    pub time_in_force: TimeInForce,
    /// Where it was admitted for.
    pub venue: VenueId,
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

/// An order: 120 bytes.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) client: u64,
    pub(crate) venue: u64,
    pub(crate) price: i64,
    /// What one of it is valued at: the limit price; of a market order the reference at its admission.
    pub(crate) valued: i64,
    pub(crate) quantity: i64,
    pub(crate) filled: i64,
    pub(crate) reported: i64,
    /// The highest venue sequence seen.
    pub(crate) sequence: u64,
    /// The venue sequence of the replaced that price and quantity come from.
    pub(crate) terms_sequence: u64,
    /// Which of the last 64 venue sequences were seen: bit n is the highest less n.
    pub(crate) seen: u64,
    pub(crate) account: AccountId,
    pub(crate) symbol: SymbolId,
    /// Slot of its position.
    pub(crate) position: u32,
    /// Slot of the cancel on its way.
    pub(crate) cancel: u32,
    /// Slot of the replace on its way.
    pub(crate) replace: u32,
    /// Its venue's number, from its admission on.
    pub(crate) route: u16,
    pub(crate) session: u16,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) phase: Phase,
    /// [`HOLE`], [`GAPPED`], [`SOFT`], [`DOUBTED`], [`WORDED`], [`NAMELESS`], [`ASTRAY`].
    pub(crate) marks: u8,
    pub(crate) reserved: [u8; 3],
}

/// [`Order::marks`]: a venue sequence was never seen, and is too old to be waited for.
pub(crate) const HOLE: u8 = 1;
/// [`Order::marks`]: it is in the list of orders that miss a venue sequence.
pub(crate) const GAPPED: u8 = 2;
/// [`Order::marks`]: it was ended by a word that has no venue sequence: any later life contradicts it.
pub(crate) const SOFT: u8 = 4;
/// [`Order::marks`]: messages of it may be lost, and its venue has answered no question since. While it is unknown only
/// such an answer, its end or an operator tells where it stands: any other word may be from before the loss.
pub(crate) const DOUBTED: u8 = 8;
/// [`Order::marks`]: some of what is filled is known from an operator: it is the fill [`WORD`], or was.
pub(crate) const WORDED: u8 = 16;
/// [`Order::marks`]: its day is over, and its client's id may be another order's.
pub(crate) const NAMELESS: u8 = 32;
/// [`Order::marks`]: its venue may have refused it and work a later try, whose id went with the end of a journal. A refusal
/// is not its end.
pub(crate) const ASTRAY: u8 = 64;

/// The execution of what an operator has booked: no venue's fill has this id.
pub(crate) const WORD: u64 = 0;

/// A cancel or a replace that was sent, or waits to be.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) client: u64,
    /// The total quantity that a replace asks for; zero in a cancel.
    pub(crate) quantity: i64,
    /// The price that a replace asks for; zero in a cancel.
    pub(crate) price: i64,
    pub(crate) session: u16,
    /// 1 while it waits here for its venue.
    pub(crate) waits: u8,
    pub(crate) reserved: [u8; 5],
}

/// What is kept of an order with a trigger beside the order, until it is certain that it has left.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Arming {
    /// Slot of the order.
    pub(crate) slot: u32,
    pub(crate) position_effect: u8,
    pub(crate) reserved: [u8; 3],
    pub(crate) cause: u64,
    /// The id of the request that the trigger came with.
    pub(crate) by: u64,
    /// When that came, in ticks.
    pub(crate) since: u64,
    pub(crate) trigger: Trigger,
}

/// The id of a request that was denied: all that is kept of it, for it is used up.
#[derive(Debug, Clone, Copy, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DeniedId {
    pub(crate) client: u64,
    pub(crate) session: u16,
    pub(crate) reserved: [u8; 6],
}

/// A fill that was counted, or what was told instead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Fill {
    pub(crate) exec: u64,
    /// What holds of it: zero if it was taken back. What an operator has booked may be negative.
    pub(crate) quantity: i64,
    /// Slot of its order.
    pub(crate) order: u32,
    /// The venue sequence of the amendment that holds, 1 if that has none; zero if nothing was amended.
    pub(crate) changed: u32,
}

const _: () = assert!(size_of::<Order>() == 120 && size_of::<Ask>() == 40 && size_of::<Fill>() == 24);

impl Order {
    pub(crate) const EMPTY: Self = Self {
        id: 0,
        client: 0,
        venue: 0,
        price: 0,
        valued: 0,
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
        route: 0,
        session: 0,
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Day,
        phase: Phase::Denied,
        marks: 0,
        reserved: [0; 3],
    };

    pub(crate) fn leaves(&self) -> i64 {
        if self.phase.is_live() { self.quantity.saturating_sub(self.known()).max(0) } else { 0 }
    }

    /// What may still move the position, if a replace on its way asks for this total.
    pub(crate) fn exposure(&self, replacing: i64) -> i64 {
        if self.phase == Phase::Armed {
            return 0;
        }
        // A venue that tells more than the total known here has replaced it, and that report is lost.
        let most = if self.phase.is_live() { self.quantity.max(replacing).max(self.reported) } else { self.reported };
        most.saturating_sub(self.filled).max(0)
    }

    /// What its venue counts less than came in, while nobody knows why: it may move the position back.
    pub(crate) fn recall(&self) -> i64 {
        if self.phase.is_unknown() { self.filled.saturating_sub(self.reported).max(0) } else { 0 }
    }

    /// What it may still trade at most, if a replace on its way asks for this total at this price: units of 10⁻¹⁶.
    pub(crate) fn value(&self, replacing: i64, price: i64, multiplier: i64) -> i128 {
        let each = i128::from(self.valued.unsigned_abs().max(price.unsigned_abs()));
        times(each * i128::from(self.exposure(replacing)), multiplier).min(MOST_VALUE)
    }

    /// Whether it may still be filled, and is not filled yet.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.is_live() && !self.is_filled()
    }

    /// Whether it may trade with another order: what waits for its trigger is at no venue.
    #[inline]
    pub(crate) fn may_meet(&self) -> bool {
        self.is_open() && self.phase != Phase::Armed
    }

    /// One that a replace on its way may make larger is not filled yet; nor is one whose cancel was not answered: the answer
    /// may be lost.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.phase == Phase::Open && self.filled >= self.quantity && self.replace == NONE && self.cancel == NONE
    }

    /// Whether another state of this order may move as much, is worth as much, and is as open.
    pub(crate) fn holds_as(&self, other: &Self) -> bool {
        let holds = |order: &Self| (order.quantity, order.filled, order.reported, order.valued, order.replace);
        holds(self) == holds(other)
            && self.phase.is_live() == other.phase.is_live()
            && self.phase.is_unknown() == other.phase.is_unknown()
            && self.is_open() == other.is_open()
            && (self.phase == Phase::Armed) == (other.phase == Phase::Armed)
    }

    /// Notes a venue sequence; false if it was seen before. Numbers that are too old to be known count as new.
    pub(crate) fn note_sequence(&mut self, sequence: u64) -> bool {
        if sequence > self.sequence {
            let by = sequence - self.sequence;
            // What leaves the window unseen is never seen.
            let known = self.sequence.min(64) as u32;
            let kept = 64_u64.saturating_sub(by).min(u64::from(known)) as u32;
            let leaving = if kept >= known { 0 } else { mask(known) & !mask(kept) };
            if by > 64 || self.seen & leaving != leaving {
                self.marks |= HOLE;
            }
            self.seen = if by >= 64 { 1 } else { self.seen << by | 1 };
            self.sequence = sequence;
            return true;
        }
        let behind = self.sequence - sequence;
        if behind >= 64 {
            return true;
        }
        let bit = 1 << behind;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }

    /// Whether every event up to the highest venue sequence was seen.
    pub(crate) fn is_contiguous(&self) -> bool {
        let known = mask(self.sequence.min(64) as u32);
        self.marks & HOLE == 0 && self.seen & known == known
    }

    /// All events up to this one count as seen: the venue has told where they led.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.seen = u64::MAX;
        self.marks &= !HOLE;
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
            time_in_force: self.time_in_force,
            venue: VenueId(self.route),
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
    pub(crate) const EMPTY: Self =
        Self { id: u64::MAX, client: 0, quantity: 0, price: 0, session: 0, waits: 0, reserved: [0; 5] };
}

impl DeniedId {
    pub(crate) const EMPTY: Self = Self { client: u64::MAX, session: 0, reserved: [0; 6] };
}

impl Fill {
    pub(crate) const EMPTY: Self = Self { exec: 0, quantity: 0, order: NONE, changed: 0 };
}

/// So many low bits.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
