//! Refused operations, each with its code.

use serde_json::{Value, json};

use crate::stage::{SPOT, SWAP, Stage, body_of, fields, limit, with};

#[test]
fn each_wrong_order_has_its_code() {
    let swap = json!({"instId": SWAP, "tdMode": "cross", "side": "sell", "ordType": "limit", "px": "150", "sz": "1"});
    let order = |further: Value| with(limit("buy", "50", "1"), &further);
    let cases = [
        (order(json!({"instId": ""})), "51000", "Parameter instId error"),
        (order(json!({"instIdCode": "x"})), "51000", "Parameter instIdCode error"),
        (order(json!({"side": "hold"})), "51000", "Parameter side error"),
        (order(json!({"ordType": "trigger"})), "51000", "Parameter ordType error"),
        (order(json!({"px": null})), "51000", "Parameter px error"),
        (order(json!({"sz": "-1"})), "51000", "Parameter sz error"),
        (order(json!({"clOrdId": "with-dash"})), "51000", "Parameter clOrdId error"),
        (order(json!({"clOrdId": "x".repeat(33)})), "51000", "Parameter clOrdId error"),
        (order(json!({"tag": "x".repeat(17)})), "51000", "Parameter tag error"),
        (order(json!({"tdMode": "cross"})), "54000", "Margin trading is not supported."),
        (order(json!({"attachAlgoOrds": [{}]})), "51000", "Parameter attachAlgoOrds error"),
        (order(json!({"instId": "NO-SUCH"})), "51001", ""),
        (order(json!({"instIdCode": 71})), "51001", ""),
        (order(json!({"sz": "1000"})), "51008", "Order failed. Insufficient USDT balance in account"),
        (
            order(json!({"side": "sell", "px": "150", "sz": "11"})),
            "51008",
            "Order failed. Insufficient BTC balance in account",
        ),
        (order(json!({"sz": "0.001"})), "51020", ""),
        (order(json!({"sz": "1.0005"})), "51121", ""),
        (order(json!({"sz": "1.0000000001"})), "51121", ""),
        (order(json!({"px": "50.05"})), "51150", ""),
        (with(swap.clone(), &json!({"tdMode": "cash"})), "51000", "Parameter tdMode error"),
        (with(swap.clone(), &json!({"posSide": "long"})), "51000", "Parameter posSide error"),
        (with(swap, &json!({"reduceOnly": true})), "51169", ""),
    ];
    let mut stage = Stage::open();
    let socket = stage.trader();
    for (order, code, message) in cases {
        let answer = stage.operate(socket, "order", json!([order]));
        assert_eq!(answer["code"], "1", "{order}");
        let [found, text, id] = fields(&answer["data"][0], ["sCode", "sMsg", "ordId"]);
        assert_eq!((found.as_str(), id.as_str()), (code, ""), "{order}: {text}");
        assert!(message.is_empty() || text == message, "{order}: {text}");
    }
    assert!(stage.left(socket).is_empty(), "a refused order has no push: {:?}", stage.left(socket));
}

#[test]
fn each_wrong_amendment_and_cancel_has_its_code() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    stage.place(socket, with(limit("buy", "50", "1"), &json!({"clOrdId": "open"})));
    stage.place(socket, with(limit("buy", "40", "1"), &json!({"clOrdId": "post", "ordType": "post_only"})));
    stage.place(socket, with(limit("buy", "100.1", "1"), &json!({"clOrdId": "done"})));
    let amend = |further: Value| with(json!({"instId": SPOT, "clOrdId": "open"}), &further);
    for (operation, order, code) in [
        ("amend-order", amend(json!({})), "51500"),
        ("amend-order", amend(json!({"newSz": "0"})), "51000"),
        ("amend-order", amend(json!({"newPx": "50.01"})), "51150"),
        ("amend-order", amend(json!({"newSz": "1.0001"})), "51121"),
        ("amend-order", amend(json!({"newSz": "900"})), "51502"),
        ("amend-order", amend(json!({"clOrdId": "post", "newPx": "100.1"})), "51511"),
        ("amend-order", amend(json!({"clOrdId": "done", "newSz": "2"})), "51503"),
        ("amend-order", amend(json!({"clOrdId": "other", "newSz": "2"})), "51503"),
        ("amend-order", amend(json!({"clOrdId": "", "newSz": "2"})), "51003"),
        ("amend-order", amend(json!({"instId": "NO-SUCH", "newSz": "2"})), "51001"),
        ("cancel-order", json!({"instId": SPOT, "clOrdId": "done"}), "51400"),
        ("cancel-order", json!({"instId": SPOT, "ordId": "77"}), "51400"),
        ("cancel-order", json!({"instId": SPOT, "ordId": "x"}), "51000"),
        ("cancel-order", json!({"instId": SPOT}), "51003"),
    ] {
        let answer = stage.operate(socket, operation, json!([order]));
        assert_eq!(answer["data"][0]["sCode"], code, "{operation} {order}: {answer}");
    }
}

