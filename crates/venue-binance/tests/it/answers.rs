//! Answers to new orders and cancels: acceptances, refusals, and answers that leave the outcome open.

use serde_json::json;
use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, Price, Quantity, Request, SymbolId,
    TimeInForce, TradeMode,
};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};
use tickpath_venue_binance::{BinanceLineConfig, REFUSED_BY_LINE};

use crate::driver::{ACCOUNT, BTCUSDT, Driver, Seen, VENUE, buy, cancel, config, placed};
use crate::exchange::{Reply, ScriptedExchange};
use crate::frames::{EventFrame, fill, record, renamed, text_of};

const NEW: (ExecType, OrdStatus) = (ExecType::New, OrdStatus::New);
const CANCELED: (ExecType, OrdStatus) = (ExecType::Canceled, OrdStatus::Canceled);
const IN_DOUBT: (ExecType, OrdStatus) = (ExecType::OrderStatus, OrdStatus::Unknown);

#[test]
fn an_acceptance_is_reported_once_by_answer_or_event() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        driver.send(0, &Request::New(buy(1)));
        let request = driver.until_request(&exchange, "order.place", 1);
        let event = EventFrame::new(&request.param("newClientOrderId"), 77).text();
        if event_first {
            exchange.send(&event);
            exchange.answer(&request, placed(&request, 77));
        } else {
            exchange.answer(&request, placed(&request, 77));
            exchange.send(&event);
        }
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW]);
        let report = driver.report(1, ExecType::New).expect("an acceptance");
        assert_eq!((report.client_order_id.0, report.venue_order_id.0, report.venue_sequence), (1, 77, 0));
        assert_eq!((report.price, report.leaves_quantity), (Price::from_whole(60_000), Quantity(50_000_000)));
        assert_eq!((report.venue, report.account, report.symbol), (VENUE, ACCOUNT, BTCUSDT));
        assert!(driver.seen.contains(&Seen::Acknowledged(1)));
    }
}

#[test]
fn the_short_answer_is_read_in_the_exchanges_spelling_and_in_any_other() {
    for (number, spaces) in [(0, ""), (1, " ")] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        driver.send(number, &Request::New(buy(1)));
        let text = driver.until_request(&exchange, "order.place", 1).param("newClientOrderId");
        let order = format!(r#""symbol":"BTCUSDT","orderId":77,"orderListId":-1,"clientOrderId":"{text}""#);
        let result = format!(r#"{{{order},"transactTime":1700000000000}}"#);
        exchange.send(&format!(r#"{spaces}{{"id":{number},"status":200,"result":{result}}}"#));
        assert_eq!(driver.until_report(1, ExecType::New).venue_order_id.0, 77);
        driver.until_acknowledged(number + 1);
    }
}

#[test]
fn an_answer_with_rate_limits_is_read_completely() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.send(0, &Request::New(buy(1)));
    let request = driver.until_request(&exchange, "order.place", 1);
    let result = placed(&request, 77);
    exchange.send(&json!({ "id": 0, "status": 200, "result": result, "rateLimits": [{ "count": 1 }] }).to_string());
    driver.until_report(1, ExecType::New);
}

#[test]
fn a_refusal_has_the_exchanges_code_and_its_text() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let long = "Account has insufficient balance for requested action, and then some more of it.";
    for (number, (code, text, shown)) in [
        (-2010, "Account has insufficient balance.", "Account has insufficient balance."),
        (-1013, "Filter failure: LOT_SIZE", "Filter failure: LOT_SIZE"),
        (-2010, long, &long[..64]),
        (-1100, "\u{1b}[2Jé", "?[2Jé"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = 10 + number as u64;
        exchange.reply("order.place", Reply::refused(400, code, text));
        driver.send(number as u64, &Request::New(buy(id)));
        let report = driver.until_report(id, ExecType::Rejected);
        assert_eq!((i64::from(report.reason), report.status), (-code, OrdStatus::Rejected.code()));
        assert_eq!((report.client_order_id.0, report.side, report.leaves_quantity.0), (id, buy(1).side, 0));
        driver.until_acknowledged(number as u64 + 1);
        assert_eq!(driver.text(id), shown);
    }
}

#[test]
fn a_wrong_time_is_explained_by_the_offset_and_measured_again() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    exchange
        .reply("order.place", Reply::refused(400, -1021, "Timestamp for this request is outside of the recvWindow."));
    driver.send(0, &Request::New(buy(1)));
    let report = driver.until_report(1, ExecType::Rejected);
    assert_eq!(report.reason, 1021);
    driver.until_acknowledged(1);
    let text = driver.text(1);
    assert!(text.starts_with("clock offset ") && text.contains(" ms: Timestamp"), "{text}");
    driver.until_request(&exchange, "time", 2);
}

#[test]
fn an_answer_that_leaves_the_outcome_open_puts_the_order_in_doubt_and_sends_nothing_again() {
    for (status, code) in [(400, -1006), (408, -1007), (400, -1001), (400, -1000), (503, -1008), (500, 0)] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        exchange.reply("order.place", Reply::refused(status, code, "Execution status unknown."));
        driver.send(0, &Request::New(buy(1)));
        driver.until_acknowledged(1);
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [IN_DOUBT], "{status} {code}");
        let report = driver.report(1, ExecType::OrderStatus).expect("a doubt");
        assert_eq!((report.venue, report.account, report.symbol), (VENUE, ACCOUNT, BTCUSDT));
        assert_eq!(exchange.of_method("order.place").len(), 1);
    }
}

