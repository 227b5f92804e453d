//! Our own CSV and JSON lines: the same ticks as by `Recording`, which reads a whole file.

use proptest::prelude::*;
use tickpath_market::replay::{MarketTick, Recording};
use tickpath_recordings::{MarketFileError, MarketMessage};

use crate::files::{gzip, read};

const HEADER: &str = "utc_ns,symbol,bid,bid_quantity,ask,ask_quantity,price,quantity,aggressor,trade_id,event_ns\n";

/// Times, instruments and messages of a recording, as they are imported.
fn ticks(recording: &Recording) -> Vec<(u64, String, MarketMessage)> {
    let named = recording.events.iter().map(|tick| {
        let message = match tick.event {
            MarketTick::Top(top) => MarketMessage::Top(top),
            MarketTick::Trade(trade) => MarketMessage::Trade(trade),
        };
        (tick.at_ns, recording.symbols[message.symbol().0 as usize].as_str().to_owned(), message)
    });
    named.collect()
}

fn cell(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(texts)
}

fn row() -> impl Strategy<Value = String> {
    let time = cell(&["1704067200000000001", "1704067200000000009", "5", "", "x", "18446744073709551616"]);
    let number =
        || cell(&["61800.1", "7", " 8.25 ", "\"9\"", "0", "-1", "0.000000001", "1.100000000", "", "", "92233720369"]);
    let prices = (number(), number(), number(), number(), number(), number());
    let rest = (cell(&["", "buy", "sell", "up"]), cell(&["", "7", "x"]), cell(&["", "3"]));
    (time, cell(&["BTCUSDT", "ETHUSDT", "", "A B"]), prices, rest).prop_map(
        |(time, symbol, (a, b, c, d, e, f), (taker, id, event))| {
            format!("{time},{symbol},{a},{b},{c},{d},{e},{f},{taker},{id},{event}\n")
        },
    )
}

proptest! {
    #[test]
    fn a_table_is_read_as_a_recording_is(rows in proptest::collection::vec(row(), 1..40)) {
        let table = HEADER.to_owned() + &rows.concat();
        match (Recording::read(table.as_bytes()), read("table.csv", table.as_bytes())) {
            (Ok(expected), Ok(read)) => {
                prop_assert_eq!(&read.messages, &ticks(&expected));
                prop_assert_eq!(read.counts.rows, expected.counts.lines);
                prop_assert_eq!(read.counts.bad, expected.counts.bad);
                prop_assert_eq!(read.counts.out_of_order, expected.counts.out_of_order);
                let numbers = |rows: &[(u64, String)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
                prop_assert_eq!(numbers(&read.counts.bad_rows), numbers(&expected.counts.bad_lines));
            }
            (Err(_), Err(MarketFileError::NoMessage { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn json_lines_are_read_as_a_recording_is() {
    for (seed, ticks_made) in [(1, 1), (2, 5_000)] {
        let recording = Recording::synthetic(seed, ticks_made);
        let mut text = b"1 nothing\n".to_vec();
        recording.write(&mut text).unwrap();
        text.extend_from_slice(b"9 {\"e\":\"depthUpdate\"}\n\n");
        // The first line shows the form of a file.
        let lines = &text[b"1 nothing\n".len()..];
        for bytes in [lines.to_vec(), gzip(lines)] {
            let read = read("recording.txt", &bytes).unwrap();
            assert_eq!(read.messages, ticks(&recording));
            assert_eq!((read.counts.skipped.get("depth messages"), read.counts.bad), (Some(&1), 1));
        }
        let forced = crate::files::read_as("recording.txt", &text, "json-lines".parse().ok()).unwrap();
        assert_eq!((forced.messages.len(), forced.counts.bad), (ticks_made, 2));
    }
}

#[test]
fn long_lines_and_long_files_are_read() {
    let row = "1704067200000000001,BTCUSDT,,,,,61800.1,2,buy,7,\n";
    let overlong = "x".repeat((16 << 20) + 1);
    let padded = format!("1704067200000000001,BTCUSDT,,,,,61800.1,2,buy,7,,{}\n", "y".repeat(1 << 20));
    let table = format!("\u{feff}{HEADER}{row}{overlong}\n{padded}\n{}", row.repeat(20_000));
    let read = read("table.csv", table.as_bytes()).unwrap();
    assert_eq!((read.counts.rows, read.counts.trades, read.counts.bad), (20_005, 20_002, 1));
    assert_eq!(read.counts.bad_rows[0], (3, "longer than 16 MiB".to_owned()));
    assert_eq!(read.counts.skipped.get("empty lines"), Some(&1));
}
