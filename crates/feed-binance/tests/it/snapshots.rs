//! Snapshots of books by the REST interface: retries, refusals, depths, and the requests that feeds share.

use tickpath_feed::{Feed, Subscription};
use tickpath_feed_binance::{BinanceFeed, BinanceFeedConfig, SnapshotDepth};
use tickpath_market::Side::Buy;
use tickpath_market::SymbolId;

use crate::driver::{FeedDriver, FeedSeen, SPOT_DEPTH, at, depth, everything};
use crate::exchange::{RestReply, ScriptedExchange};
use crate::frames::{BNBUSDT, BTCUSDT, Seen, instrument};

const OTHER_DEPTH: &str = "/api/v3/depth?symbol=BNBUSDT&limit=1000";

/// Returns the subscription of BTCUSDT with another instrument.
fn two_books() -> Subscription {
    let mut subscription = everything();
    subscription.instruments.push(instrument("BNBUSDT", BNBUSDT, 1, 3));
    subscription
}

/// Returns a snapshot of the other instrument and its event.
fn other_depth(sequence: u64) -> (RestReply, Seen) {
    let body = format!(r#"{{"lastUpdateId":{sequence},"bids":[["25.1","2"]],"asks":[]}}"#);
    (RestReply::ok(&body), Seen::snapshot(BNBUSDT, sequence, 0, &[(Buy, 251, 2_000)]))
}

/// Begins the connects of two feeds that share their requests.
fn two_feeds(exchange: &ScriptedExchange) -> [FeedDriver; 2] {
    let config = at(exchange, BinanceFeedConfig::spot(everything()));
    let feeds = BinanceFeed::several(&config, 2).expect("two feeds");
    let drivers: Vec<FeedDriver> = feeds.into_iter().map(FeedDriver::begin).collect();
    drivers.try_into().ok().expect("there are two")
}

/// Returns the reports of bad frames and failed requests.
fn reports(driver: &FeedDriver) -> Vec<&str> {
    let mut reports = Vec::new();
    for seen in &driver.seen {
        if let FeedSeen::BadFrame(why) = seen {
            reports.push(why.as_str());
        }
    }
    reports
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
    let unknown = r#"{"code":-1121,"msg":"Invalid symbol."}"#;
    for (refusal, words) in [
        (RestReply::refused(429, limit).with_header("Retry-After", "1"), "status 429, -1003: Too much request weight"),
        (RestReply::refused(400, unknown), "-1121: Invalid symbol.; check the name of the instrument; it is requested"),
        (RestReply::refused(503, "<html></html>"), "status 503; it is requested again"),
        (RestReply::ok("<html></html>"), "the answer cannot be read"),
    ] {
        let exchange = ScriptedExchange::start();
        let (reply, snapshot) = depth(100);
        exchange.reply(SPOT_DEPTH, refusal);
        exchange.reply(SPOT_DEPTH, reply);
        let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(everything())));
        driver.until_market(&snapshot);
        let is_report = |why: &&str| why.contains(words) && why.contains("the snapshot of BTCUSDT");
        assert_eq!(reports(&driver).into_iter().filter(is_report).count(), 1, "{words}: {:?}", driver.seen);
        assert_eq!(exchange.requests(SPOT_DEPTH), 2);
    }
}

#[test]
fn a_failing_instrument_delays_no_other() {
    let unknown = r#"{"code":-1121,"msg":"Invalid symbol."}"#;
    for refusal in [RestReply::refused(400, unknown), RestReply::refused(503, ""), RestReply::ok("<html></html>")] {
        let exchange = ScriptedExchange::start();
        exchange.reply(SPOT_DEPTH, refusal);
        let snapshots: Vec<_> = (100..115).map(other_depth).collect();
        snapshots.iter().for_each(|(reply, _)| exchange.reply(OTHER_DEPTH, reply.clone()));
        let mut driver = FeedDriver::connect(at(&exchange, BinanceFeedConfig::spot(two_books())));
        driver.until("report", |seen| seen.iter().any(|seen| matches!(seen, FeedSeen::BadFrame(_))));
        for (_, snapshot) in &snapshots {
            driver.until_market(snapshot);
            driver.feed.resynchronize(BNBUSDT);
        }
        // The fourth request follows pauses of 1, 2 and 4 s.
        assert!(exchange.requests(SPOT_DEPTH) <= 3, "{:?}", reports(&driver));
    }
}

