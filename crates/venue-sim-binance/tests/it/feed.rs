//! The feed of this workspace against the simulated exchange.

use std::collections::BTreeMap;

use serde_json::json;
use tickpath_feed::{Feed, FeedEvent, FeedInstrument, MarketEvent, Subscription};
use tickpath_feed_binance::{BinanceFeed, BinanceFeedConfig};
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

use crate::traders::Trader;
use crate::trial::{API, Trial, limit};

const SYMBOL: SymbolId = SymbolId(1);
const PRICE_DECIMALS: u8 = 2;
const QUANTITY_DECIMALS: u8 = 5;

/// Messages of a feed so far, and the book that they make.
#[derive(Default)]
struct FeedRecord {
    is_up: bool,
    quote: Option<TopOfBook>,
    trades: Vec<Trade>,
    book: BTreeMap<(u8, Price), Quantity>,
    /// Sequence number of the book, once it has a snapshot.
    sequence: Option<u64>,
    /// Updates that came before the snapshot.
    early: Vec<OwnedUpdate>,
    bad_frames: Vec<String>,
}

/// An update of a book.
struct OwnedUpdate {
    previous: u64,
    sequence: u64,
    levels: Vec<((u8, Price), Quantity)>,
}

impl FeedRecord {
    fn take(&mut self, event: FeedEvent<'_>) {
        match event {
            FeedEvent::Up => self.is_up = true,
            FeedEvent::BadFrame(error) => self.bad_frames.push(error.to_string()),
            FeedEvent::Market(MarketEvent::Quote { quote, .. }) => self.quote = Some(*quote),
            FeedEvent::Market(MarketEvent::Trade(trade)) => self.trades.push(*trade),
            FeedEvent::Market(MarketEvent::Book(update)) => {
                let levels = update.levels.iter();
                let levels = levels.map(|level| ((level.side.code(), level.price), level.quantity)).collect();
                let owned = OwnedUpdate { previous: update.previous, sequence: update.sequence, levels };
                if update.is_snapshot {
                    self.begin_book(owned);
                } else {
                    self.update_book(owned);
                }
            }
            FeedEvent::Market(MarketEvent::Maintenance) | FeedEvent::Frame(..) | FeedEvent::ClockOffset { .. } => {}
        }
    }

    fn begin_book(&mut self, snapshot: OwnedUpdate) {
        self.book = snapshot.levels.into_iter().collect();
        self.sequence = Some(snapshot.sequence);
        for update in std::mem::take(&mut self.early) {
            self.update_book(update);
        }
    }

    fn update_book(&mut self, update: OwnedUpdate) {
        let Some(sequence) = self.sequence else { return self.early.push(update) };
        if update.sequence <= sequence {
            return;
        }
        assert!(update.previous <= sequence, "a gap between {sequence} and {}", update.previous);
        self.sequence = Some(update.sequence);
        self.book.extend(update.levels);
        self.book.retain(|_, quantity| *quantity > Quantity::ZERO);
    }
}

/// Polls the exchange and the feed until something holds.
fn until(
    trial: &mut Trial,
    feed: &mut BinanceFeed,
    record: &mut FeedRecord,
    what: &str,
    holds: fn(&FeedRecord) -> bool,
) {
    trial.until(what, |_| {
        feed.poll(&mut |event| record.take(event)).expect("the feed stays up");
        holds(record).then_some(())
    });
    assert_eq!(record.bad_frames, Vec::<String>::new());
}

#[test]
fn the_feed_gets_quotes_trades_and_a_valid_book() {
    let mut trial = Trial::open();
    let instrument = FeedInstrument {
        name: "BTCUSDT".to_owned(),
        symbol: SYMBOL,
        price_decimals: PRICE_DECIMALS,
        quantity_decimals: QUANTITY_DECIMALS,
        code: 0,
    };
    let subscription = Subscription { instruments: vec![instrument], quotes: true, trades: true, books: true };
    let mut feed = BinanceFeed::new(BinanceFeedConfig {
        url: trial.base("ws"),
        rest_url: trial.base("http"),
        ..BinanceFeedConfig::spot(subscription)
    })
    .expect("a feed");
    feed.connect();
    let mut record = FeedRecord::default();
    until(&mut trial, &mut feed, &mut record, "connection", |record| record.is_up);
    until(&mut trial, &mut feed, &mut record, "snapshot", |record| record.sequence.is_some());
    let levels = [
        ((Side::Buy.code(), Price(6_000_000)), Quantity(200_000)),
        ((Side::Sell.code(), Price(6_000_100)), Quantity(200_000)),
    ];
    assert_eq!(record.book, BTreeMap::from(levels));

    let api = trial.connect(API);
    trial.result(api, "order.place", Trader::Alice.signed(limit("BUY", "59990.5", "0.25")));
    trial.quote("60010", "60011.5");
    trial.result(api, "order.place", Trader::Alice.signed(limit("BUY", "60011.5", "0.5")));
    until(&mut trial, &mut feed, &mut record, "trade", |record| !record.trades.is_empty());
    let trade = record.trades[0];
    assert_eq!((trade.symbol, trade.price, trade.quantity), (SYMBOL, Price(6_001_150), Quantity(50_000)));
    until(&mut trial, &mut feed, &mut record, "quote", |record| {
        record.quote.is_some_and(|quote| quote.ask_quantity == Quantity(150_000))
    });
    let quote = record.quote.expect("a quote");
    assert_eq!((quote.symbol, quote.bid, quote.ask), (SYMBOL, Price(6_001_000), Price(6_001_150)));

    until(&mut trial, &mut feed, &mut record, "book", |record| {
        record.book.get(&(Side::Sell.code(), Price(6_001_150))) == Some(&Quantity(150_000))
    });
    let levels = [
        ((Side::Buy.code(), Price(5_999_050)), Quantity(25_000)),
        ((Side::Buy.code(), Price(6_001_000)), Quantity(200_000)),
        ((Side::Sell.code(), Price(6_001_150)), Quantity(150_000)),
    ];
    assert_eq!(record.book, BTreeMap::from(levels));
    assert_eq!(trial.result(api, "depth", json!({"symbol": "BTCUSDT"}))["lastUpdateId"].as_u64(), record.sequence);
}
