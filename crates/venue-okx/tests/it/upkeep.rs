//! Upkeep of a connection: heartbeats, OKX's upgrades, rate limits and the dead man's switch.

use tickpath_clock::sleep_ns;
use tickpath_market::{NewOrder, Request, SymbolId};
use tickpath_venue::{Line, LineSendError};
use tickpath_venue_okx::{LineInstrument, signature};

use crate::harness::{LineUnderTest, cancel, credentials, new_order};
use crate::rows::OrderRow;

const UPGRADE_NOTICE: &str = r#"{"event":"notice","code":"64008","msg":"The connection will soon be closed for a service upgrade.","connId":"a"}"#;

#[test]
fn an_answered_ping_keeps_the_connection_and_a_silent_exchange_is_lost() {
    let mut test = LineUnderTest::new(|config| {
        (config.silence_ns, config.answer_ns) = (1_000_000, 2_000_000_000);
    });
    test.connect(0);
    test.wait_until("three pings are sent", |test| test.okx.pings() >= 3);
    assert!(test.losses.is_empty(), "{:?}", test.losses);
    test.okx.script().answers_pings = false;
    let expected = "OKX has been silent, and has not answered a ping for 2000 ms; connect again";
    assert_eq!(test.wait_for_loss(), expected);
}

#[test]
fn an_upgrade_ends_the_connection_once_all_requests_are_answered() {
    let mut test = LineUnderTest::connected();
    test.okx.script().answer = None;
    test.send(0, &Request::New(new_order(1)));
    test.okx.send(UPGRADE_NOTICE);
    test.wait_until("no request is taken", |test| test.okx.texts().len() == 3);
    test.okx.send(&OrderRow::live(9).push());
    test.wait_for_reports(1);
    assert_eq!(test.line.send(1, 0, &Request::New(new_order(2))), Err(LineSendError::Full));
    test.okx.answer_request("0", "order", "0", "");
    assert_eq!(test.wait_for_loss(), "OKX ends this connection for an upgrade; connect again");
    assert_eq!(test.acknowledged(), 1);
    test.okx.script().answer = Some(("0", ""));
    test.connect(0);
    test.send(1, &Request::New(new_order(2)));
}

#[test]
fn requests_beyond_the_rate_of_an_instrument_find_the_line_full_and_cancels_have_their_own_rate() {
    let mut test = LineUnderTest::connected();
    let swap = |order: u64| {
        let quantity = "0.01".parse().expect("a quantity");
        Request::New(NewOrder { symbol: SymbolId(1), quantity, ..new_order(order) })
    };
    let sent = (0..60).take_while(|number| test.line.send(*number, 0, &Request::New(new_order(number + 1))).is_ok());
    assert_eq!(sent.count(), 60);
    assert_eq!(test.line.send(60, 0, &Request::New(new_order(61))), Err(LineSendError::Full));
    assert_eq!(test.line.send(60, 0, &cancel(100, 1)), Ok(()));
    assert_eq!(test.line.send(61, 0, &swap(101)), Ok(()), "another instrument has its own rate");
    test.wait_until("the exchange has them", |test| test.okx.requests().len() == 62);
    // A place is free once two seconds are over.
    test.wait_until("all are proven", |test| test.acknowledged() == 62);
    let is_sent = (0..60_000).any(|_| {
        test.turn();
        sleep_ns(1_000_000);
        test.line.send(62, 0, &Request::New(new_order(61))).is_ok()
    });
    assert!(is_sent, "the line stays full");
    test.wait_until("the exchange has it", |test| test.okx.requests().len() == 63);
}

#[test]
fn the_rate_of_the_account_covers_all_instruments() {
    let instruments = 20;
    let mut test = LineUnderTest::new(|config| {
        let spot = config.instruments[0].clone();
        config.instruments = (0..instruments)
            .map(|number| LineInstrument {
                name: format!("COIN{number}-USDT"),
                symbol: SymbolId(number),
                ..spot.clone()
            })
            .collect();
    });
    test.connect(0);
    let mut sent = 0;
    for number in 0..1_200_u64 {
        let symbol = SymbolId((number % u64::from(instruments)) as u32);
        match test.line.send(number, 0, &Request::New(NewOrder { symbol, ..new_order(number + 1) })) {
            Ok(()) => sent += 1,
            Err(_) => break,
        }
    }
    assert_eq!(sent, 1_000);
    assert_eq!(test.line.send(1_000, 0, &cancel(5_000, 1)), Ok(()), "cancels do not count");
}

#[test]
fn the_dead_mans_switch_is_renewed_and_its_failure_ends_the_connection() {
    let path = "/api/v5/trade/cancel-all-after";
    let mut test = LineUnderTest::new(|config| config.cancel_all_after_s = Some(10));
    test.connect(0);
    test.wait_until("it is renewed", |test| test.okx.calls(path).len() >= 2);
    let call = test.okx.calls(path).remove(0);
    assert_eq!((call.method.as_str(), call.body.as_str()), ("POST", r#"{"timeOut":"10"}"#));
    let keys = credentials();
    let sign = signature(&keys.secret, call.header("ok-access-timestamp"), "POST", path, r#"{"timeOut":"10"}"#);
    assert_eq!(call.header("ok-access-sign"), sign);
    test.okx.answer_rest(path, r#"{"code":"50030","msg":"No permission","data":[]}"#);
    let expected =
        "the timer that cancels all orders after 10 s could not be renewed in that time: 50030: No permission";
    assert_eq!(test.wait_for_loss(), expected);
}

#[test]
fn without_a_dead_mans_switch_nothing_is_canceled() {
    let mut test = LineUnderTest::connected();
    for _ in 0..100 {
        test.turn();
    }
    assert!(test.okx.calls("/api/v5/trade/cancel-all-after").is_empty());
}