#[test]
fn the_depth_of_snapshots_is_configured() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply("/api/v3/depth?symbol=BTCUSDT&limit=5000", reply);
    let config = at(&exchange, BinanceFeedConfig::spot(everything()));
    let config = BinanceFeedConfig { snapshot_depth: SnapshotDepth::Levels5000, ..config };
    FeedDriver::connect(config).until_market(&snapshot);
    for depth in SnapshotDepth::ALL {
        assert_eq!(depth.to_string().parse::<SnapshotDepth>(), Ok(depth));
    }
    assert!("20".parse::<SnapshotDepth>().is_err());
}

#[test]
fn feeds_of_the_same_data_share_a_snapshot() {
    let exchange = ScriptedExchange::start();
    let [(first, before), (second, after)] = [100, 200].map(depth);
    exchange.reply(SPOT_DEPTH, first);
    exchange.reply(SPOT_DEPTH, second);
    let [mut one, mut other] = two_feeds(&exchange);
    one.until_market(&before);
    other.until("clock offset", |seen| seen.contains(&FeedSeen::ClockOffset));
    assert_eq!(exchange.requests(SPOT_DEPTH), 1, "the book is complete by the first feed");
    // A gap that both are to close.
    one.feed.resynchronize(BTCUSDT);
    other.feed.resynchronize(BTCUSDT);
    one.until_market(&after);
    other.until_market(&after);
    assert_eq!(exchange.requests(SPOT_DEPTH), 2);
}

#[test]
fn each_connection_has_its_snapshot_if_that_is_configured() {
    let exchange = ScriptedExchange::start();
    let [(first, before), (second, after)] = [100, 200].map(depth);
    exchange.reply(SPOT_DEPTH, first);
    exchange.reply(SPOT_DEPTH, second);
    let config = at(&exchange, BinanceFeedConfig::spot(everything()));
    let config = BinanceFeedConfig { snapshots_per_connection: true, ..config };
    let mut drivers = BinanceFeed::several(&config, 2).expect("two feeds").into_iter().map(FeedDriver::begin);
    let (mut one, mut other) = (drivers.next().expect("a feed"), drivers.next().expect("another feed"));
    one.until_market(&before);
    other.until_market(&after);
    assert_eq!(exchange.requests(SPOT_DEPTH), 2);
}

#[test]
fn a_pending_snapshot_outlasts_the_feed_that_requested_it() {
    let exchange = ScriptedExchange::start();
    let (reply, snapshot) = depth(100);
    exchange.reply(SPOT_DEPTH, RestReply::refused(503, ""));
    exchange.reply(SPOT_DEPTH, reply);
    let [mut one, mut other] = two_feeds(&exchange);
    one.until("report", |seen| seen.iter().any(|seen| matches!(seen, FeedSeen::BadFrame(_))));
    other.until_up();
    drop(one);
    other.until_market(&snapshot);
    assert_eq!(exchange.requests(SPOT_DEPTH), 2);
}

#[test]
fn a_feed_that_is_up_alone_requests_its_snapshots() {
    let exchange = ScriptedExchange::start();
    let [(first, before), (second, after)] = [100, 200].map(depth);
    exchange.reply(SPOT_DEPTH, first);
    exchange.reply(SPOT_DEPTH, second);
    let [mut one, mut other] = two_feeds(&exchange);
    one.until_market(&before);
    drop(one);
    other.until_market(&after);
    assert_eq!(exchange.requests(SPOT_DEPTH), 2);
}
