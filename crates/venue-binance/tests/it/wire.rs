//! Requests to the byte. The time and the signature differ each time, and stand as `T` and `S`.

use serde_json::json;
use tickpath_market::{ClientOrderId, NewOrder, OrderType, Price, Request, SelfTradeMode, Side, SymbolId, TimeInForce};
use tickpath_venue_binance::{BinanceLineConfig, OrderEncoder};

use crate::driver::{
    API_KEY, BTCUSDT, Driver, PRIVATE_KEY, SECRET_KEY, buy, cancel, config, credentials, instrument, placed, replace,
    status,
};
use crate::exchange::{Received, ScriptedExchange};
use crate::frames::{EventFrame, text_of};
use crate::signatures::sign;

/// Returns a request with its time and its signature replaced.
fn masked(request: &Received) -> String {
    let time = format!("\"timestamp\":{}", request.param("timestamp"));
    let signature = format!("\"signature\":\"{}\"", request.param("signature"));
    request.text.replace(&time, "\"timestamp\":T").replace(&signature, "\"signature\":\"S\"")
}

/// Returns the parameters of a request as a signature covers them.
fn payload(request: &Received) -> String {
    let params = request.json["params"].as_object().expect("parameters");
    let mut names: Vec<&String> = params.keys().filter(|name| *name != "signature").collect();
    names.sort();
    let pairs: Vec<String> = names.iter().map(|name| format!("{name}={}", request.param(name))).collect();
    pairs.join("&")
}

#[test]
fn an_encoder_without_a_connection_writes_as_a_line_does() {
    for secret in [PRIVATE_KEY, SECRET_KEY] {
        let exchange = ScriptedExchange::start();
        let mut driver = Driver::new(BinanceLineConfig { credentials: credentials(secret), ..config(&exchange) });
        driver.connect();
        driver.send(0, &Request::New(buy(1)));
        let sent = driver.until_request(&exchange, "order.place", 1);
        let sent_ms = sent.param("timestamp").parse().expect("a time");
        let instruments = vec![instrument("BTCUSDT", BTCUSDT)];
        let mut encoder = OrderEncoder::new(credentials(secret), instruments, 5_000, 5).expect("a key");
        assert_eq!(encoder.encode(0, &Request::New(buy(1)), sent_ms), Some(sent.text.as_str()));
        assert_eq!(encoder.encode(0, &cancel(2, 1), sent_ms), None);
        let foreign = NewOrder { symbol: SymbolId(99), ..buy(1) };
        assert_eq!(encoder.encode(0, &Request::New(foreign), sent_ms), None);
    }
}

