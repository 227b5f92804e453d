//! The feed against a scripted exchange.

use std::collections::BTreeSet;

use serde_json::Value;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_feed::{Feed, FeedEvent, FeedInstrument, Frame, Subscription};
use tickpath_feed_binance::{
    ApiKey, BinanceFeed, BinanceFeedConfig, FUTURES_REST, FUTURES_STREAMS, SPOT_REST, SPOT_SBE_STREAMS, SPOT_STREAMS,
    TimeUnit,
};
use tickpath_market::Side::{Buy, Sell};
use tickpath_market::SymbolId;

use crate::exchange::{RestReply, ScriptedExchange};
use crate::frames::{BTCUSDT, Seen, instrument, parse, parser};
use crate::sbe::best_bid_ask;

const SPOT: &str = "/stream";
const PUBLIC: &str = "/public/stream";
const MARKET: &str = "/market/stream";
const SPOT_TIME: &str = "/api/v3/time";
const SPOT_DEPTH: &str = "/api/v3/depth?symbol=BTCUSDT&limit=1000";
const FUTURES_TIME: &str = "/fapi/v1/time";
const FUTURES_DEPTH: &str = "/fapi/v1/depth?symbol=BTCUSDT&limit=1000";
const TIME: &str = r#"{"serverTime":1700000000000}"#;

/// Bound of each wait.
const DEADLINE_NS: i64 = 60_000_000_000;

/// An event of a feed, which owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FeedSeen {
    Up,
    Text(String),
    Binary(Vec<u8>),
    Market(Seen),
    BadFrame(String),
    ClockOffset,
    Lost(String),
}

impl From<FeedEvent<'_>> for FeedSeen {
    fn from(event: FeedEvent<'_>) -> Self {
        match event {
            FeedEvent::Up => Self::Up,
            FeedEvent::Frame(Frame::Text(bytes), arrival) => {
                assert!(arrival.read > 0, "a frame without the time of its read");
                Self::Text(String::from_utf8_lossy(bytes).into_owned())
            }
            FeedEvent::Frame(Frame::Binary(bytes), _) => Self::Binary(bytes.to_vec()),
            FeedEvent::Market(event) => Self::Market(event.into()),
            FeedEvent::BadFrame(error) => Self::BadFrame(error.to_string()),
            FeedEvent::ClockOffset { .. } => Self::ClockOffset,
        }
    }
}

/// A feed with the events that it has reported.
struct FeedDriver {
    feed: BinanceFeed,
    seen: Vec<FeedSeen>,
}

impl FeedDriver {
    /// Makes a feed and begins its connect.
    fn connect(config: BinanceFeedConfig) -> Self {
        let mut feed = BinanceFeed::new(config).expect("a feed");
        feed.connect();
        Self { feed, seen: Vec::new() }
    }

    fn poll(&mut self) {
        let Self { feed, seen } = self;
        let polled = feed.poll(&mut |event| seen.push(event.into()));
        if let Err(lost) = polled {
            seen.push(FeedSeen::Lost(lost.to_string()));
        }
    }

    /// Polls until something holds.
    fn until(&mut self, what: &str, holds: impl Fn(&[FeedSeen]) -> bool) {
        let clock = HostClock::get().expect("a clock");
        let began = clock.ticks();
        while !holds(&self.seen) {
            self.poll();
            sleep_ns(50_000);
            assert!(clock.ns_between(began, clock.ticks()) < DEADLINE_NS, "no {what}: {:?}", self.seen);
        }
    }

    fn until_up(&mut self) {
        self.until("Up", |seen| seen.contains(&FeedSeen::Up));
    }

    fn until_market(&mut self, event: &Seen) {
        self.until("market event", |seen| seen.contains(&FeedSeen::Market(event.clone())));
    }

    /// Polls until the feed is lost, and returns the reason.
    fn until_lost(&mut self) -> String {
        self.until("loss", |seen| matches!(seen.last(), Some(FeedSeen::Lost(_))));
        match self.seen.last() {
            Some(FeedSeen::Lost(why)) => why.clone(),
            other => unreachable!("{other:?} is last"),
        }
    }
}

