//! A `fail` log with a mandatory reader: nothing unread by this reader is recycled, whether it lives or not, and the
//! writer detects its absence, even beside other readers.

use std::fs;

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, LogOpenError, LogPath, LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer,
};

use crate::process::ChildProcess;
use crate::{ScratchLog, payload, read_on};

const LENGTH: usize = 100;

/// The purpose: a recorder reads along, the reader is killed, the writer continues for more than a ring.
#[test]
fn unread_messages_stay_while_the_mandatory_reader_is_dead() {
    let scratch = lane(2);
    let mut writer = scratch.writer();
    let mut recorder = scratch.reader(ReaderStart::Now);
    let mut child = ChildProcess::start("mandatory", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(child.lines.next_number(), Some(0));
    for number in 0..10 {
        publish(&mut writer).expect("the reader is there");
        assert_eq!(child.lines.next_number(), Some(number + 1), "the child has read it");
    }
    read_on(&mut recorder, 0);
    child.kill();
    let mut at = writer.sequence();
    let refused = (0..1000).find_map(|_| {
        let refused = publish(&mut writer).err();
        at = read_on(&mut recorder, at);
        refused
    });
    assert!(matches!(refused, Some(LogPublishError::NoReader)), "{refused:?}");
    let end = writer.sequence();
    // Frames of 128 bytes, 31 a segment: the child has confirmed what lies before the last that it read.
    assert!((31..=62).contains(&end), "{end} messages fit into two segments");
    assert!(matches!(writer.check_room(LENGTH), Err(LogPublishError::NoReader)));
    let mut reader = mandatory(&scratch, ReaderStart::Cursor);
    let from = reader.sequence();
    assert!((9..=10).contains(&from), "it goes on where it was killed, not at {from}");
    assert_eq!(read_on(&mut reader, from), end);
    publish(&mut writer).expect("it is read again");
}

#[test]
fn a_recorder_alone_does_not_count_as_a_reader() {
    let scratch = lane(3);
    let mut writer = scratch.writer();
    let _recorder = scratch.reader(ReaderStart::Oldest);
    assert!(matches!(publish(&mut writer), Err(LogPublishError::NoReader)));
    let reader = mandatory(&scratch, ReaderStart::Now);
    publish(&mut writer).expect("the one that it names is there");
    assert_eq!(writer.readers(), 2);
    drop(reader);
    assert!(matches!(publish(&mut writer), Err(LogPublishError::NoReader)), "at once after a clean end");
    assert!(matches!(writer.check_room(0), Err(LogPublishError::NoReader)));
    assert_eq!(writer.readers(), 1, "a reader that is away is not counted");
    let away: Vec<_> =
        scratch.observer(ReaderStart::Oldest).readers().into_iter().filter(|reader| reader.away).collect();
    assert_eq!(away.iter().map(|reader| (reader.slot, reader.cursor, reader.pid)).collect::<Vec<_>>(), [(0, 0, 0)]);
}

/// Other registered readers hold the writer as usual, and are removed as usual when they die.
#[test]
fn a_recorder_holds_the_writer_too() {
    let scratch = lane(2);
    let mut writer = scratch.writer();
    let mut reader = mandatory(&scratch, ReaderStart::Now);
    let mut recorder = ChildProcess::start("reader", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(recorder.lines.next_number(), Some(0));
    let mut at = 0;
    while publish(&mut writer).is_ok() {
        at = read_on(&mut reader, at);
        assert!(at < 1000, "the recorder must hold the writer");
    }
    reader.next().expect("the log is sound");
    assert!(matches!(publish(&mut writer), Err(LogPublishError::Full)), "the recorder still lives");
    recorder.kill();
    for _ in 0..200 {
        publish(&mut writer).expect("the dead are buried");
        at = read_on(&mut reader, at);
    }
}

#[test]
fn the_cursor_moves_by_confirmations() {
    let scratch = lane(2);
    let mut writer = scratch.writer();
    let mut reader = mandatory(&scratch, ReaderStart::Cursor);
    reader.freeze_cursor();
    let cursor = |reader: &Reader| reader.readers()[0].cursor;
    let mut at = 0;
    while publish(&mut writer).is_ok() {
        at = read_on(&mut reader, at);
        assert!(at < 1000, "what is not confirmed must hold the writer");
    }
    assert_eq!((at, cursor(&reader)), (writer.sequence(), 0));
    reader.confirm(20);
    assert_eq!(cursor(&reader), 20);
    reader.confirm(7);
    assert_eq!(cursor(&reader), 20, "never back");
    assert!(matches!(writer.check_room(LENGTH), Err(LogPublishError::Full)), "message 20 lies in the first segment");
    reader.confirm(u64::MAX);
    assert_eq!(cursor(&reader), at, "never beyond what was read");
    publish(&mut writer).expect("all of the first segment is confirmed");
    drop(reader);
    let reader = mandatory(&scratch, ReaderStart::Cursor);
    assert_eq!((reader.sequence(), cursor(&reader)), (at, at));
}

/// The reader may begin elsewhere than at its cursor, also further back; everything from there on stays.
#[test]
fn a_mandatory_reader_starts_at_the_requested_position() {
    let scratch = lane(2);
    let mut writer = scratch.writer();
    let mut reader = mandatory(&scratch, ReaderStart::Now);
    let mut at = 0;
    for _ in 0..200 {
        publish(&mut writer).expect("it is read");
        at = read_on(&mut reader, at);
    }
    drop(reader);
    for back in [3, 30, 200, 0] {
        let mut reader = mandatory(&scratch, ReaderStart::Sequence(at - back));
        let from = reader.sequence();
        assert!(from == at - back || back == 200 && from > 0, "{from} instead of {}", at - back);
        if from > at - back {
            assert_eq!(reader.next().expect("the log is sound"), Next::Gap(from - (at - back)));
        }
        assert_eq!(reader.readers()[0].cursor, from);
        reader.freeze_cursor();
        fill(&mut writer);
        assert_eq!(read_on(&mut reader, from), writer.sequence(), "nothing is recycled in front of it");
        at = writer.sequence();
        reader.confirm(at);
    }
    let refused = Reader::open(scratch.place(), ReaderStart::Sequence(at + 1), Registration::Mandatory).err();
    assert!(matches!(refused, Some(LogOpenError::BeyondTail { .. })), "{refused:?}");
    assert_eq!(mandatory(&scratch, ReaderStart::Cursor).sequence(), at, "a start that is refused moves nothing");
}

#[test]
fn a_log_has_at_most_one_mandatory_reader() {
    let open = |place: &LogPath| Reader::open(place, ReaderStart::Cursor, Registration::Mandatory).err();
    let scratch = lane(2);
    let writer = scratch.writer();
    let reader = mandatory(&scratch, ReaderStart::Cursor);
    let ours = std::process::id();
    assert!(matches!(open(scratch.place()), Some(LogOpenError::HasReader { pid, .. }) if pid == ours));
    drop((reader, writer));
    assert!(open(scratch.place()).is_none());

    let plain = ScratchLog::shared(OverflowPolicy::Fail, 2);
    drop(plain.writer());
    assert!(matches!(open(plain.place()), Some(LogOpenError::NoMandatory(_))));
    assert_eq!(plain.reader(ReaderStart::Cursor).sequence(), 0, "others have no cursor from before");
    let wanted = Config { mandatory: true, ..plain.config.clone() };
    let refused = Writer::open(&wanted, &Calibration::nanoseconds()).err();
    assert!(matches!(refused, Some(LogOpenError::ConfigMismatch { .. })), "{refused:?}");

    for policy in [OverflowPolicy::Overwrite, OverflowPolicy::Keep] {
        let config = Config { mandatory: true, ..ScratchLog::shared(policy, 2).config.clone() };
        let refused =
            Writer::open(&config, &Calibration::nanoseconds()).err().expect("only `fail` has a mandatory reader");
        assert!(refused.to_string().contains("use 'fail'"), "{refused}");
    }
    let queue = Config { mandatory: true, ..ScratchLog::shared(OverflowPolicy::Fail, 2).config.clone() };
    assert!(matches!(Writer::open_queue(&queue, &Calibration::nanoseconds()), Err(LogOpenError::Config(_))));
}

#[test]
fn a_recreated_control_file_names_the_mandatory_reader() {
    let scratch = lane(2);
    let mut writer = scratch.writer();
    let mut reader = mandatory(&scratch, ReaderStart::Now);
    (0..20).for_each(|_| assert!(publish(&mut writer).is_ok()));
    read_on(&mut reader, 0);
    drop((writer, reader));
    fs::remove_file(scratch.place().dir().join("control")).expect("it is there");
    let mut writer = scratch.writer();
    assert!(matches!(publish(&mut writer), Err(LogPublishError::NoReader)));
    let mut reader = mandatory(&scratch, ReaderStart::Cursor);
    assert_eq!(read_on(&mut reader, 0), 20, "nothing counts as read");
    fill(&mut writer);
    assert_eq!(read_on(&mut reader, 20), writer.sequence());
}

/// There is room exactly when the next message fits, also where it begins a segment.
#[test]
fn check_room_predicts_the_next_publish() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    assert!(matches!(writer.check_room(0), Err(LogPublishError::NoReader)));
    let mut reader = scratch.reader(ReaderStart::Now);
    let mut at = 0;
    for turn in 0..200 {
        let length = [0, 100, 700, 1500][turn % 4];
        for _ in 0..50 {
            let room = writer.check_room(length);
            let published = writer.publish(0, 16, &payload(at, length));
            assert_eq!(room.is_ok(), published.is_ok(), "{room:?}, {published:?} for {length} bytes");
            at += u64::from(published.is_ok());
        }
        let from = reader.sequence();
        assert_eq!(read_on(&mut reader, from), at);
    }
    let too_long = writer.max_payload() + 1;
    assert!(matches!(writer.check_room(too_long), Err(LogPublishError::TooLarge { bytes, .. }) if bytes == too_long));
}

/// Makes a lane like an OMS's, in shared memory.
fn lane(segments: usize) -> ScratchLog {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, segments);
    scratch.config.mandatory = true;
    scratch
}

fn mandatory(scratch: &ScratchLog, start: ReaderStart) -> Reader {
    Reader::open(scratch.place(), start, Registration::Mandatory).expect("there is no other mandatory reader")
}

/// Publishes until the reader holds the writer.
fn fill(writer: &mut Writer) {
    assert!((0..1000).any(|_| publish(writer).is_err()), "a ring of some pages is never full");
}

fn publish(writer: &mut Writer) -> Result<u64, LogPublishError> {
    let number = writer.sequence();
    writer.publish(0, 16, &payload(number, LENGTH))
}
