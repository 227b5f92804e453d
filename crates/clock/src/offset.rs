//! Offset between the counters of two processors, as far as messages between them can show it.
//!
//! ```text
//!   here    a ────┐           ┌──── b       the answer's stamp lies between a and b, so the other counter is
//!   there         └─> stamp ──┘             at least stamp - b and at most stamp - a ahead
//! ```

use crate::calibration::Calibration;

/// Offset of another processor's counter from this processor's, in nanoseconds, as two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Lower bound; negative where the other counter may be behind.
    pub low_ns: i64,
    /// Upper bound.
    pub high_ns: i64,
    /// Set if a counter was seen to go back, or the bounds of two round trips contradict each other.
    pub stepped_back: bool,
}

impl ClockOffset {
    /// Computes the bounds from round trips: for each the stamp here, the stamp there and the stamp here again, in
    /// ticks and in the order in which they were taken. None without a round trip.
    pub fn of(trips: &[[u64; 3]], calibration: &Calibration) -> Option<Self> {
        let ahead = |from: u64, to: u64| calibration.ns_between(from, to);
        let low_ns = trips.iter().map(|&[_, remote, back]| ahead(back, remote)).max()?;
        let high_ns = trips.iter().map(|&[out, remote, _]| ahead(out, remote)).min()?;
        let local = trips.iter().flat_map(|&[out, _, back]| [out, back]);
        let remote = trips.iter().map(|&[_, remote, _]| remote);
        let stepped_back = !local.is_sorted() || !remote.is_sorted() || low_ns > high_ns.saturating_add(ROUNDING_NS);
        Some(Self { low_ns, high_ns, stepped_back })
    }

    /// Combines this measurement with a repetition. An offset caused by noise is not repeated; two measurements that
    /// contradict each other show a counter that stepped.
    pub fn confirmed_by(self, again: Self) -> Self {
        let (low_ns, high_ns) = (self.low_ns.max(again.low_ns), self.high_ns.min(again.high_ns));
        let contradict = low_ns > high_ns.saturating_add(ROUNDING_NS);
        Self { stepped_back: self.stepped_back || again.stepped_back || contradict, ..again }
    }

    /// Returns the largest possible difference of the counters, in nanoseconds.
    pub fn bound_ns(&self) -> u64 {
        self.low_ns.unsigned_abs().max(self.high_ns.unsigned_abs())
    }

    /// Returns whether the counters show different times; a difference shorter than a message's travel time cannot be
    /// seen.
    pub fn is_apart(&self) -> bool {
        self.stepped_back || self.low_ns > ROUNDING_NS || self.high_ns < -ROUNDING_NS
    }
}

/// Tolerance in nanoseconds: differences of ticks are rounded to nanoseconds.
const ROUNDING_NS: i64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedClock;
    use proptest::prelude::*;

    fn offset(trips_ns: &[(u64, u64)], ahead_ns: impl Fn(usize) -> i64) -> ClockOffset {
        let trips = SimulatedClock::at(1_000_000).round_trips(trips_ns, ahead_ns);
        ClockOffset::of(&trips, &Calibration::nanoseconds()).unwrap()
    }

    proptest! {
        #[test]
        fn the_bounds_contain_the_offset(
            trips in prop::collection::vec((1u64..5_000, 1u64..5_000), 1..50),
            ahead in -9_000i64..9_000,
        ) {
            let found = offset(&trips, |_| ahead);
            prop_assert!(found.low_ns <= ahead && ahead <= found.high_ns, "{found:?}");
            prop_assert!(!found.stepped_back);
            let shortest = trips.iter().map(|(out, back)| out + back).min().unwrap();
            prop_assert!((found.high_ns - found.low_ns) as u64 <= shortest);
        }
    }

    #[test]
    fn counters_apart_are_detected() {
        let trips = [(120, 150), (90, 100), (300, 90)];
        for (ahead, apart) in [(0, false), (50, false), (2_000, true), (-2_000, true)] {
            assert_eq!(offset(&trips, |_| ahead).is_apart(), apart, "{ahead} ns ahead");
        }
        assert!((1_900..=2_100).contains(&offset(&trips, |_| 2_000).bound_ns()));
    }

    #[test]
    fn counters_are_apart_only_if_a_second_measurement_agrees() {
        let between = |low_ns, high_ns| ClockOffset { low_ns, high_ns, stepped_back: false };
        for (first, second, apart, stepped_back) in [
            (between(4, 44), between(-20, 30), false, false),
            (between(4, 44), between(5, 40), true, false),
            (between(1_900, 2_100), between(1_950, 2_050), true, false),
            // The counter was 2 µs ahead, and is no longer.
            (between(1_900, 2_100), between(-50, 50), true, true),
            (ClockOffset { stepped_back: true, ..between(-50, 50) }, between(-50, 50), true, true),
        ] {
            let found = first.confirmed_by(second);
            assert_eq!((found.is_apart(), found.stepped_back), (apart, stepped_back), "{first:?}, {second:?}");
        }
    }

    #[test]
    fn a_counter_that_steps_back_is_detected() {
        let trips = [(100, 100); 20];
        assert!(offset(&trips, |trip| if trip < 10 { 0 } else { -1_000 }).stepped_back);
        assert!(!offset(&trips, |_| 0).stepped_back);
        assert_eq!(ClockOffset::of(&[], &Calibration::nanoseconds()), None);
    }
}
