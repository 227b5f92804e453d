//! Our own feed against the exchange.

use std::collections::BTreeMap;

use serde_json::json;
use tickpath_feed::{Feed, FeedEvent, FeedInstrument, MarketEvent, Subscription};
use tickpath_feed_okx::{OkxFeed, OkxFeedConfig};
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};
use tickpath_venue_sim_web::WebFaults;

use crate::stage::{SECOND_NS, SPOT, SWAP, Stage, limit, price, quantity};

/// Events of a feed, and the book of the first instrument.
#[derive(Default)]
struct FeedRecord {
    is_up: bool,
    quotes: Vec<TopOfBook>,
    trades: Vec<Trade>,
    bids: BTreeMap<Price, Quantity>,
    offers: BTreeMap<Price, Quantity>,
    /// Sequence number of the book.
    sequence: u64,
    snapshots: usize,
    updates: usize,
    offsets: Vec<i64>,
    maintenances: usize,
}

/// A feed and its exchange.
struct FedStage {
    stage: Stage,
    feed: OkxFeed,
    record: FeedRecord,
}

impl FeedRecord {
    fn take(&mut self, event: FeedEvent<'_>) {
        match event {
            FeedEvent::Up => self.is_up = true,
            FeedEvent::Frame(..) => {}
            FeedEvent::BadFrame(why) => panic!("{why}"),
            FeedEvent::ClockOffset { offset_ns, .. } => self.offsets.push(offset_ns),
            FeedEvent::Market(event) => self.take_market(event),
        }
    }

    fn take_market(&mut self, event: MarketEvent<'_>) {
        match event {
            MarketEvent::Quote { quote, .. } => self.quotes.push(*quote),
            MarketEvent::Trade(trade) => self.trades.push(*trade),
            MarketEvent::Maintenance => self.maintenances += 1,
            MarketEvent::Book(update) if update.symbol == SymbolId(1) => {
                if update.is_snapshot {
                    self.bids.clear();
                    self.offers.clear();
                    self.snapshots += 1;
                } else {
                    assert_eq!(update.previous, self.sequence, "an update follows the last one");
                    self.updates += 1;
                }
                self.sequence = update.sequence;
                for level in update.levels {
                    let side = if level.side == Side::Buy { &mut self.bids } else { &mut self.offers };
                    match level.quantity {
                        Quantity::ZERO => side.remove(&level.price),
                        quantity => side.insert(level.price, quantity),
                    };
                }
            }
            MarketEvent::Book(_) => {}
        }
    }

    fn is_book_of(&self, stage: &mut Stage) -> bool {
        let mut is_side = |own: &BTreeMap<Price, Quantity>, side| {
            let levels: BTreeMap<Price, Quantity> = stage.exchange.desk().book(0, side).collect();
            *own == levels
        };
        is_side(&self.bids, Side::Buy) && is_side(&self.offers, Side::Sell)
    }
}

impl FedStage {
    /// Opens an exchange with faults, and connects a feed of all messages.
    fn connected(change: impl FnOnce(&mut WebFaults)) -> Self {
        let stage = Stage::with(change);
        let instrument = |name: &str, symbol: u32| FeedInstrument {
            name: name.to_owned(),
            symbol: SymbolId(symbol),
            price_decimals: 8,
            quantity_decimals: 8,
            code: 0,
        };
        let instruments = vec![instrument(SPOT, 1), instrument(SWAP, 2)];
        let config = OkxFeedConfig {
            url: stage.url("ws", "/ws/v5/public"),
            rest_url: Some(stage.url("http", "")),
            ..OkxFeedConfig::new(Subscription { instruments, quotes: true, trades: true, books: true })
        };
        let mut feed = OkxFeed::new(config).expect("the configuration is in order");
        feed.connect();
        let mut fed = Self { stage, feed, record: FeedRecord::default() };
        fed.wait("the feed and its first book", |record, _| record.is_up && record.snapshots == 1);
        fed
    }

    fn wait(&mut self, fact: &str, holds: impl Fn(&FeedRecord, &mut Stage) -> bool) {
        let Self { stage, feed, record } = self;
        stage.wait(fact, |stage| {
            if let Err(lost) = feed.poll(&mut |event| record.take(event)) {
                panic!("the feed is lost: {lost}");
            }
            holds(record, stage).then_some(())
        });
    }
}

#[test]
fn the_feed_gets_quotes_trades_and_a_valid_book() {
    let mut fed = FedStage::connected(|_| {});
    fed.wait("the first quotes", |record, _| record.quotes.len() >= 2);
    fed.wait("the first book", FeedRecord::is_book_of);
    fed.stage.quote(SPOT, "99.8", "100.2");
    fed.wait("a quote", |record, _| record.quotes.iter().any(|quote| quote.ask == price("100.2")));
    let socket = fed.stage.private();
    fed.stage.place(socket, limit("buy", "100.2", "2"));
    fed.wait("a trade", |record, _| !record.trades.is_empty());
    let trade = fed.record.trades[0];
    assert_eq!((trade.price, trade.quantity, trade.symbol), (price("100.2"), quantity("2"), SymbolId(1)));
    assert_eq!(trade.aggressor, Side::Buy.code());
    fed.stage.place(socket, limit("sell", "101", "3"));
    fed.stage.advance(SECOND_NS);
    fed.wait("the present book", |record, stage| record.updates > 0 && record.is_book_of(stage));
    assert_eq!(fed.record.offers.get(&price("101")), Some(&quantity("3")));
    assert_eq!(fed.record.snapshots, 1);
}

#[test]
fn the_feed_measures_the_drift_of_the_clock() {
    let mut fed = FedStage::connected(|faults| faults.clock_drift_ms = 3_600_000);
    fed.wait("an offset", |record, _| !record.offsets.is_empty());
    let minutes = fed.record.offsets[0] / 60_000_000_000;
    assert!((59..=60).contains(&minutes), "{minutes}");
}

#[test]
fn the_feed_follows_a_sequence_that_is_reset() {
    let mut fed = FedStage::connected(|faults| faults.reset_sequence_every = 2);
    let first = fed.record.sequence;
    for (bid, ask) in [("99.8", "100.2"), ("99.7", "100.3"), ("99.6", "100.4")] {
        let updates = fed.record.updates;
        fed.stage.quote(SPOT, bid, ask);
        fed.stage.advance(SECOND_NS);
        fed.wait("an update", |record, _| record.updates > updates);
        assert!(fed.record.is_book_of(&mut fed.stage));
    }
    assert!(fed.record.sequence < first, "{} after {first}", fed.record.sequence);
}

#[test]
fn the_feed_gets_another_snapshot_when_it_resubscribes() {
    let mut fed = FedStage::connected(|_| {});
    fed.feed.resynchronize(SymbolId(1));
    fed.wait("another snapshot", |record, _| record.snapshots == 2);
    fed.stage.quote(SPOT, "99.8", "100.2");
    fed.stage.advance(SECOND_NS);
    fed.wait("the present book", |record, stage| record.updates > 0 && record.is_book_of(stage));
}

#[test]
fn the_feed_learns_of_an_upgrade() {
    let mut fed = FedStage::connected(|faults| faults.announce_maintenance_after_ms = 20_000);
    fed.stage.advance(20 * SECOND_NS);
    fed.wait("an announcement", |record, _| record.maintenances == 1);
    let socket = fed.stage.private();
    fed.stage.send(socket, &json!({"op": "order", "id": "1", "args": [limit("sell", "99.9", "1")]}));
    fed.wait("a trade meanwhile", |record, _| !record.trades.is_empty());
}
