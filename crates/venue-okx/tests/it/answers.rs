//! OKX's answers to requests: proof of receipt, refusals, and answers that leave the effect open.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Request, Side};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};
use tickpath_venue_okx::OTHER_CODE;

use crate::harness::{LineUnderTest, cancel, essence, new_order, replace};
use crate::rows::OrderRow;

/// Sends a request, which is answered with this code, and returns its report without the quantities.
fn refuse(request: &Request, code: &'static str) -> (ExecType, OrdStatus, u64, u64, u16) {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = Some((code, "the reason of OKX"));
    test.send(0, request);
    let report = test.wait_for_reports(1)[0];
    test.wait_until("receipt is proven", |test| test.acknowledged() == 1);
    let detail = test.details()[0];
    assert!(detail.text.starts_with(b"the reason of OKX\0"), "{detail:?}");
    assert_eq!(
        (detail.venue_received_ns, detail.venue_sent_ns),
        (1_695_190_491_421_339_000, 1_695_190_491_423_240_000)
    );
    let (exec_type, status, order, id, reason, ..) = essence(&report);
    (exec_type, status, order, id, reason)
}

#[test]
fn refusals_become_reports_with_reasons_of_their_own() {
    let new = Request::New(new_order(1));
    let (rejected, cancel_rejected) = (ExecType::Rejected, ExecType::CancelRejected);
    for (request, code, exec_type, id, reason) in [
        (new, "51008", rejected, 1, 1008),
        (new, "51121", rejected, 1, 1121),
        (new, "50011", rejected, 1, 10011),
        (new, "50061", rejected, 1, 10061),
        (new, "51603", rejected, 1, 1603),
        (cancel(2, 1), "51400", cancel_rejected, 2, TOO_LATE),
        (cancel(2, 1), "51405", cancel_rejected, 2, TOO_LATE),
        (cancel(2, 1), "51603", cancel_rejected, 2, UNKNOWN_ORDER),
        (cancel(2, 1), "51001", cancel_rejected, 2, UNKNOWN_ORDER),
        // The order keeps working.
        (cancel(2, 1), "51404", cancel_rejected, 2, 1404),
        (cancel(2, 1), "50011", cancel_rejected, 2, 10011),
        (replace(3, 1), "51503", cancel_rejected, 3, TOO_LATE),
        (replace(3, 1), "51510", cancel_rejected, 3, TOO_LATE),
        (replace(3, 1), "51603", cancel_rejected, 3, UNKNOWN_ORDER),
        (replace(3, 1), "51511", cancel_rejected, 3, 1511),
    ] {
        assert_eq!(refuse(&request, code), (exec_type, OrdStatus::Rejected, 1, id, reason), "{code}");
    }
}

#[test]
fn ambiguous_answers_put_the_order_in_doubt_and_are_not_sent_again() {
    let in_doubt = (ExecType::OrderStatus, OrdStatus::Unknown);
    let new = Request::New(new_order(1));
    for (request, code, id, reason) in [
        (new, "50001", 1, 10001),
        (new, "50004", 1, 10004),
        (new, "50013", 1, 10013),
        (new, "50026", 1, 10026),
        (new, "51149", 1, 1149),
        (new, "51016", 1, 1016),
        (new, "1", 1, OTHER_CODE),
        (cancel(2, 1), "50004", 2, 10004),
        (replace(3, 1), "51149", 3, 1149),
    ] {
        assert_eq!(refuse(&request, code), (in_doubt.0, in_doubt.1, 1, id, reason), "{code}");
    }
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = Some(("50004", "timed out"));
    test.send(0, &new);
    test.wait_for_reports(1);
    for _ in 0..1_000 {
        test.turn();
    }
    assert_eq!((test.okx.requests().len(), test.reports().len()), (1, 1), "nothing is sent or reported again");
}

#[test]
fn an_accepted_request_is_proven_and_reported_by_the_orders_channel_alone() {
    let mut test = LineUnderTest::connected();
    for (number, request) in (0..).zip([Request::New(new_order(1)), replace(2, 1), cancel(3, 1)]) {
        test.send(number, &request);
        test.wait_until("receipt is proven", |test| test.acknowledged() == number + 1);
    }
    assert!(test.reports().is_empty(), "OKX has taken the requests, and they have no effect yet");
}

#[test]
fn answers_out_of_order_prove_what_lies_below_the_lowest_request_without_one() {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = None;
    for number in [4, 5, 9] {
        test.send(number, &Request::New(new_order(number)));
    }
    test.okx.answer_request("9", "order", "0", "");
    test.okx.answer_request("4", "order", "0", "");
    test.wait_until("the first is proven", |test| test.acknowledged() == 5);
    test.okx.answer_request("4", "order", "51008", "an answer that comes twice");
    test.okx.answer_request("77", "order", "51008", "an answer to another request");
    test.okx.answer_request("5", "order", "0", "");
    test.wait_until("all are proven", |test| test.acknowledged() == 10);
    assert!(test.reports().is_empty(), "{:?}", test.reports());
}

