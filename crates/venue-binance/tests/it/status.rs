//! Answers to status requests: one order with its fills, an order that the exchange does not find, and all orders.

use serde_json::{Value, json};
use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, OrderId, Request, StatusRequest, SymbolId};
use tickpath_venue::UNKNOWN_ORDER;
use tickpath_venue_binance::{BinanceLineConfig, REFUSED_BY_LINE};

use crate::driver::{ACCOUNT, BTCUSDT, Driver, VENUE, buy, config, placed, status};
use crate::exchange::{Reply, ScriptedExchange};
use crate::frames::{EventFrame, fill, record, renamed, text_of, unreadable};

/// Id of the status request.
const REQUEST: u64 = 900;

/// Returns a line whose orders can arrive no more after a millisecond.
fn impatient(exchange: &ScriptedExchange) -> Driver {
    let (recv_window_ms, absence_margin_ns) = (1, 0);
    let mut driver = Driver::new(BinanceLineConfig { recv_window_ms, absence_margin_ns, ..config(exchange) });
    driver.connect();
    driver
}

/// Sends a status request, and returns the reports of its answer.
fn ask(driver: &mut Driver, number: u64, order: u64, fills: u8) -> Vec<ExecutionReport> {
    let before = driver.reports().len();
    driver.send(number, &status(REQUEST, order, fills));
    driver.until("an answer", |driver| driver.reports()[before..].iter().any(is_answer));
    driver.until_acknowledged(number + 1);
    driver.reports().split_off(before)
}

fn is_answer(report: &ExecutionReport) -> bool {
    report.client_order_id.0 == REQUEST && report.exec_type == ExecType::OrderStatus.code()
}

fn absent() -> Reply {
    Reply::refused(400, -2013, "Order does not exist.")
}

/// Returns type, state, filled quantity and quantity of the fill.
fn shown(reports: &[ExecutionReport]) -> Vec<(Option<ExecType>, Option<OrdStatus>, i64, i64)> {
    let show = |report: &ExecutionReport| {
        let (filled, last) = (report.cumulative_quantity.0, report.last_quantity.0);
        (ExecType::from_code(report.exec_type), OrdStatus::from_code(report.status), filled, last)
    };
    reports.iter().map(show).collect()
}

const TRADE: Option<ExecType> = Some(ExecType::Trade);
const STATUS: Option<ExecType> = Some(ExecType::OrderStatus);
const PARTLY_FILLED: Option<OrdStatus> = Some(OrdStatus::PartiallyFilled);
const FILLED: Option<OrdStatus> = Some(OrdStatus::Filled);

#[test]
fn a_status_brings_the_fills_that_were_not_reported_before_the_state() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.send(&EventFrame::new(&text, 77).trade(4, "0.1", "0.1", "PARTIALLY_FILLED").text());
    driver.until_report(1, ExecType::Trade);
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "FILLED", "0.50000000")));
    exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.1"), fill(5, 77, "0.4")])));
    let answer = ask(&mut driver, 1, 1, 0);
    assert_eq!(shown(&answer), [(TRADE, FILLED, 50_000_000, 40_000_000), (STATUS, FILLED, 50_000_000, 0)]);
    let (asked, trades) = (exchange.of_method("order.status").pop(), exchange.of_method("myTrades").pop());
    assert_eq!(asked.map(|request| request.param("orderId")), Some("77".to_owned()));
    assert_eq!(trades.map(|request| request.param("orderId")), Some("77".to_owned()));
    let last = answer[1];
    assert_eq!((last.venue_order_id.0, last.order_id.0, last.side, last.account), (77, 1, buy(1).side, ACCOUNT));
}

#[test]
fn a_status_of_a_known_state_asks_for_no_fills_unless_they_are_wanted() {
    for (fills, count) in [(0, 0), (1, 1)] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
        exchange.send(&EventFrame::new(&text, 77).trade(4, "0.1", "0.1", "PARTIALLY_FILLED").text());
        driver.until_report(1, ExecType::Trade);
        exchange.reply("order.status", Reply::Ok(record(&text, 77, "PARTIALLY_FILLED", "0.1")));
        exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.1")])));
        let answer = ask(&mut driver, 1, 1, fills);
        assert_eq!(exchange.of_method("myTrades").len(), count);
        assert_eq!(answer.len(), 1 + count);
        assert_eq!(shown(&answer).last(), Some(&(STATUS, PARTLY_FILLED, 10_000_000, 0)));
        let fill = driver.report(1, ExecType::Trade).expect("a fill");
        assert_eq!((fill.exec_id.0, fill.leaves_quantity.0), (4 << 41 | 4 << 1, 40_000_000));
    }
}

