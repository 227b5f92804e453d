//! Example of a feed adapter for a plain text protocol over TCP, one message per line.
//!
//! ```text
//!   feed ──                                              ── exchange
//!     SUBSCRIBE BTC-USDT ETH-USDT     SUBSCRIBED, and a SNAPSHOT of each instrument
//!     RESYNCHRONIZE BTC-USDT          SNAPSHOT BTC-USDT 0 NUMBER TIME BUY 61800.1 0.5 SELL 61800.2 1.5
//!                                     UPDATE BTC-USDT PREVIOUS NUMBER TIME SELL 61800.2 0
//!                                     QUOTE BTC-USDT 0 NUMBER TIME BUY 61800.1 0.5 SELL 61800.3 2
//!                                     TRADE BTC-USDT 0 ID TIME BUY 61800.3 0.1
//!                                     MAINTENANCE BTC-USDT 0 0 TIME
//!     PING                            PONG                   after half of the longest silence
//! ```
//! `cargo run --example text -- 127.0.0.1:PORT BTC-USDT` connects to an exchange with this protocol and prints events.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{CalibrationError, Clock, HostClock, sleep_ns};
use tickpath_feed::{Arrival, Feed, FeedEvent, FeedInstrument, FeedLost, Frame, FrameError, FrameParser};
use tickpath_feed::{BookUpdate, LevelChange, MarketEvent};
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade, parse_decimal};

/// Reader of the exchange's lines.
pub struct TextParser {
    /// Instruments of the exchange.
    pub instruments: Vec<FeedInstrument>,
}

impl FrameParser for TextParser {
    fn parse(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(MarketEvent<'_>)) -> Result<(), FrameError> {
        let (Frame::Text(bytes) | Frame::Binary(bytes)) = frame;
        let malformed = |why: String| FrameError::Malformed { bytes: bytes.len(), why };
        let text = std::str::from_utf8(bytes).map_err(|e| malformed(e.to_string()))?;
        let mut words = text.split(' ');
        let (kind, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let instrument = self.instruments.iter().find(|instrument| instrument.name == name);
        let instrument = instrument.ok_or_else(|| FrameError::UnknownInstrument(name.to_owned()))?;
        let mut number = |field: &str| {
            let word = words.next().unwrap_or_default();
            word.parse::<u64>().map_err(|_| malformed(format!("'{word}' is no {field}")))
        };
        let (previous, sequence, event_ns) = (number("previous number")?, number("number")?, number("time")?);
        let (symbol, mut levels) = (instrument.symbol, Vec::new());
        while let Some(side) = words.next() {
            let side = match side {
                "BUY" => Side::Buy,
                "SELL" => Side::Sell,
                other => return Err(malformed(format!("'{other}' is no side"))),
            };
            let price = Price(decimal(instrument, "price", words.next(), instrument.price_decimals)?);
            let quantity = Quantity(decimal(instrument, "quantity", words.next(), instrument.quantity_decimals)?);
            levels.push(LevelChange { side, price, quantity });
        }
        match (kind, levels.as_slice()) {
            ("QUOTE", [bid, ask]) => {
                let (bid_quantity, ask_quantity) = (bid.quantity, ask.quantity);
                let (bid, ask, wire_age_ns) = (bid.price, ask.price, 0);
                let quote = &TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, wire_age_ns };
                take(MarketEvent::Quote { sequence, quote });
            }
            ("TRADE", &[LevelChange { side, price, quantity }]) => {
                let (trade_id, aggressor, reserved) = (sequence, side.code(), [0; 3]);
                take(MarketEvent::Trade(&Trade { price, quantity, trade_id, event_ns, symbol, aggressor, reserved }));
            }
            ("SNAPSHOT" | "UPDATE", levels) => {
                let (is_snapshot, may_overlap) = (kind == "SNAPSHOT", false);
                let update = BookUpdate { symbol, is_snapshot, may_overlap, previous, sequence, event_ns, levels };
                take(MarketEvent::Book(update));
            }
            ("MAINTENANCE", []) => take(MarketEvent::Maintenance),
            _ => return Err(malformed(format!("its {} levels are no {kind}", levels.len()))),
        }
        Ok(())
    }
}

fn decimal(of: &FeedInstrument, field: &'static str, word: Option<&str>, decimals: u8) -> Result<i64, FrameError> {
    let (instrument, symbol, text) = (of.name.clone(), of.symbol, word.unwrap_or_default().to_owned());
    parse_decimal(&text, decimals).map_err(|_| FrameError::Number { instrument, symbol, field, text, decimals })
}

/// A feed with a text protocol.
pub struct TextFeed {
    address: SocketAddr,
    parser: TextParser,
    clock: HostClock,
    half_silence_ns: i64,
    /// The connection, or the reason of a failed connect until it is reported.
    stream: Option<Result<TcpStream, String>>,
    is_up: bool,
    /// Received bytes without a whole line yet, and pending output.
    received: Vec<u8>,
    out: Vec<u8>,
    /// Time of the last received bytes or PING, in ticks, and whether it was a PING.
    last: u64,
    has_pinged: bool,
}

impl TextFeed {
    /// Creates a feed that is down, and that loses a connection after a silence of this many nanoseconds.
    pub fn new(at: SocketAddr, instruments: Vec<FeedInstrument>, silence_ns: i64) -> Result<Self, CalibrationError> {
        let (address, parser, half_silence_ns) = (at, TextParser { instruments }, silence_ns / 2);
        let (clock, (stream, is_up, received, out, last, has_pinged)) = (HostClock::get()?, Default::default());
        Ok(Self { address, parser, clock, half_silence_ns, stream, is_up, received, out, last, has_pinged })
    }

