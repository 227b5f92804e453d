//! Numbers as OKX writes them.

use std::iter::repeat_n;

use tickpath_market::{DECIMALS, parse_decimal};

/// Decimals of a fee in a report's detail.
const FEE_DECIMALS: usize = 16;

/// Appends the last `digits` hexadecimal digits of a number, 16 at most.
pub(crate) fn push_hex(text: &mut String, value: u64, digits: usize) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut all = [0; 16];
    for (pair, byte) in all.chunks_exact_mut(2).zip(value.to_be_bytes()) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 0xf)];
    }
    text.push_str(ascii(&all[all.len() - digits..]));
}

/// Reads a number that [`push_hex`] has written.
pub(crate) fn read_hex(text: &str) -> Option<u64> {
    let is_hex = text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u64::from_str_radix(text, 16).ok() } else { None }
}

/// Reads a decimal number in units of 10⁻⁸; an empty text, by which OKX leaves a number out, is zero.
pub(crate) fn read_decimal(name: &str, text: &str) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_decimal(text, DECIMALS).map_err(|why| format!("{name}: {why}"))
}

/// Reads a decimal number that is not below zero, like [`read_decimal`].
pub(crate) fn read_amount(name: &str, text: &str) -> Result<i64, String> {
    let units = read_decimal(name, text)?;
    if units < 0 { Err(format!("{name}: '{text}' is below zero")) } else { Ok(units) }
}

/// Reads a fee in units of 10⁻¹⁶; more decimals are cut off. None if the text is no decimal number.
pub(crate) fn read_fee(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let padding = repeat_n(b'0', FEE_DECIMALS.saturating_sub(fraction.len()));
    let mut units: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes().take(FEE_DECIMALS)).chain(padding) {
        units = units.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    Some(if digits.len() < text.len() { -units } else { units })
}

fn ascii(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickpath_market::decimal_text;

    use super::*;

    proptest! {
        #[test]
        fn decimals_are_read_with_their_sign_and_amounts_without(units in -i64::MAX..i64::MAX) {
            let text = decimal_text(units.into(), DECIMALS);
            prop_assert_eq!(read_decimal("px", &text), Ok(units));
            prop_assert_eq!(read_amount("sz", &text).ok(), Some(units).filter(|&units| units >= 0));
        }

        #[test]
        fn hexadecimal_numbers_are_read_again(value: u64) {
            let mut hex = String::new();
            push_hex(&mut hex, value, 16);
            prop_assert_eq!(&hex, &format!("{value:016x}"));
            prop_assert_eq!(read_hex(&hex), Some(value));
        }

        #[test]
        fn fees_keep_sixteen_decimals(units: i64) {
            prop_assert_eq!(read_fee(&decimal_text(units.into(), 16)), Some(units.into()));
            let longer = format!("{}7", decimal_text(i128::from(units) * 100 + 1, 18));
            prop_assert_eq!(read_fee(&longer).map(|fee| (fee - i128::from(units)).abs() <= 1), Some(true));
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused() {
        assert_eq!(["", "-", ".5", "1e5", "0x1"].map(read_fee), [None; 5]);
        assert_eq!(["+1", "G", "0xA", "A", "11112222333344445"].map(read_hex), [None; 5]);
        assert_eq!(read_decimal("sz", ""), Ok(0));
        assert!(read_decimal("sz", "1e5").is_err_and(|why| why.starts_with("sz: not a decimal number")));
    }
}
