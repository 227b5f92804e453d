//! Requests as OKX receives them, byte by byte, and requests that are refused here.

use tickpath_clock::{Clock, HostClock};
use tickpath_market::{
    ClientOrderId, ExecType, MassCancel, NewOrder, OrdStatus, OrderType, Price, Quantity, ReplaceOrder, Request,
    SelfTradeMode, Side, SymbolId, TimeInForce, TradeMode,
};
use tickpath_venue::{Line, LineSendError, SendStamps};
use tickpath_venue_okx::{NO_MULTIPLE, NOT_SUPPORTED, OrderEncoder, UNKNOWN_INSTRUMENT};

use crate::harness::{LineUnderTest, cancel, config, essence, new_order, replace};
use crate::rows::{OMS, name};

/// Checks the text that a request becomes. `{1}` in it is the name of order 1, and the expiry is 0.
fn check(test: &mut LineUnderTest, number: u64, request: &Request, expected: &str) {
    test.send(number, request);
    let sent = test.okx.texts().last().expect("the exchange has it").clone();
    let fixed = match sent.split_once(r#""expTime":""#) {
        Some((begin, rest)) => {
            let (expires, end) = rest.split_once('"').expect("a text ends");
            assert!(expires.len() == 13 && expires.bytes().all(|digit| digit.is_ascii_digit()), "{sent}");
            format!(r#"{begin}"expTime":"0"{end}"#)
        }
        None => sent,
    };
    assert_eq!(fixed, expected.replace("{1}", &name(1)));
}

#[test]
fn new_orders_are_written_as_okx_reads_them() {
    let mut test = LineUnderTest::connected();
    let market = NewOrder { order_type: OrderType::Market.code(), price: Price::ZERO, ..new_order(1) };
    let swap = NewOrder { symbol: SymbolId(1), quantity: "0.05".parse().expect("a quantity"), ..new_order(1) };
    let time_in_force = |lifetime: TimeInForce| lifetime.code();
    let begin = r#","op":"order","expTime":"0","args":[{"#;
    let spot = r#""instId":"BTC-USDT","tdMode":"cash","side":"buy","ordType":"#;
    let cases = [
        (new_order(1), format!(r#"{spot}"limit","px":"100","sz":"2","clOrdId":"{{1}}"}}]}}"#)),
        (
            NewOrder { price: Price(12_345), quantity: Quantity(1), side: Side::Sell.code(), ..new_order(1) },
            r#""instId":"BTC-USDT","tdMode":"cash","side":"sell","ordType":"limit","px":"0.00012345","sz":"0.00000001","clOrdId":"{1}"}]}"#.to_owned(),
        ),
        (
            NewOrder { instructions: NewOrder::POST_ONLY, symbol: SymbolId(2), ..new_order(1) },
            r#""instIdCode":77,"tdMode":"cash","side":"buy","ordType":"post_only","px":"100","sz":"2","clOrdId":"{1}"}]}"#.to_owned(),
        ),
        (
            NewOrder { time_in_force: time_in_force(TimeInForce::ImmediateOrCancel), ..new_order(1) },
            format!(r#"{spot}"ioc","px":"100","sz":"2","clOrdId":"{{1}}"}}]}}"#),
        ),
        (
            NewOrder { time_in_force: time_in_force(TimeInForce::FillOrKill), ..new_order(1) },
            format!(r#"{spot}"fok","px":"100","sz":"2","clOrdId":"{{1}}"}}]}}"#),
        ),
        (
            NewOrder { time_in_force: time_in_force(TimeInForce::GoodTillCancel), ..new_order(1) },
            format!(r#"{spot}"limit","px":"100","sz":"2","clOrdId":"{{1}}"}}]}}"#),
        ),
        (market, format!(r#"{spot}"market","sz":"2","clOrdId":"{{1}}","tgtCcy":"base_ccy"}}]}}"#)),
        (
            NewOrder { side: Side::Sell.code(), ..market },
            r#""instId":"BTC-USDT","tdMode":"cash","side":"sell","ordType":"market","sz":"2","clOrdId":"{1}"}]}"#.to_owned(),
        ),
        (
            swap,
            r#""instIdCode":193,"tdMode":"cross","side":"buy","ordType":"limit","px":"100","sz":"5","clOrdId":"{1}"}]}"#.to_owned(),
        ),
        (
            NewOrder {
                trade_mode: TradeMode::Isolated.code(),
                instructions: NewOrder::REDUCE_ONLY,
                self_trade_mode: SelfTradeMode::CancelBoth.code(),
                ..swap
            },
            r#""instIdCode":193,"tdMode":"isolated","side":"buy","ordType":"limit","px":"100","sz":"5","clOrdId":"{1}","reduceOnly":true,"stpMode":"cancel_both"}]}"#.to_owned(),
        ),
        (
            NewOrder {
                trade_mode: TradeMode::Cross.code(),
                self_trade_mode: SelfTradeMode::CancelMaker.code(),
                ..new_order(1)
            },
            r#""instId":"BTC-USDT","tdMode":"cross","side":"buy","ordType":"limit","px":"100","sz":"2","clOrdId":"{1}","stpMode":"cancel_maker"}]}"#.to_owned(),
        ),
    ];
    for (number, (order, rest)) in (10..).zip(cases) {
        check(&mut test, number, &Request::New(order), &format!(r#"{{"id":"{number}"{begin}{rest}"#));
    }
}

#[test]
fn amendments_and_cancels_are_written_as_okx_reads_them() {
    let mut test = LineUnderTest::connected();
    let amendment = r#"{"id":"4","op":"amend-order","expTime":"0","args":[{"instId":"BTC-USDT","clOrdId":"{1}","reqId":"000000000000002c","newSz":"1","newPx":"101"}]}"#;
    check(&mut test, 4, &replace(44, 1), amendment);
    let Request::Replace(of_spot) = replace(44, 1) else { unreachable!("it is a replace") };
    let of_swap = ReplaceOrder { symbol: SymbolId(1), quantity: "0.03".parse().expect("a quantity"), ..of_spot };
    let amendment = r#"{"id":"5","op":"amend-order","expTime":"0","args":[{"instIdCode":193,"clOrdId":"{1}","reqId":"000000000000002c","newSz":"3","newPx":"101"}]}"#;
    check(&mut test, 5, &Request::Replace(of_swap), amendment);
    let expected =
        r#"{"id":"18446744073709551614","op":"cancel-order","args":[{"instId":"BTC-USDT","clOrdId":"{1}"}]}"#;
    check(&mut test, u64::MAX - 1, &cancel(45, 1), expected);
}

#[test]
fn the_encoder_writes_the_texts_of_the_line_into_one_buffer() {
    let mut test = LineUnderTest::connected();
    let instruments = config(&test.okx).instruments;
    let mut encoder = OrderEncoder::new(&instruments, OMS).expect("the instruments are in order");
    let buffer = encoder.encode(0, &Request::New(new_order(1)), 0).map(str::as_ptr);
    for (number, request) in (0..).zip([Request::New(new_order(1)), replace(44, 1), cancel(45, 1)]) {
        test.send(number, &request);
        let expires = test.okx.requests()[number as usize]["expTime"].as_str().map_or(0, |ms| ms.parse().expect("ms"));
        let text = encoder.encode(number, &request, expires).expect("OKX has such a request");
        assert_eq!(Some(text), test.okx.texts().last().map(String::as_str));
        assert_eq!(Some(text.as_ptr()), buffer, "the buffer is used again");
    }
    let elsewhere = NewOrder { symbol: SymbolId(8), ..new_order(1) };
    assert_eq!(encoder.encode(0, &Request::New(elsewhere), 0), None);
}

#[test]
fn requests_that_okx_could_not_take_are_refused_here_with_a_report_and_count_as_answered() {
    let mut test = LineUnderTest::connected();
    let swap = |quantity: &str| NewOrder {
        symbol: SymbolId(1),
        quantity: quantity.parse().expect("a quantity"),
        ..new_order(1)
    };
    let market = NewOrder { order_type: OrderType::Market.code(), ..new_order(1) };
    let fok = TimeInForce::FillOrKill.code();
    let Request::Replace(replaced) = replace(2, 1) else { unreachable!("it is a replace") };
    let mass_cancel = MassCancel { client_order_id: ClientOrderId(1), cancel_type: 7, ..MassCancel::default() };
    let cases = [
        (Request::New(swap("0.015")), ExecType::Rejected, NO_MULTIPLE),
        (Request::New(NewOrder { symbol: SymbolId(8), ..new_order(1) }), ExecType::Rejected, UNKNOWN_INSTRUMENT),
        (Request::New(NewOrder { time_in_force: fok, ..market }), ExecType::Rejected, NOT_SUPPORTED),
        (
            Request::New(NewOrder { time_in_force: fok, instructions: NewOrder::POST_ONLY, ..new_order(1) }),
            ExecType::Rejected,
            NOT_SUPPORTED,
        ),
        (
            Request::Replace(ReplaceOrder { symbol: SymbolId(1), quantity: Quantity(1), ..replaced }),
            ExecType::CancelRejected,
            NO_MULTIPLE,
        ),
        (Request::MassCancel(mass_cancel), ExecType::CancelRejected, NOT_SUPPORTED),
    ];
    for (number, (request, exec_type, reason)) in (0..).zip(cases) {
        test.ask(number, &request);
        let reports = test.wait_for_reports(number as usize + 1);
        let (found, status, _, id, why, ..) = essence(&reports[number as usize]);
        assert_eq!((found, status, why), (exec_type, OrdStatus::Rejected, reason), "{request:?}");
        assert_eq!(id, request.client_order_id().0);
        let detail = test.details()[number as usize];
        assert!(detail.text[0] != 0 && detail.order_id == reports[number as usize].order_id);
        test.wait_until("it counts as answered", |test| test.acknowledged() == number + 1);
    }
    assert!(test.okx.requests().is_empty(), "nothing was sent");
}

#[test]
fn the_times_of_the_last_send_are_known() {
    let mut test = LineUnderTest::connected();
    assert_eq!(test.line.last_send(), SendStamps::default());
    let clock = HostClock::get().expect("this host has a clock");
    let before = clock.ticks();
    test.send(0, &Request::New(new_order(1)));
    let SendStamps { encoded, ready, written } = test.line.last_send();
    assert!(before <= encoded && encoded <= ready && ready <= written && written <= clock.ticks());
}

#[test]
fn nothing_is_sent_by_a_line_that_is_down() {
    let mut test = LineUnderTest::new(|_| {});
    let down = Err(LineSendError::Down);
    assert_eq!(test.line.send(0, 0, &Request::New(new_order(1))), down);
    assert_eq!(test.line.poll(&mut |event| panic!("{event:?}")), Ok(0));
    test.connect(0);
    test.okx.cut();
    test.wait_for_loss();
    assert_eq!(test.line.send(0, 0, &Request::New(new_order(1))), down);
    assert!(test.okx.requests().is_empty());
}
