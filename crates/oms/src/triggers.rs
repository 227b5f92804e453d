//! Which armed orders a tick fires.
//!
//! ```text
//!   symbol ─> board ─┬─ bid, ask, last ─┬─ up:   lowest threshold first ──┐
//!                    │                  └─ down: highest threshold first ─┴─> order ── Fired ──> journal
//!                    └─ a tick looks at the first of each, and at the next only if that is reached
//! ```
//!
//! All of this is beside the journal: it holds which orders have fired, and a replay compares nothing.
//!
//! The latest price of each kind is what counts: bid and ask of the last top of book (none where a side is empty), the
//! price of the last trade. A trigger that holds when it comes fires with them at once. Of two that must hold both, one
//! that does not is watched; reached, it hands over to the other if that does not hold.
//!
//! Entries of orders that are armed no more are dropped when they are met, and all at once when they are most.
//!
//! After a start no price is known, and the next tick decides. A start reads what its topic still holds of before: of that
//! only ticks fire an order that are no older than its trigger.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tickpath_clock::Clock;
use tickpath_market::{
    Condition, OrdStatus, OrderId, Price, SymbolId, TopOfBook, Trade, TriggerDirection, TriggerJoin, TriggerPriceType,
};
use tickpath_orders::{Armed, Core, Fired, Input, Output};

use crate::OmsError;
use crate::sequencer::{Reference, Sequencer};

/// Entries that may be of orders that are armed no more, beside as many as there are armed orders.
const MOST_STALE: usize = 256;
/// Prices of an instrument that can be watched.
const PRICE_TYPES: usize = TriggerPriceType::ALL.len();

/// The armed orders by what they wait for.
#[derive(Default)]
pub(crate) struct Triggers {
    /// By symbol.
    boards: Vec<Option<Box<Board>>>,
    /// By order: the request that the watched trigger came with.
    watched: HashMap<OrderId, u64>,
    entries: usize,
    /// Orders that the core has just said to be armed.
    fresh: Vec<OrderId>,
    /// A start reads what its topic holds of before.
    reads_again: bool,
}

/// What is watched of an instrument: by price type, then upwards and downwards.
#[derive(Default)]
struct Board([[BinaryHeap<Reverse<Watch>>; 2]; PRICE_TYPES]);

/// The first in its heap is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Watch {
    /// The threshold; its negative where prices must fall to it.
    key: i64,
    order: OrderId,
    by: u64,
    /// Of the ticks that a start reads again, those before this fire nothing.
    since: u64,
}

/// A watch whose threshold is reached.
struct Reached {
    watch: Watch,
    condition: Condition,
}

