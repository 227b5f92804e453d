//! Processes that are killed: the writer in the middle of its work, a reader that holds a writer, a sleeper.

use tickpath_clock::{Calibration, Wait};
use tickpath_log::{
    LogBatchError, LogPath, LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer,
};

use crate::process::{ChildProcess, PLACE, POLICY, ROLE, print_number};
use crate::{
    ALL_POLICIES, Dice, ScratchLog, group_access, hostile_writer, locks, payload, queue_kill, read_on, seed, tiny,
};

/// Max turns of a child before it is killed.
const TURNS: u64 = 1_000_000;

/// Messages of a batch: less than a segment's.
const BATCH: u64 = 20;

#[test]
fn acknowledged_messages_survive_a_kill_of_the_writer() {
    let mut dice = Dice::new(seed());
    for scratch in [ScratchLog::shared(OverflowPolicy::Keep, 0), ScratchLog::on_disk(OverflowPolicy::Keep, 0)] {
        let (mut end, mut read) = (0, 0);
        for _ in 0..15 {
            let mut child = ChildProcess::start("writer", scratch.place(), OverflowPolicy::Keep);
            let first = child.lines.next_number().expect("the child writes");
            assert_eq!(first, end, "a new writer goes on where the last one was killed");
            let mut acknowledged = child.lines.skip(dice.below(3000));
            child.kill();
            acknowledged = child.lines.last_number().or(acknowledged).or(Some(first));
            let writer = scratch.writer();
            let last = acknowledged.expect("at least one is acknowledged");
            // The log may hold one message whose acknowledgement was never written.
            assert!((last + 1..=last + 2).contains(&writer.sequence()), "{last} acknowledged, {}", writer.sequence());
            end = writer.sequence();
            let mut reader = scratch.observer(ReaderStart::Sequence(read));
            read = read_on(&mut reader, read);
            assert_eq!(read, end);
        }
        assert_eq!(read_on(&mut scratch.observer(ReaderStart::Oldest), 0), end);
    }
}

/// A batch that fits a segment is whole or absent, wherever its writer was killed.
#[test]
fn a_batch_is_whole_or_absent_after_a_kill() {
    let mut dice = Dice::new(seed());
    let scratches = ALL_POLICIES.map(|policy| ScratchLog::shared(policy, 3)).into_iter();
    for scratch in scratches.chain([ScratchLog::on_disk(OverflowPolicy::Keep, 0)]) {
        for _ in 0..10 {
            let mut child = ChildProcess::start("batcher", scratch.place(), scratch.config.policy);
            let first = child.lines.next_number().expect("the child writes");
            assert!(first.is_multiple_of(BATCH), "a new writer goes on behind a whole batch, not at {first}");
            let mut reader = scratch.reader(ReaderStart::Now);
            let mut at = reader.sequence();
            for _ in 0..dice.below(300) {
                at = read_past(&mut reader, at);
                child.lines.skip(1);
            }
            child.kill();
            at = read_past(&mut reader, at);
            assert!(at.is_multiple_of(BATCH), "{at} are read, and batches have {BATCH} messages");
            let mut writer = scratch.writer();
            assert_eq!(writer.sequence(), at);
            publish_batch(&mut writer, at).expect("there is room");
            assert_eq!(read_past(&mut reader, at), at + BATCH);
        }
    }
}

/// Reads to the end of the log, over missed messages; the rest comes in whole batches.
fn read_past(reader: &mut Reader, mut at: u64) -> u64 {
    loop {
        match reader.next().expect("the log is sound") {
            Next::Message(message) => {
                assert_eq!((message.sequence, message.payload), (at, &payload(at, (at % 50) as usize)[..]));
                at += 1;
            }
            Next::Gap(missed) => at += missed,
            Next::Empty => {
                assert!(at.is_multiple_of(BATCH), "a part of a batch is seen, up to {at}");
                return at;
            }
        }
    }
}

fn publish_batch(writer: &mut Writer, first: u64) -> Result<(), LogBatchError> {
    let messages: Vec<_> = (first..first + BATCH).map(|at| payload(at, (at % 50) as usize)).collect();
    let batch: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    writer.publish_batch(0, 16, &batch)
}

