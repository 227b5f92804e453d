//! Conditional orders: finds the armed orders that a tick fires.
//!
//! ```text
//!   symbol ─> board ─┬─ bid, ask, last ─┬─ up:   lowest threshold first ──┐
//!                    │                  └─ down: highest threshold first ─┴─> order ── Fired ──> journal
//!                    └─ a tick looks at the first of each, and at the next only if that is reached
//! ```
//!
//! All of this is beside the journal: the journal holds which orders have fired, and a replay compares nothing.
//!
//! A condition is compared with the latest price of its kind: bid and ask of the last top of book (none where a side is
//! empty), or the price of the last trade. A trigger that already holds when it arrives fires at once. If two
//! conditions must hold together, one that does not hold is watched; once reached, it hands over to the other if that
//! one does not hold.
//!
//! Entries of orders that are not armed any more are dropped when they are met, and all together when they are the
//! majority.
//!
//! After a start no price is known, all conditions are watched, and the next tick decides. A start reads the ticks from
//! before it that the topic still holds: those fire an order only if they are no older than its trigger. A watch that
//! an older tick reaches is put aside until the ticks are that recent.
//!
//! A tick costs a comparison for each kind of price, and a move of an entry from a heap to another for each order that
//! it reaches. Orders whose two conditions must hold together, and never do, are handed over at each crossing, all in
//! one tick: many such orders on one threshold delay the messages behind this tick. The work is not spread over turns,
//! because the next tick must find all entries that the last one left, and some of them may fire.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tickpath_market::{
    Condition, OrdStatus, OrderId, Price, SymbolId, TriggerDirection, TriggerJoin, TriggerPriceType,
};
use tickpath_oms_core::{ArmedOrder, Core, Output};

/// Entries beyond four per armed order that trigger a removal of those whose orders are not armed any more.
const MAX_STALE: usize = 256;
/// Number of prices of an instrument that can be watched.
const PRICE_TYPES: usize = TriggerPriceType::ALL.len();

/// Armed orders, by the conditions that they wait for.
#[derive(Default)]
pub(crate) struct Triggers {
    /// Watches, by symbol.
    boards: Vec<Option<Box<PriceBoard>>>,
    watched: HashMap<OrderId, WatchedOrder>,
    /// Watches that older ticks have reached while a start reads its topic again, by the first stamp that may fire
    /// them.
    postponed: BTreeMap<u64, Vec<ReachedWatch>>,
    /// Number of entries in all boards and aside.
    entries: usize,
    /// Orders that the core has just reported as armed.
    pub newly_armed: Vec<OrderId>,
    /// Whether a start is reading the ticks from before it.
    is_catching_up: bool,
}

/// The last prices of a symbol, in one cache line; zero where there is none.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct ReferencePrices {
    /// Price that requests are checked against, and when it was sent.
    pub price: Price,
    pub stamp: u64,
    /// Prices that triggers are compared with.
    pub bid: Price,
    pub ask: Price,
    pub last: Price,
    /// When the last trade was sent.
    pub traded: u64,
}

/// Watches of an instrument: by price type, then upwards and downwards.
#[derive(Default)]
struct PriceBoard([[BinaryHeap<Reverse<PriceWatch>>; 2]; PRICE_TYPES]);

/// Watched conditions of an order.
#[derive(Debug, Clone, Copy)]
struct WatchedOrder {
    /// The request that brought its trigger.
    request: u64,
    /// Number of its conditions that are watched.
    conditions: u8,
}

/// Entry of a heap, ordered so that the watch that is reached first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PriceWatch {
    /// The threshold, negated where prices must fall to it.
    key: i64,
    order: OrderId,
    request: u64,
}

/// A watch whose threshold is reached, with the condition that the price meets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReachedWatch {
    watch: PriceWatch,
    pub condition: Condition,
}

impl ReachedWatch {
    /// Returns the order that waits.
    pub fn order(&self) -> OrderId {
        self.watch.order
    }
}

impl Triggers {
    /// Sets whether the next ticks are those from before this start that the topic still holds.
    pub fn set_catching_up(&mut self, is_catching_up: bool) {
        self.is_catching_up = is_catching_up;
        if !is_catching_up {
            self.put_back(u64::MAX);
        }
    }

