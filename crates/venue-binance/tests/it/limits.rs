//! The exchange's limits: kept before it refuses, and obeyed once it does.

use serde_json::json;
use tickpath_clock::utc_ns;
use tickpath_market::{ExecType, OrdStatus, Request};
use tickpath_venue::LineSendError;
use tickpath_venue_binance::{BinanceLineConfig, REFUSED_BY_LINE, RequestLimits};

use crate::driver::{Driver, buy, cancel, config, replace, status};
use crate::exchange::{Reply, ScriptedExchange};

const FULL: Result<(), LineSendError> = Err(LineSendError::Full);

fn with_limits(exchange: &ScriptedExchange, limits: RequestLimits) -> Driver {
    let mut driver = Driver::new(BinanceLineConfig { limits, ..config(exchange) });
    driver.connect();
    driver
}

#[test]
fn orders_beyond_a_limit_are_refused_so_that_the_cancels_behind_them_leave() {
    for limits in [
        RequestLimits { orders_per_10_s: 3, ..RequestLimits::default() },
        RequestLimits { orders_per_day: 3, ..RequestLimits::default() },
    ] {
        let exchange = ScriptedExchange::start();
        let mut driver = with_limits(&exchange, limits);
        for id in 1..=3 {
            driver.place(&exchange, id - 1, &buy(id), 70 + id);
        }
        driver.send(3, &Request::New(buy(4)));
        let report = driver.until_report(4, ExecType::Rejected);
        assert_eq!((report.reason, report.client_order_id.0), (1015, 4));
        assert_eq!(driver.text(4), "the limit of new orders is used up");
        // A new generation is an order.
        driver.send(4, &replace(5, 1, 61_000, 50_000_000));
        let report = driver.until_report(1, ExecType::CancelRejected);
        assert_eq!((report.reason, report.client_order_id.0), (1015, 5));
        driver.until_acknowledged(5);
        driver.send(5, &replace(6, 1, 60_000, 40_000_000));
        driver.send(6, &cancel(7, 2));
        driver.until_request(&exchange, "order.amend.keepPriority", 1);
        driver.until_request(&exchange, "order.cancel", 1);
        assert_eq!(exchange.of_method("order.place").len(), 3);
    }
}

#[test]
fn the_weight_leaves_a_reserve_to_cancels() {
    let exchange = ScriptedExchange::start();
    // The connect costs 19: time and connection 3, logon 2, subscription 2, and 12 for the open orders.
    let mut driver = with_limits(&exchange, RequestLimits { weight_per_minute: 100, ..RequestLimits::default() });
    // A tenth of the weight is left by 71 orders.
    for number in 0..72 {
        driver.send(number, &Request::New(buy(number + 1)));
    }
    assert_eq!(driver.until_report(72, ExecType::Rejected).reason, 1003);
    assert_eq!(driver.reports().len(), 1, "the last one alone was refused");
    for more in 0..10 {
        driver.send(72 + more, &cancel(1_000 + more, more + 1));
    }
    // No cancel can leave any more, so that an order may wait before them.
    assert_eq!(driver.try_send(82, &cancel(2_000, 11)), FULL);
    assert_eq!(driver.try_send(82, &Request::New(buy(2_001))), FULL);
}

#[test]
fn more_questions_than_may_wait_are_refused_and_block_nothing() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    for number in 0..8_192 {
        driver.send(number, &status(20_000 + number, number + 1, 0));
    }
    driver.send(8_192, &status(40_000, 9_000, 0));
    driver.send(8_193, &replace(40_001, 9_001, 61_000, 50_000_000));
    driver.send(8_194, &cancel(40_002, 1));
    let report = driver.until_report(9_000, ExecType::OrderStatus);
    let expected = (REFUSED_BY_LINE, OrdStatus::Unknown.code(), 40_000);
    assert_eq!((report.reason, report.status, report.client_order_id.0), expected);
    assert_eq!(driver.until_report(9_001, ExecType::CancelRejected).reason, REFUSED_BY_LINE);
    driver.until_request(&exchange, "order.cancel", 1);
}

#[test]
fn status_requests_beyond_the_weight_wait_and_block_nothing() {
    let exchange = ScriptedExchange::start();
    let mut driver = with_limits(&exchange, RequestLimits { weight_per_minute: 40, ..RequestLimits::default() });
    for number in 0..20 {
        driver.send(number, &status(100 + number, number + 1, 0));
    }
    driver.send(20, &cancel(200, 30));
    driver.until_request(&exchange, "order.cancel", 1);
    assert!(exchange.of_method("order.status").len() <= 3, "queries leave a fifth of the weight");
}

#[test]
fn a_refusal_for_the_weight_keeps_all_requests_back_as_long_as_the_exchange_demands() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    let now_ms = utc_ns() / 1_000_000;
    let data = json!({ "serverTime": now_ms, "retryAfter": now_ms + 1_000 });
    let error = json!({ "code": -1003, "msg": "Too much request weight used.", "data": data });
    exchange.reply("order.place", Reply::Refused(429, error));
    driver.send(1, &Request::New(buy(2)));
    let report = driver.until_report(2, ExecType::Rejected);
    assert_eq!(report.reason, 1003);
    assert_eq!(driver.try_send(2, &Request::New(buy(3))), FULL);
    assert_eq!(driver.try_send(2, &cancel(4, 1)), FULL);
    driver.send_when_taken(2, &cancel(4, 1));
    driver.until_request(&exchange, "order.cancel", 1);
}

#[test]
fn a_refusal_for_the_number_of_orders_lets_cancels_pass() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    exchange.reply("order.place", Reply::refused(429, -1015, "Too many new orders."));
    driver.send(1, &Request::New(buy(2)));
    assert_eq!(driver.until_report(2, ExecType::Rejected).reason, 1015);
    driver.send(2, &Request::New(buy(3)));
    assert_eq!(driver.until_report(3, ExecType::Rejected).reason, 1015);
    assert_eq!(exchange.of_method("order.place").len(), 2);
    driver.send(3, &cancel(4, 1));
    driver.until_request(&exchange, "order.cancel", 1);
}

#[test]
fn a_ban_keeps_the_next_connect_from_the_exchange() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    exchange.reply("order.place", Reply::refused(418, -1003, "Way too much request weight used; IP banned."));
    driver.send(0, &Request::New(buy(1)));
    driver.until_report(1, ExecType::Rejected);
    exchange.cut();
    driver.until_lost();
    driver.begin_connect();
    let why = driver.until_lost();
    assert!(why.contains("demands a pause until 20"), "{why}");
    assert_eq!(exchange.connections(), 1);
}

#[test]
fn a_refused_handshake_keeps_the_next_connects_back_as_long_as_the_exchange_demands() {
    for (status, retry_after) in [(429, "3600"), (418, "3600"), (429, "0")] {
        let exchange = ScriptedExchange::start();
        exchange.refuse_upgrade(status, retry_after);
        let mut driver = Driver::new(config(&exchange));
        driver.begin_connect();
        let why = driver.until_lost();
        assert!(why.contains(&format!("refuses the WebSocket with status {status}")), "{why}");
        if retry_after == "0" {
            driver.connect();
            continue;
        }
        let reasons = [(); 3].map(|()| {
            driver.begin_connect();
            driver.until_lost()
        });
        assert!(reasons[0].contains("demands a pause until 20"), "{reasons:?}");
        assert!(reasons.iter().all(|why| *why == reasons[0]), "each attempt has the same reason: {reasons:?}");
        assert_eq!((exchange.refused_upgrades(), exchange.connections()), (1, 0));
    }
}
