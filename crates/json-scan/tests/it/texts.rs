//! Texts and literals.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_json_scan::JsonScan;

/// Bytes of which many are almost a message.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(proptest::sample::select(b"\"\\-.0123456789,:{}ab \n\xc3\xa9".to_vec()), 0..40),
        r#""[a-z0-9é\-]{0,20}"[,}]?"#.prop_map(String::into_bytes),
    ]
}

/// Input, the text that is read, and the position behind it.
type TextCase = (&'static [u8], Option<&'static [u8]>, usize);

#[test]
fn a_text_ends_at_its_quote() {
    let cases: &[TextCase] = &[
        (b"\"BTC-USDT\",1", Some(b"BTC-USDT"), 10),
        (b"\"\"", Some(b""), 2),
        ("\"幣安\"".as_bytes(), Some("幣安".as_bytes()), 8),
        (b"\"a\\\"b\"", None, 0),
        (b"\"a\\u0041\"", None, 0),
        (b"\"a\nb\"", None, 0),
        (b"\"\xff\"", None, 0),
        (b"\"BTC", None, 0),
        (b"\"", None, 0),
        (b"BTC\"", None, 0),
        (b"", None, 0),
    ];
    for &(message, text, position) in cases {
        let mut scan = JsonScan::new(message);
        assert_eq!((scan.text(), scan.position()), (text, position), "{}", message.escape_ascii());
    }
}

#[test]
fn a_literal_is_passed_over_whole_or_not_at_all() {
    let mut scan = JsonScan::new(b"{\"u\":7}");
    assert_eq!((scan.literal(b"{\"U\":"), scan.position()), (None, 0));
    assert_eq!((scan.literal(b"{\"u\":7} "), scan.position()), (None, 0));
    assert_eq!((scan.literal(b"{\"u\":"), scan.position()), (Some(()), 5));
    assert_eq!((scan.peek(), scan.unsigned(), scan.at_end()), (Some(b'7'), Some(7), false));
    assert_eq!((scan.literal(b"}"), scan.at_end(), scan.peek()), (Some(()), true, None));
    assert_eq!((scan.literal(b""), scan.literal(b"}"), scan.position()), (Some(()), None, 7));
}

proptest! {
    #[test]
    fn an_accepted_text_is_the_one_of_the_complete_parser(message in bytes()) {
        let mut scan = JsonScan::new(&message);
        if let Some(text) = scan.text() {
            let complete: Result<String, _> = serde_json::from_slice(&message[..scan.position()]);
            prop_assert_eq!(complete.ok().map(String::into_bytes), Some(text.to_vec()));
        }
    }

    #[test]
    fn every_text_without_escapes_is_read(text in "[^\"\\\\\\x00-\\x1f]{0,40}") {
        let message = format!("\"{text}\"");
        let mut scan = JsonScan::new(message.as_bytes());
        prop_assert_eq!(scan.text(), Some(text.as_bytes()));
        prop_assert!(scan.at_end());
    }

    #[test]
    fn a_refused_value_moves_nothing(message in bytes(), decimals in any::<u8>()) {
        let mut scan = JsonScan::new(&message);
        if scan.text().is_none() {
            prop_assert_eq!(scan.position(), 0);
        }
        for value in [JsonScan::unsigned, JsonScan::quoted_unsigned] {
            let mut scan = JsonScan::new(&message);
            prop_assert_eq!(value(&mut scan).is_some(), scan.position() > 0);
        }
        let mut scan = JsonScan::new(&message);
        prop_assert_eq!(scan.signed().is_some(), scan.position() > 0);
        let mut scan = JsonScan::new(&message);
        prop_assert_eq!(scan.quoted_decimal(decimals).is_some(), scan.position() > 0);
    }
}
