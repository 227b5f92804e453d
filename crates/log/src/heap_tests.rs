//! The protocol over plain memory, in threads: small enough for an interpreter that checks every access.

use std::hint::spin_loop;
use std::sync::mpsc::channel;
use std::thread;

use crate::append::{AppendError, Appender, BlockedReason};
use crate::control::ControlFile;
use crate::follow::{CursorStep, FrameAt, SegmentCursor};
use crate::layout::{FrameShape, GENERATION, SEGMENT_HEADER_BYTES, holding};
use crate::reader::lent::LentFrame;
use crate::region::Region;
use crate::sync::Ordering;

const MESSAGES: u64 = if cfg!(miri) { 150 } else { 50_000 };
const FRAME: FrameShape = FrameShape { align: 64, crc: false };
/// Five lines of frames: the frames of one and two lines do not always fill them.
const SEGMENT_BYTES: usize = SEGMENT_HEADER_BYTES + 5 * 64;

#[test]
fn lapped_readers_miss_whole_messages() {
    let (mut appender, regions, _) = ring(2, false);
    let cursors = [enter(&regions, 0), enter(&regions, 0)].map(|cursor| cursor.expect("it was just opened"));
    thread::scope(|scope| {
        for cursor in cursors {
            scope.spawn(|| follow(cursor, &regions, |_| ()));
        }
        scope.spawn(move || (0..MESSAGES).for_each(|sequence| assert!(append(&mut appender, sequence))));
    });
}

#[test]
fn lent_frames_stay_while_the_cursor_holds_them() {
    let (mut appender, regions, control) = ring(2, true);
    control.activate(0, 0, 1);
    let mut cursor = enter(&regions, 0).expect("it was just opened");
    cursor.lend = true;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let missed = follow(cursor, &regions, |next| control.cursor(0).store(next, Ordering::Release));
            assert_eq!(missed, 0, "a cursor holds the writer");
        });
        for sequence in 0..MESSAGES {
            while !append(&mut appender, sequence) {
                assert!(!reader.is_finished(), "the reader has stopped before {sequence}");
            }
        }
    });
}

/// A ring that is never filled, as a `keep` log: lent messages outlive writer, reader and all segments.
#[test]
fn lent_frames_outlive_their_reader() {
    const LENT: u64 = 100;
    let (mut appender, regions, _) = ring(64, false);
    let mut cursor = enter(&regions, 0).expect("it was just opened");
    cursor.lend = true;
    let (lend, lent) = channel();
    let mut kept: Vec<LentFrame> = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = Vec::new();
            while cursor.sequence < LENT {
                match cursor.step(&mut buffer).expect("nothing is damaged") {
                    CursorStep::Frame(at) => {
                        // SAFETY: just found in this segment, and no segment of a ring that is not full is recycled.
                        let frame = unsafe { LentFrame::in_place(cursor.region.clone(), at) };
                        lend.send(frame).expect("somebody listens");
                    }
                    CursorStep::Empty => spin_loop(),
                    // The very next segment: a later one may be present by the time of the check.
                    CursorStep::End | CursorStep::Lapped => match enter(&regions, cursor.index + 1) {
                        Some(next) => {
                            cursor = next;
                            cursor.lend = true;
                        }
                        None => spin_loop(),
                    },
                }
            }
        });
        scope.spawn(move || (0..LENT).for_each(|sequence| assert!(append(&mut appender, sequence))));
        for (sequence, lent) in (0..).zip(lent.iter()) {
            assert_eq!(lent.payload(), message(sequence));
            kept.push(lent);
        }
    });
    assert_eq!(kept.len() as u64, LENT);
    for (sequence, lent) in (0..).zip(&kept) {
        assert_eq!((lent.sequence, lent.stamp, lent.kind), (sequence, sequence * 3, 16));
        assert_eq!(lent.payload(), message(sequence));
    }
}

