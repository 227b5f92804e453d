//! Each fault happens at its place.

use serde_json::{Value, json};
use tickpath_venue_sim::Chance;
use tickpath_web_client::HttpRequest;

use crate::stage::{ALWAYS, SECOND_NS, SPOT, SocketId, Stage, body_of, fields, limit, text, with};

/// Sends a heartbeat, and waits for its answer: all that was sent before has been handled then.
fn beat(stage: &mut Stage, socket: SocketId) {
    stage.send_text(socket, "ping");
    stage.take_text(socket, |text| text == "pong");
}

/// Returns the pushes of orders that have arrived.
fn pushes(stage: &Stage, socket: SocketId) -> Vec<Value> {
    let all = stage.left(socket).into_iter();
    all.filter(|message| message["arg"]["channel"] == "orders" && message["data"].is_array()).collect()
}

/// Amends the quantity of an order at a price of 50 from 1 to 2, and returns the push that follows.
fn amend(stage: &mut Stage, further: &Value) -> Value {
    let socket = stage.trader();
    let id = stage.place(socket, limit("buy", "50", "1"));
    assert_eq!(stage.order_push(socket)["state"], "live");
    let change = with(json!({"instId": SPOT, "ordId": id, "newSz": "2", "reqId": "change1"}), further);
    let answer = stage.operate(socket, "amend-order", json!([change]));
    assert_eq!(fields(&answer["data"][0], ["sCode", "ordId", "reqId"]), ["0", id.as_str(), "change1"]);
    stage.order_push(socket)
}

#[test]
fn a_connection_is_cut_behind_the_acknowledgement_and_before_the_push() {
    let mut stage = Stage::with(|faults| faults.cut_after_ack = ALWAYS);
    let (cut, witness) = (stage.trader(), stage.trader());
    let id = stage.place(cut, limit("buy", "50", "1"));
    stage.lost(cut);
    assert!(pushes(&stage, cut).is_empty());
    assert_eq!(stage.order_push(witness)["ordId"], id, "other connections stay");
    let refused = stage.operate(witness, "order", json!([limit("buy", "50", "0")]));
    assert_eq!(refused["code"], "1");
    beat(&mut stage, witness);
    let again = stage.trader();
    assert_eq!(stage.get("/api/v5/trade/orders-pending")[0]["ordId"], id);
    beat(&mut stage, again);
}

#[test]
fn a_push_arrives_twice() {
    let mut stage = Stage::with(|faults| faults.duplicate_push = ALWAYS);
    let socket = stage.trader();
    stage.place(socket, limit("buy", "100.1", "1"));
    for state in ["live", "filled"] {
        let (first, second) = (stage.order_push(socket), stage.order_push(socket));
        assert_eq!(first["state"], state);
        assert_eq!(first, second);
    }
}

#[test]
fn a_late_push_comes_behind_the_answers_of_later_requests() {
    let mut stage = Stage::with(|faults| faults.late_push_ms = 20_000);
    let socket = stage.trader();
    let id = stage.place(socket, limit("buy", "50", "1"));
    let answer = stage.operate(socket, "cancel-order", json!([{"instId": SPOT, "ordId": id}]));
    assert_eq!(answer["code"], "0");
    beat(&mut stage, socket);
    assert!(pushes(&stage, socket).is_empty());
    stage.advance(20 * SECOND_NS);
    for state in ["live", "canceled"] {
        assert_eq!(fields(&stage.order_push(socket), ["ordId", "state"]), [id.as_str(), state]);
    }
}

#[test]
fn an_upgrade_is_announced_a_minute_before_it_ends_the_connections() {
    let mut stage = Stage::with(|faults| faults.announce_maintenance_after_ms = 20_000);
    let announced = [stage.socket("/ws/v5/public"), stage.private()];
    stage.advance(20 * SECOND_NS);
    for socket in announced {
        let notice = stage.take(socket, |message| message["event"] == "notice");
        assert_eq!(notice["code"], "64008");
    }
    let later = stage.socket("/ws/v5/public");
    for _ in 0..2 {
        stage.advance(25 * SECOND_NS);
        for socket in [announced[0], announced[1], later] {
            beat(&mut stage, socket);
        }
    }
    stage.advance(11 * SECOND_NS);
    for socket in announced {
        let reason = stage.lost(socket);
        assert!(reason.contains("code 1001"), "{reason}");
    }
    beat(&mut stage, later);
}

