//! Fills that OKX has reported in sum only: each becomes a report, however late OKX lists it.

use tickpath_market::{ExecType, OrdStatus};

use crate::harness::{LineUnderTest, essence, status};
use crate::rows::{OrderRow, fill_row, rest_rows};

/// Path of the fills of order 1, and of those in the list of three months.
const FILLS: &str = "/api/v5/trade/fills?instType=SPOT&ordId=1000001&";
const HISTORY: &str = "/api/v5/trade/fills-history?instType=SPOT&ordId=1000001&";

/// Returns a line that is up, and asks for missing fills after a short pause.
fn connected() -> LineUnderTest {
    let mut test = LineUnderTest::new(|config| config.fills_pause_ns = 10_000_000);
    test.connect(0);
    test
}

/// Returns a filled order 1 of whose total of 2 the row reports no fill.
fn filled() -> OrderRow {
    OrderRow::live(1).with("state", "filled").with("accFillSz", "2")
}

/// Waits for so many fills in all, and returns the numbers of their trades.
fn wait_for_trades(test: &mut LineUnderTest, count: usize) -> Vec<u64> {
    let trades = |test: &LineUnderTest| -> Vec<u64> {
        let fills = test.reports().into_iter().filter(|report| report.exec_type == ExecType::Trade.code());
        fills.map(|report| report.exec_id.0 & 0xff_ffff_ffff).collect()
    };
    test.wait_until("the fills are reported", |test| trades(test).len() >= count);
    trades(test)
}

#[test]
fn a_fill_that_okx_lists_late_is_reported_after_the_order_was_put_in_doubt() {
    let mut test = connected();
    test.okx.send(&OrderRow::live(1).filled(11, "0.5", "2").push());
    let doubt = essence(&test.wait_for_reports(2)[1]);
    assert_eq!((doubt.0, doubt.1, doubt.2, doubt.3), (ExecType::OrderStatus, OrdStatus::Unknown, 1, 0));
    test.okx.answer_rest(FILLS, &rest_rows(&[fill_row(1, 11, "0.5"), fill_row(1, 10, "1.5")]));
    assert_eq!(wait_for_trades(&mut test, 2), [11, 10]);
    assert_eq!(test.reports().len(), 3, "the order is put in doubt once: {:?}", test.reports());
}

#[test]
fn a_fill_that_okx_lists_after_the_answer_to_a_status_request_is_reported() {
    let mut test = connected();
    test.okx.answer_rest("/api/v5/trade/order?", &rest_rows(&[filled().json()]));
    test.ask(0, &status(7, 1));
    let answer = essence(&test.wait_for_reports(1)[0]);
    assert_eq!((answer.0, answer.1, answer.3), (ExecType::OrderStatus, OrdStatus::Filled, 7));
    test.okx.answer_rest(FILLS, &rest_rows(&[fill_row(1, 10, "2")]));
    assert_eq!(wait_for_trades(&mut test, 1), [10]);
}

#[test]
fn a_fill_that_the_list_of_three_days_lacks_is_found_in_that_of_three_months() {
    let mut test = connected();
    test.okx.answer_rest(HISTORY, &rest_rows(&[fill_row(1, 11, "1.5"), fill_row(1, 10, "0.5")]));
    test.okx.send(&filled().push());
    assert_eq!(wait_for_trades(&mut test, 2), [10, 11]);
}

#[test]
fn a_fill_that_is_missing_when_the_line_is_lost_is_asked_for_after_the_reconnect() {
    let mut test = connected();
    test.okx.send(&OrderRow::live(1).filled(11, "0.5", "2").push());
    test.wait_for_reports(1);
    test.okx.cut();
    test.wait_for_loss();
    // The list of the fills since the loss lacks it: it is older.
    test.okx.answer_rest(FILLS, &rest_rows(&[fill_row(1, 11, "0.5"), fill_row(1, 10, "1.5")]));
    test.connect(0);
    assert_eq!(wait_for_trades(&mut test, 2), [11, 10]);
}

#[test]
fn fills_that_the_list_of_open_orders_implies_are_asked_for() {
    let mut test = LineUnderTest::new(|config| config.fills_pause_ns = 10_000_000);
    let partly = OrderRow::live(1).filled(11, "0.5", "1");
    test.okx.answer_rest("/api/v5/trade/orders-pending", &rest_rows(&[partly.json()]));
    test.okx.answer_rest(FILLS, &rest_rows(&[fill_row(1, 11, "0.5"), fill_row(1, 10, "0.5")]));
    test.connect(0);
    assert_eq!(wait_for_trades(&mut test, 2), [10, 11]);
}
