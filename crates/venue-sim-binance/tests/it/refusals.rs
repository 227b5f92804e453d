//! Refused requests: each error code of the exchange for its mistake.

use serde_json::{Value, json};

use crate::traders::{Trader, now_ms};
use crate::trial::{API, Trial, limit, with, without};

const ALICE: Trader = Trader::Alice;

/// Places an order, and asserts its refusal.
fn check(trial: &mut Trial, api: usize, order: Value, code: i64, text: &str) {
    let answer = trial.call(api, "order.place", ALICE.signed(order.clone()));
    let error = &answer["error"];
    assert_eq!((&answer["status"], &error["code"]), (&json!(400), &json!(code)), "{order}: {answer}");
    assert!(error["msg"].as_str().is_some_and(|found| found.contains(text)), "{text}: {answer}");
}

fn good() -> Value {
    limit("BUY", "50000", "0.01")
}

#[test]
fn parameters_of_an_order_that_are_missing_or_wrong_are_named() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for name in ["symbol", "side", "type", "timeInForce", "price", "quantity"] {
        check(&mut trial, api, without(good(), name), -1102, name);
    }
    for (name, value, code, text) in [
        ("symbol", "BTCUSD", -1121, "Invalid symbol"),
        ("symbol", "btcusdt", -1121, "Invalid symbol"),
        ("side", "HOLD", -1117, "Invalid side"),
        ("type", "GUESS", -1116, "Invalid orderType"),
        ("type", "STOP_LOSS_LIMIT", -1013, "not supported"),
        ("timeInForce", "GTX", -1115, "Invalid timeInForce"),
        ("price", "cheap", -1100, "price"),
        ("price", "-1", -1100, "price"),
        ("price", "50000.000000001", -1111, "price"),
        ("price", "99999999999999999999", -1108, "price"),
        ("price", "0", -1013, "PRICE_FILTER"),
        ("price", "50000.001", -1013, "PRICE_FILTER"),
        ("quantity", "0", -1013, "LOT_SIZE"),
        ("quantity", "0.000001", -1013, "LOT_SIZE"),
        ("quantity", "0.00001", -1013, "NOTIONAL"),
        ("newClientOrderId", "with space", -1100, "newClientOrderId"),
        ("newClientOrderId", "", -1105, "newClientOrderId"),
        ("newOrderRespType", "LONG", -1130, "newOrderRespType"),
        ("selfTradePreventionMode", "TRANSFER", -1013, "self-trade"),
        ("strategyType", "7", -1134, "Strategy"),
        ("quoteOrderQty", "5", -1106, "quoteOrderQty"),
        ("icebergQty", "0.01", -1013, "Iceberg"),
        ("color", "red", -1104, "Not all sent parameters"),
    ] {
        check(&mut trial, api, with(good(), &[(name, value)]), code, text);
    }
    let market = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET"});
    check(&mut trial, api, market.clone(), -1102, "quoteOrderQty");
    check(&mut trial, api, with(market.clone(), &[("quantity", "1"), ("price", "1")]), -1106, "price");
    check(&mut trial, api, with(market, &[("quantity", "1"), ("timeInForce", "GTC")]), -1106, "timeInForce");
}

#[test]
fn orders_that_the_account_or_the_book_does_not_allow_are_refused() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    check(&mut trial, api, limit("BUY", "50000", "21"), -2010, "insufficient balance");
    check(&mut trial, api, limit("SELL", "70000", "11"), -2010, "insufficient balance");
    let post_only = |price: &str| without(with(limit("BUY", price, "0.01"), &[("type", "LIMIT_MAKER")]), "timeInForce");
    check(&mut trial, api, post_only("60001"), -2010, "immediately match and take");
    trial.result(api, "order.place", ALICE.signed(post_only("60000")));
    let named = with(good(), &[("newClientOrderId", "first")]);
    trial.result(api, "order.place", ALICE.signed(named.clone()));
    check(&mut trial, api, named, -2010, "Duplicate order");
}

