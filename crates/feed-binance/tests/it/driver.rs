//! A feed driven against a scripted exchange, and its events.

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_feed::{Feed, FeedEvent, FeedInstrument, Frame, Subscription};
use tickpath_feed_binance::{BinanceFeed, BinanceFeedConfig};
use tickpath_market::Side::{Buy, Sell};

use crate::exchange::{RestReply, ScriptedExchange};
use crate::frames::{BTCUSDT, Seen, instrument};

pub const SPOT: &str = "/stream";
pub const PUBLIC: &str = "/public/stream";
pub const MARKET: &str = "/market/stream";
pub const SPOT_TIME: &str = "/api/v3/time";
pub const SPOT_DEPTH: &str = "/api/v3/depth?symbol=BTCUSDT&limit=1000";
const FUTURES_TIME: &str = "/fapi/v1/time";
pub const FUTURES_DEPTH: &str = "/fapi/v1/depth?symbol=BTCUSDT&limit=1000";
const TIME: &str = r#"{"serverTime":1700000000000}"#;

/// Bound of each wait.
const DEADLINE_NS: i64 = 60_000_000_000;

/// An event of a feed, which owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedSeen {
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
pub struct FeedDriver {
    pub feed: BinanceFeed,
    pub seen: Vec<FeedSeen>,
}

impl FeedDriver {
    /// Makes a feed and begins its connect.
    pub fn connect(config: BinanceFeedConfig) -> Self {
        Self::begin(BinanceFeed::new(config).expect("a feed"))
    }

    /// Begins the connect of a feed.
    pub fn begin(mut feed: BinanceFeed) -> Self {
        feed.connect();
        Self { feed, seen: Vec::new() }
    }

    pub fn poll(&mut self) {
        let Self { feed, seen } = self;
        let polled = feed.poll(&mut |event| seen.push(event.into()));
        if let Err(lost) = polled {
            seen.push(FeedSeen::Lost(lost.to_string()));
        }
    }

    /// Polls until something holds.
    pub fn until(&mut self, what: &str, holds: impl Fn(&[FeedSeen]) -> bool) {
        let clock = HostClock::get().expect("a clock");
        let began = clock.ticks();
        while !holds(&self.seen) {
            self.poll();
            sleep_ns(50_000);
            assert!(clock.ns_between(began, clock.ticks()) < DEADLINE_NS, "no {what}: {:?}", self.seen);
        }
    }

    pub fn until_up(&mut self) {
        self.until("Up", |seen| seen.contains(&FeedSeen::Up));
    }

    pub fn until_market(&mut self, event: &Seen) {
        self.until("market event", |seen| seen.contains(&FeedSeen::Market(event.clone())));
    }

    /// Polls until the feed is lost, and returns the reason.
    pub fn until_lost(&mut self) -> String {
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

pub fn quotes() -> Subscription {
    Subscription { instruments: btcusdt(), quotes: true, ..Subscription::default() }
}

pub fn everything() -> Subscription {
    Subscription { instruments: btcusdt(), quotes: true, trades: true, books: true }
}

/// Directs a configuration to a scripted exchange, which has the time.
pub fn at(exchange: &ScriptedExchange, config: BinanceFeedConfig) -> BinanceFeedConfig {
    exchange.reply(SPOT_TIME, RestReply::ok(TIME));
    exchange.reply(FUTURES_TIME, RestReply::ok(TIME));
    BinanceFeedConfig { url: exchange.streams_url(), rest_url: exchange.rest_url(), ..config }
}

/// Returns a spot quote and its event.
pub fn quote(sequence: u64) -> (String, Seen) {
    let data = format!(r#"{{"u":{sequence},"s":"BTCUSDT","b":"61800.2","B":"1","a":"61800.3","A":"2"}}"#);
    let text = format!(r#"{{"stream":"btcusdt@bookTicker","data":{data}}}"#);
    (text, Seen::quote(BTCUSDT, sequence, [618_002, 1_000, 618_003, 2_000], 0))
}

/// Returns a snapshot of a book and its event.
pub fn depth(sequence: u64) -> (RestReply, Seen) {
    let body = format!(r#"{{"lastUpdateId":{sequence},"bids":[["61800.20","2.5"]],"asks":[["61800.30","0.004"]]}}"#);
    let levels = [(Buy, 618_002, 2_500), (Sell, 618_003, 4)];
    (RestReply::ok(&body), Seen::snapshot(BTCUSDT, sequence, 0, &levels))
}
