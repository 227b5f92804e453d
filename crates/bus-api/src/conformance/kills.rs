//! Random kills under load: of the broker, of publishers, of subscribers. The reported fate of each message is compared
//! with the messages that arrive.
//!
//! ```text
//!   publisher ── 0, 1, 2, … ──> broker ──> subscriber     both live through all of it, and never stop
//!   children that publish and subscribe the same topic, and the broker itself, are killed meanwhile
//! ```
//! A message reported as published arrives, or a gap is reported in its place; none arrives twice, and none before one
//! that was published earlier. A message in doubt is sent again until its fate is known.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use super::child::{BusConnector, RoleProcess};
use super::fixture::Fixture;
use super::message::TestDeadline;
use super::role::ChildRole;
use super::scratch::default_topic_config;
use crate::message_id::mix;
use crate::{BatchError, Gap, PublishError, Publisher, StartPosition, Subscriber, SubscriptionEvent, TopicConfig};

/// Kinds of the counted messages, and of the last one.
const COUNTED: u8 = 200;
const LAST: u8 = 201;
/// The longest pause between two kills, in nanoseconds.
const PAUSE_NS: u64 = 30_000_000;
/// One kill in this many does not wait until messages arrive again after the previous kill.
const HASTY_ONE_IN: u64 = 4;

/// A run of kills: its target and its length.
pub struct KillRun<'a> {
    /// The transport's name in the table.
    pub name: &'a str,
    /// URL of the broker.
    pub url: &'a str,
    /// Connects to the broker.
    pub connect: BusConnector,
    /// Number of kills.
    pub kills: u64,
    /// One kill in this many is of the broker.
    pub broker_one_in: u64,
    /// Acknowledged messages survive the broker.
    pub is_durable: bool,
}

/// Result of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KillCounts {
    /// Kills of the broker.
    pub brokers: u64,
    /// Kills of publishers.
    pub publishers: u64,
    /// Kills of subscribers.
    pub subscribers: u64,
    /// Messages reported as published, at once or after they had been in doubt.
    pub published: u64,
    /// Calls that left a message in doubt.
    pub unknown: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Gaps that were reported.
    pub gaps: u64,
    /// Published messages that did not arrive, with a gap reported.
    pub reported_lost: u64,
    /// Published messages that did not arrive, with no gap reported.
    pub silently_lost: u64,
    /// Duplicates, and messages out of order.
    pub duplicates: u64,
}

