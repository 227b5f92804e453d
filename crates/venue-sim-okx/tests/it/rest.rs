//! The REST interface.

use serde_json::{Value, json};
use tickpath_feed_okx::read_instruments;
use tickpath_web_client::HttpRequest;

use crate::stage::{FUTURES, SECOND_NS, SPOT, SWAP, Stage, body_of, fields, limit, text, with};

#[test]
fn public_data_needs_no_signature() {
    let mut stage = Stage::open();
    let ms = stage.now_ns() / 1_000_000;
    let time: u64 = text(&stage.public("/api/v5/public/time")[0]["ts"]).parse().expect("it is a time");
    assert!((ms..ms + 60_000).contains(&time));
    let ticker = stage.public(&format!("/api/v5/market/ticker?instId={SPOT}"))[0].clone();
    assert_eq!(fields(&ticker, ["instId", "bidPx", "askPx", "bidSz"]), [SPOT, "99.9", "100.1", "5"]);
    assert_eq!(stage.public("/api/v5/market/tickers?instType=SWAP").as_array().map(Vec::len), Some(1));
    let book = stage.public(&format!("/api/v5/market/books?instId={SPOT}&sz=5"))[0].clone();
    assert_eq!((&book["asks"], &book["bids"]), (&json!([["100.1", "5", "0", "1"]]), &json!([["99.9", "5", "0", "1"]])));
    assert!(book["seqId"].is_u64());
    assert_eq!(stage.public(&format!("/api/v5/market/trades?instId={SPOT}")), json!([]));
    let socket = stage.private();
    stage.place(socket, limit("buy", "100.1", "1"));
    let trades = stage.public(&format!("/api/v5/market/trades?instId={SPOT}"));
    assert_eq!(fields(&trades[0], ["px", "sz", "side"]), ["100.1", "1", "buy"]);
}

#[test]
fn the_list_of_instruments_is_read_by_our_own_reader() {
    let mut stage = Stage::open();
    let mut listed = Vec::new();
    for kind in ["SPOT", "SWAP", "FUTURES", "OPTION"] {
        let response = stage.fetch(HttpRequest::get(&format!("/api/v5/public/instruments?instType={kind}")));
        let listing = read_instruments(&response.body).expect("it is a list");
        assert!(listing.refused.is_empty(), "{:?}", listing.refused);
        listed.extend(listing.instruments);
    }
    let names: Vec<&str> = listed.iter().map(|instrument| instrument.name.as_str()).collect();
    assert_eq!(names, [SPOT, SWAP, FUTURES]);
    assert_eq!((listed[1].code, listed[1].contract_value.as_str(), listed[1].is_live), (80, "0.01", true));
    let futures = stage.public("/api/v5/public/instruments?instType=FUTURES")[0].clone();
    assert_eq!(futures["expTime"], "1806048000000", "26 March 2027, 08:00 UTC");
}

#[test]
fn each_wrong_signature_has_its_code_and_status() {
    let mut stage = Stage::open();
    let path = "/api/v5/account/balance";
    let cases: [(&str, &str, &str); 9] = [
        ("OK-ACCESS-KEY", "", "50103"),
        ("OK-ACCESS-PASSPHRASE", "", "50104"),
        ("OK-ACCESS-PASSPHRASE", "other", "50105"),
        ("OK-ACCESS-SIGN", "", "50106"),
        ("OK-ACCESS-TIMESTAMP", "", "50107"),
        ("OK-ACCESS-KEY", "other", "50111"),
        ("OK-ACCESS-TIMESTAMP", "yesterday", "50112"),
        ("OK-ACCESS-TIMESTAMP", "2020-12-08T09:08:57.715Z", "50102"),
        ("OK-ACCESS-SIGN", "+LdIr8lkkvhr5hoA3g9TMC0+uQJ849ftAcocA/ouu4M=", "50113"),
    ];
    for (name, value, code) in cases {
        let mut request = stage.signed_request("GET", path, "");
        request.headers.retain(|(known, _)| known != name || !value.is_empty());
        for (_, own) in request.headers.iter_mut().filter(|(known, _)| known == name) {
            *own = value.to_owned();
        }
        let response = stage.fetch(request);
        let body = body_of(&response);
        assert_eq!((response.status, &body["code"], &body["data"]), (401, &json!(code), &json!([])), "{name} {value}");
    }
    let mut other = stage.signed_request("GET", path, "");
    other.path_and_query = format!("{path}?ccy=BTC");
    let response = stage.fetch(other);
    assert_eq!(body_of(&response)["code"], "50113", "the signature covers the query");
}

