//! Replaces: amendments, cancel and new order in one request or in two, and what may fail in between.

use serde_json::{Value, json};
use tickpath_market::{ExecType, OrdStatus, Price};
use tickpath_venue::TOO_LATE;
use tickpath_venue_binance::{BinanceLineConfig, REFUSED_BY_LINE};

use crate::driver::{Driver, Seen, buy, cancel, config, placed, replace, status};
use crate::exchange::{Received, Reply, ScriptedExchange};
use crate::frames::{EventFrame, record, renamed, text_of};

const NEW: (ExecType, OrdStatus) = (ExecType::New, OrdStatus::New);
const REPLACED: (ExecType, OrdStatus) = (ExecType::Replaced, OrdStatus::New);
const CANCELED: (ExecType, OrdStatus) = (ExecType::Canceled, OrdStatus::Canceled);
const IN_DOUBT: (ExecType, OrdStatus) = (ExecType::OrderStatus, OrdStatus::Unknown);

/// Places order 1 as 77, and asks for another price by request 2. Returns the request to the exchange.
fn swap(exchange: &ScriptedExchange) -> (Driver, Received) {
    let (recv_window_ms, absence_margin_ns) = (1, 0);
    let mut driver = Driver::new(BinanceLineConfig { recv_window_ms, absence_margin_ns, ..config(exchange) });
    driver.connect();
    driver.place(exchange, 0, &buy(1), 77);
    driver.send(1, &replace(2, 1, 61_000, 60_000_000));
    let request = driver.until_request(exchange, "order.cancelReplace", 1);
    assert_eq!((request.param("price"), request.param("quantity")), ("61000".into(), "0.6".into()));
    (driver, request)
}

/// Places order 1 as 77 with a fill of 0.2, and asks for a total of 0.6 by request 2. Returns the first request.
fn two_steps(exchange: &ScriptedExchange) -> (Driver, Received) {
    let mut driver = Driver::connected(exchange);
    driver.place(exchange, 0, &buy(1), 77);
    exchange.send(&accepted().trade(4, "0.2", "0.2", "PARTIALLY_FILLED").text());
    driver.until_report(1, ExecType::Trade);
    driver.send(1, &replace(2, 1, 60_000, 60_000_000));
    let request = driver.until_request(exchange, "order.cancel", 1);
    assert_eq!(request.param("newClientOrderId"), renamed(&text_of(1), 'r'));
    (driver, request)
}

fn accepted() -> EventFrame {
    EventFrame::new(&text_of(1), 77)
}

/// Returns the acceptance of the first replacement.
fn replacement() -> EventFrame {
    let (quantity, price) = ("0.60000000", "61000.00000000");
    EventFrame { quantity, price, ..EventFrame::new(&format!("{}-1-0", text_of(1)), 78) }
}

/// Returns an error of a cancel and new order in one request.
fn partial(code: i64, cancel_result: &str, cancel: Value, placed: Value) -> Value {
    json!({ "code": code, "msg": "Order cancel-replace failed.", "data": {
        "cancelResult": cancel_result, "newOrderResult": "FAILURE", "cancelResponse": cancel, "newOrderResponse": placed,
    } })
}

fn refuse(exchange: &ScriptedExchange, request: &Received, status: u64, error: Value) {
    exchange.send(&json!({ "id": request.json["id"], "status": status, "error": error }).to_string());
}

#[test]
fn a_lower_total_at_the_same_price_is_an_amendment_reported_once_by_answer_or_event() {
    for event_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::connected(&exchange);
        driver.place(&exchange, 0, &buy(1), 77);
        driver.send(1, &replace(2, 1, 60_000, 40_000_000));
        let request = driver.until_request(&exchange, "order.amend.keepPriority", 1);
        let event = EventFrame { kind: "REPLACED", quantity: "0.40000000", execution_id: 16, ..accepted() }.text();
        let answer = json!({ "transactTime": 1, "executionId": 16, "amendedOrder": { "qty": "0.40000000" } });
        if event_first {
            exchange.send(&event);
            exchange.answer(&request, answer);
        } else {
            exchange.answer(&request, answer);
            exchange.send(&event);
        }
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW, REPLACED]);
        let report = driver.report(1, ExecType::Replaced).expect("an amendment");
        assert_eq!((report.client_order_id.0, report.leaves_quantity.0), (2, 40_000_000));
        driver.until_acknowledged(2);
    }
}

