//! Orders over the WebSocket API, with their answers and their events.

use serde_json::{Value, json};

use crate::traders::Trader;
use crate::trial::{API, Trial, assert_fields, limit, with};

const ALICE: Trader = Trader::Alice;

/// An exchange with a connection that gets the events of Alice.
fn subscribed() -> (Trial, usize) {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    trial.result(api, "userDataStream.subscribe.signature", ALICE.signed(json!({})));
    (trial, api)
}

#[test]
fn a_resting_order_is_acknowledged_and_then_reported_with_the_locked_balance() {
    let (mut trial, api) = subscribed();
    let order = with(limit("BUY", "50000.00", "0.01"), &[("newClientOrderId", "first"), ("strategyId", "7")]);
    let placed = trial.result(api, "order.place", ALICE.signed(order));
    assert_fields(
        &placed,
        &json!({
            "symbol": "BTCUSDT", "orderListId": -1, "clientOrderId": "first", "price": "50000.00000000",
            "origQty": "0.01000000", "executedQty": "0.00000000", "origQuoteOrderQty": "0.00000000",
            "cummulativeQuoteQty": "0.00000000", "status": "NEW", "timeInForce": "GTC", "type": "LIMIT", "side": "BUY",
            "strategyId": 7, "fills": [], "selfTradePreventionMode": "NONE",
        }),
    );
    let report = trial.event(api, "executionReport");
    assert_fields(
        &report,
        &json!({
            "s": "BTCUSDT", "c": "first", "S": "BUY", "o": "LIMIT", "f": "GTC", "q": "0.01000000",
            "p": "50000.00000000", "P": "0.00000000", "F": "0.00000000", "g": -1, "C": "", "x": "NEW", "X": "NEW",
            "r": "NONE", "i": placed["orderId"], "l": "0.00000000", "z": "0.00000000", "L": "0.00000000", "n": "0",
            "N": null, "T": placed["transactTime"], "t": -1, "w": true, "m": false, "M": false,
            "O": placed["transactTime"], "Z": "0.00000000", "Y": "0.00000000", "Q": "0.00000000",
            "W": placed["workingTime"], "V": "NONE", "j": 7,
        }),
    );
    assert!(report["I"].is_u64() && report["E"].is_u64(), "{report}");
    let position = trial.event(api, "outboundAccountPosition");
    let usdt = json!({"a": "USDT", "f": "999500.00000000", "l": "500.00000000"});
    assert!(position["B"].as_array().is_some_and(|balances| balances.contains(&usdt)), "{position}");
}

#[test]
fn an_order_that_trades_at_once_has_its_fills_in_answer_and_events() {
    let (mut trial, api) = subscribed();
    let placed = trial.result(api, "order.place", ALICE.signed(limit("BUY", "60001", "0.5")));
    assert_fields(
        &placed,
        &json!({"status": "FILLED", "executedQty": "0.50000000", "cummulativeQuoteQty": "30000.50000000"}),
    );
    let fill = &placed["fills"][0];
    assert_fields(
        fill,
        &json!({"price": "60001.00000000", "qty": "0.50000000", "commission": "0.00050000", "commissionAsset": "BTC"}),
    );
    assert_eq!(trial.event(api, "executionReport")["x"], json!("NEW"));
    let report = trial.event(api, "executionReport");
    assert_fields(
        &report,
        &json!({
            "x": "TRADE", "X": "FILLED", "l": "0.50000000", "z": "0.50000000", "L": "60001.00000000",
            "n": "0.00050000", "N": "BTC", "t": fill["tradeId"], "m": false, "w": false, "Z": "30000.50000000",
            "Y": "30000.50000000",
        }),
    );
    let position = trial.event(api, "outboundAccountPosition");
    let btc = json!({"a": "BTC", "f": "10.49950000", "l": "0.00000000"});
    assert!(position["B"].as_array().is_some_and(|balances| balances.contains(&btc)), "{position}");
    let trades = trial.result(api, "myTrades", ALICE.signed(json!({"symbol": "BTCUSDT"})));
    assert_fields(
        &trades[0],
        &json!({
            "id": fill["tradeId"], "orderId": placed["orderId"], "quoteQty": "30000.50000000", "isBuyer": true,
            "isMaker": false, "isBestMatch": true,
        }),
    );
}

