//! Events of hftbacktest.

use tickpath_market::{BookLevel, Side};
use tickpath_recordings::MarketMessage;

use crate::files::{read, zip};

const EXCHANGE: u64 = 1 << 31;
const LOCAL: u64 = 1 << 30;
const BUY: u64 = 1 << 29;
const SELL: u64 = 1 << 28;
const BOTH: u64 = EXCHANGE | LOCAL;
const DEPTH: u64 = 1;
const TRADE: u64 = 2;
const CLEAR: u64 = 3;
const SNAPSHOT: u64 = 4;
const BEST: u64 = 5;

/// Flags, exchange time, receive time, price and quantity of an event.
type Event = (u64, i64, i64, f64, f64);

/// Returns an array as numpy writes it.
fn array(events: &[Event]) -> Vec<u8> {
    array_of(events.len(), events)
}

/// Returns an array whose header counts `length` events.
fn array_of(length: usize, events: &[Event]) -> Vec<u8> {
    let text = format!(
        "{{'descr': [('ev', '<u8'), ('exch_ts', '<i8'), ('local_ts', '<i8'), ('px', '<f8'), ('qty', '<f8'), \
         ('order_id', '<u8'), ('ival', '<i8'), ('fval', '<f8')], 'fortran_order': False, 'shape': ({length},), }}"
    );
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{text:<width$}\n", width = 246 - 1);
    bytes.extend_from_slice(&(padded.len() as u16).to_le_bytes());
    bytes.extend_from_slice(padded.as_bytes());
    for (ev, exch_ts, local_ts, px, qty) in events {
        bytes.extend_from_slice(&ev.to_le_bytes());
        bytes.extend_from_slice(&exch_ts.to_le_bytes());
        bytes.extend_from_slice(&local_ts.to_le_bytes());
        bytes.extend_from_slice(&px.to_le_bytes());
        bytes.extend_from_slice(&qty.to_le_bytes());
        bytes.extend_from_slice(&[0; 24]);
    }
    bytes
}

#[test]
fn events_become_messages() {
    let events = [
        (BOTH | TRADE | BUY, 10, 20, 61_800.1, 0.25),
        (EXCHANGE | TRADE | BUY, 11, 21, 1.0, 1.0),
        (BOTH | TRADE, 11, 21, 0.1, 3.0),
        (BOTH | BEST | BUY, 12, 22, 99.5, 1.0),
        (BOTH | BEST | SELL, 12, 22, 99.75, 2.0),
        (BOTH | BEST | SELL, 13, 23, 99.8, 2.0),
        (BOTH | 10, 13, 23, 99.8, 2.0),
        (BOTH | TRADE | SELL, 14, 24, f64::NAN, 2.0),
        (BOTH | TRADE | SELL, 14, 24, 0.000_000_001_5, 2.0),
        (BOTH | TRADE | SELL, 14, 24, 1.000_000_014, 2.0),
    ];
    for (name, bytes) in [("btc_1.npz", zip(&[("data.npy", array(&events).as_slice())])), ("btc_1.npy", array(&events))]
    {
        let read = read(name, &bytes).unwrap();
        assert_eq!(read.times(), [20, 21, 22, 23, 24]);
        let texts: Vec<(String, String, u8)> = read
            .messages
            .iter()
            .map(|(_, name, message)| {
                assert_eq!(name, "BTC");
                match message {
                    MarketMessage::Trade(trade) => {
                        (trade.price.to_string(), trade.quantity.to_string(), trade.aggressor)
                    }
                    MarketMessage::Top(top) => (top.bid.to_string(), top.ask.to_string(), 0),
                    MarketMessage::Level(level) => panic!("{level:?}"),
                }
            })
            .collect();
        let expected = [
            ("61800.1", "0.25", Side::Buy.code()),
            ("0.1", "3", 0),
            ("99.5", "99.75", 0),
            ("99.5", "99.8", 0),
            ("1.00000001", "2", Side::Sell.code()),
        ];
        let expected: Vec<_> = expected.map(|(a, b, side)| (a.to_owned(), b.to_owned(), side)).to_vec();
        assert_eq!(texts, expected);
        let counts = &read.counts;
        assert_eq!((counts.rows, counts.bad, counts.inexact), (10, 2, 2), "{counts}");
        assert_eq!(counts.skipped.values().sum::<u64>(), 2, "{counts}");
    }
}

