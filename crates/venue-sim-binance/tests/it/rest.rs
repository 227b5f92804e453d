//! The REST API: public requests, orders, headers, and TLS.

use std::fs;

use serde_json::{Value, json};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_venue_sim_binance::BinanceExchange;
use tickpath_venue_sim_web::{SimDesk, SimDeskConfig, WebFaults, WebServer, WebServerConfig};
use tickpath_web_client::{HttpRequest, HttpsClient};

use crate::traders::Trader;
use crate::trial::{Trial, instruments};

const ALICE: Trader = Trader::Alice;
const ORDER: &str = "/api/v3/order";

/// Fetches a public resource.
fn get(trial: &mut Trial, path_and_query: &str) -> Value {
    let response = trial.http(HttpRequest::get(path_and_query));
    let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(response.status, 200, "{path_and_query}: {answer}");
    answer
}

#[test]
fn the_exchange_lists_its_symbols_with_their_filters() {
    let mut trial = Trial::open();
    let info = get(&mut trial, "/api/v3/exchangeInfo");
    assert_eq!((&info["timezone"], info["symbols"].as_array().map(Vec::len)), (&json!("UTC"), Some(2)));
    let symbol = &info["symbols"][0];
    for (name, value) in [
        ("symbol", json!("BTCUSDT")),
        ("status", json!("TRADING")),
        ("baseAsset", json!("BTC")),
        ("quoteAsset", json!("USDT")),
        ("isSpotTradingAllowed", json!(true)),
        ("permissionSets", json!([["SPOT"]])),
        ("orderTypes", json!(["LIMIT", "LIMIT_MAKER", "MARKET"])),
    ] {
        assert_eq!(symbol[name], value, "{name}");
    }
    let filter = |name: &str| {
        let filters = symbol["filters"].as_array().expect("filters");
        filters.iter().find(|filter| filter["filterType"] == name).expect("a filter").clone()
    };
    assert_eq!(filter("PRICE_FILTER")["tickSize"], json!("0.01000000"));
    assert_eq!(filter("LOT_SIZE")["stepSize"], json!("0.00001000"));
    assert_eq!(filter("NOTIONAL")["minNotional"], json!("5.00000000"));
    let one = get(&mut trial, "/api/v3/exchangeInfo?symbols=%5B%22ETHUSDT%22%5D");
    assert_eq!((one["symbols"].as_array().map(Vec::len), &one["symbols"][0]["symbol"]), (Some(1), &json!("ETHUSDT")));
}

#[test]
fn books_tickers_and_trades_are_public() {
    let mut trial = Trial::open();
    let (status, placed) = trial.rest(
        ALICE,
        "POST",
        ORDER,
        &[("symbol", "BTCUSDT"), ("side", "BUY"), ("type", "MARKET"), ("quantity", "0.5")],
    );
    assert_eq!((status, &placed["status"]), (200, &json!("FILLED")), "{placed}");
    let trade = &placed["fills"][0]["tradeId"];
    let book = get(&mut trial, "/api/v3/depth?symbol=BTCUSDT&limit=5");
    assert_eq!(book["bids"], json!([["60000.00000000", "2.00000000"]]));
    assert_eq!(book["asks"], json!([["60001.00000000", "1.50000000"]]));
    let quote = get(&mut trial, "/api/v3/ticker/bookTicker?symbol=BTCUSDT");
    assert_eq!((&quote["bidPrice"], &quote["askQty"]), (&json!("60000.00000000"), &json!("1.50000000")));
    let price = get(&mut trial, "/api/v3/ticker/price?symbol=BTCUSDT");
    assert_eq!(price, json!({"symbol": "BTCUSDT", "price": "60001.00000000"}));
    let prices = get(&mut trial, "/api/v3/ticker/price");
    assert_eq!(prices.as_array().map(Vec::len), Some(2));
    let day = get(&mut trial, "/api/v3/ticker/24hr?symbol=BTCUSDT");
    for (name, value) in [("volume", "0.50000000"), ("quoteVolume", "30000.50000000"), ("lastPrice", "60001.00000000")]
    {
        assert_eq!(day[name], json!(value), "{name}");
    }
    let trades = get(&mut trial, "/api/v3/trades?symbol=BTCUSDT");
    assert_eq!((&trades[0]["id"], &trades[0]["isBuyerMaker"]), (trade, &json!(false)));
    let aggregated = get(&mut trial, "/api/v3/aggTrades?symbol=BTCUSDT&limit=1");
    assert_eq!((&aggregated[0]["f"], &aggregated[0]["m"]), (trade, &json!(false)));
    assert_eq!(get(&mut trial, "/api/v3/ping"), json!({}));
    assert!(get(&mut trial, "/api/v3/time")["serverTime"].is_u64());
}

