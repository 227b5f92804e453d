//! The feed against a scripted exchange.

use std::collections::BTreeSet;

use serde_json::Value;
use tickpath_feed::{Feed, Frame, Subscription};
use tickpath_feed_binance::{
    ApiKey, BinanceFeed, BinanceFeedConfig, FUTURES_REST, FUTURES_STREAMS, SPOT_REST, SPOT_SBE_STREAMS, SPOT_STREAMS,
    SnapshotDepth, TimeUnit,
};
use tickpath_market::Side::{Buy, Sell};
use tickpath_market::SymbolId;

use crate::driver::{
    FUTURES_DEPTH, FeedDriver, FeedSeen, MARKET, PUBLIC, SPOT, SPOT_DEPTH, SPOT_TIME, at, depth, everything, quote,
    quotes,
};
use crate::exchange::ScriptedExchange;
use crate::frames::{BTCUSDT, Seen, instrument, parse, parser};
use crate::sbe::best_bid_ask;

#[test]
fn a_spot_feed_names_its_streams_in_the_url_and_brings_the_book_after_it_is_up() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply(SPOT_DEPTH, reply);
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
    driver.until_up();
    let streams = "btcusdt@bookTicker/btcusdt@depth@100ms/btcusdt@trade";
    assert_eq!(exchange.targets(), [format!("/stream?streams={streams}")]);
    assert_eq!(driver.feed.address(), format!("{}/stream", exchange.streams_url()));
    assert!(driver.feed.socket().is_some());

    let (text, quote) = quote(5);
    exchange.send(SPOT, &text);
    driver.until_market(&quote);
    driver.until_market(&snapshot);
    driver.until("clock offset", |seen| seen.contains(&FeedSeen::ClockOffset));
    assert_eq!(driver.seen.first(), Some(&FeedSeen::Up));
    assert_eq!(exchange.received(), Vec::<String>::new());
    assert_eq!((exchange.requests(SPOT_DEPTH), exchange.requests(SPOT_TIME)), (1, 1));
}

