//! The orders that the venue knows: those that rest, and those that were done today.
//!
//! ```text
//!     id ─┬─ upper 58 bits ──> block ──┬── here       a bit for each of its 64 ids
//!         └─ lower 6 bits ─────────────┴── orders     one for each bit that is set, in the order of the bits
//! ```
//!
//! Ids mostly count up, so an order is appended to its block, and neighbours in time are neighbours in memory. No entry
//! is ever removed during the day, so nothing is cleaned up in the middle of it.

use std::hash::BuildHasherDefault;

use tickpath_market::{AccountId, NewOrder, OrdStatus, OrderId, Price, Quantity, SymbolId, VenueOrderId};

use crate::used::IdMap;
use crate::{Order, Reject, Slot};

/// What the venue knows of an order.
#[derive(Debug)]
pub(crate) enum Known {
    Rests(Place),
    Ended(Ended),
}

/// A day has many orders: what each of them leaves behind is kept small.
const _: () = assert!(size_of::<Known>() == 48);

/// Where an order rests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub symbol: SymbolId,
    pub slot: Slot,
}

/// How an order ended. What its fills come to may change afterwards, the status does not.
#[derive(Debug)]
pub(crate) struct Ended {
    pub venue_order_id: VenueOrderId,
    pub price: Price,
    pub filled: Quantity,
    /// Events reported so far.
    pub events: u64,
    pub symbol: SymbolId,
    pub account: AccountId,
    /// Why it was refused; zero if it was not.
    pub reason: u16,
    /// A code: that of a refused order may be none.
    pub side: u8,
    pub status: OrdStatus,
}

/// The table of known orders.
#[derive(Debug)]
pub(crate) struct KnownOrders {
    blocks: IdMap<u64, Block>,
    resting: usize,
    expected_blocks: usize,
}

#[derive(Debug, Default)]
struct Block {
    here: u64,
    orders: Vec<Known>,
}

impl Ended {
    /// An order of this symbol that was accepted.
    pub fn of(order: &Order, symbol: SymbolId, status: OrdStatus) -> Self {
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

    /// An order that was refused: its refusal is its only event.
    pub fn refused(new: &NewOrder, reject: Reject) -> Self {
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
    /// With room for so many orders before it has to grow, if about one id in eight is an order.
    pub fn with_capacity(orders: usize) -> Self {
        let expected_blocks = orders / 8 + 1;
        let blocks = IdMap::with_capacity_and_hasher(expected_blocks, BuildHasherDefault::default());
        Self { blocks, resting: 0, expected_blocks }
    }

    /// How many rest.
    pub fn resting(&self) -> usize {
        self.resting
    }

    pub fn get(&self, id: OrderId) -> Option<&Known> {
        let (number, bit) = split(id);
        let block = self.blocks.get(&number)?;
        (block.here & bit != 0).then(|| &block.orders[block.rank(bit)])
    }

    pub fn get_mut(&mut self, id: OrderId) -> Option<&mut Known> {
        let (number, bit) = split(id);
        let block = self.blocks.get_mut(&number)?;
        let rank = block.rank(bit);
        (block.here & bit != 0).then(|| &mut block.orders[rank])
    }

    /// All of them, in no order that anything may depend on.
    pub fn iter(&self) -> impl Iterator<Item = (OrderId, &Known)> {
        self.blocks.iter().flat_map(|(&number, block)| {
            let bits = (0..64_u64).filter(move |&bit| block.here & (1 << bit) != 0);
            bits.zip(&block.orders).map(move |(bit, known)| (OrderId((number << 6) | bit), known))
        })
    }

    /// Where an order rests, if it does.
    pub fn place(&self, id: OrderId) -> Option<Place> {
        match self.get(id) {
            Some(Known::Rests(place)) => Some(*place),
            Some(Known::Ended(_)) | None => None,
        }
    }

    /// The order rests here from now on.
    pub fn rest(&mut self, id: OrderId, place: Place) {
        self.set(id, Known::Rests(place));
        self.resting += 1;
    }

    /// The order is done.
    pub fn end(&mut self, id: OrderId, ended: Ended) {
        self.set(id, Known::Ended(ended));
    }

    /// Forgets all that is done, and gives memory back.
    pub fn forget_ended(&mut self) {
        self.blocks.retain(|_, block| {
            block.forget_ended();
            block.here != 0
        });
        self.blocks.shrink_to(self.expected_blocks);
    }

    fn set(&mut self, id: OrderId, known: Known) {
        let (number, bit) = split(id);
        let block = self.blocks.entry(number).or_default();
        let rank = block.rank(bit);
        if block.here & bit == 0 {
            block.here |= bit;
            block.orders.insert(rank, known);
            return;
        }
        let before = std::mem::replace(&mut block.orders[rank], known);
        self.resting -= usize::from(matches!(before, Known::Rests(_)));
    }
}

impl Block {
    /// How many of its orders have ids below this bit's.
    fn rank(&self, bit: u64) -> usize {
        (self.here & (bit - 1)).count_ones() as usize
    }

    fn forget_ended(&mut self) {
        let mut left = self.here;
        self.orders.retain(|known| {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            let rests = matches!(known, Known::Rests(_));
            if !rests {
                self.here ^= bit;
            }
            rests
        });
        self.orders.shrink_to_fit();
    }
}

/// The block, and the bit in it.
fn split(id: OrderId) -> (u64, u64) {
    (id.0 >> 6, 1 << (id.0 & 63))
}
