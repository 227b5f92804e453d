//! Values of fields: numbers, decimal numbers, dates and times, read from and written as the bytes of a message.
//!
//! `parse_*` returns a value, and `None` if the bytes are no such value or it does not fit. `is_*` checks the format
//! alone.

mod utc_time;

use thiserror::Error;

pub(crate) use self::utc_time::{SecondText, TIME_ROOM};
pub use self::utc_time::{
    TimePrecision, is_month_year, is_tz_time, is_tz_timestamp, is_utc_date, is_utc_time, is_utc_timestamp,
    parse_utc_timestamp, write_utc_timestamp,
};

use crate::digits::POWERS;
use crate::tags::Tag;

/// Max digits that always fit 64 bits.
const SAFE_DIGITS: usize = 19;

/// A value that a program asked for as a number, and that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ValueFault {
    /// The value is not an unsigned number, or does not fit 64 bits.
    #[error("the value of tag {tag} is no whole number from 0 to 18446744073709551615; correct it at the sender")]
    Unsigned {
        /// Tag of the field.
        tag: Tag,
    },
}

/// A decimal number, `mantissa` × 10^-`scale`, without zeros at the end of its fraction: equal numbers are equal
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// Units of 10^-`scale`.
    pub mantissa: i64,
    /// Number of decimals.
    pub scale: u8,
}

impl Decimal {
    /// Returns the number in units of 10^-`decimals`; `None` if a digit would be lost, or if the units do not fit.
    ///
    /// ```
    /// use tickpath_fix::values::parse_decimal;
    ///
    /// let price = parse_decimal(b"61800.250").ok_or("no number")?;
    /// assert_eq!(price.units(8), Some(6_180_025_000_000));
    /// assert_eq!(price.units(1), None);
    /// # Ok::<(), &str>(())
    /// ```
    #[inline]
    pub fn units(self, decimals: u8) -> Option<i64> {
        let power = POWERS.get(usize::from(decimals.checked_sub(self.scale)?));
        match power {
            Some(&power) => self.mantissa.checked_mul(i64::try_from(power).ok()?),
            None => (self.mantissa == 0).then_some(0),
        }
    }
}

/// Reads a whole number of at least 0: digits only, zeros in front are allowed.
#[inline]
pub fn parse_unsigned(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for &byte in &value[..value.len().min(SAFE_DIGITS)] {
        number = number * 10 + u64::from(digit(byte)?);
    }
    for &byte in value.get(SAFE_DIGITS..).unwrap_or_default() {
        number = number.checked_mul(10)?.checked_add(u64::from(digit(byte)?))?;
    }
    Some(number)
}

/// Reads a whole number: an optional `-`, and digits. FIX has no `+`.
#[inline]
pub fn parse_int(value: &[u8]) -> Option<i64> {
    match value.strip_prefix(b"-") {
        Some(digits) => 0_i64.checked_sub_unsigned(parse_unsigned(digits)?),
        None => i64::try_from(parse_unsigned(value)?).ok(),
    }
}

/// Reads a decimal number: an optional `-`, digits, and at most one point before, between or behind them. No digit is
/// lost.
#[inline]
pub fn parse_decimal(value: &[u8]) -> Option<Decimal> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let (mut magnitude, mut scale, mut zeros) = (0_u64, 0_u8, 0_u8);
    let (mut is_fraction, mut has_digit) = (false, false);
    for &byte in digits {
        if byte == b'.' && !is_fraction {
            is_fraction = true;
            continue;
        }
        let digit = digit(byte)?;
        has_digit = true;
        if !is_fraction {
            magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
        } else if digit == 0 {
            // Zeros count only if another digit follows; more than 255 of them are not worth a wider type.
            zeros = zeros.saturating_add(1);
        } else {
            for _ in 0..=zeros {
                magnitude = magnitude.checked_mul(10)?;
            }
            magnitude = magnitude.checked_add(u64::from(digit))?;
            scale = scale.checked_add(zeros)?.checked_add(1)?;
            zeros = 0;
        }
    }
    let is_negative = digits.len() < value.len();
    let mantissa = if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
    mantissa.filter(|_| has_digit).map(|mantissa| Decimal { mantissa, scale })
}