impl KillRun<'_> {
    /// Returns the number of kills: 200, or 5,000 in a long run (`TICKPATH_SOAK`).
    pub fn count() -> u64 {
        if std::env::var_os("TICKPATH_SOAK").is_some() { 5_000 } else { 200 }
    }

    /// Runs the kills, and panics where a promise is broken: `kill` returns when the broker is gone, `restart` when it
    /// answers again, with its data. Writes a row of the table into the folder `TICKPATH_BUS_PROOF`, if it is set.
    pub fn run<B>(&self, broker: &mut B, kill: fn(&mut B), restart: fn(&mut B)) -> KillCounts {
        let restarts = AtomicU64::new(0);
        let mut restart_broker = |pause_ns| {
            kill(broker);
            sleep_ns(pause_ns);
            restart(broker);
            restarts.fetch_add(1, Ordering::Relaxed);
        };
        let connect = || (self.connect)(self.url).unwrap_or_else(|e| panic!("{}: {e}", self.url));
        let fixture = Fixture {
            connect: &connect,
            topic: format!("tickpath:test-{}-kills", std::process::id()),
            spawn: &|role, name| super::child::spawn(role, self.url, name),
        };
        let connection = connect();
        let opened = connection.subscriber(&fixture.topic, StartPosition::Now, Wait::Block);
        let mut subscriber = opened.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        // Nothing must be overwritten, so that a message that does not arrive was lost.
        let config = TopicConfig { capacity_bytes: 1 << 30, ..default_topic_config(&*connection) };
        let opened = connection.publisher(&fixture.topic, &config);
        let mut publisher = opened.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let (is_over, has_ended, received) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        let mut counts = KillCounts::default();
        std::thread::scope(|scope| {
            let publishing = scope.spawn(|| publish(&mut *publisher, &is_over, &has_ended));
            let receiving = scope.spawn(|| receive(&mut *subscriber, &has_ended, &restarts, &received));
            // The threads must end also if one of them has panicked.
            let is_new = |before| has_ended.load(Ordering::Acquire) || received.load(Ordering::Relaxed) > before;
            let mut await_load = || {
                let before = received.load(Ordering::Relaxed);
                while !is_new(before) {
                    sleep_ns(1_000_000);
                }
            };
            let kill = || self.kill(&fixture, &mut restart_broker, &mut await_load);
            let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(kill));
            is_over.store(true, Ordering::Release);
            let (published, arrived) = (publishing.join(), receiving.join());
            let seen = arrived.unwrap_or_else(|e| std::panic::resume_unwind(e));
            let sent = published.unwrap_or_else(|e| std::panic::resume_unwind(e));
            counts = killed.unwrap_or_else(|e| std::panic::resume_unwind(e));
            counts.compare(&sent, &seen);
        });
        println!("{}: {counts:?}", self.name);
        assert_eq!((counts.silently_lost, counts.duplicates), (0, 0), "{}: {counts:?}", self.name);
        assert!(!self.is_durable || counts.reported_lost == 0, "{} keeps what it acknowledges: {counts:?}", self.name);
        if let Some(folder) = std::env::var_os("TICKPATH_BUS_PROOF") {
            let file = std::path::Path::new(&folder).join(self.name.replace(|c: char| !c.is_alphanumeric(), "-"));
            std::fs::write(file, format!("| {} {counts}\n", self.name)).expect("the folder can be written");
        }
        counts
    }

    /// Kills at random and counts the kills. `await_load` returns when a message has arrived.
    fn kill(&self, fixture: &Fixture<'_>, restart: &mut dyn FnMut(u64), await_load: &mut dyn FnMut()) -> KillCounts {
        let seed = HostClock::get().expect("the host has a clock").ticks();
        println!("seed {seed}");
        let mut counts = KillCounts::default();
        for round in 0..self.kills {
            let dice = |what: u64| mix(seed ^ round << 8 ^ what);
            let pause_ns = dice(1) % PAUSE_NS;
            if dice(4) % HASTY_ONE_IN != 0 {
                await_load();
            }
            if dice(2) % self.broker_one_in == 0 {
                restart(pause_ns);
                counts.brokers += 1;
                continue;
            }
            let (role, count) = match dice(3) % 2 {
                0 => (ChildRole::Publisher, &mut counts.publishers),
                _ => (ChildRole::Subscriber, &mut counts.subscribers),
            };
            let mut child = RoleProcess::spawn(fixture, role, &fixture.topic);
            sleep_ns(pause_ns);
            child.kill();
            *count += 1;
        }
        counts
    }
}

/// The publisher's result: the number of calls that left a message in doubt, and the published numbers.
#[derive(Debug, Default)]
struct PublishedNumbers {
    unknown: u64,
    published: Vec<u64>,
}

/// The subscriber's result: numbers in the order of arrival, each with whether a gap was reported before it.
#[derive(Debug, Default)]
struct ReceivedNumbers {
    gaps: u64,
    numbers: Vec<(u64, bool)>,
}

/// Publishes numbers until the run is over, and then the last message until the subscriber has seen it.
fn publish(publisher: &mut dyn Publisher, is_over: &AtomicBool, has_ended: &AtomicBool) -> PublishedNumbers {
    let (mut sent, mut number) = (PublishedNumbers::default(), 0u64);
    while !is_over.load(Ordering::Acquire) {
        if send(publisher, COUNTED, number, &mut sent.unknown) {
            sent.published.push(number);
            number += 1;
        }
        // Limits the load: other publishers must get turns, and a server disconnects a subscriber that cannot keep up.
        sleep_ns(if number.is_multiple_of(32) { 5_000_000 } else { 100_000 });
    }
    while !has_ended.load(Ordering::Acquire) {
        send(publisher, LAST, number, &mut sent.unknown);
        sleep_ns(10_000_000);
    }
    sent
}

