//! The life of an order over WebSocket: answers and pushes.

use serde_json::{Value, json};

use crate::stage::{SPOT, SWAP, Stage, fields, limit, price, text, with};

#[test]
fn an_order_is_placed_amended_and_canceled_with_a_push_each() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let order = with(limit("buy", "50", "1"), &json!({"clOrdId": "first1", "tag": "mine"}));
    let answer = stage.operate(socket, "order", json!([order]));
    assert_eq!(fields(&answer, ["op", "code", "msg"]), ["order", "0", ""]);
    let row = &answer["data"][0];
    assert_eq!(fields(row, ["clOrdId", "tag", "sCode", "subCode"]), ["first1", "mine", "0", ""]);
    let [in_us, out_us] = fields(&answer, ["inTime", "outTime"]).map(|us| us.parse::<u64>().expect("it is a time"));
    assert!(in_us <= out_us && in_us / 1_000 == text(&row["ts"]).parse::<u64>().expect("it is a time"));
    let id = text(&row["ordId"]);

    let live = stage.order_push(socket);
    let names = ["ordId", "clOrdId", "state", "px", "sz", "accFillSz", "fillSz", "tradeId", "execType", "amendResult"];
    assert_eq!(fields(&live, names), [&*id, "first1", "live", "50", "1", "0", "0", "", "", ""]);
    let names =
        ["instType", "instId", "ordType", "side", "tdMode", "category", "feeCcy", "code", "cancelSource", "tag"];
    let expected = ["SPOT", SPOT, "limit", "buy", "cash", "normal", "BTC", "0", "", "mine"];
    assert_eq!(fields(&live, names), expected);

    let change = json!([{"instIdCode": 70, "clOrdId": "first1", "newSz": "2", "newPx": "51", "reqId": "change1"}]);
    let answer = stage.operate(socket, "amend-order", change);
    let names = ["ordId", "clOrdId", "reqId", "sCode"];
    assert_eq!(fields(&answer["data"][0], names), [id.as_str(), "first1", "change1", "0"]);
    let amended = stage.order_push(socket);
    let names = ["state", "px", "sz", "amendResult", "amendSource", "reqId"];
    assert_eq!(fields(&amended, names), ["live", "51", "2", "0", "1", "change1"]);

    let answer = stage.operate(socket, "cancel-order", json!([{"instId": SPOT, "ordId": id}]));
    assert_eq!(fields(&answer["data"][0], ["ordId", "clOrdId", "sCode"]), [id.as_str(), "first1", "0"]);
    let canceled = stage.order_push(socket);
    assert_eq!(fields(&canceled, ["state", "cancelSource", "reqId", "amendResult"]), ["canceled", "1", "", ""]);
}

#[test]
fn a_taker_and_a_maker_fill_have_their_fees_and_trade_ids() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    stage.place(socket, limit("buy", "100.1", "2"));
    assert_eq!(stage.order_push(socket)["state"], "live");
    let filled = stage.order_push(socket);
    let names = ["state", "accFillSz", "fillSz", "fillPx", "avgPx", "execType", "fillFee", "fillFeeCcy", "fee"];
    assert_eq!(fields(&filled, names), ["filled", "2", "2", "100.1", "100.1", "T", "-0.002", "BTC", "-0.002"]);
    assert!(text(&filled["tradeId"]).parse::<u64>().is_ok_and(|id| id > 0), "{filled}");

    stage.place(socket, limit("sell", "102", "8"));
    assert_eq!(stage.order_push(socket)["state"], "live");
    stage.quote(SPOT, "103", "103.1");
    let partly = stage.order_push(socket);
    let names = ["state", "accFillSz", "fillSz", "fillPx", "execType", "fillFeeCcy", "fillFee"];
    assert_eq!(fields(&partly, names), ["partially_filled", "5", "5", "102", "M", "USDT", "-0.408"]);
}

#[test]
fn orders_that_the_exchange_cancels_are_acknowledged_and_pushed_with_the_reason() {
    let cases = [
        (json!({"ordType": "post_only", "px": "100.1"}), "31", "0"),
        (json!({"ordType": "fok", "px": "100.1", "sz": "6"}), "13", "0"),
        (json!({"ordType": "ioc", "px": "100.1", "sz": "6"}), "14", "5"),
    ];
    for (change, source, filled) in cases {
        let mut stage = Stage::open();
        let socket = stage.trader();
        let id = stage.place(socket, with(limit("buy", "50", "1"), &change));
        let canceled = stage.take(socket, |message| message["data"][0]["state"] == "canceled");
        let names = ["ordId", "cancelSource", "accFillSz"];
        assert_eq!(fields(&canceled["data"][0], names), [id.as_str(), source, filled], "{change}");
        let row = stage.get(&format!("/api/v5/trade/order?instId={SPOT}&ordId={id}"))[0].clone();
        assert_eq!(fields(&row, ["state", "cancelSource"]), ["canceled", source], "{change}");
    }
}

