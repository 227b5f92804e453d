//! Sessions of the WebSocket API: the envelope of answers, logon, and subscriptions to events of accounts.

use serde_json::{Value, json};

use crate::traders::{Trader, stamped};
use crate::trial::{API, Trial, limit};

#[test]
fn an_answer_has_the_id_of_its_request() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for id in [json!(7), json!(-7), json!("e2a85d9f-07a5-4f94-8d5f-789dc3deb097"), json!(null)] {
        for method in ["time", "v3/time"] {
            trial.send(api, &json!({ "id": id, "method": method }).to_string());
            let answer = trial.message(api, "answer", |_| true);
            assert_eq!((&answer["id"], &answer["status"]), (&id, &json!(200)), "{answer}");
            assert!(answer["result"]["serverTime"].is_u64(), "{answer}");
        }
    }
}

#[test]
fn a_text_that_is_no_request_is_answered_with_an_error() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for (text, id, status, code) in [
        ("no JSON", json!(null), 400, -1135),
        ("[]", json!(null), 400, -1135),
        (r#"{"id":3}"#, json!(null), 400, -1135),
        (r#"{"id":[3],"method":"ping"}"#, json!(null), 400, -1100),
        (r#"{"id":3,"method":"ping","params":[]}"#, json!(null), 400, -1135),
        (r#"{"id":3,"method":"order.unknown"}"#, json!(3), 404, -1020),
    ] {
        trial.send(api, text);
        let answer = trial.message(api, "answer", |_| true);
        let seen = (&answer["id"], &answer["status"], &answer["error"]["code"]);
        assert_eq!(seen, (&id, &json!(status), &json!(code)), "{text}: {answer}");
    }
}

#[test]
fn the_limits_of_an_answer_are_listed_unless_the_client_declines() {
    let mut trial = Trial::open();
    for (query, params, is_listed) in [
        ("", json!({}), true),
        ("", json!({"returnRateLimits": false}), false),
        ("?returnRateLimits=false", json!({}), false),
        ("?returnRateLimits=false", json!({"returnRateLimits": "true"}), true),
    ] {
        let api = trial.connect(&format!("{API}{query}"));
        let answer = trial.call(api, "ping", params.clone());
        let limits = answer.get("rateLimits");
        assert_eq!(limits.is_some(), is_listed, "{query} {params}: {answer}");
        if let Some(limits) = limits {
            let weight = &limits[0];
            assert_eq!((&weight["rateLimitType"], &weight["limit"]), (&json!("REQUEST_WEIGHT"), &json!(6_000)));
        }
    }
    assert!(trial.attempt(&format!("{API}?timeUnit=NANOSECOND")).is_err_and(|why| why.contains("400")));
}

#[test]
fn a_session_with_microseconds_has_them_in_answers_and_events() {
    let mut trial = Trial::open();
    let api = trial.connect(&format!("{API}?timeUnit=MICROSECOND"));
    let is_microseconds = |time: &Value| time.as_u64().is_some_and(|time| time > 1_000_000_000_000_000);
    assert!(is_microseconds(&trial.result(api, "time", json!({}))["serverTime"]));
    trial.result(api, "userDataStream.subscribe.signature", Trader::Alice.signed(json!({})));
    let placed = trial.result(api, "order.place", Trader::Alice.signed(limit("BUY", "50000", "0.01")));
    assert!(is_microseconds(&placed["transactTime"]), "{placed}");
    let report = trial.event(api, "executionReport");
    assert!(["E", "T", "O", "W"].iter().all(|name| is_microseconds(&report[*name])), "{report}");
}

#[test]
fn an_ed25519_key_logs_on_and_its_requests_need_no_signature() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let before = trial.result(api, "session.status", json!({}));
    assert_eq!((&before["apiKey"], &before["userDataStream"]), (&json!(null), &json!(false)));
    let logon = trial.result(api, "session.logon", Trader::Bob.signed(json!({})));
    assert_eq!(logon["apiKey"], json!(Trader::Bob.api_key()));
    assert!(logon["authorizedSince"].as_u64() >= logon["connectedSince"].as_u64(), "{logon}");
    assert_eq!(trial.result(api, "session.status", json!({}))["apiKey"], logon["apiKey"]);

    let placed = trial.result(api, "order.place", stamped(limit("BUY", "50000", "0.01")));
    assert_eq!(placed["status"], "NEW");
    assert_eq!(trial.refusal(api, "account.status", json!({})), (400, -1102), "a timestamp is missing");
    let others = trial.result(api, "openOrders.status", Trader::Alice.signed(json!({})));
    assert_eq!(others, json!([]), "a request with a key of its own is one of that account");

    let logout = trial.result(api, "session.logout", json!({}));
    assert_eq!(logout["apiKey"], json!(null));
    assert_eq!(trial.refusal(api, "account.status", stamped(json!({}))), (400, -1102), "no key is known");
}

#[test]
fn an_hmac_key_cannot_log_on() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    assert_eq!(trial.refusal(api, "session.logon", Trader::Alice.signed(json!({}))), (400, -4056));
    assert_eq!(trial.result(api, "session.status", json!({}))["apiKey"], json!(null));
}

#[test]
fn subscriptions_are_listed_and_end_with_an_event() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    assert_eq!(trial.refusal(api, "userDataStream.subscribe", json!({})), (401, -2015), "there is no logon");
    trial.result(api, "session.logon", Trader::Bob.signed(json!({})));
    assert_eq!(trial.result(api, "userDataStream.subscribe", json!({})), json!({"subscriptionId": 0}));
    let by_signature = "userDataStream.subscribe.signature";
    assert_eq!(trial.result(api, by_signature, Trader::Alice.signed(json!({}))), json!({"subscriptionId": 1}));
    for trader in Trader::ALL {
        assert_eq!(trial.refusal(api, by_signature, trader.signed(json!({}))), (400, -2035), "{trader:?}");
    }
    let listed = json!([{"subscriptionId": 0}, {"subscriptionId": 1}]);
    assert_eq!(trial.result(api, "session.subscriptions", json!({})), listed);
    assert_eq!(trial.result(api, "session.status", json!({}))["userDataStream"], json!(true));

    let ended = |message: &Value, id: u64| {
        message["event"]["e"] == json!("eventStreamTerminated") && message["subscriptionId"] == json!(id)
    };
    assert_eq!(trial.result(api, "userDataStream.unsubscribe", json!({"subscriptionId": "1"})), json!({}));
    trial.message(api, "end of subscription 1", |message| ended(message, 1));
    assert_eq!(trial.refusal(api, "userDataStream.unsubscribe", json!({"subscriptionId": 1})), (400, -2036));
    trial.result(api, by_signature, Trader::Alice.signed(json!({})));
    trial.result(api, "session.logout", json!({}));
    trial.message(api, "end of subscription 0", |message| ended(message, 0));
    let left = trial.result(api, "session.subscriptions", json!({}));
    assert_eq!(left, json!([{"subscriptionId": 2}]), "a subscription by signature outlives the logon");
    trial.result(api, "userDataStream.unsubscribe", json!({}));
    trial.message(api, "end of subscription 2", |message| ended(message, 2));
}

#[test]
fn events_of_an_account_reach_its_subscribers_only() {
    let mut trial = Trial::open();
    let (alice, bob, quiet) = (trial.connect(API), trial.connect(API), trial.connect(API));
    for (socket, trader) in [(alice, Trader::Alice), (bob, Trader::Bob)] {
        trial.result(socket, "userDataStream.subscribe.signature", trader.signed(json!({})));
    }
    let placed = trial.result(quiet, "order.place", Trader::Alice.signed(limit("BUY", "50000", "0.01")));
    assert_eq!(trial.event(alice, "executionReport")["i"], placed["orderId"]);
    trial.event(alice, "outboundAccountPosition");
    for socket in [bob, quiet] {
        trial.result(socket, "ping", json!({}));
        assert_eq!(trial.take_inbox(socket), Vec::<Value>::new());
    }
}