#[test]
fn receipt_is_proven_below_the_lowest_request_without_an_answer() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    // A number may be left out.
    for (number, id) in [(0, 1), (1, 2), (5, 3)] {
        driver.send(number, &Request::New(buy(id)));
    }
    driver.until_request(&exchange, "order.place", 3);
    let requests = exchange.of_method("order.place");
    exchange.answer(&requests[1], placed(&requests[1], 78));
    driver.until_report(2, ExecType::New);
    assert!(!driver.seen.iter().any(|seen| matches!(seen, Seen::Acknowledged(_))), "{:?}", driver.seen);
    exchange.answer(&requests[0], placed(&requests[0], 77));
    driver.until_acknowledged(5);
    exchange.answer(&requests[2], placed(&requests[2], 79));
    driver.until_acknowledged(6);
}

#[test]
fn orders_that_spot_does_not_have_are_refused_here() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let ioc = TimeInForce::ImmediateOrCancel.code();
    let (market, fok) = (OrderType::Market.code(), TimeInForce::FillOrKill.code());
    for (number, (order, words)) in [
        (NewOrder { instructions: NewOrder::REDUCE_ONLY, ..buy(1) }, "no positions"),
        (NewOrder { instructions: NewOrder::POST_ONLY, time_in_force: ioc, ..buy(1) }, "can rest"),
        (NewOrder { trade_mode: TradeMode::Cross.code(), ..buy(1) }, "without margin"),
        (NewOrder { quantity: Quantity(1_500), ..buy(1) }, "no multiple of the lot"),
        (NewOrder { order_type: market, time_in_force: fok, ..buy(1) }, "never all or nothing"),
        (NewOrder { symbol: SymbolId(99), ..buy(1) }, "no such instrument"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = 10 + number as u64;
        let order = NewOrder { client_order_id: ClientOrderId(id), ..order };
        driver.send(number as u64, &Request::New(order));
        let report = driver.until_report(id, ExecType::Rejected);
        assert_eq!((report.reason, report.side, report.symbol), (REFUSED_BY_LINE, order.side, order.symbol));
        driver.until_acknowledged(number as u64 + 1);
        assert!(driver.text(id).contains(words), "{}", driver.text(id));
    }
    assert_eq!(exchange.of_method("order.place").len(), 0);
}

