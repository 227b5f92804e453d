//! Public trades, and the statistics of a day that the exchange makes of them. The day is the time since the start.

use std::collections::VecDeque;

use tickpath_market::{Notional, Price, Quantity, SCALE};
use tickpath_venue_sim_web::{PublicTrade, SimInstrument};

/// Trades that are kept of each instrument.
const KEPT_TRADES: usize = 1_000;

/// Trades of an instrument, with their statistics.
#[derive(Debug)]
pub(crate) struct TradeTape {
    /// The oldest first.
    pub(crate) trades: VecDeque<PublicTrade>,
    pub(crate) open: Price,
    pub(crate) high: Price,
    pub(crate) low: Price,
    pub(crate) last: Price,
    pub(crate) last_quantity: Quantity,
    /// Traded quantity, in units of 10⁻⁸.
    pub(crate) volume: i128,
    /// Traded value, in units of 10⁻¹⁶.
    pub(crate) value: i128,
    pub(crate) count: u64,
    /// Ids of the first and the last trade.
    pub(crate) ids: Option<(u64, u64)>,
    pub(crate) opened_ns: u64,
}

impl TradeTape {
    /// Begins the day of an instrument, at its first bid.
    pub(crate) fn new(instrument: &SimInstrument, now_ns: u64) -> Self {
        let price = instrument.bid;
        Self {
            trades: VecDeque::new(),
            open: price,
            high: price,
            low: price,
            last: price,
            last_quantity: Quantity::ZERO,
            volume: 0,
            value: 0,
            count: 0,
            ids: None,
            opened_ns: now_ns,
        }
    }

    /// Adds a trade.
    pub(crate) fn add(&mut self, trade: &PublicTrade) {
        (self.last, self.last_quantity) = (trade.price, trade.quantity);
        (self.high, self.low) = (self.high.max(trade.price), self.low.min(trade.price));
        self.volume += i128::from(trade.quantity.0);
        self.value += Notional::of(trade.price, trade.quantity).0;
        self.count += 1;
        self.ids = Some((self.ids.map_or(trade.trade_id, |(first, _)| first), trade.trade_id));
        if self.trades.len() == KEPT_TRADES {
            self.trades.pop_front();
        }
        self.trades.push_back(*trade);
    }

    /// Returns the average price by volume, in units of 10⁻⁸.
    pub(crate) fn average(&self) -> i128 {
        if self.volume == 0 { i128::from(self.last.0) } else { self.value / self.volume }
    }

    /// Returns the change of the price since the start, in units of 10⁻⁸.
    pub(crate) fn change(&self) -> i128 {
        i128::from(self.last.0) - i128::from(self.open.0)
    }

    /// Returns the change of the price in percent, with three decimals.
    pub(crate) fn change_percent(&self) -> String {
        let thousandths = self.change() * 100_000 / i128::from(self.open.0.max(1));
        let sign = if thousandths < 0 { "-" } else { "" };
        let magnitude = thousandths.unsigned_abs();
        format!("{sign}{}.{:03}", magnitude / 1_000, magnitude % 1_000)
    }

    /// Returns the value of a trade in units of 10⁻⁸.
    pub(crate) fn value_of(trade: &PublicTrade) -> i128 {
        Notional::of(trade.price, trade.quantity).0 / i128::from(SCALE)
    }
}
