//! Properties under any orders: the streams agree with the book, and the events with the orders.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::traders::Trader;
use crate::trial::{API, Trial, limit, with};

const STREAM: &str = "btcusdt@depth@100ms";

/// Levels by price, as texts.
type Levels = BTreeMap<String, String>;

/// A step of a session of trading.
#[derive(Debug, Clone)]
enum Step {
    /// A limit order this many ticks of 0.50 above 60000.
    Place { is_buy: bool, ticks: i32, lots: u32, is_immediate: bool },
    /// A cancel of one of the orders so far.
    Cancel(usize),
    /// A move of the market by ticks of 0.50.
    Quote(i32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), -6..6_i32, 1..300_u32, any::<bool>())
            .prop_map(|(is_buy, ticks, lots, is_immediate)| Step::Place { is_buy, ticks, lots, is_immediate }),
        2 => (0..20_usize).prop_map(Step::Cancel),
        2 => (-6..6_i32).prop_map(Step::Quote),
    ]
}

fn price_text(ticks: i32) -> String {
    let halves = 120_000 + ticks;
    format!("{}.{}", halves / 2, if halves % 2 == 0 { "00" } else { "50" })
}

/// Carries out a step, and returns the id of a new order.
fn perform(trial: &mut Trial, api: usize, step: &Step, orders: &[Value]) -> Option<Value> {
    match step {
        Step::Place { is_buy, ticks, lots, is_immediate } => {
            let side = if *is_buy { "BUY" } else { "SELL" };
            let lifetime = if *is_immediate { "IOC" } else { "GTC" };
            let order = limit(side, &price_text(*ticks), &format!("0.{lots:04}"));
            let order = with(order, &[("timeInForce", lifetime)]);
            let answer = trial.call(api, "order.place", Trader::Alice.signed(order));
            answer["result"].get("orderId").cloned()
        }
        Step::Cancel(place) => {
            let order = orders.get(*place)?;
            trial.call(api, "order.cancel", Trader::Alice.signed(json!({"symbol": "BTCUSDT", "orderId": order})));
            None
        }
        Step::Quote(ticks) => {
            trial.quote(&price_text(*ticks), &price_text(*ticks + 1));
            None
        }
    }
}

/// Returns the two sides of a book of the REST API.
fn sides(bids: &Value, asks: &Value) -> [Levels; 2] {
    [bids, asks].map(|levels| {
        let levels = levels.as_array().expect("levels").iter();
        levels.map(|level| (text(&level[0]), text(&level[1]))).collect()
    })
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Applies an update to a book.
fn apply(book: &mut [Levels; 2], update: &Value) {
    for (levels, changed) in book.iter_mut().zip(sides(&update["b"], &update["a"])) {
        for (price, quantity) in changed {
            if quantity == "0.00000000" {
                levels.remove(&price);
            } else {
                levels.insert(price, quantity);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn streams_agree_with_the_book_and_events_with_the_orders(steps in vec(step(), 1..25)) {
        let mut trial = Trial::open();
        let api = trial.connect(API);
        trial.result(api, "userDataStream.subscribe.signature", Trader::Alice.signed(json!({})));
        let stream = trial.connect(&format!("/stream?streams={STREAM}"));
        let snapshot = trial.result(api, "depth", json!({"symbol": "BTCUSDT"}));
        let mut book = sides(&snapshot["bids"], &snapshot["asks"]);
        let mut sequence = snapshot["lastUpdateId"].as_u64().expect("a number");
        let mut orders: Vec<Value> = Vec::new();
        for step in &steps {
            let placed = perform(&mut trial, api, step, &orders);
            orders.extend(placed);
        }
        let last = trial.result(api, "depth", json!({"symbol": "BTCUSDT"}));
        while Some(sequence) != last["lastUpdateId"].as_u64() {
            let update = trial.stream(stream, STREAM);
            prop_assert_eq!(update["U"].as_u64(), Some(sequence + 1));
            sequence = update["u"].as_u64().expect("a number");
            apply(&mut book, &update);
        }
        prop_assert_eq!(book, sides(&last["bids"], &last["asks"]));

        let all = trial.result(api, "allOrders", Trader::Alice.signed(json!({"symbol": "BTCUSDT"})));
        trial.result(api, "ping", json!({}));
        let mut newest = BTreeMap::new();
        for message in trial.take_inbox(api) {
            let event = &message["event"];
            if event["e"] == "executionReport" {
                let (id, execution) = (event["i"].as_u64(), event["I"].as_u64());
                let report = (execution, text(&event["X"]), text(&event["z"]));
                let former = newest.insert(id, report.clone());
                prop_assert!(former.is_none_or(|(former, ..)| former < report.0), "executions do not rise");
            }
        }
        for order in all.as_array().expect("orders") {
            let (_, status, filled) = newest.get(&order["orderId"].as_u64()).expect("an order without events");
            prop_assert_eq!(&[text(&order["status"]), text(&order["executedQty"])], &[status.clone(), filled.clone()]);
        }
    }
}