#[test]
fn a_refused_amendment_leaves_the_order_as_it_was() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    exchange.reply("order.amend.keepPriority", Reply::refused(400, -2038, "Not allowed."));
    driver.send(1, &replace(2, 1, 60_000, 40_000_000));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0, report.leaves_quantity.0), (2038, 2, 50_000_000));
    driver.until_acknowledged(2);
}

#[test]
fn another_price_is_a_new_generation_of_the_same_order() {
    for events_first in [false, true] {
        let exchange = ScriptedExchange::start();
        let (mut driver, request) = swap(&exchange);
        let answer = json!({ "cancelResult": "SUCCESS", "newOrderResponse": placed(&request, 78) });
        let canceled = accepted().canceled(&renamed(&text_of(1), 'r'), "0").text();
        if events_first {
            exchange.send(&canceled);
            exchange.send(&replacement().text());
            exchange.answer(&request, answer);
        } else {
            exchange.answer(&request, answer);
            exchange.send(&canceled);
            exchange.send(&replacement().text());
        }
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW, REPLACED]);
        let report = driver.report(1, ExecType::Replaced).expect("a replacement");
        assert_eq!((report.client_order_id.0, report.venue_order_id.0, report.order_id.0), (2, 78, 1));
        assert_eq!((report.price, report.leaves_quantity.0), (Price::from_whole(61_000), 60_000_000));
        // A cancel now names the new generation.
        driver.send(2, &cancel(3, 1));
        assert_eq!(driver.until_request(&exchange, "order.cancel", 1).param("orderId"), "78");
    }
}

#[test]
fn a_replacement_that_trades_at_once_is_replaced_first() {
    let exchange = ScriptedExchange::start();
    let (mut driver, _) = swap(&exchange);
    exchange.send(&replacement().trade(5, "0.6", "0.6", "FILLED").text());
    driver.settle(&exchange);
    assert_eq!(driver.story(1), [NEW, REPLACED, (ExecType::Trade, OrdStatus::Filled)]);
}

#[test]
fn a_replace_that_was_not_attempted_is_refused() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = swap(&exchange);
    let restricted = json!({ "code": -2011, "msg": "Order was not canceled due to cancel restrictions." });
    refuse(&exchange, &request, 400, partial(-2022, "FAILURE", restricted, Value::Null));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0, report.status), (2011, 2, OrdStatus::New.code()));

    // The generation was not used up.
    driver.until_acknowledged(2);
    driver.send(2, &replace(3, 1, 62_000, 60_000_000));
    let again = driver.until_request(&exchange, "order.cancelReplace", 2);
    assert_eq!(again.param("newClientOrderId"), request.param("newClientOrderId"));
    refuse(&exchange, &again, 400, json!({ "code": -1013, "msg": "Filter failure: PERCENT_PRICE_BY_SIDE" }));
    driver.until_acknowledged(3);
    assert_eq!(driver.report(1, ExecType::CancelRejected).expect("a refusal").reason, 1013);
}

#[test]
fn a_replace_of_an_unknown_order_is_refused_after_its_status() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = swap(&exchange);
    exchange.reply("order.status", Reply::Ok(record(&text_of(1), 77, "EXPIRED", "0")));
    let unknown = json!({ "code": -2011, "msg": "Unknown order sent." });
    refuse(&exchange, &request, 400, partial(-2022, "FAILURE", unknown, Value::Null));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
}

#[test]
fn a_cancel_without_its_new_order_is_a_cancel() {
    for by_event in [false, true] {
        let exchange = ScriptedExchange::start();
        let (mut driver, request) = swap(&exchange);
        exchange.send(&accepted().canceled(&renamed(&text_of(1), 'r'), "0").text());
        let reason = "INSUFFICIENT_BALANCES";
        let rejected = EventFrame { kind: "REJECTED", state: "REJECTED", reason, ..replacement() };
        if by_event {
            exchange.send(&rejected.text());
        }
        let funds = json!({ "code": -2010, "msg": "Account has insufficient balance." });
        refuse(&exchange, &request, 409, partial(-2021, "SUCCESS", json!({ "executedQty": "0" }), funds));
        if !by_event {
            exchange.send(&rejected.text());
        }
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW, CANCELED]);
        let report = driver.report(1, ExecType::Canceled).expect("a cancel");
        assert_eq!((report.client_order_id.0, report.leaves_quantity.0), (2, 0));
        assert_eq!(report.reason, if by_event { 0 } else { 2010 });
        let text = if by_event { "INSUFFICIENT_BALANCES" } else { "Account has insufficient balance." };
        assert_eq!(driver.text(1), text);
    }
}

