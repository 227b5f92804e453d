//! Rows of the orders channel and the reports that they become.

use tickpath_market::{
    ExecType, ExecutionReport, Liquidity, NewOrder, OrdStatus, OrderType, Price, Quantity, Request, SymbolId,
};
use tickpath_venue::Line;
use tickpath_venue_okx::CANCELED_BY_OKX;

use crate::harness::{LineUnderTest, VENUE, cancel, essence, new_order};
use crate::rows::{OrderRow, fill_row, name, push, rest_rows};

/// Checks the reports that rows become, each by its type, status, request, reason, cumulative and open quantity.
fn check(rows: &[OrderRow], expected: &[(ExecType, OrdStatus, u64, u16, &str, &str)]) {
    let mut test = LineUnderTest::connected();
    for row in rows {
        test.okx.send(&row.push());
    }
    test.okx.send(&OrderRow::live(99).push());
    test.wait_until("the last row has arrived", |test| test.reports().iter().any(|report| report.order_id.0 == 99));
    let found: Vec<ExecutionReport> = test.reports().into_iter().filter(|report| report.order_id.0 != 99).collect();
    let found: Vec<_> = found.iter().map(essence).collect();
    let found: Vec<_> = found.iter().map(|(a, b, _, d, e, f, g)| (*a, *b, *d, *e, f.as_str(), g.as_str())).collect();
    assert_eq!(found, expected, "{rows:?}");
}

#[test]
fn the_life_of_an_order_is_reported_event_by_event() {
    use ExecType as E;
    use OrdStatus as S;
    let live = || OrderRow::live(1);
    check(&[live(), live(), live().with("uTime", "1654084353999")], &[(E::New, S::New, 1, 0, "0", "2")]);
    check(
        &[live(), live().filled(5, "0.5", "0.5"), live().filled(6, "1.5", "2")],
        &[
            (E::New, S::New, 1, 0, "0", "2"),
            (E::Trade, S::PartiallyFilled, 0, 0, "0.5", "1.5"),
            (E::Trade, S::Filled, 0, 0, "2", "0"),
        ],
    );
    let cut = live().filled(5, "0.5", "0.5").canceled("1").with("tradeId", "").with("fillSz", "0");
    check(
        &[live().filled(5, "0.5", "0.5"), live().filled(5, "0.5", "0.5"), cut.clone(), cut],
        &[(E::Trade, S::PartiallyFilled, 0, 0, "0.5", "1.5"), (E::Canceled, S::Canceled, 0, 0, "0.5", "0")],
    );
    check(
        &[live().canceled("1"), live().filled(7, "2", "2")],
        &[(E::Canceled, S::Canceled, 0, 0, "0", "0"), (E::Trade, S::Filled, 0, 0, "2", "0")],
    );
}

#[test]
fn causes_of_a_cancel_are_reasons_and_rests_of_immediate_orders_expire() {
    use ExecType as E;
    use OrdStatus as S;
    for (order_type, source, exec_type, status, reason) in [
        ("limit", "1", E::Canceled, S::Canceled, 0),
        ("limit", "20", E::Canceled, S::Canceled, CANCELED_BY_OKX + 20),
        ("limit", "0", E::Canceled, S::Canceled, CANCELED_BY_OKX),
        ("post_only", "31", E::Canceled, S::Canceled, CANCELED_BY_OKX + 31),
        ("ioc", "14", E::Expired, S::Expired, 0),
        ("fok", "13", E::Expired, S::Expired, 0),
        ("market", "33", E::Expired, S::Expired, CANCELED_BY_OKX + 33),
        ("ioc", "1", E::Canceled, S::Canceled, 0),
    ] {
        let row = OrderRow::live(1).with("ordType", order_type).canceled(source);
        check(&[row], &[(exec_type, status, 0, reason, "0", "0")]);
    }
    let canceled = OrderRow::live(1).with("state", "mmp_canceled");
    check(&[canceled], &[(E::Canceled, S::Canceled, 0, 0, "0", "0")]);
}

