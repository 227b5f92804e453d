//! The sequencer's handling of ticks.

use tickpath_clock::Clock;
use tickpath_market::{Condition, OrderId, Price, SymbolId, TopOfBook, Trade, TriggerPriceType};
use tickpath_oms_core::{Input, TriggerFired};

use super::{ReachedWatch, ReferencePrices, latest};
use crate::OmsError;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Announces ticks, so that a request for a trigger is not denied for lack of ticks.
    pub fn expect_ticks(&mut self) {
        self.sees_ticks = true;
    }

    /// Sets whether the next ticks are those from before this start that the topic still holds.
    pub(crate) fn set_catching_up(&mut self, reads_again: bool) {
        self.triggers.is_catching_up = reads_again;
        if !reads_again {
            self.triggers.put_back(u64::MAX);
        }
    }

    /// Applies a top of book, stamped when it was sent: its middle is the reference price for checks, and it fires the
    /// orders that wait for it.
    // Never inlined, like the poll: the OMS and its warm-up share the code.
    #[inline(never)]
    pub fn tick(&mut self, stamp: u64, tick: &TopOfBook) -> Result<(), OmsError> {
        let Some(reference) = self.reference_mut(tick.symbol) else { return Ok(()) };
        let price = match (tick.bid.0, tick.ask.0) {
            (0, one) | (one, 0) => one,
            (bid, ask) => bid / 2 + ask / 2,
        };
        *reference = ReferencePrices { price: Price(price), stamp, bid: tick.bid, ask: tick.ask, ..*reference };
        if self.triggers.is_empty() { Ok(()) } else { self.fire_reached(tick.symbol, stamp) }
    }

    /// Applies a trade of the market, stamped when it was sent, and fires the orders that wait for it.
    #[inline]
    pub fn trade(&mut self, stamp: u64, trade: &Trade) -> Result<(), OmsError> {
        let Some(reference) = self.reference_mut(trade.symbol) else { return Ok(()) };
        (reference.last, reference.traded) = (trade.price, stamp);
        if self.triggers.is_empty() { Ok(()) } else { self.fire_reached(trade.symbol, stamp) }
    }

    /// Watches all conditions of the orders that were armed before this start: old ticks show which conditions already
    /// hold.
    pub(crate) fn watch_armed(&mut self) {
        let Self { triggers, core, .. } = self;
        for armed in core.armed_orders() {
            armed.trigger.conditions().for_each(|condition| triggers.watch(&armed, &condition));
        }
    }

    /// Watches the orders that were just armed, or fires them at once.
    #[cold]
    pub(crate) fn watch_newly_armed(&mut self) -> Result<(), OmsError> {
        while let Some(order) = self.triggers.newly_armed.pop() {
            let Some(armed) = self.core.armed_order(order).filter(|armed| !self.triggers.is_watched(armed)) else {
                continue;
            };
            if armed.trigger.fires(|condition| self.price_of(condition)) {
                let holds = |condition: &Condition| self.price_of(condition).is_some_and(|it| condition.holds(it));
                let first = armed.trigger.conditions().find(holds).unwrap_or_default();
                let is_trade = first.price_type == TriggerPriceType::Last.code();
                let reference = self.reference_prices.get(first.symbol.0 as usize).copied().unwrap_or_default();
                let stamp = if is_trade { reference.traded } else { reference.stamp };
                self.fire(order, stamp, &first)?;
                continue;
            }
            let Self { triggers, reference_prices: references, core, .. } = self;
            triggers.add(&armed, references);
            triggers.drop_stale(core);
        }
        Ok(())
    }

    /// Fires the orders whose watches the latest prices of an instrument have reached.
    #[inline]
    fn fire_reached(&mut self, symbol: SymbolId, stamp: u64) -> Result<(), OmsError> {
        if self.triggers.is_catching_up {
            self.triggers.put_back(stamp);
        }
        let prices = self.reference_prices.get(symbol.0 as usize).copied().unwrap_or_default();
        match self.triggers.next_reached(symbol, &prices) {
            None => Ok(()),
            Some(first) => self.fire_all(first, stamp, &prices),
        }
    }

    #[cold]
    fn fire_all(&mut self, first: ReachedWatch, stamp: u64, prices: &ReferencePrices) -> Result<(), OmsError> {
        let (symbol, mut next) = (first.condition.symbol, Some(first));
        while let Some(reached) = next {
            let Self { triggers, reference_prices: references, core, .. } = self;
            let order = reached.watch.order;
            if triggers.fires(&reached, core.armed_order(order), stamp, references) {
                self.fire(order, stamp, &reached.condition)?;
            }
            next = self.triggers.next_reached(symbol, prices);
        }
        Ok(())
    }

    /// Journals that an order has fired, and releases it.
    fn fire(&mut self, order: OrderId, tick: u64, condition: &Condition) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        let Some(symbol) = self.core.order(order).map(|view| view.symbol) else { return Ok(()) };
        let (reference_price, reference_age_ns) = self.reference(symbol, now);
        let fired = TriggerFired {
            order: order.0,
            tick,
            price: self.price_of(condition).unwrap_or_default(),
            reference_price,
            reference_age_ns,
            symbol: condition.symbol,
            price_type: condition.price_type,
            reserved: [0; 3],
        };
        let sequence = self.apply(now, &Input::TriggerFired(fired))?;
        self.release_to_venues(sequence, now)?;
        // The client's report carries T2, as for any order.
        self.release_to_sessions(sequence, self.clock.ticks())?;
        self.after_input()
    }

    /// Returns the latest price that a condition is compared with.
    fn price_of(&self, condition: &Condition) -> Option<Price> {
        latest(&self.reference_prices, condition)
    }

    #[inline]
    fn reference_mut(&mut self, symbol: SymbolId) -> Option<&mut ReferencePrices> {
        /// Larger ids are unknown to the core.
        const MAX_SYMBOLS: usize = 1 << 16;
        let index = symbol.0 as usize;
        if index >= self.reference_prices.len() {
            self.reference_prices.resize((index + 1).min(MAX_SYMBOLS), ReferencePrices::default());
        }
        self.reference_prices.get_mut(index)
    }
}
