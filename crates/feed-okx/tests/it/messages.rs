//! Text frames as OKX documents them, each with its messages.

use tickpath_feed::{FeedInstrument, Frame, FrameError};
use tickpath_feed_okx::{OkxInstrumentError, OkxParser};
use tickpath_market::{Price, Quantity, Side, SymbolId, Trade};

use crate::frames::{
    OwnedBook, OwnedMessage, QUOTE, SNAPSHOT, TRADE, UPDATE, UPGRADE_NOTICE, ask, bid, instruments, messages_of,
    parser, read, swap_quote,
};

/// Quantity of one whole unit of the first instrument.
const ONE: i64 = 100_000_000;

/// Checks a frame in its own spelling, and in the one of a JSON library: sorted keys, white space.
fn check(frame: &str, expected: &[OwnedMessage]) {
    let mut parser = parser();
    assert_eq!(messages_of(&mut parser, Frame::Text(frame.as_bytes())), expected, "{frame}");
    assert_eq!(parser.unusual_frames(), 0, "the spelling of OKX: {frame}");
    let value: serde_json::Value = serde_json::from_str(frame).expect("the frame is JSON");
    let respelled = serde_json::to_string_pretty(&value).expect("a value has a text");
    assert_eq!(messages_of(&mut parser, Frame::Text(respelled.as_bytes())), expected, "{respelled}");
    assert_eq!(parser.unusual_frames(), 1, "another spelling: {respelled}");
}

fn snapshot() -> OwnedBook {
    OwnedBook {
        symbol: SymbolId(1),
        is_snapshot: true,
        sequence: 123_456,
        event_ns: 1_597_026_383_085_000_000,
        levels: vec![ask(847_698, 415 * ONE), ask(847_700, 7 * ONE), bid(847_697, 256 * ONE), bid(847_555, 101 * ONE)],
        ..OwnedBook::default()
    }
}

fn update() -> OwnedBook {
    OwnedBook {
        symbol: SymbolId(1),
        previous: 123_456,
        sequence: 123_457,
        event_ns: 1_597_026_383_185_000_000,
        levels: vec![ask(847_700, 0)],
        ..OwnedBook::default()
    }
}

fn trade() -> Trade {
    Trade {
        price: Price(4_221_990),
        quantity: Quantity(12_060_306),
        trade_id: 130_639_474,
        event_ns: 1_630_048_897_897_000_000,
        symbol: SymbolId(1),
        aggressor: Side::Buy.code(),
        reserved: [0; 3],
    }
}

#[test]
fn documented_frames_have_these_messages() {
    let quote = swap_quote([11_105, 57_745], [11_106, 55_154], 1_670_324_386_802_000_000);
    check(QUOTE, &[OwnedMessage::Quote(363_996_337, quote)]);
    check(TRADE, &[OwnedMessage::Trade(trade())]);
    check(SNAPSHOT, &[OwnedMessage::Book(snapshot())]);
    check(UPDATE, &[OwnedMessage::Book(update())]);
}

