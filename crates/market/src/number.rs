//! Numbers with their units: fixed-point decimals and ids that cannot be mixed up.

use std::fmt;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Units in one whole price or quantity: eight decimals.
pub const SCALE: i64 = 100_000_000;
/// Decimals of prices and quantities, unless their instrument has others.
pub const DECIMALS: u8 = 8;
/// Max decimals of an instrument's prices and quantities: with more, a whole unit does not fit 64 bits.
pub const MAX_DECIMALS: u8 = 18;

/// Errors of a text that is not a price or a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text has other characters than digits, one sign and one point, or no digit at all.
    #[error("not a decimal number; write it like 61800.25")]
    NotANumber,
    /// More than eight digits stand behind the point.
    #[error("more than eight decimals; round it to eight")]
    TooPrecise,
    /// The number does not fit 64 bits at eight decimals.
    #[error("larger than 92 233 720 368; it does not fit 64 bits at eight decimals")]
    TooLarge,
}

/// Reads a decimal text into units of 10 to the power of minus `decimals`.
///
/// ```
/// use tickpath_market::{decimal_text, parse_decimal};
///
/// assert_eq!(parse_decimal("0.0000012345", 10)?, 12_345);
/// assert_eq!(decimal_text(12_345, 10), "0.0000012345");
/// # Ok::<(), tickpath_market::DecimalError>(())
/// ```
pub fn parse_decimal(text: &str, decimals: u8) -> Result<i64, DecimalError> {
    let places = usize::from(decimals);
    if !text.is_ascii() {
        return Err(DecimalError::NotANumber);
    }
    let (negative, digits) = (text.starts_with('-'), text.strip_prefix('-').unwrap_or(text));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(DecimalError::NotANumber);
    }
    if fraction.len() > places && fraction[places..].bytes().any(|b| b != b'0') {
        let is_number = fraction.bytes().all(|b| b.is_ascii_digit());
        return Err(if is_number { DecimalError::TooPrecise } else { DecimalError::NotANumber });
    }
    let mut units: i64 = 0;
    let padding = std::iter::repeat_n(b'0', places.saturating_sub(fraction.len()));
    for byte in whole.bytes().chain(fraction.bytes().take(places)).chain(padding) {
        if !byte.is_ascii_digit() {
            return Err(DecimalError::NotANumber);
        }
        units =
            units.checked_mul(10).and_then(|u| u.checked_add(i64::from(byte - b'0'))).ok_or(DecimalError::TooLarge)?;
    }
    Ok(if negative { -units } else { units })
}

/// Returns units of 10 to the power of minus `decimals` as text, without zeros at the end.
pub fn decimal_text(units: i128, decimals: u8) -> String {
    let scale = 10_u128.pow(decimals.into());
    let magnitude = units.unsigned_abs();
    let (whole, fraction) = (magnitude / scale, magnitude % scale);
    let sign = if units < 0 { "-" } else { "" };
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let digits = format!("{fraction:0width$}", width = usize::from(decimals));
    format!("{sign}{whole}.{}", digits.trim_end_matches('0'))
}

/// Appends a whole number. Allocates only if the text has no room.
///
/// ```
/// let mut text = String::from("id=");
/// tickpath_market::push_unsigned(&mut text, 1250);
/// assert_eq!(text, "id=1250");
/// ```
#[inline]
pub fn push_unsigned(text: &mut String, mut value: u64) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    while value >= 10 {
        begin -= 2;
        digits[begin..begin + 2].copy_from_slice(digit_pair(value % 100));
        value /= 100;
    }
    if value > 0 || begin == digits.len() {
        begin -= 1;
        digits[begin] = b'0' + value as u8;
    }
    text.push_str(ascii(&digits[begin..]));
}

/// Two digits for each number below a hundred.
const DIGIT_PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Returns the two digits of a number below a hundred.
#[inline]
fn digit_pair(number: u64) -> &'static [u8] {
    let begin = 2 * number as usize;
    &DIGIT_PAIRS[begin..begin + 2]
}

