//! A writer at full speed over a tiny ring: readers are lapped all the time, and never see a torn message.

use std::thread;

use tickpath_clock::Wait;
use tickpath_log::{Next, OverflowPolicy, Reader, ReaderStart, Writer};

use crate::{ScratchLog, payload};

const MESSAGES: u64 = 200_000;

#[test]
fn a_lapped_reader_misses_whole_messages_and_counts_them() {
    for segments in [2, 3] {
        let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, segments);
        let writer = scratch.writer();
        let readers =
            [scratch.reader(ReaderStart::Now), scratch.reader(ReaderStart::Oldest), scratch.observer(ReaderStart::Now)];
        thread::scope(|scope| {
            for reader in readers {
                scope.spawn(move || follow(reader));
            }
            scope.spawn(move || write(writer));
        });
    }
}

/// Returns a length: some payloads fit a cache line, some are copied by vector instructions, some fill a third of a
/// segment.
fn length(sequence: u64) -> usize {
    match sequence % 16 {
        0 => 1200,
        n if n < 8 => (sequence % 48) as usize,
        _ => (sequence % 500) as usize,
    }
}

fn write(mut writer: Writer) {
    for sequence in 0..MESSAGES {
        let bytes = payload(sequence, length(sequence));
        assert_eq!(writer.publish(sequence * 3, 16, &bytes).expect("an overwrite log takes all"), sequence);
    }
}

fn follow(mut reader: Reader) {
    let mut accounted = 0;
    while accounted < MESSAGES {
        match reader.next().expect("the log is sound") {
            Next::Message(message) => {
                assert_eq!((message.sequence, message.stamp, message.kind), (accounted, accounted * 3, 16));
                assert_eq!(message.payload, payload(accounted, length(accounted)));
                accounted += 1;
            }
            Next::Gap(missed) => {
                assert!(missed > 0);
                accounted += missed;
            }
            Next::Empty => reader.wait(Wait::Yield, 0),
        }
    }
    assert_eq!((accounted, reader.next().expect("the log is sound")), (MESSAGES, Next::Empty));
}