/// The writer remembers the slowest cursor; a later cursor that begins further back counts too.
#[test]
fn a_late_cursor_holds_the_writer() {
    for segments in [2, 3, 4] {
        let (mut appender, regions, control) = ring(segments, true);
        while appender.index < 7 {
            let sequence = appender.sequence;
            assert!(append(&mut appender, sequence));
        }
        let oldest = enter(&regions, 8 - segments as u64).expect("it is there still");
        control.activate(0, oldest.sequence, 1);
        let tail = appender.sequence;
        let refused = (tail..tail + 100).find(|&sequence| !append(&mut appender, sequence));
        assert!(refused.is_some(), "a hundred messages do not fit into {segments} segments");
        assert!(!oldest.is_lapped());
        control.release(0);
        assert!(append(&mut appender, refused.expect("as above")));
    }
}

/// Random words stored anywhere by an untrusted writer: a step returns a frame inside its segment, an end, or damage.
#[test]
fn random_writes_of_a_stranger_stay_inside_the_segment() {
    let (mut appender, regions, _) = ring(2, false);
    (0..2).for_each(|sequence| assert!(append(&mut appender, sequence)));
    let region = &regions[0];
    thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let mut dice = 88172645463325252_u64;
            for turn in 0..MESSAGES {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let at = (dice >> 32) as usize % (SEGMENT_BYTES / 8) * 8;
                // Sound commit words too, of any length: they lead furthest.
                let word = if turn % 2 == 0 { dice } else { (dice % 700) | (16 << 24) | (turn % 3) << 32 };
                region.word(at).store(word, Ordering::Release);
                region.word(GENERATION).store(holding(0), Ordering::Release);
            }
        });
        let mut buffer = Vec::new();
        while !stranger.is_finished() {
            let mut cursor = SegmentCursor::new(region.clone(), FRAME, SEGMENT_BYTES, 0, 0, false);
            while let Ok(CursorStep::Frame(at)) = cursor.step(&mut buffer) {
                assert_eq!(cursor.payload(at.offset, at.length, &buffer).len(), at.length);
                assert!(cursor.offset <= SEGMENT_BYTES);
            }
            let _ = (cursor.has_news(), cursor.has_later_frame());
        }
    });
}

/// Reads to the last message; publishes each cursor before it moves. Returns the number of lost messages.
fn follow(mut cursor: SegmentCursor, regions: &[Region], mut publish: impl FnMut(u64)) -> u64 {
    let (mut buffer, mut received, mut missed) = (Vec::new(), 0, 0);
    let lends = cursor.lend;
    while cursor.sequence < MESSAGES {
        let expected = cursor.sequence;
        publish(expected);
        match cursor.step(&mut buffer).expect("nothing is damaged") {
            CursorStep::Frame(FrameAt { sequence, stamp, kind, length, offset }) => {
                assert_eq!((sequence, stamp, kind), (expected, expected * 3, 16));
                assert_eq!(cursor.payload(offset, length, &buffer), message(sequence));
                received += 1;
            }
            CursorStep::Empty => spin_loop(),
            CursorStep::End | CursorStep::Lapped => match following(regions, &cursor) {
                Some(mut next) => {
                    next.lend = lends;
                    missed += next.sequence - expected;
                    cursor = next;
                }
                None => spin_loop(),
            },
        }
    }
    assert_eq!(received + missed, MESSAGES);
    missed
}

/// Returns a cursor at the next segment present.
fn following(regions: &[Region], cursor: &SegmentCursor) -> Option<SegmentCursor> {
    let indices = regions.iter().filter_map(|region| {
        let generation = region.word(GENERATION).load(Ordering::Acquire);
        (generation.is_multiple_of(2) && generation > holding(cursor.index)).then(|| generation / 2 - 1)
    });
    indices.min().and_then(|index| enter(regions, index))
}

fn enter(regions: &[Region], index: u64) -> Option<SegmentCursor> {
    let region = regions[(index % regions.len() as u64) as usize].clone();
    SegmentCursor::enter(region, FRAME, SEGMENT_BYTES, index)
}

fn ring(segments: usize, gated: bool) -> (Appender, Vec<Region>, ControlFile) {
    Appender::on_heap(segments, SEGMENT_BYTES, gated)
}