/// Appends units of 10⁻⁸ as a decimal number, without zeros at the end. Allocates only if the text has no room.
///
/// ```
/// let mut text = String::from("px=");
/// tickpath_market::push_decimal(&mut text, 6_180_025_000_000);
/// assert_eq!(text, "px=61800.25");
/// ```
#[inline]
pub fn push_decimal(text: &mut String, units: i64) {
    let (magnitude, scale) = (units.unsigned_abs(), SCALE.unsigned_abs());
    if units < 0 {
        text.push('-');
    }
    push_unsigned(text, magnitude / scale);
    let mut fraction = magnitude % scale;
    if fraction == 0 {
        return;
    }
    let mut digits = *b".00000000";
    for pair in digits[1..].rchunks_exact_mut(2) {
        pair.copy_from_slice(digit_pair(fraction % 100));
        fraction /= 100;
    }
    let end = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    text.push_str(ascii(&digits[..end]));
}

fn ascii(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).expect("digits are ASCII")
}

fn write_units(units: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&decimal_text(units, DECIMALS))
}

macro_rules! decimals {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(transparent)]
        pub struct $name(
            /// Units of 10⁻⁸.
            pub i64,
        );

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// Returns a whole number of units, for constants: `from_whole(8000)` is 8000.00000000.
            pub const fn from_whole(whole: i64) -> Self {
                Self(whole * SCALE)
            }
        }

        impl FromStr for $name {
            type Err = DecimalError;

            fn from_str(text: &str) -> Result<Self, DecimalError> {
                parse_decimal(text, DECIMALS).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_units(i128::from(self.0), f)
            }
        }
    )+};
}

decimals! {
    /// A price per unit of the instrument, in units of 10⁻⁸ of its currency.
    Price
    /// An amount of the instrument, in units of 10⁻⁸.
    Quantity
}

/// Price times quantity, in units of 10⁻¹⁶ of the currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Notional(
    /// Units of 10⁻¹⁶.
    pub i128,
);

impl Notional {
    /// Returns the value of `quantity` at `price`. It cannot overflow: a product of two 64-bit numbers fits 128 bits.
    pub fn of(price: Price, quantity: Quantity) -> Self {
        Self(i128::from(price.0) * i128::from(quantity.0))
    }

    /// Returns a whole amount of currency.
    pub const fn from_whole(whole: i64) -> Self {
        Self(whole as i128 * SCALE as i128 * SCALE as i128)
    }
}

impl fmt::Display for Notional {
    /// Formats the value to eight decimals; further digits are cut off.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_units(self.0 / i128::from(SCALE), f)
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty))+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(transparent)]
        pub struct $name(
            /// The bare number.
            pub $inner,
        );

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// An instrument's number in the OMS's table; the table and its [`Symbol`]s are journaled.
    SymbolId(u32)
    /// An account's number in the OMS's table.
    AccountId(u32)
    /// A venue's number in the OMS's table.
    VenueId(u16)
    /// The client's own id of a request, unique per session and day. Zero means none.
    ClientOrderId(u64)
    /// The OMS's id of an order: the epoch of the OMS's start in the upper 24 bits, the journal sequence of its
    /// `NewOrder` in the lower 40. Zero means none.
    OrderId(u64)
    /// The venue's id of an order. Zero means none.
    VenueOrderId(u64)
    /// The venue's id of an execution; the key of a fill is (venue, execution id). Zero means none.
    ExecId(u64)
}

impl OrderId {
    /// Bits of the journal sequence.
    pub const SEQUENCE_BITS: u32 = 40;

    /// Returns the id of a record that a start with this epoch journaled at this sequence. An epoch belongs to one
    /// start, so no id is reused, even if a power loss cuts the journal's end.
    pub const fn new(epoch: u64, sequence: u64) -> Self {
        Self(epoch << Self::SEQUENCE_BITS | sequence & ((1 << Self::SEQUENCE_BITS) - 1))
    }

    /// Returns the epoch of the start that assigned the id.
    pub const fn epoch(self) -> u64 {
        self.0 >> Self::SEQUENCE_BITS
    }

    /// Returns the journal sequence.
    pub const fn sequence(self) -> u64 {
        self.0 & ((1 << Self::SEQUENCE_BITS) - 1)
    }
}