#[test]
fn each_new_order_has_its_bytes() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let market = OrderType::Market.code();
    let (ioc, fok) = (TimeInForce::ImmediateOrCancel.code(), TimeInForce::FillOrKill.code());
    let (sell, both) = (Side::Sell.code(), SelfTradeMode::CancelBoth.code());
    let maker = NewOrder::POST_ONLY;
    let taker = SelfTradeMode::CancelTaker.code();
    for (number, (order, rest)) in [
        (buy(1), r#""price":"60000","quantity":"0.5","recvWindow":5000,"side":"BUY","symbol":"BTCUSDT","timeInForce":"GTC","timestamp":T,"type":"LIMIT""#),
        (
            NewOrder { side: sell, price: Price(6_000_012_000_000), time_in_force: ioc, ..buy(1) },
            r#""price":"60000.12","quantity":"0.5","recvWindow":5000,"side":"SELL","symbol":"BTCUSDT","timeInForce":"IOC","timestamp":T,"type":"LIMIT""#,
        ),
        (
            NewOrder { time_in_force: fok, self_trade_mode: both, ..buy(1) },
            r#""price":"60000","quantity":"0.5","recvWindow":5000,"selfTradePreventionMode":"EXPIRE_BOTH","side":"BUY","symbol":"BTCUSDT","timeInForce":"FOK","timestamp":T,"type":"LIMIT""#,
        ),
        (
            NewOrder { instructions: maker, self_trade_mode: taker, ..buy(1) },
            r#""price":"60000","quantity":"0.5","recvWindow":5000,"selfTradePreventionMode":"EXPIRE_TAKER","side":"BUY","symbol":"BTCUSDT","timestamp":T,"type":"LIMIT_MAKER""#,
        ),
        (
            NewOrder { order_type: market, price: Price::ZERO, ..buy(1) },
            r#""quantity":"0.5","recvWindow":5000,"side":"BUY","symbol":"BTCUSDT","timestamp":T,"type":"MARKET""#,
        ),
        // The exchange has no day, so a day order works until it is canceled.
        (
            NewOrder { time_in_force: TimeInForce::Day.code(), ..buy(1) },
            r#""price":"60000","quantity":"0.5","recvWindow":5000,"side":"BUY","symbol":"BTCUSDT","timeInForce":"GTC","timestamp":T,"type":"LIMIT""#,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = 1_000 + number as u64;
        let order = NewOrder { client_order_id: ClientOrderId(id), ..order };
        driver.send(number as u64, &Request::New(order));
        let request = driver.until_request(&exchange, "order.place", number + 1);
        let expected = format!(
            r#"{{"id":{number},"method":"order.place","params":{{"newClientOrderId":"{}","newOrderRespType":"ACK",{rest}}}}}"#,
            text_of(id)
        );
        assert_eq!(masked(&request), expected);
    }
}

#[test]
fn changes_of_an_order_have_their_bytes() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    let text = text_of(1_000);
    assert_eq!(text, "tQZ000000000G87");
    driver.place(&exchange, 0, &buy(1_000), 77);
    driver.send(1, &replace(1_001, 1_000, 60_000, 40_000_000));
    let request = driver.until_request(&exchange, "order.amend.keepPriority", 1);
    let expected = r#"{"id":1,"method":"order.amend.keepPriority","params":{"newClientOrderId":"tQZ000000000G87","newQty":"0.4","orderId":77,"recvWindow":5000,"symbol":"BTCUSDT","timestamp":T}}"#;
    assert_eq!(masked(&request), expected);
    exchange.refuse(&request, 400, -2038, "amended");
    driver.until_acknowledged(2);

    driver.send(2, &replace(1_002, 1_000, 61_000, 50_000_000));
    let request = driver.until_request(&exchange, "order.cancelReplace", 1);
    let expected = r#"{"id":2,"method":"order.cancelReplace","params":{"cancelNewClientOrderId":"rQZ000000000G87","cancelOrderId":77,"cancelReplaceMode":"STOP_ON_FAILURE","cancelRestrictions":"ONLY_NEW","newClientOrderId":"tQZ000000000G87-1-0","newOrderRespType":"ACK","price":"61000","quantity":"0.5","recvWindow":5000,"side":"BUY","symbol":"BTCUSDT","timeInForce":"GTC","timestamp":T,"type":"LIMIT"}}"#;
    assert_eq!(masked(&request), expected);
    let replaced = json!({ "newOrderResponse": placed(&request, 78) });
    exchange.answer(&request, replaced);
    driver.until_acknowledged(3);

    exchange.send(&EventFrame::new("tQZ000000000G87-1-0", 78).trade(5, "0.1", "0.1", "PARTIALLY_FILLED").text());
    driver.settle(&exchange);
    driver.send(3, &replace(1_003, 1_000, 62_000, 50_000_000));
    let request = driver.until_request(&exchange, "order.cancel", 1);
    let expected = r#"{"id":3,"method":"order.cancel","params":{"newClientOrderId":"rQZ000000000G87-1-0","orderId":78,"recvWindow":5000,"symbol":"BTCUSDT","timestamp":T}}"#;
    assert_eq!(masked(&request), expected);
    exchange.answer(&request, json!({ "executedQty": "0.1" }));
    let request = driver.until_request(&exchange, "order.place", 2);
    assert_eq!(request.param("newClientOrderId"), "tQZ000000000G87-2-fxSK");
    assert_eq!((request.param("quantity"), request.param("price")), ("0.4".to_owned(), "62000".to_owned()));
    assert!(request.json["id"].as_str().is_some_and(|id| id.starts_with('q')));
}

