//! Owner and users of a log, and the retirement of a stale log under its users.

use std::fs;

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, HEADER_BYTES, LogOpenError, LogOwner, LogPublishError, OverflowPolicy, Reader, ReaderStart, Registration,
    Writer, force_remove, mandatory_reader, owner, remove_stale, writer,
};

use crate::process::ChildProcess;
use crate::{ALL_POLICIES, ScratchLog, payload, read_on};

const OURS: LogOwner = LogOwner { journal: 7, incarnation: 3, base: 41 };

#[test]
fn a_log_reports_its_owner() {
    for policy in ALL_POLICIES {
        let mut scratch = ScratchLog::shared(policy, 2);
        assert!(matches!(owner(scratch.place()), Err(LogOpenError::NotFound(_))));
        scratch.config.owner = OURS;
        let writer = scratch.writer();
        let reader = scratch.reader(ReaderStart::Now);
        let owners = [writer.owner(), reader.owner(), owner(scratch.place()).expect("it is there")];
        assert_eq!(owners, [OURS; 3]);
        drop(writer);
        scratch.config.owner = LogOwner::default();
        assert_eq!(scratch.writer().owner(), OURS, "a later open changes nothing");
    }
    let nobodys = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    assert_eq!(nobodys.writer().owner(), LogOwner { journal: 0, incarnation: 0, base: 0 });
}

#[test]
fn open_existing_creates_nothing() {
    let join = |scratch: &ScratchLog| Writer::open_existing(&scratch.config, &Calibration::nanoseconds());
    for policy in ALL_POLICIES {
        let scratch = ScratchLog::shared(policy, 2);
        assert!(matches!(join(&scratch), Err(LogOpenError::NotFound(_))));
        assert!(!scratch.place().dir().exists(), "not even its folder");
        let writer = scratch.writer();
        assert!(matches!(join(&scratch), Err(LogOpenError::HasWriter { .. })));
        drop(writer);
        let mut writer = join(&scratch).expect("it is there");
        let mut reader = scratch.reader(ReaderStart::Now);
        writer.publish(0, 16, &payload(0, 9)).expect("there is room");
        assert_eq!(read_on(&mut reader, 0), 1);
        drop(writer);
        unmake(&scratch);
        assert!(matches!(join(&scratch), Err(LogOpenError::NotFound(_))), "{policy}: half made is not there");
    }
}

/// A kill between the file and its first segment: other processes know its first number already.
#[test]
fn an_empty_log_begins_with_the_number_that_it_was_made_for() {
    for scratch in ALL_POLICIES.iter().flat_map(|&p| [ScratchLog::shared(p, 2), ScratchLog::on_disk(p, 2)]) {
        let made = Config { first_sequence: 90, ..scratch.config.clone() };
        drop(Writer::open(&made, &Calibration::nanoseconds()).expect("it can be made"));
        unmake(&scratch);
        let mut writer = scratch.writer();
        assert_eq!(writer.sequence(), 90);
        let mut reader = scratch.reader(ReaderStart::Oldest);
        writer.publish(0, 16, &payload(90, 9)).expect("there is room");
        assert_eq!(read_on(&mut reader, 90), 91);
    }
}

#[test]
fn a_writer_of_a_retired_log_gets_an_error() {
    for mandatory in [true, false] {
        let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        scratch.config.mandatory = mandatory;
        let mut writer = scratch.writer();
        let registration = if mandatory { Registration::Mandatory } else { Registration::Registered };
        let reader = Reader::open(scratch.place(), ReaderStart::Now, registration).expect("it is there");
        let recorder = scratch.reader(ReaderStart::Now);
        writer.publish(0, 16, b"before").expect("it is read");
        if mandatory {
            let refused = remove_stale(scratch.place()).expect_err("its reader lives");
            assert!(matches!(refused, LogOpenError::HasReader { pid, .. } if pid == std::process::id()), "{refused}");
            writer.publish(0, 16, b"still").expect("a refusal changes nothing");
            drop(reader);
        }
        remove_stale(scratch.place()).expect("it is stale");
        assert!(!scratch.place().dir().exists());
        assert!(matches!(writer.publish(0, 16, b"after"), Err(LogPublishError::NoReader)), "mandatory: {mandatory}");
        assert!(matches!(owner(scratch.place()), Err(LogOpenError::NotFound(_))));
        drop((recorder, writer));
        remove_stale(scratch.place()).expect("twice is no error");
        drop(scratch.writer());
    }
}

/// The cursor shows that a reader exists, as an OMS finds a lane of a killed OMS.
#[test]
fn the_lane_of_a_killed_reader_is_retired() {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    scratch.config.mandatory = true;
    let mut writer = scratch.writer();
    let mut child = ChildProcess::start("mandatory", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(child.lines.next_number(), Some(0));
    assert!(matches!(remove_stale(scratch.place()), Err(LogOpenError::HasReader { .. })));
    child.kill();
    remove_stale(scratch.place()).expect("its reader is dead");
    assert!(matches!(writer.publish(0, 16, b"after"), Err(LogPublishError::NoReader)));
}

/// The holder of a lock on a file with shared write access is not trusted.
#[test]
fn a_living_mandatory_reader_is_named_and_can_be_overridden() {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    scratch.config.mandatory = true;
    let ours = Some(std::process::id());
    let mut old = scratch.writer();
    let reader = Reader::open(scratch.place(), ReaderStart::Now, Registration::Mandatory).expect("it is there");
    assert_eq!((writer(scratch.place()), mandatory_reader(scratch.place())), (ours, ours));
    force_remove(scratch.place()).expect("it asks no process");
    assert_eq!((writer(scratch.place()), mandatory_reader(scratch.place())), (None, None));
    assert!(matches!(old.publish(0, 16, b"after"), Err(LogPublishError::NoReader)));
    drop(scratch.writer());
    drop(reader);
}

#[test]
fn a_damaged_log_is_retired() {
    for (file, bytes) in [("data", &b"no log"[..]), ("data", b""), ("control", b"none"), ("control", &[7; 30_000])] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        drop(scratch.writer());
        fs::write(scratch.place().dir().join(file), bytes).expect("the file can be written");
        remove_stale(scratch.place()).unwrap_or_else(|e| panic!("{file} of {} bytes: {e}", bytes.len()));
        assert!(!scratch.place().dir().exists());
    }
}

/// Leaves the log like a writer killed between its file and its first segment.
fn unmake(scratch: &ScratchLog) {
    let mut data = fs::read(scratch.data()).expect("the file can be read");
    if scratch.config.policy == OverflowPolicy::Keep {
        data.truncate(HEADER_BYTES);
    }
    // The marks of opened segments in the header page are cleared, too.
    data[1024..].fill(0);
    fs::write(scratch.data(), data).expect("the file can be written");
}
