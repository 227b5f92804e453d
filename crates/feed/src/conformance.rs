//! The suite that checks a feed against the contract: an adapter's test implements [`FeedHarness`] for an exchange on
//! loopback that speaks its protocol, and calls [`check`].
//!
//! Rules that hold at every call are checked in each case: no call waits, a connection is up once and before its
//! messages, a frame precedes its messages, a loss is reported once, and no event comes without a connection.

mod feed_under_test;
mod harness;

use std::ops::Range;

use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

use crate::{BookUpdate, LevelChange, MarketEvent, Subscription};
use feed_under_test::FeedUnderTest;

pub use harness::{ExchangeMessage, FeedHarness};

/// A promise, tested against a new exchange; panics with a sentence if it is broken.
pub type FeedCase = fn(&mut dyn FeedHarness);

/// All promises, with their names.
pub const CASES: &[(&str, FeedCase)] = &[
    ("nothing happens before the first connect", nothing_happens_before_connect),
    ("a feed is up once its subscriptions are acknowledged", up_follows_acknowledgement),
    ("messages arrive once, equal and in order", messages_arrive),
    ("a new parser makes the same messages from the frames", frames_give_the_same_messages),
    ("a bad frame is reported, and the next message arrives", bad_frame_is_reported),
    ("half a message is none", half_a_message_is_none),
    ("a loss is reported once, and a connect follows it", loss_is_reported_once),
    ("a refused connect is a loss", refused_connect_is_a_loss),
    ("a connect during a connect replaces it", connect_replaces_connect),
    ("a connect ends the earlier connection", connect_ends_connection),
    ("no call waits for a silent exchange", no_call_waits),
    ("a resynchronisation brings a snapshot", resynchronize_brings_snapshot),
    ("heartbeats keep a quiet connection up", heartbeats_keep_connection),
    ("silence ends a connection", silence_ends_connection),
    ("silence ends a connect", silence_ends_connect),
    ("maintenance is announced", maintenance_is_announced),
];

/// Runs all cases, each against a new exchange.
pub fn check<H: FeedHarness>(mut harness: impl FnMut() -> H) {
    for (name, case) in CASES {
        println!("{name}");
        case(&mut harness());
    }
}

fn nothing_happens_before_connect(harness: &mut dyn FeedHarness) {
    let symbol = symbols(harness)[0];
    let mut test = FeedUnderTest::new(harness);
    test.resynchronize(symbol);
    test.poll_idle();
    assert_eq!((test.losses, test.harness.acknowledged()), (0, 0), "losses and subscriptions without a connect");
}

fn up_follows_acknowledgement(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::new(harness);
    test.harness.set_silent(true);
    test.connect();
    test.poll_idle();
    assert!(!test.events.is_up, "up without an acknowledgement");
    test.harness.set_silent(false);
    test.wait_until("the feed is up", |test| test.events.is_up);
    assert_eq!(test.harness.acknowledged(), 1, "acknowledged connections");
    test.poll_idle();
}

fn messages_arrive(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::up(harness);
    let sent = send_samples(&mut test, 0..300);
    test.wait_for_messages(&sent);
    test.poll_idle();
    test.wait_for_messages(&sent);
}

fn frames_give_the_same_messages(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::up(harness);
    let mut sent = send_samples(&mut test, 0..20);
    test.harness.send_garbage();
    sent.extend(send_samples(&mut test, 20..40));
    test.wait_for_messages(&sent);
    let mut parser = test.harness.parser();
    assert_eq!(test.events.parse_frames(&mut *parser), test.events.messages, "left: of the frames, right: reported");
}

fn bad_frame_is_reported(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::up(harness);
    let mut sent = Vec::new();
    for index in 0..3 {
        test.harness.send_garbage();
        sent.extend(send_samples(&mut test, index..index + 1));
        test.wait_for_messages(&sent);
        assert_eq!(test.events.bad_frames, sent.len(), "reported bad frames");
    }
    assert_eq!(test.losses, 0, "a bad frame ends no connection");
}

fn half_a_message_is_none(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::up(harness);
    let messages = samples(&test.harness.subscription(), 0..3);
    test.harness.send_half(&messages[0]);
    test.poll_idle();
    test.wait_for_messages(&[]);
    test.harness.send_rest();
    test.wait_for_messages(&messages[..1]);
    // A half that is never completed does not reach into the next connection.
    test.harness.send_half(&messages[1]);
    test.poll_idle();
    test.harness.cut();
    test.wait_for_loss();
    test.connect_until_up();
    test.harness.send(&messages[2]);
    test.wait_for_messages(&[messages[0].clone(), messages[2].clone()]);
    assert_eq!(test.events.bad_frames, 0, "half a message is no bad frame");
}

