//! Elapsed time since a moment.

use std::time::Duration;

use tickpath_clock::{Clock, HostClock};

/// Moment on the host's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostInstant {
    clock: HostClock,
    ticks: u64,
}

impl HostInstant {
    pub fn now(clock: HostClock) -> Self {
        Self { clock, ticks: clock.ticks() }
    }

    /// Returns the present moment on the same clock.
    pub fn restarted(&self) -> Self {
        Self::now(self.clock)
    }

    pub fn is_older_than(&self, ns: u64) -> bool {
        let past_ns = self.clock.ns_between(self.ticks, self.clock.ticks());
        u64::try_from(past_ns).is_ok_and(|past_ns| past_ns >= ns)
    }

    pub fn elapsed(&self) -> Duration {
        let past_ns = self.clock.ns_between(self.ticks, self.clock.ticks());
        Duration::from_nanos(u64::try_from(past_ns).unwrap_or(0))
    }
}
