//! Queues: each message goes to one puller, and stays until it is done.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tickpath_clock::{Calibration, Wait, sleep_ns, yield_now};
use tickpath_log::{
    ClaimedMessage, Config, LogOpenError, LogPublishError, LogReadError, MAX_PULLERS, OverflowPolicy, QueueDelivery,
    QueuePuller, Writer, queue_backlog,
};

use crate::{ALL_POLICIES, Dice, ScratchLog, payload, pull, seed};

/// Attempts at an operation that other threads must make possible.
const TRIES: u64 = 20_000_000;

/// Far longer than a test runs: a wake-up that is lost shows as a test that does not end.
const ASLEEP_NS: u64 = 3_600_000_000_000;

/// How long a test may hang before it fails.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

#[test]
fn a_queue_without_a_puller_keeps_messages_until_it_is_full() {
    for segments in [2, 3, 8] {
        for scratch in
            [ScratchLog::shared(OverflowPolicy::Fail, segments), ScratchLog::on_disk(OverflowPolicy::Fail, segments)]
        {
            let mut writer = scratch.queue();
            for lap in 0..3 {
                let (first, end) = fill(&mut writer);
                // Frames of 128 bytes: 31 a segment.
                let room = 31 * (segments as u64 - 1)..=31 * segments as u64;
                assert!(room.contains(&(end - first)), "lap {lap}: {} messages fit {segments} segments", end - first);
                assert_eq!(queue_backlog(scratch.place()).expect("the queue is there"), end - first);
                let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
                assert_eq!(pull(&mut puller, usize::MAX), fresh(first..end));
                assert!(matches!(publish(&mut writer), Err(LogPublishError::Full)), "nothing is acknowledged yet");
                puller.acknowledge();
            }
        }
    }
}

/// A message that was handed over stays in place while the puller reads it, however full the queue is pushed
/// meanwhile.
#[test]
fn a_message_stays_while_it_is_handed_over() {
    for delivery in [QueueDelivery::AtMostOnce, QueueDelivery::AtLeastOnce] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        let mut writer = scratch.queue();
        let mut puller = scratch.puller(delivery);
        for _ in 0..200 {
            fill(&mut writer);
            let pulled = puller.pull(20, |ClaimedMessage { message, .. }| {
                fill(&mut writer);
                assert_eq!(message.payload, payload(message.sequence, 100), "message {}", message.sequence);
            });
            assert_eq!(pulled.expect("the queue is sound"), 20);
            puller.acknowledge();
        }
    }
}

/// Other pullers run for laps; a puller that slept meanwhile resumes with them, and receives no gap.
#[test]
fn a_lapped_puller_continues() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    let [mut quick, mut slow] = [(); 2].map(|()| scratch.puller(QueueDelivery::AtLeastOnce));
    for round in 0..50 {
        for _ in 0..round * 7 {
            let number = publish(&mut writer).expect("all before it are done");
            assert_eq!(pull(&mut quick, 1), [(number, false)]);
            quick.acknowledge();
        }
        let number = publish(&mut writer).expect("all before it are done");
        assert_eq!(pull(&mut slow, 2), [(number, false)]);
        slow.acknowledge();
    }
}

/// Pullers that acknowledge, or leave and rejoin, while the ring is recycled: all messages are acknowledged once.
#[test]
fn pullers_come_and_go_while_the_writer_recycles() {
    const MESSAGES: u64 = 50_000;
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 3);
    let mut writer = scratch.queue();
    let (done, seed) = (AtomicU64::new(0), seed());
    let shares: Vec<PullerTally> = thread::scope(|scope| {
        let (scratch, done) = (&scratch, &done);
        scope.spawn(move || (0..MESSAGES).for_each(|_| publish_patiently(&mut writer)));
        let pullers = [1, 2, 3].map(|n| scope.spawn(move || share(scratch, done, MESSAGES, Dice::new(seed + n))));
        pullers.into_iter().map(|puller| puller.join().expect("the puller's checks hold")).collect()
    });
    let mut acknowledged: Vec<u64> = shares.iter().flat_map(|share| share.acknowledged.clone()).collect();
    acknowledged.sort_unstable();
    assert!(acknowledged.into_iter().eq(0..MESSAGES), "some are lost, or done twice");
    let mut first: Vec<u64> = shares.iter().flat_map(|share| share.first.clone()).collect();
    first.sort_unstable();
    assert!(first.into_iter().eq(0..MESSAGES), "each comes once without a mark");
    assert_eq!(queue_backlog(scratch.place()).expect("the queue is there"), 0);
}

#[test]
fn each_message_wakes_a_sleeper() {
    const MESSAGES: u64 = 5_000;
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    let (done, ended) = channel();
    thread::spawn(move || {
        for number in 0..MESSAGES {
            while pull(&mut puller, 1) != [(number, false)] {
                puller.wait(Wait::Block, ASLEEP_NS);
            }
            puller.acknowledge();
            done.send(number).expect("the test waits");
        }
    });
    for number in 0..MESSAGES {
        publish(&mut writer).expect("all before it are done");
        assert_eq!(ended.recv_timeout(WAIT_LIMIT), Ok(number), "it sleeps for ever, or has failed");
    }
}

