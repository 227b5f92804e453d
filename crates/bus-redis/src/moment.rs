//! How long ago something was.

use std::time::Duration;

use tickpath_clock::{Clock, HostClock};

/// A moment, and how long ago it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    clock: HostClock,
    ticks: u64,
}

impl Moment {
    /// Now.
    pub fn now(clock: HostClock) -> Self {
        Self { clock, ticks: clock.ticks() }
    }

    /// Its clock's now.
    pub fn restarted(&self) -> Self {
        Self::now(self.clock)
    }

    /// True if it was at least so long ago.
    pub fn is_past(&self, ns: u64) -> bool {
        let past_ns = self.clock.ns_between(self.ticks, self.clock.ticks());
        u64::try_from(past_ns).is_ok_and(|past_ns| past_ns >= ns)
    }

    /// How long ago it was.
    pub fn elapsed(&self) -> Duration {
        let past_ns = self.clock.ns_between(self.ticks, self.clock.ticks());
        Duration::from_nanos(u64::try_from(past_ns).unwrap_or(0))
    }
}
