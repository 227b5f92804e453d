//! Messages and reports as lines.

use serde_json::{Value as Json, json};
use tickpath_market::{
    BookLevel, ClientOrderId, ExecId, ExecType, ExecutionReport, FeedCondition, FeedStatus, Kind, Liquidity, OrdStatus,
    OrderDenied, OrderId, Quantity, ReportDetail, Side, SymbolId, Trade,
};
use tickpath_oms_core::Denial;
use tickpath_oms_text::{
    EntryContent, LogEntry, MessageFieldValue, ReconciliationPair, ReportOrDenial, SentReport, gap_json, read,
};
use zerocopy::IntoBytes;

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("no JSON ({e}): {text}"))
}

fn entry(content: EntryContent<'_>) -> LogEntry<'_> {
    LogEntry { sequence: 17, stamp: 5, utc_ns: 1_000_000_001, kind: 200, content }
}

#[test]
fn a_known_message_has_named_fields_at_its_exact_length() {
    let trade = Trade { price: "61800.2".parse().expect("a price"), aggressor: Side::Sell.code(), ..Trade::default() };
    let (name, fields) = read(Kind::Trade.code(), trade.as_bytes()).expect("it is a trade");
    assert_eq!(name, "trade");
    assert!(fields.contains(&("price", MessageFieldValue::Text("61800.2".to_owned()))), "{fields:?}");
    assert!(fields.contains(&("aggressor", MessageFieldValue::Text("sell".to_owned()))), "{fields:?}");
    let object = parsed(&entry(EntryContent::Known(name, fields)).json());
    assert_eq!((&object["name"], &object["fields"]["price"]), (&json!("trade"), &json!("61800.2")));
    assert_eq!(read(Kind::Trade.code(), &trade.as_bytes()[1..]), None);
}

#[test]
fn book_levels_and_feed_events_have_their_codes_as_words() {
    let level = BookLevel {
        price: "61800.2".parse().expect("a price"),
        symbol: SymbolId(3),
        side: Side::Sell.code(),
        flags: BookLevel::LAST,
        ..BookLevel::default()
    };
    let expected = "book_level symbol=3 side=sell price=61800.2 quantity=0 snapshot=0 last=1 sequence=0 event_ns=0 \
                    wire_age_ns=0";
    check_line(Kind::BookLevel, level.as_bytes(), expected);
    let status = FeedStatus { symbol: SymbolId(3), expected: 7, found: 9, ..FeedStatus::default() };
    let gap = FeedStatus { condition: FeedCondition::Gap.code(), ..status };
    let expected = "feed_status condition=gap symbol=3 connection=0 value=0 expected=7 found=9 event_ns=0";
    check_line(Kind::FeedStatus, gap.as_bytes(), expected);
    let offset = FeedStatus {
        condition: FeedCondition::ClockOffset.code(),
        symbol: FeedStatus::ALL_SYMBOLS,
        connection: 1,
        value: -5,
        ..FeedStatus::default()
    };
    let expected = "feed_status condition=clock_offset symbol=all connection=1 value=-5 expected=0 found=0 event_ns=0";
    check_line(Kind::FeedStatus, offset.as_bytes(), expected);
}

/// Checks the end of a message's line, and that its JSON has the same fields.
fn check_line(kind: Kind, payload: &[u8], expected: &str) {
    let (name, fields) = read(kind.code(), payload).expect("it is a message of its kind");
    let entry = entry(EntryContent::Known(name, fields));
    assert!(entry.text().ends_with(&format!("Z {expected}")), "{}", entry.text());
    let object = parsed(&entry.json());
    let words = expected.split(' ').skip(1).filter_map(|word| word.split_once('='));
    for (field, value) in words {
        let found = &object["fields"][field];
        assert_eq!(found.as_str().map_or_else(|| found.to_string(), str::to_owned), value, "{field}");
    }
    assert_eq!(read(kind.code(), &payload[1..]), None);
}

#[test]
fn an_unknown_payload_is_whole_in_json_and_truncated_in_text() {
    let hello = entry(EntryContent::Unknown(b"hello"));
    assert_eq!(hello.text(), "17 1970-01-01T00:00:01.000000001Z kind_200 68656c6c6f |hello| 5 bytes");
    let object = parsed(&hello.json());
    assert_eq!((&object["payload_hex"], &object["payload_text"]), (&json!("68656c6c6f"), &json!("hello")));
    let long = [7_u8; 65];
    let long = entry(EntryContent::Unknown(&long));
    assert!(long.text().ends_with("…| 65 bytes"), "{}", long.text());
    let object = parsed(&long.json());
    assert_eq!((&object["payload_hex"], object.get("payload_text")), (&json!("07".repeat(65)), None));
}

#[test]
fn missing_messages_are_counted_or_null() {
    let gap = entry(EntryContent::Gap { missed: Some(12), sentence: "12 messages were missed".to_owned() });
    assert!(gap.text().ends_with("Z -- 12 messages were missed"), "{}", gap.text());
    assert_eq!(parsed(&gap.json())["fields"], json!({"missed": 12}));
    assert_eq!(parsed(&gap_json(None)), json!({"name": "gap", "fields": {"missed": null}}));
}

#[test]
fn a_sent_report_names_its_instrument_in_both_forms() {
    let report = ExecutionReport {
        order_id: OrderId::new(5, 7),
        client_order_id: ClientOrderId(9),
        leaves_quantity: Quantity::from_whole(1),
        symbol: SymbolId(3),
        exec_type: ExecType::New.code(),
        status: OrdStatus::New.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    };
    let sent = sent(ReportOrDenial::Report(report));
    let name = |symbol: SymbolId| (symbol.0 == 3).then(|| "BTCUSDT".to_owned());
    let line = sent.line(false, name);
    let head = "17 5.7 session=2 client_order_id=9 new new side=buy leaves=1 filled=0 last=0@0 ";
    assert!(line.starts_with(head) && line.contains(" symbol=BTCUSDT ") && line.ends_with('\n'), "{line}");
    let object = parsed(&sent.line(true, name));
    let got = ["order_id", "symbol", "symbol_number", "journal", "time"].map(|key| &object[key]);
    assert_eq!(got, [&json!("5.7"), &json!("BTCUSDT"), &json!(3), &Json::Null, &Json::Null]);
    assert_eq!(parsed(&sent.line(true, |_| None))["symbol"], json!(3));
}

#[test]
fn a_denial_line_has_its_reason_and_its_limit_with_unit() {
    let denied = |denial: Denial, limit: i128| OrderDenied {
        code: denial.code(),
        limit: limit.to_le_bytes(),
        value: (limit + 1_000_000).to_le_bytes(),
        ..OrderDenied::default()
    };
    let age = sent(ReportOrDenial::Denied(denied(Denial::RequestAge, 5_000_000)));
    assert!(age.line(false, |_| None).contains(" (limit 5 ms, value 6 ms)"), "{}", age.line(false, |_| None));
    let object = parsed(&age.line(true, |_| None));
    assert_eq!((&object["limit_ns"], &object["why"]), (&json!(5_000_000), &json!(Denial::RequestAge.to_string())));
    let quantity = sent(ReportOrDenial::Denied(denied(Denial::SessionQuantity, 100_000_000)));
    assert_eq!(parsed(&quantity.line(true, |_| None))["limit"], json!("1"));
}

#[test]
fn a_detail_line_has_what_the_exchange_sent() {
    let detail = ReportDetail {
        order_id: OrderId::new(5, 7),
        exec_id: ExecId(9),
        fee: 10_i128.pow(11).to_le_bytes(),
        fee_currency: "BTC".parse().expect("it is a currency"),
        liquidity: Liquidity::Taker.code(),
        venue_received_ns: 1_000_000_001,
        ..ReportDetail::default()
    };
    let fill = sent(ReportOrDenial::Detail(detail));
    let expected =
        "17 5.7 session=2 detail exec_id=9 fee=0.00001 BTC taker venue_received=1970-01-01T00:00:01.000000001Z\n";
    assert_eq!(fill.line(false, |_| None), expected);
    let object = parsed(&fill.line(true, |_| None));
    let got = ["name", "order_id", "exec_id", "fee", "fee_currency", "liquidity"].map(|key| &object[key]);
    let expected = [json!("report_detail"), json!("5.7"), json!(9), json!("0.00001"), json!("BTC"), json!("taker")];
    assert_eq!(got, expected.each_ref());
    // A text of the exchange moves no cursor.
    let rejection =
        ReportDetail { order_id: OrderId::new(5, 7), ..ReportDetail::default() }.with_text("too \u{1b}[2Jlate");
    let line = sent(ReportOrDenial::Detail(rejection)).line(false, |_| None);
    assert_eq!(line, "17 5.7 session=2 detail text=\"too \\u{1b}[2Jlate\"\n");
}

fn sent(answer: ReportOrDenial) -> SentReport {
    SentReport { number: 17, journal: None, session: 2, session_number: None, stamp: 5, utc_ns: None, answer }
}

#[test]
fn a_reconciliation_line_shows_both_sides_and_the_entry_command() {
    let name = |symbol: SymbolId| format!("S{}", symbol.0);
    let order = ExecutionReport {
        order_id: OrderId::new(7, 12),
        cumulative_quantity: Quantity::from_whole(1),
        leaves_quantity: Quantity::from_whole(2),
        symbol: SymbolId(3),
        account: tickpath_market::AccountId(4),
        status: OrdStatus::PartiallyFilled.code(),
        side: Side::Sell.code(),
        ..ExecutionReport::default()
    };
    let (nothing, nowhere) = (ExecutionReport::default(), (0, ExecutionReport::default()));
    let over = ExecutionReport { leaves_quantity: Quantity::ZERO, status: OrdStatus::Filled.code(), ..order };
    let [flat, held] = [0, 5].map(|bought| ExecutionReport {
        cumulative_quantity: Quantity::from_whole(bought),
        symbol: SymbolId(3),
        ..nothing
    });
    for (ours, venues, expected) in [
        (
            (2, order),
            over,
            "order 7.12 of session 2: in the OMS partially_filled, 1 filled, 2 open; at the venue filled, 1 filled, \
             0 open",
        ),
        (
            (2, order),
            nothing,
            "order 7.12 of session 2: in the OMS partially_filled, 1 filled, 2 open; the venue has not reported it",
        ),
        (
            nowhere,
            order,
            "order 7.12 is unknown to the OMS; at the venue partially_filled, 1 filled, 2 open; tickpath oms enter \
             order S3 sell 3 --sent-as 7.12 --venue-order-id 0 --account 4 --session N --reason TEXT",
        ),
        (
            nowhere,
            over,
            "order 7.12 of account 4 is unknown to the OMS and has ended; at the venue filled, 1 filled, 0 open",
        ),
        (
            (0, flat),
            held,
            "position of account 0 in S3: 0 bought and 0 sold in the OMS, 5 bought and 0 sold at the venue",
        ),
    ] {
        assert_eq!(ReconciliationPair::of(ours, venues).line(name).as_deref(), Some(expected));
    }
    assert_eq!(ReconciliationPair::of((0, held), held).line(name), None, "a position that both sides have");
}