#[test]
fn a_sleeping_puller_gets_messages_of_a_dropped_one() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    let [mut leaving, mut puller] = [(); 2].map(|()| scratch.puller(QueueDelivery::AtLeastOnce));
    publish(&mut writer).expect("there is room");
    assert_eq!(pull(&mut leaving, 1), [(0, false)]);
    let (done, ended) = channel();
    thread::spawn(move || {
        while pull(&mut puller, 1) != [(0, true)] {
            puller.wait(Wait::Block, ASLEEP_NS);
        }
        done.send(()).expect("the test waits");
    });
    // Time to fall asleep; if it has not, the test sees less.
    sleep_ns(20_000_000);
    drop(leaving);
    ended.recv_timeout(WAIT_LIMIT).expect("it sleeps for ever, or has failed");
}

/// Files as a loss of power during a flush may leave them: of three files one is as it was before, or gone.
#[test]
fn unacknowledged_messages_outlive_their_files() {
    for (file, is_gone) in [("data", false), ("control", false), ("control", true), ("queue", false), ("queue", true)] {
        eprintln!("{file}, gone: {is_gone}");
        check_loss(file, is_gone);
    }
}

/// A damaged byte on the disk costs one message, and not the queue.
#[test]
fn a_damaged_message_is_set_aside_and_reported_once() {
    for delivery in [QueueDelivery::AtMostOnce, QueueDelivery::AtLeastOnce] {
        for (bad, limit, is_reopened) in [(0, 10, false), (0, 1, true), (4, 10, true), (4, 1, false), (9, 10, false)] {
            let scratch = ScratchLog::on_disk(OverflowPolicy::Fail, 2);
            let mut writer = scratch.queue();
            (0..10).for_each(|_| assert!(publish(&mut writer).is_ok()));
            let file = fs::OpenOptions::new().write(true).open(scratch.data()).expect("the file can be opened");
            // Frames of 128 bytes, behind the headers of the log and of the segment.
            file.write_all_at(&[0xa5; 3], 4096 + 128 + bad * 128 + 50).expect("the file can be written");
            if is_reopened {
                drop(writer);
                writer = scratch.queue();
                assert_eq!(writer.sequence(), 10, "those behind it are not cut with it");
            }
            let mut puller = scratch.puller(delivery);
            let (mut came, mut told) = (Vec::new(), Vec::new());
            for _ in 0..30 {
                match puller.pull(limit, |pulled| came.push(pulled.message.sequence)) {
                    Ok(_) => puller.acknowledge(),
                    Err(e) => told.push(e),
                }
            }
            assert!(came.into_iter().eq((0..10).filter(|number| *number != bad)), "{delivery:?}, {bad}, {limit}");
            let [LogReadError::SetAside { sequence, segment: 0, .. }] = told[..] else { panic!("{told:?}") };
            assert_eq!((sequence, puller.set_aside()), (bad, 1));
            assert_eq!(queue_backlog(scratch.place()).expect("the queue is there"), 0);
            pass_through(&mut writer, &mut puller, 200);
        }
    }
}

/// A queue of another boot needs a new segment for its stamps.
#[test]
fn a_full_queue_of_another_boot_is_emptied_first() {
    let mut later = Calibration::nanoseconds();
    (later.boot_id, later.ticks) = ([7; 16], 5);
    let scratch = ScratchLog::on_disk(OverflowPolicy::Fail, 2);
    let (first, end) = fill(&mut scratch.queue());
    let refused = Writer::open_queue(&scratch.config, &later).err().expect("there is no room for another segment");
    assert!(matches!(refused, LogOpenError::OtherBoot(_)), "{refused}");
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    assert_eq!(pull(&mut puller, usize::MAX), fresh(first..end));
    puller.acknowledge();
    let mut writer = Writer::open_queue(&scratch.config, &later).expect("there is room");
    assert_eq!(publish(&mut writer).expect("there is room"), end);
    assert_eq!(pull(&mut puller, 2), [(end, false)]);
}