#[test]
fn the_event_of_an_end_is_passed_on_once_before_or_behind_the_status_that_shows_the_end() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
        let end = EventFrame::new(&text, 77).expired("0", "EXPIRED").text();
        if event_first {
            exchange.send(&end);
            driver.until_report(1, ExecType::Expired);
        }
        exchange.reply("order.status", Reply::Ok(record(&text, 77, "EXPIRED", "0")));
        let answer = ask(&mut driver, 1, 1, 0);
        assert_eq!(shown(&answer), [(STATUS, Some(OrdStatus::Expired), 0, 0)]);
        exchange.send(&end);
        driver.settle(&exchange);
        let ends = driver.story(1).into_iter().filter(|report| *report == (ExecType::Expired, OrdStatus::Expired));
        assert_eq!(ends.count(), 1, "{:?}", driver.story(1));
    }
}

#[test]
fn a_fill_that_cannot_be_read_is_named_once_and_the_status_shows_that_it_is_missing() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    let trades = json!([fill(4, 77, "0.1"), fill(5, 77, "92233720368547758.08"), fill(6, 77, "0.1")]);
    let status = (STATUS, FILLED, 50_000_000, 0);
    for number in 1..3 {
        exchange.reply("order.status", Reply::Ok(record(&text, 77, "FILLED", "0.5")));
        exchange.reply("myTrades", Reply::Ok(trades.clone()));
        let answer = ask(&mut driver, number, 1, 0);
        if number == 2 {
            assert_eq!(shown(&answer), [status], "all is reported once");
            continue;
        }
        let (first, second) =
            ((TRADE, PARTLY_FILLED, 10_000_000, 10_000_000), (TRADE, PARTLY_FILLED, 20_000_000, 10_000_000));
        assert_eq!(shown(&answer), [first, second, (STATUS, Some(OrdStatus::Unknown), 0, 0), status]);
        let named = driver.text(1);
        assert!(named.starts_with("trade 5: the field 'qty' of a message is '9223372036854775"), "{named}");
    }
    assert_eq!(driver.losses, Vec::<String>::new());
}

#[test]
fn an_order_that_cannot_be_read_stays_in_doubt_and_the_line_up() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.reply("order.status", Reply::Ok(unreadable(&text, 77)));
    assert_eq!(shown(&ask(&mut driver, 1, 1, 0)), [(STATUS, Some(OrdStatus::Unknown), 0, 0)]);
    driver.settle(&exchange);
    assert!(driver.text(1).starts_with("the field 'price' of a message is 'x'"), "{}", driver.text(1));

    let listed = json!([unreadable("web", 90), unreadable(&text, 77), record(&text_of(2), 78, "NEW", "0")]);
    exchange.reply("openOrders.status", Reply::Ok(listed));
    let answer = ask_all(&mut driver, 2);
    let states: Vec<_> = answer.iter().map(|report| (report.order_id.0, OrdStatus::from_code(report.status))).collect();
    assert_eq!(states, [(1, Some(OrdStatus::Unknown)), (2, Some(OrdStatus::New)), (0, Some(OrdStatus::New))]);
    assert!(driver.text(1).starts_with("order 77: the field 'price'"), "{}", driver.text(1));
    assert_eq!(driver.losses, Vec::<String>::new());
}

#[test]
fn an_order_that_the_exchange_does_not_find_is_absent_once_it_can_arrive_no_more() {
    let exchange = ScriptedExchange::start();
    let mut driver = impatient(&exchange);
    (0..30).for_each(|_| exchange.reply("order.status", absent()));
    let answer = ask(&mut driver, 0, 1, 0);
    assert_eq!(shown(&answer), [(STATUS, Some(OrdStatus::Rejected), 0, 0)]);
    let last = answer[0];
    assert_eq!((last.reason, last.side, last.venue_sequence, last.order_id), (UNKNOWN_ORDER, 0, 0, OrderId(1)));
    assert_eq!((last.symbol, last.account), (BTCUSDT, ACCOUNT));
    let texts: Vec<String> =
        exchange.of_method("order.status").iter().map(|request| request.param("origClientOrderId")).collect();
    assert_eq!(texts[..3], [text_of(1), renamed(&text_of(1), 'c'), renamed(&text_of(1), 'r')]);
}