impl Triggers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether the core has said that orders are armed.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Notes the orders that the core says are armed now.
    pub fn note(&mut self, outputs: &[Output]) {
        let armed = outputs.iter().filter_map(|output| match output {
            Output::Report { report, .. } if report.status == OrdStatus::Armed.code() => Some(report.order_id),
            _ => None,
        });
        self.fresh.extend(armed);
    }

    /// Watches a trigger that does not hold.
    fn add(&mut self, armed: &Armed, since: u64, price: impl Fn(&Condition) -> Option<Price>) {
        let does_hold = |condition: &Condition| price(condition).is_some_and(|price| condition.holds(price));
        let needs_both = armed.trigger.join == TriggerJoin::And.code();
        let watched = armed.trigger.conditions().filter(|condition| !does_hold(condition));
        for condition in watched.take(if needs_both { 1 } else { 2 }) {
            self.watch(armed, since, &condition);
        }
    }

    fn watch(&mut self, armed: &Armed, since: u64, condition: &Condition) {
        let (key, order, by) = (key(condition, condition.price), armed.order, armed.by);
        if let Some(heap) = self.heap(condition) {
            heap.push(Reverse(Watch { key, order, by, since }));
            self.entries += 1;
        }
        self.watched.insert(order, by);
    }

    fn is_watched(&self, armed: &Armed) -> bool {
        self.watched.get(&armed.order) == Some(&armed.by)
    }

    /// Takes out the next watch of an instrument that its prices have reached.
    #[inline]
    fn next_reached(&mut self, symbol: SymbolId, prices: &Reference) -> Option<Reached> {
        let board = self.boards.get_mut(symbol.0 as usize)?.as_mut()?;
        for (price_type, heaps) in TriggerPriceType::ALL.iter().zip(&mut board.0) {
            let Some(price) = prices.of(price_type.code()) else { continue };
            for (direction, heap) in TriggerDirection::ALL.iter().zip(heaps) {
                let condition = Condition {
                    price,
                    symbol,
                    price_type: price_type.code(),
                    direction: direction.code(),
                    reserved: [0; 2],
                };
                if let Some(Reverse(watch)) = heap.peek().filter(|first| first.0.key <= key(&condition, price)).copied()
                {
                    heap.pop();
                    self.entries -= 1;
                    return Some(Reached { watch, condition });
                }
            }
        }
        None
    }

    /// Puts a watch back that was taken out.
    fn put_back(&mut self, Reached { watch, condition }: Reached) {
        if let Some(heap) = self.heap(&condition) {
            heap.push(Reverse(watch));
            self.entries += 1;
        }
    }

    /// Forgets what is watched of orders that are armed no more, if that is most of it.
    fn tidy(&mut self, core: &Core) {
        if self.entries.max(self.watched.len()) <= 4 * core.armed_at_most() + MOST_STALE {
            return;
        }
        self.watched.retain(|order, by| core.armed_order(*order).is_some_and(|armed| armed.by == *by));
        let Self { boards, watched, entries, .. } = self;
        *entries = 0;
        for heap in boards.iter_mut().flatten().flat_map(|board| board.0.iter_mut().flatten()) {
            heap.retain(|Reverse(watch)| watched.get(&watch.order) == Some(&watch.by));
            *entries += heap.len();
        }
    }

    /// Where a condition is watched; none for a code or a symbol that the core lets nobody arm.
    fn heap(&mut self, condition: &Condition) -> Option<&mut BinaryHeap<Reverse<Watch>>> {
        let symbol = condition.symbol.0 as usize;
        if symbol >= self.boards.len() {
            self.boards.resize_with(symbol + 1, || None);
        }
        let board = self.boards.get_mut(symbol)?.get_or_insert_default();
        let price_type = usize::from(condition.price_type).checked_sub(1)?;
        board.0.get_mut(price_type)?.get_mut(usize::from(condition.direction).checked_sub(1)?)
    }
}

impl<C: Clock> Sequencer<C> {
    /// It will see ticks: whoever asks for a trigger is not told that nothing could fire it.
    pub fn expect_ticks(&mut self) {
        self.sees_ticks = true;
    }

    /// What it sees until the next word is what its topic holds of before this start, or that is over.
    pub(crate) fn read_again(&mut self, reads_again: bool) {
        self.triggers.reads_again = reads_again;
    }

    /// Takes a top of book, stamped when it was sent: its middle is the reference price for checks, and it fires what
    /// waits for it.
    #[inline]
    pub fn tick(&mut self, stamp: u64, tick: &TopOfBook) -> Result<(), OmsError> {
        let Some(reference) = self.reference_mut(tick.symbol) else { return Ok(()) };
        let price = match (tick.bid.0, tick.ask.0) {
            (0, one) | (one, 0) => one,
            (bid, ask) => bid / 2 + ask / 2,
        };
        *reference = Reference { price: Price(price), stamp, bid: tick.bid, ask: tick.ask, ..*reference };
        if self.triggers.is_empty() { Ok(()) } else { self.fire_reached(tick.symbol, stamp) }
    }

    /// Takes a trade of the market, stamped when it was sent: it fires what waits for it.
    #[inline]
    pub fn trade(&mut self, stamp: u64, trade: &Trade) -> Result<(), OmsError> {
        let Some(reference) = self.reference_mut(trade.symbol) else { return Ok(()) };
        (reference.last, reference.traded) = (trade.price, stamp);
        if self.triggers.is_empty() { Ok(()) } else { self.fire_reached(trade.symbol, stamp) }
    }

    /// Watches what was armed before this start: all conditions, for what holds already is told by old ticks.
    pub(crate) fn watch_armed(&mut self) {
        let Self { triggers, core, .. } = self;
        for armed in core.armed() {
            armed.trigger.conditions().for_each(|condition| triggers.watch(&armed, armed.since, &condition));
        }
    }

