//! Market data: what the public channels of each instrument send, and what REST answers.

use std::collections::VecDeque;

use serde_json::Value;
use tickpath_market::{Price, Quantity};
use tickpath_venue_sim_web::{PublicTrade, SimDesk};

use crate::audience::{Audience, InstrumentAt};
use crate::channels::OkxChannel;
use crate::depth_stream::{ALIVE_NS, DepthStream, book_text};
use crate::fields::{Row, amount_text, ms_text, row, side_text};
use crate::instruments::instrument_type;
use crate::positions::{middle_price, notional, units};

/// Max trades of an instrument that are kept.
const MAX_TRADES: usize = 500;
/// Time between two messages of the fast channels.
const FAST_NS: u64 = 10_000_000;
/// Time between two messages of the other channels.
const SLOW_NS: u64 = 100_000_000;

/// Market data of all instruments.
pub(crate) struct MarketBoard {
    feeds: Vec<InstrumentFeed>,
    /// Updates of a book until its sequence is reset; zero for never.
    reset_every: u64,
}

/// Market data of an instrument.
struct InstrumentFeed {
    quotes: SnapshotStream,
    fast_books: DepthStream,
    books: DepthStream,
    books5: SnapshotStream,
    tickers: SnapshotStream,
    /// Last trades, the newest last.
    trades: VecDeque<PublicTrade>,
    /// Trades that no channel has sent.
    unsent: VecDeque<PublicTrade>,
    day: TradedDay,
}

/// A channel whose messages are complete: the fields of its last message without the time and the sequence number.
#[derive(Default)]
struct SnapshotStream {
    fields: String,
    sequence: u64,
    sent_ns: u64,
    has_changed: bool,
}

/// Trades since the exchange was opened, for the figures of a day.
#[derive(Default)]
struct TradedDay {
    open: Option<Price>,
    high: Price,
    low: Price,
    /// In units of 10⁻⁸ of the unit of orders.
    volume: i128,
    /// In units of 10⁻⁸ of the quote currency.
    value: i128,
}

impl MarketBoard {
    pub(crate) fn new(sim: &SimDesk, reset_every: u64) -> Self {
        Self { feeds: sim.instruments().iter().map(|_| InstrumentFeed::new()).collect(), reset_every }
    }

    /// Notes that quotes or levels of an instrument have changed.
    pub(crate) fn note_change(&mut self, index: usize) {
        self.feeds[index].note_change();
    }

    /// Notes a trade.
    pub(crate) fn note_trade(&mut self, trade: PublicTrade, sim: &SimDesk) {
        let feed = &mut self.feeds[trade.instrument];
        feed.day.add(&trade, sim);
        feed.note_change();
        if feed.trades.len() == MAX_TRADES {
            feed.trades.pop_front();
        }
        feed.trades.push_back(trade);
        feed.unsent.push_back(trade);
    }

    /// Sends what is due on the public channels. Returns the number of messages.
    pub(crate) fn publish(&mut self, sim: &SimDesk, audience: &mut Audience<'_, '_>) -> usize {
        let reset_every = self.reset_every;
        let feeds = self.feeds.iter_mut().zip(sim.instruments()).enumerate();
        feeds.map(|(index, (feed, instrument))| feed.publish((index, instrument), sim, reset_every, audience)).sum()
    }

    /// Returns the first message of a channel after its subscription; none where nothing is sent then.
    pub(crate) fn first_message(
        &mut self,
        channel: OkxChannel,
        at: InstrumentAt<'_>,
        sim: &SimDesk,
        now_ns: u64,
        is_heard: bool,
    ) -> Option<String> {
        let (index, _) = at;
        let feed = &mut self.feeds[index];
        let data = match channel {
            OkxChannel::Quotes | OkxChannel::Books5 | OkxChannel::Tickers => {
                let fields = feed.fields(channel, at, sim);
                let stream = feed.stream(channel)?;
                if !is_heard {
                    stream.take(fields, sim.book_sequence(index), now_ns);
                }
                return Some(message(channel, at, "", &stream.data(channel, now_ns)));
            }
            OkxChannel::FastBooks => feed.fast_books.snapshot(sim, index, now_ns, is_heard),
            OkxChannel::Books => feed.books.snapshot(sim, index, now_ns, is_heard),
            _ => return None,
        };
        Some(message(channel, at, SNAPSHOT, &data))
    }

    /// Returns the ticker of an instrument.
    pub(crate) fn ticker_row(&self, at: InstrumentAt<'_>, sim: &SimDesk, now_ns: u64) -> Value {
        let mut row = self.feeds[at.0].ticker(at, sim);
        row.insert("ts".to_owned(), Value::from(ms_text(now_ns)));
        Value::Object(row)
    }

