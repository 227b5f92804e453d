//! Status requests about one order: answered by REST, after the requests before them, and final only when OKX can have
//! no more to come.

use tickpath_market::{
    ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, Price, Request, StatusRequest, SymbolId,
};
use tickpath_venue::{Line, UNKNOWN_ORDER};
use tickpath_venue_okx::UNKNOWN_INSTRUMENT;

use crate::exchange::{NO_ROWS, NO_SUCH_ORDER};
use crate::harness::{LineUnderTest, cancel, essence, new_order, status};
use crate::rows::{OrderRow, fill_row, name, rest_rows};

/// Path of a request for an order's state.
const ORDER: &str = "/api/v5/trade/order?";

/// Asks for order 1 of a line that is up, and returns the reports of the answer.
fn answer(row: &OrderRow, fills: &[String], count: usize) -> Vec<ExecutionReport> {
    let mut test = LineUnderTest::connected();
    test.okx.answer_rest(ORDER, &rest_rows(&[row.json()]));
    test.okx.answer_rest("/api/v5/trade/fills?instType=SPOT&ordId=1000001&", &rest_rows(fills));
    test.ask(0, &status(7, 1));
    let reports = test.wait_for_reports(count);
    let expected = format!("/api/v5/trade/order?instId=BTC-USDT&clOrdId={}", name(1));
    assert_eq!(test.okx.calls(ORDER)[0].target, expected);
    test.wait_until("a status request needs no proof", |test| test.acknowledged() == 1);
    reports
}

#[test]
fn the_state_of_an_order_answers_a_status_request() {
    let ioc = || OrderRow::live(1).with("ordType", "ioc");
    for (row, expected, leaves) in [
        (OrderRow::live(1), OrdStatus::New, "2"),
        (OrderRow::live(1).canceled("1"), OrdStatus::Canceled, "0"),
        (ioc().canceled("14"), OrdStatus::Expired, "0"),
        (OrderRow::live(1).with("state", "mmp_canceled"), OrdStatus::Canceled, "0"),
    ] {
        let report = answer(&row, &[], 1)[0];
        let (exec_type, status, order, id, reason, filled, open) = essence(&report);
        assert_eq!((exec_type, status, order, id, reason), (ExecType::OrderStatus, expected, 1, 7, 0), "{row:?}");
        assert_eq!((filled.as_str(), open.as_str(), report.price.to_string().as_str()), ("0", leaves, "100"));
        assert_eq!((report.venue_order_id.0, report.side, report.venue_sequence), (1_000_001, 1, 0));
    }
}

