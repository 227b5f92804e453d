//! The trait of clocks, and a simulated clock for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calibration::Calibration;

/// A counter of ticks. Code that needs time takes a clock, so that tests can control the time.
pub trait Clock: Clone + Send + 'static {
    /// Returns the counter now, in ticks. Every earlier load of the program is complete when the counter is read.
    fn ticks(&self) -> u64;

    /// Returns the relation of ticks to nanoseconds and to UTC.
    fn calibration(&self) -> &Calibration;

    /// Returns the nanoseconds from one tick count to another; negative if the second is earlier.
    fn ns_between(&self, from: u64, to: u64) -> i64 {
        self.calibration().ns_between(from, to)
    }
}

/// A clock that a test sets by hand. Clones share the time; a tick is a nanosecond.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    ticks: Arc<AtomicU64>,
    ahead: i64,
    calibration: Calibration,
}

impl SimulatedClock {
    /// Makes a clock that shows `ticks`.
    pub fn at(ticks: u64) -> Self {
        Self { ticks: Arc::new(AtomicU64::new(ticks)), ahead: 0, calibration: Calibration::nanoseconds() }
    }

    /// Returns the same time as shown by another processor's counter that is `ns` ahead, or behind if that is
    /// negative.
    pub fn ahead_by(&self, ns: i64) -> Self {
        Self { ahead: self.ahead + ns, ..self.clone() }
    }

    /// Returns the clock of the host's next boot: it counts from `ticks`, and its stamps cannot be compared with this
    /// clock's.
    pub fn after_reboot(&self, ticks: u64) -> Self {
        let mut next = Self::at(ticks);
        let boot = u128::from_le_bytes(self.calibration.boot_id).wrapping_add(1);
        next.calibration.boot_id = boot.to_le_bytes();
        next
    }

    /// Advances the time by `ns` nanoseconds.
    pub fn advance(&self, ns: u64) {
        self.ticks.fetch_add(ns, Ordering::SeqCst);
    }

    /// Returns input for [`crate::ClockOffset::of`]: round trips of these lengths, out and back, to a counter with the
    /// given lead at each.
    pub fn round_trips(&self, trips_ns: &[(u64, u64)], ahead_ns: impl Fn(usize) -> i64) -> Vec<[u64; 3]> {
        let trip = |(number, &(out_ns, back_ns))| {
            let out = self.ticks();
            self.advance(out_ns);
            let remote = self.ahead_by(ahead_ns(number)).ticks();
            self.advance(back_ns);
            [out, remote, self.ticks()]
        };
        trips_ns.iter().enumerate().map(trip).collect()
    }
}

impl Clock for SimulatedClock {
    fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::SeqCst).wrapping_add_signed(self.ahead)
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}
