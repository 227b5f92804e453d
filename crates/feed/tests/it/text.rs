//! The example's feed, checked against the contract with an exchange that speaks its text protocol.

#[path = "../../examples/text_feed.rs"]
#[expect(dead_code, reason = "an example has a main of its own")]
mod example;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use proptest::prelude::*;
use tickpath_feed::conformance::{ExchangeMessage, FeedHarness, check};
use tickpath_feed::{Feed, FeedInstrument, Frame, FrameParser, LevelChange, Subscription};
use tickpath_market::{Price, Quantity, Side, SymbolId, decimal_text};

use example::{TextFeed, TextParser};

/// An exchange with two instruments.
struct TextExchange {
    address: SocketAddr,
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    received: String,
    is_silent: bool,
    snapshots: Vec<ExchangeMessage>,
    /// Other half of a line whose first half was sent.
    rest: String,
    acknowledged: usize,
    heartbeats: usize,
}

impl TextExchange {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be");
        Self {
            address: listener.local_addr().expect("it listens"),
            listener: Some(listener),
            stream: None,
            received: String::new(),
            is_silent: false,
            snapshots: Vec::new(),
            rest: String::new(),
            acknowledged: 0,
            heartbeats: 0,
        }
    }

    fn feed_with(&self, silence_ns: i64) -> Box<dyn Feed> {
        Box::new(TextFeed::new(self.address, instruments(), silence_ns).expect("this host has a clock"))
    }

    fn write(&mut self, text: &str) {
        if let Some(stream) = &mut self.stream {
            // The text fits any socket's buffer, and the feed reports a connection that has ended.
            let _ = stream.write_all(text.as_bytes());
        }
    }

    fn send_snapshots(&mut self, symbol: Option<SymbolId>) {
        for snapshot in self.snapshots.clone() {
            if symbol.is_none_or(|symbol| symbol_of(&snapshot) == symbol) {
                self.send(&snapshot);
            }
        }
    }

    fn take_line(&mut self, line: &str) {
        match line.split_once(' ') {
            None if line == "PING" => {
                self.heartbeats += 1;
                self.write("PONG\n");
            }
            Some(("SUBSCRIBE", names)) => {
                assert_eq!(names, "BTC-USDT BTT-USDT", "the subscription");
                self.acknowledged += 1;
                self.write("SUBSCRIBED\n");
                self.send_snapshots(None);
            }
            Some(("RESYNCHRONIZE", name)) => {
                let instrument = instruments().into_iter().find(|instrument| instrument.name == name);
                self.send_snapshots(Some(instrument.expect("it is subscribed").symbol));
            }
            _ => panic!("'{line}' is no request"),
        }
    }
}

impl FeedHarness for TextExchange {
    fn subscription(&self) -> Subscription {
        Subscription { instruments: instruments(), quotes: true, trades: true, books: true }
    }

    fn feed(&mut self) -> Box<dyn Feed> {
        self.feed_with(30_000_000_000)
    }

    fn impatient_feed(&mut self) -> Box<dyn Feed> {
        self.feed_with(200_000_000)
    }

    fn parser(&mut self) -> Box<dyn FrameParser> {
        Box::new(TextParser { instruments: instruments() })
    }

    fn poll(&mut self) {
        if self.is_silent {
            return;
        }
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            stream.set_nonblocking(true).expect("it can be");
            self.stream = Some(stream);
            self.received.clear();
        }
        let mut room = [0; 4096];
        while let Some(Ok(bytes @ 1..)) = self.stream.as_mut().map(|stream| stream.read(&mut room)) {
            self.received.push_str(std::str::from_utf8(&room[..bytes]).expect("it is text"));
        }
        while let Some((line, rest)) = self.received.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.received = rest;
            self.take_line(&line);
        }
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    fn heartbeats(&self) -> usize {
        self.heartbeats
    }

    fn set_snapshot(&mut self, snapshot: &ExchangeMessage) {
        self.snapshots.retain(|earlier| symbol_of(earlier) != symbol_of(snapshot));
        self.snapshots.push(snapshot.clone());
    }

    fn send(&mut self, message: &ExchangeMessage) {
        self.write(&line(message));
    }

    fn send_half(&mut self, message: &ExchangeMessage) {
        let line = line(message);
        let (half, rest) = line.split_at(line.len() / 2);
        self.rest = rest.to_owned();
        self.write(half);
    }

    fn send_rest(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        self.write(&rest);
    }

    fn send_garbage(&mut self) {
        self.write("QUOTE BTC-USDT 0 seven 1 BUY 1 1 SELL 2 1\n");
    }

    fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    fn cut(&mut self) {
        self.stream = None;
    }

    fn refuse_connects(&mut self) {
        self.listener = None;
    }
}

