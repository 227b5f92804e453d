//! Numbers as OKX writes them. Those of a request are written without an allocation.

use std::iter::repeat_n;

use tickpath_market::{DECIMALS, SCALE, parse_decimal};

/// Decimals of a fee in a report's detail.
const FEE_DECIMALS: usize = 16;

/// Appends a whole number.
pub(crate) fn push_unsigned(text: &mut String, mut value: u64) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.push_str(ascii(&digits[begin..]));
}

/// Appends units of 10⁻⁸ as a decimal number, without zeros at the end.
pub(crate) fn push_decimal(text: &mut String, units: i64) {
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
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    let end = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    text.push_str(ascii(&digits[..end]));
}

/// Appends the last `digits` hexadecimal digits of a number, 16 at most.
pub(crate) fn push_hex(text: &mut String, value: u64, digits: usize) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut all = [0; 16];
    for (place, digit) in all.iter_mut().rev().enumerate() {
        *digit = HEX[(value >> (4 * place) & 0xf) as usize];
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

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_vocabulary(units: i64) {
            let text = written(|text| push_decimal(text, units));
            prop_assert_eq!(&text, &decimal_text(units.into(), DECIMALS));
            if units > i64::MIN {
                prop_assert_eq!(read_decimal("sz", &text), Ok(units));
            }
        }

        #[test]
        fn whole_numbers_and_hexadecimal_numbers_are_read_again(value: u64) {
            prop_assert_eq!(written(|text| push_unsigned(text, value)), value.to_string());
            let hex = written(|text| push_hex(text, value, 16));
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