fn loss_is_reported_once(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::new(harness);
    let mut sent = Vec::new();
    for round in 0..3 {
        test.connect_until_up();
        sent.extend(send_samples(&mut test, sent.len() as u64..sent.len() as u64 + 10));
        test.wait_for_messages(&sent);
        test.harness.cut();
        test.wait_for_loss();
        test.poll_idle();
        assert_eq!((test.losses, test.harness.acknowledged()), (round + 1, round + 1), "losses and connects");
    }
}

fn refused_connect_is_a_loss(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::new(harness);
    test.harness.refuse_connects();
    for round in 1..3 {
        test.connect();
        test.wait_for_loss();
        test.poll_idle();
        assert_eq!(test.losses, round, "reported once");
    }
}

fn connect_replaces_connect(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::new(harness);
    test.harness.set_silent(true);
    test.connect();
    test.poll_idle();
    test.connect();
    test.harness.set_silent(false);
    test.wait_until("the feed is up", |test| test.events.is_up);
    let sent = send_samples(&mut test, 0..10);
    test.wait_for_messages(&sent);
    assert_eq!(test.losses, 0, "a replaced connect is no loss");
}

fn connect_ends_connection(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::up(harness);
    let mut sent = send_samples(&mut test, 0..10);
    test.wait_for_messages(&sent);
    test.connect_until_up();
    sent.extend(send_samples(&mut test, 10..20));
    test.wait_for_messages(&sent);
    assert_eq!(test.losses, 0, "a replaced connection is no loss");
}

fn no_call_waits(harness: &mut dyn FeedHarness) {
    let symbol = symbols(harness)[0];
    let mut test = FeedUnderTest::new(harness);
    test.harness.set_silent(true);
    for _ in 0..3 {
        test.connect();
        test.resynchronize(symbol);
        test.poll_idle();
    }
    test.harness.set_silent(false);
    test.connect_until_up();
    test.harness.set_silent(true);
    for _ in 0..10 {
        test.resynchronize(symbol);
        test.poll_idle();
    }
}

fn resynchronize_brings_snapshot(harness: &mut dyn FeedHarness) {
    let Subscription { books: true, instruments, .. } = harness.subscription() else { return };
    let mut test = FeedUnderTest::new(harness);
    for instrument in &instruments {
        test.harness.set_snapshot(&snapshot(instrument.symbol, 500));
    }
    test.connect_until_up();
    for instrument in &instruments {
        test.wait_for_snapshot(&snapshot(instrument.symbol, 500));
    }
    for instrument in &instruments {
        let newer = snapshot(instrument.symbol, 900);
        test.harness.set_snapshot(&newer);
        test.resynchronize(instrument.symbol);
        test.wait_for_snapshot(&newer);
    }
    assert_eq!(test.losses, 0, "a resynchronisation ends no connection");
}

fn heartbeats_keep_connection(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::impatient(harness);
    test.connect_until_up();
    test.wait_until("heartbeats have arrived", |test| test.harness.heartbeats() >= 3);
    let sent = send_samples(&mut test, 0..10);
    test.wait_for_messages(&sent);
    assert_eq!(test.losses, 0, "the exchange has answered");
}

fn silence_ends_connection(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::impatient(harness);
    test.connect_until_up();
    test.harness.set_silent(true);
    test.wait_for_loss();
    test.harness.set_silent(false);
    test.connect_until_up();
    let sent = send_samples(&mut test, 0..10);
    test.wait_for_messages(&sent);
}

fn silence_ends_connect(harness: &mut dyn FeedHarness) {
    let mut test = FeedUnderTest::impatient(harness);
    test.harness.set_silent(true);
    test.connect();
    test.wait_for_loss();
    assert!(test.events.messages.is_empty(), "messages of a silent exchange");
}

fn maintenance_is_announced(harness: &mut dyn FeedHarness) {
    if !harness.announces_maintenance() {
        return;
    }
    let mut test = FeedUnderTest::up(harness);
    let mut sent = send_samples(&mut test, 0..1);
    test.harness.send(&ExchangeMessage::Maintenance);
    sent.push(ExchangeMessage::Maintenance);
    sent.extend(send_samples(&mut test, 1..2));
    test.wait_for_messages(&sent);
}