/// Returns whether the bytes are a whole number of any length, with an optional `-`.
#[inline]
pub fn is_int(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Returns whether the bytes are a decimal number of any length, with an optional `-` and at most one point.
#[inline]
pub fn is_decimal(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let (mut points, mut others) = (0, 0);
    for &byte in digits {
        match byte {
            b'.' => points += 1,
            b'0'..=b'9' => others += 1,
            _ => return false,
        }
    }
    points <= 1 && others > 0
}

/// Returns the value of a decimal digit.
#[inline]
fn digit(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_numbers_may_begin_with_zeros() {
        for (text, number) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("0018446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("99999999999999999999", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            (" 1", None),
            ("1.0", None),
            ("12a", None),
            ("1234567890123456789x", None),
        ] {
            assert_eq!(parse_unsigned(text.as_bytes()), number, "'{text}'");
        }
    }

    #[test]
    fn whole_numbers_may_have_a_minus() {
        for (text, number) in [
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-0", Some(0)),
            ("-007", Some(-7)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("-", None),
            ("--1", None),
            ("+1", None),
        ] {
            assert_eq!(parse_int(text.as_bytes()), number, "'{text}'");
        }
        assert_eq!(["-0", "12", "99999999999999999999999"].map(|text| is_int(text.as_bytes())), [true; 3]);
        assert_eq!(["", "-", "+1", "1.0", "1e3"].map(|text| is_int(text.as_bytes())), [false; 5]);
    }

    #[test]
    fn decimals_lose_no_digit() {
        for (text, mantissa, scale) in [
            ("002000.00", 2_000, 0),
            ("23.23", 2_323, 2),
            ("-.5", -5, 1),
            ("5.", 5, 0),
            ("-0.0", 0, 0),
            ("1.000000000000000000000000000000", 1, 0),
            ("0.0000000000000000000000001", 1, 25),
            ("-9223372036854775808", i64::MIN, 0),
            ("9.223372036854775807", i64::MAX, 18),
        ] {
            assert_eq!(parse_decimal(text.as_bytes()), Some(Decimal { mantissa, scale }), "'{text}'");
            assert!(is_decimal(text.as_bytes()), "'{text}'");
        }
        for text in ["", "-", ".", "-.", "1.2.3", "1e5", "+1", "1,000", "NaN", " 1"] {
            assert_eq!((parse_decimal(text.as_bytes()), is_decimal(text.as_bytes())), (None, false), "'{text}'");
        }
        assert_eq!(parse_decimal(b"9223372036854775808"), None);
        assert_eq!(parse_decimal(format!("0.{}1", "0".repeat(300)).as_bytes()), None);
        assert_eq!(parse_decimal(format!("1.{}", "0".repeat(300)).as_bytes()), Some(Decimal { mantissa: 1, scale: 0 }));
    }

    #[test]
    fn units_of_another_scale_lose_no_digit() {
        let decimal = |mantissa, scale| Decimal { mantissa, scale };
        assert_eq!(decimal(25, 2).units(2), Some(25));
        assert_eq!(decimal(25, 2).units(4), Some(2_500));
        assert_eq!(decimal(25, 2).units(1), None);
        assert_eq!(decimal(i64::MAX, 0).units(1), None);
        assert_eq!(decimal(0, 0).units(255), Some(0));
        assert_eq!(decimal(1, 0).units(255), None);
        assert_eq!(decimal(1, 0).units(19), None);
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_the_standard_library_reads_them(text in "-?[0-9]{0,22}") {
            prop_assert_eq!(parse_int(text.as_bytes()), text.parse::<i64>().ok());
            prop_assert_eq!(parse_unsigned(text.as_bytes()), text.parse::<u64>().ok());
        }

        #[test]
        fn a_decimal_is_the_written_number(mantissa: i64, decimals in 0_u8..30) {
            let mut room = vec![0; crate::digits::decimal_room(decimals)];
            let length = crate::digits::write_decimal(&mut room, mantissa, decimals);
            let read = parse_decimal(&room[..length]).expect("a written number can be read");
            prop_assert_eq!(read.units(decimals), Some(mantissa));
        }

        #[test]
        fn a_decimal_number_that_is_read_has_the_format(value in proptest::collection::vec(any::<u8>(), 0..12)) {
            prop_assert!(parse_decimal(&value).is_none() || is_decimal(&value));
        }
    }
}