#[test]
fn fills_that_were_not_reported_come_before_the_status() {
    let row = OrderRow::live(1).filled(11, "1.5", "2");
    let reports = answer(&row, &[fill_row(1, 11, "1.5"), fill_row(1, 10, "0.5")], 3);
    let found: Vec<_> =
        reports.iter().map(essence).map(|(exec, status, .., filled, _)| (exec, status, filled)).collect();
    let quantity = |text: &str| text.to_owned();
    let expected = [
        (ExecType::Trade, OrdStatus::PartiallyFilled, quantity("0.5")),
        (ExecType::Trade, OrdStatus::Filled, quantity("2")),
        (ExecType::OrderStatus, OrdStatus::Filled, quantity("2")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn fills_that_were_reported_are_not_asked_for() {
    let mut test = LineUnderTest::connected();
    let row = OrderRow::live(1).filled(10, "0.5", "0.5");
    test.okx.send(&row.push());
    test.wait_for_reports(1);
    test.okx.answer_rest(ORDER, &rest_rows(&[row.json()]));
    test.ask(0, &status(7, 1));
    let last = test.wait_for_reports(2)[1];
    assert_eq!((essence(&last).0, essence(&last).1), (ExecType::OrderStatus, OrdStatus::PartiallyFilled));
    assert!(test.okx.calls("/api/v5/trade/fills").is_empty());
}

#[test]
fn fills_that_are_asked_for_are_repeated() {
    let mut test = LineUnderTest::connected();
    let row = OrderRow::live(1).filled(10, "0.5", "0.5");
    test.okx.send(&row.push());
    test.wait_for_reports(1);
    test.okx.answer_rest(ORDER, &rest_rows(&[row.json()]));
    test.okx.answer_rest("/api/v5/trade/fills?", &rest_rows(&[fill_row(1, 10, "0.5")]));
    let Request::Status(request) = status(7, 1) else { unreachable!("it is a status request") };
    test.ask(0, &Request::Status(StatusRequest { fills: 1, ..request }));
    let reports = test.wait_for_reports(3);
    assert_eq!(reports[1].exec_id, reports[0].exec_id);
    assert_eq!([essence(&reports[1]).3, essence(&reports[2]).3], [7, 7], "they carry the id of the request");
    let details = test.details();
    assert_eq!(details[0], details[1], "a repeated fill has the same detail");
}

#[test]
fn a_missing_fill_is_waited_for_before_the_status() {
    let mut test = LineUnderTest::connected();
    let row = OrderRow::live(1).filled(10, "2", "2");
    test.okx.answer_rest(ORDER, &rest_rows(&[row.json()]));
    test.ask(0, &status(7, 1));
    test.wait_until("the fills are asked for", |test| !test.okx.calls("/api/v5/trade/fills").is_empty());
    test.okx.answer_rest("/api/v5/trade/fills?", &rest_rows(&[fill_row(1, 10, "2")]));
    let reports = test.wait_for_reports(2);
    assert_eq!([essence(&reports[0]).0, essence(&reports[1]).0], [ExecType::Trade, ExecType::OrderStatus]);
}

/// Sends rows about order 1, and returns the reports of its end once all are read.
fn ends_after(test: &mut LineUnderTest, rows: &[OrderRow]) -> Vec<ExecutionReport> {
    rows.iter().for_each(|row| test.okx.send(&row.push()));
    test.okx.send(&OrderRow::live(9).push());
    test.wait_until("the last row is read", |test| test.reports().iter().any(|report| report.order_id.0 == 9));
    let ends = [ExecType::Canceled, ExecType::Expired].map(ExecType::code);
    test.reports().into_iter().filter(|report| ends.contains(&report.exec_type)).collect()
}

#[test]
fn an_end_that_a_status_shows_first_is_reported_once_by_its_row() {
    let canceled = OrderRow::live(1).canceled("1");
    // A market order with a total of 2 is filled with less.
    let cut = OrderRow::live(1).with("ordType", "market").with("sz", "1.5").filled(5, "1.5", "1.5");
    for (order, end) in [
        (new_order(1), canceled),
        (NewOrder { order_type: OrderType::Market.code(), price: Price::ZERO, ..new_order(1) }, cut),
    ] {
        let mut test = LineUnderTest::connected();
        test.send(0, &Request::New(order));
        test.okx.answer_rest(ORDER, &rest_rows(&[end.json()]));
        test.okx.answer_rest("/api/v5/trade/fills?", &rest_rows(&[fill_row(1, 5, "1.5")]));
        test.ask(1, &status(7, 1));
        test.wait_until("the status is reported", |test| {
            test.reports().iter().any(|report| report.client_order_id.0 == 7)
        });
        let ends = ends_after(&mut test, &[end.clone(), end]);
        assert_eq!(ends.len(), 1, "{:?}", test.reports());
    }
}

#[test]
fn a_status_after_the_end_has_the_end() {
    // From before the end, or from after OKX has forgotten the order.
    for answer in [rest_rows(&[OrderRow::live(1).json()]), NO_SUCH_ORDER.to_owned()] {
        let mut test = LineUnderTest::connected();
        let canceled = OrderRow::live(1).canceled("1");
        test.okx.send(&canceled.push());
        test.wait_for_reports(1);
        test.okx.answer_rest(ORDER, &answer);
        test.ask(0, &status(7, 1));
        let found = essence(&test.wait_for_reports(2)[1]);
        assert_eq!((found.0, found.1, found.3), (ExecType::OrderStatus, OrdStatus::Canceled, 7), "{answer}");
        assert_eq!(ends_after(&mut test, &[canceled]).len(), 1);
    }
}

#[test]
fn an_absent_order_is_final_only_once_its_expiry_is_over() {
    let mut test = LineUnderTest::new(|config| config.valid_ms = 4_000);
    test.connect(0);
    test.ask(0, &status(7, 1));
    let report = test.wait_for_reports(1)[0];
    let (exec_type, status, order, id, reason, ..) = essence(&report);
    assert_eq!((exec_type, status, order, id), (ExecType::OrderStatus, OrdStatus::Rejected, 1, 7));
    assert_eq!((reason, report.venue_sequence, report.side, report.account.0), (UNKNOWN_ORDER, 0, 0, 7));
    assert!(test.okx.calls(ORDER).len() >= 2, "the first absence proves nothing: it could still have arrived");
}

#[test]
fn an_order_that_turns_up_before_its_expiry_is_no_absent_order() {
    let mut test = LineUnderTest::new(|config| config.valid_ms = 1_000);
    test.connect(0);
    test.okx.script().answer = Some(("50004", "timed out"));
    test.send(0, &Request::New(new_order(1)));
    test.wait_for_reports(1);
    test.ask(1, &status(7, 1));
    test.wait_until("the order is asked for", |test| !test.okx.calls(ORDER).is_empty());
    test.okx.answer_rest(ORDER, &rest_rows(&[OrderRow::live(1).json()]));
    let last = test.wait_for_reports(2)[1];
    assert_eq!((essence(&last).0, essence(&last).1), (ExecType::OrderStatus, OrdStatus::New));
    assert_eq!(test.okx.requests().len(), 1, "and the order was not sent again");
}

#[test]
fn a_status_request_waits_until_the_requests_before_it_are_answered() {
    let mut test = LineUnderTest::connected();
    test.okx.send(&OrderRow::live(1).push());
    test.wait_for_reports(1);
    test.okx.script().answer = None;
    test.send(0, &cancel(2, 1));
    test.ask(1, &status(7, 1));
    // A request about another order does not wait.
    test.okx.answer_rest("/api/v5/trade/order?", &rest_rows(&[OrderRow::live(9).json()]));
    test.ask(2, &status(8, 9));
    assert_eq!(test.wait_for_reports(2)[1].order_id.0, 9);
    assert_eq!(test.okx.calls(ORDER).len(), 1);
    test.okx.answer_rest(ORDER, &rest_rows(&[OrderRow::live(1).canceled("1").json()]));
    test.okx.answer_request("0", "cancel-order", "0", "");
    let last = test.wait_for_reports(3)[2];
    assert_eq!((last.order_id.0, essence(&last).1), (1, OrdStatus::Canceled));
}

#[test]
fn open_orders_that_a_connect_has_found_answer_the_first_status_request() {
    let mut test = LineUnderTest::new(|_| {});
    let rows = [OrderRow::live(1).json(), OrderRow::live(2).json(), OrderRow::live(3).with("clOrdId", "b15").json()];
    test.okx.answer_rest("/api/v5/trade/orders-pending", &rest_rows(&rows));
    test.okx.answer_rest(ORDER, &rest_rows(&[OrderRow::live(1).canceled("1").json()]));
    test.connect(0);
    // The row of order 2 is newer than the list.
    test.okx.send(&OrderRow::live(2).push());
    test.wait_for_reports(1);
    test.ask(0, &status(7, 1));
    let found = test.wait_for_reports(2)[1];
    assert_eq!((essence(&found).1, essence(&found).3), (OrdStatus::New, 7));
    assert!(test.okx.calls(ORDER).is_empty(), "the list is new enough");
    test.ask(1, &status(8, 1));
    let found = test.wait_for_reports(3)[2];
    assert_eq!((essence(&found).1, essence(&found).3), (OrdStatus::Canceled, 8), "the next answer is a new one");
    test.ask(2, &status(9, 2));
    test.wait_until("order 2 is asked for", |test| test.okx.calls(ORDER).iter().any(|c| c.target.contains(&name(2))));
}

#[test]
fn lists_of_several_pages_are_read_to_their_end() {
    let mut test = LineUnderTest::new(|_| {});
    let rows = |orders: std::ops::Range<u64>| {
        let rows: Vec<String> = orders.rev().map(|order| OrderRow::live(order).json()).collect();
        rest_rows(&rows)
    };
    test.okx.answer_rest("/api/v5/trade/orders-pending", &rows(101..201));
    test.okx.answer_rest("/api/v5/trade/orders-pending?limit=100&after=1000101", &rows(1..101));
    test.okx.answer_rest("/api/v5/trade/orders-pending?limit=100&after=1000001", NO_ROWS);
    test.connect(0);
    assert_eq!(test.okx.calls("/api/v5/trade/orders-pending").len(), 3);
    (1..201).for_each(|order| test.ask(order, &status(1_000 + order, order)));
    let reports = test.wait_for_reports(200);
    assert!(reports.iter().all(|report| report.client_order_id.0 == 1_000 + report.order_id.0));
    assert!(test.okx.calls(ORDER).is_empty());
}

#[test]
fn questions_about_one_order_that_wait_share_an_answer() {
    let mut test = LineUnderTest::connected();
    test.okx.answer_rest(ORDER, &rest_rows(&[OrderRow::live(1).json()]));
    (0..3).for_each(|number| test.ask(number, &status(7 + number, 1)));
    let ids: Vec<u64> = test.wait_for_reports(3).iter().map(|report| report.client_order_id.0).collect();
    assert_eq!(ids, [7, 8, 9]);
    assert_eq!(test.okx.calls(ORDER).len(), 1);
}

#[test]
fn refusals_of_a_question_leave_the_order_in_doubt_and_failures_are_tried_again() {
    let mut test = LineUnderTest::connected();
    test.okx.script().rest.push((ORDER, 401, r#"{"code":"50113","msg":"Invalid Sign","data":[]}"#.to_owned()));
    test.ask(0, &status(7, 1));
    let refused = test.wait_for_reports(1)[0];
    assert_eq!(
        (essence(&refused).0, essence(&refused).1, essence(&refused).4),
        (ExecType::OrderStatus, OrdStatus::Unknown, 113)
    );
    test.okx.script().rest.push((ORDER, 429, "Too Many Requests".to_owned()));
    test.ask(1, &status(8, 1));
    test.wait_until("the order is asked for", |test| test.okx.calls(ORDER).len() >= 2);
    test.okx.answer_rest(ORDER, &rest_rows(&[OrderRow::live(1).json()]));
    let answered = test.wait_for_reports(2)[1];
    assert_eq!((essence(&answered).1, essence(&answered).3), (OrdStatus::New, 8));
    let elsewhere = StatusRequest { symbol: SymbolId(8), ..StatusRequest::default() };
    test.line.send(2, 0, &Request::Status(elsewhere)).expect("the line is up");
    assert_eq!(essence(&test.wait_for_reports(3)[2]).4, UNKNOWN_INSTRUMENT);
}

#[test]
fn rest_that_fails_again_and_again_ends_the_connection() {
    let mut test = LineUnderTest::connected();
    test.okx.script().rest.push((ORDER, 503, "<html>".to_owned()));
    test.ask(0, &status(7, 1));
    let expected =
        "8 requests to OKX's REST interface have failed, the last one: status 503 without an answer of OKX's form";
    assert_eq!(test.wait_for_loss(), expected);
}
