//! Messages and requests without sense: each is answered or ends its own connection, and no other.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::stage::{SPOT, SocketId, Stage, body_of, limit, with};

/// Names of fields that the exchange reads.
const NAMES: &str = "apiKey args attachAlgoOrds ccy channel clOrdId cxlOnFail expTime id instFamily instId instIdCode \
                     instType newPx newSz op ordId ordType passphrase posSide px reduceOnly reqId side sign sz tag \
                     tdMode tgtCcy timeOut timestamp";
/// Values near those that the exchange takes.
const WORDS: &str = "-1 0 0.001 0.000000001 1 1e5 100.1 9.99 10 70 5000000001 92233720368 92233720368.54775807 \
                     18446744073709551615 99999999999999999999 NaN ANY BTC BTC-USDT BTC-USDT-SWAP SPOT SWAP account \
                     base_ccy books bbo-tbt buy cash cross fok instruments ioc limit market net optimal_limit_ioc \
                     orders positions post_only quote_ccy sell tickers trades true \u{1f980}";
const OPERATIONS: &str = "amend-order batch-amend-orders batch-cancel-orders batch-orders cancel-order login \
                          mass-cancel order ping subscribe unsubscribe";
const METHODS: &str = "GET POST";
/// Ends of paths, some of which no request may have.
const PATHS: &str = "account/balance account/positions account/trade-fee asset/currencies market/books market/ticker \
                     market/tickers market/trades nothing public/instruments trade/amend-order trade/batch-orders \
                     trade/cancel-all-after trade/cancel-order trade/fills trade/order trade/orders-history \
                     trade/orders-pending";

/// Returns one of the words of a text.
fn any_word(words: &'static str) -> impl Strategy<Value = &'static str> {
    select(words.split(' ').collect::<Vec<_>>())
}

/// Returns any value: most of them are near those that the exchange takes.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        8 => any_word(WORDS).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(Value::from("")),
        1 => ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((any_word(NAMES), inner), 0..8).prop_map(object),
        ]
    })
}

/// Returns some fields.
fn any_fields() -> impl Strategy<Value = Value> {
    vec((any_word(NAMES), any_value()), 0..4).prop_map(object)
}

/// Returns orders that are valid except for some of their fields, and other arguments.
fn any_arguments() -> impl Strategy<Value = Value> {
    let order = any_fields().prop_map(|fields| with(limit("buy", "100.1", "1"), &fields));
    let change = any_fields().prop_map(|fields| with(json!({"instId": SPOT, "clOrdId": "1", "newSz": "2"}), &fields));
    let channel = any_fields().prop_map(|fields| with(json!({"channel": "books", "instId": SPOT}), &fields));
    let argument = prop_oneof![4 => order, 2 => change, 2 => channel, 1 => any_value()];
    prop_oneof![8 => vec(argument, 0..3).prop_map(Value::Array), 1 => any_value()]
}

/// Returns a message of a client.
fn any_message() -> impl Strategy<Value = String> {
    let request = (any_word(OPERATIONS), any_arguments(), any_fields());
    let request = request.prop_map(|(operation, arguments, further)| {
        let fields = json!({"id": "1", "op": operation, "args": arguments});
        with(further, &fields).to_string()
    });
    prop_oneof![8 => request, 1 => any_value().prop_map(|value| value.to_string()), 1 => ".{0,80}"]
}

fn object(fields: Vec<(&'static str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

fn check_alive(stage: &mut Stage, witness: SocketId) {
    stage.send_text(witness, "ping");
    stage.take_text(witness, |text| text == "pong");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_message_leaves_the_other_connections_served(messages in vec(any_message(), 1..24)) {
        let mut stage = Stage::open();
        let (witness, public) = (stage.trader(), stage.socket("/ws/v5/public"));
        let private = stage.trader();
        for message in &messages {
            // All of them wait in the client's output before the first one is answered.
            stage.send_text(public, message);
            stage.send_text(private, message);
        }
        for _ in 0..3 {
            check_alive(&mut stage, witness);
        }
        let open = stage.exchange.desk().open_orders(0).count();
        prop_assert!(stage.get("/api/v5/trade/orders-pending").as_array().is_some_and(|rows| rows.len() == open));
    }

    #[test]
    fn any_request_has_an_answer_in_the_form_of_the_exchange(
        requests in vec((any_word(PATHS), "[a-zA-Z0-9=&%+.,-]{0,40}", any_word(METHODS), any_arguments()), 1..4),
        body in any_fields(),
    ) {
        let mut stage = Stage::open();
        let witness = stage.trader();
        for (path, query, method, orders) in requests {
            let mark = if query.is_empty() { "" } else { "?" };
            let path = format!("/api/v5/{path}{mark}{query}");
            let bodies = if method == "GET" { vec![String::new()] } else { vec![orders.to_string(), body.to_string()] };
            for body in bodies {
                let response = stage.signed(method, &path, &body);
                let answer = body_of(&response);
                let statuses = [200, 400, 401, 404, 405, 429];
                prop_assert!(statuses.contains(&response.status), "{} {answer}", response.status);
                prop_assert!(answer["code"].is_string() && answer["msg"].is_string(), "{answer}");
            }
            check_alive(&mut stage, witness);
        }
    }
}