/// Publishes one message, again while it is in doubt; returns true when it is known to be published.
fn send(publisher: &mut dyn Publisher, kind: u8, number: u64, unknown: &mut u64) -> bool {
    let mut outcome = publisher.publish(number, kind, &number.to_le_bytes());
    while let Err(PublishError::Unknown(_)) = outcome {
        *unknown += 1;
        sleep_ns(5_000_000);
        outcome = publisher.resend().map_err(|BatchError { error, .. }| error);
    }
    match outcome {
        Ok(()) => true,
        Err(error) if error.is_transient() => {
            sleep_ns(5_000_000);
            false
        }
        Err(error) => panic!("message {number} is not published: {error}"),
    }
}

/// Guard that sets its flag when dropped, also by a panic.
struct EndFlagGuard<'a>(&'a AtomicBool);

impl Drop for EndFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Receives until the last message. The time that the broker was down does not count as a stall.
fn receive(
    subscriber: &mut dyn Subscriber,
    has_ended: &AtomicBool,
    restarts: &AtomicU64,
    received: &AtomicU64,
) -> ReceivedNumbers {
    let _ends = EndFlagGuard(has_ended);
    let (mut seen, mut is_gap, mut is_last) = (ReceivedNumbers::default(), false, false);
    let (mut quiet, mut restarts_seen) = (TestDeadline::new(), 0);
    while !is_last {
        let polled = subscriber.poll(64, &mut |event| match event {
            SubscriptionEvent::Gap(Gap::Missed(_) | Gap::Reconnected) => {
                seen.gaps += 1;
                is_gap = true;
            }
            SubscriptionEvent::Message(message) if message.kind == COUNTED => {
                let number = u64::from_le_bytes(message.payload.try_into().expect("eight bytes"));
                seen.numbers.push((number, std::mem::take(&mut is_gap)));
                received.fetch_add(1, Ordering::Relaxed);
            }
            SubscriptionEvent::Message(message) => is_last |= message.kind == LAST,
            SubscriptionEvent::Foreign(foreign) => panic!("another program publishes here: {foreign:?}"),
        });
        match polled.unwrap_or_else(|e| panic!("the subscription ends: {e}")) {
            0 => subscriber.wait(10_000_000),
            _ => quiet = TestDeadline::new(),
        }
        if std::mem::replace(&mut restarts_seen, restarts.load(Ordering::Relaxed)) != restarts_seen {
            quiet = TestDeadline::new();
        }
        quiet.check("kills: no message arrives any more");
    }
    seen
}

impl KillCounts {
    /// Compares the numbers that arrived with those that were published.
    fn compare(&mut self, sent: &PublishedNumbers, seen: &ReceivedNumbers) {
        self.published = sent.published.len() as u64;
        self.unknown = sent.unknown;
        self.received = seen.numbers.len() as u64;
        self.gaps = seen.gaps;
        let mut expected = 0;
        for &(number, is_gap) in &seen.numbers {
            match number.checked_sub(expected) {
                None => self.duplicates += 1,
                Some(0) => {}
                Some(missing) if is_gap => self.reported_lost += missing,
                Some(missing) => self.silently_lost += missing,
            }
            expected = expected.max(number + 1);
        }
        // Messages that were published last, and did not arrive before the end.
        let behind = self.published.saturating_sub(expected);
        if seen.gaps > 0 { self.reported_lost += behind } else { self.silently_lost += behind }
    }
}

impl fmt::Display for KillCounts {
    /// Writes the cells of a table row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { brokers, publishers, subscribers, published, unknown, received, .. } = self;
        let Self { gaps, reported_lost, silently_lost, duplicates, .. } = self;
        write!(
            f,
            "| {brokers} | {publishers} | {subscribers} | {published} | {unknown} | {received} | {gaps} | \
             {reported_lost} | {silently_lost} | {duplicates} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_messages_and_duplicates_are_counted() {
        let mut counts = KillCounts::default();
        let sent = PublishedNumbers { unknown: 2, published: (0..10).collect() };
        let numbers = vec![(0, false), (1, false), (1, false), (3, true), (6, false), (5, true), (7, false)];
        counts.compare(&sent, &ReceivedNumbers { gaps: 0, numbers });
        assert_eq!((counts.reported_lost, counts.silently_lost, counts.duplicates), (1, 2 + 2, 2));
    }
}
