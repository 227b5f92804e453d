//! Faults: each of them as a client sees it.

use serde_json::{Value, json};
use tickpath_venue_sim::Chance;
use tickpath_venue_sim_web::WebFaults;
use tickpath_web_client::HttpRequest;

use crate::traders::{Trader, now_ms};
use crate::trial::{API, Trial, limit, with};

const ALICE: Trader = Trader::Alice;
const ALWAYS: Chance = Chance(1_000_000);
const DAY_MS: i64 = 86_400_000;

fn subscribed(faults: WebFaults) -> (Trial, usize) {
    let mut trial = Trial::with(faults);
    let api = trial.connect(API);
    trial.result(api, "userDataStream.subscribe.signature", ALICE.signed(json!({})));
    (trial, api)
}

fn named(name: &str) -> Value {
    ALICE.signed(with(limit("BUY", "50000", "0.01"), &[("newClientOrderId", name)]))
}

fn open_orders(trial: &mut Trial, api: usize) -> usize {
    let open = trial.result(api, "openOrders.status", ALICE.signed(json!({})));
    open.as_array().map_or(0, Vec::len)
}

#[test]
fn a_connection_is_cut_behind_the_acknowledgement_and_before_the_event() {
    let (mut trial, api) = subscribed(WebFaults { cut_after_ack: ALWAYS, ..WebFaults::none() });
    let placed = trial.result(api, "order.place", named("first"));
    assert_eq!(placed["status"], "NEW");
    let why = trial.until_lost(api);
    assert!(!why.contains("with code"), "{why}");
    assert_eq!(trial.take_inbox(api), Vec::<Value>::new(), "the events are lost");
    let again = trial.connect(API);
    assert_eq!(open_orders(&mut trial, again), 1);
}

#[test]
fn events_come_twice() {
    let (mut trial, api) = subscribed(WebFaults { duplicate_push: ALWAYS, ..WebFaults::none() });
    trial.result(api, "order.place", named("first"));
    let events = [trial.event(api, "executionReport"), trial.event(api, "executionReport")];
    assert_eq!(events[0], events[1]);
}

#[test]
fn events_come_late_and_in_their_order() {
    let hour_ms = 3_600_000;
    let (mut trial, api) = subscribed(WebFaults { late_push_ms: hour_ms, ..WebFaults::none() });
    trial.result(api, "order.place", named("first"));
    trial.result(api, "ping", json!({}));
    assert_eq!(trial.take_inbox(api), Vec::<Value>::new(), "an event comes at once");

    let (mut trial, api) = subscribed(WebFaults { late_push_ms: 100, ..WebFaults::none() });
    trial.result(api, "order.place", named("first"));
    let cancel = json!({"symbol": "BTCUSDT", "origClientOrderId": "first"});
    trial.result(api, "order.cancel", ALICE.signed(cancel));
    for execution in ["NEW", "CANCELED"] {
        assert_eq!(trial.event(api, "executionReport")["x"], json!(execution));
    }
}

#[test]
fn an_ambiguous_answer_leaves_open_whether_there_is_an_order() {
    for is_placed in [false, true] {
        let faults = WebFaults { ambiguous: ALWAYS, ambiguous_placed: is_placed, ..WebFaults::none() };
        let (mut trial, api) = subscribed(faults);
        assert_eq!(trial.refusal(api, "order.place", named("first")), (504, -1007));
        assert_eq!(open_orders(&mut trial, api), usize::from(is_placed));
        assert_eq!(trial.refusal(api, "order.place", named("second")), (500, -1006));
        assert_eq!(open_orders(&mut trial, api), 2 * usize::from(is_placed));
        if is_placed {
            assert_eq!(trial.event(api, "executionReport")["c"], json!("first"), "its event comes all the same");
        }
    }
}

#[test]
fn a_refused_order_is_refused_also_where_answers_are_ambiguous() {
    let faults = WebFaults { ambiguous: ALWAYS, ambiguous_placed: true, ..WebFaults::none() };
    let (mut trial, api) = subscribed(faults);
    let order = ALICE.signed(limit("BUY", "50000", "1000"));
    assert_eq!(trial.refusal(api, "order.place", order), (400, -2010));
}