#[test]
fn raw_frames_give_the_same_messages_again() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply(SPOT_DEPTH, reply);
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
    driver.until_up();
    let trade = r#"{"e":"trade","E":2,"s":"BTCUSDT","t":7,"p":"61800.3","q":"0.5","T":1,"m":false,"M":true}"#;
    let update = r#"{"e":"depthUpdate","E":3,"s":"BTCUSDT","U":101,"u":102,"b":[["61800.2","0"]],"a":[]}"#;
    for data in [trade, update] {
        exchange.send(SPOT, &format!(r#"{{"stream":"btcusdt@any","data":{data}}}"#));
    }
    driver.until_market(&snapshot);
    driver.until_market(&Seen::trade(BTCUSDT, 7, [618_003, 500], 1_000_000, Buy));
    driver.until_market(&Seen::update(BTCUSDT, 100, 102, 3_000_000, &[(Buy, 618_002, 0)]));

    let (mut parser, mut replayed, mut reported) = (parser(TimeUnit::Millisecond), Vec::new(), Vec::new());
    for seen in &driver.seen {
        match seen {
            FeedSeen::Text(text) => replayed.extend(parse(&mut parser, Frame::Text(text.as_bytes())).expect(text)),
            FeedSeen::Market(event) => reported.push(event.clone()),
            _ => {}
        }
    }
    assert_eq!(replayed, reported);
    let raw = r#"{"stream":"btcusdt@depthSnapshot","data":{"lastUpdateId":100,"#;
    assert!(driver.seen.iter().any(|seen| matches!(seen, FeedSeen::Text(text) if text.starts_with(raw))));
}

#[test]
fn streams_without_room_in_the_url_are_requested_before_the_feed_is_up() {
    let exchange = ScriptedExchange::start();
    let names: Vec<String> = (0..700).map(|number| format!("COIN{number:04}USDT")).collect();
    let instruments = (1..).zip(&names).map(|(symbol, name)| instrument(name, SymbolId(symbol), 8, 8)).collect();
    let subscription = Subscription { instruments, quotes: true, ..Subscription::default() };
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(subscription)));
    driver.until_up();

    let target = exchange.targets().remove(0);
    assert!(target.len() <= 8_000, "{} bytes", target.len());
    let in_url = target.strip_prefix("/stream?streams=").expect("streams").split('/').map(str::to_owned);
    let mut opened: Vec<String> = in_url.collect();
    let requests = exchange.received();
    assert!(requests.len() > 1, "{requests:?}");
    for request in requests {
        let request: Value = serde_json::from_str(&request).expect("JSON");
        assert_eq!(request["method"], "SUBSCRIBE");
        let streams = request["params"].as_array().expect("a list");
        assert!(streams.len() <= 200, "{} streams", streams.len());
        opened.extend(streams.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    assert_eq!(opened.len(), names.len(), "each stream once");
    let expected: BTreeSet<String> = names.iter().map(|name| format!("{}@bookTicker", name.to_lowercase())).collect();
    assert_eq!(opened.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn refused_streams_end_the_connect() {
    let exchange = ScriptedExchange::start();
    exchange.refuse_streams();
    let instruments = (0..700).map(|number| instrument(&format!("COIN{number:04}"), SymbolId(number), 8, 8)).collect();
    let subscription = Subscription { instruments, quotes: true, ..Subscription::default() };
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(subscription)));
    let lost = driver.until_lost();
    assert!(lost.contains("refuses the streams: 2: Invalid request: no such stream"), "{lost}");
    assert!(!driver.seen.contains(&FeedSeen::Up));
}

#[test]
fn a_futures_feed_has_two_connections_and_is_lost_with_one() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply(FUTURES_DEPTH, reply);
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::usd_futures(everything())));
    driver.until_up();
    let mut targets = exchange.targets();
    targets.sort();
    let public = "btcusdt@bookTicker/btcusdt@depth@100ms";
    assert_eq!(
        targets,
        ["/market/stream?streams=btcusdt@aggTrade".to_owned(), format!("/public/stream?streams={public}"),]
    );

    let (text, quote) = quote(5);
    exchange.send(PUBLIC, &text);
    let trade = r#"{"e":"aggTrade","E":2,"a":7,"s":"BTCUSDT","p":"61800.3","q":"0.5","f":1,"l":1,"T":1,"m":true}"#;
    exchange.send(MARKET, &format!(r#"{{"stream":"btcusdt@aggTrade","data":{trade}}}"#));
    driver.until_market(&quote);
    driver.until_market(&Seen::trade(BTCUSDT, 7, [618_003, 500], 1_000_000, Sell));
    driver.until_market(&snapshot);
    assert_eq!(driver.seen.iter().filter(|seen| **seen == FeedSeen::Up).count(), 1);

    exchange.cut(MARKET);
    let lost = driver.until_lost();
    assert!(lost.contains(MARKET), "{lost}");
}

#[test]
fn futures_trades_alone_need_one_connection() {
    let exchange = ScriptedExchange::start();
    let trades = Subscription { trades: true, quotes: false, ..quotes() };
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::usd_futures(trades)));
    driver.until_up();
    assert_eq!(exchange.targets(), ["/market/stream?streams=btcusdt@aggTrade"]);
}

#[test]
fn the_end_of_a_server_is_passed_on() {
    let exchange = ScriptedExchange::start();
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(quotes())));
    driver.until_up();
    exchange.send(SPOT, r#"{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1770123456789}}"#);
    driver.until_market(&Seen::Maintenance);
}

#[test]
fn an_old_connection_is_announced_once() {
    let exchange = ScriptedExchange::start();
    let config = BinanceFeedConfig { renew_after_ns: 1, ..at(&exchange, BinanceFeedConfig::spot(quotes())) };
    let mut driver = FeedDriver::connect(config);
    driver.until_market(&Seen::Maintenance);
    for sequence in 1..4 {
        let (text, quote) = quote(sequence);
        exchange.send(SPOT, &text);
        driver.until_market(&quote);
    }
    let announced = driver.seen.iter().filter(|seen| **seen == FeedSeen::Market(Seen::Maintenance)).count();
    assert_eq!(announced, 1);
}

#[test]
fn a_cut_connection_is_lost_once_and_can_be_connected_again() {
    let exchange = ScriptedExchange::start();
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(quotes())));
    driver.until_up();
    exchange.cut(SPOT);
    let lost = driver.until_lost();
    assert!(lost.contains("/stream"), "{lost}");
    let events = driver.seen.len();
    for _ in 0..100 {
        driver.poll();
        driver.feed.resynchronize(BTCUSDT);
    }
    assert_eq!(driver.seen.len(), events, "a lost feed is silent");
    assert!(driver.feed.socket().is_none());

    driver.seen.clear();
    driver.feed.connect();
    driver.until_up();
    let (text, quote) = quote(6);
    exchange.send(SPOT, &text);
    driver.until_market(&quote);
}

#[test]
fn a_silent_connection_is_lost() {
    let exchange = ScriptedExchange::start();
    let config = BinanceFeedConfig { silence_ns: 300_000_000, ..at(&exchange, BinanceFeedConfig::spot(quotes())) };
    let mut driver = FeedDriver::connect(config);
    let lost = driver.until_lost();
    assert!(lost.contains("nothing has arrived for 300 ms"), "{lost}");
}

