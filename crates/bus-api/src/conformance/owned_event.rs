//! What a test of a transport's own sees, as something to compare.

use tickpath_clock::sleep_ns;

use crate::{Event, Gap, Puller, Subscriber};

/// Looks of a millisecond or two each before a test gives up.
const LOOKS: u32 = 60_000;

/// An event that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedEvent {
    /// A message.
    Message {
        /// Its place in the topic, where that is counted.
        sequence: Option<u64>,
        /// Its stamp.
        stamp: u64,
        /// Its payload.
        payload: Vec<u8>,
    },
    /// What another program published.
    Foreign {
        /// Its place in the topic, where that is counted.
        sequence: Option<u64>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A loss.
    Gap(Gap),
}

impl OwnedEvent {
    /// A message that is to come, where none is counted.
    pub fn message(stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: None, stamp, payload: payload.to_vec() }
    }

    /// A message that is to come, at this place in the topic.
    pub fn at(sequence: u64, stamp: u64, payload: &[u8]) -> Self {
        Self::Message { sequence: Some(sequence), stamp, payload: payload.to_vec() }
    }

    /// What another program publishes.
    pub fn foreign(sequence: Option<u64>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Foreign { sequence, bytes: bytes.as_ref().to_vec() }
    }

    /// Without what it lends.
    pub(super) fn of(event: Event<'_>) -> Self {
        match event {
            Event::Message(message) => {
                Self::Message { sequence: message.sequence, stamp: message.stamp, payload: message.payload.to_vec() }
            }
            Event::Foreign(foreign) => Self::foreign(foreign.sequence, foreign.bytes),
            Event::Gap(gap) => Self::Gap(gap),
        }
    }
}

/// The next event, waited for up to a minute or two.
pub fn next_event(subscriber: &mut dyn Subscriber) -> OwnedEvent {
    let mut next = None;
    for _ in 0..LOOKS {
        let polled = subscriber.poll(1, &mut |event| next = Some(OwnedEvent::of(event)));
        polled.expect("the subscription goes on");
        if let Some(next) = next {
            return next;
        }
        subscriber.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("nothing came");
}

/// Stamps of the next so many messages, each with whether it is marked as redelivered; waited for up to a minute or two.
/// None is acknowledged.
pub fn pull_stamps(puller: &mut dyn Puller, count: usize) -> Vec<(u64, bool)> {
    let mut came = Vec::new();
    for _ in 0..LOOKS {
        let missing = count - came.len();
        let pulled = puller.pull(missing, &mut |pulled| came.push((pulled.message.stamp, pulled.redelivered)));
        pulled.expect("the puller goes on");
        if came.len() == count {
            return came;
        }
        puller.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("only {} of {count} messages came: {came:?}", came.len());
}

/// The next event, which is another program's: its bytes, and the details beside them; waited for as [`next_event`] does.
pub fn next_foreign(subscriber: &mut dyn Subscriber) -> (Vec<u8>, Option<String>) {
    let mut found = None;
    for _ in 0..LOOKS {
        let mut hear = |event: Event<'_>| match event {
            Event::Foreign(foreign) => found = Some((foreign.bytes.to_vec(), foreign.details.map(str::to_owned))),
            other => panic!("nothing else is published: {other:?}"),
        };
        subscriber.poll(1, &mut hear).expect("the subscription goes on");
        if let Some(found) = found {
            return found;
        }
        subscriber.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("nothing came");
}
