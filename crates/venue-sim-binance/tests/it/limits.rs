//! Limits: weight, unfilled orders, messages and pongs of connections.

use serde_json::{Value, json};
use tickpath_venue_sim_binance::ConnectionTimes;
use tickpath_web_client::HttpRequest;

use crate::traders::Trader;
use crate::trial::{API, Trial, limit};

const ALICE: Trader = Trader::Alice;

/// Sends requests until one is refused, and returns its answer. The limit's interval may begin anew in between.
fn until_refused(trial: &mut Trial, at_most: usize, mut request: impl FnMut(&mut Trial) -> Value) -> Value {
    for _ in 0..at_most {
        let answer = request(trial);
        if answer["status"] != 200 {
            return answer;
        }
    }
    panic!("none of {at_most} requests is refused");
}

#[test]
fn the_weight_of_a_minute_is_limited_for_all_apis_together() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let heavy = json!({"symbol": "BTCUSDT", "limit": 5_000});
    let answer = until_refused(&mut trial, 50, |trial| trial.call(api, "depth", heavy.clone()));
    let error = &answer["error"];
    assert_eq!((&answer["status"], &error["code"]), (&json!(429), &json!(-1003)), "{answer}");
    assert!(error["data"]["retryAfter"].as_u64() > error["data"]["serverTime"].as_u64(), "{answer}");

    let refused = trial.until("refusal over HTTP", |trial| {
        let response = trial.http(HttpRequest::get("/api/v3/depth?symbol=BTCUSDT&limit=5000"));
        (response.status == 429).then_some(response)
    });
    let header = |name: &str| refused.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    assert!(header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok()).is_some_and(|seconds| seconds <= 60));
    assert!(header("x-mbx-used-weight-1m").and_then(|used| used.parse::<u64>().ok()).is_some_and(|used| used > 6_000));
}

#[test]
fn unfilled_orders_are_limited_and_counted_in_the_answers() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    let mut counts = Vec::new();
    let answer = until_refused(&mut trial, 250, |trial| {
        let answer = trial.call(api, "order.place", ALICE.signed(limit("BUY", "50000", "0.001")));
        counts.push(answer["rateLimits"][0]["count"].as_u64().unwrap_or_default());
        answer
    });
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(429), &json!(-1015)), "{answer}");
    assert_eq!(answer["rateLimits"][0]["rateLimitType"], json!("ORDERS"));
    assert!(counts.contains(&100) && counts.iter().all(|count| *count <= 100), "{counts:?}");
    let orders = trial.result(api, "account.rateLimits.orders", ALICE.signed(json!({})));
    assert_eq!((&orders[1]["interval"], &orders[1]["limit"]), (&json!("DAY"), &json!(200_000)));
    trial.result(api, "order.place", Trader::Bob.signed(limit("BUY", "50000", "0.001")));
}

#[test]
fn filled_orders_do_not_use_up_the_limit() {
    let mut trial = Trial::open();
    let api = trial.connect(API);
    for _ in 0..120 {
        trial.quote("60000", "60001");
        let placed = trial.result(api, "order.place", ALICE.signed(limit("BUY", "60001", "0.001")));
        assert_eq!(placed["status"], "FILLED");
    }
}

#[test]
fn a_stream_connection_with_too_many_messages_is_closed() {
    let mut trial = Trial::open();
    let socket = trial.connect("/ws");
    for id in 0..50 {
        trial.send(socket, &json!({"method": "LIST_SUBSCRIPTIONS", "id": id}).to_string());
    }
    let why = trial.until_lost(socket);
    assert!(why.contains("1008"), "{why}");
    assert!(trial.take_inbox(socket).len() < 50);
}

#[test]
fn a_client_that_answers_pings_stays_connected() {
    let mut trial = Trial::open();
    trial.exchange.set_connection_times(ConnectionTimes {
        ping_every_ns: 300_000_000,
        pong_within_ns: 30_000_000_000,
        ..ConnectionTimes::default()
    });
    let sockets = [trial.connect(API), trial.connect("/ws")];
    for socket in sockets {
        trial.until("three pings", |trial| (trial.pings(socket) >= 3).then_some(()));
    }
    trial.result(sockets[0], "ping", json!({}));
}

#[test]
fn a_client_without_pongs_and_one_of_great_age_are_closed() {
    for (times, reason) in [
        (ConnectionTimes { pong_within_ns: 1_000_000, ..ConnectionTimes::default() }, "Pong timeout"),
        (ConnectionTimes { lifetime_ns: 1_000_000, ..ConnectionTimes::default() }, "too old"),
    ] {
        let mut trial = Trial::open();
        trial.exchange.set_connection_times(times);
        for path in [API, "/stream"] {
            let why = match trial.attempt(path) {
                Ok(socket) => trial.until_lost(socket),
                Err(why) => why,
            };
            assert!(why.contains(reason), "{path}: {why}");
        }
    }
}
