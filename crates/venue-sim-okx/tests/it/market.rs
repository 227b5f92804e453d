//! Public channels: quotes, trades, tickers, instruments.

use serde_json::json;

use crate::stage::{SECOND_NS, SPOT, SWAP, Stage, fields, limit};

#[test]
fn quotes_follow_the_market_with_rising_sequence_numbers() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.subscribe(socket, json!({"channel": "bbo-tbt", "instId": SPOT}));
    let quote = |stage: &mut Stage, ask: &str| {
        let message = stage.take(socket, |message| message["data"][0]["asks"][0][0] == ask);
        message["data"][0]["seqId"].as_u64().expect("it is a number")
    };
    let mut last = quote(&mut stage, "100.1");
    for ask in ["100.2", "100.3", "100.2"] {
        stage.quote(SPOT, "99.9", ask);
        let next = quote(&mut stage, ask);
        assert!(next > last, "{next} after {last}");
        last = next;
    }
    stage.send(socket, &json!({"op": "unsubscribe", "args": [{"channel": "bbo-tbt", "instId": SPOT}]}));
    stage.take(socket, |message| message["event"] == "unsubscribe");
    stage.quote(SPOT, "99.9", "100.9");
    stage.subscribe(socket, json!({"channel": "trades", "instId": SPOT}));
    assert!(stage.left(socket).is_empty(), "{:?}", stage.left(socket));
}

#[test]
fn a_side_without_orders_is_empty() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.quote(SPOT, "0", "100.2");
    stage.subscribe(socket, json!({"channel": "bbo-tbt", "instId": SPOT}));
    let message = stage.take(socket, |message| message["data"].is_array());
    assert_eq!((&message["data"][0]["bids"], &message["data"][0]["asks"][0][0]), (&json!([]), &json!("100.2")));
}

#[test]
fn trades_and_tickers_show_each_fill() {
    let mut stage = Stage::open();
    let public = stage.socket("/ws/v5/public");
    for channel in ["trades", "tickers"] {
        stage.subscribe(public, json!({"channel": channel, "instId": SPOT}));
    }
    let private = stage.private();
    stage.place(private, limit("sell", "99.9", "2"));
    let trade = stage.take(public, |message| message["arg"]["channel"] == "trades");
    let names = ["instId", "px", "sz", "side", "count", "source"];
    assert_eq!(fields(&trade["data"][0], names), [SPOT, "99.9", "2", "sell", "1", "0"]);
    let ticker = stage.take(public, |message| message["data"][0]["last"] == "99.9");
    let names = ["lastSz", "vol24h", "volCcy24h", "open24h", "bidSz"];
    assert_eq!(fields(&ticker["data"][0], names), ["2", "2", "199.8", "99.9", "3"]);
}

#[test]
fn five_levels_come_whole_and_again_after_a_minute() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.subscribe(socket, json!({"channel": "books5", "instId": SWAP}));
    let first = stage.take(socket, |message| message["data"].is_array());
    assert_eq!(first["data"][0]["instId"], SWAP);
    for _ in 0..2 {
        // A heartbeat keeps the connection meanwhile.
        for _ in 0..3 {
            stage.advance(21 * SECOND_NS);
            stage.send_text(socket, "ping");
            stage.take_text(socket, |text| text == "pong");
        }
        let again = stage.take(socket, |message| message["data"].is_array());
        assert_eq!(again["data"][0]["asks"], first["data"][0]["asks"]);
    }
}

#[test]
fn instruments_are_listed_and_pushed_when_their_state_changes() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.subscribe(socket, json!({"channel": "instruments", "instType": "SWAP"}));
    let first = stage.take(socket, |message| message["data"].is_array());
    assert_eq!(fields(&first["data"][0], ["instId", "state"]), [SWAP, "live"]);
    stage.exchange.desk().suspend(SPOT, true);
    stage.exchange.desk().suspend(SWAP, true);
    let next = stage.take(socket, |message| message["data"].is_array());
    assert_eq!(fields(&next["data"][0], ["instId", "state"]), [SWAP, "suspend"]);
}
