//! Pullers and pushers that are killed in the middle of their work: nothing is lost, and redelivered messages are
//! marked.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tickpath_clock::{Calibration, Wait, sleep_ns, yield_now};
use tickpath_log::{
    ClaimedMessage, LogPath, LogPublishError, OverflowPolicy, QueueDelivery, QueuePuller, Writer, queue_backlog,
};

use crate::process::{ChildProcess, print_number};
use crate::{Dice, ScratchLog, payload, pull, seed, tiny};

const SEGMENTS: usize = 8;

/// The payload of all messages; 62 of their frames fill a segment.
const LENGTH: usize = 40;

/// Turns of a child before it is killed, at most: a hundred seconds.
const TURNS: u64 = 10_000;
const TURN_NS: u64 = 10_000_000;

/// Attempts at an operation that other processes must make possible.
const TRIES: u64 = 20_000_000;

/// Far longer than a test runs.
const ASLEEP_NS: u64 = 3_600_000_000_000;

/// How long a test may hang before it fails.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// Reports of a child: that it is at work; then a message's number times four, plus one of these events.
const READY: u64 = u64::MAX;
const FIRST: u64 = 0;
const REDELIVERED: u64 = 1;
const ACKNOWLEDGED: u64 = 2;

#[test]
fn killed_pullers_lose_nothing() {
    let mut dice = Dice::new(seed());
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, SEGMENTS);
    let mut writer = scratch.queue();
    let mut story = DeliveryTally::default();
    for _ in 0..12 {
        let mut children = ["puller"; 2].map(|role| start(role, &scratch));
        for _ in 0..dice.below(400) {
            let number = writer.sequence();
            match writer.publish(0, 16, &payload(number, LENGTH)) {
                Ok(_) | Err(LogPublishError::Full) => {}
                Err(e) => panic!("{e}"),
            }
        }
        sleep_ns(dice.below(20_000_000));
        for child in &mut children {
            child.kill();
            while let Some(said) = child.lines.next_number() {
                story.record_report(said);
            }
        }
    }
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    let rest = pull(&mut puller, usize::MAX);
    rest.iter().for_each(|&(number, again)| story.record_report(number * 4 + u64::from(again)));
    puller.acknowledge();
    rest.iter().for_each(|&(number, _)| story.record_report(number * 4 + ACKNOWLEDGED));
    assert_eq!(queue_backlog(scratch.place()).expect("the queue is there"), 0);
    story.end(writer.sequence());
}

#[test]
fn a_killed_pusher_is_followed_by_the_next() {
    let mut dice = Dice::new(seed());
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, SEGMENTS);
    drop(scratch.queue());
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    let mut next = 0;
    for _ in 0..12 {
        let mut child = start("pusher", &scratch);
        // There is room for as many messages: all earlier ones are acknowledged.
        let said = child.lines.skip(dice.below(300));
        child.kill();
        let last = child.lines.last_number().or(said);
        let pulled = pull(&mut puller, usize::MAX);
        let expected: Vec<_> = (next..next + pulled.len() as u64).map(|number| (number, false)).collect();
        assert_eq!(pulled, expected, "each message once, in order");
        next += pulled.len() as u64;
        assert!(last.is_none_or(|last| last < next), "message {last:?} was pushed, but the next one pulled is {next}");
        puller.acknowledge();
    }
    assert_eq!(scratch.queue().sequence(), next);
}

/// At-most-once delivery: a puller that dies while it reads its message has consumed it, and holds the queue no longer
/// than it lives.
#[test]
fn messages_taken_at_most_once_are_gone_with_their_puller() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    publish(&mut writer, 10);
    let mut child = start("taker", &scratch);
    assert_eq!(child.lines.next_number(), Some(FIRST), "the child takes message 0");
    let mut puller = scratch.puller(QueueDelivery::AtMostOnce);
    assert_eq!(pull(&mut puller, 100), (1..10).map(|number| (number, false)).collect::<Vec<_>>());
    let full = (0..1000).any(|_| {
        let number = writer.sequence();
        let refused = writer.publish(0, 16, &payload(number, LENGTH)).is_err();
        assert!(refused || pull(&mut puller, 1) == [(number, false)]);
        refused
    });
    assert!(full, "the child still looks at message 0");
    child.kill();
    for _ in 0..1000 {
        let number = writer.sequence();
        let pushed = (0..TRIES).any(|_| {
            let pushed = writer.publish(0, 16, &payload(number, LENGTH)).is_ok();
            // A pull detects that the child has died.
            assert_eq!(pull(&mut puller, 1), if pushed { vec![(number, false)] } else { vec![] });
            yield_now();
            pushed
        });
        assert!(pushed, "message {number} finds no room, though all before it are gone");
    }
}