macro_rules! fixed_texts {
    ($($(#[$doc:meta])* $name:ident($bytes:literal), $error:ident, $message:literal, $is_allowed:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(transparent)]
        pub struct $name(
            /// Bytes of the text, padded with zeros.
            pub [u8; $bytes],
        );

        impl $name {
            /// Returns a text that is known to be valid, for constants.
            pub const fn constant(text: &str) -> Self {
                let (text, mut bytes, mut at) = (text.as_bytes(), [0; $bytes], 0);
                while at < text.len() {
                    bytes[at] = text[at];
                    at += 1;
                }
                Self(bytes)
            }

            /// Returns the text, without the padding.
            pub fn as_str(&self) -> &str {
                let end = self.0.iter().position(|&b| b == 0).unwrap_or($bytes);
                std::str::from_utf8(&self.0[..end]).unwrap_or("?")
            }

            /// Returns whether the text is empty, as that of a definition without one.
            pub fn is_none(&self) -> bool {
                self.0[0] == 0
            }
        }

        #[doc = $message]
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error($message)]
        pub struct $error(String);

        impl Default for $name {
            fn default() -> Self {
                Self([0; $bytes])
            }
        }

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                if text.is_empty() || text.len() > $bytes || !text.bytes().all($is_allowed) {
                    return Err($error(text.to_owned()));
                }
                let mut bytes = [0; $bytes];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                Ok(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.as_str())
            }
        }
    )+};
}

fixed_texts! {
    /// An instrument's name: up to 48 bytes of ASCII, padded with zeros. Names of options have up to 36.
    Symbol(48), SymbolError, "'{0}' is no symbol; use 1 to 48 printable ASCII characters", |b| b.is_ascii_graphic();
    /// A currency: a code of ISO 4217, or an exchange's name of a coin, padded with zeros.
    Currency(12), CurrencyError, "'{0}' is no currency; use 1 to 12 letters and digits, like USD or USDT",
        |b| b.is_ascii_alphanumeric();
    /// A client's own text id of an order: up to 36 bytes of ASCII, padded with zeros. A UUID as text fits.
    TextId(36), TextIdError, "'{0}' is no client id; use 1 to 36 printable ASCII characters without spaces",
        |b| b.is_ascii_graphic();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_numbers_are_those_of_the_allocating_writers(units: i64, value: u64) {
            let (mut decimal, mut whole) = (String::from("="), String::from("="));
            push_decimal(&mut decimal, units);
            push_unsigned(&mut whole, value);
            prop_assert_eq!(decimal, format!("={}", decimal_text(units.into(), DECIMALS)));
            prop_assert_eq!(whole, format!("={value}"));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_written() {
        for (units, expected) in [
            (0, "0"),
            (1, "0.00000001"),
            (-SCALE, "-1"),
            (SCALE * 10, "10"),
            (i64::MAX, "92233720368.54775807"),
            (i64::MIN, "-92233720368.54775808"),
        ] {
            let mut text = String::new();
            push_decimal(&mut text, units);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn decimals_read_and_print() {
        for (text, units, printed) in [
            ("61800.20", 6_180_020_000_000, "61800.2"),
            ("0.00000001", 1, "0.00000001"),
            ("-2.5", -250_000_000, "-2.5"),
            ("8000", 800_000_000_000, "8000"),
            (".5", 50_000_000, "0.5"),
            ("1.000000000", 100_000_000, "1"),
        ] {
            let price: Price = text.parse().unwrap();
            assert_eq!((price.0, price.to_string().as_str()), (units, printed), "{text}");
        }
    }

    #[test]
    fn bad_decimals_are_refused() {
        for (text, why) in [
            ("", DecimalError::NotANumber),
            (".", DecimalError::NotANumber),
            ("1e5", DecimalError::NotANumber),
            ("--1", DecimalError::NotANumber),
            ("1.2.3", DecimalError::NotANumber),
            ("0.000000001", DecimalError::TooPrecise),
            ("0.00000000x", DecimalError::NotANumber),
            ("0.0000000é", DecimalError::NotANumber),
            ("92233720369", DecimalError::TooLarge),
        ] {
            assert_eq!(text.parse::<Price>(), Err(why), "{text}");
        }
    }

    #[test]
    fn symbols_are_fixed_text() {
        let symbol: Symbol = "BTCUSDT".parse().unwrap();
        assert_eq!(symbol.as_str(), "BTCUSDT");
        for bad in ["", &"X".repeat(49), "a b", "é"] {
            assert!(bad.parse::<Symbol>().is_err(), "{bad}");
        }
    }
}