#[test]
fn amendments_are_reported_once_for_each_request() {
    use ExecType as E;
    use OrdStatus as S;
    let amended = |request: u64, size: &str, result: &str| {
        let row = OrderRow::live(1).with("reqId", &format!("{request:016x}")).with("amendResult", result);
        row.with("sz", size).with("amendSource", "1")
    };
    let failed = amended(22, "3", "-1").with("code", "51503").with("msg", "Your order has already been filled");
    check(
        &[amended(21, "3", "0"), amended(21, "3", "0").filled(5, "1", "1"), failed.clone(), failed],
        &[
            (E::Replaced, S::New, 21, 0, "0", "3"),
            (E::Trade, S::PartiallyFilled, 0, 0, "1", "2"),
            (E::CancelRejected, S::New, 22, 8, "0", "3"),
        ],
    );
    // Less than is filled already.
    let down = amended(23, "1", "0").with("accFillSz", "1").with("state", "filled");
    check(
        &[OrderRow::live(1).filled(5, "1", "1"), down],
        &[(E::Trade, S::PartiallyFilled, 0, 0, "1", "1"), (E::Replaced, S::Filled, 23, 0, "1", "0")],
    );
    // By OKX's own decision, and by a web page.
    let reduced = OrderRow::live(1).with("amendSource", "4").with("sz", "1");
    let elsewhere = OrderRow::live(1).with("amendResult", "0").with("reqId", "web7").with("px", "101");
    check(
        &[OrderRow::live(1), reduced.clone(), reduced, elsewhere.clone(), elsewhere],
        &[
            (E::New, S::New, 1, 0, "0", "2"),
            (E::Replaced, S::New, 0, 0, "0", "1"),
            (E::Replaced, S::New, 0, 0, "0", "2"),
        ],
    );
}

#[test]
fn a_report_names_its_order_and_its_detail_has_the_fee() {
    let mut test = LineUnderTest::connected();
    test.send(0, &Request::New(NewOrder { symbol: SymbolId(1), quantity: Quantity(2_000_000), ..new_order(1) }));
    let row = OrderRow::live(1).with("instId", "BTC-USDT-SWAP").with("instType", "SWAP").with("side", "sell");
    let rebate = row.filled(5, "1", "1").with("fillFee", "0.01").with("fillFeeCcy", "USDT").with("execType", "M");
    test.okx.send(&rebate.push());
    let report = test.wait_for_reports(1)[0];
    assert_eq!((report.venue, report.symbol, report.account.0), (VENUE, SymbolId(1), 7));
    assert_eq!((report.venue_order_id.0, report.venue_sequence, report.venue_stamp), (1_000_001, 0, 0));
    assert_eq!(report.exec_id.0, 2 << 40 | 5, "the number of the instrument and the trade");
    // A contract is 0.01.
    let quantities = [report.last_quantity, report.cumulative_quantity, report.leaves_quantity];
    assert_eq!(quantities.map(|quantity| quantity.to_string()), ["0.01"; 3]);
    assert_eq!([report.last_price, report.price].map(|price| price.to_string()), ["99.5", "100"]);
    let detail = test.details()[0];
    assert_eq!((detail.order_id, detail.exec_id), (report.order_id, report.exec_id));
    assert_eq!((i128::from_le_bytes(detail.fee), detail.fee_currency.as_str()), (-100_000_000_000_000, "USDT"));
    assert_eq!((detail.liquidity, detail.venue_received_ns), (Liquidity::Maker.code(), 1_654_084_353_263_000_000));
}

#[test]
fn a_cancel_of_the_user_answers_the_request() {
    let mut test = LineUnderTest::connected();
    test.send(0, &Request::New(new_order(1)));
    test.send(1, &cancel(2, 1));
    test.okx.send(&OrderRow::live(1).canceled("1").push());
    assert_eq!(essence(&test.wait_for_reports(1)[0]).3, 2);
}

#[test]
fn a_market_order_that_is_filled_with_less_than_was_ordered_expires() {
    let mut test = LineUnderTest::connected();
    let market = NewOrder { order_type: OrderType::Market.code(), price: Price::ZERO, ..new_order(1) };
    test.send(0, &Request::New(market));
    let row = OrderRow::live(1).with("ordType", "market").with("px", "").with("sz", "1.5").filled(5, "1.5", "1.5");
    test.okx.send(&row.push());
    test.okx.send(&row.push());
    let reports = test.wait_for_reports(2);
    let [trade, end] = [essence(&reports[0]), essence(&reports[1])];
    assert_eq!((trade.0, trade.5.as_str()), (ExecType::Trade, "1.5"));
    assert_eq!((end.0, end.1, end.5.as_str(), end.6.as_str()), (ExecType::Expired, OrdStatus::Expired, "1.5", "0"));
    test.okx.send(&OrderRow::live(2).push());
    assert_eq!(test.wait_for_reports(3).len(), 3, "the row that came twice is reported once");
}