    /// Returns the last trades of an instrument, the newest first.
    pub(crate) fn trade_rows(&self, at: InstrumentAt<'_>, max: usize) -> Vec<Value> {
        let (index, instrument) = at;
        let of = |trade: &PublicTrade| {
            Value::Object(row([
                ("instId", &instrument.name),
                ("tradeId", &trade.trade_id.to_string()),
                ("px", &trade.price.to_string()),
                ("sz", &trade.quantity.to_string()),
                ("side", side_text(trade.side)),
                ("source", "0"),
                ("ts", &ms_text(trade.at_ns)),
            ]))
        };
        self.feeds[index].trades.iter().rev().take(max).map(of).collect()
    }

    /// Returns the price of the last trade, or the middle of the market before the first one.
    pub(crate) fn last_price(&self, index: usize, sim: &SimDesk) -> Price {
        self.feeds[index].trades.back().map_or_else(|| middle_price(sim, index), |trade| trade.price)
    }
}

impl InstrumentFeed {
    fn new() -> Self {
        Self {
            quotes: SnapshotStream::default(),
            fast_books: DepthStream::new(),
            books: DepthStream::new(),
            books5: SnapshotStream::default(),
            tickers: SnapshotStream::default(),
            trades: VecDeque::new(),
            unsent: VecDeque::new(),
            day: TradedDay::default(),
        }
    }

    fn note_change(&mut self) {
        self.fast_books.note_change();
        self.books.note_change();
        for stream in [&mut self.quotes, &mut self.books5, &mut self.tickers] {
            stream.has_changed = true;
        }
    }

    /// Sends what is due, in OKX's order of the channels.
    fn publish(
        &mut self,
        at: InstrumentAt<'_>,
        sim: &SimDesk,
        reset_every: u64,
        audience: &mut Audience<'_, '_>,
    ) -> usize {
        let (index, now_ns) = (at.0, audience.now_ns);
        let mut sent = 0;
        for trade in std::mem::take(&mut self.unsent) {
            let text = message(OkxChannel::Trades, at, "", &trade_data(&trade, at, sim.book_sequence(index)));
            sent += audience.publish(OkxChannel::Trades, at, &text);
        }
        sent += self.publish_snapshots(OkxChannel::Quotes, FAST_NS, at, sim, audience);
        for (channel, every_ns) in [(OkxChannel::FastBooks, FAST_NS), (OkxChannel::Books, SLOW_NS)] {
            if !audience.has_listeners(channel, at) {
                continue;
            }
            let stream = if channel == OkxChannel::Books { &mut self.books } else { &mut self.fast_books };
            if let Some(data) = stream.update(sim, index, now_ns, every_ns, reset_every) {
                sent += audience.publish(channel, at, &message(channel, at, UPDATE, &data));
            }
        }
        sent += self.publish_snapshots(OkxChannel::Books5, SLOW_NS, at, sim, audience);
        sent + self.publish_snapshots(OkxChannel::Tickers, SLOW_NS, at, sim, audience)
    }

    fn publish_snapshots(
        &mut self,
        channel: OkxChannel,
        every_ns: u64,
        at: InstrumentAt<'_>,
        sim: &SimDesk,
        audience: &mut Audience<'_, '_>,
    ) -> usize {
        let now_ns = audience.now_ns;
        let Some(stream) = self.stream(channel) else { return 0 };
        if !stream.is_due(now_ns, every_ns) || !audience.has_listeners(channel, at) {
            return 0;
        }
        let fields = self.fields(channel, at, sim);
        let Some(stream) = self.stream(channel) else { return 0 };
        if !stream.take(fields, sim.book_sequence(at.0), now_ns) {
            return 0;
        }
        audience.publish(channel, at, &message(channel, at, "", &stream.data(channel, now_ns)))
    }

    fn stream(&mut self, channel: OkxChannel) -> Option<&mut SnapshotStream> {
        match channel {
            OkxChannel::Quotes => Some(&mut self.quotes),
            OkxChannel::Books5 => Some(&mut self.books5),
            OkxChannel::Tickers => Some(&mut self.tickers),
            _ => None,
        }
    }

