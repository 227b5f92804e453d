//! Owned events that a transport's own tests can compare.

use tickpath_clock::sleep_ns;

use crate::{Gap, Puller, Subscriber, SubscriptionEvent};

/// Max polls, of a millisecond or two each, before a test gives up.
const MAX_POLLS: u32 = 60_000;

/// Owned copy of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedEvent {
    /// A message.
    Message {
        /// Sequence number in the topic, where there is one.
        sequence: Option<u64>,
        /// Stamp of the message.
        stamp: u64,
        /// Payload of the message.
        payload: Vec<u8>,
    },
    /// A message of another program.
    Foreign {
        /// Sequence number in the topic, where there is one.
        sequence: Option<u64>,
        /// Bytes of the message.
        bytes: Vec<u8>,
    },
    /// A loss.
    Gap(Gap),
}

impl OwnedEvent {
    /// Creates an expected message without a sequence number.
    pub fn message(stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: None, stamp, payload: payload.to_vec() }
    }

    /// Creates an expected message with this sequence number.
    pub fn at(sequence: u64, stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: Some(sequence), stamp, payload: payload.to_vec() }
    }

    /// Creates an expected message of another program.
    pub fn foreign(sequence: Option<u64>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Foreign { sequence, bytes: bytes.as_ref().to_vec() }
    }

    /// Copies an event.
    pub(super) fn of(event: SubscriptionEvent<'_>) -> Self {
        match event {
            SubscriptionEvent::Message(message) => {
                Self::Message { sequence: message.sequence, stamp: message.stamp, payload: message.payload.to_vec() }
            }
            SubscriptionEvent::Foreign(foreign) => Self::foreign(foreign.sequence, foreign.bytes),
            SubscriptionEvent::Gap(gap) => Self::Gap(gap),
        }
    }
}

/// Returns the next event, after waiting up to a minute or two.
pub fn next_event(subscriber: &mut dyn Subscriber) -> OwnedEvent {
    next_mapped(subscriber, OwnedEvent::of)
}

/// Returns bytes and details of the next event, which must be of another program, after waiting as [`next_event`] does.
pub fn next_foreign(subscriber: &mut dyn Subscriber) -> (Vec<u8>, Option<String>) {
    next_mapped(subscriber, |event| match event {
        SubscriptionEvent::Foreign(foreign) => (foreign.bytes.to_vec(), foreign.details.map(str::to_owned)),
        other => panic!("nothing else is published: {other:?}"),
    })
}

fn next_mapped<T>(subscriber: &mut dyn Subscriber, map: impl Fn(SubscriptionEvent<'_>) -> T) -> T {
    let mut next = None;
    for _ in 0..MAX_POLLS {
        let polled = subscriber.poll(1, &mut |event| next = Some(map(event)));
        polled.expect("the subscription continues");
        if let Some(next) = next {
            return next;
        }
        subscriber.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("no event arrived");
}

/// Pulls messages, and acknowledges none, for up to a minute or two; returns stamps, each with the redelivered mark.
pub fn pull_stamps(puller: &mut dyn Puller, count: usize) -> Vec<(u64, bool)> {
    let mut pulled = Vec::new();
    for _ in 0..MAX_POLLS {
        let missing = count - pulled.len();
        let result = puller.pull(missing, &mut |next| pulled.push((next.message.stamp, next.redelivered)));
        result.expect("the puller continues");
        if pulled.len() == count {
            return pulled;
        }
        puller.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("only {} of {count} messages arrived: {pulled:?}", pulled.len());
}
