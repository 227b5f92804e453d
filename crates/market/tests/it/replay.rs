//! Recordings are read line by line, no line is lost without a count, and a replay keeps its times.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tickpath_market::replay::{
    MarketTick, RecordedTick, Recording, RecordingCounts, RecordingError, ReplaySpeed, ReplaySpeedError,
};
use tickpath_market::{Kind, Price, Side, TopOfBook};

const TICKER: &str = concat!(
    r#"{"stream":"x@bookTicker","data":{"e":"bookTicker","u":1,"s":"BTCUSDT","b":"61800.20","B":"2.507","#,
    r#""a":"61800.30","A":"0","T":1700000000001,"E":1}}"#
);
const TRADE: &str = concat!(
    r#"{"stream":"x@trade","data":{"e":"trade","E":1,"T":1700000000002,"s":"ETHUSDT","t":77,"p":"2600.5","#,
    r#""q":"0.006","X":"MARKET","m":true}}"#
);
const DEPTH: &str = r#"{"stream":"x@depth","data":{"e":"depthUpdate","E":1,"s":"BTCUSDT","b":[["1.0","2"]],"a":[]}}"#;
const SNAPSHOT: &str = r#"{"lastUpdateId":5,"E":1,"T":1,"bids":[["1.0","2"]],"asks":[]}"#;
const OTHER: &str = r#"{"stream":"x@aggTrade","data":{"e":"aggTrade","p":"1.0"}}"#;

#[test]
fn a_tick_holds_the_values_of_its_message() {
    let text = format!("1000 {TICKER}\n2000 {TRADE}\r\n3000 {TICKER}");
    let recording = Recording::read(text.as_bytes()).unwrap();
    let names: Vec<_> = recording.symbols.iter().map(|symbol| symbol.as_str()).collect();
    assert_eq!(names, ["BTCUSDT", "ETHUSDT"]);
    assert_eq!(recording.events.iter().map(|recorded| recorded.at_ns).collect::<Vec<_>>(), [1000, 2000, 3000]);

    let MarketTick::Top(top) = recording.events[0].event else { panic!("the first line is a top of book") };
    assert_eq!([top.bid.to_string(), top.ask.to_string()], ["61800.2", "61800.3"]);
    assert_eq!([top.bid_quantity.to_string(), top.ask_quantity.to_string()], ["2.507", "0"]);
    assert_eq!((top.event_ns, top.symbol.0), (1_700_000_000_001_000_000, 0));

    let MarketTick::Trade(trade) = recording.events[1].event else { panic!("the second line is a trade") };
    assert_eq!((trade.price.to_string(), trade.quantity.to_string()), ("2600.5".to_owned(), "0.006".to_owned()));
    assert_eq!((trade.trade_id, trade.event_ns, trade.symbol.0), (77, 1_700_000_000_002_000_000, 1));
    assert_eq!(Side::from_code(trade.aggressor), Some(Side::Sell), "the buyer is the maker, so the seller took");

    let kinds: Vec<_> = recording.events.iter().map(|recorded| recorded.event.kind()).collect();
    assert_eq!(kinds, [Kind::TopOfBook, Kind::Trade, Kind::TopOfBook]);
    assert_eq!(recording.events.iter().map(|recorded| recorded.event.as_bytes().len()).sum::<usize>(), 48 + 40 + 48);
}

#[test]
fn every_line_is_counted() {
    check(&format!("1 {TICKER}\n2 {DEPTH}\n3 {SNAPSHOT}\n4 {OTHER}\n5 {TRADE}\n"), &[], |tally| {
        (tally.skipped_depth, tally.skipped_other, tally.trades) = (2, 1, 1);
    });
    check(&format!("5 {TICKER}\n3 {TRADE}\n4 {TRADE}\n9 {TRADE}\n"), &[], |tally| {
        (tally.trades, tally.out_of_order) = (3, 2);
    });
    let bare = r#"{"e":"trade","T":1,"s":"BTC\u0055SDT","t":1,"p":"1","q":"1","m":false}"#;
    check(&format!("5 {TICKER}\n6 {bare}\n"), &[], |tally| tally.trades = 1);
    let bad_lines: String = (0..30).map(|_| "nothing\n").collect();
    check(&format!("1 {TICKER}\n{bad_lines}"), &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11], |tally| tally.bad = 30);
}