#[test]
fn an_order_lives_through_placement_query_amendment_replacement_and_cancel() {
    let mut trial = Trial::open();
    let limit =
        [("symbol", "BTCUSDT"), ("side", "BUY"), ("type", "LIMIT"), ("timeInForce", "GTC"), ("quantity", "0.02")];
    let first = [limit.as_slice(), &[("price", "50000"), ("newClientOrderId", "first")]].concat();
    let (status, placed) = trial.rest(ALICE, "POST", ORDER, &first);
    assert_eq!((status, &placed["status"]), (200, &json!("NEW")), "{placed}");
    let by_name = [("symbol", "BTCUSDT"), ("origClientOrderId", "first")];
    let (_, found) = trial.rest(ALICE, "GET", ORDER, &by_name);
    assert_eq!((&found["orderId"], &found["isWorking"]), (&placed["orderId"], &json!(true)));
    let (_, open) = trial.rest(ALICE, "GET", "/api/v3/openOrders", &[]);
    assert_eq!(open[0]["clientOrderId"], json!("first"));

    let amend = [by_name.as_slice(), &[("newQty", "0.01"), ("newClientOrderId", "first")]].concat();
    let (status, amended) = trial.rest(ALICE, "PUT", "/api/v3/order/amend/keepPriority", &amend);
    assert_eq!((status, &amended["amendedOrder"]["qty"]), (200, &json!("0.01000000")), "{amended}");
    let replace = [
        limit.as_slice(),
        &[("price", "50001"), ("cancelOrigClientOrderId", "first"), ("cancelReplaceMode", "STOP_ON_FAILURE")],
    ];
    let (status, replaced) = trial.rest(ALICE, "POST", "/api/v3/order/cancelReplace", &replace.concat());
    assert_eq!((status, &replaced["newOrderResult"]), (200, &json!("SUCCESS")), "{replaced}");
    let (status, failed) = trial.rest(ALICE, "POST", "/api/v3/order/cancelReplace", &replace.concat());
    assert_eq!((status, &failed["code"], &failed["data"]["newOrderResponse"]), (400, &json!(-2022), &json!(null)));
    let (status, missing) = trial.rest(ALICE, "DELETE", ORDER, &by_name);
    assert_eq!((status, &missing["code"]), (400, &json!(-2011)));
    let (status, canceled) = trial.rest(ALICE, "DELETE", "/api/v3/openOrders", &[("symbol", "BTCUSDT")]);
    assert_eq!((status, &canceled[0]["status"]), (200, &json!("CANCELED")), "{canceled}");
    let (_, all) = trial.rest(ALICE, "GET", "/api/v3/allOrders", &[("symbol", "BTCUSDT"), ("limit", "1")]);
    assert_eq!((all.as_array().map(Vec::len), &all[0]["orderId"]), (Some(1), &canceled[0]["orderId"]));
    let test = [limit.as_slice(), &[("price", "50000")]].concat();
    assert_eq!(trial.rest(ALICE, "POST", "/api/v3/order/test", &test), (200, json!({})));
    assert_eq!(trial.rest(ALICE, "GET", "/api/v3/myTrades", &[("symbol", "BTCUSDT")]), (200, json!([])));
    let (_, commission) = trial.rest(ALICE, "GET", "/api/v3/account/commission", &[("symbol", "BTCUSDT")]);
    assert_eq!(commission["discount"]["discountAsset"], json!("BNB"));
}

#[test]
fn coins_are_listed_for_clients_that_ask_at_their_start() {
    let mut trial = Trial::open();
    let (status, coins) = trial.rest(ALICE, "GET", "/sapi/v1/capital/config/getall", &[]);
    let names: Vec<&Value> = coins.as_array().expect("coins").iter().map(|coin| &coin["coin"]).collect();
    assert_eq!((status, names), (200, vec![&json!("BTC"), &json!("ETH"), &json!("USDT")]));
}

#[test]
fn headers_have_the_use_of_the_limits() {
    let mut trial = Trial::open();
    let response = trial.http(HttpRequest::get("/api/v3/ping"));
    let has = |name: &str| response.headers.iter().any(|(known, _)| known == name);
    assert!(has("x-mbx-used-weight-1m") && has("x-mbx-used-weight") && !has("x-mbx-order-count-10s"));
}

#[test]
fn requests_without_a_key_or_of_an_unknown_path_are_refused() {
    let mut trial = Trial::open();
    for (path, status, code) in [
        ("/api/v3/account?timestamp=1&signature=00", 401, -2014),
        ("/api/v3/klines?symbol=BTCUSDT", 404, -1020),
        ("/api/v3/depth?symbol=BTCUSDT&symbol=BTCUSDT", 400, -1101),
        ("/api/v3/depth?symbol=%ZZ", 400, -1100),
    ] {
        let response = trial.http(HttpRequest::get(path));
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!((response.status, &answer["code"]), (status, &json!(code)), "{path}: {answer}");
    }
    let mut request = HttpRequest::get("/api/v3/time");
    request.headers.push(("X-MBX-TIME-UNIT".to_owned(), "MICROSECOND".to_owned()));
    let answer: Value = serde_json::from_slice(&trial.http(request).body).expect("JSON");
    assert!(answer["serverTime"].as_u64().is_some_and(|time| time > 1_000_000_000_000_000), "{answer}");
}

#[test]
fn clients_reach_the_exchange_over_tls() {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let config = WebServerConfig { listen, tls: true, max_connections: 8, max_message_bytes: 1 << 20 };
    let mut server = WebServer::open(&config).expect("a server");
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    fs::write(&ca, server.authority_pem().expect("an authority")).expect("a file");
    let desk = SimDeskConfig {
        instruments: instruments(),
        accounts: Trader::accounts(),
        maker_fee_e6: 1_000,
        taker_fee_e6: 1_000,
    };
    let mut exchange = BinanceExchange::new(SimDesk::new(desk), WebFaults::none());
    let base = format!("https://{}", server.address());
    let client = HttpsClient::new(&base, Some(&ca)).expect("a client");
    let mut pending = client.start(HttpRequest::get("/api/v3/ping"));
    let clock = HostClock::get().expect("a clock");
    let began = clock.ticks();
    let response = loop {
        if let Some(response) = pending.try_take() {
            break response.expect("a response");
        }
        server.poll(1, &mut exchange);
        sleep_ns(50_000);
        assert!(clock.ns_between(began, clock.ticks()) < 60_000_000_000, "no response");
    };
    assert_eq!((response.status, response.body.as_slice()), (200, b"{}".as_slice()));
}
