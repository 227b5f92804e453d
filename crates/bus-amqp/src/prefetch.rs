//! The number of messages that the broker sends ahead: the broker counts messages, and the bound is in bytes.
//!
//! ```text
//!   at first              as many as the bound holds of the longest that exist
//!   after some short ones as many as it holds of the longest of those, up to the most
//!   after a longer one    as many as it holds of that length
//! ```
//! So unread messages exceed the bound only where long messages follow many short ones, until the first of them is
//! polled.

use crate::sender::MAX_PAYLOAD_BYTES;

/// Max bytes that a subscriber or puller is sent ahead, by the lengths of the messages that it has seen.
pub const MAX_PREFETCH_BYTES: usize = 64 << 20;

const INITIAL_PREFETCH: u16 = (MAX_PREFETCH_BYTES / MAX_PAYLOAD_BYTES) as u16;
/// The number of messages polled before each further increase: a change takes a moment, in which none arrive.
const MESSAGES_BEFORE_GROWTH: u16 = 1024;

/// The number of messages sent ahead on one connection.
#[derive(Debug)]
pub(crate) struct PrefetchWindow {
    /// Sent ahead now.
    pub current: u16,
    /// Max messages, a power of two.
    max: u16,
    /// The number of messages until it may grow.
    until_growth: u16,
    /// The longest message since the last change, in bytes.
    longest: usize,
}

impl PrefetchWindow {
    /// Starts with few messages, and allows this many, a power of two.
    pub fn new(max: u16) -> Self {
        Self { current: INITIAL_PREFETCH.min(max), max, until_growth: INITIAL_PREFETCH, longest: 0 }
    }

    /// Records a message's length in bytes; returns the new number to send ahead, if it changes.
    #[inline]
    pub fn record_length(&mut self, bytes: usize) -> Option<u16> {
        self.longest = self.longest.max(bytes);
        self.until_growth -= 1;
        let fitting = self.max_fitting(self.longest);
        if fitting < self.current || self.until_growth == 0 {
            self.until_growth = MESSAGES_BEFORE_GROWTH;
            self.longest = 0;
            let before = std::mem::replace(&mut self.current, fitting);
            return (fitting != before).then_some(fitting);
        }
        None
    }

    /// Returns how many messages of this length the bound holds, at least one; a power of two, to change rarely.
    fn max_fitting(&self, bytes: usize) -> u16 {
        let whole = (MAX_PREFETCH_BYTES / bytes.max(1)).clamp(1, usize::from(self.max));
        1 << whole.ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u16 = 128;

    /// Returns each new number to send ahead, with the index of the message that causes it.
    fn changes(ahead: &mut PrefetchWindow, lengths: &[usize]) -> Vec<(usize, u16)> {
        let change = |(index, &bytes): (usize, &usize)| ahead.record_length(bytes).map(|now| (index, now));
        lengths.iter().enumerate().filter_map(change).collect()
    }

    #[test]
    fn more_short_messages_than_long_ones_are_sent_ahead() {
        let mut ahead = PrefetchWindow::new(MAX);
        assert_eq!(usize::from(ahead.current) * MAX_PAYLOAD_BYTES, MAX_PREFETCH_BYTES);
        assert_eq!(changes(&mut ahead, &[100; 3000]), [(3, MAX)], "once");
        assert_eq!(changes(&mut ahead, &[100, 1 << 20, 1 << 20, 100]), [(1, 64)]);
        assert_eq!(changes(&mut ahead, &[MAX_PAYLOAD_BYTES, 2 * MAX_PREFETCH_BYTES]), [(0, 4), (1, 1)]);
        assert_eq!(changes(&mut ahead, &[0; 1024]), [(1023, MAX)]);
        assert_eq!(changes(&mut PrefetchWindow::new(MAX), &[MAX_PAYLOAD_BYTES; 3000]), []);
        let mut single = PrefetchWindow::new(1);
        assert_eq!((single.current, changes(&mut single, &[100; 3000])), (1, vec![]));
    }

    #[test]
    fn messages_of_one_length_stay_within_the_bound() {
        for bytes in [0, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000, MAX_PAYLOAD_BYTES, MAX_PREFETCH_BYTES]
        {
            let mut ahead = PrefetchWindow::new(MAX);
            for _ in 0..10_000 {
                ahead.record_length(bytes);
            }
            assert!(usize::from(ahead.current) * bytes <= MAX_PREFETCH_BYTES && ahead.current <= MAX, "{bytes}");
        }
    }
}
