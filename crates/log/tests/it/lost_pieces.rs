//! Journals that have lost a part: lost messages are detected wherever the file was cut; a part that a loss of power
//! may take is cut, and reported.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::thread;

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, DroppedData, HEADER_BYTES, LogOpenError, OverflowPolicy, Reader, ReaderStart, Registration,
    SEGMENT_HEADER_BYTES, Writer,
};

use crate::{ScratchLog, payload, read_on};

/// A frame with this payload takes 112 bytes, so that 72 of them fill a segment.
const LENGTH: usize = 88;
const FRAME_BYTES: u64 = 112;
const SEGMENT_BYTES: u64 = 8192;
const FRAMES: u64 = 72;

/// Three segments are full, and a fourth has begun.
const MESSAGES: u64 = 3 * FRAMES + 30;

/// Losses of a file.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// The file ends here.
    Short(u64),
    /// So many bytes from here on are zero.
    Zeros(u64, u64),
}

/// Each loss with the segment and the sequence number at which a reader must detect it.
const LOSSES: [(Loss, u64, u64); 11] = [
    (Loss::Short(segment(1) + 8), 1, FRAMES),
    (Loss::Short(segment(1) + 100), 1, FRAMES),
    (Loss::Short(frame(1, 3) + 50), 1, FRAMES),
    (Loss::Short(frame(1, 3)), 1, FRAMES),
    (Loss::Short(frame(3, 29) + 10), 3, 3 * FRAMES),
    (Loss::Short(segment(1)), 1, FRAMES),
    (Loss::Short(segment(2)), 2, 2 * FRAMES),
    (Loss::Short(segment(3)), 3, 3 * FRAMES),
    (Loss::Zeros(segment(0), 4096), 0, 0),
    (Loss::Zeros(segment(2), 4096), 2, 2 * FRAMES),
    (Loss::Zeros(segment(3), SEGMENT_BYTES), 3, 3 * FRAMES),
];

#[test]
fn a_lost_segment_is_detected_in_the_same_boot() {
    for (loss, at, sequence) in LOSSES {
        let journal = journal(MESSAGES, |_| ());
        lose(&journal, loss);
        refused(&journal, &this_boot(), loss, at, sequence);
    }
}

/// In another boot, or on another host that the journal was copied to.
#[test]
fn a_lost_durable_segment_is_detected_in_any_boot() {
    for (loss, at, sequence) in LOSSES {
        let journal = journal_of([1; 16], MESSAGES, |writer| writer.sync().expect("the disk is there"));
        lose(&journal, loss);
        refused(&journal, &boot([2; 16]), loss, at, sequence);
    }
}

/// Files grow by whole segments: no loss of power ends one in the middle, but a copy to a full disk does.
#[test]
fn half_a_segment_is_detected_by_writer_and_reader() {
    for at in [segment(1) + 8, frame(1, 3), frame(1, 3) + 50, frame(3, 29) + 10] {
        let journal = journal_of([1; 16], MESSAGES, |_| ());
        lose(&journal, Loss::Short(at));
        let index = (at - segment(0)) / SEGMENT_BYTES;
        refused(&journal, &boot([2; 16]), Loss::Short(at), index, index * FRAMES);
    }
}

/// A page of zeros in the last segment, and frames that are wrong, where the log was on the disk.
#[test]
fn a_lost_durable_tail_is_detected() {
    for (loss, at) in [
        (Loss::Zeros(frame(3, 10), 20 * FRAME_BYTES), 3 * FRAMES + 10),
        (Loss::Zeros(frame(3, 29), FRAME_BYTES), 3 * FRAMES + 29),
        (Loss::Zeros(frame(3, 29) + 40, 8), 3 * FRAMES + 29),
        (Loss::Zeros(frame(2, 70), 2 * FRAME_BYTES), 2 * FRAMES + 70),
    ] {
        let journal = journal_of([1; 16], MESSAGES, |writer| writer.sync().expect("the disk is there"));
        lose(&journal, loss);
        refused(&journal, &boot([2; 16]), loss, at / FRAMES, at);
    }
}

