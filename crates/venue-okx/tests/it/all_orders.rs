//! The status of all orders: fills and states of each, and a report that ends the answer.

use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, OrdStatus, Request, StatusRequest};

use crate::harness::{LineUnderTest, essence};
use crate::rows::{OrderRow, fill_row, rest_rows};

fn all(id: u64) -> Request {
    Request::Status(StatusRequest { client_order_id: ClientOrderId(id), fills: 1, ..StatusRequest::default() })
}

fn wait_for_end(test: &mut LineUnderTest) -> Vec<ExecutionReport> {
    test.wait_until("the answer has ended", |test| test.reports().iter().any(ExecutionReport::ends_status_answer));
    test.reports()
}

#[test]
fn each_order_is_answered_with_its_fills_and_its_status() {
    let mut test = LineUnderTest::connected();
    // An order that ended without a fill, as the line knows it.
    test.okx.send(&OrderRow::live(4).canceled("1").push());
    test.wait_for_reports(1);
    let partly = OrderRow::live(1).filled(11, "0.5", "0.5");
    let foreign = OrderRow::live(9).with("clOrdId", "b15");
    test.okx.answer_rest(
        "/api/v5/trade/orders-pending",
        &rest_rows(&[partly.json(), OrderRow::live(2).json(), foreign.json()]),
    );
    let ended = OrderRow::live(3).filled(21, "2", "2");
    test.okx.answer_rest("/api/v5/trade/order?", &rest_rows(&[ended.json()]));
    test.okx.answer_rest(
        "/api/v5/trade/fills?begin=",
        &rest_rows(&[fill_row(3, 21, "1.5"), fill_row(1, 11, "0.5"), fill_row(3, 20, "0.5")]),
    );
    test.events.clear();
    test.ask(0, &all(50));
    let reports = wait_for_end(&mut test);
    assert!(reports.iter().all(|report| report.client_order_id.0 == 50), "each carries the id of the request");
    let found = |order: u64| -> Vec<(ExecType, OrdStatus, String)> {
        let of_order = reports.iter().filter(|report| report.order_id.0 == order).map(essence);
        of_order.map(|(exec, status, .., filled, _)| (exec, status, filled)).collect()
    };
    let row = |exec, status, filled: &str| (exec, status, filled.to_owned());
    let (trade, status) = (ExecType::Trade, ExecType::OrderStatus);
    assert_eq!(
        found(1),
        [row(trade, OrdStatus::PartiallyFilled, "0.5"), row(status, OrdStatus::PartiallyFilled, "0.5")]
    );
    assert_eq!(found(2), [row(status, OrdStatus::New, "0")]);
    assert_eq!(
        found(3),
        [
            row(trade, OrdStatus::PartiallyFilled, "0.5"),
            row(trade, OrdStatus::Filled, "2"),
            row(status, OrdStatus::Filled, "2"),
        ]
    );
    assert_eq!(found(4), [row(status, OrdStatus::Canceled, "0")]);
    let last = reports.last().expect("there are reports");
    assert!(last.ends_status_answer() && last.reason == 0);
    assert_eq!(test.okx.calls("/api/v5/trade/order?").len(), 1, "the open orders are known");
    assert_eq!(test.okx.calls("/api/v5/trade/fills?instType").len(), 0, "the fills of the day are all fills");
}

#[test]
fn fills_of_an_earlier_day_are_asked_for() {
    let mut test = LineUnderTest::connected();
    let partly = OrderRow::live(1).filled(11, "0.5", "1");
    test.okx.answer_rest("/api/v5/trade/orders-pending", &rest_rows(&[partly.json()]));
    test.okx.answer_rest("/api/v5/trade/fills?begin=", &rest_rows(&[fill_row(1, 11, "0.5")]));
    let all_fills = rest_rows(&[fill_row(1, 11, "0.5"), fill_row(1, 10, "0.5")]);
    test.okx.answer_rest("/api/v5/trade/fills?instType=SPOT&ordId=1000001", &all_fills);
    test.ask(0, &all(50));
    let kinds: Vec<ExecType> = wait_for_end(&mut test).iter().map(|report| essence(report).0).collect();
    assert_eq!(kinds, [ExecType::Trade, ExecType::Trade, ExecType::OrderStatus, ExecType::OrderStatus]);
}

#[test]
fn an_account_without_orders_has_an_empty_answer_and_a_refusal_has_a_reason() {
    let mut test = LineUnderTest::connected();
    test.ask(0, &all(50));
    let reports = wait_for_end(&mut test);
    assert_eq!((reports.len(), reports[0].reason, reports[0].client_order_id.0), (1, 0, 50));
    test.events.clear();
    test.okx.answer_rest("/api/v5/trade/fills?begin=", r#"{"code":"50030","msg":"No permission","data":[]}"#);
    test.ask(1, &all(51));
    let reports = wait_for_end(&mut test);
    assert_eq!((reports.len(), reports[0].reason, reports[0].client_order_id.0), (1, 10030, 51));
}
