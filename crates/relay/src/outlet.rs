//! Target of carried messages: waits for room, and for an answer.

use tickpath_bus::url::without_login;
use tickpath_bus::{Connection, Gap, Message, Origin, Policy, PublishError, Publisher, TopicConfig};
use tickpath_clock::{Clock, Wait, sleep_ns};
use tickpath_log::{Reader, Registration, Start};

use crate::address::held;
use crate::tail::Tail;
use crate::{Opening, Outside, RETRY_NS, ROOM_NS, RelayError};

/// A topic to publish on.
pub(crate) struct Outlet {
    pub topic: String,
    /// The log, if the topic is one; none on a broker.
    pub log: Option<Log>,
    publisher: Box<dyn Publisher>,
    wait: Wait,
    /// The topic has no subscriber, which was reported.
    is_alone: bool,
}

/// A log to publish into.
pub(crate) struct Log {
    /// Reader of the log.
    pub there: Reader,
    /// Number of messages when the log was opened.
    pub held: u64,
    /// Sequence number of the next message.
    pub next: u64,
}

impl Log {
    /// Returns the number of the first message that is not known to precede the source's position, and the identity of
    /// the log.
    pub fn reached(&self, tail: &Tail) -> (u64, u64) {
        (tail.front().unwrap_or(self.next), self.there.identity())
    }
}

/// Item to publish.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    /// A message, with the origin that it is to keep, if any.
    Message {
        /// Origin to keep.
        origin: Option<Origin>,
        /// Stamp, in ticks of the origin's clock, or else of this host's.
        stamp: u64,
        kind: u8,
        payload: &'a [u8],
    },
    /// Ticks at which a loss was detected, and the loss.
    Gap(u64, Gap),
}

impl<'a> Item<'a> {
    /// Creates the item for a message with this stamp in place of its own.
    pub fn of(message: &Message<'a>, stamp: u64) -> Self {
        Self::Message { origin: message.origin, stamp, kind: message.kind, payload: message.payload }
    }

    /// Returns whether the item has an origin to keep.
    pub fn has_origin(&self) -> bool {
        matches!(self, Self::Message { origin: Some(_), .. })
    }
}

/// Result of publishing an item.
pub(crate) enum Handed {
    /// The item is published.
    Over {
        /// Ticks at which the successful call began.
        at: u64,
        /// The topic refused the item at first.
        refused: bool,
    },
    /// The carrier was stopped before the item was published.
    Stopped,
}

impl Outlet {
    /// Opens a topic of the bus at this URL.
    pub fn open(
        connection: &dyn Connection,
        (url, topic): (&str, &str),
        opening: &Opening,
        wait: Wait,
    ) -> Result<Self, RelayError> {
        let usual = connection.capabilities().policies.first().copied().unwrap_or(Policy::Overwrite);
        let policy = opening.policy.unwrap_or(usual);
        let Opening { capacity_bytes, max_age_ns, .. } = *opening;
        let config = TopicConfig { capacity_bytes, max_age_ns, ..TopicConfig::new(policy) };
        let publisher = connection.publisher(topic, &config).map_err(RelayError::of_publisher)?;
        let held = held(url, topic).map(|(place, extent)| (place, extent.end - extent.start));
        let look = |place| Reader::open(place, Start::Now, Registration::Unregistered);
        let there = held.as_ref().map(|(place, _)| look(place)).transpose()?;
        let log = there.map(|there| Log { next: there.sequence(), held: held.map_or(0, |(_, held)| held), there });
        Ok(Self { topic: topic.to_owned(), log, publisher, wait, is_alone: false })
    }

    /// Reports the messages that a log holds already, because they stay.
    pub fn tell_held(&self, url: &str, outside: &Outside<'_>) {
        if let Some(Log { there, held: held @ 1.., .. }) = &self.log {
            (outside.tell)(&format!(
                "'{}' of {} was there already: messages go behind its {held} messages; to begin anew, first: \
                 tickpath log rm {}",
                self.topic,
                without_login(url),
                there.place()
            ));
        }
    }

    /// Publishes an item, however long it takes, unless the carrier is stopped.
    pub fn hand_over(&mut self, item: Item<'_>, outside: &Outside<'_>) -> Result<Handed, PublishError> {
        let mut refused = false;
        loop {
            let at = outside.clock.ticks();
            match self.publish(item) {
                Ok(()) => {
                    self.is_alone = false;
                    return Ok(self.over(at, refused));
                }
                Err(PublishError::Full) => {}
                Err(PublishError::NoSubscriber) => self.tell_alone(outside),
                Err(PublishError::Unknown(reason)) => return self.send_again(reason, (at, refused), outside),
                Err(error) => return Err(error),
            }
            if outside.is_stopped() {
                return Ok(Handed::Stopped);
            }
            refused = true;
            match self.wait {
                wait if wait.sleeps() => sleep_ns(ROOM_NS),
                wait => wait.idle(),
            }
        }
    }

    fn publish(&mut self, item: Item<'_>) -> Result<(), PublishError> {
        match item {
            Item::Message { origin: Some(origin), stamp, kind, payload } if self.log.is_none() => {
                self.publisher.carry(origin, stamp, kind, payload)
            }
            Item::Message { stamp, kind, payload, .. } => self.publisher.publish(stamp, kind, payload),
            Item::Gap(at, gap) => self.publisher.publish_gap(at, gap),
        }
    }

    fn over(&mut self, at: u64, refused: bool) -> Handed {
        if let Some(log) = &mut self.log {
            log.next += 1;
        }
        Handed::Over { at, refused }
    }

    /// Sends a message in doubt again, as the same message, until it is known to have arrived; subscribers get it once.
    fn send_again(
        &mut self,
        reason: String,
        (at, refused): (u64, bool),
        outside: &Outside<'_>,
    ) -> Result<Handed, PublishError> {
        (outside.tell)(&format!("'{}': {reason}; it is sent again, and comes once", self.topic));
        loop {
            match self.publisher.resend().map_err(|failed| failed.error) {
                Ok(()) => return Ok(self.over(at, refused)),
                Err(PublishError::Unknown(_)) if outside.is_stopped() => return Ok(Handed::Stopped),
                Err(PublishError::Unknown(_)) => sleep_ns(RETRY_NS),
                Err(error) => return Err(error),
            }
        }
    }

    fn tell_alone(&mut self, outside: &Outside<'_>) {
        if !self.is_alone {
            self.is_alone = true;
            (outside.tell)(&format!("nobody is subscribed to '{}', whose policy is 'fail'; waiting", self.topic));
        }
    }
}