/// Unsynced messages after a loss of power: the first pieces stay, and the rest is reported.
#[test]
fn data_that_was_not_durable_is_cut_and_reported() {
    for firm in [None, Some(50), Some(FRAMES), Some(FRAMES + 20)] {
        for (loss, first) in [
            (Loss::Zeros(segment(2), 4096), 2 * FRAMES),
            (Loss::Zeros(segment(3), SEGMENT_BYTES), 3 * FRAMES),
            (Loss::Short(segment(2)), 2 * FRAMES),
            (Loss::Zeros(frame(1, 30), 5 * FRAME_BYTES), FRAMES + 30),
            (Loss::Zeros(frame(1, 40) + 24, 8), FRAMES + 40),
            (Loss::Zeros(frame(1, 71), FRAME_BYTES), FRAMES + 71),
            (Loss::Zeros(frame(3, 10), 5 * FRAME_BYTES), 3 * FRAMES + 10),
            (Loss::Zeros(frame(3, 10) + 24, 8), 3 * FRAMES + 10),
            (Loss::Zeros(frame(3, 29) + 24, 8), 3 * FRAMES + 29),
        ] {
            let sync = |writer: &mut Writer| (Some(writer.sequence()) == firm).then(|| writer.sync()).transpose();
            let journal = journal_of([1; 16], MESSAGES, |writer| assert!(sync(writer).is_ok()));
            lose(&journal, loss);
            let opened = Writer::open(&journal.config, &boot([2; 16]));
            let mut writer = opened.unwrap_or_else(|e| panic!("{loss:?}, firm to {firm:?}: {e}"));
            let cut =
                writer.dropped_data().unwrap_or_else(|| panic!("{loss:?}, firm to {firm:?}: no loss is reported"));
            assert_eq!((cut.sequence, writer.sequence()), (first, first), "{loss:?}, firm to {firm:?}");
            assert!(cut.bytes > 0);
            for sequence in first..first + 200 {
                writer.publish(0, 16, &payload(sequence, LENGTH)).expect("a log that grows takes all");
            }
            writer.sync().expect("the disk is there");
            drop(writer);
            assert_eq!(verified(&journal), Ok(first + 200), "{loss:?}, firm to {firm:?}");
            for later in [[2; 16], [3; 16]] {
                let writer = Writer::open(&journal.config, &boot(later)).expect("it is whole");
                assert_eq!(
                    (writer.dropped_data(), writer.sequence()),
                    (None, first + 200),
                    "{loss:?}, firm to {firm:?}"
                );
            }
        }
    }
}

#[test]
fn a_journal_that_was_lost_whole_starts_anew() {
    let journal = journal_of([1; 16], MESSAGES, |_| ());
    lose(&journal, Loss::Short(segment(0)));
    let writer = Writer::open(&journal.config, &boot([2; 16])).expect("nothing of it was on the disk");
    assert_eq!(writer.dropped_data(), Some(DroppedData { sequence: 0, bytes: 4 * SEGMENT_BYTES }));
}