#[test]
fn an_order_that_may_still_arrive_is_asked_for_again() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    exchange.reply("order.place", Reply::refused(408, -1007, "Timeout."));
    driver.send(0, &Request::New(buy(1)));
    driver.until_acknowledged(1);
    // The time window of 5 s is open, so the answer is not final: the order turns up.
    (0..3).for_each(|_| exchange.reply("order.status", absent()));
    exchange.reply("order.status", Reply::Ok(record(&text_of(1), 77, "NEW", "0")));
    let answer = ask(&mut driver, 1, 1, 0);
    assert_eq!(shown(&answer), [(STATUS, Some(OrdStatus::New), 0, 0)]);
    assert_eq!(exchange.of_method("order.status").len(), 4);
    assert_eq!(exchange.of_method("order.place").len(), 1);
}

#[test]
fn a_status_waits_for_the_answers_to_the_orders_requests() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.send(0, &Request::New(buy(1)));
    let place = driver.until_request(&exchange, "order.place", 1);
    driver.send(1, &status(REQUEST, 1, 0));
    driver.settle(&exchange);
    assert_eq!(exchange.of_method("order.status").len(), 0);
    exchange.answer(&place, placed(&place, 77));
    driver.until_request(&exchange, "order.status", 1);
}

#[test]
fn an_answer_that_is_older_than_the_reports_is_asked_for_again() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.send(&EventFrame::new(&text, 77).trade(4, "0.1", "0.1", "PARTIALLY_FILLED").text());
    driver.until_report(1, ExecType::Trade);
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "NEW", "0")));
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "PARTIALLY_FILLED", "0.1")));
    assert_eq!(shown(&ask(&mut driver, 1, 1, 0)), [(STATUS, PARTLY_FILLED, 10_000_000, 0)]);
}

#[test]
fn a_line_of_another_process_finds_an_order_through_all_of_its_generations() {
    let exchange = ScriptedExchange::start();
    let mut driver = impatient(&exchange);
    let text = text_of(1);
    // Order 1 was replaced after a fill of 0.1, and its replacement was canceled after another 0.2.
    let next = format!("{text}-1-fxSK");
    for reply in [
        absent(),
        absent(),
        Reply::Ok(record(&renamed(&text, 'r'), 77, "CANCELED", "0.1")),
        absent(),
        Reply::Ok(record(&renamed(&next, 'c'), 78, "CANCELED", "0.2")),
    ] {
        exchange.reply("order.status", reply);
    }
    exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.1")])));
    exchange.reply("myTrades", Reply::Ok(json!([fill(5, 78, "0.2")])));
    let answer = ask(&mut driver, 0, 1, 0);
    assert_eq!(
        shown(&answer),
        [
            (TRADE, PARTLY_FILLED, 10_000_000, 10_000_000),
            (TRADE, PARTLY_FILLED, 30_000_000, 20_000_000),
            (STATUS, Some(OrdStatus::Canceled), 30_000_000, 0),
        ]
    );
    assert_eq!(answer[2].venue_order_id.0, 78);
}

#[test]
fn a_query_that_fails_for_now_is_repeated_and_one_that_fails_for_good_leaves_the_order_in_doubt() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.reply("order.status", Reply::refused(503, -1008, "Server is currently overloaded."));
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "NEW", "0")));
    assert_eq!(shown(&ask(&mut driver, 1, 1, 0)), [(STATUS, Some(OrdStatus::New), 0, 0)]);
    exchange.reply("order.status", Reply::refused(400, -1121, "Invalid symbol."));
    let answer = ask(&mut driver, 2, 1, 0);
    assert_eq!((shown(&answer)[0].1, answer[0].reason), (Some(OrdStatus::Unknown), 1121));
}

#[test]
fn a_status_of_an_instrument_that_the_line_lacks_is_refused() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let (client_order_id, original) = (ClientOrderId(REQUEST), ClientOrderId(1));
    let request = StatusRequest { client_order_id, original, symbol: SymbolId(99), ..StatusRequest::default() };
    driver.send(0, &Request::Status(request));
    driver.until_acknowledged(1);
    let report = driver.report(1, ExecType::OrderStatus).expect("a refusal");
    assert_eq!((report.reason, report.status), (REFUSED_BY_LINE, OrdStatus::Unknown.code()));
}