/// Sends sample messages, and polls between them so that no buffer fills.
fn send_samples(test: &mut FeedUnderTest<'_>, indexes: Range<u64>) -> Vec<ExchangeMessage> {
    let messages = samples(&test.harness.subscription(), indexes);
    for message in &messages {
        test.harness.send(message);
        test.poll();
    }
    messages
}

/// Maker of a message of an instrument with this number.
type MessageMaker = fn(SymbolId, u64) -> ExchangeMessage;

/// Returns different messages, of all subscribed kinds and instruments in turn.
fn samples(subscription: &Subscription, indexes: Range<u64>) -> Vec<ExchangeMessage> {
    let Subscription { instruments, quotes, trades, books } = subscription;
    let all: [(bool, MessageMaker); 3] = [(*quotes, quote), (*trades, trade), (*books, update)];
    let kinds: Vec<_> = all.into_iter().filter(|(is_subscribed, _)| *is_subscribed).map(|(_, kind)| kind).collect();
    let sample = |index: u64| {
        let symbol = instruments[index as usize / kinds.len() % instruments.len()].symbol;
        kinds[index as usize % kinds.len()](symbol, index)
    };
    indexes.map(sample).collect()
}

fn quote(symbol: SymbolId, index: u64) -> ExchangeMessage {
    let [bid, bid_quantity, ask, ask_quantity] = numbers(index);
    let quote = TopOfBook {
        bid: Price(bid),
        bid_quantity: Quantity(bid_quantity),
        ask: Price(ask),
        ask_quantity: Quantity(ask_quantity),
        event_ns: time(index),
        symbol,
        wire_age_ns: 0,
    };
    ExchangeMessage::Quote { sequence: 700 + index, quote }
}

fn trade(symbol: SymbolId, index: u64) -> ExchangeMessage {
    let [price, quantity, ..] = numbers(index);
    let aggressor = if index % 4 < 2 { Side::Buy } else { Side::Sell };
    ExchangeMessage::Trade(Trade {
        price: Price(price),
        quantity: Quantity(quantity),
        trade_id: 800 + index,
        event_ns: time(index),
        symbol,
        aggressor: aggressor.code(),
        reserved: [0; 3],
    })
}

/// Returns an update that changes a bid and removes an offer.
fn update(symbol: SymbolId, index: u64) -> ExchangeMessage {
    let [bid, bid_quantity, ask, _] = numbers(index);
    book(symbol, Some(1000 + index), 1002 + index, &[(Side::Buy, bid, bid_quantity), (Side::Sell, ask, 0)])
}

fn snapshot(symbol: SymbolId, sequence: u64) -> ExchangeMessage {
    let [bid, bid_quantity, ask, ask_quantity] = numbers(sequence);
    let bids = [(Side::Buy, bid, bid_quantity), (Side::Buy, bid - 1, bid_quantity)];
    book(symbol, None, sequence, &[bids[0], bids[1], (Side::Sell, ask, ask_quantity)])
}

/// Returns an update that follows a number, or a snapshot.
fn book(symbol: SymbolId, previous: Option<u64>, sequence: u64, levels: &[(Side, i64, i64)]) -> ExchangeMessage {
    let levels = levels.iter().map(|&(side, price, quantity)| LevelChange {
        side,
        price: Price(price),
        quantity: Quantity(quantity),
    });
    ExchangeMessage::of(MarketEvent::Book(BookUpdate {
        symbol,
        is_snapshot: previous.is_none(),
        may_overlap: false,
        previous: previous.unwrap_or_default(),
        sequence,
        event_ns: time(sequence),
        levels: &levels.collect::<Vec<_>>(),
    }))
}

/// Returns a bid and an offer with their quantities, in units of the instrument.
fn numbers(index: u64) -> [i64; 4] {
    let index = index as i64;
    [6_180_000 + index, 10 + index, 6_180_100 + index, 20 + index]
}

/// Returns a time of whole milliseconds, which every protocol carries.
fn time(index: u64) -> u64 {
    (1_700_000_000_000 + index) * 1_000_000
}

fn symbols(harness: &dyn FeedHarness) -> Vec<SymbolId> {
    harness.subscription().instruments.iter().map(|instrument| instrument.symbol).collect()
}
