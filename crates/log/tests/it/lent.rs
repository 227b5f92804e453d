//! Lent messages: they stay valid after the end of their reader, their writer and the log's name.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use tickpath_clock::Calibration;
use tickpath_log::{
    HEADER_BYTES, LentFrame, LogReadError, NextLent, OverflowPolicy, Reader, ReaderStart, SEGMENT_HEADER_BYTES, Writer,
};

use crate::fork::in_a_fork;
use crate::lost_pieces::{boot, this_boot};
use crate::{ScratchLog, payload, read_on};

/// On a disk a frame with this payload takes 528 bytes: 16 in front, 504, the checksum. Seven of them fill a segment.
const LENGTH: usize = 500;
const FRAME_BYTES: u64 = 528;
const FRAMES: u64 = 7;

#[test]
fn lent_messages_outlive_reader_writer_and_log() {
    for scratch in [ScratchLog::shared(OverflowPolicy::Keep, 0), ScratchLog::on_disk(OverflowPolicy::Keep, 0)] {
        let mut writer = writer(&scratch, &this_boot());
        let mut reader = scratch.reader(ReaderStart::Oldest);
        let mut lent = Vec::new();
        for sequence in 0..200 {
            publish(&mut writer, sequence..sequence + 1);
            lent.push(lend(&mut reader));
        }
        assert!(matches!(reader.lend(), Ok(Some(NextLent::Empty))));
        drop((writer, reader));
        // Another writer opens the log, and continues.
        publish(&mut self::writer(&scratch, &this_boot()), 200..300);
        scratch.place().remove().expect("no process has it open");
        check(&lent, 0);
        assert!(lent.iter().all(|lent| !lent.is_copy()));
    }
}

#[test]
fn a_reader_may_mix_lent_and_copied_messages() {
    let scratch = ScratchLog::shared(OverflowPolicy::Keep, 0);
    let mut writer = writer(&scratch, &this_boot());
    let mut reader = scratch.reader(ReaderStart::Oldest);
    for sequence in (0..60).step_by(3) {
        publish(&mut writer, sequence..sequence + 3);
        let lent = lend(&mut reader);
        assert_eq!(read_on(&mut reader, sequence + 1), sequence + 3);
        check(&[lent], sequence);
    }
}

#[test]
fn a_reader_that_lends_reports_lost_messages() {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Keep, 0);
    scratch.config.first_sequence = 10;
    let mut writer = writer(&scratch, &this_boot());
    publish(&mut writer, 10..11);
    let mut reader = scratch.reader(ReaderStart::Sequence(4));
    assert!(matches!(reader.lend(), Ok(Some(NextLent::Gap(6)))));
    check(&[lend(&mut reader)], 10);
}

#[test]
fn only_a_keep_log_lends_messages() {
    for policy in [OverflowPolicy::Overwrite, OverflowPolicy::Fail] {
        let scratch = ScratchLog::shared(policy, 2);
        let mut writer = writer(&scratch, &this_boot());
        let mut reader = scratch.reader(ReaderStart::Now);
        publish(&mut writer, 0..1);
        assert!(matches!(reader.lend(), Ok(None)), "{policy}");
        assert_eq!(read_on(&mut reader, 0), 1, "nothing was taken");
    }
    let scratch = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    publish(&mut writer(&scratch, &this_boot()), 0..1);
    let mut of_strangers = Reader::open_untrusted(scratch.place(), ReaderStart::Oldest).expect("it is there");
    assert!(matches!(of_strangers.lend(), Ok(None)), "they could change it");
}

/// Messages of another boot that are not known to be on the disk are cut behind a missing piece, and their place is
/// written again.
#[test]
fn messages_that_may_be_cut_are_copied() {
    const DURABLE: u64 = 50;
    const MISSING: u64 = 60;
    let scratch = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    let mut writer = writer(&scratch, &boot([1; 16]));
    publish(&mut writer, 0..DURABLE);
    writer.sync().expect("the disk is there");
    publish(&mut writer, DURABLE..100);
    drop(writer);
    let mut reader = scratch.reader(ReaderStart::Oldest);
    let lent: Vec<LentFrame> = (0..100).map(|_| lend(&mut reader)).collect();
    assert!(lent.iter().all(|lent| lent.is_copy() == (lent.sequence >= DURABLE)));
    let data = OpenOptions::new().write(true).open(scratch.data()).expect("it is ours");
    let at =
        HEADER_BYTES as u64 + MISSING / FRAMES * 4096 + SEGMENT_HEADER_BYTES as u64 + MISSING % FRAMES * FRAME_BYTES;
    data.write_all_at(&[0; FRAME_BYTES as usize], at).expect("a frame");
    let mut writer = self::writer(&scratch, &boot([2; 16]));
    assert_eq!(writer.dropped_data().map(|cut| cut.sequence), Some(MISSING));
    for sequence in MISSING..100 {
        writer.publish(0, 17, &payload(!sequence, LENGTH)).expect("a log that grows takes all");
    }
    check(&lent, 0);
}

#[test]
fn a_fork_reads_lent_messages_and_is_lent_none() {
    let scratch = ScratchLog::shared(OverflowPolicy::Keep, 0);
    let mut writer = writer(&scratch, &this_boot());
    let mut reader = scratch.reader(ReaderStart::Oldest);
    publish(&mut writer, 0..2);
    let lent = lend(&mut reader);
    assert!(in_a_fork(|| {
        let is_there = lent.payload() == payload(0, LENGTH);
        is_there && matches!(reader.lend(), Err(LogReadError::Forked))
    }));
    check(&[lent, lend(&mut reader)], 0);
}

fn writer(scratch: &ScratchLog, calibration: &Calibration) -> Writer {
    Writer::open(&scratch.config, calibration).expect("there is no other writer")
}

fn publish(writer: &mut Writer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        writer.publish(number * 3, 16, &payload(number, LENGTH)).expect("there is room");
    }
}

fn lend(reader: &mut Reader) -> LentFrame {
    match reader.lend().expect("the log is sound") {
        Some(NextLent::Message(lent)) => lent,
        other => panic!("expected a message, got {other:?}"),
    }
}

/// Checks the messages from this number on.
fn check(lent: &[LentFrame], first: u64) {
    for (sequence, lent) in (first..).zip(lent) {
        assert_eq!((lent.sequence, lent.stamp, lent.kind), (sequence, sequence * 3, 16));
        assert_eq!(lent.payload(), payload(sequence, LENGTH), "message {sequence}");
    }
}
