//! Logs that are opened again: after a clean end, after a torn write, and damaged in every way.

use std::fs;

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, FRAME_HEADER_BYTES, HEADER_BYTES, LogOpenError, LogPublishError, LogReadError, Next, OverflowPolicy,
    Reader, ReaderStart, Registration, SEGMENT_HEADER_BYTES, Writer,
};

use crate::{ALL_POLICIES, ScratchLog, payload, read_on};

/// A frame of a journal with this payload takes 112 bytes: 16 in front, 88, the checksum.
const LENGTH: usize = 88;
const FRAME_BYTES: usize = 112;
const FIRST_FRAME: usize = HEADER_BYTES + SEGMENT_HEADER_BYTES;

#[test]
fn a_writer_resumes_where_the_last_one_stopped() {
    for scratch in ALL_POLICIES.iter().flat_map(|&p| [ScratchLog::shared(p, 3), ScratchLog::on_disk(p, 3)]) {
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(ReaderStart::Now);
        let mut at = 0;
        for turn in 0..200 {
            for _ in 0..turn % 37 {
                writer.publish(0, 16, &payload(at, (at * 29 % 500) as usize)).expect("the reader has read all");
                at = read_on(&mut reader, at);
            }
            drop(writer);
            writer = scratch.writer();
            assert_eq!(writer.sequence(), at);
        }
        let mut again = scratch.observer(ReaderStart::Oldest);
        let from = again.sequence();
        assert_eq!(read_on(&mut again, from), at);
    }
}

/// Reader and next writer pass any rest of a segment, even one shorter than a frame.
#[test]
fn every_remainder_of_a_segment_is_passed() {
    for scratch in [ScratchLog::on_disk, ScratchLog::shared] {
        for length in (0..600).step_by(8) {
            let scratch = scratch(OverflowPolicy::Keep, 0);
            for first in [0, 9, 24, 40] {
                let mut writer = scratch.writer();
                let from = writer.sequence();
                writer.publish(0, 16, &payload(from, first)).expect("a log that grows takes all");
                for sequence in from + 1..from + 90 {
                    writer.publish(0, 16, &payload(sequence, length)).expect("a log that grows takes all");
                }
            }
            assert_eq!(read_on(&mut scratch.observer(ReaderStart::Oldest), 0), 360, "messages of {length} bytes");
        }
    }
}

#[test]
fn a_torn_last_frame_is_cut() {
    let scratch = journal(5);
    let whole = fs::read(scratch.data()).expect("the file can be read");
    let behind_commit = FRAME_BYTES * 4 + 8..FRAME_BYTES * 4 + FRAME_HEADER_BYTES + LENGTH + 4;
    for byte in behind_commit {
        fs::write(scratch.data(), &whole).expect("the file can be written");
        flip(&scratch, FIRST_FRAME + byte, 0x40);
        let mut writer = scratch.writer();
        assert_eq!(writer.sequence(), 4, "byte {byte} of the frames");
        writer.publish(0, 16, &payload(4, 20)).expect("a log that grows takes all");
        assert_eq!(read_on(&mut scratch.observer(ReaderStart::Oldest), 0), 5);
    }
}

#[test]
fn damage_in_the_middle_is_refused() {
    let scratch = journal(9);
    let whole = fs::read(scratch.data()).expect("the file can be read");
    for bit in 0..(FRAME_HEADER_BYTES + LENGTH + 4) * 8 {
        fs::write(scratch.data(), &whole).expect("the file can be written");
        flip(&scratch, FIRST_FRAME + 2 * FRAME_BYTES + bit / 8, 1 << (bit % 8));
        let error = open(&scratch).err().unwrap_or_else(|| panic!("bit {bit} is damaged, and no error follows"));
        assert!(matches!(error, LogOpenError::Damaged { .. }), "bit {bit}: {error}");
        assert!(error.to_string().contains("sequence 2"), "bit {bit}: {error}");
        let (read, error) = read_to_damage(&scratch);
        assert!(
            read == 2 && matches!(error, LogReadError::Damaged { sequence: 2, segment: 0, .. }),
            "bit {bit}: {error}"
        );
    }
}

