//! The examples of the exchange's documentation: a right signature is old, a wrong one is not valid.

use serde_json::{Value, json};
use tickpath_web_client::HttpRequest;

use crate::traders::Trader;
use crate::trial::{API, Trial, with};

const OLD: i64 = -1021;
const NOT_VALID: i64 = -1022;

#[test]
fn the_documented_signatures_of_the_websocket_api_are_valid_and_no_others() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let order = json!({
        "symbol": "BTCUSDT", "side": "SELL", "type": "LIMIT", "timeInForce": "GTC", "quantity": "0.01000000",
        "price": "52000.00", "recvWindow": 100, "timestamp": 1_645_423_376_532_u64, "apiKey": Trader::Alice.api_key(),
    });
    let brief = with(order.clone(), &[("newOrderRespType", "ACK")]);
    for (order, signature) in [
        (brief, "cc15477742bd704c29492d96c7ead9414dfd8e0ec4a00f947bb5bb454ddbd08a"),
        (order, "aa1b5712c094bc4e57c05a1a5c1fd8d88dcd628338ea863fec7b88e59fe2db24"),
    ] {
        let mut check = |order: &Value, signature: &str, code: i64| {
            let signed = with(order.clone(), &[("signature", signature)]);
            assert_eq!(trial.refusal(api, "order.place", signed), (400, code), "{order} {signature}");
        };
        check(&order, signature, OLD);
        check(&order, &signature.to_uppercase(), OLD);
        check(&order, &signature.replacen('5', "6", 1), NOT_VALID);
        check(&with(order.clone(), &[("price", "52000.0")]), signature, NOT_VALID);
    }
}

#[test]
fn the_documented_signatures_of_the_rest_api_are_valid_and_no_others() {
    let mut trial = Trial::open();
    let mut check = |query: &str, body: &str, signature: &str| {
        for (signature, code) in [(signature.to_owned(), OLD), (signature.replacen('5', "6", 1), NOT_VALID)] {
            let signature = format!("signature={signature}");
            let (query, body) = match body {
                "" => (format!("{query}&{signature}"), String::new()),
                body => (query.to_owned(), format!("{body}&{signature}")),
            };
            let response = trial.http(HttpRequest {
                method: "POST",
                path_and_query: format!("/api/v3/order?{query}"),
                headers: vec![("X-MBX-APIKEY".to_owned(), Trader::Alice.api_key().to_owned())],
                body,
            });
            let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
            assert_eq!((response.status, &answer["code"]), (400, &json!(code)), "{query} {answer}");
        }
    };
    let head = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC";
    let tail = "quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559";
    check(&format!("{head}&{tail}"), "", "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71");
    check(head, tail, "0fd168b8ddb4876a0358a8d14d0c9f3da0e9b20c5d52b2a00fcf7d1c602f9a77");
    let encoded = head.replace("LTCBTC", "%EF%BC%91%EF%BC%92%EF%BC%93%EF%BC%94%EF%BC%95%EF%BC%96");
    check(&format!("{encoded}&{tail}"), "", "e1353ec6b14d888f1164ae9af8228a3dbd508bc82eb867db8ab6046442f33ef3");
}

#[test]
fn both_kinds_of_keys_sign_requests_of_both_apis() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for trader in Trader::ALL {
        let account = trial.result(api, "account.status", trader.signed(json!({})));
        assert_eq!(account["balances"][0], json!({"asset": "BTC", "free": "10.00000000", "locked": "0.00000000"}));
        let (status, over_http) = trial.rest(trader, "GET", "/api/v3/account", &[]);
        assert_eq!((status, &over_http["balances"]), (200, &account["balances"]));
        let other = match trader {
            Trader::Alice => Trader::Bob,
            Trader::Bob => Trader::Alice,
        };
        let mut forged = trader.signed(json!({}));
        forged["apiKey"] = json!(other.api_key());
        assert_eq!(trial.refusal(api, "account.status", forged), (400, NOT_VALID));
    }
}