#[test]
fn a_replace_with_an_open_outcome_is_settled_by_the_status() {
    let absent = Reply::refused(400, -2013, "Order does not exist.");
    let text = text_of(1);
    let successor = format!("{text}-1-0");
    let gone = || Reply::Ok(record(&renamed(&text, 'r'), 77, "CANCELED", "0"));
    // The answers to the questions: the order by its id, then the texts of the next generation.
    for (replies, last) in [
        (vec![gone(), Reply::Ok(record(&successor, 78, "NEW", "0"))], (OrdStatus::New, 78)),
        ([vec![gone()], vec![absent; 30]].concat(), (OrdStatus::Canceled, 77)),
        (vec![Reply::Ok(record(&text, 77, "NEW", "0")); 10], (OrdStatus::New, 77)),
        // The exchange may leave the text of a canceled order as it was.
        (
            vec![Reply::Ok(record(&text, 77, "CANCELED", "0")), Reply::Ok(record(&successor, 78, "FILLED", "0"))],
            (OrdStatus::Filled, 78),
        ),
    ] {
        let exchange = ScriptedExchange::start();
        let (mut driver, request) = swap(&exchange);
        exchange.refuse(&request, 408, -1007, "Timeout.");
        driver.until_acknowledged(2);
        driver.settle(&exchange);
        assert_eq!(driver.story(1), [NEW, IN_DOUBT]);
        replies.into_iter().for_each(|reply| exchange.reply("order.status", reply));
        driver.send(2, &status(9, 1, 0));
        driver.until("an answer", |driver| driver.reports().iter().any(|report| report.client_order_id.0 == 9));
        let report = driver.report(1, ExecType::OrderStatus).expect("a status");
        assert_eq!((OrdStatus::from_code(report.status), report.venue_order_id.0), (Some(last.0), last.1));
        assert_eq!(exchange.of_method("order.cancelReplace").len(), 1, "nothing is sent again");
    }
}

#[test]
fn an_order_with_fills_is_canceled_first_and_placed_with_the_quantity_that_is_left() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = two_steps(&exchange);
    // Another 0.1 is filled before the cancel.
    exchange.send(&accepted().trade(5, "0.1", "0.3", "PARTIALLY_FILLED").text());
    exchange.send(&accepted().canceled(&renamed(&text_of(1), 'r'), "0.3").text());
    exchange.answer(&request, json!({ "executedQty": "0.30000000" }));
    let second = driver.until_request(&exchange, "order.place", 2);
    assert_eq!((second.param("quantity"), second.param("price")), ("0.3".into(), "60000".into()));
    exchange.answer(&second, placed(&second, 78));
    let report = driver.until_report(1, ExecType::Replaced);
    assert_eq!((report.client_order_id.0, report.venue_order_id.0), (2, 78));
    assert_eq!((report.cumulative_quantity.0, report.leaves_quantity.0), (30_000_000, 30_000_000));

    let filled = EventFrame { quantity: "0.3", ..EventFrame::new(&second.param("newClientOrderId"), 78) };
    exchange.send(&filled.trade(6, "0.3", "0.3", "FILLED").text());
    driver.settle(&exchange);
    let report = driver.report(1, ExecType::Trade).expect("a fill");
    assert_eq!((report.cumulative_quantity.0, report.status), (60_000_000, OrdStatus::Filled.code()));
    driver.until_acknowledged(2);
}

#[test]
fn a_total_that_is_filled_by_then_leaves_nothing_to_place() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    exchange.send(&accepted().trade(4, "0.2", "0.2", "PARTIALLY_FILLED").text());
    driver.until_report(1, ExecType::Trade);
    driver.send(1, &replace(2, 1, 61_000, 30_000_000));
    let request = driver.until_request(&exchange, "order.cancel", 1);
    exchange.send(&accepted().trade(5, "0.1", "0.3", "PARTIALLY_FILLED").text());
    exchange.answer(&request, json!({ "executedQty": "0.3" }));
    exchange.send(&accepted().canceled(&renamed(&text_of(1), 'r'), "0.3").text());
    driver.settle(&exchange);
    let report = driver.report(1, ExecType::Replaced).expect("a replacement");
    assert_eq!((report.status, report.leaves_quantity.0), (OrdStatus::Filled.code(), 0));
    assert_eq!((report.cumulative_quantity.0, report.client_order_id.0), (30_000_000, 2));
    assert_eq!(driver.story(1).last(), Some(&(ExecType::Replaced, OrdStatus::Filled)));
    assert_eq!(exchange.of_method("order.place").len(), 1);
}

