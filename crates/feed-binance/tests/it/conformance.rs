//! The feed against the suite of the contract, with an exchange that speaks each of its protocols.

use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};

use tickpath_clock::{Clock, HostClock};
use tickpath_feed::conformance::{ExchangeMessage, FeedHarness, check};
use tickpath_feed::{Feed, FeedInstrument, FrameParser, LevelChange, Subscription};
use tickpath_feed_binance::{BinanceFeed, BinanceFeedConfig, BinanceParser, TimeUnit};
use tickpath_market::{Side, SymbolId, TopOfBook, Trade, decimal_text};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::{Error, Message, WebSocket};

use crate::driver::{MARKET, PUBLIC, SPOT};
use crate::frames::{BNBUSDT, BTCUSDT, instrument};
use crate::sbe::{BEST_BID_ASK, DEPTH_DIFF, SbeWriter, TRADES, root};

const KEY: &str = "KeyOfATest";
/// Interval of the exchange's pings, and the silence after which an impatient feed ends its connection.
const PING_NS: i64 = 20_000_000;
const SILENCE_NS: u64 = 500_000_000;
/// Kinds of WebSocket frames.
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const PING: u8 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    SpotJson,
    SpotSbe,
    /// Quotes and books of futures: their trades have a connection of their own, and no common order.
    FuturesBooks,
    FuturesTrades,
}

/// An exchange that works when it is polled.
struct PolledExchange {
    protocol: Protocol,
    clock: HostClock,
    addresses: [SocketAddr; 2],
    /// Listeners of the streams and of the REST interface, unless connects are refused.
    listeners: Option<[TcpListener; 2]>,
    /// Connections whose requests are not whole.
    upgrades: Vec<HttpPeer>,
    requests: Vec<HttpPeer>,
    peer: Option<WebSocket<TcpStream>>,
    /// Answers with the snapshots of instruments.
    snapshots: Vec<(String, String)>,
    /// Other half of a frame whose first half was sent.
    half: Option<Vec<u8>>,
    is_silent: bool,
    pinged: u64,
    heartbeats: usize,
    acknowledged: usize,
}

/// A connection with the bytes of its request.
struct HttpPeer {
    stream: TcpStream,
    received: Vec<u8>,
}

impl HttpPeer {
    /// Returns the request once it is whole. The error is the end of the connection.
    fn request(&mut self) -> io::Result<Option<String>> {
        let mut room = [0; 4096];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let is_whole = self.received.ends_with(b"\r\n\r\n");
        Ok(is_whole.then(|| String::from_utf8_lossy(&self.received).into_owned()))
    }
}

impl Protocol {
    /// Returns the path of the streams, and the kinds of streams.
    fn streams(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::SpotJson => (SPOT, &["bookTicker", "depth@100ms", "trade"]),
            Self::SpotSbe => (SPOT, &["bestBidAsk", "depth", "trade"]),
            Self::FuturesBooks => (PUBLIC, &["bookTicker", "depth@100ms"]),
            Self::FuturesTrades => (MARKET, &["aggTrade"]),
        }
    }

    fn is_spot(self) -> bool {
        matches!(self, Self::SpotJson | Self::SpotSbe)
    }

    /// Returns the WebSocket frame of a message.
    fn frame(self, message: &ExchangeMessage) -> Vec<u8> {
        match (self, message) {
            (_, ExchangeMessage::Maintenance) => {
                frame(TEXT, br#"{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1770123456789}}"#)
            }
            (Self::SpotSbe, _) => frame(BINARY, &sbe(message)),
            (Self::SpotJson, _) => frame(TEXT, envelope(&spot_json(message)).as_bytes()),
            (Self::FuturesBooks | Self::FuturesTrades, _) => frame(TEXT, envelope(&futures_json(message)).as_bytes()),
        }
    }
}

