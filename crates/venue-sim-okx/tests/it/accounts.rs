//! Channels and answers about an account: balances, positions, fills.

use serde_json::{Value, json};
use tickpath_market::decimal_text;

use crate::stage::{SPOT, SWAP, Stage, fields, limit, text, with};

fn details<'a>(row: &'a Value, currency: &str) -> &'a Value {
    let all = row["details"].as_array().expect("a list");
    all.iter().find(|detail| detail["ccy"] == currency).unwrap_or_else(|| panic!("{currency} is not in {row}"))
}

fn swap(side: &str, size: &str) -> Value {
    json!({"instId": SWAP, "tdMode": "cross", "side": side, "ordType": "market", "sz": size})
}

#[test]
fn balances_are_pushed_after_a_snapshot() {
    let mut stage = Stage::open();
    let socket = stage.private();
    stage.subscribe(socket, json!({"channel": "account"}));
    let first = stage.take(socket, |message| message["arg"]["channel"] == "account" && message["data"].is_array());
    assert_eq!((&first["eventType"], &first["lastPage"]), (&json!("snapshot"), &json!(true)));
    let names = ["cashBal", "availBal", "frozenBal"];
    assert_eq!(fields(details(&first["data"][0], "USDT"), names), ["10000", "10000", "0"]);
    stage.place(socket, limit("buy", "50", "2"));
    let next = stage.take(socket, |message| message["eventType"] == "event_update");
    assert_eq!(fields(details(&next["data"][0], "USDT"), names), ["10000", "9900", "100"]);
    let row = stage.get("/api/v5/account/balance?ccy=USDT")[0].clone();
    assert_eq!(row["details"].as_array().map(Vec::len), Some(1));
    assert_eq!(fields(details(&row, "USDT"), ["eq", "availEq"]), ["10000", "9900"]);
    // Ten BTC are worth 100 each, in the middle of the market.
    assert_eq!(row["totalEq"], "11000");
}

#[test]
fn a_channel_of_one_currency_has_that_currency_alone() {
    let mut stage = Stage::open();
    let socket = stage.private();
    stage.subscribe(socket, json!({"channel": "account", "ccy": "BTC"}));
    let first = stage.take(socket, |message| message["eventType"] == "snapshot");
    let currencies: Vec<&Value> =
        first["data"][0]["details"].as_array().expect("a list").iter().map(|detail| &detail["ccy"]).collect();
    assert_eq!(currencies, [&json!("BTC")]);
}

#[test]
fn positions_follow_the_fills_of_derivatives() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    stage.subscribe(socket, json!({"channel": "positions", "instType": "ANY"}));
    let first = stage.take(socket, |message| message["arg"]["channel"] == "positions" && message["data"].is_array());
    assert_eq!((&first["eventType"], &first["data"]), (&json!("snapshot"), &json!([])));
    let steps = [
        ("buy", "3", "3", "100.1"),
        ("sell", "1", "2", "100.1"),
        ("sell", "4", "-2", "99.9"),
        ("buy", "2", "0", "99.9"),
    ];
    for (side, size, position, entry) in steps {
        stage.place(socket, swap(side, size));
        let push = stage.take(socket, |message| message["arg"]["channel"] == "positions");
        assert_eq!(fields(&push["data"][0], ["instId", "pos", "avgPx", "posSide"]), [SWAP, position, entry, "net"]);
        let desk = stage.exchange.desk().position(0, SWAP);
        assert_eq!(decimal_text(desk.into(), 8), position);
    }
    assert_eq!(stage.get("/api/v5/account/positions"), json!([]), "a closed position is not listed");
    let named = stage.get(&format!("/api/v5/account/positions?instId={SWAP}"));
    assert_eq!(named[0]["pos"], "0", "unless it is named");
}

#[test]
fn balances_and_positions_are_pushed_together_after_a_fill() {
    let mut stage = Stage::open();
    let socket = stage.private();
    stage.subscribe(socket, json!({"channel": "balance_and_position"}));
    let first = stage.take(socket, |message| message["data"][0]["eventType"] == "snapshot");
    assert_eq!(first["data"][0]["balData"].as_array().map(Vec::len), Some(2));
    stage.place(socket, swap("buy", "3"));
    let filled = stage.take(socket, |message| message["data"][0]["eventType"] == "filled");
    let row = &filled["data"][0];
    assert_eq!(fields(&row["posData"][0], ["instId", "pos", "mgnMode"]), [SWAP, "3", "cross"]);
    assert_eq!(row["trades"][0]["tradeId"], row["posData"][0]["tradeId"]);
}

#[test]
fn fills_are_pushed_and_listed_with_the_same_trade_ids() {
    let mut stage = Stage::open();
    let socket = stage.private();
    stage.subscribe(socket, json!({"channel": "fills"}));
    let order = with(limit("buy", "100.1", "2"), &json!({"clOrdId": "77"}));
    let id = stage.place(socket, order);
    let push = stage.take(socket, |message| message["arg"]["channel"] == "fills" && message["data"].is_array());
    let push = &push["data"][0];
    let trade = text(&push["tradeId"]);
    assert_eq!(fields(push, ["ordId", "clOrdId", "fillSz", "fillPx", "execType"]), [&*id, "77", "2", "100.1", "T"]);
    for path in ["/api/v5/trade/fills", "/api/v5/trade/fills-history"] {
        let listed = stage.get(&format!("{path}?instType=SPOT&instId={SPOT}&ordId={id}"));
        let names = ["tradeId", "ordId", "side", "fillSz", "fee", "feeCcy", "feeRate", "execType"];
        let expected = [trade.as_str(), id.as_str(), "buy", "2", "-0.002", "BTC", "-0.001", "T"];
        assert_eq!(fields(&listed[0], names), expected, "{path}");
    }
    assert_eq!(stage.get("/api/v5/trade/fills?instType=SWAP"), json!([]));
    assert_eq!(stage.get("/api/v5/trade/fills?before=1"), json!([]), "the only one has the number 1");
}

#[test]
fn events_reach_the_subscriptions_of_their_account_and_instrument_only() {
    let mut stage = Stage::open();
    let (spot, swaps) = (stage.private(), stage.private());
    stage.subscribe(spot, json!({"channel": "orders", "instType": "SPOT", "instId": SPOT}));
    stage.subscribe(swaps, json!({"channel": "orders", "instType": "SWAP", "instFamily": "BTC-USDT"}));
    let id = stage.place(spot, limit("buy", "50", "1"));
    let pushed = stage.take(spot, |message| message["arg"]["channel"] == "orders" && message["data"].is_array());
    assert_eq!(pushed["data"][0]["ordId"], id);
    let argument = &pushed["arg"];
    assert_eq!(fields(argument, ["channel", "instType", "instId"]), ["orders", "SPOT", SPOT]);
    assert!(text(&argument["uid"]).bytes().all(|byte| byte.is_ascii_digit()), "{argument}");
    stage.place(swaps, swap("buy", "1"));
    let pushed = stage.take(swaps, |message| message["data"][0]["state"] == "filled");
    assert_eq!(pushed["data"][0]["instId"], SWAP);
    let names = |messages: Vec<Value>| {
        let pushes = messages.into_iter().filter(|message| message["data"].is_array());
        pushes.map(|message| text(&message["data"][0]["instId"])).collect::<Vec<_>>()
    };
    assert!(names(stage.left(spot)).is_empty() && !names(stage.left(swaps)).contains(&SPOT.to_owned()));
}