#[test]
fn unknown_paths_and_methods_are_refused_as_json() {
    let mut stage = Stage::open();
    let response = stage.fetch(HttpRequest::get("/api/v5/no/such"));
    assert_eq!((response.status, &body_of(&response)["code"]), (404, &json!("404")));
    let response = stage.signed("POST", "/api/v5/public/time", "{}");
    assert_eq!((response.status, &body_of(&response)["code"]), (405, &json!("50115")));
    for (body, code) in [("", "50000"), ("{", "50002"), ("[]", "50002"), ("7", "50002")] {
        let response = stage.signed("POST", "/api/v5/trade/order", body);
        assert_eq!((response.status, &body_of(&response)["code"]), (400, &json!(code)), "{body}");
    }
    let response = stage.signed("GET", "/api/v5/public/instruments", "");
    assert_eq!((response.status, &body_of(&response)["code"]), (400, &json!("51000")));
}

#[test]
fn an_order_lives_through_rest_alone() {
    let mut stage = Stage::open();
    let order = with(limit("buy", "50", "1"), &json!({"clOrdId": "rest1"}));
    let placed = stage.post("/api/v5/trade/order", &order);
    assert_eq!(fields(&placed, ["code", "msg"]), ["0", ""]);
    let id = text(&placed["data"][0]["ordId"]);
    let pending = stage.get(&format!("/api/v5/trade/orders-pending?instType=SPOT&instId={SPOT}&ordType=limit,ioc"));
    assert_eq!(fields(&pending[0], ["ordId", "clOrdId", "state", "fillPx"]), [&*id, "rest1", "live", ""]);
    let amended = stage.post("/api/v5/trade/amend-order", &json!({"instId": SPOT, "ordId": id, "newSz": "3"}));
    assert_eq!(amended["data"][0]["sCode"], "0");
    let found = stage.get(&format!("/api/v5/trade/order?instId={SPOT}&clOrdId=rest1"));
    assert_eq!(fields(&found[0], ["ordId", "sz"]), [&*id, "3"]);
    let canceled = stage.post("/api/v5/trade/cancel-order", &json!({"instId": SPOT, "clOrdId": "rest1"}));
    assert_eq!(canceled["data"][0]["sCode"], "0");
    for path in ["/api/v5/trade/orders-history", "/api/v5/trade/orders-history-archive"] {
        let ended = stage.get(&format!("{path}?instType=SPOT&state=canceled"));
        assert_eq!(fields(&ended[0], ["ordId", "state", "cancelSource"]), [&*id, "canceled", "1"]);
        assert_eq!(stage.get(&format!("{path}?instType=SPOT&state=filled")), json!([]));
        assert_eq!(stage.get(&format!("{path}?instType=SPOT&after={id}")), json!([]));
    }
    assert_eq!(stage.get("/api/v5/trade/orders-pending"), json!([]));

    stage.advance(2 * 3_600 * SECOND_NS + SECOND_NS);
    let forgotten = stage.signed("GET", &format!("/api/v5/trade/order?instId={SPOT}&ordId={id}"), "");
    assert_eq!((forgotten.status, &body_of(&forgotten)["code"]), (200, &json!("51603")), "two hours later");
}

