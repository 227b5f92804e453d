//! Rate limit of a line: requests in any second, not on average, as an exchange counts them.

use std::collections::VecDeque;

use tickpath_clock::Calibration;

/// Times of the last requests that a line was given.
#[derive(Debug)]
pub(crate) struct LineRateLimit {
    /// Max requests in any second; zero for no limit.
    max_requests: usize,
    second: u64,
    times: VecDeque<u64>,
}

impl LineRateLimit {
    pub fn new(per_second: u32, calibration: &Calibration) -> Self {
        let max_requests = per_second as usize;
        Self { max_requests, second: calibration.ticks_per_second, times: VecDeque::with_capacity(max_requests) }
    }

    /// Returns whether one more request may leave now. Reads the clock only if there is a limit.
    #[inline]
    pub fn has_room(&self, now: impl FnOnce() -> u64) -> bool {
        match self.times.front() {
            Some(&first) if self.times.len() >= self.max_requests => now().saturating_sub(first) >= self.second,
            _ => true,
        }
    }

    /// Counts a request that leaves now.
    #[inline]
    pub fn count_request(&mut self, now: impl FnOnce() -> u64) {
        if self.max_requests == 0 {
            return;
        }
        if self.times.len() >= self.max_requests {
            self.times.pop_front();
        }
        self.times.push_back(now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_requests_than_the_limit() {
        const MS: u64 = 1_000_000;
        let mut limit = LineRateLimit::new(3, &Calibration::nanoseconds());
        let mut sent = Vec::new();
        // Tries at uneven times, as an order would that leaves as soon as it may.
        for now in (0..5_000).map(|turn| turn * MS + turn % 7 * MS / 10) {
            if limit.has_room(|| now) {
                limit.count_request(|| now);
                sent.push(now);
            }
        }
        assert_eq!(sent.len(), 15, "three in each second");
        assert!(sent.windows(4).all(|four| four[3] - four[0] >= 1_000 * MS), "{sent:?}");
    }

    #[test]
    fn without_a_limit_the_clock_is_not_read() {
        let mut limit = LineRateLimit::new(0, &Calibration::nanoseconds());
        for _ in 0..100 {
            assert!(limit.has_room(|| panic!("the clock is read")));
            limit.count_request(|| panic!("the clock is read"));
        }
    }
}