/// Returns two instruments whose numbers have different decimals.
fn instruments() -> Vec<FeedInstrument> {
    let instrument = |name: &str, symbol, price_decimals, quantity_decimals| FeedInstrument {
        name: name.to_owned(),
        symbol: SymbolId(symbol),
        price_decimals,
        quantity_decimals,
        code: 0,
    };
    vec![instrument("BTC-USDT", 3, 2, 8), instrument("BTT-USDT", 9, 10, 0)]
}

/// Returns the line of a message.
fn line(message: &ExchangeMessage) -> String {
    let level = |side, price, quantity| LevelChange { side, price, quantity };
    let (kind, symbol, previous, sequence, event_ns, levels) = match message {
        ExchangeMessage::Quote { sequence, quote } => {
            let bid = level(Side::Buy, quote.bid, quote.bid_quantity);
            let ask = level(Side::Sell, quote.ask, quote.ask_quantity);
            ("QUOTE", quote.symbol, 0, *sequence, quote.event_ns, vec![bid, ask])
        }
        ExchangeMessage::Trade(trade) => {
            let side = Side::from_code(trade.aggressor).expect("it has a side");
            let traded = level(side, trade.price, trade.quantity);
            ("TRADE", trade.symbol, 0, trade.trade_id, trade.event_ns, vec![traded])
        }
        ExchangeMessage::Book { update, levels } => {
            let kind = if update.is_snapshot { "SNAPSHOT" } else { "UPDATE" };
            (kind, update.symbol, update.previous, update.sequence, update.event_ns, levels.clone())
        }
        ExchangeMessage::Maintenance => ("MAINTENANCE", SymbolId(3), 0, 0, 0, Vec::new()),
    };
    let instruments = instruments();
    let instrument = instruments.iter().find(|instrument| instrument.symbol == symbol).expect("it is subscribed");
    let mut line = format!("{kind} {} {previous} {sequence} {event_ns}", instrument.name);
    for LevelChange { side, price: Price(price), quantity: Quantity(quantity) } in levels {
        let side = if side == Side::Buy { "BUY" } else { "SELL" };
        let price = decimal_text(price.into(), instrument.price_decimals);
        let quantity = decimal_text(quantity.into(), instrument.quantity_decimals);
        line += &format!(" {side} {price} {quantity}");
    }
    line + "\n"
}

fn symbol_of(message: &ExchangeMessage) -> SymbolId {
    match message {
        ExchangeMessage::Quote { quote, .. } => quote.symbol,
        ExchangeMessage::Trade(trade) => trade.symbol,
        ExchangeMessage::Book { update, .. } => update.symbol,
        ExchangeMessage::Maintenance => panic!("maintenance has no instrument"),
    }
}

#[test]
fn the_feed_of_the_example_keeps_the_contract() {
    check(TextExchange::new);
}

/// Checks that a line cannot be read, for a reason with this text.
fn refuse(line: &str, why: &str) {
    let mut parser = TextParser { instruments: instruments() };
    let error = parser.parse(Frame::Text(line.as_bytes()), &mut |event| panic!("{line}: {event:?}"));
    let error = error.expect_err(line).to_string();
    assert!(error.contains(why), "'{line}' is refused by '{error}'");
}

#[test]
fn bad_lines_are_refused_with_a_reason() {
    refuse("QUOTE ETH-USDT 0 1 2", "'ETH-USDT', which is not subscribed");
    refuse("QUOTE BTC-USDT 0 1 two", "'two' is no time");
    refuse("QUOTE BTC-USDT 0 1 2 BUY 3 4", "its 1 levels are no QUOTE");
    refuse("TRADE BTC-USDT 0 1 2 HOLD 3 4", "'HOLD' is no side");
    refuse("TRADE BTC-USDT 0 1 2 BUY 3.001 4", "price '3.001' does not fit 2 decimals");
    refuse("TRADE BTT-USDT 0 1 2 BUY 3.001 4.5", "quantity '4.5' does not fit 0 decimals");
    refuse("SOLD BTC-USDT 0 1 2", "no SOLD");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_line_is_messages_or_an_error(words in prop::collection::vec(word(), 0..12)) {
        let mut parser = TextParser { instruments: instruments() };
        let mut messages = 0;
        let parsed = parser.parse(Frame::Text(words.join(" ").as_bytes()), &mut |_| messages += 1);
        prop_assert_eq!(messages, usize::from(parsed.is_ok()));
    }
}

fn word() -> impl Strategy<Value = String> {
    let words = ["QUOTE", "TRADE", "SNAPSHOT", "UPDATE", "BTC-USDT", "BUY", "SELL", "0.5", "7", "-", ""];
    prop_oneof![4 => prop::sample::select(words.map(str::to_owned).to_vec()), 1 => any::<String>()]
}