    /// Returns whether the ticks are those from before this start.
    #[inline]
    pub fn is_catching_up(&self) -> bool {
        self.is_catching_up
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Notes the orders that the core reports as armed.
    pub fn note(&mut self, outputs: &[Output]) {
        let armed = outputs.iter().filter_map(|output| match output {
            Output::Report { report, .. } if report.status == OrdStatus::Armed.code() => Some(report.order_id),
            _ => None,
        });
        self.newly_armed.extend(armed);
    }

    /// Watches the conditions of a trigger that do not hold.
    pub fn add(&mut self, armed: &ArmedOrder, references: &[ReferencePrices]) {
        let does_hold =
            |condition: &Condition| latest(references, condition).is_some_and(|price| condition.holds(price));
        let needs_both = armed.trigger.join == TriggerJoin::And.code();
        let watched = armed.trigger.conditions().filter(|condition| !does_hold(condition));
        for condition in watched.take(if needs_both { 1 } else { 2 }) {
            self.watch(armed, &condition);
        }
    }

    /// Watches a condition of an order.
    pub fn watch(&mut self, armed: &ArmedOrder, condition: &Condition) {
        let (key, order, request) = (key(condition, condition.price), armed.order, armed.request_id);
        let fresh = WatchedOrder { request, conditions: 0 };
        let watched = self.watched.entry(order).or_insert(fresh);
        if watched.request != request {
            *watched = fresh;
        }
        watched.conditions += 1;
        self.put(ReachedWatch { watch: PriceWatch { key, order, request }, condition: *condition });
    }

    /// Watches the other of two conditions, which does not hold. For an order from before a start both are watched
    /// already.
    fn watch_other(&mut self, armed: &ArmedOrder, references: &[ReferencePrices]) {
        if let Some(watched) = self.watched.get_mut(&armed.order) {
            watched.conditions = watched.conditions.saturating_sub(1);
            if watched.conditions > 0 {
                return;
            }
        }
        self.add(armed, references);
    }

    /// Returns whether an order is watched for the trigger that this request brought.
    pub fn is_watched(&self, order: OrderId, request: u64) -> bool {
        self.watched.get(&order).is_some_and(|watched| watched.request == request)
    }

    /// Removes and returns the next watch of an instrument that its prices have reached.
    #[inline]
    pub fn next_reached(&mut self, symbol: SymbolId, prices: &ReferencePrices) -> Option<ReachedWatch> {
        let board = self.boards.get_mut(symbol.0 as usize)?.as_mut()?;
        for (price_type, heaps) in TriggerPriceType::ALL.iter().zip(&mut board.0) {
            let Some(price) = prices.price_of(price_type.code()) else { continue };
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
                    return Some(ReachedWatch { watch, condition });
                }
            }
        }
        None
    }

    /// Returns whether a reached watch fires its order. A watch that may fire later is kept.
    pub fn fires(
        &mut self,
        reached: &ReachedWatch,
        armed: Option<ArmedOrder>,
        stamp: u64,
        references: &[ReferencePrices],
    ) -> bool {
        let PriceWatch { order, request, .. } = reached.watch;
        let Some(armed) = armed.filter(|armed| armed.request_id == request) else {
            if self.is_watched(order, request) {
                self.watched.remove(&order);
            }
            return false;
        };
        if self.is_catching_up && stamp < armed.since {
            self.postponed.entry(armed.since).or_default().push(*reached);
            self.entries += 1;
            return false;
        }
        let fires = armed.trigger.fires(|condition| latest(references, condition));
        if fires {
            self.watched.remove(&order);
        } else {
            self.watch_other(&armed, references);
        }
        fires
    }

    /// Puts the watches back that were aside until a tick with this stamp.
    pub fn put_back(&mut self, stamp: u64) {
        while let Some(first) = self.postponed.first_entry().filter(|first| *first.key() <= stamp) {
            for reached in first.remove() {
                self.entries -= 1;
                self.put(reached);
            }
        }
    }

    /// Puts a watch into its heap.
    fn put(&mut self, ReachedWatch { watch, condition }: ReachedWatch) {
        if let Some(heap) = self.heap(&condition) {
            heap.push(Reverse(watch));
            self.entries += 1;
        }
    }

    /// Drops the watches of orders that are not armed any more, if they are the majority.
    pub fn drop_stale(&mut self, core: &Core) {
        if self.entries.max(self.watched.len()) <= 4 * core.armed_upper_bound() + MAX_STALE {
            return;
        }
        self.watched.retain(|order, it| core.armed_order(*order).is_some_and(|armed| armed.request_id == it.request));
        let Self { boards, watched, postponed, entries, .. } = self;
        *entries = postponed.values().map(Vec::len).sum();
        for heap in boards.iter_mut().flatten().flat_map(|board| board.0.iter_mut().flatten()) {
            heap.retain(|Reverse(watch)| watched.get(&watch.order).is_some_and(|it| it.request == watch.request));
            *entries += heap.len();
        }
    }

    /// Returns the heap of a condition; `None` for a code or a symbol that the core never arms.
    fn heap(&mut self, condition: &Condition) -> Option<&mut BinaryHeap<Reverse<PriceWatch>>> {
        let symbol = condition.symbol.0 as usize;
        if symbol >= self.boards.len() {
            self.boards.resize_with(symbol + 1, || None);
        }
        let board = self.boards.get_mut(symbol)?.get_or_insert_default();
        let price_type = usize::from(condition.price_type).checked_sub(1)?;
        board.0.get_mut(price_type)?.get_mut(usize::from(condition.direction).checked_sub(1)?)
    }
}

impl ReferencePrices {
    /// Returns the latest price of this type; `None` without a price.
    #[inline]
    fn price_of(&self, price_type: u8) -> Option<Price> {
        let price = match TriggerPriceType::from_code(price_type)? {
            TriggerPriceType::Ask => self.ask,
            TriggerPriceType::Last => self.last,
            TriggerPriceType::Bid => self.bid,
        };
        (price != Price::ZERO).then_some(price)
    }
}