#[test]
fn a_cancel_is_reported_once_by_answer_or_event() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
        driver.send(1, &cancel(2, 1));
        let request = driver.until_request(&exchange, "order.cancel", 1);
        assert_eq!((request.param("orderId"), request.param("newClientOrderId")), ("77".into(), renamed(&text, 'c')));
        let event = EventFrame::new(&text, 77).canceled(&renamed(&text, 'c'), "0").text();
        let answer = json!({ "executedQty": "0.00000000", "transactTime": 1_700_000_000_500_u64 });
        if event_first {
            exchange.send(&event);
            exchange.answer(&request, answer);
        } else {
            exchange.answer(&request, answer);
            exchange.send(&event);
        }
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW, CANCELED]);
        let report = driver.report(1, ExecType::Canceled).expect("a cancel");
        assert_eq!((report.client_order_id.0, report.leaves_quantity.0), (2, 0));
        driver.until_acknowledged(2);
    }
}

#[test]
fn a_cancel_waits_for_the_fills_that_its_answer_counts() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    driver.send(1, &cancel(2, 1));
    let request = driver.until_request(&exchange, "order.cancel", 1);
    exchange.answer(&request, json!({ "executedQty": "0.2" }));
    driver.until_acknowledged(2);
    assert_eq!(driver.story(1), [NEW]);
    let accepted = EventFrame::new(&text, 77);
    exchange.send(&accepted.trade(4, "0.2", "0.2", "PARTIALLY_FILLED").text());
    exchange.send(&accepted.canceled(&renamed(&text, 'c'), "0.2").text());
    let report = driver.until_report(1, ExecType::Canceled);
    assert_eq!(driver.story(1), [NEW, (ExecType::Trade, OrdStatus::PartiallyFilled), CANCELED]);
    assert_eq!((report.client_order_id.0, report.cumulative_quantity.0), (2, 20_000_000));
}

/// Refuses a cancel as unknown, answers the question for the order, and returns the report.
fn refused_cancel(reply: Reply, reports_first: &[EventFrame]) -> (Driver, ExecutionReport) {
    let exchange = ScriptedExchange::start();
    let (recv_window_ms, absence_margin_ns) = (1, 1_000_000);
    let mut driver = Driver::new(BinanceLineConfig { recv_window_ms, absence_margin_ns, ..config(&exchange) });
    driver.connect();
    driver.place(&exchange, 0, &buy(1), 77);
    reports_first.iter().for_each(|event| exchange.send(&event.text()));
    driver.settle(&exchange);
    exchange.reply("order.cancel", Reply::refused(400, -2011, "Unknown order sent."));
    // The order is looked up by its id, and then by each of its texts.
    for _ in 0..20 {
        exchange.reply("order.status", reply.clone());
    }
    driver.send(1, &cancel(2, 1));
    let report = driver.until_report(1, ExecType::CancelRejected);
    driver.until_acknowledged(2);
    driver.settle(&exchange);
    assert_eq!(exchange.of_method("order.cancel").len(), 1, "a cancel is not repeated");
    (driver, report)
}

#[test]
fn a_cancel_of_an_unknown_order_is_refused_after_the_orders_status() {
    let text = text_of(1);
    let filled = Reply::Ok(record(&text, 77, "FILLED", "0.50000000"));
    let trade = EventFrame::new(&text, 77).trade(4, "0.5", "0.5", "PARTIALLY_FILLED");
    let (driver, report) = refused_cancel(filled, &[trade]);
    assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
    assert_eq!(driver.text(1), "Unknown order sent.");

    let (_, report) = refused_cancel(Reply::refused(400, -2013, "Order does not exist."), &[]);
    assert_eq!(report.reason, UNKNOWN_ORDER);

    let (_, report) = refused_cancel(Reply::Ok(record(&text, 77, "NEW", "0.00000000")), &[]);
    assert_eq!((report.reason, report.status), (2011, OrdStatus::New.code()));
}

