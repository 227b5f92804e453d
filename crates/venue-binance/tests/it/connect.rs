//! Connects: each step acknowledged, the comparison with the exchange, and the ends of connections.

use serde_json::json;
use tickpath_clock::utc_ns;
use tickpath_market::{ExecType, OrdStatus, Quantity, Request, SymbolId};
use tickpath_venue::{Line, LineSendError};
use tickpath_venue_binance::{BinanceLine, BinanceLineConfig, LineInstrument};

use crate::driver::{BTCUSDT, Driver, Seen, buy, cancel, config, instrument};
use crate::exchange::{Reply, ScriptedExchange};
use crate::frames::{EventFrame, fill, record, text_of, unreadable};

const MS_NS: u64 = 1_000_000;

#[test]
fn a_line_is_up_once_logon_subscription_and_open_orders_are_acknowledged() {
    let exchange = ScriptedExchange::start();
    exchange.reply("userDataStream.subscribe", Reply::Silence);
    let mut driver = Driver::new(config(&exchange));
    driver.begin_connect();
    let subscribe = driver.until_request(&exchange, "userDataStream.subscribe", 1);
    assert!(driver.seen.is_empty(), "{:?}", driver.seen);
    assert_eq!(driver.try_send(0, &Request::New(buy(1))), Err(LineSendError::Down));
    exchange.answer(&subscribe, json!({ "subscriptionId": 0 }));
    driver.until("Up", |driver| !driver.seen.is_empty());
    assert_eq!(driver.seen, [Seen::Up(None, None)]);
    let received = exchange.received();
    let methods: Vec<&str> = received.iter().map(|request| request.method()).collect();
    let open_orders = "openOrders.status";
    assert_eq!(methods, ["time", "session.logon", "userDataStream.subscribe", open_orders, open_orders]);
    assert!(driver.line.socket().is_some());
    assert_eq!(driver.line.address(), exchange.url().split('?').next().expect("a path"));
}

#[test]
fn requests_carry_the_exchanges_time() {
    let exchange = ScriptedExchange::start();
    exchange.set_clock_lead_ms(3_600_000);
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    let host_ms = utc_ns() / MS_NS;
    for request in exchange.received().iter().filter(|request| request.json["params"]["timestamp"].is_u64()) {
        let sent_ms: u64 = request.param("timestamp").parse().expect("a time");
        assert!(sent_ms.abs_diff(host_ms + 3_600_000) < 600_000, "{}", request.text);
    }
    let offset_ns = driver.line.clock_offset_ns().expect("a measurement");
    assert!((3_000_000_000_000..4_200_000_000_000).contains(&offset_ns), "{offset_ns}");
}

#[test]
fn a_refused_step_ends_the_connect_with_its_reason() {
    for (method, code, words) in [
        ("session.logon", -1021, "refuses the logon: -1021: wrong (clock offset "),
        ("userDataStream.subscribe", -2015, "refuses the subscription to user events: -2015: wrong"),
        ("openOrders.status", -1003, "refuses the query of the open orders: -1003: wrong"),
        ("time", -1000, "refuses the query of its time: -1000: wrong"),
    ] {
        let exchange = ScriptedExchange::start();
        exchange.reply(method, Reply::refused(400, code, "wrong"));
        let mut driver = Driver::new(config(&exchange));
        driver.begin_connect();
        let why = driver.until_lost();
        assert!(why.starts_with("ws://127.0.0.1:") && why.contains(words), "{why}");
        assert!(driver.seen.is_empty(), "{:?}", driver.seen);
    }
}

#[test]
fn a_step_without_an_answer_ends_the_connect_and_names_itself() {
    for (method, words) in
        [("time", "query of its time"), ("session.logon", "logon"), ("openOrders.status", "open orders")]
    {
        let exchange = ScriptedExchange::start();
        exchange.reply(method, Reply::Silence);
        let mut driver = Driver::new(BinanceLineConfig { connect_timeout_ns: 300 * MS_NS, ..config(&exchange) });
        driver.begin_connect();
        let why = driver.until_lost();
        assert!(why.contains(words) && why.contains("not completed within 0.3 s"), "{why}");
    }
}

