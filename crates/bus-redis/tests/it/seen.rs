//! Events of a subscription, as something to compare.

use tickpath_bus_api::{Event, Gap, Subscriber};
use tickpath_clock::sleep_ns;

/// An event that stays.
#[derive(Debug, PartialEq)]
pub enum Seen {
    Message { stamp: u64, payload: Vec<u8> },
    Foreign(Vec<u8>),
    Gap(Gap),
}

impl Seen {
    /// A message that is to come.
    pub fn message(stamp: u64, payload: &[u8]) -> Self {
        Self::Message { stamp, payload: payload.to_vec() }
    }

    /// What others publish.
    pub fn foreign(text: &str) -> Self {
        Self::Foreign(text.into())
    }
}

/// The next event, waited for up to a minute or so.
pub fn next(subscriber: &mut dyn Subscriber) -> Seen {
    let mut seen = None;
    for _ in 0..60_000 {
        let polled = subscriber.poll(1, &mut |event| {
            seen = Some(match event {
                Event::Message(message) => Seen::message(message.stamp, message.payload),
                Event::Foreign(foreign) => Seen::Foreign(foreign.bytes.to_vec()),
                Event::Gap(gap) => Seen::Gap(gap),
            });
        });
        polled.unwrap();
        if let Some(seen) = seen {
            return seen;
        }
        subscriber.wait(1_000_000);
        sleep_ns(1_000_000);
    }
    panic!("nothing came");
}
