//! Target of carried messages: waits for room, and for an answer.

use std::ops::Range;

use tickpath_bus::url::redact_logins;
use tickpath_bus::{Connection, Gap, Message, MessageId, Policy, PublishError, Publisher, TopicConfig};
use tickpath_clock::{Clock, Wait, sleep_ns};
use tickpath_log::{LogOpenError, LogPath, Reader, ReaderStart, Registration};

use crate::address::held_sequences;
use crate::published_tail::PublishedTail;
use crate::{FULL_RETRY_NS, RETRY_NS, RelayContext, RelayError, TargetConfig};

pub(crate) struct TopicWriter {
    pub topic: String,
    /// The log, if the topic is one; none on a broker.
    pub log: Option<TargetLog>,
    publisher: Box<dyn Publisher>,
    wait: Wait,
    /// The topic has no subscriber, which was reported.
    is_unsubscribed_reported: bool,
}

pub(crate) struct TargetLog {
    /// Reader of the log.
    pub reader: Reader,
    /// Number of messages when the log was opened.
    pub held: u64,
    /// Sequence number of the next message.
    pub next: u64,
}

impl TargetLog {
    /// Returns the number of the first message that is not known to precede the source's position, and the identity of
    /// the log.
    pub fn position_before(&self, tail: &PublishedTail) -> (u64, u64) {
        (tail.front_sequence().unwrap_or(self.next), self.reader.identity())
    }
}

#[derive(Clone, Copy)]
pub(crate) enum CarriedItem<'a> {
    /// A message, with the origin that it is to keep, if any.
    Message {
        id: Option<MessageId>,
        /// Stamp, in ticks of the origin's clock, or else of this host's.
        stamp: u64,
        kind: u8,
        payload: &'a [u8],
    },
    /// Ticks at which a loss was detected, and the loss.
    Gap(u64, Gap),
}

impl<'a> CarriedItem<'a> {
    /// Creates the item for a message with this stamp in place of its own.
    pub fn of(message: &Message<'a>, stamp: u64) -> Self {
        Self::Message { id: message.id, stamp, kind: message.kind, payload: message.payload }
    }

    /// Returns whether the item has an origin to keep.
    pub fn has_id(&self) -> bool {
        matches!(self, Self::Message { id: Some(_), .. })
    }
}

pub(crate) enum PublishOutcome {
    Published {
        /// Ticks at which the successful call began.
        ticks: u64,
        refused: bool,
    },
    /// The carrier was stopped before the item was published.
    Stopped,
}

/// Opens the publisher of a topic.
pub(crate) fn open_publisher(
    connection: &dyn Connection,
    topic: &str,
    target: &TargetConfig,
) -> Result<Box<dyn Publisher>, RelayError> {
    let default_policy = connection.capabilities().policies.first().copied().unwrap_or(Policy::Overwrite);
    let policy = target.policy.unwrap_or(default_policy);
    let TargetConfig { capacity_bytes, max_age_ns, .. } = *target;
    let config = TopicConfig { capacity_bytes, max_age_ns, ..TopicConfig::new(policy) };
    connection.publisher(topic, &config).map_err(RelayError::from_publisher)
}

impl TopicWriter {
    /// Opens a topic of the bus at this URL.
    pub fn open(
        connection: &dyn Connection,
        (url, topic): (&str, &str),
        target: &TargetConfig,
        wait: Wait,
    ) -> Result<Self, RelayError> {
        let publisher = open_publisher(connection, topic, target)?;
        let open_log = |(path, held): (LogPath, Range<u64>)| {
            let reader = Reader::open(&path, ReaderStart::Now, Registration::Unregistered)?;
            Ok::<_, LogOpenError>(TargetLog { next: reader.sequence(), held: held.end - held.start, reader })
        };
        let log = held_sequences(url, topic).map(open_log).transpose()?;
        Ok(Self { topic: topic.to_owned(), log, publisher, wait, is_unsubscribed_reported: false })
    }

    /// Reports the messages that a log holds already, because they stay.
    pub fn report_held(&self, url: &str, context: &RelayContext<'_>) {
        if let Some(TargetLog { reader, held: held @ 1.., .. }) = &self.log {
            let (url, path) = (redact_logins(url), reader.path());
            (context.report)(&format!(
                "'{}' of {url} exists already: messages are appended after its {held} messages; to start anew, first \
                 run: tickpath log rm {path}",
                self.topic
            ));
        }
    }

    /// Publishes an item, however long it takes, unless the carrier is stopped.
    pub fn publish_until_stopped(
        &mut self,
        item: CarriedItem<'_>,
        context: &RelayContext<'_>,
    ) -> Result<PublishOutcome, PublishError> {
        let mut refused = false;
        loop {
            let ticks = context.clock.ticks();
            match self.publish(item) {
                Ok(()) => {
                    self.is_unsubscribed_reported = false;
                    return Ok(self.published(ticks, refused));
                }
                Err(PublishError::Full) => {}
                Err(PublishError::NoSubscriber) => self.report_unsubscribed(context),
                Err(PublishError::Unknown(reason)) => return self.resend_in_doubt(reason, (ticks, refused), context),
                Err(error) => return Err(error),
            }
            if context.is_stopped() {
                return Ok(PublishOutcome::Stopped);
            }
            refused = true;
            match self.wait {
                wait if wait.sleeps() => sleep_ns(FULL_RETRY_NS),
                wait => wait.idle(),
            }
        }
    }

    fn publish(&mut self, item: CarriedItem<'_>) -> Result<(), PublishError> {
        match item {
            CarriedItem::Message { id: Some(origin), stamp, kind, payload } if self.log.is_none() => {
                self.publisher.publish_with_id(origin, stamp, kind, payload)
            }
            CarriedItem::Message { stamp, kind, payload, .. } => self.publisher.publish(stamp, kind, payload),
            CarriedItem::Gap(ticks, gap) => self.publisher.publish_gap(ticks, gap),
        }
    }

    fn published(&mut self, ticks: u64, refused: bool) -> PublishOutcome {
        if let Some(log) = &mut self.log {
            log.next += 1;
        }
        PublishOutcome::Published { ticks, refused }
    }

    /// Sends a message in doubt again, as the same message, until it is known to have arrived; subscribers get it once.
    fn resend_in_doubt(
        &mut self,
        reason: String,
        (ticks, refused): (u64, bool),
        context: &RelayContext<'_>,
    ) -> Result<PublishOutcome, PublishError> {
        (context.report)(&format!("'{}': {reason}; it is sent again, and subscribers get it once", self.topic));
        loop {
            match self.publisher.resend().map_err(|failed| failed.error) {
                Ok(()) => return Ok(self.published(ticks, refused)),
                Err(PublishError::Unknown(_)) if context.is_stopped() => return Ok(PublishOutcome::Stopped),
                Err(PublishError::Unknown(_)) => sleep_ns(RETRY_NS),
                Err(error) => return Err(error),
            }
        }
    }

    fn report_unsubscribed(&mut self, context: &RelayContext<'_>) {
        if !self.is_unsubscribed_reported {
            self.is_unsubscribed_reported = true;
            (context.report)(&format!("'{}' has no subscriber, which its policy 'fail' requires; waiting", self.topic));
        }
    }
}
