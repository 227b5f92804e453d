//! A synthetic market: a random walk that resembles the top of a futures book.

use super::{MarketTick, RecordedTick, Recording, RecordingCounts};
use crate::{Price, Quantity, SCALE, Side, Symbol, SymbolId, TopOfBook, Trade};

/// Symbol of the synthetic market; no exchange lists it.
const SYMBOL: Symbol = Symbol::constant("SYNUSDT");
/// 2024-01-01 00:00:00 UTC.
const START_NS: u64 = 1_704_067_200_000_000_000;
const STEP: i64 = SCALE / 10;
const LOT: i64 = SCALE / 1_000;
/// The first bid, 61,800.00, in price steps.
const FIRST_BID_STEPS: i64 = 618_000;
/// The lowest bid, so that a walk of any length keeps positive prices.
const LOWEST_BID_STEPS: i64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

impl Recording {
    /// Creates a recording of a random walk with bursts, about 300 ticks a second. The same seed gives the same ticks
    /// on every machine.
    pub fn synthetic(seed: u64, ticks: usize) -> Self {
        let (random, at_ns, bid_steps) = (SplitMix64(seed), START_NS, FIRST_BID_STEPS);
        let mut walk = RandomWalk { random, at_ns, bid_steps, spread_steps: 1, trades: 0, opened: false };
        let events: Vec<RecordedTick> = (0..ticks).map(|_| walk.tick()).collect();
        let trades = walk.trades;
        let tally =
            RecordingCounts { lines: ticks as u64, tops: ticks as u64 - trades, trades, ..RecordingCounts::default() };
        let symbols = if ticks == 0 { Vec::new() } else { vec![SYMBOL] };
        Self { events, symbols, counts: tally }
    }
}

struct RandomWalk {
    random: SplitMix64,
    at_ns: u64,
    bid_steps: i64,
    spread_steps: i64,
    trades: u64,
    opened: bool,
}

impl RandomWalk {
    /// Returns the next tick. The first is a top of book, so that a subscriber has a price from the start.
    fn tick(&mut self) -> RecordedTick {
        let is_trade = self.opened && self.random.below(4) == 0;
        if self.opened {
            self.at_ns += self.gap_ns();
        }
        self.opened = true;
        let event = if is_trade { MarketTick::Trade(self.trade()) } else { MarketTick::Top(self.top()) };
        RecordedTick { at_ns: self.at_ns, event }
    }

    /// Returns the time to the next tick: two of three ticks follow in the same burst, within microseconds; bursts are
    /// 5 µs to 82 ms apart.
    fn gap_ns(&mut self) -> u64 {
        if self.random.below(3) > 0 {
            return 400 + self.random.below(3_600);
        }
        let doublings = self.random.below(14);
        (5_000 + self.random.below(5_000)) << doublings
    }

    fn top(&mut self) -> TopOfBook {
        if self.random.below(3) == 0 {
            let step = self.random.below(7) as i64 - 3;
            self.bid_steps = (self.bid_steps + step).max(LOWEST_BID_STEPS);
            self.spread_steps = 1 + i64::from(self.random.below(10) == 0);
        }
        TopOfBook {
            bid: Price(self.bid_steps * STEP),
            bid_quantity: self.quantity(8_000),
            ask: Price((self.bid_steps + self.spread_steps) * STEP),
            ask_quantity: self.quantity(8_000),
            event_ns: self.event_ns(),
            symbol: SymbolId(0),
            wire_age_ns: 0,
        }
    }

    fn trade(&mut self) -> Trade {
        self.trades += 1;
        let (aggressor, steps) = match self.random.below(2) {
            0 => (Side::Buy, self.bid_steps + self.spread_steps),
            _ => (Side::Sell, self.bid_steps),
        };
        Trade {
            price: Price(steps * STEP),
            quantity: self.quantity(500),
            trade_id: self.trades,
            event_ns: self.event_ns(),
            symbol: SymbolId(0),
            aggressor: aggressor.code(),
            reserved: [0; 3],
        }
    }

    fn quantity(&mut self, max_lots: u64) -> Quantity {
        Quantity((1 + self.random.below(max_lots) as i64) * LOT)
    }

    /// Returns the exchange's time: three milliseconds before the receive time, in whole milliseconds as exchanges send
    /// it.
    fn event_ns(&self) -> u64 {
        (self.at_ns / NS_PER_MS - 3) * NS_PER_MS
    }
}

/// The SplitMix64 generator: small, and the same on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    /// Draws a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