/// Returns the latest price that a condition is compared with; `None` without a price.
pub(crate) fn latest(references: &[ReferencePrices], condition: &Condition) -> Option<Price> {
    references.get(condition.symbol.0 as usize)?.price_of(condition.price_type)
}

/// Returns a price as the heap of a condition orders it: the threshold that is reached first is smallest.
#[inline]
fn key(condition: &Condition, price: Price) -> i64 {
    if condition.direction == TriggerDirection::Up.code() { price.0 } else { price.0.saturating_neg() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tickpath_market::Trigger;

    use super::*;

    /// Orders from before a start, and one market for both symbols.
    #[derive(Default)]
    struct RestartScene {
        triggers: Triggers,
        armed: BTreeMap<OrderId, ArmedOrder>,
        references: Vec<ReferencePrices>,
        /// Number of watches that ticks have removed from their heaps.
        reached: usize,
    }

    impl RestartScene {
        fn with(orders: u64, trigger: Trigger, since: impl Fn(u64) -> u64) -> Self {
            let mut start = Self { references: vec![ReferencePrices::default(); 2], ..Self::default() };
            start.triggers.is_catching_up = true;
            for order in 1..=orders {
                let armed = ArmedOrder { order: OrderId(order), trigger, request_id: order, since: since(order) };
                trigger.conditions().for_each(|condition| start.triggers.watch(&armed, &condition));
                start.armed.insert(armed.order, armed);
            }
            start
        }

        /// Applies a trade, and returns the orders that it fires.
        fn trade(&mut self, stamp: u64, symbol: u32, price: i64) -> Vec<u64> {
            self.references[symbol as usize].last = Price::from_whole(price);
            let (prices, mut fired) = (self.references[symbol as usize], Vec::new());
            self.triggers.put_back(stamp);
            while let Some(reached) = self.triggers.next_reached(SymbolId(symbol), &prices) {
                self.reached += 1;
                let order = reached.watch.order;
                if self.triggers.fires(&reached, self.armed.get(&order).copied(), stamp, &self.references) {
                    self.armed.remove(&order);
                    fired.push(order.0);
                }
            }
            fired
        }
    }

    fn up(symbol: u32) -> Condition {
        let (price_type, direction) = (TriggerPriceType::Last.code(), TriggerDirection::Up.code());
        Condition { price: Price::from_whole(100), symbol: SymbolId(symbol), price_type, direction, reserved: [0; 2] }
    }

    const ORDERS: u64 = 100;
    const OLD_TICKS: u64 = 1_000;

    #[test]
    fn a_watch_reached_by_old_ticks_is_checked_again_when_it_may_fire() {
        // The second half of the orders was armed a tick later.
        let since = |order| OLD_TICKS + u64::from(order > ORDERS / 2);
        let mut start = RestartScene::with(ORDERS, Trigger::on(up(0)), since);
        for stamp in 0..OLD_TICKS {
            assert_eq!(start.trade(stamp, 0, 100 + (stamp % 2) as i64), [0; 0]);
        }
        assert_eq!(start.reached as u64, ORDERS);
        assert!(!start.triggers.is_empty(), "all orders wait");
        assert_eq!(start.trade(OLD_TICKS, 0, 100), (1..=ORDERS / 2).collect::<Vec<_>>());
        // The other symbol's ticks also advance the time.
        assert_eq!(start.trade(OLD_TICKS + 1, 1, 1), [0; 0]);
        assert_eq!(start.trade(OLD_TICKS + 1, 0, 100), (ORDERS / 2 + 1..=ORDERS).collect::<Vec<_>>());
        assert_eq!(start.reached as u64, 2 * ORDERS);
        assert!(start.triggers.is_empty() && start.triggers.watched.is_empty());
    }

    #[test]
    fn only_one_of_two_joint_conditions_is_watched_during_a_catch_up() {
        let mut start = RestartScene::with(ORDERS, Trigger::joined(up(0), TriggerJoin::And, up(1)), |_| 0);
        assert_eq!(start.triggers.entries as u64, 2 * ORDERS);
        for stamp in 0..OLD_TICKS {
            assert_eq!(start.trade(stamp, 0, 100 + (stamp % 2) as i64), [0; 0]);
        }
        assert_eq!((start.reached as u64, start.triggers.entries as u64), (ORDERS, ORDERS));
        // The first condition holds no more when the second is reached: one of the two is watched, and none twice.
        start.trade(OLD_TICKS, 0, 99);
        for stamp in OLD_TICKS..2 * OLD_TICKS {
            assert_eq!(start.trade(stamp, 1, 100 + (stamp % 2) as i64), [0; 0]);
        }
        assert_eq!((start.reached as u64, start.triggers.entries as u64), (2 * ORDERS, ORDERS));
        assert_eq!(start.trade(2 * OLD_TICKS, 0, 100), (1..=ORDERS).collect::<Vec<_>>());
        assert!(start.triggers.is_empty() && start.triggers.watched.is_empty());
    }
}
