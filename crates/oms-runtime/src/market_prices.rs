//! Prices of the market: the reference prices of checks, and the prices that fire armed orders.

use tickpath_market::{Condition, Price, SymbolId, TopOfBook, Trade, TriggerPriceType};
use tickpath_oms_core::{ArmedOrder, Core};

use crate::triggers::{ReachedWatch, ReferencePrices, Triggers, latest};

/// Larger symbol numbers are unknown to the core.
const MAX_SYMBOLS: usize = 1 << 16;

/// Latest prices of the market, and the armed orders that wait for them.
#[derive(Default)]
pub(crate) struct MarketPrices {
    /// Latest prices, by symbol.
    references: Vec<ReferencePrices>,
    /// Armed orders, by the prices that fire them.
    pub triggers: Triggers,
    /// Whether ticks were announced: without ticks a request for a trigger is denied.
    pub sees_ticks: bool,
}

impl MarketPrices {
    /// Returns the latest prices of a symbol; `None` before the first tick.
    #[inline]
    pub fn known(&self, symbol: SymbolId) -> Option<&ReferencePrices> {
        self.references.get(symbol.0 as usize)
    }

    /// Returns the reference price of a symbol, and its age, which `age_ns` returns for its stamp; `u64::MAX` without a
    /// price.
    #[inline]
    pub fn reference(&self, symbol: SymbolId, age_ns: impl FnOnce(u64) -> u64) -> (Price, u64) {
        let reference = self.known(symbol).copied().unwrap_or_default();
        let age = match reference.stamp {
            0 => u64::MAX,
            stamp => age_ns(stamp),
        };
        (reference.price, age)
    }

    /// Returns the latest price that a condition is compared with.
    pub fn price_of(&self, condition: &Condition) -> Option<Price> {
        latest(&self.references, condition)
    }

    /// Notes a top of book: its middle is the reference price. Returns false if the core cannot know the symbol.
    #[inline]
    pub fn note_top(&mut self, stamp: u64, tick: &TopOfBook) -> bool {
        let Some(reference) = self.reference_mut(tick.symbol) else { return false };
        let price = match (tick.bid.0, tick.ask.0) {
            (0, one) | (one, 0) => one,
            (bid, ask) => bid / 2 + ask / 2,
        };
        *reference = ReferencePrices { price: Price(price), stamp, bid: tick.bid, ask: tick.ask, ..*reference };
        true
    }

    /// Notes a trade of the market. Returns false if the core cannot know the symbol.
    #[inline]
    pub fn note_trade(&mut self, stamp: u64, trade: &Trade) -> bool {
        let Some(reference) = self.reference_mut(trade.symbol) else { return false };
        (reference.last, reference.traded) = (trade.price, stamp);
        true
    }

    /// Clears the prices of a symbol whose number has another meaning now, until its market sends new ones: the old
    /// prices belong to another symbol.
    pub fn clear(&mut self, symbol: SymbolId) {
        if let Some(reference) = self.references.get_mut(symbol.0 as usize) {
            *reference = ReferencePrices::default();
        }
    }

    /// Watches all conditions of the orders that were armed before this start: old ticks show which conditions already
    /// hold.
    pub fn watch_armed(&mut self, core: &Core) {
        let Self { triggers, .. } = self;
        for armed in core.armed_orders() {
            armed.trigger.conditions().for_each(|condition| triggers.watch(&armed, &condition));
        }
    }

    /// Watches the conditions of a newly armed order that do not hold.
    pub fn watch(&mut self, armed: &ArmedOrder, core: &Core) {
        self.triggers.add(armed, &self.references);
        self.triggers.drop_stale(core);
    }

    /// Returns the condition by which an order fires at once, and the stamp of the tick that fulfilled it; `None` if
    /// the order has to wait.
    pub fn fulfilled(&self, armed: &ArmedOrder) -> Option<(Condition, u64)> {
        if !armed.trigger.fires(|condition| self.price_of(condition)) {
            return None;
        }
        let holds = |condition: &Condition| self.price_of(condition).is_some_and(|price| condition.holds(price));
        let first = armed.trigger.conditions().find(holds).unwrap_or_default();
        let reference = self.known(first.symbol).copied().unwrap_or_default();
        let is_trade = first.price_type == TriggerPriceType::Last.code();
        Some((first, if is_trade { reference.traded } else { reference.stamp }))
    }

    /// Removes and returns the first watch of an instrument that its latest prices have reached, after a tick with this
    /// stamp.
    #[inline]
    pub fn first_reached(&mut self, symbol: SymbolId, stamp: u64) -> Option<ReachedWatch> {
        if self.triggers.is_catching_up() {
            self.triggers.put_back(stamp);
        }
        self.next_reached(symbol)
    }

    /// Removes and returns the next watch of an instrument that its latest prices have reached.
    #[inline]
    pub fn next_reached(&mut self, symbol: SymbolId) -> Option<ReachedWatch> {
        let prices = self.known(symbol).copied().unwrap_or_default();
        self.triggers.next_reached(symbol, &prices)
    }

    /// Returns whether a reached watch fires its order, which is `armed` now. A watch that may fire later is kept.
    pub fn fires(&mut self, reached: &ReachedWatch, armed: Option<ArmedOrder>, stamp: u64) -> bool {
        self.triggers.fires(reached, armed, stamp, &self.references)
    }

    #[inline]
    fn reference_mut(&mut self, symbol: SymbolId) -> Option<&mut ReferencePrices> {
        let index = symbol.0 as usize;
        if index >= self.references.len() {
            self.references.resize((index + 1).min(MAX_SYMBOLS), ReferencePrices::default());
        }
        self.references.get_mut(index)
    }
}