#[test]
fn missed_fills_follow_the_end_of_the_next_connect() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.send(&EventFrame::new(&text, 77).trade(4, "0.1", "0.1", "PARTIALLY_FILLED").text());
    driver.until_report(1, ExecType::Trade);
    exchange.cut();
    driver.until_lost();
    let seen = driver.seen.len();

    exchange.reply("openOrders.status", Reply::Ok(json!([record(&text, 77, "PARTIALLY_FILLED", "0.3")])));
    let foreign = fill(6, 999, "9");
    exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.1"), fill(5, 77, "0.2"), foreign])));
    driver.connect();
    driver.settle(&exchange);
    assert_eq!(driver.seen[seen], Seen::Up(None, None));
    let trades: Vec<_> = driver.reports().into_iter().filter(|report| report.last_quantity.0 > 0).collect();
    let quantities: Vec<(i64, i64)> =
        trades.iter().map(|report| (report.last_quantity.0, report.cumulative_quantity.0)).collect();
    assert_eq!(quantities, [(10_000_000, 10_000_000), (20_000_000, 30_000_000)]);
    assert_eq!(trades[1].leaves_quantity, Quantity(20_000_000));
    let numbers = driver.numbers();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no number is left out");
    // Fills are asked for from some time before the last event on.
    let asked = driver.until_request(&exchange, "myTrades", 1);
    let from_ms: u64 = asked.param("startTime").parse().expect("a time");
    assert!(from_ms > 1_700_000_000_123 - 60_000, "{from_ms}");
}

#[test]
fn a_missed_fill_that_cannot_be_read_is_named_once_and_keeps_no_line_down() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    let trades = json!([fill(4, 77, "0.1"), fill(5, 77, "92233720368547758.08"), fill(6, 77, "0.1")]);
    for _ in 0..2 {
        exchange.cut();
        driver.until_lost();
        exchange.reply("openOrders.status", Reply::Ok(json!([record(&text, 77, "PARTIALLY_FILLED", "0.3")])));
        exchange.reply("myTrades", Reply::Ok(trades.clone()));
        driver.connect();
        driver.settle(&exchange);
    }
    let fill = (ExecType::Trade, OrdStatus::PartiallyFilled);
    let in_doubt = (ExecType::OrderStatus, OrdStatus::Unknown);
    assert_eq!(driver.story(1), [(ExecType::New, OrdStatus::New), fill, fill, in_doubt]);
    assert!(driver.text(1).starts_with("trade 5: the field 'qty'"), "{}", driver.text(1));
}

#[test]
fn an_open_order_that_cannot_be_read_keeps_no_line_down() {
    let exchange = ScriptedExchange::start();
    let listed = json!([unreadable("web_1", 78), unreadable(&text_of(1), 77), record(&text_of(2), 79, "NEW", "0")]);
    exchange.reply("openOrders.status", Reply::Ok(listed));
    let mut driver = Driver::connected(&exchange);
    let report = driver.until_report(1, ExecType::OrderStatus);
    assert_eq!((report.status, driver.reports().len()), (OrdStatus::Unknown.code(), 1));
    driver.settle(&exchange);
    assert!(driver.text(1).starts_with("order 77: the field 'price' of a message is 'x'"), "{}", driver.text(1));
    driver.send(0, &cancel(3, 2));
    assert_eq!(driver.until_request(&exchange, "order.cancel", 1).param("orderId"), "79");
}

#[test]
fn a_line_of_another_process_knows_the_open_orders() {
    let exchange = ScriptedExchange::start();
    exchange.reply(
        "openOrders.status",
        Reply::Ok(json!([record(&text_of(1), 77, "NEW", "0"), record("web_1", 78, "NEW", "0")])),
    );
    let mut driver = Driver::connected(&exchange);
    assert!(driver.reports().is_empty(), "the OMS asks for its orders itself");
    driver.send(0, &cancel(2, 1));
    assert_eq!(driver.until_request(&exchange, "order.cancel", 1).param("orderId"), "77");
    assert_eq!(exchange.of_method("myTrades").len(), 0, "no event was missed by this process");
}

