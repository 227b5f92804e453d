//! Numbers in text: whole numbers, prices and quantities, read from the bytes of a cell.

use std::str::from_utf8;

use tickpath_market::{DECIMALS, DecimalError, Price, Quantity, parse_decimal};

/// Powers of ten up to the scale of prices and quantities.
const POWERS: [i64; DECIMALS as usize + 1] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Digits of which every combination fits 64 bits.
const SAFE_DIGITS: usize = 19;

/// Reads a whole number that is not negative.
pub(crate) fn unsigned(cell: &[u8]) -> Result<u64, String> {
    digits(cell).ok_or_else(|| format!("'{}' is no whole number of 64 bits", quoted(cell)))
}

/// Reads a whole number that is not negative; none if the cell is of any other form.
#[inline]
pub(crate) fn digits(cell: &[u8]) -> Option<u64> {
    if cell.len() > SAFE_DIGITS {
        return many_digits(cell);
    }
    let (groups, rest) = cell.as_chunks::<8>();
    let mut number = 0;
    for group in groups {
        number = number * 100_000_000 + eight_digits(*group)?;
    }
    for byte in rest {
        number = number * 10 + digit(*byte)?;
    }
    (!cell.is_empty()).then_some(number)
}

/// Reads digits that may not fit 64 bits.
#[cold]
fn many_digits(cell: &[u8]) -> Option<u64> {
    cell.iter().try_fold(0_u64, |number, byte| number.checked_mul(10)?.checked_add(digit(*byte)?))
}

/// Reads eight digits at once: neighbours are joined to numbers of two, four and eight digits.
#[inline]
fn eight_digits(group: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let text = u64::from_le_bytes(group);
    // Above '9' the six reaches the high half of the byte.
    let is_digits = text & HIGH == ZEROS && text.wrapping_add(0x0606_0606_0606_0606) & HIGH == ZEROS;
    let pairs = ((text & !HIGH).wrapping_mul((10 << 8) + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul((100 << 16) + 1) >> 16) & 0x0000_ffff_0000_ffff;
    is_digits.then_some(fours.wrapping_mul((10_000 << 32) + 1) >> 32)
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}

/// Reads a price, which is above zero.
pub(crate) fn price(cell: &[u8]) -> Result<Price, String> {
    positive_price(units(cell)?).map_err(|_| format!("the price {} is not above zero", quoted(cell)))
}

/// Reads a quantity, which is not below zero.
pub(crate) fn quantity(cell: &[u8]) -> Result<Quantity, String> {
    let units = units(cell)?;
    if units >= 0 { Ok(Quantity(units)) } else { Err(format!("the quantity {} is below zero", quoted(cell))) }
}

/// Checks a price in units of 10⁻⁸.
pub(crate) fn positive_price(units: i64) -> Result<Price, String> {
    let price = Price(units);
    if price > Price::ZERO { Ok(price) } else { Err(format!("the price {price} is not above zero")) }
}

/// Returns the text of a cell, for a sentence.
pub(crate) fn quoted(cell: &[u8]) -> String {
    String::from_utf8_lossy(&cell[..cell.len().min(60)]).into_owned()
}

/// Reads a decimal number into units of 10⁻⁸.
fn units(cell: &[u8]) -> Result<i64, String> {
    if let Some(units) = plain_units(cell) {
        return Ok(units);
    }
    let text = from_utf8(cell).map_err(|_| format!("'{}' is no number", quoted(cell)))?;
    let read = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => scientific_units(mantissa, exponent),
        None => parse_decimal(text, DECIMALS),
    };
    read.map_err(|error| format!("'{}': {error}", quoted(cell)))
}

/// Reads digits with at most one point, the form of almost every number; none for any other form.
#[inline]
fn plain_units(cell: &[u8]) -> Option<i64> {
    if cell.len() > SAFE_DIGITS {
        return None;
    }
    let (mut units, mut point) = (0_u64, None);
    for (position, &byte) in cell.iter().enumerate() {
        match byte {
            b'0'..=b'9' => units = units * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(position),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| cell.len() - point - 1);
    if cell.len() == usize::from(point.is_some()) {
        return None;
    }
    let power = POWERS.get(usize::from(DECIMALS).checked_sub(decimals)?)?;
    i64::try_from(units).ok()?.checked_mul(*power)
}

/// Reads a number like `1.5e-7`, the form that programs give to small numbers.
fn scientific_units(mantissa: &str, exponent: &str) -> Result<i64, DecimalError> {
    let exponent: i16 = exponent.parse().map_err(|_| DecimalError::NotANumber)?;
    match i32::from(DECIMALS) + i32::from(exponent) {
        decimals if decimals < 0 => Err(DecimalError::TooPrecise),
        decimals => parse_decimal(mantissa, u8::try_from(decimals).map_err(|_| DecimalError::TooLarge)?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_numbers_are_read_as_by_the_standard_library(cell in "[0-9]{0,22}", wrong in "[0-9:/ -~]{1,20}") {
            prop_assert_eq!(digits(cell.as_bytes()), cell.parse::<u64>().ok(), "{}", cell);
            let is_number = wrong.bytes().all(|byte| byte.is_ascii_digit());
            let expected = if is_number { wrong.parse::<u64>().ok() } else { None };
            prop_assert_eq!(digits(wrong.as_bytes()), expected, "{}", wrong);
        }

        #[test]
        fn the_short_way_reads_what_the_long_way_reads(cell in "[-0-9.]{0,22}") {
            if let Some(units) = plain_units(cell.as_bytes()) {
                prop_assert_eq!(parse_decimal(&cell, DECIMALS), Ok(units), "{}", cell);
            }
        }
    }

    #[test]
    fn exponents_move_the_point() {
        for (cell, expected) in
            [("1.5e-7", Some(15)), ("1e-8", Some(1)), ("2E3", Some(200_000_000_000)), ("1e-9", None)]
        {
            assert_eq!(units(cell.as_bytes()).ok(), expected, "{cell}");
        }
        for bad in ["", ".", "e5", "1e", "1e400", "1e30", "x", "1.2.3", "\u{661}"] {
            assert!(units(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