#[test]
fn a_resting_order_that_the_market_reaches_is_reported_as_a_maker() {
    let (mut trial, api) = subscribed();
    let placed = trial.result(api, "order.place", ALICE.signed(limit("SELL", "60500", "3")));
    assert_eq!(trial.event(api, "executionReport")["x"], json!("NEW"));
    trial.quote("60500", "60501");
    let report = trial.event(api, "executionReport");
    assert_fields(
        &report,
        &json!({
            "x": "TRADE", "X": "PARTIALLY_FILLED", "i": placed["orderId"], "l": "2.00000000", "m": true, "w": true,
        }),
    );
    assert_eq!(report["N"], json!("USDT"), "a seller pays in what is received");
    trial.quote("60500", "60501");
    let report = trial.event(api, "executionReport");
    assert_fields(
        &report,
        &json!({"x": "TRADE", "X": "FILLED", "z": "3.00000000", "Z": "181500.00000000", "w": false}),
    );
}

#[test]
fn orders_that_do_not_rest_expire_with_their_reason() {
    let (mut trial, api) = subscribed();
    for (order, filled, reason) in [
        (with(limit("BUY", "60001", "3"), &[("timeInForce", "IOC")]), "2.00000000", "UNFILLED_IOC_QUANTITY_EXPIRED"),
        (with(limit("BUY", "60001", "3"), &[("timeInForce", "FOK")]), "0.00000000", "UNFILLED_FOK_ORDER_EXPIRED"),
        (
            json!({"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "3"}),
            "2.00000000",
            "INSUFFICIENT_LIQUIDITY",
        ),
    ] {
        trial.quote("60000", "60001");
        let placed = trial.result(api, "order.place", ALICE.signed(order));
        let expected = json!({"status": "EXPIRED", "executedQty": filled, "expiryReason": reason});
        assert_fields(&placed, &expected);
        let last = trial.message(api, "expiry", |message| message["event"]["x"] == json!("EXPIRED"));
        assert_fields(&last["event"], &json!({"X": "EXPIRED", "z": filled, "eR": reason, "i": placed["orderId"]}));
    }
}

#[test]
fn a_market_order_by_amount_buys_what_the_amount_pays() {
    let (mut trial, api) = subscribed();
    let order = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quoteOrderQty": "6000.2"});
    let placed = trial.result(api, "order.place", ALICE.signed(order));
    assert_fields(
        &placed,
        &json!({
            "status": "FILLED", "type": "MARKET", "executedQty": "0.10000000", "cummulativeQuoteQty": "6000.10000000",
            "origQuoteOrderQty": "6000.20000000", "price": "0.00000000",
        }),
    );
}

#[test]
fn the_extent_of_the_answer_follows_the_request() {
    let (mut trial, api) = subscribed();
    for (form, has_status, has_fills) in [("ACK", false, false), ("RESULT", true, false), ("FULL", true, true)] {
        let order = with(limit("BUY", "50000", "0.01"), &[("newOrderRespType", form)]);
        let placed = trial.result(api, "order.place", ALICE.signed(order));
        let has = (placed.get("status").is_some(), placed.get("fills").is_some());
        assert_eq!(has, (has_status, has_fills), "{form}: {placed}");
    }
    let post_only = json!({
        "symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT_MAKER", "price": "50000", "quantity": "0.01",
    });
    let placed = trial.result(api, "order.place", ALICE.signed(post_only));
    assert_eq!(placed.get("status"), None, "post-only orders are answered by ACK");
}

#[test]
fn a_cancel_gives_the_order_a_new_name_and_frees_the_balance() {
    let (mut trial, api) = subscribed();
    let order = with(limit("BUY", "50000", "0.01"), &[("newClientOrderId", "first")]);
    let placed = trial.result(api, "order.place", ALICE.signed(order.clone()));
    let cancel = json!({"symbol": "BTCUSDT", "origClientOrderId": "first", "newClientOrderId": "cancel-1"});
    let canceled = trial.result(api, "order.cancel", ALICE.signed(cancel));
    assert_fields(
        &canceled,
        &json!({
            "orderId": placed["orderId"], "origClientOrderId": "first", "clientOrderId": "cancel-1",
            "status": "CANCELED", "executedQty": "0.00000000",
        }),
    );
    let event = trial.message(api, "cancel", |message| message["event"]["x"] == json!("CANCELED"));
    assert_fields(&event["event"], &json!({"X": "CANCELED", "c": "cancel-1", "C": "first", "w": false}));
    let again = trial.result(api, "order.place", ALICE.signed(order));
    assert_ne!(again["orderId"], placed["orderId"], "the name is free again");
    let status = json!({"symbol": "BTCUSDT", "orderId": placed["orderId"]});
    assert_eq!(trial.result(api, "order.status", ALICE.signed(status))["status"], json!("CANCELED"));
}

#[test]
fn a_cancel_may_depend_on_the_status() {
    let (mut trial, api) = subscribed();
    let placed = trial.result(api, "order.place", ALICE.signed(limit("BUY", "60001", "3")));
    assert_eq!(placed["status"], json!("PARTIALLY_FILLED"));
    let cancel = |restriction: &str| {
        let params = json!({"symbol": "BTCUSDT", "orderId": placed["orderId"], "cancelRestrictions": restriction});
        ALICE.signed(params)
    };
    assert_eq!(trial.refusal(api, "order.cancel", cancel("NEVER")), (400, -1145));
    assert_eq!(trial.refusal(api, "order.cancel", cancel("ONLY_NEW")), (400, -2011));
    trial.result(api, "order.cancel", cancel("ONLY_PARTIALLY_FILLED"));
}

#[test]
fn an_amendment_lowers_the_quantity_and_names_the_order_anew() {
    let (mut trial, api) = subscribed();
    let order = with(limit("BUY", "50000", "0.02"), &[("newClientOrderId", "first")]);
    let placed = trial.result(api, "order.place", ALICE.signed(order.clone()));
    let amend = |quantity: &str| {
        let params = json!({"symbol": "BTCUSDT", "origClientOrderId": "first", "newClientOrderId": "second"});
        ALICE.signed(with(params, &[("newQty", quantity)]))
    };
    for (quantity, code) in [("0.03", -2038), ("0.02", -2038), ("0.000015", -1013), ("0.00001", -1013)] {
        assert_eq!(trial.refusal(api, "order.amend.keepPriority", amend(quantity)), (400, code), "{quantity}");
    }
    let amended = trial.result(api, "order.amend.keepPriority", amend("0.01"));
    assert_fields(
        &amended["amendedOrder"],
        &json!({
            "orderId": placed["orderId"], "origClientOrderId": "first", "clientOrderId": "second", "qty": "0.01000000",
            "executedQty": "0.00000000", "status": "NEW",
        }),
    );
    let event = trial.message(api, "amendment", |message| message["event"]["x"] == json!("REPLACED"));
    assert_fields(&event["event"], &json!({"X": "NEW", "c": "second", "C": "first", "q": "0.01000000"}));
    assert_eq!(amended["executionId"], event["event"]["I"]);
    assert_eq!(trial.refusal(api, "order.amend.keepPriority", amend("0.01")), (400, -2013), "the name has changed");
    trial.result(api, "order.place", ALICE.signed(order));
}

#[test]
fn a_replacement_cancels_and_places_and_its_answer_names_what_failed() {
    let (mut trial, api) = subscribed();
    let replace = |mode: &str, canceled: &Value, order: Value| {
        let mut order = with(order, &[("cancelReplaceMode", mode)]);
        order["cancelOrderId"] = canceled.clone();
        ALICE.signed(order)
    };
    let first = trial.result(api, "order.place", ALICE.signed(limit("BUY", "50000", "0.01")));
    let both = trial.result(
        api,
        "order.cancelReplace",
        replace("STOP_ON_FAILURE", &first["orderId"], limit("BUY", "50001", "0.01")),
    );
    assert_fields(&both, &json!({"cancelResult": "SUCCESS", "newOrderResult": "SUCCESS"}));
    assert_eq!(both["cancelResponse"]["orderId"], first["orderId"]);
    let second = both["newOrderResponse"]["orderId"].clone();

    let gone = first["orderId"].clone();
    let too_large = limit("BUY", "50000", "1000");
    let good = limit("BUY", "50000", "0.01");
    for (mode, canceled, order, status, code, results) in [
        ("STOP_ON_FAILURE", &gone, &good, 400, -2022, ["FAILURE", "NOT_ATTEMPTED"]),
        ("ALLOW_FAILURE", &gone, &too_large, 400, -2022, ["FAILURE", "FAILURE"]),
        ("ALLOW_FAILURE", &gone, &good, 409, -2021, ["FAILURE", "SUCCESS"]),
        ("STOP_ON_FAILURE", &second, &too_large, 409, -2021, ["SUCCESS", "FAILURE"]),
    ] {
        let answer = trial.call(api, "order.cancelReplace", replace(mode, canceled, order.clone()));
        let error = &answer["error"];
        assert_eq!((&answer["status"], &error["code"]), (&json!(status), &json!(code)), "{mode}: {answer}");
        let data = &error["data"];
        assert_eq!([&data["cancelResult"], &data["newOrderResult"]], [&json!(results[0]), &json!(results[1])]);
        assert_eq!(data["newOrderResponse"].is_null(), results[1] == "NOT_ATTEMPTED", "{data}");
    }
    let invalid = with(good, &[("cancelReplaceMode", "SOMETIMES"), ("cancelOrderId", "1")]);
    assert_eq!(trial.refusal(api, "order.cancelReplace", ALICE.signed(invalid)), (400, -1130));
}

#[test]
fn all_open_orders_of_a_symbol_are_canceled_at_once() {
    let (mut trial, api) = subscribed();
    let cancel_all = json!({"symbol": "BTCUSDT"});
    let nothing = trial.refusal(api, "openOrders.cancelAll", ALICE.signed(cancel_all.clone()));
    assert_eq!(nothing, (400, -2011));
    for price in ["50000", "50001"] {
        trial.result(api, "order.place", ALICE.signed(limit("BUY", price, "0.01")));
    }
    let ether = with(limit("BUY", "2000", "1"), &[("symbol", "ETHUSDT")]);
    let kept = trial.result(api, "order.place", ALICE.signed(ether));
    let open = trial.result(api, "openOrders.status", ALICE.signed(json!({})));
    assert_eq!(open.as_array().map(Vec::len), Some(3));
    let canceled = trial.result(api, "openOrders.cancelAll", ALICE.signed(cancel_all.clone()));
    assert_eq!(canceled.as_array().map(Vec::len), Some(2));
    let open = trial.result(api, "openOrders.status", ALICE.signed(json!({})));
    assert_eq!((open.as_array().map(Vec::len), &open[0]["orderId"]), (Some(1), &kept["orderId"]));
    let all = trial.result(api, "allOrders", ALICE.signed(cancel_all));
    assert!(all.as_array().is_some_and(|all| all.len() == 2 && all.iter().all(|order| order["status"] == "CANCELED")));
}

#[test]
fn a_tested_order_is_checked_and_not_placed() {
    let (mut trial, api) = subscribed();
    let order = limit("BUY", "50000", "0.01");
    assert_eq!(trial.result(api, "order.test", ALICE.signed(order.clone())), json!({}));
    let rates = trial.result(api, "order.test", ALICE.signed(with(order, &[("computeCommissionRates", "true")])));
    assert_eq!(rates["standardCommissionForOrder"], json!({"maker": "0.00100000", "taker": "0.00100000"}));
    let commission = trial.result(api, "account.commission", ALICE.signed(json!({"symbol": "BTCUSDT"})));
    assert_eq!(commission["standardCommission"]["taker"], json!("0.00100000"));
    assert_eq!(trial.result(api, "openOrders.status", ALICE.signed(json!({}))), json!([]));
    let account = trial.result(api, "account.status", ALICE.signed(json!({"omitZeroBalances": true})));
    assert_fields(&account, &json!({"makerCommission": 10, "canTrade": true, "accountType": "SPOT"}));
}
