//! Sleepers wake when there is a message.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use tickpath_clock::Wait;
use tickpath_log::{LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Writer};

use crate::{ScratchLog, payload, read_on};

const ROUNDS: u64 = 10_000;

/// Far longer than the test runs: a wake-up that is lost shows as a test that does not end.
const ASLEEP_NS: u64 = 3_600_000_000_000;

/// How long the test may hang before it fails.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

#[test]
fn two_sleepers_play_ping_pong() {
    for policy in [OverflowPolicy::Overwrite, OverflowPolicy::Fail] {
        let (there, back) = (ScratchLog::shared(policy, 2), ScratchLog::shared(policy, 2));
        let (first, second) = (there.writer(), back.writer());
        let (hears_first, hears_second) = (there.reader(ReaderStart::Now), back.reader(ReaderStart::Now));
        let (done, ended) = channel();
        spawn(done.clone(), move || play(first, hears_second, true));
        spawn(done, move || play(second, hears_first, false));
        for _ in 0..2 {
            ended.recv_timeout(WAIT_LIMIT).expect("both players end; one of them sleeps for ever or has failed");
        }
    }
}

#[test]
fn one_publication_wakes_all_sleepers() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    let (done, ended) = channel();
    for _ in 0..4 {
        let mut reader = scratch.reader(ReaderStart::Now);
        spawn(done.clone(), move || {
            for sequence in 0..ROUNDS / 10 {
                assert_eq!(receive(&mut reader), sequence);
            }
            // Returns the last lent message, so that it does not hold the writer.
            assert_eq!(reader.next().expect("the log is sound"), Next::Empty);
        });
    }
    for sequence in 0..ROUNDS / 10 {
        while let Err(e) = writer.publish(0, 16, &payload(sequence, 176)) {
            assert!(matches!(e, LogPublishError::Full), "{e}");
            tickpath_clock::yield_now();
        }
    }
    for _ in 0..4 {
        ended.recv_timeout(WAIT_LIMIT).expect("all sleepers end");
    }
}

#[test]
fn a_batch_wakes_at_its_end() {
    let scratch = ScratchLog::shared(OverflowPolicy::Keep, 0);
    let mut writer = scratch.writer();
    let mut reader = scratch.reader(ReaderStart::Now);
    let (done, ended) = channel();
    spawn(done, move || {
        let mut at = 0;
        while at < 1000 {
            at = read_on(&mut reader, at);
            if at < 1000 {
                reader.wait(Wait::Block, ASLEEP_NS);
            }
        }
    });
    for first in (0..1000).step_by(10) {
        let payloads: Vec<_> = (first..first + 10).map(|sequence| payload(sequence, 20)).collect();
        let batch: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        writer.publish_batch(0, 16, &batch).expect("a log that grows takes all");
    }
    ended.recv_timeout(WAIT_LIMIT).expect("the sleeper ends");
}

/// Runs a player, which reports a good end. A player that fails drops its sender.
fn spawn(done: Sender<()>, player: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        player();
        done.send(()).expect("the test waits");
    });
}

fn play(mut writer: Writer, mut reader: Reader, serves: bool) {
    for round in 0..ROUNDS {
        if !serves {
            assert_eq!(receive(&mut reader), round);
        }
        writer.publish(0, 16, &payload(round, 176)).expect("the other has read what was before");
        if serves {
            assert_eq!(receive(&mut reader), round);
        }
    }
}

fn receive(reader: &mut Reader) -> u64 {
    loop {
        match reader.next().expect("the log is sound") {
            Next::Message(message) => {
                assert_eq!(message.payload, payload(message.sequence, 176));
                return message.sequence;
            }
            Next::Gap(missed) => panic!("no reader is lapped here, but {missed} are missing"),
            Next::Empty => {}
        }
        reader.wait(Wait::Block, ASLEEP_NS);
    }
}
