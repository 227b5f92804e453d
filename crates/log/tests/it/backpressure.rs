//! A `fail` topic: registered readers hold the writer, and no other process does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::yield_now;
use tickpath_log::{LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Writer};

use crate::{Dice, ScratchLog, payload, read_on, seed};

#[test]
fn a_reader_that_stops_holds_the_writer() {
    for segments in [2, 3, 8] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, segments);
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(ReaderStart::Now);
        let mut at = 0;
        for lap in 0..5 {
            let end = fill(&mut writer, 100);
            // Frames of 128 bytes: 31 a segment.
            let room = 31 * (segments as u64 - 1)..=31 * segments as u64;
            assert!(room.contains(&(end - at)), "lap {lap}: {} messages fit into {segments} segments", end - at);
            assert!(matches!(writer.publish(0, 16, &payload(end, 100)), Err(LogPublishError::Full)));
            assert_eq!(writer.sequence(), end, "a refused message takes no number");
            at = read_on(&mut reader, at);
            assert_eq!(at, end);
        }
    }
}

#[test]
fn publishing_without_a_reader_fails() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    let refused = |writer: &mut Writer| matches!(writer.publish(0, 16, b"x"), Err(LogPublishError::NoReader));
    assert!(refused(&mut writer));
    let looker = scratch.observer(ReaderStart::Now);
    assert!(refused(&mut writer), "an unregistered reader is none");
    drop(looker);
    let reader = scratch.reader(ReaderStart::Now);
    assert_eq!((writer.readers(), writer.publish(0, 16, b"x").expect("there is room")), (1, 0));
    drop(reader);
    assert!(refused(&mut writer));
    assert_eq!((writer.readers(), writer.sequence()), (0, 1));
}

/// A reader resumes wherever in a segment it stopped, also right behind the last frame of a partly filled one.
#[test]
fn a_reader_resumes_wherever_it_stopped() {
    for length in [48, 100, 176, 700] {
        for stop in 0..64 {
            let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
            let mut writer = scratch.writer();
            let mut reader = scratch.reader(ReaderStart::Now);
            for sequence in 0..stop {
                writer.publish(0, 16, &payload(sequence, length)).expect("the reader has read all before");
                read_on(&mut reader, sequence);
            }
            let end = fill(&mut writer, length);
            assert_eq!(read_on(&mut reader, stop), end, "stopped at {stop}, messages of {length} bytes");
        }
    }
}

/// The writer caches the position of the slowest reader; a later reader that begins further back counts too.
#[test]
fn a_late_reader_holds_the_writer_too() {
    for segments in [2, 3, 4, 8] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, segments);
        let mut writer = scratch.writer();
        let mut quick = scratch.reader(ReaderStart::Now);
        let mut at = 0;
        for _ in 0..40 * segments {
            writer.publish(0, 16, &payload(at, 176)).expect("the quick reader has read all");
            at = read_on(&mut quick, at);
        }
        let mut late = scratch.reader(ReaderStart::Oldest);
        let from = late.sequence();
        assert!(from < at, "something is there to begin with");
        while writer.publish(0, 16, &payload(at, 176)).is_ok() {
            at = read_on(&mut quick, at);
            assert!(at < 1000 * segments as u64, "the late reader must hold the writer");
        }
        assert_eq!(read_on(&mut late, from), at);
        assert!(writer.publish(0, 16, &payload(at, 176)).is_ok(), "there is room again");
    }
}

/// Readers that join at the oldest message while the writer recycles: the messages that they have begun to read stay.
#[test]
fn readers_come_and_go_while_the_writer_recycles() {
    const MESSAGES: u64 = 100_000;
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 3);
    let writer = scratch.writer();
    let steady = scratch.reader(ReaderStart::Now);
    let (over, seed) = (AtomicBool::new(false), seed());
    thread::scope(|scope| {
        scope.spawn(|| {
            write(writer, MESSAGES);
            over.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            let (mut reader, mut at) = (steady, 0);
            while at < MESSAGES {
                at = read_on(&mut reader, at);
                yield_now();
            }
        });
        scope.spawn(|| {
            let mut dice = Dice::new(seed);
            for _ in 0..20_000 {
                if over.load(Ordering::Acquire) {
                    break;
                }
                let mut reader = scratch.reader([ReaderStart::Oldest, ReaderStart::Now][dice.below(2) as usize]);
                read_some(&mut reader, dice.below(60));
            }
        });
    });
}

fn write(mut writer: Writer, messages: u64) {
    for sequence in 0..messages {
        let bytes = payload(sequence, (sequence % 300) as usize);
        while let Err(e) = writer.publish(0, 16, &bytes) {
            assert!(matches!(e, LogPublishError::Full), "{e}");
            yield_now();
        }
    }
}

fn read_some(reader: &mut Reader, limit: u64) {
    let mut at = reader.sequence();
    for _ in 0..limit {
        match reader.next().expect("what is pinned is sound") {
            Next::Message(message) => {
                assert_eq!(message.sequence, at);
                assert_eq!(message.payload, payload(at, (at % 300) as usize));
                at += 1;
            }
            Next::Gap(missed) => panic!("{missed} messages are gone in front of a registered reader at {at}"),
            Next::Empty => return,
        }
    }
}

/// Publishes until the log is full; returns the sequence number of the refused message.
fn fill(writer: &mut Writer, length: usize) -> u64 {
    for _ in 0..10_000 {
        let sequence = writer.sequence();
        match writer.publish(0, 16, &payload(sequence, length)) {
            Ok(_) => {}
            Err(LogPublishError::Full) => return sequence,
            Err(e) => panic!("{e}"),
        }
    }
    panic!("a ring of some pages is never full");
}
