//! Self-trade prevention: a new order never trades with an order of its account, unless the mode permits it.

use serde_json::{Value, json};

use crate::traders::Trader;
use crate::trial::{API, Trial, limit, with};

const ALICE: Trader = Trader::Alice;

/// Places an offer of 1 at 60000.50, between the quotes, and then buys 2 at 60001 with this mode.
fn cross(mode: &str) -> (Trial, usize, Value, Value) {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    trial.result(api, "userDataStream.subscribe.signature", ALICE.signed(json!({})));
    let maker = trial.result(api, "order.place", ALICE.signed(limit("SELL", "60000.50", "1")));
    let order = with(limit("BUY", "60001", "2"), &[("selfTradePreventionMode", mode)]);
    let taker = trial.result(api, "order.place", ALICE.signed(order));
    let query = json!({"symbol": "BTCUSDT", "orderId": maker["orderId"]});
    let maker = trial.result(api, "order.status", ALICE.signed(query));
    (trial, api, maker, taker)
}

#[test]
fn without_prevention_an_account_trades_with_itself() {
    let (_, _, maker, taker) = cross("NONE");
    assert_eq!((&maker["status"], &taker["status"]), (&json!("FILLED"), &json!("FILLED")));
    assert_eq!(taker["fills"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_maker_expires_and_the_taker_trades_with_others() {
    let (mut trial, api, maker, taker) = cross("EXPIRE_MAKER");
    assert_eq!((&maker["status"], &taker["status"]), (&json!("EXPIRED_IN_MATCH"), &json!("FILLED")));
    assert_eq!(taker["fills"].as_array().map(Vec::len), Some(1));
    let event = trial.message(api, "prevention", |message| message["event"]["x"] == json!("TRADE_PREVENTION"));
    let event = &event["event"];
    assert_eq!((&event["i"], &event["X"], &event["A"]), (&maker["orderId"], &maker["status"], &json!("1.00000000")));
    assert_eq!(event["v"], maker["preventedMatchId"]);
}

#[test]
fn the_taker_expires_before_it_reaches_the_maker() {
    let (mut trial, api, maker, taker) = cross("EXPIRE_TAKER");
    assert_eq!((&maker["status"], &taker["status"]), (&json!("NEW"), &json!("EXPIRED_IN_MATCH")));
    assert_eq!((&taker["executedQty"], &taker["preventedQuantity"]), (&json!("0.00000000"), &json!("2.00000000")));
    let event = trial.message(api, "prevention", |message| message["event"]["x"] == json!("TRADE_PREVENTION"));
    assert_eq!((&event["event"]["i"], &event["event"]["U"]), (&taker["orderId"], &maker["orderId"]));
}

#[test]
fn both_orders_expire() {
    let (_, _, maker, taker) = cross("EXPIRE_BOTH");
    assert_eq!((&maker["status"], &taker["status"]), (&json!("EXPIRED_IN_MATCH"), &json!("EXPIRED_IN_MATCH")));
}
