//! A rate limit as OKX counts it: requests in any two seconds, not on average. A token bucket would let twice as many
//! through in the two seconds after a pause.

use std::collections::VecDeque;

use tickpath_clock::Calibration;

/// OKX counts over two seconds; the rest is for requests that travel faster than their predecessors.
const PERIOD_NS: u64 = 2_050_000_000;

/// Times of the last requests of a kind, in ticks.
#[derive(Debug, Clone)]
pub(crate) struct RequestWindow {
    max_requests: usize,
    period: u64,
    times: VecDeque<u64>,
}

impl RequestWindow {
    /// Makes a window for so many requests in two seconds.
    pub fn new(max_requests: usize, calibration: &Calibration) -> Self {
        Self { max_requests, period: calibration.ticks_of_ns(PERIOD_NS), times: VecDeque::new() }
    }

    /// Returns whether one more request may leave at this time.
    #[inline]
    pub fn has_room(&self, now: u64) -> bool {
        match self.times.front() {
            Some(&first) if self.times.len() >= self.max_requests => now.saturating_sub(first) >= self.period,
            _ => true,
        }
    }

    /// Counts a request that leaves at this time.
    #[inline]
    pub fn count_request(&mut self, now: u64) {
        if self.times.len() >= self.max_requests {
            self.times.pop_front();
        }
        self.times.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_seconds_have_more_requests_than_the_limit() {
        const MS: u64 = 1_000_000;
        let mut window = RequestWindow::new(60, &Calibration::nanoseconds());
        let mut sent = Vec::new();
        // Tries at uneven times, as requests would that leave as soon as they may.
        for now in (0..10_000).map(|turn| turn * MS + turn % 7 * MS / 10) {
            if window.has_room(now) {
                window.count_request(now);
                sent.push(now);
            }
        }
        assert_eq!(sent.len(), 5 * 60, "sixty in each period");
        assert!(sent.windows(61).all(|more| more[60] - more[0] >= 2_000 * MS), "{sent:?}");
    }
}
