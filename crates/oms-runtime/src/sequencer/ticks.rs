//! The sequencer's handling of ticks: each updates the prices of its symbol, and fires the armed orders that it
//! reaches.

use tickpath_clock::Clock;
use tickpath_market::{Condition, OrderId, SymbolId, TopOfBook, Trade};
use tickpath_oms_core::{Input, TriggerFired};

use super::Sequencer;
use crate::OmsError;
use crate::triggers::ReachedWatch;

impl<C: Clock> Sequencer<C> {
    /// Announces market data, so that a request for a trigger is not denied for lack of ticks.
    pub fn expect_market_data(&mut self) {
        self.market.sees_ticks = true;
    }

    /// Applies a top of book, stamped when it was sent: its middle is the reference price for checks, and it fires the
    /// orders that wait for it.
    // Never inlined, like the poll: the OMS and its warm-up share the code.
    #[inline(never)]
    pub fn apply_top_of_book(&mut self, stamp: u64, tick: &TopOfBook) -> Result<(), OmsError> {
        match self.market.note_top(stamp, tick) && !self.market.triggers.is_empty() {
            true => self.fire_reached(tick.symbol, stamp),
            false => Ok(()),
        }
    }

    /// Applies a trade of the market, stamped when it was sent, and fires the orders that wait for it.
    #[inline]
    pub fn trade(&mut self, stamp: u64, trade: &Trade) -> Result<(), OmsError> {
        match self.market.note_trade(stamp, trade) && !self.market.triggers.is_empty() {
            true => self.fire_reached(trade.symbol, stamp),
            false => Ok(()),
        }
    }

    /// Watches the orders that were just armed, or fires them at once.
    #[cold]
    pub(crate) fn watch_newly_armed(&mut self) -> Result<(), OmsError> {
        while let Some(order) = self.market.triggers.newly_armed.pop() {
            let Some(armed) = self.core.armed_order(order) else { continue };
            if self.market.triggers.is_watched(order, armed.request_id) {
                continue;
            }
            match self.market.fulfilled(&armed) {
                Some((condition, stamp)) => self.fire(order, stamp, &condition)?,
                None => self.market.watch(&armed, &self.core),
            }
        }
        Ok(())
    }

    /// Fires the orders whose watches the latest prices of an instrument have reached.
    #[inline]
    fn fire_reached(&mut self, symbol: SymbolId, stamp: u64) -> Result<(), OmsError> {
        match self.market.first_reached(symbol, stamp) {
            None => Ok(()),
            Some(first) => self.fire_all(first, symbol, stamp),
        }
    }

    #[cold]
    fn fire_all(&mut self, first: ReachedWatch, symbol: SymbolId, stamp: u64) -> Result<(), OmsError> {
        let mut next = Some(first);
        while let Some(reached) = next {
            let order = reached.order();
            if self.market.fires(&reached, self.core.armed_order(order), stamp) {
                self.fire(order, stamp, &reached.condition)?;
            }
            next = self.market.next_reached(symbol);
        }
        Ok(())
    }

    /// Journals that an order has fired, and releases it.
    fn fire(&mut self, order: OrderId, market_stamp: u64, condition: &Condition) -> Result<(), OmsError> {
        let now = self.clock.ticks();
        let Some(symbol) = self.core.order(order).map(|view| view.symbol) else { return Ok(()) };
        let (reference_price, reference_age_ns) = self.reference(symbol, now);
        let fired = TriggerFired {
            order: order.0,
            tick: market_stamp,
            price: self.market.price_of(condition).unwrap_or_default(),
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
}
