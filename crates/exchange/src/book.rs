//! The order book of one instrument: price-time priority, nothing else. It knows no ids, no reports and no rules of
//! entry; [`Venue`](crate::Venue) does.

use tickpath_market::{Price, Quantity, Side};

use crate::queue::{Queue, Slab};
use crate::{Order, Slot};

/// The resting orders of one instrument, the market maker's quotes among them.
#[derive(Debug)]
pub struct Book {
    /// The levels of either side, sorted by rank: the best is the last, where most inserts and removals happen.
    sides: [Vec<Level>; 2],
    orders: Slab,
    /// Where the market maker's bid and offer rest.
    quotes: [Option<Slot>; 2],
}

/// One price. There are no empty levels.
#[derive(Debug)]
struct Level {
    rank: i64,
    queue: Queue,
}

impl Book {
    /// An empty book, with room for so many orders before it has to grow.
    pub fn new(expected_orders: usize) -> Self {
        let levels = || Vec::with_capacity(expected_orders.min(LEVELS));
        Self { sides: [levels(), levels()], orders: Slab::with_capacity(expected_orders), quotes: [None; 2] }
    }

    /// Fills an order against the other side, as far as its limit and quantity reach. `traded` gets the taker, the
    /// resting order (both already counted up) and the quantity of each match; the price is the resting order's.
    /// What is left of the taker is not put into the book.
    pub fn take(&mut self, taker: &mut Order, mut traded: impl FnMut(&mut Order, &mut Order, Quantity)) {
        let other = index(taker.side.opposite());
        let levels = &mut self.sides[other];
        let reach = reach(taker);
        while !taker.is_filled() {
            let Some(level) = levels.last_mut().filter(|level| level.rank >= reach) else { return };
            let Some(slot) = level.queue.first() else { return };
            let resting = self.orders.get_mut(slot);
            let quantity = taker.open().min(resting.open());
            taker.filled.0 += quantity.0;
            resting.filled.0 += quantity.0;
            level.queue.open -= i128::from(quantity.0);
            traded(taker, resting, quantity);
            if !resting.is_filled() {
                continue;
            }
            self.orders.remove(&mut level.queue, slot);
            if self.quotes[other] == Some(slot) {
                self.quotes[other] = None;
            }
            if level.queue.is_empty() {
                levels.pop();
            }
        }
    }

    /// Whether [`take`](Self::take) would fill all that is open of this order. O(levels in reach).
    pub fn can_fill(&self, taker: &Order) -> bool {
        let reach = reach(taker);
        let mut missing = i128::from(taker.open().0);
        for level in self.sides[index(taker.side.opposite())].iter().rev().take_while(|level| level.rank >= reach) {
            missing -= level.queue.open;
            if missing <= 0 {
                return true;
            }
        }
        false
    }

    /// Puts an order with a limit and something open behind all others of its price. It must not cross the other side:
    /// [`take`](Self::take) comes first.
    pub fn rest(&mut self, order: Order) -> Slot {
        let rank = rank(order.side, order.price);
        let levels = &mut self.sides[index(order.side)];
        let at = position(levels, rank);
        if levels.get(at).is_none_or(|level| level.rank != rank) {
            levels.insert(at, Level { rank, queue: Queue::new() });
        }
        let slot = self.orders.push(&mut levels[at].queue, order);
        if order.is_quote() {
            self.quotes[index(order.side)] = Some(slot);
        }
        slot
    }

    /// Takes an order out. O(log levels), however many orders share its price; and a move of the better levels if it
    /// was the last of its own.
    pub fn remove(&mut self, slot: Slot) -> Order {
        let resting = self.orders.get(slot);
        let (side, rank) = (resting.side, rank(resting.side, resting.price));
        let levels = &mut self.sides[index(side)];
        let at = position(levels, rank);
        let order = self.orders.remove(&mut levels[at].queue, slot);
        if levels[at].queue.is_empty() {
            levels.remove(at);
        }
        order
    }

    /// Lowers the total of a resting order, which keeps its place. The new total must be above what is filled.
    pub fn shrink(&mut self, slot: Slot, quantity: Quantity) -> &mut Order {
        let order = self.orders.get_mut(slot);
        let levels = &mut self.sides[index(order.side)];
        let at = position(levels, rank(order.side, order.price));
        levels[at].queue.open -= i128::from(order.quantity.0 - quantity.0);
        order.quantity = quantity;
        order
    }

    /// Takes the market maker's quotes out.
    pub fn withdraw(&mut self) {
        for side in [Side::Buy, Side::Sell] {
            if let Some(slot) = self.quotes[index(side)].take() {
                self.remove(slot);
            }
        }
    }

    /// Whether the market maker quotes both sides.
    pub fn is_quoted(&self) -> bool {
        self.quotes.iter().all(Option::is_some)
    }

    /// A resting order.
    pub fn order(&self, slot: Slot) -> &Order {
        self.orders.get(slot)
    }

    /// A resting order, to count its events and what fills come to. Its side, price and open quantity are the book's.
    pub(crate) fn order_mut(&mut self, slot: Slot) -> &mut Order {
        self.orders.get_mut(slot)
    }

    /// All that rests, the quotes too: bids before offers, the best first, at one price the oldest first.
    pub fn orders(&self) -> impl Iterator<Item = (Slot, &Order)> {
        let levels = self.sides.iter().flat_map(|levels| levels.iter().rev());
        levels.flat_map(|level| self.orders.iter(&level.queue))
    }

    /// The open quantity at each price of a side, best first. A sum beyond 64 bits is given as the largest quantity.
    pub fn depth(&self, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.sides[index(side)].iter().rev().map(move |level| {
            let open = i64::try_from(level.queue.open).unwrap_or(i64::MAX);
            (Price(ranked(side, level.rank)), Quantity(open))
        })
    }
}

/// Levels a side that a new book has room for.
const LEVELS: usize = 256;

fn index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}

/// The higher, the better for the other side: a bid's price, an offer's complement (a negation that cannot overflow).
fn rank(side: Side, price: Price) -> i64 {
    ranked(side, price.0)
}

/// From price to rank, and from rank to price.
fn ranked(side: Side, number: i64) -> i64 {
    match side {
        Side::Buy => number,
        Side::Sell => !number,
    }
}

/// The lowest rank of the other side that an order trades with.
fn reach(taker: &Order) -> i64 {
    match taker.price {
        Price::ZERO => i64::MIN,
        limit => rank(taker.side.opposite(), limit),
    }
}

/// Where the level of this rank is, or belongs.
fn position(levels: &[Level], rank: i64) -> usize {
    levels.partition_point(|level| level.rank < rank)
}
