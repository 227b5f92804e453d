//! The messages: JSON records of one size, each with its number in it, as a feed handler would write them.
//!
//! ```text
//!   {"id": "0000000042", "timestamp": 1723161599000000, "symbol": "BTC-USD", "price": "61234.50", "padding": "xxx…"}
//!           └ 10 digits               └ microseconds
//! ```

use tickpath_lab_harness::random::SeededRandom;

/// The kind of a benchmark's messages.
pub(super) const KIND: u8 = 200;

/// Bytes of a record without padding.
pub const MIN_RECORD_BYTES: usize = 108;

/// Number of a record that is not ours.
pub(super) const FOREIGN: u64 = u64::MAX;

const NUMBER_AT: usize = 8;
const DIGITS: usize = 10;

/// The day of the records, in microseconds since the Unix epoch, and its length.
const FIRST_US: u64 = 1_723_075_200_000_000;
const DAY_US: u64 = 86_400_000_000;

const SYMBOLS: [&str; 4] = ["BTC-USD", "ETH-USD", "SOL-USD", "XRP-USD"];

/// Prepared records that need only their numbers.
pub(super) struct PreparedRecords {
    bytes: Vec<u8>,
    size: usize,
}

impl PreparedRecords {
    /// Makes `count` records of `size` bytes from a seed.
    pub fn new(size: usize, count: usize, seed: u64) -> Self {
        let bytes = (0..count as u64)
            .flat_map(|index| record(size, SeededRandom::new(seed.wrapping_add(index)).draw()))
            .collect();
        Self { bytes, size }
    }

    /// Returns the first `count` records, numbered from `first` on.
    pub fn numbered(&mut self, first: u64, count: usize) -> Vec<&[u8]> {
        for (number, record) in (first..).zip(self.bytes.chunks_exact_mut(self.size)).take(count) {
            set_number(record, number);
        }
        self.bytes.chunks_exact(self.size).take(count).collect()
    }
}

/// Returns the number of a record, or [`FOREIGN`] if the record is not ours.
#[inline]
pub(super) fn number(record: &[u8]) -> u64 {
    match record.get(NUMBER_AT..NUMBER_AT + DIGITS) {
        Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
            digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
        }
        _ => FOREIGN,
    }
}

fn set_number(record: &mut [u8], number: u64) {
    let mut rest = number;
    for digit in record[NUMBER_AT..NUMBER_AT + DIGITS].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn record(size: usize, dice: u64) -> Vec<u8> {
    let symbol = SYMBOLS[(dice % SYMBOLS.len() as u64) as usize];
    let time_us = FIRST_US + dice % DAY_US;
    let (whole, cents) = (10_000 + (dice >> 8) % 90_000, (dice >> 32) % 100);
    let padding = "x".repeat(size.saturating_sub(MIN_RECORD_BYTES));
    let text = format!(
        "{{\"id\": \"0000000000\", \"timestamp\": {time_us}, \"symbol\": \"{symbol}\", \
         \"price\": \"{whole}.{cents:02}\", \"padding\": \"{padding}\"}}"
    );
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn records_are_json_of_their_size_and_keep_their_number() {
        for (size, count, first) in
            [(MIN_RECORD_BYTES, 1, 0), (MIN_RECORD_BYTES + 1, 3, 9), (200, 100, 123_456), (4_096, 2, 9_999_999_998)]
        {
            let mut records = PreparedRecords::new(size, count, 7);
            for (expected, record) in (first..).zip(records.numbered(first, count)) {
                assert_eq!((record.len(), number(record)), (size, expected));
                let json: Value = serde_json::from_slice(record).expect("a record is JSON");
                assert_eq!(json["id"], format!("{expected:010}"));
            }
        }
    }

    #[test]
    fn foreign_bytes_have_no_record_number() {
        for foreign in [&b""[..], b"hello", b"{\"id\": \"000000000", b"{\"id\": \"00000x0000\"}", &[0; 64]] {
            assert_eq!(number(foreign), FOREIGN, "{foreign:?}");
        }
    }
}