#[test]
fn an_ambiguous_answer_leaves_open_whether_the_order_was_placed() {
    for is_placed in [false, true] {
        let mut stage = Stage::with(|faults| (faults.ambiguous, faults.ambiguous_placed) = (ALWAYS, is_placed));
        let socket = stage.trader();
        let order = |client_id: &str| with(limit("buy", "50", "1"), &json!({"clOrdId": client_id}));
        let answer = stage.operate(socket, "order", json!([order("first")]));
        assert_eq!(answer["code"], "1");
        assert_eq!(fields(&answer["data"][0], ["sCode", "clOrdId", "ordId"]), ["50004", "first", ""]);
        let response = stage.signed("POST", "/api/v5/trade/order", &order("second").to_string());
        assert_eq!((response.status, &body_of(&response)["code"]), (400, &json!("50004")));
        let answer = stage.post("/api/v5/trade/batch-orders", &json!([order("third"), order("fourth")]));
        assert_eq!((&answer["code"], &answer["data"][1]["sCode"]), (&json!("1"), &json!("50004")));
        let pending = stage.get("/api/v5/trade/orders-pending");
        let pending: Vec<String> =
            pending.as_array().expect("a list").iter().map(|row| text(&row["clOrdId"])).collect();
        let expected: &[&str] = if is_placed { &["fourth", "third", "second", "first"] } else { &[] };
        assert_eq!(pending, expected);
        beat(&mut stage, socket);
        assert_eq!(pushes(&stage, socket).len(), expected.len());
    }
}

#[test]
fn a_filled_order_is_pushed_again_without_a_fill() {
    let mut stage = Stage::with(|faults| faults.zero_fill_push = ALWAYS);
    let socket = stage.trader();
    stage.place(socket, limit("buy", "100.1", "2"));
    assert_eq!(stage.order_push(socket)["state"], "live");
    for (fill, liquidity) in [("2", "T"), ("0", "")] {
        let push = stage.order_push(socket);
        assert_eq!(fields(&push, ["state", "accFillSz", "fillSz", "execType"]), ["filled", "2", fill, liquidity]);
    }
}

#[test]
fn an_acknowledged_amendment_fails_later_and_changes_nothing() {
    let mut stage = Stage::with(|faults| faults.amend_fails_later = ALWAYS);
    let failed = amend(&mut stage, &json!({}));
    let names = ["state", "px", "sz", "amendResult", "reqId", "code"];
    assert_eq!(fields(&failed, names), ["live", "50", "1", "-1", "change1", "51502"]);
    assert_ne!(failed["msg"], "");
    let pending = stage.get("/api/v5/trade/orders-pending");
    assert_eq!(fields(&pending[0], ["state", "sz"]), ["live", "1"]);
}

#[test]
fn an_acknowledged_amendment_that_fails_later_cancels_the_order_on_request() {
    let mut stage = Stage::with(|faults| faults.amend_fails_later = ALWAYS);
    let canceled = amend(&mut stage, &json!({"cxlOnFail": true}));
    assert_eq!(fields(&canceled, ["state", "sz", "amendResult", "reqId"]), ["canceled", "1", "1", "change1"]);
    assert_eq!(stage.get("/api/v5/trade/orders-pending"), json!([]));
}

#[test]
fn requests_are_refused_by_a_rate_limit() {
    let mut stage = Stage::with(|faults| faults.rate_limited = ALWAYS);
    let socket = stage.trader();
    let name = json!({"instId": SPOT, "ordId": "1"});
    for (operation, order) in
        [("order", limit("buy", "50", "1")), ("amend-order", name.clone()), ("cancel-order", name)]
    {
        let answer = stage.operate(socket, operation, json!([order]));
        assert_eq!((&answer["code"], &answer["data"][0]["sCode"]), (&json!("1"), &json!("50011")), "{operation}");
    }
    let order = limit("buy", "50", "1").to_string();
    let answers = [stage.signed("POST", "/api/v5/trade/order", &order), stage.signed("GET", "/api/v5/trade/fills", "")];
    for response in answers {
        assert_eq!((response.status, &body_of(&response)["code"]), (429, &json!("50011")));
    }
    stage.public("/api/v5/public/time");
}

#[test]
fn an_answer_over_http_is_a_page_of_a_proxy() {
    let mut stage = Stage::with(|faults| faults.html_answers = ALWAYS);
    let socket = stage.trader();
    let answers = [
        stage.fetch(HttpRequest::get("/api/v5/public/time")),
        stage.signed("POST", "/api/v5/trade/order", &limit("buy", "50", "1").to_string()),
    ];
    for response in answers {
        let kind = response.headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
        assert_eq!((response.status, kind), (502, Some("text/html")));
        assert!(response.body.starts_with(b"<html>"));
    }
    beat(&mut stage, socket);
    assert!(pushes(&stage, socket).is_empty(), "the order did not reach the exchange");
}

#[test]
fn an_instrument_is_suspended_from_the_start() {
    let mut stage = Stage::with(|faults| faults.suspended = vec![SPOT.to_owned()]);
    let socket = stage.trader();
    let answer = stage.operate(socket, "order", json!([limit("buy", "50", "1")]));
    assert_eq!(answer["data"][0]["sCode"], "51022");
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let codes = |seed: u64| {
        let mut stage = Stage::with(|faults| (faults.ambiguous, faults.seed) = (Chance(500_000), seed));
        let socket = stage.private();
        let mut code = || text(&stage.operate(socket, "order", json!([limit("buy", "50", "1")]))["data"][0]["sCode"]);
        (0..20).map(|_| code()).collect::<Vec<String>>()
    };
    let first = codes(7);
    assert_eq!(first, codes(7));
    assert!(["0", "50004"].iter().all(|code| first.iter().any(|one| one == code)), "{first:?}");
}
