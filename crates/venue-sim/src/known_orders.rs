//! Table of the venue's known orders: those that rest, and those that ended today.
//!
//! ```text
//!     id ─┬─ upper 58 bits ──> block ──┬── here       a bit for each of its 64 ids
//!         └─ lower 6 bits ─────────────┴── orders     an entry for each set bit, in the order of the bits
//! ```
//!
//! Ids mostly count up, so an order is appended to its block, and neighbours in time are neighbours in memory. No entry
//! is ever removed during the day, so no clean-up delays a request.

use std::hash::BuildHasherDefault;

use tickpath_market::{AccountId, NewOrder, OrdStatus, OrderId, Price, Quantity, SymbolId, VenueOrderId};

use crate::used_ids::IdMap;
use crate::{BookOrder, BookSlot, RejectReason};

/// Entry of the table: a resting order, or an order that ended today.
#[derive(Debug)]
pub(crate) enum KnownOrder {
    Resting(BookLocation),
    Ended(EndedOrder),
}

/// Keeps the entry small, because a day has many orders.
const _: () = assert!(size_of::<KnownOrder>() == 48);

/// Place of a resting order: its symbol, and its slot in that book.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BookLocation {
    pub symbol: SymbolId,
    pub slot: BookSlot,
}

/// Outcome of an order. The filled quantity may still change by busts and corrections, the status does not.
#[derive(Debug)]
pub(crate) struct EndedOrder {
    pub venue_order_id: VenueOrderId,
    pub price: Price,
    pub filled: Quantity,
    /// Number of events reported so far.
    pub events: u64,
    pub symbol: SymbolId,
    pub account: AccountId,
    /// Code of the [`RejectReason`]; zero if the order was accepted.
    pub reason: u16,
    /// Code of the side; in a rejected order it may be no valid code.
    pub side: u8,
    pub status: OrdStatus,
}

#[derive(Debug)]
pub(crate) struct KnownOrders {
    blocks: IdMap<u64, OrderBlock>,
    resting: usize,
    expected_blocks: usize,
}

#[derive(Debug, Default)]
struct OrderBlock {
    members: u64,
    orders: Vec<KnownOrder>,
}

impl EndedOrder {
    /// Returns the outcome of an accepted order of this symbol.
    pub fn of(order: &BookOrder, symbol: SymbolId, status: OrdStatus) -> Self {
        Self {
            venue_order_id: order.venue_order_id,
            price: order.price,
            filled: order.filled,
            events: order.events,
            symbol,
            account: order.account,
            reason: 0,
            side: order.side.code(),
            status,
        }
    }

    /// Returns the outcome of a rejected order: its rejection is its only event.
    pub fn refused(new: &NewOrder, reject: RejectReason) -> Self {
        Self {
            venue_order_id: VenueOrderId(0),
            price: new.price,
            filled: Quantity::ZERO,
            events: 1,
            symbol: new.symbol,
            account: new.account,
            reason: reject.code(),
            side: new.side,
            status: OrdStatus::Rejected,
        }
    }
}

impl KnownOrders {
    /// Creates a table with room for this number of orders, if about one id in eight is an order.
    pub fn with_capacity(orders: usize) -> Self {
        let expected_blocks = orders / 8 + 1;
        let blocks = IdMap::with_capacity_and_hasher(expected_blocks, BuildHasherDefault::default());
        Self { blocks, resting: 0, expected_blocks }
    }

    pub fn resting_count(&self) -> usize {
        self.resting
    }

    pub fn get(&self, id: OrderId) -> Option<&KnownOrder> {
        let (number, bit) = split(id);
        let block = self.blocks.get(&number)?;
        (block.members & bit != 0).then(|| &block.orders[block.rank(bit)])
    }

    pub fn get_mut(&mut self, id: OrderId) -> Option<&mut KnownOrder> {
        let (number, bit) = split(id);
        let block = self.blocks.get_mut(&number)?;
        let rank = block.rank(bit);
        (block.members & bit != 0).then(|| &mut block.orders[rank])
    }

    /// Returns all entries, in an order that no caller may depend on.
    pub fn iter(&self) -> impl Iterator<Item = (OrderId, &KnownOrder)> {
        self.blocks.iter().flat_map(|(&number, block)| {
            let bits = (0..64_u64).filter(move |&bit| block.members & (1 << bit) != 0);
            bits.zip(&block.orders).map(move |(bit, known)| (OrderId((number << 6) | bit), known))
        })
    }

    /// Returns the place of an order, if it rests.
    pub fn location(&self, id: OrderId) -> Option<BookLocation> {
        match self.get(id) {
            Some(KnownOrder::Resting(place)) => Some(*place),
            Some(KnownOrder::Ended(_)) | None => None,
        }
    }

    /// Records that an order rests at this place.
    pub fn add_resting(&mut self, id: OrderId, place: BookLocation) {
        self.set(id, KnownOrder::Resting(place));
        self.resting += 1;
    }

    pub fn add_ended(&mut self, id: OrderId, ended: EndedOrder) {
        self.set(id, KnownOrder::Ended(ended));
    }

    pub fn forget_ended(&mut self) {
        self.blocks.retain(|_, block| {
            block.forget_ended();
            block.members != 0
        });
        self.blocks.shrink_to(self.expected_blocks);
    }

    fn set(&mut self, id: OrderId, known: KnownOrder) {
        let (number, bit) = split(id);
        let block = self.blocks.entry(number).or_default();
        let rank = block.rank(bit);
        if block.members & bit == 0 {
            block.members |= bit;
            block.orders.insert(rank, known);
            return;
        }
        let before = std::mem::replace(&mut block.orders[rank], known);
        self.resting -= usize::from(matches!(before, KnownOrder::Resting(_)));
    }
}

impl OrderBlock {
    /// Returns the number of the block's orders with ids below this bit's.
    fn rank(&self, bit: u64) -> usize {
        (self.members & (bit - 1)).count_ones() as usize
    }

    fn forget_ended(&mut self) {
        let mut left = self.members;
        self.orders.retain(|known| {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            let rests = matches!(known, KnownOrder::Resting(_));
            if !rests {
                self.members ^= bit;
            }
            rests
        });
        self.orders.shrink_to_fit();
    }
}

/// Returns the block's number, and the id's bit in it.
fn split(id: OrderId) -> (u64, u64) {
    (id.0 >> 6, 1 << (id.0 & 63))
}
