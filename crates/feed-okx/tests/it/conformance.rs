//! The feed, checked against the contract with an exchange that speaks OKX's protocol.

use tickpath_feed::conformance::{ExchangeMessage, FeedHarness, check};
use tickpath_feed::{Feed, FeedInstrument, FrameParser, LevelChange, Subscription};
use tickpath_feed_okx::{OkxFeed, OkxFeedConfig};
use tickpath_market::{Price, Quantity, Side, SymbolId, decimal_text};

use crate::exchange::ScriptedExchange;
use crate::frames::{UPGRADE_NOTICE, instruments, parser};

/// Nanoseconds of OKX's unit of time.
const NS_PER_MS: u64 = 1_000_000;

/// An exchange whose feeds subscribe to everything.
struct OkxHarness {
    exchange: ScriptedExchange,
    /// Other half of a frame whose first half was sent.
    rest: Vec<u8>,
}

impl OkxHarness {
    fn new() -> Self {
        Self { exchange: ScriptedExchange::start(), rest: Vec::new() }
    }

    fn feed_with(&self, change: impl FnOnce(&mut OkxFeedConfig)) -> Box<dyn Feed> {
        let mut config = OkxFeedConfig::new(self.subscription());
        (config.url, config.rest_url) = (self.exchange.url(), None);
        change(&mut config);
        Box::new(OkxFeed::new(config).expect("the configuration is in order"))
    }
}

impl FeedHarness for OkxHarness {
    fn subscription(&self) -> Subscription {
        Subscription { instruments: instruments(), quotes: true, trades: true, books: true }
    }

    fn feed(&mut self) -> Box<dyn Feed> {
        self.feed_with(|_| {})
    }

    fn impatient_feed(&mut self) -> Box<dyn Feed> {
        self.feed_with(|config| {
            (config.silence_ns, config.answer_ns, config.up_ns) = (50_000_000, 400_000_000, 900_000_000);
        })
    }

    fn parser(&mut self) -> Box<dyn FrameParser> {
        Box::new(parser())
    }

    fn poll(&mut self) {
        self.exchange.work();
    }

    fn acknowledged(&self) -> usize {
        self.exchange.acknowledged()
    }

    fn heartbeats(&self) -> usize {
        self.exchange.pings()
    }

    fn set_snapshot(&mut self, snapshot: &ExchangeMessage) {
        let ExchangeMessage::Book { update, levels } = snapshot else { panic!("{snapshot:?} is no book") };
        let instrument = instrument(update.symbol);
        self.exchange
            .set_snapshot(&instrument.name, &book_row(&instrument, "-1", update.sequence, update.event_ns, levels));
    }

    fn send(&mut self, message: &ExchangeMessage) {
        self.exchange.send(&frame(message));
    }

    fn send_half(&mut self, message: &ExchangeMessage) {
        let mut half = text_frame(&frame(message));
        self.rest = half.split_off(half.len() / 2);
        self.exchange.send_bytes(&half);
    }

    fn send_rest(&mut self) {
        self.exchange.send_bytes(&std::mem::take(&mut self.rest));
    }

    fn send_garbage(&mut self) {
        self.exchange.send("{\"arg\":");
    }

    fn set_silent(&mut self, is_silent: bool) {
        self.exchange.script().is_silent = is_silent;
    }

    fn cut(&mut self) {
        self.exchange.cut();
    }

    fn refuse_connects(&mut self) {
        self.exchange.refuse_connects();
    }
}

fn instrument(symbol: SymbolId) -> FeedInstrument {
    let found = instruments().into_iter().find(|instrument| instrument.symbol == symbol);
    found.expect("the instrument is subscribed")
}

/// Returns a WebSocket frame of a server, as its bytes.
fn text_frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a message of the suite is short");
    let head = match length {
        ..126 => vec![0x81, length as u8],
        _ => [&[0x81_u8, 126][..], &length.to_be_bytes()].concat(),
    };
    [head, text.as_bytes().to_vec()].concat()
}

/// Returns the text of a message, as OKX writes it.
fn frame(message: &ExchangeMessage) -> String {
    match message {
        ExchangeMessage::Quote { sequence, quote } => {
            let instrument = instrument(quote.symbol);
            let level = |price, quantity| level_text(&instrument, price, quantity);
            let (ask, bid) = (level(quote.ask, quote.ask_quantity), level(quote.bid, quote.bid_quantity));
            let ms = quote.event_ns / NS_PER_MS;
            let row = format!(r#"{{"asks":[{ask}],"bids":[{bid}],"ts":"{ms}","seqId":{sequence}}}"#);
            push("bbo-tbt", &instrument.name, "", &row)
        }
        ExchangeMessage::Trade(trade) => {
            let instrument = instrument(trade.symbol);
            let price = decimal_text(trade.price.0.into(), instrument.price_decimals);
            let size = decimal_text(trade.quantity.0.into(), instrument.quantity_decimals);
            let side = if trade.aggressor == Side::Buy.code() { "buy" } else { "sell" };
            let (name, id, ms) = (&instrument.name, trade.trade_id, trade.event_ns / NS_PER_MS);
            let row = format!(
                r#"{{"instId":"{name}","tradeId":"{id}","px":"{price}","sz":"{size}","side":"{side}","ts":"{ms}","count":"1","source":"0","seqId":7}}"#
            );
            push("trades", name, "", &row)
        }
        ExchangeMessage::Book { update, levels } => {
            let instrument = instrument(update.symbol);
            let (previous, action) = match update.is_snapshot {
                true => ("-1".to_owned(), r#""action":"snapshot","#),
                false => (update.previous.to_string(), r#""action":"update","#),
            };
            let row = book_row(&instrument, &previous, update.sequence, update.event_ns, levels);
            push("books", &instrument.name, action, &row)
        }
        ExchangeMessage::Maintenance => UPGRADE_NOTICE.to_owned(),
    }
}

fn push(channel: &str, name: &str, action: &str, row: &str) -> String {
    format!(r#"{{"arg":{{"channel":"{channel}","instId":"{name}"}},{action}"data":[{row}]}}"#)
}

fn book_row(
    instrument: &FeedInstrument,
    previous: &str,
    sequence: u64,
    event_ns: u64,
    levels: &[LevelChange],
) -> String {
    let side = |side: Side| {
        let levels = levels.iter().filter(|level| level.side == side);
        levels.map(|level| level_text(instrument, level.price, level.quantity)).collect::<Vec<_>>().join(",")
    };
    let (asks, bids, ms) = (side(Side::Sell), side(Side::Buy), event_ns / NS_PER_MS);
    format!(r#"{{"asks":[{asks}],"bids":[{bids}],"ts":"{ms}","checksum":0,"seqId":{sequence},"prevSeqId":{previous}}}"#)
}

fn level_text(instrument: &FeedInstrument, price: Price, quantity: Quantity) -> String {
    let price = decimal_text(price.0.into(), instrument.price_decimals);
    let quantity = decimal_text(quantity.0.into(), instrument.quantity_decimals);
    format!(r#"["{price}","{quantity}","0","1"]"#)
}

#[test]
fn the_feed_keeps_the_contract() {
    check(OkxHarness::new);
}