#[test]
fn a_market_order_buys_for_an_amount_of_the_quote_currency_unless_it_names_the_other_one() {
    let market = |further: Value| {
        with(json!({"instId": SPOT, "tdMode": "cash", "side": "buy", "ordType": "market", "sz": "200.2"}), &further)
    };
    for (order, filled, currency, size) in [
        (market(json!({})), "2", "quote_ccy", "200.2"),
        (market(json!({"tgtCcy": "quote_ccy", "sz": "250"})), "2.497", "quote_ccy", "250"),
        (market(json!({"tgtCcy": "base_ccy", "sz": 1.5})), "1.5", "base_ccy", "1.5"),
        (market(json!({"side": "sell", "sz": "1"})), "1", "base_ccy", "1"),
    ] {
        let mut stage = Stage::open();
        let socket = stage.trader();
        stage.place(socket, order.clone());
        let done = stage.take(socket, |message| message["data"][0]["state"] == "filled");
        let names = ["accFillSz", "tgtCcy", "sz", "px", "ordType"];
        assert_eq!(fields(&done["data"][0], names), [filled, currency, size, "", "market"], "{order}");
    }
}

#[test]
fn a_batch_reports_each_of_its_orders() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let orders = json!([
        with(limit("buy", "50", "1"), &json!({"clOrdId": "a"})),
        with(limit("buy", "50", "1"), &json!({"clOrdId": "b", "sz": "0.0001"})),
    ]);
    let answer = stage.operate(socket, "batch-orders", orders);
    assert_eq!(answer["code"], "2");
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(fields(&answer["data"][0], ["clOrdId", "sCode"]), ["a", "0"]);
    assert_eq!(fields(&answer["data"][1], ["clOrdId", "ordId"]), ["b", ""]);
    assert_ne!(answer["data"][1]["sCode"], "0");
    let amend = |client_id: &str| json!({"instId": SPOT, "clOrdId": client_id, "newPx": "49"});
    let amends = json!([amend("a"), amend("b")]);
    let answer = stage.operate(socket, "batch-amend-orders", amends);
    assert_eq!((&answer["code"], &answer["data"][1]["sCode"]), (&json!("2"), &json!("51503")));
    let cancels = json!([{"instId": SPOT, "clOrdId": "a"}, {"instId": SPOT, "clOrdId": "b"}]);
    let answer = stage.operate(socket, "batch-cancel-orders", cancels);
    assert_eq!((&answer["code"], &answer["data"][1]["sCode"]), (&json!("2"), &json!("51400")));
    let answer = stage.operate(socket, "batch-cancel-orders", json!([{"instId": SPOT, "clOrdId": "a"}]));
    assert_eq!(answer["code"], "1", "all of them have failed");
}

#[test]
fn a_mass_cancel_covers_the_derivatives_of_a_family() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let swap = json!({"instId": SWAP, "tdMode": "cross", "side": "buy", "ordType": "limit", "px": "50", "sz": "3"});
    let (spot, swap) = (stage.place(socket, limit("buy", "50", "1")), stage.place(socket, swap));
    let answer = stage.operate(socket, "mass-cancel", json!([{"instType": "OPTION", "instFamily": "BTC-USDT"}]));
    assert_eq!((&answer["code"], &answer["data"][0]["result"]), (&json!("0"), &json!(true)));
    let canceled = stage.take(socket, |message| message["data"][0]["state"] == "canceled");
    assert_eq!(fields(&canceled["data"][0], ["ordId", "cancelSource"]), [swap.as_str(), "38"]);
    let pending = stage.get("/api/v5/trade/orders-pending");
    let pending: Vec<String> = pending.as_array().expect("a list").iter().map(|row| text(&row["ordId"])).collect();
    assert_eq!(pending, [spot]);
}

#[test]
fn fields_that_clients_leave_empty_are_absent() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let further = json!({
        "ccy": "", "clOrdId": "", "tag": "", "posSide": "", "reduceOnly": "", "tgtCcy": "", "stpMode": "",
        "pxUsd": "", "pxVol": "", "banAmend": "", "attachAlgoOrds": null,
    });
    let id = stage.place(socket, with(limit("sell", "150", "1"), &further));
    assert_eq!(fields(&stage.order_push(socket), ["ordId", "clOrdId", "reduceOnly"]), [id.as_str(), "", "false"]);
}

#[test]
fn an_amendment_below_the_filled_quantity_ends_the_order_as_filled() {
    let mut stage = Stage::open();
    let socket = stage.trader();
    let id = stage.place(socket, limit("buy", "100.1", "7"));
    let open = stage.exchange.desk().open_orders(0).map(|order| order.price).collect::<Vec<_>>();
    assert_eq!(open, [price("100.1")]);
    let answer = stage.operate(socket, "amend-order", json!([{"instId": SPOT, "ordId": id, "newSz": "4"}]));
    assert_eq!(answer["code"], "0", "{answer}");
    let filled = stage.take(socket, |message| message["data"][0]["amendResult"] == "0");
    assert_eq!(fields(&filled["data"][0], ["state", "accFillSz", "fillSz"]), ["filled", "5", "0"]);
}
