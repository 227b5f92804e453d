//! Rate limits, which both interfaces share.

use serde_json::{Value, json};

use crate::stage::{FUTURES, SECOND_NS, SPOT, SWAP, SocketId, Stage, body_of};

/// Returns an order that counts and is refused afterwards.
fn counted(instrument: &str) -> Value {
    json!({"instId": instrument, "clOrdId": "not-valid"})
}

/// Sends an operation with this many orders, and returns the codes of the answer.
fn codes(stage: &mut Stage, socket: SocketId, operation: &str, instrument: &str, orders: usize) -> Value {
    let answer = stage.operate(socket, operation, Value::from(vec![counted(instrument); orders]));
    answer["data"].as_array().expect("a list").iter().map(|row| row["sCode"].clone()).collect()
}

#[test]
fn sixty_requests_in_two_seconds_are_the_limit_of_an_instrument_and_operation() {
    let mut stage = Stage::open();
    let socket = stage.private();
    for operation in ["order", "amend-order", "cancel-order"] {
        for _ in 0..60 {
            assert_ne!(codes(&mut stage, socket, operation, SPOT, 1), json!(["50011"]), "{operation}");
        }
        assert_eq!(codes(&mut stage, socket, operation, SPOT, 1), json!(["50011"]), "{operation}");
        assert_ne!(codes(&mut stage, socket, operation, SWAP, 1), json!(["50011"]), "another instrument");
    }
    let response = stage.signed("POST", "/api/v5/trade/order", &counted(SPOT).to_string());
    assert_eq!((response.status, &body_of(&response)["code"]), (429, &json!("50011")), "REST has the same limit");
    assert_eq!(codes(&mut stage, socket, "batch-orders", SPOT, 1), json!(["50011"]), "a batch of one counts as one");
    assert_eq!(codes(&mut stage, socket, "batch-orders", SPOT, 2), json!(["51000", "51000"]), "batches have their own");
    stage.advance(2 * SECOND_NS);
    assert_eq!(codes(&mut stage, socket, "order", SPOT, 1), json!(["51000"]), "the window has passed");
}

#[test]
fn an_account_has_a_thousand_orders_in_two_seconds() {
    let mut stage = Stage::open();
    let socket = stage.private();
    let mut refused = Value::Null;
    let mut accepted = 0;
    for instrument in [SPOT, SWAP, FUTURES] {
        for _ in 0..15 {
            assert_eq!(codes(&mut stage, socket, "batch-orders", instrument, 20)[19], "51000");
            accepted += 20;
        }
    }
    for instrument in [SPOT, SWAP] {
        for _ in 0..60 {
            let code = codes(&mut stage, socket, "order", instrument, 1)[0].clone();
            if code == "51000" {
                accepted += 1;
            } else {
                refused = code;
            }
        }
    }
    assert_eq!((accepted, &refused), (1_000, &json!("50061")));
}

#[test]
fn a_connection_has_480_subscriptions_and_logins_an_hour() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    for _ in 0..480 {
        stage.subscribe(socket, json!({"channel": "trades", "instId": SPOT}));
    }
    stage.send(socket, &json!({"op": "unsubscribe", "args": [{"channel": "trades", "instId": SPOT}]}));
    assert_eq!(stage.take(socket, |message| message["event"] == "error")["code"], "60014");
}