#[test]
fn requests_that_okx_could_not_read_are_refused() {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = None;
    test.send(0, &Request::New(new_order(1)));
    let times = r#""inTime":"1695190491421339","outTime":"1695190491423240""#;
    test.okx.send(&format!(r#"{{"id":"0","op":"order","data":[],"code":"60013","msg":"Invalid args",{times}}}"#));
    test.send(1, &cancel(2, 1));
    test.okx.send(r#"{"id":"1","event":"error","code":"60012","msg":"Invalid request","connId":"a"}"#);
    let reports = test.wait_for_reports(2);
    let [first, second] = [essence(&reports[0]), essence(&reports[1])];
    assert_eq!((first.0, first.3, first.4), (ExecType::Rejected, 1, 20013));
    assert_eq!((second.0, second.3, second.4), (ExecType::CancelRejected, 2, 20012));
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn a_refused_cancel_of_a_known_order_has_its_side() {
    let mut test = LineUnderTest::connected();
    test.okx.send(&OrderRow::live(1).with("side", "sell").push());
    test.wait_for_reports(1);
    test.okx.script().answer = Some(("51400", ""));
    test.send(0, &cancel(2, 1));
    assert_eq!(test.wait_for_reports(2)[1].side, Side::Sell.code());
}

/// Waits until all that was sent is read, and returns the reports about order 1.
fn reports_about_order_1(test: &mut LineUnderTest) -> Vec<ExecutionReport> {
    test.okx.send(&OrderRow::live(9).push());
    test.wait_until("the last row is read", |test| test.reports().iter().any(|report| report.order_id.0 == 9));
    test.reports().into_iter().filter(|report| report.order_id.0 == 1).collect()
}

#[test]
fn a_change_that_loses_against_the_last_fill_is_rejected_once() {
    let filled = OrderRow::live(1).filled(5, "2", "2");
    let failed = filled.clone().with("reqId", "0000000000000002").with("amendResult", "-1").with("code", "51503");
    for request in [cancel(2, 1), replace(2, 1)] {
        for (code, is_answered_first) in [("0", true), ("0", false), ("51400", false)] {
            let mut test = LineUnderTest::connected();
            test.send(0, &Request::New(new_order(1)));
            test.wait_until("the order is accepted", |test| test.acknowledged() == 1);
            test.okx.script().answer = None;
            test.send(1, &request);
            if is_answered_first {
                test.okx.answer_request("1", "cancel-order", code, "");
            }
            test.okx.send(&filled.push());
            if !is_answered_first {
                test.okx.answer_request("1", "cancel-order", code, "");
            }
            test.wait_until("the change is answered", |test| test.acknowledged() == 2);
            if matches!(request, Request::Replace(_)) {
                // The failure of an amendment may also be a row.
                test.okx.send(&failed.push());
            }
            let reports = reports_about_order_1(&mut test);
            let answers: Vec<_> = reports.iter().filter(|report| report.client_order_id.0 == 2).map(essence).collect();
            let found: Vec<_> = answers.iter().map(|answer| (answer.0, answer.4)).collect();
            assert_eq!(found, [(ExecType::CancelRejected, TOO_LATE)], "{request:?}, {code}, {is_answered_first}");
            assert_eq!(reports.len(), 2, "the other one is the fill: {reports:?}");
        }
    }
}

#[test]
fn the_end_of_an_order_with_an_open_rest_answers_its_requests() {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = None;
    test.send(0, &cancel(2, 1));
    test.okx.send(&OrderRow::live(1).canceled("20").push());
    test.okx.answer_request("0", "cancel-order", "51401", "canceled already");
    test.wait_until("the cancel is answered", |test| test.acknowledged() == 1);
    let reports = reports_about_order_1(&mut test);
    assert_eq!(reports.iter().map(|report| essence(report).0).collect::<Vec<_>>(), [ExecType::Canceled]);
}

#[test]
fn a_cancel_that_was_refused_is_not_answered_by_a_later_cancel_of_another_program() {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = Some(("50011", "too many requests"));
    test.send(0, &cancel(2, 1));
    assert_eq!(essence(&test.wait_for_reports(1)[0]).3, 2);
    test.okx.send(&OrderRow::live(1).canceled("1").push());
    let end = essence(&test.wait_for_reports(2)[1]);
    assert_eq!((end.0, end.3), (ExecType::Canceled, 0));
}

#[test]
fn a_request_without_an_answer_ends_the_connection() {
    let mut test = LineUnderTest::new(|config| config.answer_ns = 1_000_000_000);
    test.connect(0);
    test.okx.script().answer = None;
    test.send(7, &Request::New(new_order(1)));
    assert_eq!(test.wait_for_loss(), "OKX has not answered request 7 for 1000 ms; connect again");
}