    /// Watches what was armed just now, or fires it at once.
    #[cold]
    pub(crate) fn watch_fresh(&mut self) -> Result<(), OmsError> {
        while let Some(order) = self.triggers.fresh.pop() {
            let Some(armed) = self.core.armed_order(order).filter(|armed| !self.triggers.is_watched(armed)) else {
                continue;
            };
            if armed.trigger.fires(|condition| self.price_of(condition)) {
                let holds = |condition: &Condition| self.price_of(condition).is_some_and(|it| condition.holds(it));
                let first = armed.trigger.conditions().find(holds).unwrap_or_default();
                let is_trade = first.price_type == TriggerPriceType::Last.code();
                let reference = self.references.get(first.symbol.0 as usize).copied().unwrap_or_default();
                let stamp = if is_trade { reference.traded } else { reference.stamp };
                self.fire(order, stamp, &first)?;
                continue;
            }
            let Self { triggers, references, core, .. } = self;
            triggers.add(&armed, 0, |condition| latest(references, condition));
            triggers.tidy(core);
        }
        Ok(())
    }

    /// Fires what the latest prices of an instrument have reached.
    #[inline]
    fn fire_reached(&mut self, symbol: SymbolId, stamp: u64) -> Result<(), OmsError> {
        let prices = self.references.get(symbol.0 as usize).copied().unwrap_or_default();
        match self.triggers.next_reached(symbol, &prices) {
            None => Ok(()),
            Some(first) => self.fire_all(first, stamp, &prices),
        }
    }

    #[cold]
    fn fire_all(&mut self, first: Reached, stamp: u64, prices: &Reference) -> Result<(), OmsError> {
        let (symbol, mut next, mut kept) = (first.condition.symbol, Some(first), Vec::new());
        while let Some(reached) = next {
            let Watch { order, by, since, .. } = reached.watch;
            match self.core.armed_order(order).filter(|armed| armed.by == by) {
                None => {
                    if self.triggers.watched.get(&order) == Some(&by) {
                        self.triggers.watched.remove(&order);
                    }
                }
                Some(_) if stamp < since && self.triggers.reads_again => kept.push(reached),
                Some(armed) if armed.trigger.fires(|condition| self.price_of(condition)) => {
                    self.triggers.watched.remove(&order);
                    self.fire(order, stamp, &reached.condition)?;
                }
                // The other one does not hold.
                Some(_) if self.triggers.reads_again => kept.push(reached),
                Some(armed) => {
                    let Self { triggers, references, .. } = self;
                    triggers.add(&armed, since, |condition| latest(references, condition));
                }
            }
            next = self.triggers.next_reached(symbol, prices);
        }
        kept.into_iter().for_each(|reached| self.triggers.put_back(reached));
        Ok(())
    }

    /// Journals that an order has fired, and lets it go.
    fn fire(&mut self, order: OrderId, tick: u64, condition: &Condition) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        let Some(symbol) = self.core.order(order).map(|view| view.symbol) else { return Ok(()) };
        let (reference_price, reference_age_ns) = self.reference(symbol, now);
        let fired = Fired {
            order: order.0,
            tick,
            price: self.price_of(condition).unwrap_or_default(),
            reference_price,
            reference_age_ns,
            symbol: condition.symbol,
            price_type: condition.price_type,
            reserved: [0; 3],
        };
        let sequence = self.apply(now, &Input::Fired(fired))?;
        self.let_venues(sequence, now)?;
        // What its client is told carries T2, as of any order.
        self.let_sessions(sequence, self.clock.ticks())?;
        self.after_input()
    }

    /// The latest price that a condition looks at.
    fn price_of(&self, condition: &Condition) -> Option<Price> {
        latest(&self.references, condition)
    }

    #[inline]
    fn reference_mut(&mut self, symbol: SymbolId) -> Option<&mut Reference> {
        /// Larger ids are unknown to the core.
        const MOST: usize = 1 << 16;
        let index = symbol.0 as usize;
        if index >= self.references.len() {
            self.references.resize((index + 1).min(MOST), Reference::default());
        }
        self.references.get_mut(index)
    }
}

impl Reference {
    /// The latest price of this type; none if there was none.
    #[inline]
    fn of(&self, price_type: u8) -> Option<Price> {
        let price = match TriggerPriceType::from_code(price_type)? {
            TriggerPriceType::Ask => self.ask,
            TriggerPriceType::Last => self.last,
            TriggerPriceType::Bid => self.bid,
        };
        (price != Price::ZERO).then_some(price)
    }
}

fn latest(references: &[Reference], condition: &Condition) -> Option<Price> {
    references.get(condition.symbol.0 as usize)?.of(condition.price_type)
}

/// A price as the heap of a condition orders it: what is reached first is smallest.
#[inline]
fn key(condition: &Condition, price: Price) -> i64 {
    if condition.direction == TriggerDirection::Up.code() { price.0 } else { price.0.saturating_neg() }
}