    fn work(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, String> {
        let stream = match &mut self.stream {
            None => return Ok(0),
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(stream)) => stream,
        };
        let mut room = [0; 4096];
        let read = match stream.read(&mut room) {
            Ok(0) => return Err("the exchange has closed it".to_owned()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
            read => read.map_err(|e| e.to_string())?,
        };
        self.received.extend_from_slice(&room[..read]);
        let now = self.clock.ticks();
        if read > 0 {
            (self.last, self.has_pinged) = (now, false);
        } else if self.clock.ns_between(self.last, now) > self.half_silence_ns {
            if self.has_pinged {
                return Err("the exchange does not answer".to_owned());
            }
            self.out.extend_from_slice(b"PING\n");
            (self.last, self.has_pinged) = (now, true);
        }
        let written = stream.write(&self.out).or_else(|e| (e.kind() == ErrorKind::WouldBlock).then_some(0).ok_or(e));
        self.out.drain(..written.map_err(|e| e.to_string())?);
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            self.take_line(&line[..end], now, take)?;
        }
        if self.received.len() > 1 << 20 { Err("a line has more than a mebibyte".to_owned()) } else { Ok(read) }
    }

    fn take_line(&mut self, line: &[u8], read: u64, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<(), String> {
        match (line, self.is_up) {
            (b"PONG", _) => {}
            (b"SUBSCRIBED", false) => {
                self.is_up = true;
                take(FeedEvent::Up);
            }
            (_, false) => return Err("it sends data before it acknowledges the subscription".to_owned()),
            (_, true) => {
                take(FeedEvent::Frame(Frame::Text(line), Arrival { wire: 0, read }));
                let parsed = self.parser.parse(Frame::Text(line), &mut |message| take(FeedEvent::Market(message)));
                parsed.unwrap_or_else(|error| take(FeedEvent::BadFrame(&error)));
            }
        }
        Ok(())
    }
}

impl Feed for TextFeed {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn connect(&mut self) {
        let names: Vec<&str> = self.parser.instruments.iter().map(|instrument| instrument.name.as_str()).collect();
        self.out = format!("SUBSCRIBE {}\n", names.join(" ")).into_bytes();
        self.received.clear();
        (self.is_up, self.last, self.has_pinged) = (false, self.clock.ticks(), false);
        // Connecting to a distant exchange would wait here: begin it without blocking, as `tickpath-venue-native` does.
        let unblock = |stream: TcpStream| stream.set_nonblocking(true).map(|()| stream);
        self.stream = Some(TcpStream::connect(self.address).and_then(unblock).map_err(|e| e.to_string()));
    }

    fn poll(&mut self, take: &mut dyn FnMut(FeedEvent<'_>)) -> Result<usize, FeedLost> {
        self.work(take).map_err(|why| {
            (self.stream, self.is_up) = (None, false);
            FeedLost(format!("{}: {why}", self.address))
        })
    }

    fn resynchronize(&mut self, symbol: SymbolId) {
        let instrument = self.parser.instruments.iter().find(|known| self.is_up && known.symbol == symbol);
        let request = instrument.map(|known| format!("RESYNCHRONIZE {}\n", known.name));
        self.out.extend_from_slice(request.unwrap_or_default().as_bytes());
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref()?.as_ref().ok().map(AsFd::as_fd)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().and_then(|text| text.parse().ok());
    let Some(address) = address else { return eprintln!("usage: text 127.0.0.1:PORT INSTRUMENT ...") };
    let of = |(name, n)| FeedInstrument { name, symbol: SymbolId(n), price_decimals: 8, quantity_decimals: 8, code: 0 };
    let mut feed = TextFeed::new(address, arguments.zip(1..).map(of).collect(), 30_000_000_000).expect("a clock");
    feed.connect();
    while feed.poll(&mut |event| println!("{event:?}")).inspect_err(|lost| eprintln!("{lost}")).is_ok() {
        sleep_ns(1_000_000);
    }
}
