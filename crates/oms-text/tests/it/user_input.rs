//! Values and triggers that a user types, read and written back.

use tickpath_market::{OrderId, SelfTradeMode, SymbolId, TradeMode, Trigger};
use tickpath_oms_text::order_id;
use tickpath_oms_text::parse::{self, ParseError};
use tickpath_oms_text::trigger::{self, TriggerError};

/// Reads the number of an instrument that is named by its number.
fn symbol(name: &str) -> Result<SymbolId, TriggerError> {
    Ok(SymbolId(name.parse().expect("the tests name instruments by numbers")))
}

fn read(text: &str) -> Result<Trigger, TriggerError> {
    trigger::read(text, symbol)
}

#[test]
fn a_trigger_formats_to_its_parsed_text() {
    for text in ["1 last >= 65000", "1 bid <= 0.5 and 2 ask >= 3000", "7 last <= 1.00000001 or 7 bid >= 2"] {
        let trigger = read(text).expect("it is a trigger");
        assert_eq!(trigger::text(&trigger, |symbol| symbol.0.to_string()), text);
    }
}

#[test]
fn an_invalid_trigger_is_refused_with_its_wrong_words() {
    let words = |text: &str| TriggerError::Words(text.to_owned());
    for (text, wrong) in [
        ("", words("")),
        ("1 last >=", words("1 last >=")),
        ("1 last >= 1 and 2 bid >=", words("1 last >= 1 and 2 bid >=")),
        ("1 last >= 1 and 2 bid >= 1 2", words("1 last >= 1 and 2 bid >= 1 2")),
        ("1 last >= 1 xor 2 bid >= 1", TriggerError::Join("xor".to_owned())),
        ("1 mid >= 1", TriggerError::PriceType("mid".to_owned())),
        ("1 last > 1", TriggerError::Direction(">".to_owned())),
        ("1 last >= 1 or 2 bid >= much", TriggerError::Price("much".to_owned())),
    ] {
        assert_eq!(read(text), Err(wrong), "{text}");
    }
}

#[test]
fn a_time_parses_only_if_it_exists() {
    for (text, utc_ns) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000_000),
        ("2026-11-22T18:03:46Z", 1_795_370_626_000_000_000),
        ("2026-11-22T18:03:46.5Z", 1_795_370_626_500_000_000),
        ("2026-11-22T18:03:46.000000001Z", 1_795_370_626_000_000_001),
    ] {
        assert_eq!(parse::utc_time(text), Ok(utc_ns), "{text}");
    }
    for text in [
        "",
        "2026-11-22",
        "2026-11-22T18:03:46",
        "2026-11-22T18:03:46+08:00",
        "2026-02-29T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-22T24:00:00Z",
        "2026-11-22T18:03:60Z",
        "2026-11-22T18:03:46.Z",
        "2026-11-22T18:03:46.0000000001Z",
        "1969-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2026-11-22 18:03:46Z",
    ] {
        assert_eq!(parse::utc_time(text), Err(ParseError::UtcTime(text.to_owned())), "{text}");
    }
}

#[test]
fn an_order_id_parses_only_in_its_own_form() {
    let id = OrderId::new(3_474_042, 12);
    assert_eq!((order_id(id), parse::order_id("3474042.12")), ("3474042.12".to_owned(), Ok(id)));
    // Leading zeros and signs make another text, and numbers that do not fit would name another order.
    for text in ["", "12", "0.0", "03474042.12", "+3474042.12", "3474042.12.1", "3474042.1099511627788", "16777216.12"]
    {
        assert_eq!(parse::order_id(text), Err(ParseError::OrderId(text.to_owned())), "{text}");
    }
}

#[test]
fn every_mode_but_the_default_has_a_word() {
    let words = ["cancel-maker", "cancel-taker", "cancel-both"];
    let modes: Vec<_> = words.iter().map(|word| parse::self_trade_mode(word).expect("it is a word")).collect();
    assert_eq!(modes, SelfTradeMode::ALL[1..]);
    let modes: Vec<_> =
        ["cash", "cross", "isolated"].iter().map(|word| parse::trade_mode(word).expect("it is a word")).collect();
    assert_eq!(modes, TradeMode::ALL[1..]);
    for text in ["", "default", "cancel_maker", "Cash", "cash "] {
        assert_eq!(parse::self_trade_mode(text), Err(ParseError::SelfTradeMode), "{text}");
        assert_eq!(parse::trade_mode(text), Err(ParseError::TradeMode), "{text}");
    }
}