#[test]
fn a_refused_second_step_leaves_the_order_canceled_with_its_fills() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = two_steps(&exchange);
    exchange.reply("order.place", Reply::refused(400, -2010, "Account has insufficient balance."));
    exchange.answer(&request, json!({ "executedQty": "0.2" }));
    let report = driver.until_report(1, ExecType::Canceled);
    assert_eq!((report.client_order_id.0, report.reason), (2, 2010));
    assert_eq!((report.cumulative_quantity.0, report.leaves_quantity.0), (20_000_000, 0));
}

#[test]
fn a_replace_that_loses_against_the_last_fill_is_too_late_whatever_its_answer() {
    for (price, quantity) in [(61_000, 60_000_000), (60_000, 40_000_000)] {
        for code in [-2011, -1007] {
            let exchange = ScriptedExchange::start();
            let mut driver = Driver::connected(&exchange);
            driver.place(&exchange, 0, &buy(1), 77);
            driver.send(1, &replace(2, 1, price, quantity));
            let method = if price == 60_000 { "order.amend.keepPriority" } else { "order.cancelReplace" };
            let request = driver.until_request(&exchange, method, 1);
            exchange.send(&accepted().trade(4, "0.5", "0.5", "FILLED").text());
            exchange.refuse(&request, 400, code, "Unknown order sent.");
            driver.until_acknowledged(2);
            driver.settle(&exchange);
            let too_late = (ExecType::CancelRejected, OrdStatus::Rejected);
            assert_eq!(driver.story(1), [NEW, (ExecType::Trade, OrdStatus::Filled), too_late], "{method} {code}");
            let report = driver.report(1, ExecType::CancelRejected).expect("an answer");
            assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 2));
        }
    }
}

#[test]
fn a_replace_in_two_steps_that_loses_against_the_last_fill_is_too_late() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = two_steps(&exchange);
    exchange.send(&accepted().trade(5, "0.3", "0.5", "FILLED").text());
    exchange.refuse(&request, 400, -2011, "Unknown order sent.");
    driver.until_acknowledged(2);
    driver.settle(&exchange);
    assert_eq!(driver.story(1).last(), Some(&(ExecType::CancelRejected, OrdStatus::Rejected)));
    let answers = driver.reports().into_iter().filter(|report| report.client_order_id.0 == 2);
    assert_eq!(answers.map(|report| report.reason).collect::<Vec<_>>(), [TOO_LATE]);
    assert_eq!(exchange.of_method("order.place").len(), 1);
}

/// Lets a replace end in doubt while cancel 3 waits for it, and answers the cancel's question for the order with these
/// states. Returns the line once the cancel is answered.
fn cancel_behind_a_doubtful_replace(exchange: &ScriptedExchange, states: Vec<Reply>) -> Driver {
    let (mut driver, request) = swap(exchange);
    driver.send(2, &cancel(3, 1));
    exchange.reply("order.cancel", Reply::refused(400, -2011, "Unknown order sent."));
    states.into_iter().for_each(|reply| exchange.reply("order.status", reply));
    exchange.refuse(&request, 408, -1007, "Timeout.");
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!(report.client_order_id.0, 3);
    driver.until_acknowledged(3);
    let canceled = exchange.of_method("order.cancel");
    assert_eq!(canceled.iter().map(|request| request.param("orderId")).collect::<Vec<_>>(), ["77"]);
    driver
}

