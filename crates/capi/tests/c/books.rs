//! An order book in C, from the messages of a feed.

use tickpath_bus::{Policy, TopicConfig};
use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, Price, Quantity, Side, SymbolId};
use zerocopy::IntoBytes;

use crate::{Bus, Programs, TOPIC};

const SYMBOL: SymbolId = SymbolId(3);

// Reasons from the header, which never change.
const NO_SNAPSHOT: u32 = 1;
const GAP: u32 = 3;
const DISCONNECTED: u32 = 4;
const CROSSED: u32 = 8;

#[test]
fn c_builds_a_book_and_learns_why_it_is_not_valid() {
    let (programs, bus) = (Programs::new(), Bus::new("book"));
    let connection = bus.open();
    let mut publisher = connection.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).expect("the topic is new");
    let (buy, sell) = (Side::Buy.code(), Side::Sell.code());
    let (first, last) = (BookLevel::SNAPSHOT, BookLevel::LAST);
    let snapshot =
        [level(buy, 10, 1, first, 1), level(buy, 9, 2, 0, 1), level(sell, 12, 3, 0, 1), level(sell, 13, 4, last, 1)];
    let events: Vec<(Kind, Vec<u8>)> = [
        vec![status(FeedCondition::Connected)],
        snapshot.to_vec(),
        vec![level(buy, 11, 5, last, 2)],
        vec![(
            Kind::BookLevel,
            BookLevel { symbol: SymbolId(4), flags: last, ..BookLevel::default() }.as_bytes().to_vec(),
        )],
        vec![level(buy, 12, 1, last, 3)],
        vec![level(buy, 12, 0, 0, 4), level(sell, 12, 0, last, 4)],
        vec![status(FeedCondition::Gap)],
        snapshot.to_vec(),
        vec![status(FeedCondition::BookValid)],
        vec![status(FeedCondition::Disconnected)],
    ]
    .concat();
    for (kind, bytes) in &events {
        publisher.publish(1, kind.code(), bytes).expect("it never waits");
    }
    let output = programs.say("examples/book.c", &[&bus.url, TOPIC, "3", &events.len().to_string()]);
    let expected = [
        format!("not valid: {NO_SNAPSHOT}"),
        "best 10 12 bids 1@10 2@9 asks 3@12 4@13".to_owned(),
        "best 11 12 bids 5@11 1@10 2@9 asks 3@12 4@13".to_owned(),
        format!("not valid: {CROSSED}"),
        "best 11 13 bids 5@11 1@10 2@9 asks 4@13".to_owned(),
        format!("not valid: {GAP}"),
        format!("not valid: {GAP}"),
        "best 10 12 bids 1@10 2@9 asks 3@12 4@13".to_owned(),
        format!("not valid: {DISCONNECTED}"),
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
}

/// Returns a level of the exchange's message with this sequence number.
fn level(side: u8, price: i64, quantity: i64, flags: u8, sequence: u64) -> (Kind, Vec<u8>) {
    let (price, quantity) = (Price(price), Quantity(quantity));
    let level = BookLevel { price, quantity, sequence, symbol: SYMBOL, side, flags, ..BookLevel::default() };
    (Kind::BookLevel, level.as_bytes().to_vec())
}

fn status(condition: FeedCondition) -> (Kind, Vec<u8>) {
    let (symbol, condition) = (FeedStatus::ALL_SYMBOLS, condition.code());
    let status = FeedStatus { symbol, condition, ..FeedStatus::default() };
    (Kind::FeedStatus, status.as_bytes().to_vec())
}
