//! Connections ordered by their next check: a scan of a thousand connections would evict the caches of the client that
//! trades.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::connection::ClientConnection;

/// Connections by the time of their next check, in ticks.
#[derive(Debug, Default)]
pub(super) struct CheckSchedule(BinaryHeap<Reverse<(u64, usize, u64)>>);

impl CheckSchedule {
    /// Schedules a connection's next check at this time.
    pub fn add(&mut self, at: u64, place: usize, connection: &ClientConnection) {
        self.0.push(Reverse((at, place, connection.serial)));
    }

    /// Removes and returns the next connection that is due: its index and its serial.
    pub fn next(&mut self, now: u64) -> Option<(usize, u64)> {
        let Reverse((_, place, serial)) = *self.0.peek().filter(|first| first.0.0 <= now)?;
        self.0.pop();
        Some((place, serial))
    }
}