#[test]
fn a_replace_in_doubt_and_a_cancel_that_waited_for_it_are_both_answered() {
    let exchange = ScriptedExchange::start();
    let gone = record(&renamed(&text_of(1), 'r'), 77, "CANCELED", "0");
    let successor = record(&format!("{}-1-0", text_of(1)), 78, "NEW", "0");
    let mut driver = cancel_behind_a_doubtful_replace(&exchange, vec![Reply::Ok(gone), Reply::Ok(successor)]);
    // The event comes behind the answer that shows the same.
    exchange.send(&replacement().text());
    driver.settle(&exchange);
    assert_eq!(driver.story(1), [NEW, IN_DOUBT, REPLACED, (ExecType::CancelRejected, OrdStatus::New)]);
    let replaced = driver.report(1, ExecType::Replaced).expect("an answer");
    assert_eq!((replaced.client_order_id.0, replaced.venue_order_id.0), (2, 78));
    assert_eq!(driver.report(1, ExecType::CancelRejected).expect("an answer").reason, 2011);
    assert_eq!(exchange.of_method("order.cancelReplace").len(), 1, "nothing is sent again");
    driver.send(3, &cancel(4, 1));
    assert_eq!(driver.until_request(&exchange, "order.cancel", 2).param("orderId"), "78");
}

#[test]
fn a_replacement_that_is_placed_behind_the_orders_end_revives_the_order() {
    let exchange = ScriptedExchange::start();
    let gone = Reply::Ok(record(&renamed(&text_of(1), 'r'), 77, "CANCELED", "0"));
    let absent = Reply::refused(400, -2013, "Order does not exist.");
    let mut driver = cancel_behind_a_doubtful_replace(&exchange, [vec![gone], vec![absent; 10]].concat());
    let too_late = (ExecType::CancelRejected, OrdStatus::Rejected);
    assert_eq!(driver.story(1), [NEW, IN_DOUBT, CANCELED, too_late]);
    exchange.send(&replacement().text());
    driver.settle(&exchange);
    assert_eq!(driver.report(1, ExecType::Replaced).expect("it lives").venue_order_id.0, 78);
    driver.send(3, &cancel(4, 1));
    let sent = driver.until_request(&exchange, "order.cancel", 2);
    assert_eq!(sent.param("orderId"), "78");
    exchange.answer(&sent, json!({ "executedQty": "0" }));
    driver.until_acknowledged(4);
    driver.settle(&exchange);
    let end = driver.report(1, ExecType::Canceled).expect("an end");
    assert_eq!((end.client_order_id.0, end.venue_order_id.0), (4, 78));
    assert_eq!(exchange.of_method("order.cancelReplace").len(), 1, "nothing is sent again");
}

#[test]
fn a_cancel_during_a_replace_waits_for_its_end() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = swap(&exchange);
    driver.send(2, &cancel(3, 1));
    driver.settle(&exchange);
    assert_eq!(exchange.of_method("order.cancel").len(), 0);
    exchange.answer(&request, json!({ "newOrderResponse": placed(&request, 78) }));
    let sent = driver.until_request(&exchange, "order.cancel", 1);
    assert_eq!((sent.param("orderId"), sent.json["id"].as_u64()), ("78".into(), Some(2)));
    exchange.answer(&sent, json!({ "executedQty": "0" }));
    let report = driver.until_report(1, ExecType::Canceled);
    assert_eq!(report.client_order_id.0, 3);
    driver.until_acknowledged(3);
}

#[test]
fn a_cancel_that_waited_for_a_failed_replace_comes_too_late() {
    let exchange = ScriptedExchange::start();
    let (mut driver, request) = swap(&exchange);
    driver.send(2, &cancel(3, 1));
    let funds = json!({ "code": -2010, "msg": "Account has insufficient balance." });
    refuse(&exchange, &request, 409, partial(-2021, "SUCCESS", Value::Null, funds));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0), (TOO_LATE, 3));
    driver.until_acknowledged(3);
    assert_eq!(exchange.of_method("order.cancel").len(), 0);
}

#[test]
fn a_replace_of_an_order_that_the_line_does_not_know_is_refused() {
    let exchange = ScriptedExchange::start();
    exchange.reply("order.status", Reply::Ok(record(&text_of(1), 77, "NEW", "0")));
    let mut driver = Driver::connected(&exchange);
    driver.send(0, &replace(2, 1, 61_000, 50_000_000));
    let report = driver.until_report(1, ExecType::CancelRejected);
    assert_eq!((report.reason, report.client_order_id.0), (REFUSED_BY_LINE, 2));
    driver.until("an acknowledgement", |driver| driver.seen.contains(&Seen::Acknowledged(1)));
    // The status has made the order known.
    driver.send(1, &replace(3, 1, 61_000, 50_000_000));
    assert_eq!(driver.until_request(&exchange, "order.cancelReplace", 1).param("cancelOrderId"), "77");
}
