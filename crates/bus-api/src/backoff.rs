//! Backoff of an adapter before it retries, so that a server that refuses is not flooded.

use std::time::Duration;

use tickpath_clock::{Clock, HostClock, sleep_ns};

/// Nanoseconds between two lost connections after which the later one counts as good.
const STABLE_NS: i64 = 5_000_000_000;

/// Pause before the next attempt: none at first, the first bound after a failure, doubled by each further failure up to
/// the last bound. A success resets it to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    current: Duration,
}

impl Backoff {
    /// Creates a pause of zero. The first bound must not exceed the last one.
    pub const fn between(first: Duration, last: Duration) -> Self {
        assert!(first.as_nanos() <= last.as_nanos());
        Self { first, last, current: Duration::ZERO }
    }

    /// Returns the current length.
    pub fn current(&self) -> Duration {
        self.current
    }

    /// Records a failed attempt and returns the new length.
    pub fn grow(&mut self) -> Duration {
        self.current = self.current.saturating_mul(2).clamp(self.first, self.last);
        self.current
    }

    /// Records a successful attempt.
    pub fn reset(&mut self) {
        self.current = Duration::ZERO;
    }

    /// Sleeps for the current length.
    pub fn sleep(&self) {
        sleep_ns(self.current.as_nanos() as u64);
    }
}

/// Pauses of a receiver before each reconnect, which grow as long as no connection holds. A server that accepts
/// connections and then drops them is not flooded.
#[derive(Debug)]
pub struct ReconnectBackoff {
    backoff: Backoff,
    /// Ticks at which the last connection was given up.
    last_lost_at: Option<u64>,
    clock: HostClock,
}

impl ReconnectBackoff {
    /// Creates the pauses of a receiver that has not reconnected yet.
    pub fn new(backoff: Backoff, clock: HostClock) -> Self {
        Self { backoff, last_lost_at: None, clock }
    }

    /// Records that a connection is given up, and returns the pause before the next one: none if this one was good.
    pub fn next_backoff(&mut self) -> Backoff {
        let now = self.clock.ticks();
        let is_good = self.last_lost_at.is_none_or(|since| self.clock.ns_between(since, now) >= STABLE_NS);
        self.last_lost_at = Some(now);
        if is_good {
            self.backoff.reset();
        } else {
            self.backoff.grow();
        }
        self.backoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);

    /// Returns the pauses after this many failures, in milliseconds.
    fn pauses(pause: &mut Backoff, failures: usize) -> Vec<u128> {
        (0..failures).map(|_| pause.grow().as_millis()).collect()
    }

    #[test]
    fn a_pause_doubles_between_its_bounds_until_a_success() {
        let mut pause = Backoff::between(FIRST, Duration::from_secs(1));
        assert_eq!(pause.current(), Duration::ZERO);
        assert_eq!(pauses(&mut pause, 6), [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(pause.current(), Duration::from_secs(1));
        pause.reset();
        assert_eq!(pause.current(), Duration::ZERO);
        assert_eq!(pauses(&mut pause, 2), [100, 200]);
    }

    #[test]
    fn bounds_may_be_equal_or_unlimited() {
        assert_eq!(pauses(&mut Backoff::between(FIRST, FIRST), 3), [100; 3]);
        let mut endless = Backoff::between(Duration::MAX, Duration::MAX);
        endless.grow();
        assert_eq!(endless.grow(), Duration::MAX);
        assert_eq!(Backoff::between(Duration::ZERO, FIRST).grow(), Duration::ZERO);
    }

    #[test]
    fn pauses_grow_as_long_as_no_connection_holds() {
        let bounds = Backoff::between(FIRST, Duration::from_secs(1));
        let mut backoff = ReconnectBackoff::new(bounds, HostClock::get().unwrap());
        let pauses: Vec<u128> = (0..6).map(|_| backoff.next_backoff().current().as_millis()).collect();
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1000]);
    }
}
