//! How long a call may take.

use std::time::Duration;

use tickpath_clock::{Clock, HostClock};

/// How long a server may take to accept, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two looks at something that the server is about to do.
pub(crate) const PAUSE_NS: u64 = 10_000_000;

/// The moment so long after it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    clock: HostClock,
    /// In ticks.
    start: u64,
    timeout: Duration,
}

impl Deadline {
    /// Counts from now on, to [`TIMEOUT`].
    pub fn new(clock: HostClock) -> Self {
        Self::after(clock, TIMEOUT)
    }

    /// Counts from now on.
    pub fn after(clock: HostClock, timeout: Duration) -> Self {
        Self { clock, start: clock.ticks(), timeout }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        let gone_ns = self.clock.ns_between(self.start, self.clock.ticks());
        self.timeout.saturating_sub(Duration::from_nanos(gone_ns.max(0) as u64))
    }

    /// True when nothing is left.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

/// A time to sleep, in whole milliseconds: the client library spins through the rest of one. An hour at most.
pub(crate) fn whole_ms(timeout_ns: u64) -> Duration {
    Duration::from_millis(timeout_ns.div_ceil(1_000_000).min(3_600_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_rounded_up() {
        for (ns, ms) in [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2), (u64::MAX, 3_600_000)] {
            assert_eq!(whole_ms(ns), Duration::from_millis(ms), "{ns}");
        }
    }
}