#[test]
fn a_bad_line_is_listed_with_its_number() {
    for bad in [
        "",
        "1",
        "x {}",
        "-1 {}",
        "1 ",
        "1 {}",
        "1 []",
        "1 7",
        "1 {\"stream\":\"x\",\"data\":{}}",
        "1 {\"stream\":\"x\",\"data\":7}",
        &format!("18446744073709551616 {TICKER}"),
        &format!("1 {TICKER}{TICKER}"),
        &format!("1 {}", &TICKER[..100]),
        &format!("1 {}", TICKER.replace("\"s\":\"BTCUSDT\",", "")),
        &format!("1 {}", TICKER.replace("BTCUSDT", "A NAME THAT IS TOO LONG")),
        &format!("1 {}", TICKER.replace("61800.20", "1e5")),
        &format!("1 {}", TICKER.replace("61800.20", "0.0000000é")),
        &format!("1 {}", TICKER.replace("61800.20", "0.00")),
        &format!("1 {}", TICKER.replace("61800.20", "-1")),
        &format!("1 {}", TICKER.replace("2.507", "-0.001")),
        &format!("1 {}", TICKER.replace("1700000000001", "18446744073709551")),
        &format!("1 {}", TRADE.replace("true", "1")),
    ] {
        check(&format!("1 {TICKER}\n{bad}\n2 {TRADE}\n"), &[2], |tally| (tally.trades, tally.bad) = (1, 1));
    }
}

#[test]
fn binary_and_overlong_lines_are_bad_lines() {
    let tick = format!("1 {TICKER}\n").into_bytes();
    for middle in [b"2 \xff\xfe".to_vec(), vec![b'1'; (16 << 20) + 1]] {
        let input = [tick.clone(), middle, b"\n".to_vec(), tick.clone()].concat();
        let tally = Recording::read(input.as_slice()).unwrap().counts;
        assert_eq!((tally.lines, tally.tops, tally.bad, tally.bad_lines[0].0), (3, 2, 1, 2), "{tally}");
    }
}

