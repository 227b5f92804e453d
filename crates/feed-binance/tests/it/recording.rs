//! A real recording of the futures market, where it is present.

use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tickpath_feed::Frame;
use tickpath_feed_binance::{BinanceParser, TimeUnit};

use crate::frames::{BTCUSDT, Seen, SeenBook, instrument, parse};

/// Counts of a recording's messages, and the breaks in the chain of its updates.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    quotes: u64,
    trades: u64,
    updates: u64,
    breaks: u64,
    snapshots: u64,
    snapshot_levels: usize,
    complete_reads: u64,
}

#[test]
fn the_real_recording_is_read_in_place_if_present() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/btcusdt_20240808.gz");
    if !path.exists() {
        println!("skipped: {} is not here", path.display());
        return;
    }
    println!("read: {}", path.display());
    let expected = Counts {
        quotes: 66_089,
        trades: 21_313,
        updates: 6_551,
        breaks: 0,
        snapshots: 1,
        snapshot_levels: 2_000,
        complete_reads: 0,
    };
    assert_eq!(counts_of(&path), expected);
}

fn counts_of(path: &Path) -> Counts {
    let file = std::fs::File::open(path).expect("the recording can be read");
    let mut parser = BinanceParser::new(&[instrument("BTCUSDT", BTCUSDT, 1, 3)], TimeUnit::Millisecond);
    let (mut counts, mut last) = (Counts::default(), None);
    for line in BufReader::new(MultiGzDecoder::new(file)).lines() {
        let line = line.expect("the recording is whole");
        let (_, frame) = line.split_once(' ').expect("a line begins with its time");
        for seen in parse(&mut parser, Frame::Text(frame.as_bytes())).expect(frame) {
            match seen {
                Seen::Quote { .. } => counts.quotes += 1,
                Seen::Trade(_) => counts.trades += 1,
                Seen::Book(SeenBook { is_snapshot: true, levels, .. }) => {
                    counts.snapshots += 1;
                    counts.snapshot_levels += levels.len();
                }
                Seen::Book(SeenBook { previous, sequence, .. }) => {
                    counts.updates += 1;
                    counts.breaks += u64::from(last.is_some_and(|last| last != previous));
                    last = Some(sequence);
                }
                Seen::Maintenance => panic!("the recording has no maintenance"),
            }
        }
    }
    counts.complete_reads = parser.complete_reads();
    counts
}