#[test]
fn a_filled_order_without_a_fill_is_asked_for() {
    let mut test = LineUnderTest::connected();
    let rows = [fill_row(1, 502, "1.5"), fill_row(1, 501, "0.5"), fill_row(2, 400, "9")];
    test.okx.answer_rest("/api/v5/trade/fills?instType=SPOT&ordId=1000001", &rest_rows(&rows));
    let row = OrderRow::live(1).with("ordType", "market").with("state", "filled").with("accFillSz", "2");
    test.okx.send(&row.push());
    let reports = test.wait_for_reports(2);
    let essences: Vec<_> = reports.iter().map(essence).collect();
    assert_eq!(
        essences.iter().map(|(exec, .., filled, _)| (*exec, filled.as_str())).collect::<Vec<_>>(),
        [(ExecType::Trade, "0.5"), (ExecType::Trade, "2"),]
    );
    assert_eq!(test.okx.calls("/api/v5/trade/fills").len(), 1);
    assert_eq!(test.okx.calls("/api/v5/trade/order?").len(), 0, "the state is known");
}

#[test]
fn fills_that_the_channel_brings_late_are_not_asked_for() {
    let mut test = LineUnderTest::connected();
    test.okx.send(&OrderRow::live(1).filled(6, "1.5", "2").push());
    test.okx.send(&OrderRow::live(1).filled(5, "0.5", "0.5").push());
    test.wait_for_reports(2);
    // Fills of another order are asked for after the same pause.
    test.okx.answer_rest("/api/v5/trade/fills?", &rest_rows(&[fill_row(2, 9, "2")]));
    test.okx.send(&OrderRow::live(2).with("state", "filled").with("accFillSz", "2").push());
    test.wait_for_reports(3);
    let asked: Vec<String> = test.okx.calls("/api/v5/trade/fills").into_iter().map(|call| call.target).collect();
    assert!(asked.len() == 1 && asked[0].contains("ordId=1000002"), "{asked:?}");
}

#[test]
fn orders_of_other_programs_are_counted_and_ignored() {
    let mut test = LineUnderTest::connected();
    let foreign = [
        OrderRow::live(1).with("clOrdId", ""),
        OrderRow::live(1).with("clOrdId", "b15"),
        // Another OMS, and an instrument that the line does not have.
        OrderRow::live(1).with("clOrdId", &name(1).replace("tp000005", "tp000006")),
        OrderRow::live(1).with("instId", "DOGE-USDT"),
        // Its numbers are not read.
        OrderRow::live(1).with("clOrdId", "x").with("sz", "1e9"),
    ];
    let rows: Vec<String> = foreign.iter().map(OrderRow::json).collect();
    test.okx.send(&push(&rows));
    foreign.iter().for_each(|row| test.okx.send(&row.push()));
    test.okx.send(&OrderRow::live(2).push());
    assert_eq!(test.wait_for_reports(1)[0].order_id.0, 2);
    assert_eq!((test.line.foreign_rows(), test.line.unusual_pushes()), (10, 1));
}

#[test]
fn rows_and_frames_that_cannot_be_read_end_the_connection() {
    let expected = "OKX has sent an order that cannot be read: sz: not a decimal number; write it like 61800.25";
    for (text, expected) in [
        (OrderRow::live(1).with("sz", "1e9").push(), expected),
        (
            OrderRow::live(1).with("sz", "-2").push(),
            "OKX has sent an order that cannot be read: sz: '-2' is below zero",
        ),
        (
            OrderRow::live(1).with("accFillSz", "-1").push(),
            "OKX has sent an order that cannot be read: accFillSz: '-1' is below zero",
        ),
        (
            OrderRow::live(1).filled(5, "-0.5", "0.5").push(),
            "OKX has sent an order that cannot be read: fillSz: '-0.5' is below zero",
        ),
        ("<html>".to_owned(), "OKX has sent a frame of 6 bytes that cannot be read: expected value at line 1 column 1"),
        (
            "{}".to_owned(),
            "OKX has sent a frame of 2 bytes that cannot be read: it has no event, no operation and no argument",
        ),
        (
            r#"{"event":"channel-conn-count-error","channel":"orders","connCount":"20","connId":"a"}"#.to_owned(),
            "OKX reports an error while the line was up: the channel 'orders' has too many connections; close another one",
        ),
    ] {
        let mut test = LineUnderTest::connected();
        test.okx.send(&text);
        assert_eq!(test.wait_for_loss(), expected);
        test.connect(0);
        assert!(!test.line.address().is_empty());
    }
}