#[test]
fn an_input_without_a_tick_is_an_error() {
    for (text, lines, skipped, bad) in
        [(String::new(), 0, 0, 0), (format!("1 {DEPTH}\n2 {SNAPSHOT}\nx\n"), 3, 2, 1), ("\u{1f}".to_owned(), 1, 0, 1)]
    {
        match Recording::read(text.as_bytes()) {
            Err(RecordingError::NoTick { tally, .. }) => {
                assert_eq!((tally.lines, tally.skipped_depth, tally.bad), (lines, skipped, bad));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_error_of_a_missing_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing.gz");
    let error = Recording::open(&path).unwrap_err();
    assert!(matches!(error, RecordingError::Open { .. }), "{error:?}");
    assert!(error.to_string().contains("missing.gz"), "{error}");
    assert!(Recording::open(folder.path()).is_err());
}

#[test]
fn gzip_and_plain_files_hold_the_same_ticks() {
    let recording = Recording::synthetic(3, 2_000);
    let plain = written(&recording);
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = plain.split_at(plain.len() / 2);
    for (name, bytes) in [
        ("plain", plain.clone()),
        ("whole.gz", compressed(&plain)),
        ("parts.gz", [compressed(first), compressed(second)].concat()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Recording::open(&path).unwrap(), recording, "{name}");
    }
}

#[test]
fn a_truncated_gzip_keeps_the_ticks_before_its_end() {
    let recording = Recording::synthetic(4, 2_000);
    let whole = compressed(&written(&recording));
    let mut kept = 0;
    for cut in (2..whole.len()).step_by(whole.len() / 40).chain([whole.len() - 9, whole.len() - 8, whole.len() - 1]) {
        match Recording::read(&whole[..cut]) {
            Ok(read) => {
                assert!(read.counts.truncated, "cut at {cut}");
                assert!(recording.events.starts_with(&read.events), "cut at {cut}");
                assert!(read.counts.bad <= 1, "cut at {cut}: {}", read.counts);
                kept = kept.max(read.events.len());
            }
            Err(RecordingError::NoTick { tally, .. }) => assert!(tally.truncated, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
    assert_eq!(kept, recording.events.len(), "only the checksum was missing");
}

#[test]
fn a_broken_gzip_is_an_error() {
    let mut bytes = compressed(&written(&Recording::synthetic(5, 500)));
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    let error = Recording::read(bytes.as_slice()).unwrap_err();
    assert!(matches!(error, RecordingError::Read { line: 501, .. }), "{error:?}");
}

#[test]
fn a_written_recording_reads_the_same() {
    for (seed, ticks) in [(0, 1), (1, 2), (2, 1_000), (u64::MAX, 5_000)] {
        let recording = Recording::synthetic(seed, ticks);
        assert_eq!(recording.events.len(), ticks, "seed {seed}");
        assert_eq!(Recording::synthetic(seed, ticks), recording, "seed {seed}");
        assert_eq!(Recording::read(Cursor::new(written(&recording))).unwrap(), recording, "seed {seed}");
    }
    assert_ne!(Recording::synthetic(1, 100).events, Recording::synthetic(2, 100).events);
    assert_eq!(Recording::synthetic(1, 0), Recording::default());
    assert!(Recording { symbols: Vec::new(), ..Recording::synthetic(1, 1) }.write(std::io::sink()).is_err());
}

#[test]
fn a_synthetic_market_is_plausible() {
    let recording = Recording::synthetic(6, 20_000);
    let mut top = TopOfBook::default();
    for RecordedTick { event, .. } in &recording.events {
        match event {
            MarketTick::Top(next) => {
                assert!(Price::ZERO < next.bid && next.bid < next.ask, "{next:?}");
                top = *next;
            }
            MarketTick::Trade(trade) => assert!([top.bid, top.ask].contains(&trade.price), "{trade:?} at {top:?}"),
        }
    }
    let gaps_ns: Vec<_> = recording.events.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
    let in_bursts = gaps_ns.iter().filter(|&&gap_ns| gap_ns < 4_000).count();
    assert!(in_bursts * 2 > gaps_ns.len() && in_bursts * 4 < gaps_ns.len() * 3, "{in_bursts} of {}", gaps_ns.len());
}

#[test]
fn a_schedule_keeps_the_recorded_times() {
    let recording = Recording::synthetic(7, 3_000);
    let first_ns = recording.events[0].at_ns;
    let own: Vec<_> = recording.events.iter().map(|recorded| (recorded.at_ns - first_ns, &recorded.event)).collect();
    let plain = recording.schedule(ReplaySpeed::Recorded, false).unwrap();
    assert_eq!(plain.size_hint(), (3_000, Some(3_000)));
    assert_eq!(plain.collect::<Vec<_>>(), own);
    for (speed, slower, faster) in [(1.0, 1_u64, 1_u64), (2.0, 1, 2), (0.5, 2, 1), (3.0, 1, 3), (1_024.0, 1, 1_024)] {
        let scaled = recording.schedule(ReplaySpeed::Scaled(speed), false).unwrap();
        for ((offset_ns, event), (own_ns, own_event)) in scaled.zip(&own) {
            assert_eq!((offset_ns, event), (own_ns * slower / faster, *own_event), "speed {speed}");
        }
    }
}

#[test]
fn a_fixed_rate_does_not_drift() {
    let recording = Recording::synthetic(8, 1_000);
    for per_second in [1_u64, 3, 7, 1_000, 50_000, 999_983, 1_000_000] {
        let schedule = recording.schedule(ReplaySpeed::Fixed { per_second: per_second as f64 }, true).unwrap();
        for (number, (offset_ns, _)) in (0..1_000_000_u64).zip(schedule) {
            assert_eq!(offset_ns, number * 1_000_000_000 / per_second, "tick {number} at {per_second} a second");
        }
    }
}

#[test]
fn a_loop_has_no_seam() {
    let top = MarketTick::Top(TopOfBook::default());
    let events = [100, 110, 140, 160].map(|at_ns| RecordedTick { at_ns, event: top }).to_vec();
    let recording = Recording { events, ..Recording::default() };
    let offsets_ns = |pace| -> Vec<u64> {
        recording.schedule(pace, true).unwrap().take(10).map(|(offset_ns, _)| offset_ns).collect()
    };
    assert_eq!(offsets_ns(ReplaySpeed::Recorded), [0, 10, 40, 60, 80, 90, 120, 140, 160, 170]);
    assert_eq!(offsets_ns(ReplaySpeed::Scaled(2.0)), [0, 5, 20, 30, 40, 45, 60, 70, 80, 85]);
    assert_eq!(offsets_ns(ReplaySpeed::Fixed { per_second: 1e9 }), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);

    let market = Recording::synthetic(9, 500);
    for pace in [
        ReplaySpeed::Recorded,
        ReplaySpeed::Scaled(3.7),
        ReplaySpeed::Scaled(1e-300),
        ReplaySpeed::Fixed { per_second: 0.1 },
    ] {
        let schedule = market.schedule(pace, true).unwrap();
        let offsets_ns: Vec<_> = schedule.take(2_000).map(|(offset_ns, _)| offset_ns).collect();
        assert_eq!((offsets_ns[0], offsets_ns.len()), (0, 2_000), "{pace:?}");
        assert!(offsets_ns.is_sorted(), "{pace:?}");
    }
}

#[test]
fn a_pace_that_cannot_be_kept_is_refused() {
    let recording = Recording::synthetic(10, 10);
    for bad in [0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        for pace in [ReplaySpeed::Scaled(bad), ReplaySpeed::Fixed { per_second: bad }] {
            assert!(matches!(recording.schedule(pace, false), Err(ReplaySpeedError::NotPositive(_))), "{pace:?}");
        }
    }
    let one = Recording::synthetic(10, 1);
    assert_eq!(one.schedule(ReplaySpeed::Recorded, true).err(), Some(ReplaySpeedError::NoSpan));
    assert_eq!(one.schedule(ReplaySpeed::Recorded, false).unwrap().count(), 1);
    assert_eq!(one.schedule(ReplaySpeed::Fixed { per_second: 1.0 }, true).unwrap().take(3).count(), 3);
    assert_eq!(Recording::default().schedule(ReplaySpeed::Recorded, true).unwrap().count(), 0);
}

#[test]
fn the_committed_recording_is_whole() {
    let recording = Recording::open(&in_repository("data/synthetic.txt")).unwrap();
    let expected =
        RecordingCounts { lines: 1_000, tops: 738, trades: 242, skipped_depth: 20, ..RecordingCounts::default() };
    assert_eq!(recording.counts, expected);
    assert_eq!(Recording::read(written(&recording).as_slice()).unwrap().events, recording.events);
}

#[test]
fn the_real_recording_is_whole_if_present() {
    let path = in_repository("../shared/data/btcusdt_20240808.gz");
    if !path.exists() {
        println!("skipped: {} is not here", path.display());
        return;
    }
    println!("read: {}", path.display());
    let recording = Recording::open(&path).unwrap();
    let expected = RecordingCounts {
        lines: 93_954,
        tops: 66_089,
        trades: 21_313,
        skipped_depth: 6_552,
        ..RecordingCounts::default()
    };
    assert_eq!(recording.counts, expected);
}

/// Reads a text that starts with a ticker, and compares the tally with that of a lone ticker, changed by `change`.
fn check(text: &str, bad_lines: &[u64], change: impl Fn(&mut RecordingCounts)) {
    let read = Recording::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut expected = RecordingCounts { lines: text.lines().count() as u64, tops: 1, ..RecordingCounts::default() };
    change(&mut expected);
    let named: Vec<_> = read.counts.bad_lines.iter().map(|(number, _)| *number).collect();
    assert_eq!(named, bad_lines, "{text}");
    assert_eq!(RecordingCounts { bad_lines: Vec::new(), ..read.counts.clone() }, expected, "{text}{}", read.counts);
    assert!(read.events.is_sorted_by_key(|recorded| recorded.at_ns), "{text}");
}

fn written(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    recording.write(&mut bytes).unwrap();
    bytes
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn csv_rows_become_ticks_and_mistakes_are_listed() {
    let table = "symbol, utc_ns, bid, bid_quantity, ask, ask_quantity, price, quantity, aggressor, note\n\
                 BTCUSDT, 1704067200000000001, 61800.1, 2, 61800.2, 3, , , , first\n\
                 ETHUSDT, 1704067200000000002, , , , , 2200.5, 0.25, sell,\n\
                 BTCUSDT, yesterday, 1, 1, 2, 2, , , ,\n\
                 BTCUSDT, 1704067200000000003, 1, , 2, 2, , , ,\n\
                 BTCUSDT, 1704067200000000004, , , , , 1, 1, up,\n";
    let read = Recording::read(table.as_bytes()).unwrap();
    let names: Vec<&str> = read.symbols.iter().map(|symbol| symbol.as_str()).collect();
    assert_eq!((names, read.events.len(), read.counts.bad), (vec!["BTCUSDT", "ETHUSDT"], 2, 3));
    assert_eq!([0, 1].map(|tick| read.events[tick].at_ns - 1_704_067_200_000_000_000), [1, 2]);
    let (MarketTick::Top(top), MarketTick::Trade(trade)) = (read.events[0].event, read.events[1].event) else {
        panic!("{:?}", read.events);
    };
    assert_eq!(
        (top.bid.to_string(), top.ask_quantity.to_string(), top.symbol.0),
        ("61800.1".to_owned(), "3".to_owned(), 0)
    );
    assert_eq!((trade.price.to_string(), trade.aggressor, trade.symbol.0), ("2200.5".to_owned(), 2, 1));
    let tally = read.counts.to_string();
    for word in ["line 4", "invalid digit", "'bid_quantity' is empty", "'up' is no aggressor"] {
        assert!(tally.contains(word), "{word}: {tally}");
    }
    let none = Recording::read("time,price\n1,2\n".as_bytes()).unwrap_err().to_string();
    assert!(none.contains("missing field `utc_ns`") && none.contains("CSV"), "{none}");
}

#[test]
fn csv_from_windows_is_read_and_an_open_quote_swallows_no_rows() {
    let table = "\u{feff}\"utc_ns\",\"symbol\",\"price\",\"quantity\",\"note\"\r\n\
                 1704067200000000001,\"BTCUSDT\",\"61800.1\",2,\"a \"\"good\"\" one\"\r\n\
                 1704067200000000002,BTCUSDT,61800.2,2,5\" wide\r\n\
                 1704067200000000003,BTCUSDT,61800.3,2,\"open\r\n\
                 1704067200000000004,BTCUSDT,61800.4,2,\r\n\
                 \r\n\
                 1704067200000000005,BTCUSDT,61800.5,2,closed\"\r\n\
                 1704067200000000006,BTCUSDT,none,2,\r\n\
                 1704067200000000007,BTCUSDT,61800.7,2,\"never\r\n\
                 1704067200000000008,BTCUSDT,61800.8,2,";
    for table in [table.to_owned(), table.replace('\r', "")] {
        for file in [table.clone().into_bytes(), compressed(table.as_bytes())] {
            let read = Recording::read(&*file).unwrap();
            let last: Vec<u64> = read.events.iter().map(|tick| tick.at_ns % 10).collect();
            assert_eq!((last, read.counts.bad, read.counts.lines), (vec![1, 2, 3, 4, 5, 7, 8], 1, 10));
            let tally = read.counts.to_string();
            assert!(tally.contains("line 8"), "{tally}");
        }
    }
}