#[test]
fn a_sleeping_puller_gets_messages_of_a_killed_one() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    publish(&mut writer, 10);
    let mut child = start("holder", &scratch);
    for number in 0..5 {
        assert_eq!(child.lines.next_number(), Some(number * 4 + FIRST));
    }
    let (done, ended) = channel();
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    thread::spawn(move || {
        let mut all = Vec::new();
        while all.len() < 10 {
            all.extend(pull(&mut puller, 100));
            puller.acknowledge();
            if all.len() < 10 {
                puller.wait(Wait::Block, ASLEEP_NS);
            }
        }
        done.send(all).expect("the test waits");
    });
    // Time to fall asleep; if it has not, the test sees less.
    sleep_ns(20_000_000);
    child.kill();
    let all = ended.recv_timeout(WAIT_LIMIT).expect("the sleeper ends; it sleeps for ever or has failed");
    let expected = (5..10).map(|number| (number, false)).chain((0..5).map(|number| (number, true)));
    assert_eq!(all, expected.collect::<Vec<_>>());
}

/// Runs the role of a child.
pub fn child(role: &str, place: &LogPath) {
    match role {
        "puller" => pull_for_ever(place),
        "taker" => take_one_and_stop(place),
        "holder" => hold_five(place),
        "pusher" => push_for_ever(place),
        other => panic!("'{other}' is no role"),
    }
}

fn pull_for_ever(place: &LogPath) {
    let mut puller = open(place, QueueDelivery::AtLeastOnce);
    for _ in 0..TURNS {
        let mut numbers = Vec::new();
        let pulled = puller.pull(5, |pulled| {
            report_pulled(&pulled);
            numbers.push(pulled.message.sequence);
        });
        pulled.expect("the queue is sound");
        puller.acknowledge();
        numbers.iter().for_each(|number| print_number(number * 4 + ACKNOWLEDGED));
        puller.wait(Wait::Block, TURN_NS);
    }
}

fn take_one_and_stop(place: &LogPath) {
    let pulled = open(place, QueueDelivery::AtMostOnce).pull(1, |pulled| {
        report_pulled(&pulled);
        (0..TURNS).for_each(|_| sleep_ns(TURN_NS));
    });
    pulled.expect("the queue is sound");
}

fn hold_five(place: &LogPath) {
    let mut puller = open(place, QueueDelivery::AtLeastOnce);
    puller.pull(5, |pulled| report_pulled(&pulled)).expect("the queue is sound");
    (0..TURNS).for_each(|_| sleep_ns(TURN_NS));
}

fn push_for_ever(place: &LogPath) {
    let config = tiny(place.clone(), OverflowPolicy::Fail, SEGMENTS);
    let mut writer = Writer::open_queue(&config, &Calibration::nanoseconds()).expect("the last pusher is dead");
    print_number(READY);
    for _ in 0..TURNS {
        let number = writer.sequence();
        match writer.publish(0, 16, &payload(number, LENGTH)) {
            Ok(_) => print_number(number),
            Err(LogPublishError::Full) => sleep_ns(TURN_NS),
            Err(e) => panic!("{e}"),
        }
    }
}

fn open(place: &LogPath, delivery: QueueDelivery) -> QueuePuller {
    let puller = QueuePuller::open(place, delivery).expect("the parent has made the queue");
    print_number(READY);
    puller
}

/// Reports a message that was handed over to the parent.
fn report_pulled(pulled: &ClaimedMessage<'_>) {
    print_number(pulled.message.sequence * 4 + if pulled.redelivered { REDELIVERED } else { FIRST });
}

/// Starts a child, and waits until it is at work.
fn start(role: &str, scratch: &ScratchLog) -> ChildProcess {
    let mut child = ChildProcess::start(role, scratch.place(), OverflowPolicy::Fail);
    assert_eq!(child.lines.next_number(), Some(READY), "the {role} gets to work");
    child
}

fn publish(writer: &mut Writer, count: u64) {
    for _ in 0..count {
        let number = writer.sequence();
        writer.publish(0, 16, &payload(number, LENGTH)).expect("there is room");
    }
}

/// Reports about all messages.
#[derive(Default)]
struct DeliveryTally {
    first: BTreeSet<u64>,
    again: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
}

impl DeliveryTally {
    fn record_report(&mut self, said: u64) {
        let number = said / 4;
        match said % 4 {
            FIRST => assert!(self.first.insert(number), "message {number} comes again without a mark"),
            REDELIVERED => {
                self.again.insert(number);
            }
            ACKNOWLEDGED => assert!(self.acknowledged.insert(number), "message {number} is acknowledged twice"),
            other => panic!("{other} is nothing that a child says"),
        }
    }

    /// Checks that each message was handed over: a child killed before its report has not acknowledged the message.
    fn end(&self, pushed: u64) {
        let lost: Vec<_> = (0..pushed).filter(|n| !self.first.contains(n) && !self.again.contains(n)).collect();
        assert_eq!(lost, [0_u64; 0], "of {pushed} messages");
        let strange = self.first.union(&self.again).find(|number| **number >= pushed);
        assert_eq!(strange, None, "only {pushed} were pushed");
    }
}
