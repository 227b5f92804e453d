//! The order book of one instrument: price-time priority and nothing else. Ids, reports and the rules of entry are in
//! [`SimVenue`](crate::SimVenue).

use tickpath_market::{Price, Quantity, Side};

use crate::order_queue::{OrderQueue, OrderSlab};
use crate::{BookOrder, BookSlot};

/// Resting orders of one instrument, the market maker's quotes included.
#[derive(Debug)]
pub struct OrderBook {
    /// Levels of each side, sorted by rank. The best level is the last one, because most inserts and removals happen
    /// there.
    sides: [Vec<PriceLevel>; 2],
    orders: OrderSlab,
    /// Slots of the market maker's bid and offer.
    quotes: [Option<BookSlot>; 2],
}

/// Orders at one price. A book has no empty levels.
#[derive(Debug)]
struct PriceLevel {
    rank: i64,
    queue: OrderQueue,
}

impl OrderBook {
    /// Creates an empty book with room for this number of orders.
    pub fn new(expected_orders: usize) -> Self {
        let levels = || Vec::with_capacity(expected_orders.min(RESERVED_LEVELS));
        Self { sides: [levels(), levels()], orders: OrderSlab::with_capacity(expected_orders), quotes: [None; 2] }
    }

    /// Fills an order against the other side, as far as its limit and quantity reach, and leaves its rest out of the
    /// book. `traded` gets the taker, the resting order (both with their new `filled`) and the quantity of each match,
    /// at the resting order's price.
    pub fn match_taker(
        &mut self,
        taker: &mut BookOrder,
        mut traded: impl FnMut(&mut BookOrder, &mut BookOrder, Quantity),
    ) {
        let other = index(taker.side.opposite());
        let levels = &mut self.sides[other];
        let reach = worst_rank(taker);
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

    /// Returns whether [`match_taker`](Self::match_taker) would fill this order completely. O(levels in reach).
    pub fn can_fill(&self, taker: &BookOrder) -> bool {
        let reach = worst_rank(taker);
        let mut missing = i128::from(taker.open().0);
        for level in self.sides[index(taker.side.opposite())].iter().rev().take_while(|level| level.rank >= reach) {
            missing -= level.queue.open;
            if missing <= 0 {
                return true;
            }
        }
        false
    }

    /// Returns whether [`match_taker`](Self::match_taker) would fill any part of this order.
    pub fn would_trade(&self, taker: &BookOrder) -> bool {
        let best = self.sides[index(taker.side.opposite())].last();
        !taker.is_filled() && best.is_some_and(|level| level.rank >= worst_rank(taker))
    }

    /// Queues an order with a limit and an open quantity behind all others at its price. The order must not cross the
    /// other side: [`match_taker`](Self::match_taker) comes first.
    pub fn insert(&mut self, order: BookOrder) -> BookSlot {
        let rank = rank(order.side, order.price.0);
        let levels = &mut self.sides[index(order.side)];
        let level = position(levels, rank);
        if levels.get(level).is_none_or(|found| found.rank != rank) {
            levels.insert(level, PriceLevel { rank, queue: OrderQueue::new() });
        }
        let slot = self.orders.push(&mut levels[level].queue, order);
        if order.is_quote() {
            self.quotes[index(order.side)] = Some(slot);
        }
        slot
    }

    /// Removes an order in O(log levels), however many orders share its price. If it was the last at its price, the
    /// better levels move as well.
    pub fn remove(&mut self, slot: BookSlot) -> BookOrder {
        let resting = self.orders.get(slot);
        let (side, rank) = (resting.side, rank(resting.side, resting.price.0));
        let levels = &mut self.sides[index(side)];
        let index = position(levels, rank);
        let order = self.orders.remove(&mut levels[index].queue, slot);
        if levels[index].queue.is_empty() {
            levels.remove(index);
        }
        order
    }

    /// Lowers the total of a resting order, which keeps its place. The new total must be above the filled quantity.
    pub fn reduce(&mut self, slot: BookSlot, quantity: Quantity) -> &mut BookOrder {
        let order = self.orders.get_mut(slot);
        let levels = &mut self.sides[index(order.side)];
        let index = position(levels, rank(order.side, order.price.0));
        levels[index].queue.open -= i128::from(order.quantity.0 - quantity.0);
        order.quantity = quantity;
        order
    }

    /// Removes the market maker's quotes.
    pub fn withdraw_quotes(&mut self) {
        for side in [Side::Buy, Side::Sell] {
            if let Some(slot) = self.quotes[index(side)].take() {
                self.remove(slot);
            }
        }
    }

    /// Returns whether the market maker quotes both sides.
    pub fn is_quoted(&self) -> bool {
        self.quotes.iter().all(Option::is_some)
    }

    /// Returns a resting order.
    pub fn order(&self, slot: BookSlot) -> &BookOrder {
        self.orders.get(slot)
    }

    /// Returns a resting order for changes of its events and filled quantity. The caller must leave its side, price and
    /// open quantity unchanged, because the book's levels depend on them.
    pub(crate) fn order_mut(&mut self, slot: BookSlot) -> &mut BookOrder {
        self.orders.get_mut(slot)
    }

    /// Returns all resting orders and quotes: bids before offers, the best first, at one price the oldest first.
    pub fn orders(&self) -> impl Iterator<Item = (BookSlot, &BookOrder)> {
        let levels = self.sides.iter().flat_map(|levels| levels.iter().rev());
        levels.flat_map(|level| self.orders.iter(&level.queue))
    }

    /// Returns the open quantity at each price of a side, best first. A sum beyond 64 bits is capped at the largest
    /// quantity.
    pub fn depth(&self, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.sides[index(side)].iter().rev().map(move |level| {
            let open = i64::try_from(level.queue.open).unwrap_or(i64::MAX);
            (Price(rank(side, level.rank)), Quantity(open))
        })
    }
}

/// Max number of levels a side that a new book has room for.
const RESERVED_LEVELS: usize = 256;

fn index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}

/// Returns the rank of a price, higher for a price that is better for the other side: a bid's price, an offer's
/// complement (a negation that cannot overflow). The same function converts a rank to its price.
fn rank(side: Side, price: i64) -> i64 {
    match side {
        Side::Buy => price,
        Side::Sell => !price,
    }
}

/// Returns the lowest rank of the other side that an order trades with.
fn worst_rank(taker: &BookOrder) -> i64 {
    match taker.price {
        Price::ZERO => i64::MIN,
        limit => rank(taker.side.opposite(), limit.0),
    }
}

/// Returns the index of the level of this rank, or the index where it belongs.
fn position(levels: &[PriceLevel], rank: i64) -> usize {
    levels.partition_point(|level| level.rank < rank)
}