impl PolledExchange {
    fn new(protocol: Protocol) -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
        let clock = HostClock::get().expect("this host has a clock");
        listeners.iter().for_each(|listener| listener.set_nonblocking(true).expect("it can be"));
        Self {
            protocol,
            clock,
            addresses: [0, 1].map(|index: usize| listeners[index].local_addr().expect("it listens")),
            listeners: Some(listeners),
            upgrades: Vec::new(),
            requests: Vec::new(),
            peer: None,
            snapshots: Vec::new(),
            half: None,
            is_silent: false,
            pinged: clock.ticks(),
            heartbeats: 0,
            acknowledged: 0,
        }
    }

    fn feed_of(&self, change: impl FnOnce(&mut BinanceFeedConfig)) -> Box<dyn Feed> {
        let subscription = self.subscription();
        let mut config = match self.protocol {
            Protocol::SpotJson => BinanceFeedConfig::spot(subscription),
            Protocol::SpotSbe => BinanceFeedConfig::spot_sbe(subscription, KEY.parse().expect("a key")),
            Protocol::FuturesBooks | Protocol::FuturesTrades => BinanceFeedConfig::usd_futures(subscription),
        };
        let [streams, rest] = self.addresses;
        (config.url, config.rest_url) = (format!("ws://{streams}"), format!("http://{rest}"));
        change(&mut config);
        Box::new(BinanceFeed::new(config).expect("a feed"))
    }

    fn accept(&mut self) {
        let Self { listeners: Some([streams, rest]), upgrades, requests, .. } = self else { return };
        for (listener, peers) in [(streams, upgrades), (rest, requests)] {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).expect("it can be");
                peers.push(HttpPeer { stream, received: Vec::new() });
            }
        }
    }

    /// Upgrades a connection, which replaces an earlier one.
    fn upgrade(&mut self, mut stream: TcpStream, request: &str) {
        let target = request.split(' ').nth(1).expect("a request has a target");
        let (path, kinds) = self.protocol.streams();
        let names = kinds.iter().flat_map(|kind| ["btcusdt", "bnbusdt"].map(|symbol| format!("{symbol}@{kind}")));
        assert_eq!(target, format!("{path}?streams={}", names.collect::<Vec<_>>().join("/")), "the subscription");
        let key = (self.protocol == Protocol::SpotSbe).then_some(KEY);
        assert_eq!(header(request, "X-MBX-APIKEY"), key);
        let accept = derive_accept_key(header(request, "Sec-WebSocket-Key").expect("an upgrade").as_bytes());
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        let answer = format!("{answer}Sec-WebSocket-Accept: {accept}\r\n\r\n");
        if stream.write_all(answer.as_bytes()).is_ok() {
            self.acknowledged += 1;
            self.peer = Some(WebSocket::from_raw_socket(stream, Role::Server, None));
        }
    }

    /// Answers a request of the REST interface, and closes the connection.
    fn answer(&self, mut stream: TcpStream, request: &str) {
        let target = request.split(' ').nth(1).expect("a request has a target");
        let symbol = target.split_once("symbol=").and_then(|(_, rest)| rest.split('&').next());
        let known = |symbol: &str| self.snapshots.iter().find(|(name, _)| name == symbol).map(|(_, body)| body.clone());
        let body = match symbol {
            Some(symbol) => known(symbol).unwrap_or_else(|| r#"{"lastUpdateId":1,"bids":[],"asks":[]}"#.to_owned()),
            None => r#"{"serverTime":1700000000000}"#.to_owned(),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        // A client that has closed its connection takes no answer.
        let _ = stream.write_all((head + &body).as_bytes());
    }

    /// Takes the answers to pings, and sends the next one.
    fn exchange_heartbeats(&mut self) {
        while let Some(peer) = &mut self.peer {
            match peer.read() {
                Ok(Message::Pong(_)) => self.heartbeats += 1,
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.peer = None,
            }
        }
        let now = self.clock.ticks();
        if self.half.is_none() && self.clock.ns_between(self.pinged, now) > PING_NS {
            self.pinged = now;
            self.write(&frame(PING, &[]));
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(peer) = &mut self.peer {
            // The bytes fit any socket's buffer, and the feed reports a connection that has ended.
            let _ = peer.get_mut().write_all(bytes);
        }
    }
}

impl FeedHarness for PolledExchange {
    fn subscription(&self) -> Subscription {
        let (has_books, has_trades) = match self.protocol {
            Protocol::SpotJson | Protocol::SpotSbe => (true, true),
            Protocol::FuturesBooks => (true, false),
            Protocol::FuturesTrades => (false, true),
        };
        Subscription { instruments: instruments(), quotes: has_books, trades: has_trades, books: has_books }
    }

    fn feed(&mut self) -> Box<dyn Feed> {
        self.feed_of(|_| {})
    }

    fn impatient_feed(&mut self) -> Box<dyn Feed> {
        self.feed_of(|config| config.silence_ns = SILENCE_NS)
    }

    fn parser(&mut self) -> Box<dyn FrameParser> {
        Box::new(BinanceParser::new(&instruments(), TimeUnit::Millisecond))
    }

    fn poll(&mut self) {
        if self.is_silent {
            return;
        }
        self.accept();
        for mut peer in mem::take(&mut self.upgrades) {
            match peer.request() {
                Ok(Some(request)) => self.upgrade(peer.stream, &request),
                Ok(None) => self.upgrades.push(peer),
                Err(_) => {}
            }
        }
        for mut peer in mem::take(&mut self.requests) {
            match peer.request() {
                Ok(Some(request)) => self.answer(peer.stream, &request),
                Ok(None) => self.requests.push(peer),
                Err(_) => {}
            }
        }
        self.exchange_heartbeats();
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    fn heartbeats(&self) -> usize {
        self.heartbeats
    }

    fn set_snapshot(&mut self, snapshot: &ExchangeMessage) {
        let ExchangeMessage::Book { update, levels } = snapshot else { panic!("{snapshot:?} is no snapshot") };
        let (instrument, ms) = (instrument_of(update.symbol), update.event_ns / 1_000_000);
        let time = if self.protocol.is_spot() { String::new() } else { format!(r#","E":{ms},"T":{ms}"#) };
        let [bids, asks] = [Side::Buy, Side::Sell].map(|side| levels_json(levels, side, &instrument));
        let body = format!(r#"{{"lastUpdateId":{}{time},"bids":{bids},"asks":{asks}}}"#, update.sequence);
        self.snapshots.retain(|(name, _)| *name != instrument.name);
        self.snapshots.push((instrument.name, body));
    }

    fn send(&mut self, message: &ExchangeMessage) {
        self.write(&self.protocol.frame(message));
    }

    fn send_half(&mut self, message: &ExchangeMessage) {
        let mut bytes = self.protocol.frame(message);
        self.half = Some(bytes.split_off(bytes.len() / 2));
        self.write(&bytes);
    }

    fn send_rest(&mut self) {
        let rest = self.half.take().expect("half of a frame was sent");
        self.write(&rest);
    }

    fn send_garbage(&mut self) {
        self.write(&frame(TEXT, b"not JSON"));
    }

    fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    fn cut(&mut self) {
        (self.peer, self.half) = (None, None);
    }

    fn refuse_connects(&mut self) {
        self.listeners = None;
    }

    fn carried(&self, mut message: ExchangeMessage) -> ExchangeMessage {
        match &mut message {
            ExchangeMessage::Quote { quote, .. } if self.protocol == Protocol::SpotJson => quote.event_ns = 0,
            ExchangeMessage::Book { update, .. } if update.is_snapshot => {
                update.may_overlap = true;
                update.event_ns = if self.protocol.is_spot() { 0 } else { update.event_ns };
            }
            _ => {}
        }
        message
    }

    /// The exchange documents the announcement for the spot market.
    fn announces_maintenance(&self) -> bool {
        self.protocol.is_spot()
    }
}

/// Returns two instruments whose numbers have different decimals.
fn instruments() -> Vec<FeedInstrument> {
    vec![instrument("BTCUSDT", BTCUSDT, 1, 3), instrument("BNBUSDT", BNBUSDT, 8, 8)]
}

fn instrument_of(symbol: SymbolId) -> FeedInstrument {
    instruments().into_iter().find(|instrument| instrument.symbol == symbol).expect("it is subscribed")
}

/// Returns an unmasked frame of a server.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | kind];
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => bytes.push(length),
        _ => {
            bytes.push(126);
            bytes.extend(u16::try_from(payload.len()).expect("a message is short").to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

fn envelope(data: &str) -> String {
    format!(r#"{{"stream":"any@stream","data":{data}}}"#)
}

fn spot_json(message: &ExchangeMessage) -> String {
    match message {
        ExchangeMessage::Quote { sequence, quote } => {
            format!(r#"{{"u":{sequence},{}}}"#, quote_json(quote))
        }
        ExchangeMessage::Trade(trade) => {
            let (head, ms) = (trade_json(trade), trade.event_ns / 1_000_000);
            let (name, is_maker) = (instrument_of(trade.symbol).name, is_maker(trade));
            let id = trade.trade_id;
            format!(r#"{{"e":"trade","E":{ms},"s":"{name}","t":{id},{head},"T":{ms},"m":{is_maker},"M":true}}"#)
        }
        ExchangeMessage::Book { update, levels } => {
            let (ms, first) = (update.event_ns / 1_000_000, update.previous + 1);
            let (sequence, sides) = (update.sequence, sides_json(update.symbol, levels));
            let name = instrument_of(update.symbol).name;
            format!(r#"{{"e":"depthUpdate","E":{ms},"s":"{name}","U":{first},"u":{sequence},{sides}}}"#)
        }
        ExchangeMessage::Maintenance => panic!("maintenance has no instrument"),
    }
}

fn futures_json(message: &ExchangeMessage) -> String {
    match message {
        ExchangeMessage::Quote { sequence, quote } => {
            let (fields, ms) = (quote_json(quote), quote.event_ns / 1_000_000);
            format!(r#"{{"e":"bookTicker","u":{sequence},{fields},"T":{ms},"E":{ms}}}"#)
        }
        ExchangeMessage::Trade(trade) => {
            let (head, ms) = (trade_json(trade), trade.event_ns / 1_000_000);
            let (name, is_maker) = (instrument_of(trade.symbol).name, is_maker(trade));
            let id = trade.trade_id;
            format!(r#"{{"e":"aggTrade","E":{ms},"a":{id},"s":"{name}",{head},"f":1,"l":1,"T":{ms},"m":{is_maker}}}"#)
        }
        ExchangeMessage::Book { update, levels } => {
            let (ms, previous) = (update.event_ns / 1_000_000, update.previous);
            let (first, sequence, sides) = (previous + 1, update.sequence, sides_json(update.symbol, levels));
            let name = instrument_of(update.symbol).name;
            let head = format!(r#""e":"depthUpdate","E":{ms},"T":{ms},"s":"{name}""#);
            format!(r#"{{{head},"U":{first},"u":{sequence},"pu":{previous},{sides}}}"#)
        }
        ExchangeMessage::Maintenance => panic!("maintenance has no instrument"),
    }
}

/// Returns the instrument of a quote, and its amounts.
fn quote_json(quote: &TopOfBook) -> String {
    let instrument = instrument_of(quote.symbol);
    let price = |units: i64| decimal_text(units.into(), instrument.price_decimals);
    let quantity = |units: i64| decimal_text(units.into(), instrument.quantity_decimals);
    let (bid, bid_quantity) = (price(quote.bid.0), quantity(quote.bid_quantity.0));
    let (ask, ask_quantity) = (price(quote.ask.0), quantity(quote.ask_quantity.0));
    let name = &instrument.name;
    format!(r#""s":"{name}","b":"{bid}","B":"{bid_quantity}","a":"{ask}","A":"{ask_quantity}""#)
}

/// Returns the amounts of a trade.
fn trade_json(trade: &Trade) -> String {
    let instrument = instrument_of(trade.symbol);
    let price = decimal_text(trade.price.0.into(), instrument.price_decimals);
    let quantity = decimal_text(trade.quantity.0.into(), instrument.quantity_decimals);
    format!(r#""p":"{price}","q":"{quantity}""#)
}

/// Returns both sides of an update.
fn sides_json(symbol: SymbolId, levels: &[LevelChange]) -> String {
    let instrument = instrument_of(symbol);
    let [bids, asks] = [Side::Buy, Side::Sell].map(|side| levels_json(levels, side, &instrument));
    format!(r#""b":{bids},"a":{asks}"#)
}

fn levels_json(levels: &[LevelChange], side: Side, instrument: &FeedInstrument) -> String {
    let text = |level: &LevelChange| {
        let price = decimal_text(level.price.0.into(), instrument.price_decimals);
        let quantity = decimal_text(level.quantity.0.into(), instrument.quantity_decimals);
        format!(r#"["{price}","{quantity}"]"#)
    };
    let texts: Vec<String> = levels.iter().filter(|level| level.side == side).map(text).collect();
    format!("[{}]", texts.join(","))
}

/// Returns a message in SBE, whose exponents are those of its instrument.
fn sbe(message: &ExchangeMessage) -> Vec<u8> {
    let microseconds = |ns: u64| (ns / 1_000).cast_signed();
    let exponents = |instrument: &FeedInstrument| {
        [instrument.price_decimals, instrument.quantity_decimals].map(|decimals| -decimals.cast_signed())
    };
    match message {
        ExchangeMessage::Quote { sequence, quote } => {
            let instrument = instrument_of(quote.symbol);
            let amounts = [quote.bid.0, quote.bid_quantity.0, quote.ask.0, quote.ask_quantity.0];
            let head = [microseconds(quote.event_ns), sequence.cast_signed()];
            let block = root(&head, exponents(&instrument), &amounts);
            SbeWriter::start(BEST_BID_ASK, 0, 0, &block).symbol(&instrument.name)
        }
        ExchangeMessage::Trade(trade) => {
            let instrument = instrument_of(trade.symbol);
            let block = root(&[microseconds(trade.event_ns); 2], exponents(&instrument), &[]);
            let entry = (trade.trade_id.cast_signed(), trade.price.0, trade.quantity.0, u8::from(is_maker(trade)));
            SbeWriter::start(TRADES, 0, 0, &block).trades(&[entry]).symbol(&instrument.name)
        }
        ExchangeMessage::Book { update, levels } => {
            let instrument = instrument_of(update.symbol);
            let numbers = [update.previous + 1, update.sequence].map(u64::cast_signed);
            let head = [microseconds(update.event_ns), numbers[0], numbers[1]];
            let block = root(&head, exponents(&instrument), &[]);
            let of_side = |side| {
                let levels = levels.iter().filter(|level| level.side == side);
                levels.map(|level| (level.price.0, level.quantity.0)).collect::<Vec<_>>()
            };
            let writer = SbeWriter::start(DEPTH_DIFF, 0, 0, &block);
            writer.levels(&of_side(Side::Buy)).levels(&of_side(Side::Sell)).symbol(&instrument.name)
        }
        ExchangeMessage::Maintenance => panic!("maintenance has no instrument"),
    }
}

fn is_maker(trade: &Trade) -> bool {
    trade.aggressor == Side::Sell.code()
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[test]
fn the_feed_of_spot_json_keeps_the_contract() {
    check(|| PolledExchange::new(Protocol::SpotJson));
}

#[test]
fn the_feed_of_spot_sbe_keeps_the_contract() {
    check(|| PolledExchange::new(Protocol::SpotSbe));
}

#[test]
fn the_feed_of_futures_keeps_the_contract() {
    check(|| PolledExchange::new(Protocol::FuturesBooks));
    check(|| PolledExchange::new(Protocol::FuturesTrades));
}