fn btcusdt() -> Vec<FeedInstrument> {
    vec![instrument("BTCUSDT", BTCUSDT, 1, 3)]
}

fn quotes() -> Subscription {
    Subscription { instruments: btcusdt(), quotes: true, ..Subscription::default() }
}

fn everything() -> Subscription {
    Subscription { instruments: btcusdt(), quotes: true, trades: true, books: true }
}

/// Directs a configuration to a scripted exchange, which has the time.
fn at(exchange: &ScriptedExchange, config: BinanceFeedConfig) -> BinanceFeedConfig {
    exchange.reply(SPOT_TIME, RestReply::ok(TIME));
    exchange.reply(FUTURES_TIME, RestReply::ok(TIME));
    BinanceFeedConfig { url: exchange.streams_url(), rest_url: exchange.rest_url(), ..config }
}

/// Returns a spot quote and its event.
fn quote(sequence: u64) -> (String, Seen) {
    let data = format!(r#"{{"u":{sequence},"s":"BTCUSDT","b":"61800.2","B":"1","a":"61800.3","A":"2"}}"#);
    let text = format!(r#"{{"stream":"btcusdt@bookTicker","data":{data}}}"#);
    (text, Seen::quote(BTCUSDT, sequence, [618_002, 1_000, 618_003, 2_000], 0))
}

/// Returns a snapshot of a book and its event.
fn depth(sequence: u64) -> (RestReply, Seen) {
    let body = format!(r#"{{"lastUpdateId":{sequence},"bids":[["61800.20","2.5"]],"asks":[["61800.30","0.004"]]}}"#);
    let levels = [(Buy, 618_002, 2_500), (Sell, 618_003, 4)];
    (RestReply::ok(&body), Seen::snapshot(BTCUSDT, sequence, 0, &levels))
}

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
fn a_book_is_requested_again_on_demand() {
    let exchange = ScriptedExchange::start();
    let [(first, before), (second, after)] = [100, 200].map(depth);
    exchange.reply(SPOT_DEPTH, first);
    exchange.reply(SPOT_DEPTH, second);
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
    driver.until_market(&before);
    driver.feed.resynchronize(SymbolId(99));
    driver.feed.resynchronize(BTCUSDT);
    driver.until_market(&after);
    assert_eq!(exchange.requests(SPOT_DEPTH), 2);
}

#[test]
fn a_refused_snapshot_is_reported_and_requested_again() {
    let limit = r#"{"code":-1003,"msg":"Too much request weight used."}"#;
    for (refusal, words) in [
        (RestReply::refused(429, limit).with_header("Retry-After", "1"), "status 429, -1003: Too much request weight"),
        (RestReply::refused(503, "<html></html>"), "status 503; it is requested again"),
        (RestReply::ok("<html></html>"), "the answer cannot be read"),
    ] {
        let exchange = ScriptedExchange::start();
        let (reply, snapshot) = depth(100);
        exchange.reply(SPOT_DEPTH, refusal);
        exchange.reply(SPOT_DEPTH, reply);
        let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
        driver.until_market(&snapshot);
        let mut reports = driver.seen.iter().filter_map(|seen| match seen {
            FeedSeen::BadFrame(why) => Some(why),
            _ => None,
        });
        assert!(reports.any(|why| why.contains(words) && why.contains("the snapshot of BTCUSDT")), "{:?}", driver.seen);
        assert_eq!(exchange.requests(SPOT_DEPTH), 2);
    }
}

#[test]
fn a_snapshot_of_an_unknown_symbol_is_not_requested_again() {
    let exchange = ScriptedExchange::start();
    exchange.reply(SPOT_DEPTH, RestReply::refused(400, r#"{"code":-1121,"msg":"Invalid symbol."}"#));
    let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
    let is_refused =
        |seen: &FeedSeen| matches!(seen, FeedSeen::BadFrame(why) if why.contains("-1121: Invalid symbol."));
    driver.until("refusal", |seen| seen.iter().any(is_refused));
    driver.until("clock offset", |seen| seen.contains(&FeedSeen::ClockOffset));
    assert_eq!(exchange.requests(SPOT_DEPTH), 1);
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