/// A writer killed within a batch leaves whole frames behind an unfinished frame: no hole, and never read again.
#[test]
fn a_batch_that_was_not_ended_is_cut() {
    for (first, behind) in [(0, 9), (4, 5), (8, 1)] {
        let scratch = journal(9);
        let mut bytes = fs::read(scratch.data()).expect("the file can be read");
        let at = FIRST_FRAME + first * FRAME_BYTES;
        // Length 0, kind 2, and the number of the batch's first message.
        bytes[at..at + 8].copy_from_slice(&(2 << 24 | (first as u64) << 32).to_le_bytes());
        // A process killed while it drops the batch has cleared part of it, from its end backwards.
        for cleared in (0..behind * FRAME_BYTES).step_by(56) {
            let mut bytes = bytes.clone();
            bytes[at + behind * FRAME_BYTES - cleared..].fill(0);
            fs::write(scratch.data(), bytes).expect("the file can be written");
            let writer = scratch.writer();
            assert_eq!(
                (writer.sequence(), writer.dropped_data().map(|cut| cut.sequence)),
                (first as u64, Some(first as u64))
            );
        }
        fs::write(scratch.data(), bytes).expect("the file can be written");
        let mut reader = scratch.observer(ReaderStart::Oldest);
        assert_eq!(read_on(&mut reader, 0), first as u64);
        reader.check_end().expect("a batch may be on its way");
        let mut writer = scratch.writer();
        let cut = writer.dropped_data().expect("a part of a batch is dropped");
        assert_eq!((writer.sequence(), cut.sequence), (first as u64, first as u64));
        assert!(cut.bytes as usize > (behind - 1) * FRAME_BYTES, "{cut:?}");
        writer.publish(0, 16, &payload(first as u64, 20)).expect("a log that grows takes all");
        assert_eq!(read_on(&mut reader, first as u64), first as u64 + 1);
        drop(writer);
        assert_eq!(scratch.writer().dropped_data(), None, "nothing of the batch is left");
    }
}

/// A page of zeros, as a loss of power can leave one, is no end: it hides what lies behind it.
#[test]
fn a_hole_is_not_taken_for_the_end() {
    for (first, frames) in [(0, 1), (2, 1), (2, 4), (7, 1)] {
        let scratch = journal(9);
        let mut bytes = fs::read(scratch.data()).expect("the file can be read");
        let hole = FIRST_FRAME + first * FRAME_BYTES;
        bytes[hole..hole + frames * FRAME_BYTES].fill(0);
        fs::write(scratch.data(), bytes).expect("the file can be written");
        let mut reader = scratch.observer(ReaderStart::Oldest);
        assert_eq!(read_on(&mut reader, 0), first as u64);
        let error = reader.check_end().expect_err("frames lie behind the hole");
        assert!(matches!(error, LogReadError::Damaged { sequence, .. } if sequence == first as u64), "{error}");
        assert!(matches!(open(&scratch), Err(LogOpenError::Damaged { .. })), "a writer would write over them");
    }
    let scratch = journal(9);
    let mut whole = scratch.observer(ReaderStart::Oldest);
    assert_eq!(read_on(&mut whole, 0), 9);
    whole.check_end().expect("nothing is missing");
}

