//! Documented messages of both markets, with their values.

use tickpath_feed::{Frame, FrameError};
use tickpath_feed_binance::{BinanceParser, TimeUnit};
use tickpath_market::Side::{Buy, Sell};

use crate::frames::{BNBBTC, BNBUSDT, BTCUSDT, MESSAGES, SNAPSHOT, Seen, instrument, parse, parser};

/// Checks that a message is read as these events: bare and in an envelope, in place and with white space before it.
fn check(message: &str, expected: &[Seen]) {
    let mut parser = parser(TimeUnit::Millisecond);
    for text in [message.to_owned(), format!(r#"{{"stream":"any@stream","data":{message}}}"#)] {
        for text in [text.clone(), format!(" {text}")] {
            let read = parse(&mut parser, Frame::Text(text.as_bytes()));
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
    }
}

/// Checks that a frame is refused with these words.
fn check_error(frame: &str, words: &str) {
    let error = parse(&mut parser(TimeUnit::Millisecond), Frame::Text(frame.as_bytes())).expect_err(frame);
    assert!(error.to_string().contains(words), "{frame}: {error}");
}

#[test]
fn documented_messages_have_their_values() {
    let second = 1_000_000_000;
    let expected = [
        Seen::quote(BNBUSDT, 400_900_217, [2_535_190_000, 3_121_000_000, 2_536_520_000, 4_066_000_000], 0),
        Seen::trade(BNBBTC, 12_345, [100_000, 10_000_000_000], 1_672_515_782 * second + 136_000_000, Sell),
        Seen::update(
            BNBBTC,
            156,
            160,
            1_672_515_782 * second + 136_000_000,
            &[(Buy, 240_000, 1_000_000_000), (Sell, 260_000, 10_000_000_000)],
        ),
        Seen::quote(BTCUSDT, 5_123_107_839_020, [618_002, 2_507, 618_003, 2_510], 1_723_161_256 * second + 313_000_000),
        Seen::quote(BTCUSDT, 10, [595_464, 6_582, 595_465, 10_697], 1_782_801_379 * second + 879_000_000),
        Seen::trade(BTCUSDT, 5_266_583_935, [618_003, 6], 1_723_161_256 * second + 321_000_000, Buy),
        Seen::trade(BTCUSDT, 7_947_131_392, [631_058, 30], 1_785_671_500 * second + 406_000_000, Sell),
        Seen::trade(BTCUSDT, 5_933_014, [1, 100_000], 123_456 * second + 785_000_000, Sell),
        Seen::trade(BTCUSDT, 3_404_749_954, [649_909, 2], 1_786_171_884 * second + 471_000_000, Sell),
        Seen::update(BTCUSDT, 149, 160, 123_456 * second + 788_000_000, &[(Buy, 2, 10_000), (Buy, 1, 0)]),
        Seen::update(BTCUSDT, 9, 14, 1_786_742_884 * second + 158_000_000, &[(Sell, 3, 1_500)]),
    ];
    assert_eq!(MESSAGES.len(), expected.len());
    for (message, expected) in MESSAGES.iter().zip(expected) {
        check(message, &[expected]);
    }
}

#[test]
fn hot_messages_are_read_in_place() {
    let mut parser = parser(TimeUnit::Millisecond);
    for message in MESSAGES {
        let combined = format!(r#"{{"stream":"btcusdt@bookTicker","data":{message}}}"#);
        for text in [*message, &combined] {
            parse(&mut parser, Frame::Text(text.as_bytes())).expect(text);
            assert_eq!(parser.complete_reads(), 0, "{text}");
        }
    }
    parse(&mut parser, Frame::Text(SNAPSHOT.as_bytes())).expect(SNAPSHOT);
    assert_eq!(parser.complete_reads(), 0, "{SNAPSHOT}");
}

#[test]
fn other_orders_escapes_and_unknown_keys_are_read_completely() {
    let quote = Seen::quote(BTCUSDT, 7, [10, 1_000, 20, 2_000], 5_000_000);
    for message in [
        r#"{"A":"2","a":"2","B":"1","b":"1","s":"BTCUSDT","u":7,"e":"bookTicker","T":5,"E":6}"#,
        r#"{"e":"bookTicker","u":7,"s":"BTC\u0055SDT","b":"1","B":"1","a":"2","A":"2","T":5,"E":6}"#,
        r#"{"e":"bookTicker","u":7,"s":"BTCUSDT","b":"1","B":"1","a":"2","A":"2","T":5,"E":6,"new":{"x":[1,2]}}"#,
        r#"{ "e" : "bookTicker", "u" : 7, "s" : "BTCUSDT", "b":"1", "B":"1", "a":"2", "A":"2", "E" : 5 }"#,
    ] {
        check(message, std::slice::from_ref(&quote));
    }
}

#[test]
fn snapshots_belong_to_the_instrument_of_their_stream() {
    let levels = [(Buy, 40, 431_000), (Sell, 42, 12_000)];
    let expected = [Seen::snapshot(BTCUSDT, 1_027_024, 1_589_436_922_959_000_000, &levels)];
    let mut parser = parser(TimeUnit::Millisecond);
    for text in [SNAPSHOT.to_owned(), format!(" {SNAPSHOT}")] {
        assert_eq!(parse(&mut parser, Frame::Text(text.as_bytes())).as_deref(), Ok(&expected[..]), "{text}");
    }
    let spot = r#"{"stream":"bnbbtc@depthSnapshot","data":{"lastUpdateId":9,"bids":[["0.0024","10"]],"asks":[]}}"#;
    let expected = [Seen::snapshot(BNBBTC, 9, 0, &[(Buy, 240_000, 1_000_000_000)])];
    assert_eq!(parse(&mut parser, Frame::Text(spot.as_bytes())).as_deref(), Ok(&expected[..]));
    check_error(r#"{"stream":"ethbtc@depthSnapshot","data":{"lastUpdateId":9,"bids":[],"asks":[]}}"#, "'ethbtc@depth");
}

#[test]
fn a_bare_snapshot_needs_a_single_instrument() {
    let bare = r#"{"lastUpdateId":5,"E":1,"T":2,"bids":[["61800.20","2.909"]],"asks":[["61800.30","1"]]}"#;
    let mut lone = BinanceParser::new(&[instrument("BTCUSDT", BTCUSDT, 1, 3)], TimeUnit::Millisecond);
    let expected = [Seen::snapshot(BTCUSDT, 5, 2_000_000, &[(Buy, 618_002, 2_909), (Sell, 618_003, 1_000)])];
    for text in [bare.to_owned(), format!(" {bare}")] {
        assert_eq!(parse(&mut lone, Frame::Text(text.as_bytes())).as_deref(), Ok(&expected[..]), "{text}");
    }
    check_error(bare, "without a symbol");
}

#[test]
fn microseconds_are_read_if_the_streams_have_them() {
    let text = r#"{"e":"trade","E":1672515782136124,"s":"BNBBTC","t":1,"p":"1","q":"1","T":1672515782136123,"m":false,"M":true}"#;
    let expected = [Seen::trade(BNBBTC, 1, [100_000_000; 2], 1_672_515_782_136_123_000, Buy)];
    let mut parser = parser(TimeUnit::Microsecond);
    for text in [text.to_owned(), format!(" {text}")] {
        assert_eq!(parse(&mut parser, Frame::Text(text.as_bytes())).as_deref(), Ok(&expected[..]), "{text}");
    }
}

#[test]
fn the_end_of_a_server_is_maintenance() {
    check(r#"{"e":"serverShutdown","E":1770123456789}"#, &[Seen::Maintenance]);
    let combined = br#"{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1770123456789}}"#;
    assert_eq!(parse(&mut parser(TimeUnit::Millisecond), Frame::Text(combined)), Ok(vec![Seen::Maintenance]));
}

#[test]
fn messages_without_market_data_give_no_event() {
    check(r#"{"result":null,"id":1}"#, &[]);
    // The exchange fills numbers that no trade has used.
    check(r#"{"e":"trade","E":9,"T":9,"s":"BTCUSDT","t":6587981240,"p":"0","q":"0","X":"NA","m":true,"st":1}"#, &[]);
}

#[test]
fn errors_of_the_exchange_are_passed_on() {
    for (frame, words) in [
        (r#"{"error":{"code":2,"msg":"Invalid request: unknown variant"},"id":1}"#, "2: Invalid request: unknown"),
        (r#"{"code":3,"msg":"Invalid JSON"}"#, "3: Invalid JSON"),
        (
            r#"{"stream":"btcusdt@depthSnapshot","data":{"code":-1121,"msg":"Invalid symbol."}}"#,
            "-1121: Invalid symbol.",
        ),
    ] {
        let error = parse(&mut parser(TimeUnit::Millisecond), Frame::Text(frame.as_bytes())).expect_err(frame);
        assert!(matches!(&error, FrameError::Exchange(text) if text.contains(words)), "{frame}: {error}");
    }
}

#[test]
fn bad_frames_are_refused_with_the_reason() {
    for (frame, words) in [
        ("", "a frame of 0 bytes cannot be read"),
        ("pong", "column"),
        ("[1]", "no JSON object"),
        ("{}", "no message of the market data streams"),
        (r#"{"e":"kline","s":"BTCUSDT"}"#, "event 'kline' is not known"),
        (r#"{"e":7}"#, "'e' is missing, or no text"),
        (r#"{"stream":"btcusdt@trade","data":7}"#, "no JSON object"),
        (r#"{"u":1,"s":"ETHUSDT","b":"1","B":"1","a":"1","A":"1"}"#, "'ETHUSDT', which is not subscribed"),
        (r#"{"u":1,"s":"BTCUSDT","b":"61800.25","B":"1","a":"1","A":"1"}"#, "price '61800.25' does not fit 1 decimals"),
        (r#"{"u":1,"s":"BTCUSDT","b":"1","B":"-1","a":"1","A":"1"}"#, "quantity '-1' does not fit 3 decimals"),
        (r#"{"u":1,"s":"BTCUSDT","b":"1e3","B":"1","a":"1","A":"1"}"#, "price '1e3'"),
        (r#"{"u":1,"s":"BTCUSDT","b":"922337203685477580.8","B":"1","a":"1","A":"1"}"#, "in 64 bits"),
        (r#"{"u":1,"s":"BTCUSDT","b":1,"B":"1","a":"1","A":"1"}"#, "'b' is missing, or no text"),
        (r#"{"u":-1,"s":"BTCUSDT","b":"1","B":"1","a":"1","A":"1"}"#, "'u' is missing, or no number"),
        (r#"{"e":"trade","s":"BTCUSDT","t":1,"p":"1","q":"1","T":1}"#, "'m' is missing"),
        (r#"{"e":"trade","s":"BTCUSDT","t":1,"p":"1","q":"1","T":18446744073709551615,"m":true}"#, "time does not fit"),
        (r#"{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":1,"u":2,"b":[["1"]],"a":[]}"#, "'b' is no list"),
        (r#"{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":1,"u":2,"b":[],"a":[["1","2","3"]]}"#, "'a' is no list"),
        (r#"{"lastUpdateId":1,"bids":[]}"#, "without a symbol"),
    ] {
        check_error(frame, words);
    }
}