#[test]
fn a_bad_frame_is_reported_and_the_next_one_read() {
    let exchange = ScriptedExchange::start();
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(quotes())));
    driver.until_up();
    exchange.send(SPOT, "not JSON");
    let (text, quote) = quote(6);
    exchange.send(SPOT, &text);
    driver.until_market(&quote);
    let bad = driver.seen.iter().position(|seen| matches!(seen, FeedSeen::BadFrame(_))).expect("a report");
    assert_eq!(driver.seen[bad - 1], FeedSeen::Text("not JSON".to_owned()));
}

#[test]
fn an_api_key_opens_the_binary_streams() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply(SPOT_DEPTH, reply);
    let key: ApiKey = "Ed25519KeyOfATest".parse().expect("a key");
    let config = at(&exchange, BinanceFeedConfig::spot_sbe(everything(), key));
    assert!(!format!("{config:?}").contains("Ed25519KeyOfATest"));
    let mut driver = FeedDriver::connect(config);
    driver.until_up();
    assert_eq!(exchange.targets(), ["/stream?streams=btcusdt@bestBidAsk/btcusdt@depth/btcusdt@trade"]);
    assert_eq!(exchange.api_keys(), [Some("Ed25519KeyOfATest".to_owned())]);
    exchange.send_binary(SPOT, &best_bid_ask());
    driver.until_market(&Seen::quote(BTCUSDT, 77, [618_002, 2_500, 618_003, 3_000], 1_000_001_000));
    driver.until_market(&snapshot);
    assert!(driver.seen.contains(&FeedSeen::Binary(best_bid_ask())));
}

#[test]
fn microseconds_are_requested_in_the_url() {
    let exchange = ScriptedExchange::start();
    let config =
        BinanceFeedConfig { time_unit: TimeUnit::Microsecond, ..at(&exchange, BinanceFeedConfig::spot(quotes())) };
    FeedDriver::connect(config).until_up();
    assert_eq!(exchange.targets(), ["/stream?streams=btcusdt@bookTicker&timeUnit=MICROSECOND"]);
}

#[test]
fn configurations_without_a_feed_are_refused() {
    let key: ApiKey = "key".parse().expect("a key");
    let many = (0..1_025).map(|number| instrument(&format!("COIN{number}"), SymbolId(number), 8, 8)).collect();
    let many = Subscription { instruments: many, quotes: true, ..Subscription::default() };
    let futures = || BinanceFeedConfig::usd_futures(quotes());
    for (config, words) in [
        (BinanceFeedConfig::spot(Subscription::default()), "nothing is subscribed"),
        (BinanceFeedConfig::spot(Subscription { quotes: false, ..quotes() }), "nothing is subscribed"),
        (BinanceFeedConfig::spot(Subscription { instruments: Vec::new(), ..quotes() }), "nothing is subscribed"),
        (BinanceFeedConfig::spot(many), "at most 1,024 streams, and 1025 are subscribed"),
        (BinanceFeedConfig { api_key: Some(key), ..futures() }, "no SBE streams"),
        (BinanceFeedConfig { time_unit: TimeUnit::Microsecond, ..futures() }, "milliseconds only"),
        (BinanceFeedConfig { snapshot_depth: SnapshotDepth::Levels5000, ..futures() }, "no snapshots of 5000 levels"),
    ] {
        match BinanceFeed::new(config) {
            Err(error) => assert!(error.to_string().contains(words), "{error}"),
            Ok(_) => panic!("a feed, and not: {words}"),
        }
    }
    for text in ["", "a b", "key\r\nX: y", "clé"] {
        assert!(text.parse::<ApiKey>().is_err(), "{text:?}");
    }
}

#[test]
fn the_exchanges_own_addresses_are_the_defaults() {
    let key: ApiKey = "key".parse().expect("a key");
    let [spot, sbe, futures] = [
        BinanceFeedConfig::spot(quotes()),
        BinanceFeedConfig::spot_sbe(quotes(), key),
        BinanceFeedConfig::usd_futures(quotes()),
    ];
    assert_eq!((spot.url.as_str(), spot.rest_url.as_str()), (SPOT_STREAMS, SPOT_REST));
    assert_eq!((sbe.url.as_str(), sbe.rest_url.as_str()), (SPOT_SBE_STREAMS, SPOT_REST));
    assert_eq!((futures.url.as_str(), futures.rest_url.as_str()), (FUTURES_STREAMS, FUTURES_REST));
}
