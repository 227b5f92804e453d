//! A feed against a scripted exchange: subscriptions, heartbeats, losses, resubscriptions and the exchange's time.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use tickpath_clock::{Clock, HostClock, sleep_ns, utc_ns};
use tickpath_feed::{Feed, FeedEvent, FeedInstrument, Frame, Subscription};
use tickpath_feed_okx::{OkxFeed, OkxFeedConfig, OkxFeedError, OkxInstrumentError};
use tickpath_market::SymbolId;

use crate::exchange::ScriptedExchange;
use crate::frames::{OwnedMessage, QUOTE, SNAPSHOT, UPDATE, UPGRADE_NOTICE, instruments, messages_of, parser};
use crate::sbe::quote_frame;

/// Timeout of every wait.
const TIMEOUT_NS: i64 = 30_000_000_000;

/// An event that owns its parts.
#[derive(Debug, Clone, PartialEq)]
enum OwnedFeedEvent {
    Up,
    Frame(Vec<u8>),
    Message(OwnedMessage),
    BadFrame(String),
    ClockOffset(i64),
}

impl From<FeedEvent<'_>> for OwnedFeedEvent {
    fn from(event: FeedEvent<'_>) -> Self {
        match event {
            FeedEvent::Up => Self::Up,
            FeedEvent::Frame(Frame::Text(bytes) | Frame::Binary(bytes), _) => Self::Frame(bytes.to_vec()),
            FeedEvent::Market(message) => Self::Message(message.into()),
            FeedEvent::BadFrame(error) => Self::BadFrame(error.to_string()),
            FeedEvent::ClockOffset { offset_ns, .. } => Self::ClockOffset(offset_ns),
        }
    }
}

/// A feed, its exchange, and the events that it has reported.
struct FeedUnderTest {
    clock: HostClock,
    exchange: ScriptedExchange,
    feed: OkxFeed,
    events: Vec<OwnedFeedEvent>,
    losses: Vec<String>,
}

impl FeedUnderTest {
    fn new(change: impl FnOnce(&mut OkxFeedConfig)) -> Self {
        let exchange = ScriptedExchange::start();
        let subscription = Subscription { instruments: instruments(), quotes: true, trades: true, books: true };
        let mut config = OkxFeedConfig::new(subscription);
        (config.url, config.rest_url) = (exchange.url(), None);
        change(&mut config);
        let feed = OkxFeed::new(config).expect("the configuration is in order");
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, exchange, feed, events: Vec::new(), losses: Vec::new() }
    }

    fn connected() -> Self {
        let mut test = Self::new(|_| {});
        test.connect();
        test
    }

    fn connect(&mut self) {
        let ups = self.ups();
        self.feed.connect();
        self.wait_until("the feed is up", |test| test.ups() > ups);
    }

    fn ups(&self) -> usize {
        self.events.iter().filter(|event| **event == OwnedFeedEvent::Up).count()
    }

    fn turn(&mut self) {
        self.exchange.work();
        let Self { feed, events, losses, .. } = self;
        if let Err(lost) = feed.poll(&mut |event| events.push(event.into())) {
            losses.push(lost.to_string());
        }
    }

    fn wait_until(&mut self, fact: &str, holds: impl Fn(&Self) -> bool) {
        let began = self.clock.ticks();
        while !holds(self) {
            self.turn();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < TIMEOUT_NS, "timed out waiting until {fact}; {:?}, {:?}", self.losses, self.events);
            sleep_ns(20_000);
        }
    }

    fn wait_for(&mut self, event: &OwnedFeedEvent) {
        self.wait_until("an event arrives", |test| test.events.contains(event));
    }

    /// Waits for the next loss, and returns its reason.
    fn wait_for_loss(&mut self) -> String {
        let losses = self.losses.len();
        self.wait_until("the feed is lost", |test| test.losses.len() > losses);
        self.losses[losses].clone()
    }

    /// Returns the sentences of the frames that could not be read, and of the errors of the exchange.
    fn bad_frames(&self) -> Vec<&str> {
        fn sentence(event: &OwnedFeedEvent) -> Option<&str> {
            match event {
                OwnedFeedEvent::BadFrame(why) => Some(why.as_str()),
                _ => None,
            }
        }
        self.events.iter().filter_map(sentence).collect()
    }

    fn snapshots(&self) -> usize {
        let is_snapshot = |event: &&OwnedFeedEvent| matches!(event, OwnedFeedEvent::Message(OwnedMessage::Book(book)) if book.is_snapshot);
        self.events.iter().filter(is_snapshot).count()
    }
}

/// Returns the messages of a frame as events.
fn events_of(frame: Frame<'_>) -> Vec<OwnedFeedEvent> {
    messages_of(&mut parser(), frame).into_iter().map(OwnedFeedEvent::Message).collect()
}