/// Sends a status request for all orders, and returns the reports of its answer.
fn ask_all(driver: &mut Driver, number: u64) -> Vec<ExecutionReport> {
    let before = driver.reports().len();
    let client_order_id = ClientOrderId(REQUEST);
    driver.send(number, &Request::Status(StatusRequest { client_order_id, fills: 1, ..StatusRequest::default() }));
    let has_ended = |driver: &Driver| driver.reports()[before..].iter().any(|report| report.ends_status_answer());
    driver.until("the end of the answer", has_ended);
    driver.reports().split_off(before)
}

#[test]
fn a_status_of_all_orders_brings_each_order_behind_its_fills_and_then_the_end() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let (first, second, third) = (text_of(1), text_of(2), text_of(3));
    let replaced = format!("{second}-1-fxSK");
    exchange.reply(
        "openOrders.status",
        Reply::Ok(json!([record(&first, 77, "PARTIALLY_FILLED", "0.3"), record("web", 90, "NEW", "0")])),
    );
    let day = json!([
        record(&renamed(&second, 'r'), 78, "CANCELED", "0.1"),
        record(&replaced, 79, "FILLED", "0.5"),
        record(&renamed(&third, 'c'), 80, "CANCELED", "0"),
        record("web_1", 91, "FILLED", "0.5"),
    ]);
    exchange.reply("allOrders", Reply::Ok(day));
    // A fill of the first order is of an earlier day.
    exchange.reply(
        "myTrades",
        Reply::Ok(json!([fill(5, 77, "0.1"), fill(6, 78, "0.1"), fill(7, 79, "0.5"), fill(8, 91, "0.5")])),
    );
    exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.2"), fill(5, 77, "0.1")])));
    let answer = ask_all(&mut driver, 0);
    let shown: Vec<(u64, _)> = answer.iter().map(|report| report.order_id.0).zip(shown(&answer)).collect();
    assert_eq!(
        shown,
        [
            (1, (TRADE, PARTLY_FILLED, 20_000_000, 20_000_000)),
            (1, (TRADE, PARTLY_FILLED, 30_000_000, 10_000_000)),
            (1, (STATUS, PARTLY_FILLED, 30_000_000, 0)),
            (2, (TRADE, PARTLY_FILLED, 10_000_000, 10_000_000)),
            (2, (TRADE, FILLED, 60_000_000, 50_000_000)),
            (2, (STATUS, FILLED, 60_000_000, 0)),
            (3, (STATUS, Some(OrdStatus::Canceled), 0, 0)),
            (0, (STATUS, Some(OrdStatus::New), 0, 0)),
        ]
    );
    assert!(answer.iter().all(|report| report.client_order_id.0 == REQUEST));
    let last = answer.last().expect("an end");
    assert_eq!((last.reason, last.venue), (0, VENUE));
    let days: Vec<String> = exchange.of_method("allOrders").iter().map(|request| request.param("startTime")).collect();
    assert_eq!(days.len(), 2, "one for each instrument");
    assert!(days.iter().all(|day| day.parse::<u64>().is_ok_and(|ms| ms % 86_400_000 == 0)), "{days:?}");
}

#[test]
fn a_status_of_all_orders_that_the_exchange_refuses_ends_with_its_code() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    exchange.reply("allOrders", Reply::refused(400, -1100, "Illegal characters found."));
    let answer = ask_all(&mut driver, 0);
    assert_eq!((answer.len(), answer[0].reason), (1, 1100));
}

#[test]
fn a_long_list_is_read_to_its_end() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    let trades = |ids: std::ops::Range<u64>| -> Value { ids.map(|id| fill(id, 77, "0.0001")).collect() };
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "PARTIALLY_FILLED", "0.12")));
    exchange.reply("myTrades", Reply::Ok(trades(1..1001)));
    exchange.reply("myTrades", Reply::Ok(trades(1001..1201)));
    let answer = ask(&mut driver, 1, 1, 0);
    assert_eq!(answer.len(), 1201);
    let asked: Vec<String> = exchange.of_method("myTrades").iter().map(|request| request.param("fromId")).collect();
    assert_eq!(asked, ["null", "1001"]);
}
