//! Whole numbers against JSON's, decimals against those of the market data.

use proptest::prelude::*;
use tickpath_json_scan::JsonScan;
use tickpath_market::{MAX_DECIMALS, decimal_text, parse_decimal};

/// Text of characters that numbers have, so that many of them are almost numbers.
const ALMOST_A_NUMBER: &str = "[-+.eE0-9 ]{0,24}";

/// Returns the value of a whole message with this content in quotes.
fn decimal(content: &str, decimals: u8) -> Option<i64> {
    let message = format!("\"{content}\"");
    let mut scan = JsonScan::new(message.as_bytes());
    let value = scan.quoted_decimal(decimals);
    assert_eq!(scan.position(), if value.is_some() { message.len() } else { 0 }, "{content}");
    value
}

#[test]
fn decimals_of_exchanges_are_read() {
    for (content, decimals, value) in [
        ("0.00010000", 8, Some(10_000)),
        ("0.00010000", 4, Some(1)),
        ("61800", 2, Some(6_180_000)),
        ("61800.20000000", 1, Some(618_002)),
        ("-37.63", 2, Some(-3_763)),
        ("0", 0, Some(0)),
        ("-0.00", 1, Some(0)),
        ("7.000", 0, Some(7)),
        ("0.000000000000000001", 18, Some(1)),
        ("9223372036854775807", 0, Some(i64::MAX)),
        ("9.223372036854775807", 18, Some(i64::MAX)),
        // Numbers that do not fit.
        ("9223372036854775808", 0, None),
        ("18446744073709551616", 0, None),
        ("92233720369", 8, None),
        ("10", 18, None),
        ("0.00010001", 4, None),
        ("0.5", 0, None),
        // Other spellings.
        ("", 8, None),
        ("-", 8, None),
        (".", 8, None),
        ("1.", 8, None),
        (".5", 8, None),
        ("+1", 8, None),
        ("--1", 8, None),
        ("1e5", 8, None),
        ("1.2.3", 8, None),
        ("1.x", 8, None),
        (" 1", 8, None),
        ("1 ", 8, None),
        ("NaN", 8, None),
    ] {
        assert_eq!(decimal(content, decimals), value, "{content} at {decimals} decimals");
    }
}

#[test]
fn decimals_without_a_quote_are_refused() {
    for message in ["", "\"", "1.5", "1.5\"", "\"1.5", "\"1", "\"-", "\"1.", "\"1.5'"] {
        let mut scan = JsonScan::new(message.as_bytes());
        assert_eq!((scan.quoted_decimal(8), scan.position()), (None, 0), "{message}");
    }
}

#[test]
fn whole_numbers_are_read_in_the_spelling_of_json() {
    for (message, unsigned, signed) in [
        ("0", Some(0), Some(0)),
        ("123", Some(123), Some(123)),
        ("-123", None, Some(-123)),
        ("9223372036854775808", Some(9_223_372_036_854_775_808), None),
        ("-9223372036854775808", None, Some(i64::MIN)),
        ("-9223372036854775809", None, None),
        ("18446744073709551615", Some(u64::MAX), None),
        ("18446744073709551616", None, None),
        ("99999999999999999999999", None, None),
        ("00000000000000000000001", None, None),
        ("01", None, None),
        ("-01", None, None),
        ("-0", None, None),
        ("-", None, None),
        ("+1", None, None),
        ("", None, None),
        ("x", None, None),
    ] {
        assert_eq!(JsonScan::new(message.as_bytes()).unsigned(), unsigned, "{message}");
        assert_eq!(JsonScan::new(message.as_bytes()).signed(), signed, "{message}");
        let quoted = format!("\"{message}\"");
        assert_eq!(JsonScan::new(quoted.as_bytes()).quoted_unsigned(), unsigned, "{quoted}");
    }
}

proptest! {
    #[test]
    fn every_decimal_is_read_with_any_number_of_further_zeros(
        units in -i64::MAX..=i64::MAX,
        shift in 0_u32..63,
        decimals in 0..=MAX_DECIMALS,
        zeros in 0_usize..12,
    ) {
        // Small numbers are as likely as large ones.
        let units = units >> shift;
        let plain = decimal_text(units.into(), decimals);
        let point = if plain.contains('.') || zeros == 0 { "" } else { "." };
        let content = format!("{plain}{point}{}", "0".repeat(zeros));
        prop_assert_eq!(decimal(&content, decimals), Some(units), "{} at {} decimals", content, decimals);
    }

    #[test]
    fn an_accepted_decimal_is_the_one_of_the_complete_parser(content in ALMOST_A_NUMBER, decimals in any::<u8>()) {
        if let Some(value) = decimal(&content, decimals) {
            prop_assert_eq!(parse_decimal(&content, decimals), Ok(value), "{} at {} decimals", content, decimals);
        }
    }

    #[test]
    fn every_whole_number_is_read(unsigned in any::<u64>(), signed in any::<i64>()) {
        let message = format!("{unsigned},{signed},\"{unsigned}\"");
        let mut scan = JsonScan::new(message.as_bytes());
        prop_assert_eq!(scan.unsigned(), Some(unsigned));
        prop_assert_eq!(scan.literal(b","), Some(()));
        prop_assert_eq!(scan.signed(), Some(signed));
        prop_assert_eq!(scan.literal(b","), Some(()));
        prop_assert_eq!(scan.quoted_unsigned(), Some(unsigned));
        prop_assert!(scan.at_end());
    }

    #[test]
    fn an_accepted_whole_number_is_the_one_of_the_complete_parser(message in ALMOST_A_NUMBER) {
        let mut scan = JsonScan::new(message.as_bytes());
        if let Some(value) = scan.unsigned() {
            prop_assert_eq!(serde_json::from_str::<u64>(&message[..scan.position()]).ok(), Some(value));
        }
        let mut scan = JsonScan::new(message.as_bytes());
        if let Some(value) = scan.signed() {
            prop_assert_eq!(serde_json::from_str::<i64>(&message[..scan.position()]).ok(), Some(value));
        }
    }
}
