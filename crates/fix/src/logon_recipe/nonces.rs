//! Nonces that never repeat, taken from the time of the logon.

/// Count of earlier logons whose number TWSE and TPEx refuse.
const REMEMBERED: usize = 5;
const MAX_APPEND_NUMBER: u16 = 999;

/// Milliseconds since the Unix epoch that strictly increase, also if the clock is put back.
#[derive(Debug, Default)]
pub(crate) struct IncreasingMs {
    last: u64,
}

impl IncreasingMs {
    pub(crate) fn take(&mut self, now_ns: u64) -> u64 {
        self.last = (now_ns / 1_000_000).max(self.last + 1);
        self.last
    }
}

/// Numbers from 1 to 999 of which none equals one of the last five. A restart continues the sequence, because a number
/// is a count of seconds.
#[derive(Debug, Default)]
pub(crate) struct AppendNumbers {
    /// Zero for none.
    last: [u16; REMEMBERED],
}

impl AppendNumbers {
    pub(crate) fn take(&mut self, now_ns: u64) -> u16 {
        let seconds = now_ns / 1_000_000_000 % u64::from(MAX_APPEND_NUMBER);
        let mut number = seconds as u16 + 1;
        while self.last.contains(&number) {
            number = number % MAX_APPEND_NUMBER + 1;
        }
        self.last.rotate_right(1);
        self.last[0] = number;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn milliseconds_increase_although_the_clock_is_put_back() {
        let mut timestamps = IncreasingMs::default();
        let taken = [5_000_000, 5_000_001, 4_000_000, 9_999_999].map(|now_ns| timestamps.take(now_ns));
        assert_eq!(taken, [5, 6, 7, 9]);
    }

    #[test]
    fn an_append_number_differs_from_the_last_five() {
        let mut numbers = AppendNumbers::default();
        // Eight logons within a second, then one each second, across the end of the range.
        let times = [997; 8].into_iter().chain(998..1_010);
        let taken: Vec<u16> = times.map(|second| numbers.take(second * SECOND_NS)).collect();
        assert_eq!(taken[..9], [998, 999, 1, 2, 3, 4, 998, 999, 1]);
        assert!(taken.iter().all(|number| (1..=MAX_APPEND_NUMBER).contains(number)), "{taken:?}");
        assert!(taken.windows(6).all(|last| !last[..5].contains(&last[5])), "{taken:?}");
    }
}