#[test]
fn a_feed_is_up_after_the_last_acknowledgement_and_before_any_message() {
    let mut test = FeedUnderTest::new(|config| {
        config.subscription.instruments.truncate(2);
        config.subscription.books = false;
        config.subscription.trades = false;
    });
    test.exchange.script().acknowledges = false;
    test.feed.connect();
    test.wait_until("the exchange has the subscription", |test| !test.exchange.requests().is_empty());
    let arguments = r#"[{"channel":"bbo-tbt","instId":"BTC-USDT"},{"channel":"bbo-tbt","instId":"BCH-USDT-SWAP"}]"#;
    assert_eq!(test.exchange.requests(), [format!(r#"{{"op":"subscribe","args":{arguments}}}"#)]);
    test.exchange.acknowledge("bbo-tbt", "BCH-USDT-SWAP");
    test.exchange.send(QUOTE);
    test.exchange.acknowledge("bbo-tbt", "BTC-USDT");
    test.wait_until("the last frame is passed on", |test| test.events.len() >= 5);
    let quote = events_of(Frame::Text(QUOTE.as_bytes())).remove(0);
    let [up, OwnedFeedEvent::Frame(_), frame, message, OwnedFeedEvent::Frame(_)] = &test.events[..] else {
        panic!("{:?}", test.events);
    };
    assert_eq!([up, frame, message], [&OwnedFeedEvent::Up, &OwnedFeedEvent::Frame(QUOTE.into()), &quote]);
}

#[test]
fn recorded_frames_give_the_same_messages_again() {
    let mut test = FeedUnderTest::connected();
    test.wait_until("each book has its snapshot", |test| test.snapshots() == 3);
    for text in [QUOTE, UPDATE, UPGRADE_NOTICE] {
        test.exchange.send(text);
    }
    test.exchange.send_binary(&quote_frame());
    test.wait_for(&OwnedFeedEvent::Frame(quote_frame()));
    let (mut parser, mut replayed, mut reported) = (parser(), Vec::new(), Vec::new());
    for event in &test.events {
        match event {
            OwnedFeedEvent::Frame(bytes) if bytes.starts_with(b"{") => {
                replayed.extend(messages_of(&mut parser, Frame::Text(bytes)));
            }
            OwnedFeedEvent::Frame(bytes) => replayed.extend(messages_of(&mut parser, Frame::Binary(bytes))),
            OwnedFeedEvent::Message(message) => reported.push(message.clone()),
            OwnedFeedEvent::Up => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(replayed, reported);
    assert_eq!(reported.len(), 7, "three snapshots, two quotes, an update, a notice");
}

#[test]
fn a_cut_connection_is_lost_once_and_can_be_connected_again() {
    let mut test = FeedUnderTest::connected();
    test.exchange.cut();
    test.wait_for_loss();
    test.events.clear();
    for _ in 0..100 {
        test.turn();
    }
    assert_eq!((test.losses.len(), test.events.len()), (1, 0), "a feed that is down reports nothing");
    test.connect();
    test.wait_until("each book has another snapshot", |test| test.snapshots() == 3);
    assert_eq!(test.exchange.requests().len(), 2, "one request for each connection");
}

#[test]
fn a_feed_that_was_never_connected_does_nothing() {
    let mut test = FeedUnderTest::new(|_| {});
    test.feed.resynchronize(SymbolId(1));
    assert_eq!(test.feed.poll(&mut |event| panic!("{event:?}")), Ok(0));
    assert_eq!(test.feed.address(), test.exchange.url());
}

#[test]
fn a_refused_subscription_ends_the_connection_with_the_reason_of_okx() {
    let mut test = FeedUnderTest::new(|_| {});
    let text = "Wrong URL or channel:books,instId:XRP doesn't exist.";
    test.exchange.script().refusal = Some(format!(r#"{{"event":"error","code":"60018","msg":"{text}","connId":"a"}}"#));
    test.feed.connect();
    assert_eq!(test.wait_for_loss(), format!("OKX refuses the subscription: 60018: {text}"));
    assert_eq!(test.ups(), 0);
    test.exchange.script().refusal = None;
    test.connect();
}

#[test]
fn missing_acknowledgements_end_the_connection() {
    let mut test = FeedUnderTest::new(|config| config.up_ns = 2_000_000_000);
    test.exchange.script().acknowledges = false;
    test.feed.connect();
    let expected = "OKX has not acknowledged 9 of 9 channels within 2000 ms, such as 'bbo-tbt' of BCH-USDT-SWAP; connect \
                    again";
    assert_eq!(test.wait_for_loss(), expected);
}

#[test]
fn a_silent_exchange_is_lost() {
    let mut test = FeedUnderTest::new(|config| (config.silence_ns, config.answer_ns) = (1_000_000, 2_000_000));
    (test.exchange.script().acknowledges, test.exchange.script().answers_pings) = (false, false);
    test.feed.connect();
    let expected = "nothing has arrived for 1 ms, and no answer to a ping for 2 ms; connect again";
    assert_eq!(test.wait_for_loss(), expected);
}

#[test]
fn an_answer_to_a_ping_keeps_the_connection() {
    let mut test = FeedUnderTest::new(|config| config.silence_ns = 1_000_000);
    test.connect();
    test.wait_until("three pings are sent", |test| test.exchange.pings() >= 3);
    test.wait_for(&OwnedFeedEvent::Frame(b"pong".to_vec()));
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn notices_and_bad_frames_leave_the_connection_up() {
    let mut test = FeedUnderTest::connected();
    test.exchange.send(UPGRADE_NOTICE);
    test.exchange.send("<html>");
    test.exchange.send(r#"{"event":"error","code":"60012","msg":"Invalid request","connId":"a"}"#);
    test.exchange.send(r#"{"event":"unsubscribe","arg":{"channel":"trades","instId":"BTC-USDT"},"connId":"a"}"#);
    test.exchange.send(QUOTE);
    test.wait_for(&events_of(Frame::Text(QUOTE.as_bytes()))[0]);
    let expected = [
        "a frame of 6 bytes cannot be read: expected value at line 1 column 1; it is skipped",
        "the exchange reports an error: 60012: Invalid request",
        "BTC-USDT: the channel 'trades' was ended by the exchange (OKX has unsubscribed it); it is subscribed again",
    ];
    assert_eq!(test.bad_frames(), expected);
    assert!(test.events.contains(&OwnedFeedEvent::Message(OwnedMessage::Maintenance)));
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn a_resynchronized_book_is_left_and_entered_again() {
    let mut test = FeedUnderTest::connected();
    test.wait_until("each book has its snapshot", |test| test.snapshots() == 3);
    test.feed.resynchronize(SymbolId(99));
    for again in 1..=2 {
        test.feed.resynchronize(SymbolId(1));
        test.feed.resynchronize(SymbolId(1));
        test.wait_until("the book has another snapshot", |test| test.snapshots() == 3 + again);
    }
    let leave = r#"{"op":"unsubscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}"#;
    let enter = r#"{"op":"subscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}"#;
    assert_eq!(test.exchange.requests()[1..], [leave, enter, leave, enter]);
}

#[test]
fn a_refused_resubscription_ends_the_connection() {
    let mut test = FeedUnderTest::connected();
    test.exchange.script().refusal =
        Some(r#"{"event":"error","code":"60014","msg":"Requests too frequent"}"#.to_owned());
    test.feed.resynchronize(SymbolId(2));
    let expected = "OKX refuses another subscription: 60014: Requests too frequent";
    assert_eq!(test.wait_for_loss(), expected);
}

#[test]
fn a_snapshot_that_is_missing_or_unreadable_is_requested_again() {
    let mut test = FeedUnderTest::new(|config| config.snapshot_ns = 20_000_000);
    test.exchange.script().sends_snapshots = false;
    test.connect();
    test.exchange.send(&SNAPSHOT.replace("8475.55", "8475.555"));
    let late = "the exchange reports an error: no readable snapshot of BTC-USDT within 20 ms; it is requested again";
    test.wait_until("the snapshot is requested twice", |test| {
        test.bad_frames().iter().filter(|why| **why == late).count() >= 2
    });
    test.exchange.script().sends_snapshots = true;
    test.wait_until("each book has its snapshot", |test| test.snapshots() >= 3);
    let leave = r#"{"op":"unsubscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}"#;
    assert!(test.exchange.requests().iter().any(|request| request == leave), "{:?}", test.exchange.requests());
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn channels_that_the_exchange_ends_are_subscribed_again() {
    let enter = |channel: &str, name: &str| {
        format!(r#"{{"op":"subscribe","args":[{{"channel":"{channel}","instId":"{name}"}}]}}"#)
    };
    let mut test = FeedUnderTest::connected();
    test.wait_until("each book has its snapshot", |test| test.snapshots() == 3);
    test.exchange.send(r#"{"event":"unsubscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":"a"}"#);
    test.wait_until("the book has another snapshot", |test| test.snapshots() == 4);
    assert_eq!(test.exchange.requests()[1..], [enter("books", "BTC-USDT")], "it need not be left");
    let text = "Wrong URL or channel:trades,instId:BCH-USDT-SWAP doesn't exist.";
    test.exchange.send(&format!(r#"{{"event":"error","code":"60018","msg":"{text}","connId":"a"}}"#));
    test.wait_until("the trades are subscribed", |test| test.exchange.requests().len() == 3);
    assert_eq!(test.exchange.requests()[2], enter("trades", "BCH-USDT-SWAP"));
    test.exchange.send(r#"{"event":"channel-conn-count-error","channel":"bbo-tbt","connCount":"30","connId":"a"}"#);
    test.wait_until("all quotes are subscribed", |test| test.exchange.requests().len() == 6);
    let quotes: Vec<String> = instruments().iter().map(|one| enter("bbo-tbt", &one.name)).collect();
    assert_eq!(test.exchange.requests()[3..], quotes);
    assert_eq!(test.bad_frames().iter().filter(|why| why.ends_with("it is subscribed again")).count(), 5);
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn a_book_that_is_silent_while_pongs_arrive_is_subscribed_again() {
    let mut test = FeedUnderTest::new(|config| {
        (config.silence_ns, config.book_silence_ns) = (1_000_000, 50_000_000);
        config.subscription.quotes = false;
        config.subscription.trades = false;
    });
    test.connect();
    test.wait_until("each book has another snapshot", |test| test.snapshots() >= 6);
    let silent = "BTC-USDT: the channel 'books' has been silent for 50 ms; it is subscribed again";
    assert!(test.bad_frames().contains(&silent), "{:?}", test.bad_frames());
    assert!(test.exchange.pings() > 0 && test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn a_large_subscription_is_split_into_requests_below_64_kb() {
    let instrument = |number: u32| FeedInstrument {
        name: format!("COIN{number}-USDT-SWAP"),
        symbol: SymbolId(number),
        price_decimals: 1,
        quantity_decimals: 0,
        code: 0,
    };
    let mut test = FeedUnderTest::new(|config| {
        config.subscription.instruments = (0..1_000).map(instrument).collect();
        config.subscription.books = false;
    });
    test.connect();
    let requests = test.exchange.requests();
    assert!(requests.len() == 2 && requests.iter().all(|request| request.len() < 64_000), "{}", requests.len());
    let arguments = requests.iter().map(|request| request.matches("instId").count()).sum::<usize>();
    assert_eq!(arguments, 2_000);
}

#[test]
fn configurations_that_make_no_feed_are_refused() {
    let refused = |change: fn(&mut OkxFeedConfig)| {
        let mut config = OkxFeedConfig::new(Subscription { instruments: instruments(), ..Subscription::default() });
        (config.rest_url, config.subscription.quotes) = (None, true);
        change(&mut config);
        OkxFeed::new(config).err()
    };
    assert!(matches!(refused(|config| config.subscription.quotes = false), Some(OkxFeedError::Nothing)));
    assert!(matches!(refused(|config| config.subscription.instruments.clear()), Some(OkxFeedError::Nothing)));
    assert!(matches!(
        refused(|config| config.subscription.instruments[0].name.clear()),
        Some(OkxFeedError::Instrument(OkxInstrumentError::Name(_)))
    ));
    assert!(matches!(refused(|config| config.url = "ftp://localhost".to_owned()), Some(OkxFeedError::Client(_))));
    let too_many = refused(|config| config.requests_per_hour = 0).map(|e| e.to_string());
    let expected = "the subscription needs 1 requests, and OKX takes 0 an hour; spread it over several feeds";
    assert_eq!(too_many.as_deref(), Some(expected));
}

#[test]
fn the_offset_of_the_clock_of_okx_is_measured_at_a_connect() {
    let an_hour_ahead = utc_ns() / 1_000_000 + 3_600_000;
    let url = serve_once(format!(r#"{{"code":"0","msg":"","data":[{{"ts":"{an_hour_ahead}"}}]}}"#));
    let mut test = FeedUnderTest::new(|config| config.rest_url = Some(url));
    test.connect();
    let is_near = |event: &OwnedFeedEvent| match event {
        OwnedFeedEvent::ClockOffset(offset_ns) => (3_500_000_000_000..3_700_000_000_000).contains(offset_ns),
        _ => false,
    };
    test.wait_until("the offset is reported", |test| test.events.iter().any(is_near));
}

#[test]
fn an_answer_without_a_time_is_reported() {
    let url = serve_once("{}".to_owned());
    let mut test = FeedUnderTest::new(|config| config.rest_url = Some(url));
    test.connect();
    let expected = "a frame of 2 bytes cannot be read: the answer to GET /api/v5/public/time: missing field `data` at line \
                    1 column 2; it is skipped";
    test.wait_for(&OwnedFeedEvent::BadFrame(expected.to_owned()));
}

/// Answers one request for OKX's time with this body, and returns the address of the server.
fn serve_once(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let reader = BufReader::new(stream.try_clone().expect("a socket has a second handle"));
        let mut head = reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let is_time = head.next().is_some_and(|line| line == "GET /api/v5/public/time HTTP/1.1");
        head.for_each(drop);
        let status = if is_time { "200 OK" } else { "404 Not Found" };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).expect("the client takes the answer");
    });
    format!("http://{address}")
}