/// The segment before the newest is whole, or the log is not taken up.
#[test]
fn damage_at_the_end_of_an_earlier_segment_is_refused() {
    let scratch = journal(60);
    let last_of_first = (4096 - SEGMENT_HEADER_BYTES) / FRAME_BYTES - 1;
    flip(&scratch, FIRST_FRAME + last_of_first * FRAME_BYTES + FRAME_HEADER_BYTES, 1);
    let error = open(&scratch).err().expect("a frame is damaged");
    assert!(matches!(error, LogOpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_damaged_header_is_refused() {
    let header_bytes = 136;
    for policy in ALL_POLICIES {
        for byte in 0..header_bytes {
            let scratch = ScratchLog::shared(policy, 2);
            drop(scratch.writer());
            flip(&scratch, byte, 0x10);
            for error in refusals(&scratch) {
                match error {
                    LogOpenError::Version { expected: 2, .. } => assert!((8..12).contains(&byte), "byte {byte}"),
                    LogOpenError::Damaged { .. } => assert!(!(8..12).contains(&byte), "byte {byte}"),
                    other => panic!("byte {byte}: {other}"),
                }
            }
        }
    }
}

#[test]
fn another_version_is_named() {
    let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    drop(scratch.writer());
    flip(&scratch, 8, 3);
    for error in refusals(&scratch) {
        assert!(error.to_string().contains("format version 1, this program reads version 2"), "{error}");
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    // A log that grows may end anywhere behind its header: a full disk leaves half a segment that nothing is in.
    for (policy, lengths) in
        [(OverflowPolicy::Overwrite, &[0, 50, 4096, 10_000][..]), (OverflowPolicy::Keep, &[0, 50][..])]
    {
        for &length in lengths {
            let scratch = ScratchLog::shared(policy, 3);
            let mut writer = scratch.writer();
            for sequence in 0..40 {
                writer.publish(0, 16, &payload(sequence, 200)).expect("the log takes all");
            }
            drop(writer);
            // In a new file: a thread that still prepares segments of the old one must not lengthen this one.
            let bytes = fs::read(scratch.data()).expect("the file can be read");
            fs::remove_file(scratch.data()).expect("the file is there");
            fs::write(scratch.data(), &bytes[..length]).expect("the file can be written");
            for error in refusals(&scratch) {
                assert!(error.to_string().contains("cut short"), "{policy}, {length} bytes: {error}");
            }
        }
    }
}

#[test]
fn a_control_file_that_was_lost_is_made_anew() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    drop(scratch.writer());
    fs::remove_file(scratch.place().dir().join("control")).expect("it is there");
    let mut writer = scratch.writer();
    let mut reader = scratch.reader(ReaderStart::Now);
    writer.publish(0, 16, &payload(0, 9)).expect("a reader is registered");
    assert_eq!(read_on(&mut reader, 0), 1);
}

#[test]
fn a_second_writer_and_other_parameters_are_refused() {
    let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    let writer = scratch.writer();
    let pid = std::process::id();
    assert!(matches!(open(&scratch), Err(LogOpenError::HasWriter { pid: holder, .. }) if holder == pid));
    assert_eq!(scratch.observer(ReaderStart::Now).writer(), Some(pid));
    drop(writer);
    assert_eq!(scratch.observer(ReaderStart::Now).writer(), None);
    for other in [
        Config { policy: OverflowPolicy::Fail, ..scratch.config.clone() },
        Config { segments: 3, ..scratch.config.clone() },
        Config { segment_bytes: 8192, ..scratch.config.clone() },
    ] {
        let refused = Writer::open(&other, &Calibration::nanoseconds()).err();
        assert!(matches!(refused, Some(LogOpenError::ConfigMismatch { .. })), "{refused:?}");
    }
}

#[test]
fn another_clock_is_refused_in_shared_memory_and_marked_on_a_disk() {
    let mut later = Calibration::nanoseconds();
    (later.boot_id, later.ticks) = ([7; 16], 5);
    let shared = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    drop(shared.writer());
    assert!(matches!(Writer::open(&shared.config, &later), Err(LogOpenError::Clock { .. })));

    let journal = journal(3);
    let mut writer = Writer::open(&journal.config, &later).expect("a journal outlives a boot");
    assert_eq!(writer.publish(0, 16, &payload(3, LENGTH)).expect("a log that grows takes all"), 3);
    let mut reader = journal.observer(ReaderStart::Oldest);
    assert_eq!(reader.calibration(), Calibration::nanoseconds());
    assert_eq!(read_on(&mut reader, 0), 4);
    assert_eq!(reader.calibration(), later);
}

#[test]
fn kinds_of_the_log_itself_are_refused() {
    let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    let mut writer = scratch.writer();
    for kind in 0..=u8::MAX {
        let published = writer.publish(0, kind, b"x");
        assert_eq!(matches!(published, Err(LogPublishError::Kind(told)) if told == kind), kind < 16, "{published:?}");
    }
}

/// Returns a closed journal on a disk with so many messages.
fn journal(messages: u64) -> ScratchLog {
    let scratch = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    let mut writer = scratch.writer();
    for sequence in 0..messages {
        writer.publish(0, 17, &payload(sequence, LENGTH)).expect("a log that grows takes all");
    }
    scratch
}

fn flip(scratch: &ScratchLog, at: usize, bits: u8) {
    let mut bytes = fs::read(scratch.data()).expect("the file can be read");
    bytes[at] ^= bits;
    fs::write(scratch.data(), bytes).expect("the file can be written");
}

fn open(scratch: &ScratchLog) -> Result<Writer, LogOpenError> {
    Writer::open(&scratch.config, &Calibration::nanoseconds())
}

/// Returns the errors of a writer and a reader that both cannot use the log.
fn refusals(scratch: &ScratchLog) -> [LogOpenError; 2] {
    let read = Reader::open(scratch.place(), ReaderStart::Oldest, Registration::Unregistered);
    let (written, read) = (open(scratch).err(), read.err());
    [written.expect("a writer refuses it"), read.expect("a reader refuses it")]
}

fn read_to_damage(scratch: &ScratchLog) -> (u64, LogReadError) {
    let mut reader = scratch.observer(ReaderStart::Oldest);
    for read in 0..1000 {
        match reader.next() {
            Ok(Next::Message(message)) => assert_eq!(message.sequence, read),
            Ok(other) => panic!("{other:?} after {read} messages, though the next one is damaged"),
            Err(e) => return (read, e),
        }
    }
    panic!("a thousand messages were never written");
}
