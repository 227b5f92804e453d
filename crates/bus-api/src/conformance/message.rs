//! Messages that show whether they are torn, and the tally of those that arrived.

use std::ops::Range;

use tickpath_clock::{Clock, HostClock, sleep_ns};

use crate::message_id::mix;
use crate::{Capabilities, Gap, PublishError, Publisher, Subscriber, SubscriptionEvent};

/// Kind of numbered messages.
pub(super) const KIND: u8 = 16;
/// Kind of the last message.
pub(super) const LAST: u8 = 255;
/// Max length of a numbered message, in bytes.
const MAX_BYTES: u64 = 4096;
/// Time after which an operation counts as hanging, in nanoseconds.
const TIMEOUT_NS: i64 = 60_000_000_000;

/// Returns the payload for a number, 0 to 4,096 bytes. The number itself is the stamp.
pub(super) fn payload(number: u64) -> Vec<u8> {
    let bytes = (mix(number) % (MAX_BYTES + 1)) as usize;
    let words = (0..bytes.div_ceil(8) as u64).flat_map(|word| mix(number ^ word << 40).to_le_bytes());
    words.take(bytes).collect()
}

/// Publishes the messages of these numbers.
pub(super) fn publish(publisher: &mut dyn Publisher, numbers: Range<u64>) {
    for number in numbers {
        let published = publisher.publish(number, KIND, &payload(number));
        published.unwrap_or_else(|e| panic!("message {number} is not published: {e}"));
    }
}

/// Publishes from this number on until the topic is full; returns the number that did not fit.
pub(super) fn publish_until_full(publisher: &mut dyn Publisher, first: u64) -> u64 {
    for number in first..first + 100_000 {
        match publisher.publish(number, KIND, &payload(number)) {
            Ok(()) => {}
            Err(PublishError::Full) => return number,
            Err(e) => panic!("message {number} is not published: {e}"),
        }
    }
    panic!("a topic that was asked for a mebibyte is not full after 100,000 messages");
}

/// Polls until the condition holds.
pub(super) fn receive(
    subscriber: &mut dyn Subscriber,
    tally: &mut ReceivedTally,
    what: &str,
    mut is_done: impl FnMut(&ReceivedTally) -> bool,
) {
    let deadline = TestDeadline::new();
    while !is_done(&*tally) {
        let polled = subscriber.poll(64, &mut |event| tally.event(event));
        if polled.unwrap_or_else(|e| panic!("{what}: {e}")) == 0 {
            subscriber.wait(1_000_000);
        }
        deadline.check(what);
    }
}

/// Returns stamp, kind and payload of the next event, which must be a message.
pub(super) fn next(subscriber: &mut dyn Subscriber, what: &str) -> (u64, u8, Vec<u8>) {
    let deadline = TestDeadline::new();
    let mut found = None;
    while found.is_none() {
        let polled = subscriber.poll(1, &mut |event| match event {
            SubscriptionEvent::Message(message) => {
                found = Some((message.stamp, message.kind, message.payload.to_vec()))
            }
            other => panic!("{what}: where only a message can be: {other:?}"),
        });
        if polled.unwrap_or_else(|e| panic!("{what}: {e}")) == 0 {
            subscriber.wait(1_000_000);
        }
        deadline.check(what);
    }
    found.expect("found")
}

/// Checks that no event arrives.
pub fn check_no_event(subscriber: &mut dyn Subscriber) {
    for _ in 0..10 {
        let polled = subscriber.poll(8, &mut |event| panic!("an event arrived, and nothing was published: {event:?}"));
        assert_eq!(polled.expect("polled"), 0);
        subscriber.wait(1_000_000);
    }
}

/// Returns how many sent bytes the kernel may hold for a connection whose peer reads none: both socket buffers, as large
/// as they may grow.
pub fn socket_buffer_bytes() -> usize {
    let largest = |file: &str| {
        let limits = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let last = limits.split_whitespace().last().and_then(|word| word.parse::<usize>().ok());
        last.expect("the last of three sizes is the largest")
    };
    largest("/proc/sys/net/ipv4/tcp_rmem") + largest("/proc/sys/net/ipv4/tcp_wmem")
}

