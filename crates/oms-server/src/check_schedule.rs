//! Connections ordered by their next check: a scan of a thousand connections would evict the caches of the client that
//! trades.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tickpath_clock::Clock;

use super::connection::ClientConnection;

const CHECK_NS: u64 = 10_000_000;

/// Connections by the time of their next check, and the time of the next round of checks, in ticks.
#[derive(Debug)]
pub(super) struct CheckSchedule {
    queue: BinaryHeap<Reverse<(u64, usize, u64)>>,
    next_round: u64,
    interval: u64,
}

impl CheckSchedule {
    pub fn new(clock: &impl Clock, now: u64) -> Self {
        let interval = clock.calibration().ticks_of_ns(CHECK_NS);
        Self { queue: BinaryHeap::new(), next_round: now, interval }
    }

    /// Returns whether a round of checks is due, and sets the time of the round after it.
    #[inline]
    pub fn begin_round(&mut self, now: u64) -> bool {
        if now < self.next_round {
            return false;
        }
        self.next_round = now + self.interval;
        true
    }

    pub fn add(&mut self, at: u64, slot: usize, connection: &ClientConnection) {
        self.queue.push(Reverse((at, slot, connection.serial)));
    }

    /// Schedules a connection's next check at this time, but not before the next round.
    pub fn add_after_round(&mut self, at: u64, slot: usize, connection: &ClientConnection) {
        self.add(at.max(self.next_round), slot, connection);
    }

    pub fn next(&mut self, now: u64) -> Option<(usize, u64)> {
        let Reverse((_, slot, serial)) = *self.queue.peek().filter(|first| first.0.0 <= now)?;
        self.queue.pop();
        Some((slot, serial))
    }
}