#[test]
fn cancels_and_queries_have_their_bytes() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    // The order is not known to the line, so that its text names it.
    driver.send(0, &cancel(1_001, 1_000));
    let request = driver.until_request(&exchange, "order.cancel", 1);
    let expected = r#"{"id":0,"method":"order.cancel","params":{"newClientOrderId":"cQZ000000000G87","origClientOrderId":"tQZ000000000G87","recvWindow":5000,"symbol":"BTCUSDT","timestamp":T}}"#;
    assert_eq!(masked(&request), expected);
    exchange.refuse(&request, 400, -1013, "no");
    driver.until_acknowledged(1);

    driver.send(1, &status(1_002, 1_000, 0));
    let request = driver.until_request(&exchange, "order.status", 1);
    let id = request.json["id"].as_str().expect("an id of the line").to_owned();
    let expected = format!(
        r#"{{"id":"{id}","method":"order.status","params":{{"origClientOrderId":"tQZ000000000G87","recvWindow":5000,"symbol":"BTCUSDT","timestamp":T}}}}"#
    );
    assert_eq!(masked(&request), expected);
}

#[test]
fn a_session_is_logged_on_with_a_signature_and_its_requests_have_none() {
    let exchange = ScriptedExchange::start();
    let mut driver = Driver::connected(&exchange);
    driver.place(&exchange, 0, &buy(1), 77);
    let received: Vec<String> = exchange.received().iter().map(masked).collect();
    let expected = [
        r#"{"id":"q1","method":"time"}"#.to_owned(),
        format!(
            r#"{{"id":"q2","method":"session.logon","params":{{"apiKey":"{API_KEY}","recvWindow":5000,"timestamp":T,"signature":"S"}}}}"#
        ),
        r#"{"id":"q3","method":"userDataStream.subscribe"}"#.to_owned(),
        r#"{"id":"q4","method":"openOrders.status","params":{"recvWindow":5000,"symbol":"BTCUSDT","timestamp":T}}"#
            .to_owned(),
        r#"{"id":"q5","method":"openOrders.status","params":{"recvWindow":5000,"symbol":"ETHUSDT","timestamp":T}}"#
            .to_owned(),
    ];
    assert_eq!(received[..5], expected);
    let logon = exchange.of_method("session.logon").pop().expect("a logon");
    assert_eq!(logon.param("signature"), sign(PRIVATE_KEY, &payload(&logon)));
    assert!(!received[5].contains("apiKey") && !received[5].contains("signature"), "{}", received[5]);
}

#[test]
fn a_secret_key_signs_each_request() {
    let exchange = ScriptedExchange::start();
    let config = BinanceLineConfig { credentials: credentials(SECRET_KEY), ..config(&exchange) };
    let mut driver = Driver::new(config);
    driver.connect();
    driver.place(&exchange, 0, &buy(1), 77);
    driver.send(1, &cancel(2, 1));
    driver.until_request(&exchange, "order.cancel", 1);
    let signed: Vec<Received> = exchange.received().into_iter().filter(|request| request.method() != "time").collect();
    let methods: Vec<&str> = signed.iter().map(Received::method).collect();
    let subscribe = "userDataStream.subscribe.signature";
    assert_eq!(methods, [subscribe, "openOrders.status", "openOrders.status", "order.place", "order.cancel"]);
    for request in &signed {
        assert_eq!(request.param("apiKey"), API_KEY, "{}", request.text);
        assert_eq!(request.param("signature"), sign(SECRET_KEY, &payload(request)), "{}", request.text);
    }
}
