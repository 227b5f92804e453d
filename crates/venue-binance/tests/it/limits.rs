//! The exchange's limits: kept before it refuses, and obeyed once it does.

use serde_json::json;
use tickpath_clock::utc_ns;
use tickpath_market::{ExecType, Request};
use tickpath_venue::LineSendError;
use tickpath_venue_binance::{BinanceLineConfig, RequestLimits};

use crate::driver::{Driver, buy, cancel, config, replace, status};
use crate::exchange::{Reply, ScriptedExchange};

const FULL: Result<(), LineSendError> = Err(LineSendError::Full);

fn with_limits(exchange: &ScriptedExchange, limits: RequestLimits) -> Driver {
    let mut driver = Driver::new(BinanceLineConfig { limits, ..config(exchange) });
    driver.connect();
    driver
}

#[test]
fn orders_beyond_a_limit_are_not_taken_and_cancels_are() {
    for limits in [
        RequestLimits { orders_per_10_s: 3, ..RequestLimits::default() },
        RequestLimits { orders_per_day: 3, ..RequestLimits::default() },
    ] {
        let exchange = ScriptedExchange::start();
        let mut driver = with_limits(&exchange, limits);
        for id in 1..=3 {
            driver.place(&exchange, id - 1, &buy(id), 70 + id);
        }
        assert_eq!(driver.try_send(3, &Request::New(buy(4))), FULL);
        assert_eq!(driver.try_send(3, &replace(5, 1, 61_000, 50_000_000)), FULL, "a new generation is an order");
        driver.send(3, &replace(6, 1, 60_000, 40_000_000));
        driver.send(4, &cancel(7, 2));
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
    let mut taken = 0;
    while driver.try_send(taken, &Request::New(buy(taken + 1))).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 71, "a tenth of the weight is left");
    for more in 0..10 {
        driver.send(taken + more, &cancel(1_000 + more, more + 1));
    }
    assert_eq!(driver.try_send(taken + 10, &cancel(2_000, 11)), FULL);
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
    assert_eq!(driver.try_send(2, &Request::New(buy(3))), FULL);
    driver.send(2, &cancel(4, 1));
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
    assert!(why.contains("demands a pause for ") && why.contains(" s more"), "{why}");
    assert_eq!(exchange.connections(), 1);
}