/// Before the place up to which the log is known to be on the disk, a hole is damage also to another boot.
#[test]
fn a_sync_records_the_durable_tail() {
    let journal = journal_of([1; 16], MESSAGES, |writer| {
        if writer.sequence() == FRAMES + 20 {
            let (mut syncer, tail) = (writer.syncer().expect("the file is there"), writer.tail());
            assert_eq!((tail.sequence, tail.segment, tail.offset), (FRAMES + 20, 1, frame(1, 20) - segment(1)));
            thread::spawn(move || syncer.sync(tail)).join().expect("it ends").expect("the disk is there");
        }
    });
    let whole = fs::read(journal.data()).expect("the file can be read");
    for (frame_at, is_firm) in [(0, true), (10, true), (19, true), (20, false), (40, false)] {
        fs::write(journal.data(), &whole).expect("the file can be written");
        let loss = Loss::Zeros(frame(1, frame_at), 2 * FRAME_BYTES);
        lose(&journal, loss);
        let opened = Writer::open(&journal.config, &boot([2; 16]));
        match opened {
            Err(LogOpenError::Damaged { .. }) => assert!(is_firm, "frame {frame_at} was never on the disk"),
            Ok(writer) => {
                assert!(!is_firm, "frame {frame_at} was on the disk");
                assert_eq!(writer.dropped_data().map(|cut| cut.sequence), Some(FRAMES + frame_at));
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// Remains of kills and full disks are no damage.
#[test]
fn a_segment_under_construction_is_no_part_of_the_log() {
    let end = segment(4);
    for (prepared, word_at, word) in
        [(0, 0, 0), (1, 0, 0), (5000, 0, 0), (SEGMENT_BYTES, end, 9), (3 * SEGMENT_BYTES, 0, 0)]
    {
        let journal = journal(MESSAGES, |_| ());
        let file = OpenOptions::new().write(true).open(journal.data()).expect("the file can be opened");
        file.set_len(end).expect("what a thread prepares is taken away");
        file.set_len(end + prepared).expect("it can be longer");
        if word > 0 {
            // The writer was killed while it opened the segment: the generation is odd.
            file.write_all_at(&u64::to_le_bytes(word), word_at).expect("the file can be written");
        }
        assert_eq!(verified(&journal), Ok(MESSAGES), "{prepared} bytes");
        for _ in 0..2 {
            let mut writer = Writer::open(&journal.config, &this_boot()).expect("nothing is missing");
            assert_eq!(writer.dropped_data(), None);
            for _ in 0..100 {
                let sequence = writer.sequence();
                writer.publish(0, 16, &payload(sequence, LENGTH)).expect("a log that grows takes all");
            }
        }
        assert_eq!(verified(&journal), Ok(MESSAGES + 200), "{prepared} bytes");
    }
}

/// A kill between opening a segment and noting it, and between noting it and ending the segment before.
#[test]
fn a_kill_while_a_segment_is_opened_is_no_damage() {
    for (noted, is_ended) in [(3_u64, false), (4, false), (3, true)] {
        let journal = journal(3 * FRAMES + 1, |_| ());
        let mut data = fs::read(journal.data()).expect("the file can be read");
        data.truncate(segment(4) as usize);
        data[frame(3, 0) as usize..].fill(0);
        if !is_ended {
            data[frame(2, FRAMES) as usize..segment(3) as usize].fill(0);
        }
        note_opened(&mut data, noted);
        fs::write(journal.data(), data).expect("the file can be written");
        let writer = Writer::open(&journal.config, &this_boot()).expect("nothing is missing");
        assert_eq!((writer.dropped_data(), writer.sequence()), (None, 3 * FRAMES));
        drop(writer);
        assert_eq!(verified(&journal), Ok(3 * FRAMES));
        lose(&journal, Loss::Short(segment(3)));
        refused(&journal, &this_boot(), Loss::Short(segment(3)), 3, 3 * FRAMES);
    }
}

/// A loss of power keeps frames of the last segment, but neither its beginning nor the mark that it was opened.
#[test]
fn pieces_of_an_unrecorded_segment_never_become_frames() {
    let journal = journal_of([1; 16], MESSAGES, |_| ());
    let mut data = fs::read(journal.data()).expect("the file can be read");
    data[segment(3) as usize..frame(3, 5) as usize].fill(0);
    note_opened(&mut data, 3);
    fs::write(journal.data(), data).expect("the file can be written");
    let mut writer = Writer::open(&journal.config, &boot([2; 16])).expect("nothing of it was on the disk");
    let cut = writer.dropped_data().expect("it is told");
    assert_eq!((cut.sequence, cut.bytes), (3 * FRAMES, frame(3, 30) - segment(3)));
    for sequence in 3 * FRAMES..3 * FRAMES + 3 {
        writer.publish(0, 16, &payload(sequence, LENGTH)).expect("a log that grows takes all");
    }
    drop(writer);
    let writer = Writer::open(&journal.config, &boot([2; 16])).expect("it is whole");
    assert_eq!((writer.dropped_data(), writer.sequence()), (None, 3 * FRAMES + 3));
    drop(writer);
    assert_eq!(verified(&journal), Ok(3 * FRAMES + 3));
}

#[test]
fn damaged_marks_are_refused() {
    for byte in [1024, 1040, 1048, 2048, 2064, 2072] {
        let journal = journal_of([1; 16], MESSAGES, |writer| writer.sync().expect("the disk is there"));
        let mut data = fs::read(journal.data()).expect("the file can be read");
        data[byte] ^= 4;
        fs::write(journal.data(), data).expect("the file can be written");
        let error = Writer::open(&journal.config, &boot([2; 16])).err().expect("it is damaged");
        assert!(error.to_string().contains("marks"), "byte {byte}: {error}");
        assert!(verified(&journal).is_err());
    }
}

/// Writes the mark that so many segments were opened.
fn note_opened(data: &mut [u8], segments: u64) {
    data[1040..1048].copy_from_slice(&segments.to_le_bytes());
    let sum = crc32c::crc32c(&data[1024..1048]);
    data[1048..1052].copy_from_slice(&sum.to_le_bytes());
}

fn refused(journal: &ScratchLog, calibration: &Calibration, loss: Loss, segment: u64, sequence: u64) {
    let error = Writer::open(&journal.config, calibration).err().unwrap_or_else(|| panic!("{loss:?} is not missed"));
    assert!(matches!(error, LogOpenError::Damaged { .. }), "{loss:?}: {error}");
    let error = error.to_string();
    for part in [format!("sequence {sequence},"), format!("segment {segment}:")] {
        assert!(error.contains(&part), "{loss:?}: no '{part}' in: {error}");
    }
    verified(journal).expect_err("it is not whole");
}

/// Reads the whole log, as `tickpath log verify` does; returns the number of messages.
fn verified(journal: &ScratchLog) -> Result<u64, String> {
    let reader = Reader::open(journal.place(), ReaderStart::Oldest, Registration::Unregistered);
    let mut reader = reader.map_err(|e| e.to_string())?;
    let mut count = 0;
    loop {
        match reader.drain(usize::MAX, |_| count += 1) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    reader.check_end().map_err(|e| e.to_string())?;
    assert_eq!(read_on(&mut journal.observer(ReaderStart::Oldest), 0), count);
    Ok(count)
}

/// Returns a closed journal of this boot; `meanwhile` runs after each message.
fn journal(messages: u64, meanwhile: impl FnMut(&mut Writer)) -> ScratchLog {
    journal_of(this_boot().boot_id, messages, meanwhile)
}

fn journal_of(boot_id: [u8; 16], messages: u64, mut meanwhile: impl FnMut(&mut Writer)) -> ScratchLog {
    let mut scratch = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    scratch.config = Config { segment_bytes: SEGMENT_BYTES as usize, ..scratch.config.clone() };
    let mut writer = Writer::open(&scratch.config, &boot(boot_id)).expect("it can be made");
    for sequence in 0..messages {
        writer.publish(0, 17, &payload(sequence, LENGTH)).expect("a log that grows takes all");
        meanwhile(&mut writer);
    }
    scratch
}

/// Damages a new copy of the file: a thread that still prepares segments of the old one must not lengthen this one.
fn lose(journal: &ScratchLog, loss: Loss) {
    let mut data = fs::read(journal.data()).expect("the file can be read");
    match loss {
        Loss::Short(at) => data.truncate(at as usize),
        Loss::Zeros(at, bytes) => data[at as usize..(at + bytes) as usize].fill(0),
    }
    fs::remove_file(journal.data()).expect("the file is there");
    fs::write(journal.data(), data).expect("the file can be written");
}

pub fn boot(boot_id: [u8; 16]) -> Calibration {
    let mut calibration = Calibration::nanoseconds();
    calibration.boot_id = boot_id;
    calibration
}

pub fn this_boot() -> Calibration {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux says it");
    let number = u128::from_str_radix(text.trim().replace('-', "").as_str(), 16).expect("it is a number");
    boot(number.to_be_bytes())
}

const fn segment(index: u64) -> u64 {
    HEADER_BYTES as u64 + index * SEGMENT_BYTES
}

const fn frame(index: u64, number: u64) -> u64 {
    segment(index) + SEGMENT_HEADER_BYTES as u64 + number * FRAME_BYTES
}