#[test]
fn unknown_orders_are_refused_by_the_kind_of_the_request() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let placed = trial.result(api, "order.place", ALICE.signed(good()));
    let order = |more: Value| {
        let mut params = json!({"symbol": "BTCUSDT"});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    let wrong_names = [
        json!({"orderId": 1}),
        json!({"origClientOrderId": "nobody"}),
        json!({"orderId": placed["orderId"], "origClientOrderId": "nobody"}),
    ];
    for name in &wrong_names {
        let params = order(name.clone());
        assert_eq!(trial.refusal(api, "order.cancel", ALICE.signed(params.clone())), (400, -2011), "{params}");
        assert_eq!(trial.refusal(api, "order.status", ALICE.signed(params.clone())), (400, -2013), "{params}");
        let amend = with(params, &[("newQty", "0.005")]);
        assert_eq!(trial.refusal(api, "order.amend.keepPriority", ALICE.signed(amend)), (400, -2013));
    }
    for method in ["order.cancel", "order.status"] {
        assert_eq!(trial.refusal(api, method, ALICE.signed(json!({"symbol": "BTCUSDT"}))), (400, -1102));
        let of_bob = Trader::Bob.signed(order(json!({"orderId": placed["orderId"]})));
        assert!([-2011, -2013].contains(&trial.refusal(api, method, of_bob).1), "{method}");
    }
    let mine = order(json!({"orderId": placed["orderId"]}));
    trial.result(api, "order.cancel", ALICE.signed(mine.clone()));
    assert_eq!(trial.refusal(api, "order.cancel", ALICE.signed(mine)), (400, -2011), "it is canceled already");
}

#[test]
fn keys_signatures_and_times_are_checked() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let signed = |more: Value| ALICE.signed(more);
    let now = now_ms();
    let with_key = |key: &str| {
        let mut params = signed(json!({}));
        params["apiKey"] = json!(key);
        params
    };
    for (params, refusal) in [
        (with_key("no-key!"), (401, -2014)),
        (with_key("UnknownKey"), (401, -2015)),
        (without(signed(json!({})), "apiKey"), (400, -1102)),
        (without(signed(json!({})), "signature"), (400, -1102)),
        (with(signed(json!({})), &[("signature", "0123")]), (400, -1022)),
        (with(signed(json!({})), &[("recvWindow", "4000")]), (400, -1022)),
        (signed(json!({"timestamp": now - 6_000})), (400, -1021)),
        (signed(json!({"timestamp": now - 6_000, "recvWindow": 3_000})), (400, -1021)),
        (signed(json!({"timestamp": now + 600_000})), (400, -1021)),
        (signed(json!({"timestamp": "soon"})), (400, -1100)),
        (signed(json!({"recvWindow": 60_001})), (400, -1102)),
        (signed(json!({"recvWindow": "wide"})), (400, -1130)),
    ] {
        assert_eq!(trial.refusal(api, "account.status", params.clone()), refusal, "{params}");
    }
    trial.result(api, "account.status", signed(json!({"timestamp": now_ms() - 20_000, "recvWindow": 50_000})));
    trial.result(api, "account.status", signed(json!({"timestamp": now_ms() * 1_000, "recvWindow": "5000.5"})));
}

#[test]
fn public_requests_are_checked_as_well() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for (method, params, code) in [
        ("depth", json!({}), -1102),
        ("depth", json!({"symbol": "NOPE"}), -1121),
        ("depth", json!({"symbol": "BTCUSDT", "limit": 0}), -1130),
        ("depth", json!({"symbol": "BTCUSDT", "limit": "many"}), -1100),
        ("ticker.book", json!({"symbol": "BTCUSDT", "symbols": ["ETHUSDT"]}), -1128),
        ("ticker.book", json!({"symbols": "BTCUSDT"}), -1130),
        ("ticker.24hr", json!({"type": "HUGE"}), -1130),
        ("ping", json!({"symbol": "BTCUSDT"}), -1104),
    ] {
        assert_eq!(trial.refusal(api, method, params.clone()), (400, code), "{method} {params}");
    }
}
