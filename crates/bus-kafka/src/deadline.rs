//! Timeouts of calls.

use std::time::Duration;

use tickpath_clock::{Clock, HostClock};

/// Max time for a server to accept a connection, and to answer a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between two checks for a pending change at the server, in nanoseconds.
pub(crate) const PAUSE_NS: u64 = 10_000_000;

/// A timeout, counted from the deadline's creation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDeadline {
    clock: HostClock,
    /// Start in clock ticks.
    start: u64,
    timeout: Duration,
}

impl CallDeadline {
    pub fn new(clock: HostClock, timeout: Duration) -> Self {
        Self { clock, start: clock.ticks(), timeout }
    }

    pub fn remaining(&self) -> Duration {
        let gone_ns = self.clock.ns_between(self.start, self.clock.ticks());
        self.timeout.saturating_sub(Duration::from_nanos(gone_ns.max(0) as u64))
    }

    pub fn is_expired(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// Rounds a sleep up to whole milliseconds, because the client library spins through a fraction. An hour at most.
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