#[test]
fn a_refused_pusher_or_puller_gets_the_reason() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let open = || QueuePuller::open(scratch.place(), QueueDelivery::AtLeastOnce).err();
    let pushes = |config: &Config| Writer::open_queue(config, &Calibration::nanoseconds()).err();
    assert!(matches!(open(), Some(LogOpenError::NotFound(_))));
    assert!(matches!(queue_backlog(scratch.place()), Err(LogOpenError::NotFound(_))));
    drop(scratch.writer());
    assert!(matches!(open(), Some(LogOpenError::NoQueue(_))), "it is a topic");
    assert!(matches!(queue_backlog(scratch.place()), Err(LogOpenError::NoQueue(_))));
    for policy in ALL_POLICIES.into_iter().filter(|policy| *policy != OverflowPolicy::Fail) {
        let refused = pushes(&Config { policy, ..scratch.config.clone() }).expect("a queue has one policy");
        assert!(refused.to_string().contains("use 'fail'"), "{refused}");
    }
    let writer = scratch.queue();
    assert!(matches!(pushes(&scratch.config), Some(LogOpenError::HasWriter { .. })));
    drop(writer);
    let pullers: Vec<_> = (0..MAX_PULLERS).map(|_| scratch.puller(QueueDelivery::AtLeastOnce)).collect();
    assert!(matches!(open(), Some(LogOpenError::TooManyPullers(_))));
    drop(pullers);
    assert!(open().is_none());
}

/// Messages of one puller: those received without a redelivery mark, and those acknowledged.
struct PullerTally {
    first: Vec<u64>,
    acknowledged: Vec<u64>,
}

/// Pulls until so many messages are acknowledged in total; now and then the puller leaves without notice, and rejoins.
fn share(scratch: &ScratchLog, done: &AtomicU64, messages: u64, mut dice: Dice) -> PullerTally {
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    let (mut share, mut held) = (PullerTally { first: Vec::new(), acknowledged: Vec::new() }, Vec::new());
    for _ in 0..TRIES {
        if done.load(Ordering::Acquire) == messages {
            break;
        }
        let pulled = pull(&mut puller, 1 + dice.below(50) as usize);
        share.first.extend(pulled.iter().filter(|(_, again)| !again).map(|(number, _)| number));
        held.extend(pulled.iter().map(|(number, _)| *number));
        match dice.below(20) {
            0 => {
                held.clear();
                puller = scratch.puller(QueueDelivery::AtLeastOnce);
            }
            1..12 => {
                puller.acknowledge();
                done.fetch_add(held.len() as u64, Ordering::AcqRel);
                share.acknowledged.append(&mut held);
            }
            _ => {}
        }
        if pulled.is_empty() {
            yield_now();
        }
    }
    share
}

fn check_loss(file: &str, is_gone: bool) {
    let scratch = ScratchLog::on_disk(OverflowPolicy::Fail, 3);
    let path = scratch.place().dir().join(file);
    let mut writer = scratch.queue();
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    pass_through(&mut writer, &mut puller, 300);
    let before = fs::read(&path).expect("the file can be read");
    pass_through(&mut writer, &mut puller, 100);
    for _ in 0..20 {
        publish(&mut writer).expect("there is room");
    }
    let left: BTreeSet<u64> = (400..420).collect();
    assert_eq!(pull(&mut puller, 10), fresh(400..410));
    drop((writer, puller));
    if is_gone {
        fs::remove_file(&path).expect("the file is there");
    } else {
        fs::write(&path, before).expect("the file can be written");
    }
    let mut writer = scratch.queue();
    let tail = writer.sequence();
    assert_eq!(tail, if file == "data" { 300 } else { 420 });
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    let came: BTreeSet<u64> = pull(&mut puller, usize::MAX).into_iter().map(|(number, _)| number).collect();
    let lost: Vec<_> = left.iter().filter(|number| **number < tail && !came.contains(number)).collect();
    assert!(lost.is_empty(), "{lost:?} are in the log and never come");
    puller.acknowledge();
    pass_through(&mut writer, &mut puller, 600);
}

/// Checks that each message arrives at once, and for the first time.
fn pass_through(writer: &mut Writer, puller: &mut QueuePuller, messages: u64) {
    for _ in 0..messages {
        let number = publish(writer).expect("all before it are done");
        assert_eq!(pull(puller, 2), [(number, false)]);
        puller.acknowledge();
    }
}

/// Publishes until the queue is full; returns the first number and the number refused.
fn fill(writer: &mut Writer) -> (u64, u64) {
    let first = writer.sequence();
    for _ in 0..10_000 {
        match publish(writer) {
            Ok(_) => {}
            Err(LogPublishError::Full) => return (first, writer.sequence()),
            Err(e) => panic!("{e}"),
        }
    }
    panic!("a ring of some pages is never full");
}

fn publish_patiently(writer: &mut Writer) {
    let published = (0..TRIES).any(|_| match publish(writer) {
        Ok(_) => true,
        Err(LogPublishError::Full) => {
            yield_now();
            false
        }
        Err(e) => panic!("{e}"),
    });
    assert!(published, "message {} finds no room: a puller has stopped", writer.sequence());
}

/// Publishes a message of 100 bytes.
fn publish(writer: &mut Writer) -> Result<u64, LogPublishError> {
    let number = writer.sequence();
    writer.publish(0, 16, &payload(number, 100))
}

/// Returns these numbers, none marked as redelivered.
fn fresh(numbers: std::ops::Range<u64>) -> Vec<(u64, bool)> {
    numbers.map(|number| (number, false)).collect()
}
