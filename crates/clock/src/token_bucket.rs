//! Token bucket per client, which limits its rate: a client that can address a lane could otherwise flood it.

use crate::Calibration;

/// Rate limit of a session's requests. Requests beyond it wait in the session's own lane, and its client sees a full
/// lane; nothing is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    /// Requests a second; zero for no limit.
    pub per_second: u32,
    /// Largest burst of requests.
    pub burst: u32,
}

impl RequestRate {
    /// No limit: for measurements, and for trusted clients.
    pub const UNLIMITED: Self = Self { per_second: 0, burst: 0 };
}

impl Default for RequestRate {
    /// Returns a limit above any desk's traffic and below a flood.
    fn default() -> Self {
        Self { per_second: 100_000, burst: 10_000 }
    }
}

/// Tokens of one session. The clock is read only when they are used up.
#[derive(Debug)]
pub struct TokenBucket {
    tokens: u32,
    burst: u32,
    /// Ticks per new token; zero if there is no limit.
    ticks_per_token: u64,
    filled: u64,
}

impl TokenBucket {
    /// Makes a full bucket; `now` is in ticks.
    pub fn new(rate: RequestRate, calibration: &Calibration, now: u64) -> Self {
        let ticks_per_token = match rate.per_second {
            0 => 0,
            limit => (calibration.ticks_per_second / u64::from(limit)).max(1),
        };
        let burst = rate.burst.max(1);
        Self { tokens: burst, burst, ticks_per_token, filled: now }
    }

    /// Takes a token; returns false if there is none now.
    #[inline(always)]
    pub fn try_take(&mut self, now: impl FnOnce() -> u64) -> bool {
        if self.ticks_per_token == 0 {
            return true;
        }
        if self.tokens == 0 {
            self.fill(now());
        }
        let Some(left) = self.tokens.checked_sub(1) else { return false };
        self.tokens = left;
        true
    }

    /// Takes more tokens for a request that passed and turned out to cost more than one. Missing tokens are not owed:
    /// a session that has cancelled all its orders can act again when the next token comes.
    pub fn charge(&mut self, tokens: u32) {
        if self.ticks_per_token != 0 {
            self.tokens = self.tokens.saturating_sub(tokens);
        }
    }

    /// Returns a token: there was no request to use it for.
    #[inline(always)]
    pub fn refund(&mut self) {
        self.tokens = self.tokens.saturating_add(1).min(self.burst);
    }

    #[cold]
    fn fill(&mut self, now: u64) {
        let new_tokens = now.saturating_sub(self.filled) / self.ticks_per_token;
        if new_tokens == 0 {
            // The clock of another boot may have begun anew.
            self.filled = self.filled.min(now);
            return;
        }
        self.tokens = u32::try_from(new_tokens).unwrap_or(u32::MAX).min(self.burst);
        self.filled = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(per_second: u32, burst: u32, now: u64) -> TokenBucket {
        TokenBucket::new(RequestRate { per_second, burst }, &Calibration::nanoseconds(), now)
    }

    #[test]
    fn tokens_are_refilled_with_time_up_to_a_burst() {
        let mut bucket = bucket(10, 3, 0);
        let mut take = |now: u64| bucket.try_take(|| now);
        assert_eq!([take(0), take(0), take(0), take(0)], [true, true, true, false]);
        assert!(!take(99_999_999), "a tenth of a second for each");
        assert!(take(100_000_000) && !take(100_000_001));
        assert_eq!([1, 2, 3, 4].map(|_| take(10_000_000_000)), [true, true, true, false], "three at most");
    }

    #[test]
    fn a_new_bucket_holds_one_burst() {
        let mut bucket = bucket(10, 3, 5_000_000_000);
        let passed = (0..10).filter(|_| bucket.try_take(|| 5_000_000_001)).count();
        assert_eq!(passed, 3);
    }

    #[test]
    fn a_costly_request_takes_later_tokens_and_leaves_no_debt() {
        let mut bucket = bucket(10, 5, 0);
        assert!(bucket.try_take(|| 0));
        bucket.charge(3);
        assert_eq!([1, 2].map(|now| bucket.try_take(|| now)), [true, false], "one of five is left");
        bucket.charge(1000);
        assert_eq!([99_999_999, 100_000_000].map(|now| bucket.try_take(|| now)), [false, true], "nothing is owed");
        let mut unlimited = TokenBucket::new(RequestRate::UNLIMITED, &Calibration::nanoseconds(), 0);
        unlimited.charge(1000);
        assert!(unlimited.try_take(|| panic!("no limit needs no time")));
    }

    #[test]
    fn an_unlimited_bucket_reads_no_clock() {
        let mut bucket = TokenBucket::new(RequestRate::UNLIMITED, &Calibration::nanoseconds(), 0);
        assert!((0..100).all(|_| bucket.try_take(|| panic!("no limit needs no time"))));
    }
}