#[test]
fn a_snapshot_replaces_the_book_however_it_is_cleared() {
    let bid = |time, kind, price| (BOTH | kind | BUY, time, time, price, 1.0);
    let ask = |time, kind, price| (BOTH | kind | SELL, time, time, price, 1.0);
    let clear = |time, side| (BOTH | CLEAR | side, time, time, 0.0, 0.0);
    let (first, last) = (BookLevel::SNAPSHOT, BookLevel::LAST);
    check(&[clear(1, 0), bid(1, SNAPSHOT, 9.0), ask(1, SNAPSHOT, 10.0)], &[(1, 9, first), (1, 10, last)], 0);
    check(
        &[clear(1, BUY), bid(1, SNAPSHOT, 9.0), bid(1, SNAPSHOT, 8.0), clear(1, SELL), ask(1, SNAPSHOT, 10.0)],
        &[(1, 9, first), (1, 8, 0), (1, 10, last)],
        0,
    );
    // A file may begin with a snapshot that nothing clears, and an update may have the times of the snapshot.
    check(
        &[bid(1, SNAPSHOT, 9.0), bid(1, DEPTH, 8.0), ask(2, DEPTH, 10.0), ask(2, DEPTH, 11.0)],
        &[(1, 9, first | last), (1, 8, last), (2, 10, 0), (2, 11, last)],
        0,
    );
    // A clear event alone empties the book, unless it clears one side.
    check(&[clear(1, 0), bid(2, DEPTH, 9.0)], &[(1, 0, first | last), (2, 9, last)], 0);
    check(&[clear(1, BUY), clear(1, SELL)], &[(1, 0, first | last)], 0);
    check(&[bid(1, DEPTH, 9.0), clear(2, BUY), bid(3, DEPTH, 9.0)], &[(1, 9, last), (3, 9, last)], 1);
}

/// Compares time, whole price and flags of each level, and the number of events that are no message.
fn check(events: &[Event], expected: &[(u64, i64, u8)], skipped: u64) {
    let read = read("btc.npz", &zip(&[("data.npy", array(events).as_slice())])).unwrap();
    let levels: Vec<(u64, i64, u8)> = read
        .messages
        .iter()
        .map(|(utc_ns, _, message)| match message {
            MarketMessage::Level(level) => (*utc_ns, level.price.0 / 100_000_000, level.flags),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(levels, expected, "{events:?}");
    assert_eq!(read.counts.skipped.values().sum::<u64>(), skipped, "{events:?}");
}

#[test]
fn an_array_that_ends_early_leaves_the_book_incomplete() {
    let level = (BOTH | DEPTH | BUY, 1, 1, 9.0, 1.0);
    let read = read("btc.npy", &array_of(3, &[level, level])).unwrap();
    assert!(read.counts.truncated);
    let flags: Vec<u8> = read
        .plain()
        .iter()
        .map(|message| match message {
            MarketMessage::Level(level) => level.flags,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(flags, [0, 0]);
}

#[test]
fn other_arrays_are_refused() {
    let header = b"\x93NUMPY\x01\x00\x47\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3, 6), }           \n";
    let error = crate::files::read("old.npz", &zip(&[("data.npy", &header[..])])).unwrap_err().to_string();
    assert!(error.contains("no list of events") && error.contains("'exch_ts'"), "{error}");
    let two = zip(&[("a.npy", &header[..]), ("b.npy", &header[..])]);
    let error = crate::files::read("two.npz", &two).unwrap_err().to_string();
    assert!(error.contains("holds 2 files"), "{error}");
}
