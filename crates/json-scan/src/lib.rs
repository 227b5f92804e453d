//! In-place reader of JSON messages whose order of keys and whose spelling are known: no allocation, one pass.
//!
//! An exchange writes its hot messages the same way each time. A parser tries exactly this way with a [`JsonScan`], and
//! leaves any other message to a complete JSON parser: other orders of keys, white space, escapes, unknown keys.
//!
//! ```
//! use tickpath_json_scan::JsonScan;
//!
//! /// Reads a best bid: price in units of 0.01 and quantity in units of 0.0001.
//! fn bid(message: &[u8]) -> Option<(&[u8], i64, i64)> {
//!     let mut scan = JsonScan::new(message);
//!     scan.literal(br#"{"s":"#)?;
//!     let symbol = scan.text()?;
//!     scan.literal(br#","b":"#)?;
//!     let price = scan.quoted_decimal(2)?;
//!     scan.literal(br#","B":"#)?;
//!     let quantity = scan.quoted_decimal(4)?;
//!     scan.literal(b"}")?;
//!     scan.at_end().then_some((symbol, price, quantity))
//! }
//!
//! let message = br#"{"s":"BTCUSDT","b":"61800.20000000","B":"0.5"}"#;
//! assert_eq!(bid(message), Some((&b"BTCUSDT"[..], 6_180_020, 5_000)));
//! assert_eq!(bid(br#"{ "s":"BTCUSDT","b":"61800.2","B":"0.5"}"#), None);
//! ```
//!
//! # Invariants
//!
//! * A complete JSON parser reads the same value from the bytes of each value that a scan accepts.
//! * A call that returns `None` leaves the position as it was.
//! * No input makes a scan panic.

/// Max digits that always fit 64 bits.
const SAFE_DIGITS: usize = 19;

/// Powers of ten that fit 64 bits.
const POWERS: [u64; SAFE_DIGITS + 1] = {
    let mut powers = [1; SAFE_DIGITS + 1];
    let mut exponent = 1;
    while exponent <= SAFE_DIGITS {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A position in a JSON message.
#[derive(Debug, Clone, Copy)]
pub struct JsonScan<'a> {
    /// Bytes behind the position.
    rest: &'a [u8],
    length: usize,
}

impl<'a> JsonScan<'a> {
    /// Starts at the first byte of a message.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Passes over exactly these bytes.
    #[inline]
    pub fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// Reads a text with its quotes, and returns its bytes without them. `None` if the text has an escape, which would
    /// need a copy, or is no valid JSON.
    #[inline]
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let body = self.rest.strip_prefix(b"\"")?;
        let mut seen = 0_u8;
        for (length, &byte) in body.iter().enumerate() {
            if byte == b'"' {
                let (text, after) = body.split_at(length);
                if !seen.is_ascii() {
                    std::str::from_utf8(text).ok()?;
                }
                self.rest = after.strip_prefix(b"\"")?;
                return Some(text);
            }
            if byte == b'\\' || byte < b' ' {
                return None;
            }
            seen |= byte;
        }
        None
    }

    /// Reads a whole number without a sign: `123`.
    #[inline]
    pub fn unsigned(&mut self) -> Option<u64> {
        let (value, after) = whole_number(self.rest)?;
        self.rest = after;
        Some(value)
    }

    /// Reads a whole number: `123` or `-123`.
    #[inline]
    pub fn signed(&mut self) -> Option<i64> {
        let negative = self.rest.strip_prefix(b"-");
        let (magnitude, after) = whole_number(negative.unwrap_or(self.rest))?;
        let value = match negative {
            None => i64::try_from(magnitude).ok()?,
            // JSON's minus zero is no whole number.
            Some(_) if magnitude == 0 => return None,
            Some(_) => 0_i64.checked_sub_unsigned(magnitude)?,
        };
        self.rest = after;
        Some(value)
    }

    /// Reads a whole number in quotes: `"123"`.
    #[inline]
    pub fn quoted_unsigned(&mut self) -> Option<u64> {
        let (value, after) = whole_number(self.rest.strip_prefix(b"\"")?)?;
        self.rest = after.strip_prefix(b"\"")?;
        Some(value)
    }

    /// Reads a decimal number in quotes, in units of 10 to the power of minus `decimals`: `"0.0123"` is 123 units at
    /// four decimals. `None` if the number does not fit exactly, or begins or ends with its point.
    #[inline]
    pub fn quoted_decimal(&mut self, decimals: u8) -> Option<i64> {
        let decimals = usize::from(decimals);
        let body = self.rest.strip_prefix(b"\"")?;
        let negative = body.strip_prefix(b"-");
        let (whole, after) = digits(negative.unwrap_or(body), 0, usize::MAX);
        let length = negative.unwrap_or(body).len() - after.len();
        let (mut units, mut end, mut kept) = (whole, after, 0);
        if let Some(fraction) = after.strip_prefix(b".") {
            (units, end) = digits(fraction, whole, decimals);
            kept = fraction.len() - end.len();
            // More zeros than decimals change nothing.
            while let Some(more) = end.strip_prefix(b"0") {
                end = more;
            }
            if end.len() == fraction.len() {
                return None;
            }
        }
        let end = end.strip_prefix(b"\"")?;
        if length == 0 || length + kept > SAFE_DIGITS {
            return None;
        }
        let units = i64::try_from(units.checked_mul(*POWERS.get(decimals - kept)?)?).ok()?;
        self.rest = end;
        Some(if negative.is_some() { -units } else { units })
    }

    /// Returns whether no byte is left.
    #[inline]
    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next byte without passing over it.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Returns the number of bytes before the position.
    #[inline]
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }
}

/// Reads a whole number as JSON spells it: without leading zeros. Also returns the bytes behind it.
#[inline]
fn whole_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (value, after) = digits(bytes, 0, usize::MAX);
    let length = bytes.len() - after.len();
    match length {
        0 => None,
        1..=SAFE_DIGITS if length == 1 || bytes[0] != b'0' => Some((value, after)),
        1..=SAFE_DIGITS => None,
        _ => long_number(&bytes[..length]).map(|value| (value, after)),
    }
}

/// Reads a number of twenty digits or more, which may exceed 64 bits.
#[cold]
fn long_number(digits: &[u8]) -> Option<u64> {
    let has_leading_zero = digits.first() == Some(&b'0');
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| !has_leading_zero)
}

/// Appends the leading digits, `max` at most, to the digits of a value, which wraps. Also returns the bytes behind.
#[inline]
fn digits(bytes: &[u8], mut value: u64, max: usize) -> (u64, &[u8]) {
    let mut length = 0;
    for &byte in bytes.iter().take(max) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    (value, &bytes[length..])
}