#[test]
fn refused_orders_are_in_the_rows_of_an_answer() {
    let mut stage = Stage::open();
    let refused = stage.post("/api/v5/trade/order", &limit("buy", "50", "0.0001"));
    assert_eq!(fields(&refused, ["code", "msg"]), ["1", "All operations failed"]);
    assert_eq!(refused["data"][0]["sCode"], "51121");
    let orders = json!([limit("buy", "50", "1"), limit("buy", "50", "1000")]);
    let mixed = stage.post("/api/v5/trade/batch-orders", &orders);
    assert_eq!(fields(&mixed, ["code", "msg"]), ["2", "Bulk operation partially succeeded."]);
    assert_eq!(fields(&mixed["data"][1], ["sCode", "subCode"]), ["51008", "1000"]);
    let id = mixed["data"][0]["ordId"].clone();
    let change = json!([{"instId": SPOT, "ordId": id, "newPx": "51"}]);
    let amended = stage.post("/api/v5/trade/amend-batch-orders", &change);
    assert_eq!(amended["code"], "0");
    let canceled = stage.post("/api/v5/trade/cancel-batch-orders", &json!([{"instId": SPOT, "ordId": id}]));
    assert_eq!(canceled["code"], "0");
    let missing = stage.signed("GET", &format!("/api/v5/trade/order?instId={SPOT}&ordId=1"), "");
    assert_eq!(body_of(&missing)["code"], "51603");
}

#[test]
fn what_clients_load_at_their_start_is_there() {
    let mut stage = Stage::open();
    let configuration = stage.get("/api/v5/account/config")[0].clone();
    assert_eq!(fields(&configuration, ["acctLv", "posMode", "label"]), ["2", "net_mode", "first"]);
    let currencies: Vec<Value> = stage.get("/api/v5/asset/currencies").as_array().expect("a list").clone();
    let names: Vec<String> = currencies.iter().map(|row| text(&row["ccy"])).collect();
    assert_eq!(names, ["BTC", "USDT"]);
    let fee = |stage: &mut Stage| stage.get("/api/v5/account/trade-fee?instType=SPOT&instId=BTC-USDT")[0].clone();
    assert_eq!(fields(&fee(&mut stage), ["maker", "taker"]), ["-0.0008", "-0.001"]);
    stage.exchange.show_fee_rates(-100, 500);
    assert_eq!(fields(&fee(&mut stage), ["maker", "taker"]), ["0.0001", "-0.0005"]);
    assert_eq!(stage.get("/api/v5/account/instruments?instType=SPOT")[0]["instId"], SPOT);
}

#[test]
fn a_dead_mans_switch_cancels_unless_it_is_set_again() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let tagged = with(limit("buy", "50", "1"), &json!({"tag": "mine"}));
    let (mine, other) = (stage.place(socket, tagged), stage.place(socket, limit("buy", "50", "1")));
    let set = |stage: &mut Stage, seconds: &str, tag: &str| {
        stage.post("/api/v5/trade/cancel-all-after", &json!({"timeOut": seconds, "tag": tag}))
    };
    assert_eq!(set(&mut stage, "5", "")["code"], "51000");
    assert_ne!(set(&mut stage, "10", "mine")["data"][0]["triggerTime"], "0");
    stage.advance(8 * SECOND_NS);
    set(&mut stage, "10", "mine");
    stage.advance(8 * SECOND_NS);
    assert_eq!(stage.get("/api/v5/trade/orders-pending").as_array().map(Vec::len), Some(2), "it was set again");
    stage.advance(3 * SECOND_NS);
    let canceled = stage.take(socket, |message| message["data"][0]["state"] == "canceled");
    assert_eq!(fields(&canceled["data"][0], ["ordId", "cancelSource"]), [mine.as_str(), "20"]);
    set(&mut stage, "10", "");
    assert_eq!(set(&mut stage, "0", "")["data"][0]["triggerTime"], "0");
    stage.advance(11 * SECOND_NS);
    assert_eq!(stage.get("/api/v5/trade/orders-pending")[0]["ordId"], other, "it was removed");
}

#[test]
fn queries_are_read_with_their_escapes() {
    let mut stage = Stage::open();
    let pending = stage.get(&format!("/api/v5/account/positions?instId={SWAP}%2C{FUTURES}&instType=%53WAP&x=%zz"));
    assert_eq!(pending, json!([]));
    let book = stage.public("/api/v5/market/books?instId=BTC%2DUSDT");
    assert_eq!(book[0]["asks"].as_array().map(Vec::len), Some(1));
}