#[test]
fn the_end_of_a_connection_is_reported_with_its_reason() {
    let frames = [
        (r#"{"subscriptionId":0,"event":{"e":"eventStreamTerminated","E":1}}"#, "has ended the stream of user events"),
        (r#"{"id":null,"status":401,"error":{"code":-2015,"msg":"Invalid API-key."}}"#, "-2015: Invalid API-key."),
        ("{\"event\":{\"e\":\"executionReport\"", "a frame of 31 bytes cannot be read"),
        (r#"{"event":{"e":"executionReport","E":1}}"#, "'o' of a message is missing"),
        ("[]", "is no JSON object"),
    ];
    for (frame, words) in frames {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        exchange.send(frame);
        let why = driver.until_lost();
        assert!(why.contains(words), "{why}");
        assert_eq!(driver.try_send(0, &Request::New(buy(1))), Err(LineSendError::Down));
        (0..50).for_each(|_| driver.poll());
        assert_eq!(driver.losses.len(), 1, "a loss is reported once");
    }
}

#[test]
fn frames_without_a_meaning_for_orders_are_passed_over() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    for frame in [
        r#"{"subscriptionId":0,"event":{"e":"outboundAccountPosition","E":1,"u":1,"B":[]}}"#,
        r#"{"subscriptionId":0,"event":{"e":"listStatus","E":1}}"#,
        r#"{"id":"q999","status":200,"result":{}}"#,
        r#"{"id":4711,"status":200,"result":{}}"#,
        r#"{"something":"new"}"#,
    ] {
        exchange.send(frame);
    }
    driver.settle(&exchange);
    assert_eq!(driver.losses, Vec::<String>::new());
}

#[test]
fn silence_ends_a_connection() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::new(BinanceLineConfig { silence_ns: 200 * MS_NS, ..config(&exchange) });
    driver.connect();
    let why = driver.until_lost();
    assert!(why.contains("nothing has arrived for 200 ms"), "{why}");
}

#[test]
fn a_connection_that_swallows_an_answer_is_lost() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::new(BinanceLineConfig { answer_timeout_ns: 200 * MS_NS, ..config(&exchange) });
    driver.connect();
    driver.send(0, &Request::New(buy(1)));
    let why = driver.until_lost();
    assert!(why.contains("a request has no answer after 200 ms"), "{why}");
    assert_eq!(exchange.of_method("order.place").len(), 1, "nothing is sent again");
}

#[test]
fn a_shutdown_of_the_server_ends_the_connection_once_all_answers_have_arrived() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.send(0, &Request::New(buy(1)));
    let request = driver.until_request(&exchange, "order.place", 1);
    exchange.send(r#"{"event":{"e":"serverShutdown","E":1770123456789}}"#);
    exchange.send(&EventFrame::new(&text_of(5), 5).text());
    driver.until_report(5, ExecType::New);
    assert_eq!(driver.try_send(1, &Request::New(buy(2))), Err(LineSendError::Full));
    exchange.answer(&request, json!({ "orderId": 77 }));
    let why = driver.until_lost();
    assert!(why.contains("shuts this server down"), "{why}");
    assert_eq!(driver.story(1), [(ExecType::New, OrdStatus::New)]);
}

#[test]
fn an_old_connection_ends_in_order() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::new(BinanceLineConfig { renew_after_ns: 1, ..config(&exchange) });
    driver.connect();
    let why = driver.until_lost();
    assert!(why.contains("ends a connection after 24 h"), "{why}");
    driver.connect();
    assert_eq!(exchange.connections(), 2);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_the_remedy() {
    let exchange = ScriptedExchange::start();
    let base = || config(&exchange);
    let with = |instrument: LineInstrument| BinanceLineConfig { instruments: vec![instrument], ..base() };
    let btc = || instrument("BTCUSDT", BTCUSDT);
    for (config, words) in [
        (BinanceLineConfig { instruments: Vec::new(), ..base() }, "no instrument"),
        (with(LineInstrument { is_derivative: true, ..btc() }), "trades spot"),
        (with(LineInstrument { contract: Quantity(1), ..btc() }), "contract size"),
        (with(LineInstrument { name: "A\"B".to_owned(), ..btc() }), "copy it from the exchange's list"),
        (with(LineInstrument { symbol: SymbolId(1 << 22), ..btc() }), "up to 4194303"),
        (BinanceLineConfig { instruments: vec![btc(), btc()], ..base() }, "twice"),
        (BinanceLineConfig { recv_window_ms: 60_001, ..base() }, "use 1 to 60000"),
        (BinanceLineConfig { url: "wss://x.example/y?timeUnit=microsecond".to_owned(), ..base() }, "timeUnit"),
        (BinanceLineConfig { url: "ws://x.example/y".to_owned(), ..base() }, "not encrypted"),
    ] {
        let why = BinanceLine::new(config).err().expect("a refusal").to_string();
        assert!(why.contains(words), "{why}");
    }
}
