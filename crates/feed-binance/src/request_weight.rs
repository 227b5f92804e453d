//! Weight of requests: what the exchange charges for a snapshot, and the budget that this process spends.
//!
//! | levels on each side | spot, of 6,000 a minute | USDⓈ-M futures, of 2,400 a minute |
//! |---|---|---|
//! | 100 | 5 | 5 |
//! | 500 | 25 | 10 |
//! | 1,000 | 50 | 20 |
//! | 5,000 | 250 | not offered |
//!
//! The budget is half of the limit, which belongs to an IP address: the other half is left to orders.

use std::fmt;
use std::str::FromStr;

use tickpath_clock::{Clock, HostClock};

use crate::market::BinanceMarket;

const MINUTE_NS: u64 = 60_000_000_000;
/// Time whose share of the budget may be spent at once.
const BURST_NS: i64 = 20_000_000_000;

/// Levels of a snapshot on each side. A book is complete to this depth only: a level beyond is unknown until an update
/// names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotDepth {
    /// 100 levels.
    Levels100,
    /// 500 levels.
    Levels500,
    /// 1,000 levels.
    #[default]
    Levels1000,
    /// 5,000 levels, of the spot market only.
    Levels5000,
}

/// A text that is no depth of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no depth of a snapshot; use 100, 500, 1000 or 5000 levels")]
pub struct SnapshotDepthError(String);

impl SnapshotDepth {
    /// All depths.
    pub const ALL: [Self; 4] = [Self::Levels100, Self::Levels500, Self::Levels1000, Self::Levels5000];

    /// Returns the number of levels on each side.
    pub fn levels(self) -> u16 {
        match self {
            Self::Levels100 => 100,
            Self::Levels500 => 500,
            Self::Levels1000 => 1_000,
            Self::Levels5000 => 5_000,
        }
    }

    /// Returns the weight of a snapshot; none if the market offers no snapshot of this depth.
    pub fn weight(self, market: BinanceMarket) -> Option<u32> {
        match (market, self) {
            (_, Self::Levels100) => Some(5),
            (BinanceMarket::Spot, Self::Levels500) => Some(25),
            (BinanceMarket::Spot, Self::Levels1000) => Some(50),
            (BinanceMarket::Spot, Self::Levels5000) => Some(250),
            (BinanceMarket::UsdFutures, Self::Levels500) => Some(10),
            (BinanceMarket::UsdFutures, Self::Levels1000) => Some(20),
            (BinanceMarket::UsdFutures, Self::Levels5000) => None,
        }
    }
}

impl FromStr for SnapshotDepth {
    type Err = SnapshotDepthError;

    fn from_str(text: &str) -> Result<Self, SnapshotDepthError> {
        let found = Self::ALL.into_iter().find(|depth| depth.to_string() == text);
        found.ok_or_else(|| SnapshotDepthError(text.to_owned()))
    }
}

impl fmt::Display for SnapshotDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.levels())
    }
}

/// The spent weight, as the time that the budget needs to earn it.
pub(crate) struct WeightBudget {
    clock: HostClock,
    limit: u64,
    /// Ticks until which the spent weight is earned; in the past if all of it is.
    earned_at: u64,
}

impl WeightBudget {
    /// Makes a budget of which nothing is spent.
    pub(crate) fn new(market: BinanceMarket, clock: HostClock, now: u64) -> Self {
        Self { clock, limit: limit_of(market), earned_at: now }
    }

    /// Returns whether a request may begin.
    pub(crate) fn has_room(&self, now: u64) -> bool {
        self.clock.ns_between(now, self.earned_at) < BURST_NS
    }

    /// Spends the weight of a request that begins.
    pub(crate) fn spend(&mut self, weight: u32, now: u64) {
        let begin = if self.clock.ns_between(now, self.earned_at) > 0 { self.earned_at } else { now };
        let ns = u64::from(weight) * MINUTE_NS / (self.limit / 2);
        self.earned_at = begin.wrapping_add(self.clock.calibration().ticks_of_ns(ns));
    }

    /// Returns whether the weight that all programs of this address have used in the last minute is near the limit.
    pub(crate) fn is_near_limit(&self, used: u64) -> bool {
        used > self.limit / 10 * 9
    }
}

/// Returns the weight that an IP address may spend in a minute.
fn limit_of(market: BinanceMarket) -> u64 {
    match market {
        BinanceMarket::Spot => 6_000,
        BinanceMarket::UsdFutures => 2_400,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Returns how many requests of this weight may begin now.
    fn begun(budget: &mut WeightBudget, weight: u32, now: u64) -> usize {
        let mut count = 0;
        while budget.has_room(now) {
            budget.spend(weight, now);
            count += 1;
        }
        count
    }

    #[test]
    fn half_of_the_limit_is_spent_after_a_burst() {
        let clock = HostClock::get().expect("this host has a clock");
        for (market, depth, burst, later) in [
            (BinanceMarket::Spot, SnapshotDepth::Levels1000, 20, 60),
            (BinanceMarket::Spot, SnapshotDepth::Levels5000, 4, 12),
            (BinanceMarket::UsdFutures, SnapshotDepth::Levels1000, 20, 60),
            (BinanceMarket::UsdFutures, SnapshotDepth::Levels100, 80, 240),
        ] {
            let weight = depth.weight(market).expect("the market offers this depth");
            let now = clock.ticks();
            let mut budget = WeightBudget::new(market, clock, now);
            let first = begun(&mut budget, weight, now);
            assert!(first.abs_diff(burst) <= 1, "{market:?} {depth}: {first} at once");
            let mut count = 0;
            for second in 1..=60 {
                count += begun(&mut budget, weight, now + clock.calibration().ticks_of_ns(second * SECOND_NS));
            }
            assert!(count.abs_diff(later) <= 1, "{market:?} {depth}: {count} in the minute after");
        }
    }
}
