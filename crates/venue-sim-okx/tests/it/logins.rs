//! Logins, heartbeats and what a connection may do.

use serde_json::{Value, json};

use crate::stage::{SECOND_NS, SPOT, Stage, limit, sign, with};

/// Change of the arguments of a logon.
type ArgumentChange<'a> = &'a dyn Fn(&mut Value);

#[test]
fn a_login_is_acknowledged_once_and_its_timestamp_may_be_a_number() {
    let mut stage = Stage::open();
    for path in ["/ws/v5/private", "/ws/v5/public", "/ws/v5/business"] {
        let socket = stage.socket(path);
        let mut argument = stage.login_argument();
        let seconds: u64 = argument["timestamp"].as_str().and_then(|text| text.parse().ok()).expect("it is a time");
        argument["timestamp"] = json!(seconds);
        stage.send(socket, &json!({"op": "login", "args": [argument]}));
        let answer = stage.take(socket, |message| message["event"] == "login");
        assert_eq!((&answer["code"], &answer["msg"]), (&json!("0"), &json!("")), "{path}");
        stage.send(socket, &json!({"op": "login", "args": [stage.login_argument()]}));
        let again = stage.take(socket, |message| message["event"] == "error");
        assert_eq!(again["code"], "60031", "{path}");
    }
}

#[test]
fn a_wrong_login_is_refused_with_its_code_and_ends_the_connection() {
    let stale = |argument: &mut Value| {
        let late: u64 = argument["timestamp"].as_str().and_then(|text| text.parse().ok()).expect("it is a time");
        let timestamp = (late - 40).to_string();
        argument["sign"] = json!(sign(&format!("{timestamp}GET/users/self/verify")));
        argument["timestamp"] = json!(timestamp);
    };
    let cases: [(&str, ArgumentChange<'_>); 6] = [
        ("60004", &|argument| argument["timestamp"] = json!("soon")),
        ("60005", &|argument| argument["apiKey"] = json!("other")),
        ("60006", &stale),
        ("60007", &|argument| argument["sign"] = json!(sign("another text"))),
        ("60007", &|argument| argument["sign"] = json!("no base64")),
        ("60024", &|argument| argument["passphrase"] = json!("other")),
    ];
    let mut stage = Stage::open();
    for (code, change) in cases {
        let socket = stage.socket("/ws/v5/private");
        let mut argument = stage.login_argument();
        change(&mut argument);
        stage.send(socket, &json!({"op": "login", "args": [argument]}));
        let answer = stage.take(socket, |message| message["event"] == "error");
        assert_eq!(answer["code"], code, "{answer}");
        let reason = stage.lost(socket);
        assert!(reason.contains("code 4001: Login Failed"), "{reason}");
    }
    let socket = stage.socket("/ws/v5/private");
    stage.send(socket, &json!({"op": "login", "args": []}));
    assert_eq!(stage.take(socket, |message| message["event"] == "error")["code"], "60009");
}

#[test]
fn the_drift_of_the_clock_moves_the_time_of_a_login() {
    let mut stage = Stage::with(|faults| faults.clock_drift_ms = 60_000);
    let socket = stage.socket("/ws/v5/private");
    let timestamp = (stage.now_ns() / SECOND_NS - 60).to_string();
    let sign = sign(&format!("{timestamp}GET/users/self/verify"));
    let argument = with(stage.login_argument(), &json!({"timestamp": timestamp, "sign": sign}));
    stage.send(socket, &json!({"op": "login", "args": [argument]}));
    assert_eq!(stage.take(socket, |message| message["event"] == "error")["code"], "60006");
    stage.private();
}

#[test]
fn private_channels_and_orders_need_a_login() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/private");
    stage.send(socket, &json!({"id": "7", "op": "subscribe", "args": [{"channel": "account"}]}));
    let refused = stage.take(socket, |message| message["event"] == "error");
    assert_eq!((&refused["code"], &refused["id"]), (&json!("60011"), &json!("7")));
    let refused = stage.operate(socket, "order", json!([limit("buy", "50", "1")]));
    assert_eq!((&refused["event"], &refused["code"]), (&json!("error"), &json!("60011")));
    let public = stage.socket("/ws/v5/public");
    stage.log_in(public);
    let refused = stage.operate(public, "order", json!([limit("buy", "50", "1")]));
    assert_eq!(refused["code"], "60028");
}

#[test]
fn subscriptions_that_cannot_be_are_refused_with_their_codes() {
    let mut stage = Stage::open();
    let public = stage.socket("/ws/v5/public");
    for (argument, code) in [
        (json!({"channel": "nothing", "instId": SPOT}), "60018"),
        (json!({"channel": "books", "instId": "NO-SUCH"}), "60018"),
        (json!({"channel": "orders", "instType": "SPOT"}), "60018"),
        (json!({"channel": "instruments", "instType": "STOCK"}), "60018"),
        (json!({"channel": "books"}), "60012"),
        (json!({"instId": SPOT}), "60012"),
        (json!("books"), "60012"),
        (json!({"channel": "books-l2-tbt", "instId": SPOT}), "64003"),
    ] {
        stage.send(public, &json!({"op": "subscribe", "args": [argument]}));
        let refused = stage.take(public, |message| message["event"] == "error");
        assert_eq!(refused["code"], code, "{argument}");
    }
    for (text, code) in [
        ("{", "60012"),
        ("[]", "60012"),
        (r#"{"op":"subscribe"}"#, "60012"),
        (r#"{"op":"subscribe","args":[]}"#, "60012"),
        (r#"{"op":"dance","args":[{}]}"#, "60019"),
    ] {
        stage.send_text(public, text);
        let refused = stage.take(public, |message| message["event"] == "error");
        assert_eq!(refused["code"], code, "{text}");
    }
}

#[test]
fn the_text_ping_is_answered_and_silence_ends_a_connection() {
    let mut stage = Stage::open();
    let (pinging, silent) = (stage.socket("/ws/v5/public"), stage.socket("/ws/v5/private"));
    stage.advance(29 * SECOND_NS);
    stage.send_text(pinging, "ping");
    stage.take_text(pinging, |text| text == "pong");
    stage.advance(2 * SECOND_NS);
    let reason = stage.lost(silent);
    assert!(reason.contains("code 4004: No data received in 30s"), "{reason}");
    stage.send_text(pinging, "ping");
    stage.take_text(pinging, |text| text == "pong");
}

#[test]
fn the_connections_of_an_account_with_a_channel_are_counted_and_limited() {
    let mut stage = Stage::open();
    let argument = json!({"channel": "account"});
    for number in 1..=31 {
        let socket = stage.private();
        stage.subscribe(socket, argument.clone());
        let event = if number <= 30 { "channel-conn-count" } else { "channel-conn-count-error" };
        let counted = stage.take(socket, |message| message["channel"] == "account");
        let count = number.min(30).to_string();
        assert_eq!((&counted["event"], &counted["connCount"]), (&json!(event), &json!(count)));
    }
}