#[test]
fn requests_are_refused_by_a_rate_limit_with_the_time_to_wait() {
    let mut trial = Trial::with(WebFaults { rate_limited: ALWAYS, ..WebFaults::none() });
    let api = trial.connect(API);
    let answer = trial.call(api, "ping", json!({}));
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(429), &json!(-1003)));
    let data = &answer["error"]["data"];
    assert_eq!(data["retryAfter"].as_u64(), data["serverTime"].as_u64().map(|time| time + 1_000));
    let response = trial.http(HttpRequest::get("/api/v3/ping"));
    let retry_after = response.headers.iter().find(|(name, _)| name == "retry-after");
    assert_eq!((response.status, retry_after.map(|(_, value)| value.as_str())), (429, Some("1")));
}

#[test]
fn http_answers_may_be_pages_of_a_firewall() {
    let mut trial = Trial::with(WebFaults { html_answers: ALWAYS, ..WebFaults::none() });
    let response = trial.http(HttpRequest::get("/api/v3/ping"));
    assert_eq!(response.status, 403);
    assert!(String::from_utf8_lossy(&response.body).starts_with("<html>"));
    let api = trial.connect(API);
    trial.result(api, "ping", json!({}));
}

#[test]
fn a_maintenance_is_announced_and_ends_the_connections_of_before() {
    let mut trial = Trial::with(WebFaults { announce_maintenance_after_ms: 2_000, ..WebFaults::none() });
    let [api, combined, bare] = [API, "/stream", "/ws"].map(|path| trial.connect(path));
    let is_shutdown = |event: &Value| event["e"] == json!("serverShutdown") && event["E"].is_u64();
    trial.message(api, "announcement", |message| is_shutdown(&message["event"]));
    trial.message(combined, "announcement", |message| is_shutdown(&message["data"]));
    trial.message(bare, "announcement", is_shutdown);
    let later = trial.connect(API);
    for socket in [api, combined, bare] {
        let why = trial.until_lost(socket);
        assert!(why.contains("1001"), "{why}");
    }
    trial.result(later, "ping", json!({}));
}

#[test]
fn updates_of_a_book_are_left_out() {
    let mut trial = Trial::with(WebFaults { reset_sequence_every: 2, ..WebFaults::none() });
    let socket = trial.connect("/stream?streams=btcusdt@depth@100ms/btcusdt@depth5@100ms");
    let mut updates = Vec::new();
    for bid in ["60010", "60020", "60030"] {
        trial.quote(bid, "60050");
        // The levels are sent in the same turn, behind the update of the book.
        trial.message(socket, bid, |message| message["data"]["bids"][0][0] == format!("{bid}.00000000"));
        let arrived = trial.take_inbox(socket);
        updates.extend(arrived.into_iter().filter(|message| message["data"]["e"] == "depthUpdate"));
    }
    let [first, last] = updates.as_slice() else { panic!("{} updates arrive", updates.len()) };
    let sequence = |update: &Value, name: &str| update["data"][name].as_u64().expect("a sequence number");
    assert!(sequence(last, "U") > sequence(first, "u") + 1, "no update is missing: {first} {last}");
}

#[test]
fn the_clock_of_the_exchange_drifts() {
    let mut trial = Trial::with(WebFaults { clock_drift_ms: -DAY_MS, ..WebFaults::none() });
    let api = trial.connect(API);
    let time = trial.result(api, "time", json!({}))["serverTime"].as_u64().expect("a time");
    assert!(time < now_ms() - 80_000_000, "{time}");
    assert_eq!(trial.refusal(api, "account.status", ALICE.signed(json!({}))), (400, -1021));
    trial.result(api, "account.status", ALICE.signed(json!({"timestamp": time, "recvWindow": 60_000})));
}

#[test]
fn a_suspended_symbol_takes_no_orders() {
    let faults = WebFaults { suspended: vec!["ETHUSDT".to_owned()], ..WebFaults::none() };
    let (mut trial, api) = subscribed(faults);
    let info = trial.result(api, "exchangeInfo", json!({"symbol": "ETHUSDT"}));
    assert_eq!(info["symbols"][0]["status"], json!("HALT"));
    let order = with(limit("BUY", "2900", "1"), &[("symbol", "ETHUSDT")]);
    assert_eq!(trial.refusal(api, "order.place", ALICE.signed(order)), (400, -1013));
    trial.result(api, "order.place", named("first"));
}