    /// Returns the present fields of a channel, without the time and the sequence number.
    fn fields(&self, channel: OkxChannel, at: InstrumentAt<'_>, sim: &SimDesk) -> String {
        let (index, instrument) = at;
        match channel {
            OkxChannel::Quotes => book_text(sim, index, 1),
            OkxChannel::Books5 => format!(r#"{},"instId":"{}""#, book_text(sim, index, 5), instrument.name),
            _ => {
                let object = Value::Object(self.ticker(at, sim)).to_string();
                object.trim_start_matches('{').trim_end_matches('}').to_owned()
            }
        }
    }

    /// Returns the ticker without its time.
    fn ticker(&self, at: InstrumentAt<'_>, sim: &SimDesk) -> Row {
        let (index, instrument) = at;
        let (best, last) = (sim.best(index), self.trades.back());
        let price = last.map_or_else(|| middle_price(sim, index), |trade| trade.price);
        let open = self.day.open.unwrap_or(price).to_string();
        let (high, low) = if self.day.open.is_some() { (self.day.high, self.day.low) } else { (price, price) };
        // A derivative has the base currency here, a spot instrument the quote currency.
        let in_currency = match instrument.is_derivative {
            true => notional(instrument, Price::from_whole(1), self.day.volume),
            false => self.day.value,
        };
        row([
            ("instType", instrument_type(instrument)),
            ("instId", &instrument.name),
            ("last", &price.to_string()),
            ("lastSz", &last.map_or(Quantity::ZERO, |trade| trade.quantity).to_string()),
            ("askPx", &best.ask.to_string()),
            ("askSz", &best.ask_quantity.to_string()),
            ("bidPx", &best.bid.to_string()),
            ("bidSz", &best.bid_quantity.to_string()),
            ("open24h", &open),
            ("high24h", &high.to_string()),
            ("low24h", &low.to_string()),
            ("volCcy24h", &amount_text(in_currency)),
            ("vol24h", &amount_text(self.day.volume)),
            ("sodUtc0", &open),
            ("sodUtc8", &open),
        ])
    }
}

impl SnapshotStream {
    /// Returns whether a message may be due: a change that is old enough, or the sign to be alive.
    fn is_due(&self, now_ns: u64, every_ns: u64) -> bool {
        let silence_ns = now_ns.saturating_sub(self.sent_ns);
        silence_ns >= if self.has_changed { every_ns } else { ALIVE_NS }
    }

    /// Takes over the present fields, and returns whether a message is to be sent.
    fn take(&mut self, fields: String, book_sequence: u64, now_ns: u64) -> bool {
        let is_silent = now_ns.saturating_sub(self.sent_ns) >= ALIVE_NS;
        self.has_changed = false;
        if fields == self.fields && !is_silent {
            return false;
        }
        self.fields = fields;
        self.sequence = book_sequence.max(self.sequence + 1);
        self.sent_ns = now_ns;
        true
    }

    fn data(&self, channel: OkxChannel, now_ns: u64) -> String {
        let Self { fields, sequence, .. } = self;
        let ms = ms_text(now_ns);
        match channel {
            OkxChannel::Tickers => format!(r#"{{{fields},"ts":"{ms}"}}"#),
            _ => format!(r#"{{{fields},"ts":"{ms}","seqId":{sequence}}}"#),
        }
    }
}

impl TradedDay {
    fn add(&mut self, trade: &PublicTrade, sim: &SimDesk) {
        let price = trade.price;
        (self.high, self.low) = match self.open {
            None => (price, price),
            Some(_) => (self.high.max(price), self.low.min(price)),
        };
        self.open.get_or_insert(price);
        self.volume += units(trade.quantity);
        self.value += notional(&sim.instruments()[trade.instrument], price, units(trade.quantity));
    }
}

const SNAPSHOT: &str = r#""action":"snapshot","#;
const UPDATE: &str = r#""action":"update","#;

/// Returns a message of a public channel, in the spelling of OKX.
fn message(channel: OkxChannel, (_, instrument): InstrumentAt<'_>, action: &str, data: &str) -> String {
    let (channel, name) = (channel.name(), &instrument.name);
    format!(r#"{{"arg":{{"channel":"{channel}","instId":"{name}"}},{action}"data":[{data}]}}"#)
}

fn trade_data(trade: &PublicTrade, (_, instrument): InstrumentAt<'_>, sequence: u64) -> String {
    let PublicTrade { trade_id, price, quantity, .. } = trade;
    let (name, side, ms) = (&instrument.name, side_text(trade.side), ms_text(trade.at_ns));
    let head = format!(r#""instId":"{name}","tradeId":"{trade_id}","px":"{price}","sz":"{quantity}","side":"{side}""#);
    format!(r#"{{{head},"ts":"{ms}","count":"1","source":"0","seqId":{sequence}}}"#)
}