#[test]
fn both_orders_of_the_sequence_numbers_are_read() {
    let servers = SNAPSHOT.replace(r#""prevSeqId":-1,"seqId":123456"#, r#""seqId":123456,"prevSeqId":-1"#);
    let without = SNAPSHOT.replace(r#""prevSeqId":-1,"#, "");
    let pages = UPDATE.replace(r#""seqId":123457,"prevSeqId":123456"#, r#""prevSeqId":123456,"seqId":123457"#);
    check(&servers, &[OwnedMessage::Book(snapshot())]);
    check(&without, &[OwnedMessage::Book(snapshot())]);
    check(&pages, &[OwnedMessage::Book(update())]);
}

#[test]
fn books_of_both_channels_are_read() {
    check(&SNAPSHOT.replace("books", "books-l2-tbt"), &[OwnedMessage::Book(snapshot())]);
}

#[test]
fn a_frame_may_hold_several_trades() {
    let second = r#",{"instId":"BTC-USDT","tradeId":"130639475","px":"42220","sz":"1","side":"sell","ts":"1630048897898","count":"1","source":"1","seqId":1234}]}"#;
    let frame = TRADE.replace("]}", second);
    let sold = Trade {
        price: Price(4_222_000),
        quantity: Quantity(ONE),
        trade_id: 130_639_475,
        event_ns: 1_630_048_897_898_000_000,
        aggressor: Side::Sell.code(),
        ..trade()
    };
    check(&frame, &[OwnedMessage::Trade(trade()), OwnedMessage::Trade(sold)]);
}

#[test]
fn a_trade_of_an_older_recording_is_read() {
    check(&TRADE.replace(r#","source":"0","seqId":1234"#, ""), &[OwnedMessage::Trade(trade())]);
}

#[test]
fn a_side_without_orders_has_price_and_quantity_zero() {
    let event_ns = 1_670_324_386_802_000_000;
    let no_bids = QUOTE.replace(r#"[["111.05","57745","0","2"]]"#, "[]");
    let quote = swap_quote([0, 0], [11_106, 55_154], event_ns);
    check(&no_bids, &[OwnedMessage::Quote(363_996_337, quote)]);
    let nothing = no_bids.replace(r#"[["111.06","55154","0","2"]]"#, "[]");
    check(&nothing, &[OwnedMessage::Quote(363_996_337, swap_quote([0, 0], [0, 0], event_ns))]);
}

#[test]
fn prices_may_be_negative_or_zero() {
    let frame = QUOTE.replace("111.05", "-0.5").replace("111.06", "0");
    let quote = swap_quote([-50, 57_745], [0, 55_154], 1_670_324_386_802_000_000);
    check(&frame, &[OwnedMessage::Quote(363_996_337, quote)]);
}

#[test]
fn signs_of_life_and_resets_of_a_book_are_passed_on() {
    let empty = UPDATE.replace(r#"[["8477","0","0","0"]]"#, "[]");
    let alive = empty.replace(r#""seqId":123457"#, r#""seqId":123456"#);
    check(&alive, &[OwnedMessage::Book(OwnedBook { sequence: 123_456, levels: Vec::new(), ..update() })]);
    let reset = empty.replace(r#""seqId":123457"#, r#""seqId":3"#);
    check(&reset, &[OwnedMessage::Book(OwnedBook { sequence: 3, levels: Vec::new(), ..update() })]);
}

#[test]
fn events_are_no_messages_except_for_maintenance() {
    for frame in [
        "pong",
        r#"{"id":"1512","event":"subscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":"a4d3ae55"}"#,
        r#"{"event":"unsubscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":"d0b44253"}"#,
        r#"{"event":"subscribe","arg":{"channel":"trades","instIdCode":211874},"connId":"accb8e21"}"#,
        r#"{"event":"channel-conn-count","channel":"orders","connCount":"2","connId":"abcd1234"}"#,
    ] {
        assert!(messages_of(&mut parser(), Frame::Text(frame.as_bytes())).is_empty(), "{frame}");
    }
    let messages = messages_of(&mut parser(), Frame::Text(UPGRADE_NOTICE.as_bytes()));
    assert_eq!(messages, [OwnedMessage::Maintenance]);
}

#[test]
fn errors_of_okx_keep_its_code_and_text() {
    for (frame, sentence) in [
        (
            r#"{"id":"1512","event":"error","code":"60012","msg":"Invalid request: {\"op\": \"subscribe\"}","connId":"a"}"#,
            r#"the exchange reports an error: 60012: Invalid request: {"op": "subscribe"}"#,
        ),
        (
            r#"{"event":"channel-conn-count-error","channel":"orders","connCount":"30","connId":"a4d3ae55"}"#,
            "the exchange reports an error: the channel 'orders' has 30 connections, which is the limit; close one",
        ),
        (
            r#"{"event":"notice","code":"64009","msg":"line\nend"}"#,
            "the exchange reports an error: notice 64009: line?end",
        ),
    ] {
        let (messages, result) = read(&mut parser(), Frame::Text(frame.as_bytes()));
        assert_eq!((messages, result.map_err(|e| e.to_string())), (Vec::new(), Err(sentence.to_owned())));
    }
}

#[test]
fn numbers_that_do_not_fit_name_the_instrument_and_the_field() {
    for (frame, sentence) in [
        (
            TRADE.replace("42219.9", "42219.999"),
            "BTC-USDT: px '42219.999' does not fit 2 decimals in 64 bits; fetch the instruments again",
        ),
        (
            TRADE.replace("0.12060306", "92233720369"),
            "BTC-USDT: sz '92233720369' does not fit 8 decimals in 64 bits; fetch the instruments again",
        ),
        (
            QUOTE.replace("55154", "0.5"),
            "BCH-USDT-SWAP: quantity '0.5' does not fit 0 decimals in 64 bits; fetch the instruments again",
        ),
        (
            SNAPSHOT.replace("8475.55", "8475.555"),
            "BTC-USDT: price '8475.555' does not fit 2 decimals in 64 bits; fetch the instruments again",
        ),
    ] {
        let (messages, result) = read(&mut parser(), Frame::Text(frame.as_bytes()));
        assert!(matches!(result, Err(FrameError::Number { .. })), "{frame}");
        assert_eq!((messages, result.map_err(|e| e.to_string())), (Vec::new(), Err(sentence.to_owned())));
    }
}

#[test]
fn zeros_behind_the_last_decimal_fit() {
    let frame = TRADE.replace("42219.9", "42219.9000000000");
    assert_eq!(messages_of(&mut parser(), Frame::Text(frame.as_bytes())), [OwnedMessage::Trade(trade())]);
}

#[test]
fn instruments_that_no_message_can_name_are_refused() {
    let with = |change: fn(&mut FeedInstrument)| {
        let mut list = instruments();
        change(&mut list[1]);
        OkxParser::new(&list).err()
    };
    let name = || "BCH-USDT-SWAP".to_owned();
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|one| one.name.clear()), Some(OkxInstrumentError::Name(String::new())));
    assert_eq!(with(|one| one.name = "A\"B".to_owned()), Some(OkxInstrumentError::Name("A\"B".to_owned())));
    assert_eq!(
        with(|one| one.name = "BTC-USDT".to_owned()),
        Some(OkxInstrumentError::Duplicate("BTC-USDT".to_owned()))
    );
    assert_eq!(with(|one| one.code = 3), Some(OkxInstrumentError::DuplicateCode { name: name(), code: 3 }));
    assert_eq!(
        with(|one| one.quantity_decimals = 19),
        Some(OkxInstrumentError::Decimals { name: name(), decimals: 19 })
    );
}
