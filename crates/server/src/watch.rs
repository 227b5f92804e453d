//! Connections by the time when something of them may be due: a look at a thousand of them takes the caches from the one
//! that trades.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::connection::Connection;

/// Connections by the time when something of them may be due, in ticks.
#[derive(Debug, Default)]
pub(super) struct Watch(BinaryHeap<Reverse<(u64, usize, u64)>>);

impl Watch {
    /// A connection is looked at from this time on.
    pub fn add(&mut self, at: u64, place: usize, connection: &Connection) {
        self.0.push(Reverse((at, place, connection.serial)));
    }

    /// The next one that is due: its place and its serial.
    pub fn next(&mut self, now: u64) -> Option<(usize, u64)> {
        let Reverse((_, place, serial)) = *self.0.peek().filter(|first| first.0.0 <= now)?;
        self.0.pop();
        Some((place, serial))
    }
}