#[test]
fn an_end_that_the_status_shows_is_reported_once_before_the_refusal_of_the_cancel() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.reply("order.cancel", Reply::refused(400, -2011, "Unknown order sent."));
    exchange.reply("order.status", Reply::Ok(record(&text, 77, "EXPIRED", "0")));
    driver.send(1, &cancel(2, 1));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
    exchange.send(&EventFrame::new(&text, 77).expired("0", "EXPIRED").text());
    driver.settle(&exchange);
    let expired = (ExecType::Expired, OrdStatus::Expired);
    assert_eq!(driver.story(1), [NEW, expired, (ExecType::CancelRejected, OrdStatus::Rejected)]);
}

#[test]
fn a_cancel_that_loses_against_the_last_fill_is_too_late() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
        driver.send(1, &cancel(2, 1));
        let request = driver.until_request(&exchange, "order.cancel", 1);
        let filled = EventFrame::new(&text, 77).trade(4, "0.5", "0.5", "FILLED").text();
        if event_first {
            exchange.send(&filled);
        } else {
            exchange.reply("order.status", Reply::Ok(record(&text, 77, "FILLED", "0.5")));
            exchange.reply("myTrades", Reply::Ok(json!([fill(4, 77, "0.5")])));
        }
        exchange.refuse(&request, 400, -2011, "Unknown order sent.");
        let report = driver.until_report(1, ExecType::CancelRejected);
        assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
        exchange.send(&filled);
        driver.settle(&exchange);
        let too_late = (ExecType::CancelRejected, OrdStatus::Rejected);
        assert_eq!(driver.story(1), [NEW, (ExecType::Trade, OrdStatus::Filled), too_late]);
        assert_eq!(exchange.of_method("order.status").len(), usize::from(!event_first));
    }
}

#[test]
fn of_two_cancels_each_is_answered() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
        driver.send(1, &cancel(2, 1));
        driver.send(2, &cancel(3, 1));
        let second = driver.until_request(&exchange, "order.cancel", 2);
        let first = exchange.of_method("order.cancel").swap_remove(0);
        if event_first {
            exchange.send(&EventFrame::new(&text, 77).canceled(&renamed(&text, 'c'), "0").text());
        }
        exchange.answer(&first, json!({ "executedQty": "0" }));
        exchange.refuse(&second, 400, -2011, "Unknown order sent.");
        let report = driver.until_report(1, ExecType::CancelRejected);
        assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 3));
        assert_eq!(driver.report(1, ExecType::Canceled).expect("a cancel").client_order_id.0, 2);
    }
}

#[test]
fn a_cancel_of_an_ended_order_is_too_late_at_once() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = driver.place(&exchange, 0, &buy(1), 77).param("newClientOrderId");
    exchange.send(&EventFrame::new(&text, 77).trade(4, "0.5", "0.5", "FILLED").text());
    driver.until_report(1, ExecType::Trade);
    driver.send(1, &cancel(2, 1));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
    driver.until_acknowledged(2);
    assert_eq!(exchange.of_method("order.cancel").len(), 0);
}

#[test]
fn a_cancel_with_an_open_outcome_puts_the_order_in_doubt() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    exchange.reply("order.cancel", Reply::refused(408, -1007, "Timeout."));
    driver.send(1, &cancel(2, 1));
    driver.until_acknowledged(2);
    driver.settle(&exchange);
    assert_eq!(driver.story(1), [NEW, IN_DOUBT]);
    assert_eq!(exchange.of_method("order.cancel").len(), 1);
}

#[test]
fn the_times_of_the_last_request_are_in_their_order() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    assert_eq!(driver.line.last_send().written, 0);
    driver.send(0, &Request::New(buy(1)));
    let first = driver.line.last_send();
    driver.send(1, &cancel(2, 1));
    let second = driver.line.last_send();
    assert!(0 < first.encoded && first.encoded <= first.written, "{first:?}");
    assert!(first.written <= second.encoded && second.encoded <= second.written, "{second:?}");
}
