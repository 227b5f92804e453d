//! The market streams: their addresses, their requests, and their messages.

use serde_json::{Value, json};
use tickpath_web_client::HttpRequest;

use crate::traders::Trader;
use crate::trial::{API, Trial, assert_fields, limit};

#[test]
fn requests_change_and_list_the_subscriptions() {
    let mut trial = Trial::open();
    let socket = trial.connect("/ws/btcusdt@trade");
    let mut check = |request: Value, answer: Value| {
        trial.send(socket, &request.to_string());
        assert_eq!(trial.message(socket, "answer", |message| message.get("id").is_some()), answer, "{request}");
    };
    let subscribe = json!({"method": "SUBSCRIBE", "params": ["ethusdt@bookTicker", "nothing@here"], "id": 1});
    check(subscribe, json!({"result": null, "id": 1}));
    let listed = json!(["btcusdt@trade", "ethusdt@bookTicker", "nothing@here"]);
    check(json!({"method": "LIST_SUBSCRIPTIONS", "id": "two"}), json!({"result": listed, "id": "two"}));
    check(json!({"method": "UNSUBSCRIBE", "params": ["btcusdt@trade"], "id": 3}), json!({"result": null, "id": 3}));
    let listed = json!(["ethusdt@bookTicker", "nothing@here"]);
    check(json!({"method": "LIST_SUBSCRIPTIONS", "id": 4}), json!({"result": listed, "id": 4}));
}

#[test]
fn properties_of_a_connection_are_read_and_set() {
    let mut trial = Trial::open();
    let socket = trial.connect("/ws");
    let mut check = |request: Value, answer: Value| {
        trial.send(socket, &request.to_string());
        assert_eq!(trial.message(socket, "answer", |message| message.get("id").is_some()), answer, "{request}");
    };
    check(json!({"method": "GET_PROPERTY", "params": ["combined"], "id": 1}), json!({"result": false, "id": 1}));
    check(json!({"method": "SET_PROPERTY", "params": ["combined", true], "id": 2}), json!({"result": null, "id": 2}));
    check(json!({"method": "GET_PROPERTY", "params": ["combined"], "id": 3}), json!({"result": true, "id": 3}));
}

#[test]
fn wrong_requests_are_answered_with_their_code() {
    for (text, code) in [
        ("no JSON", 3),
        (r#"{"method":"GUESS","id":1}"#, 2),
        (r#"{"params":[],"id":1}"#, 2),
        (r#"{"method":"SUBSCRIBE","params":[7],"id":1}"#, 2),
        (r#"{"method":"SUBSCRIBE","params":[],"id":-1}"#, 2),
        (r#"{"method":"GET_PROPERTY","params":["color"],"id":1}"#, 0),
        (r#"{"method":"SET_PROPERTY","params":["combined",1],"id":1}"#, 1),
        (r#"{"method":"GET_PROPERTY","params":[],"id":1}"#, 2),
    ] {
        let mut trial = Trial::open();
        let socket = trial.connect("/stream");
        trial.send(socket, text);
        let answer = trial.message(socket, "answer", |_| true);
        assert_eq!(answer["error"]["code"], json!(code), "{text}: {answer}");
    }
    assert!(Trial::open().attempt("/other").is_err_and(|why| why.contains("404")));
}

#[test]
fn quotes_and_trades_are_sent_at_once() {
    let mut trial = Trial::open();
    let streams = "/stream?streams=btcusdt@bookTicker/btcusdt@trade/btcusdt@aggTrade&timeUnit=MICROSECOND";
    let socket = trial.connect(streams);
    let bare = trial.connect("/ws/btcusdt@bookTicker");
    trial.quote("60010", "60010.5");
    let quote = trial.stream(socket, "btcusdt@bookTicker");
    assert_fields(
        &quote,
        &json!({"s": "BTCUSDT", "b": "60010.00000000", "B": "2.00000000", "a": "60010.50000000", "A": "2.00000000"}),
    );
    assert_eq!(trial.message(bare, "quote", |message| message["s"] == "BTCUSDT"), quote);

    let api = trial.connect(API);
    let placed = trial.result(api, "order.place", Trader::Alice.signed(limit("SELL", "60010", "0.5")));
    let id = &placed["fills"][0]["tradeId"];
    let sold = json!({"s": "BTCUSDT", "p": "60010.00000000", "q": "0.50000000", "m": true, "M": true});
    let trade = trial.stream(socket, "btcusdt@trade");
    assert_fields(&trade, &sold);
    assert_fields(&trade, &json!({"e": "trade", "t": id}));
    assert!(trade["T"].as_u64().is_some_and(|time| time > 1_000_000_000_000_000), "{trade}");
    let aggregated = trial.stream(socket, "btcusdt@aggTrade");
    assert_fields(&aggregated, &sold);
    assert_fields(&aggregated, &json!({"e": "aggTrade", "a": id, "f": id, "l": id}));
    let after = trial.stream(socket, "btcusdt@bookTicker");
    assert_eq!(after["B"], json!("1.50000000"));
    assert!(after["u"].as_u64() > quote["u"].as_u64(), "{quote} {after}");
}

#[test]
fn books_are_sent_as_levels_and_as_changes() {
    let mut trial = Trial::open();
    let names = ["depth@100ms", "depth", "depth5@100ms", "depth10", "depth20@100ms", "ticker", "miniTicker"];
    let names: Vec<String> = names.iter().map(|name| format!("btcusdt@{name}")).collect();
    let socket = trial.connect(&format!("/stream?streams={}", names.join("/")));
    trial.quote("60020", "60020.5");
    for name in ["btcusdt@depth5@100ms", "btcusdt@depth20@100ms", "btcusdt@depth10"] {
        let book = trial.message(socket, name, |message| {
            message["stream"] == name && message["data"]["bids"][0][0] == "60020.00000000"
        });
        assert_eq!(book["data"]["asks"], json!([["60020.50000000", "2.00000000"]]), "{name}");
    }
    for name in ["btcusdt@depth@100ms", "btcusdt@depth"] {
        let update = trial.stream(socket, name);
        assert_fields(
            &update,
            &json!({
                "e": "depthUpdate", "s": "BTCUSDT",
                "b": [["60000.00000000", "0.00000000"], ["60020.00000000", "2.00000000"]],
                "a": [["60001.00000000", "0.00000000"], ["60020.50000000", "2.00000000"]],
            }),
        );
        let snapshot = trial.http(HttpRequest::get("/api/v3/depth?symbol=BTCUSDT"));
        let snapshot: Value = serde_json::from_slice(&snapshot.body).expect("JSON");
        assert_eq!(snapshot["lastUpdateId"], update["u"]);
        assert!(update["U"].as_u64() <= update["u"].as_u64(), "{update}");
    }
    let ticker = trial.stream(socket, "btcusdt@ticker");
    assert_fields(&ticker, &json!({"e": "24hrTicker", "s": "BTCUSDT", "o": "60000.00000000", "n": 0, "F": -1}));
    let mini = trial.stream(socket, "btcusdt@miniTicker");
    assert_fields(&mini, &json!({"e": "24hrMiniTicker", "c": "60000.00000000", "v": "0.00000000"}));
}