/// Checks every few milliseconds whether the condition holds, for a minute or two.
pub fn wait_until(mut is_met: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_met() {
            return;
        }
        sleep_ns(3_000_000);
    }
    panic!("the condition never held");
}

/// Time limit that ends a test that hangs.
pub(super) struct TestDeadline {
    clock: HostClock,
    start: u64,
}

impl TestDeadline {
    /// Starts a limit of one minute.
    pub fn new() -> Self {
        let clock = HostClock::get().expect("the host has a clock");
        Self { clock, start: clock.ticks() }
    }

    pub fn is_over(&self) -> bool {
        self.clock.ns_between(self.start, self.clock.ticks()) > TIMEOUT_NS
    }

    pub fn check(&self, what: &str) {
        assert!(!self.is_over(), "{what}: still waiting after {} s", TIMEOUT_NS / 1_000_000_000);
    }
}

/// Messages that a subscriber got, each checked: whole, in order, once, and no loss without a report.
#[derive(Debug, Default)]
pub(super) struct ReceivedTally {
    pub received: u64,
    /// Messages that were reported as missed.
    pub missed: u64,
    /// The message of kind [`LAST`] has arrived.
    pub is_last: bool,
    /// Sequence number of the next message in the topic, or the message's own number where there is none.
    next: Option<u64>,
    /// The transport has sequence numbers.
    sequences: bool,
    /// Publishers start and stop, and each begins with the number 0.
    restarts: bool,
    /// Next numbers of publishers before the last one: the last messages of a killed publisher may arrive after the
    /// next publisher's first, which used another connection.
    tails: Vec<u64>,
}

impl ReceivedTally {
    /// Creates the tally of one publisher, whose next message has this number.
    pub fn from(first: u64, capabilities: &Capabilities) -> Self {
        Self { next: Some(first), sequences: capabilities.sequences, ..Self::default() }
    }

    /// Creates the tally of publishers that each begin at 0, joined in the middle.
    pub fn of_many(capabilities: &Capabilities) -> Self {
        Self { next: None, restarts: true, ..Self::from(0, capabilities) }
    }

    /// Returns the next number or sequence number.
    pub fn next(&self) -> u64 {
        self.next.unwrap_or(0)
    }

    /// Checks and counts one event.
    pub fn event(&mut self, event: SubscriptionEvent<'_>) {
        match event {
            SubscriptionEvent::Gap(Gap::Missed(missed)) => {
                assert!(self.sequences && missed > 0, "a count of {missed}, sequence numbers: {}", self.sequences);
                self.missed += missed;
                self.next = self.next.map(|next| next + missed);
            }
            SubscriptionEvent::Gap(Gap::Reconnected) => panic!("the connection was lost without a fault"),
            SubscriptionEvent::Foreign(foreign) => panic!("another program publishes here: {foreign:?}"),
            SubscriptionEvent::Message(message) => {
                let number = message.stamp;
                assert!(message.payload == payload(number), "message {number} is torn: {self:?}");
                assert_eq!(message.sequence.is_some(), self.sequences, "message {number}");
                let position = message.sequence.unwrap_or(number);
                let is_loose = self.restarts && !self.sequences;
                if is_loose
                    && number > 0
                    && self.next != Some(number)
                    && let Some(tail) = self.tails.iter_mut().find(|tail| **tail == number)
                {
                    *tail += 1;
                    self.received += 1;
                    return;
                }
                let is_restart = is_loose && number == 0;
                if is_restart {
                    self.tails.extend(self.next);
                }
                assert!(is_restart || self.next.is_none_or(|next| next == position), "{position} arrived: {self:?}");
                assert!(self.restarts || position == number, "message {number} has the sequence number {position}");
                self.next = Some(position + 1);
                self.received += 1;
                self.is_last |= message.kind == LAST;
            }
        }
    }
}