/// Runs over frames of one length, some of another in between: no frame is passed twice, or before it is there.
#[test]
fn runs_of_equally_long_frames_are_read_once() {
    let (mut appender, regions, control) = ring(2, true);
    control.activate(0, 0, 1);
    let mut cursor = enter(&regions, 0).expect("it was just opened");
    cursor.lend = true;
    let payload = |sequence: u64| vec![sequence as u8; if sequence.is_multiple_of(11) { 70 } else { 20 }];
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut buffer = Vec::new();
            while cursor.sequence < MESSAGES {
                let first = cursor.sequence;
                control.cursor(0).store(first, Ordering::Release);
                let run = cursor.read_run(4);
                for index in 0..run.count {
                    let at = cursor.run_frame(&run, index);
                    let sequence = first + index as u64;
                    assert_eq!((at.sequence, at.stamp, at.kind), (sequence, sequence * 3, 16));
                    assert_eq!(cursor.payload(at.offset, at.length, &buffer), payload(sequence));
                }
                assert_eq!(cursor.sequence, first + run.count as u64);
                match cursor.step(&mut buffer).expect("nothing is damaged") {
                    CursorStep::Frame(at) => assert_eq!(at.stamp, at.sequence * 3),
                    CursorStep::Empty => spin_loop(),
                    CursorStep::End | CursorStep::Lapped => match following(&regions, &cursor) {
                        Some(next) => {
                            assert_eq!(next.sequence, cursor.sequence);
                            cursor = next;
                            cursor.lend = true;
                        }
                        None => spin_loop(),
                    },
                }
            }
        });
        for sequence in 0..MESSAGES {
            while appender.append(sequence * 3, 16, &payload(sequence)).is_err() {
                assert!(!reader.is_finished(), "the reader has stopped before {sequence}");
            }
        }
    });
}

/// Batches of two to four messages, some of which fill segments or cross a segment's end, beside readers that are
/// lapped: a message read is whole, and the rest of a batch that fits its segment is visible with its first message.
#[test]
fn batches_become_visible_at_once() {
    let (mut appender, regions, _) = ring(3, false);
    let mut cursor = enter(&regions, 0).expect("it was just opened");
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            while appender.sequence < MESSAGES {
                let first = appender.sequence;
                // Each message holds the number of messages behind it in its batch.
                let messages: Vec<Vec<u8>> =
                    (0..2 + first % 3).map(|index| vec![(1 + first % 3 - index) as u8; 1 + index as usize]).collect();
                let payloads: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
                assert!(appender.make_room_for_all(&payloads).is_ok(), "nothing is in the way");
                assert_eq!(appender.append_batch(first, 16, &payloads), payloads.len(), "it fits a segment");
            }
        });
        let (mut buffer, mut behind) = (Vec::new(), 0);
        loop {
            let is_over = writer.is_finished();
            match cursor.step(&mut buffer).expect("nothing is damaged") {
                CursorStep::Frame(at) => {
                    let payload = cursor.payload(at.offset, at.length, &buffer);
                    assert!(behind == 0 || usize::from(payload[0]) + 1 == behind, "not the next of its batch");
                    behind = payload[0].into();
                }
                CursorStep::Empty => {
                    assert_eq!(behind, 0, "a part of a batch");
                    if is_over {
                        break;
                    }
                    spin_loop();
                }
                CursorStep::End | CursorStep::Lapped => {
                    if let Some(next) = following(&regions, &cursor) {
                        (cursor, behind) = (next, 0);
                    }
                }
            }
        }
    });
}

/// Appends a message; returns false if a cursor blocks it.
fn append(appender: &mut Appender, sequence: u64) -> bool {
    match appender.append(sequence * 3, 16, &message(sequence)) {
        Ok(()) => true,
        Err(AppendError::Blocked(BlockedReason::ByReader(_) | BlockedReason::ByGroup)) => false,
        Err(AppendError::Blocked(BlockedReason::Io(e))) => panic!("{e}"),
        Err(AppendError::TooLarge(bytes)) => panic!("{bytes} bytes are too many"),
    }
}

/// Returns a payload of one or two lines with its header.
fn message(sequence: u64) -> Vec<u8> {
    vec![sequence as u8; (sequence * 7 % 100) as usize]
}