fn publish_batches_for_ever(place: &LogPath, policy: OverflowPolicy) {
    let config = tiny(place.clone(), policy, 3);
    let mut writer = Writer::open(&config, &Calibration::nanoseconds()).expect("the last writer is dead");
    print_number(writer.sequence());
    for _ in 0..TURNS {
        let first = writer.sequence();
        match publish_batch(&mut writer, first) {
            Ok(()) => print_number(first),
            Err(LogBatchError { done: 0, error: LogPublishError::Full | LogPublishError::NoReader }) => {
                tickpath_clock::yield_now();
            }
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn a_ring_continues_after_a_kill_of_its_writer() {
    let mut dice = Dice::new(seed());
    let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    let mut before = None;
    for _ in 0..10 {
        let mut child = ChildProcess::start("writer", scratch.place(), OverflowPolicy::Overwrite);
        let first = child.lines.next_number();
        assert!(first >= before, "{first:?} after {before:?}");
        child.lines.skip(dice.below(3000));
        child.kill();
        let last = child.lines.last_number().or(first).expect("at least one is acknowledged");
        let mut writer = scratch.writer();
        assert!(writer.sequence() > last);
        let mut reader = scratch.reader(ReaderStart::Oldest);
        let from = reader.sequence();
        assert_eq!(read_on(&mut reader, from), writer.sequence());
        let next = writer.sequence();
        writer.publish(0, 16, &payload(next, 40)).expect("an overwrite log takes all");
        assert_eq!(read_on(&mut reader, next), next + 1);
        before = Some(next + 1);
    }
}

#[test]
fn a_killed_reader_does_not_block_the_writer() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    let mut ours = scratch.reader(ReaderStart::Now);
    let mut child = ChildProcess::start("reader", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(child.lines.next_number(), Some(0));
    let mut at = 0;
    let refused = loop {
        match writer.publish(0, 16, &payload(at, 100)) {
            Ok(_) => at = read_on(&mut ours, at),
            Err(e) => break e,
        }
        assert!(at < 1000, "the child must hold the writer");
    };
    assert!(matches!(refused, LogPublishError::Full), "{refused}");
    assert!(matches!(writer.publish(0, 16, b"again"), Err(LogPublishError::Full)), "the child still lives");
    child.kill();
    for _ in 0..1000 {
        writer.publish(0, 16, &payload(at, 100)).expect("the dead are buried");
        at = read_on(&mut ours, at);
    }
    assert_eq!(writer.readers(), 1);
    drop(ours);
    assert!(matches!(writer.publish(0, 16, b"x"), Err(LogPublishError::NoReader)));
}

#[test]
fn a_kill_of_the_last_reader_leaves_no_reader() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    let mut child = ChildProcess::start("reader", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(child.lines.next_number(), Some(0));
    child.kill();
    let refused = (0..1000).find_map(|at| writer.publish(0, 16, &payload(at, 100)).err());
    assert!(matches!(refused, Some(LogPublishError::NoReader)), "{refused:?}");
    let mut reader = scratch.reader(ReaderStart::Now);
    let next = writer.sequence();
    writer.publish(0, 16, &payload(next, 100)).expect("there is a reader again");
    assert_eq!(read_on(&mut reader, next), next + 1);
}

#[test]
fn a_killed_sleeper_leaves_no_flag() {
    for policy in ALL_POLICIES {
        let scratch = ScratchLog::shared(policy, 2);
        let mut writer = scratch.writer();
        for round in 0..3 {
            let mut child = ChildProcess::start("sleeper", scratch.place(), policy);
            assert_eq!(child.lines.next_number(), Some(round));
            child.kill();
            let mut reader = scratch.reader(ReaderStart::Now);
            let registered = reader.readers();
            assert_eq!(registered.len(), 1, "its cursor is taken over: {registered:?}");
            assert_eq!(registered[0].pid, std::process::id());
            writer.publish(0, 16, &payload(round, 100)).expect("there is room");
            reader.wait(Wait::Block, 1);
            assert_eq!(read_on(&mut reader, round), round + 1);
        }
    }
}

/// Runs the role of a child, if this process is one.
pub fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let variable = |name| std::env::var(name).expect("the parent has set it");
    let place: LogPath = variable(PLACE).parse().expect("the parent names a place");
    let name = variable(POLICY);
    let policy = ALL_POLICIES.into_iter().find(|policy| policy.name() == name).expect("the parent names a policy");
    match role.as_str() {
        "writer" => publish_for_ever(&place, policy),
        "batcher" => publish_batches_for_ever(&place, policy),
        "reader" => hold(&place, Wait::Yield),
        "mandatory" => read_for_ever(&place),
        "sleeper" => hold(&place, Wait::Block),
        role @ ("unguarded" | "signalled") => hostile_writer::child(role, &place),
        role @ ("reading parent" | "writing parent" | "changing parent" | "changed" | "asker") => {
            locks::child(role, &place);
        }
        "group reader" => group_access::child(&place),
        role => queue_kill::child(role, &place),
    }
}

fn publish_for_ever(place: &LogPath, policy: OverflowPolicy) {
    let config = tiny(place.clone(), policy, 2);
    let mut writer = Writer::open(&config, &Calibration::nanoseconds()).expect("the last writer is dead");
    for _ in 0..TURNS {
        let sequence = writer.sequence();
        let bytes = payload(sequence, (sequence * 13 % 300) as usize);
        writer.publish(0, 16, &bytes).expect("neither a ring that overwrites nor one that grows is full");
        print_number(sequence);
    }
}

/// Reports the reading position, until it is killed.
fn read_for_ever(place: &LogPath) {
    let mut reader = Reader::open(place, ReaderStart::Cursor, Registration::Mandatory).expect("the parent writes");
    print_number(reader.sequence());
    for _ in 0..TURNS {
        if let Next::Message(message) = reader.next().expect("the log is sound") {
            print_number(message.sequence + 1);
        } else {
            tickpath_clock::sleep_ns(1_000_000);
        }
    }
}

/// Registers, reports the position, and reads only an empty log until it is killed.
fn hold(place: &LogPath, wait: Wait) {
    let mut reader = Reader::open(place, ReaderStart::Now, Registration::Registered).expect("the parent writes");
    print_number(reader.sequence());
    for _ in 0..TURNS {
        if wait == Wait::Block {
            assert_eq!(reader.next().expect("the log is sound"), Next::Empty);
        }
        reader.wait(wait, 1_000_000_000);
        if wait == Wait::Yield {
            tickpath_clock::sleep_ns(1_000_000);
        }
    }
}