#[test]
fn a_client_id_is_unique_among_pending_orders_only() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let order = with(limit("buy", "50", "1"), &json!({"clOrdId": "once"}));
    let first = stage.place(socket, order.clone());
    let answer = stage.operate(socket, "order", json!([order]));
    assert_eq!(fields(&answer["data"][0], ["sCode", "clOrdId"]), ["51016", "once"]);
    stage.operate(socket, "cancel-order", json!([{"instId": SPOT, "ordId": first}]));
    let second = stage.place(socket, order);
    assert_ne!(first, second);
    let row = stage.get(&format!("/api/v5/trade/order?instId={SPOT}&clOrdId=once"));
    assert_eq!(row[0]["ordId"], second, "the last order with this id");
}

#[test]
fn a_request_whose_deadline_has_passed_is_refused_whole() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    for (operation, order) in
        [("order", limit("buy", "50", "1")), ("amend-order", json!({"instId": SPOT, "clOrdId": "any", "newSz": "2"}))]
    {
        let request = |ms: u64| json!({"op": operation, "expTime": ms.to_string(), "args": [order]});
        let now_ms = stage.now_ns() / 1_000_000;
        let late = stage.operate_with(socket, request(now_ms - 1_000));
        assert_eq!((&late["code"], &late["data"]), (&json!("50036"), &json!([])), "{operation}");
        let early = stage.operate_with(socket, request(now_ms + 3_600_000));
        assert_ne!(early["code"], "50036", "{operation}");
    }
    let body = limit("buy", "50", "1").to_string();
    let mut request = stage.signed_request("POST", "/api/v5/trade/order", &body);
    request.headers.push(("expTime".to_owned(), (stage.now_ns() / 1_000_000 - 1_000).to_string()));
    let response = stage.fetch(request);
    assert_eq!(body_of(&response)["code"], "50036");
}

#[test]
fn operations_with_wrong_arguments_are_refused_whole() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let order = limit("buy", "50", "1");
    let many = Value::from(vec![order.clone(); 21]);
    for (operation, arguments, code) in [
        ("order", json!([]), "60013"),
        ("order", json!(["order"]), "60013"),
        ("order", json!([order, order]), "60013"),
        ("batch-orders", many, "51111"),
        ("mass-cancel", json!([{"instType": "SPOT", "instFamily": "BTC-USDT"}]), "60013"),
        ("mass-cancel", json!([{"instType": "OPTION"}]), "60013"),
    ] {
        let answer = stage.operate(socket, operation, arguments);
        assert_eq!((&answer["code"], &answer["data"]), (&json!(code), &json!([])), "{operation}");
    }
    stage.send(socket, &json!({"op": "order", "args": [order]}));
    let refused = stage.take(socket, |message| message["event"] == "error");
    assert_eq!(refused["code"], "60012", "an operation needs an id");
}

#[test]
fn a_suspended_instrument_takes_cancels_only() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let id = stage.place(socket, limit("buy", "50", "1"));
    stage.exchange.desk().suspend(SPOT, true);
    let answer = stage.operate(socket, "order", json!([limit("buy", "50", "1")]));
    assert_eq!(answer["data"][0]["sCode"], "51022");
    let listed = stage.public("/api/v5/public/instruments?instType=SPOT");
    assert_eq!(listed[0]["state"], "suspend");
    let answer = stage.operate(socket, "cancel-order", json!([{"instId": SPOT, "ordId": id}]));
    assert_eq!(answer["code"], "0", "{answer}");
}
