//! A publisher or pusher: numbers its messages, and keeps those in doubt for a resend.

use std::sync::Arc;

use tickpath_bus_api::{BatchError, ConnectError, Fate, MessageId, Numbering, PublishError, Publisher, Pusher, wire};

use crate::cluster::Cluster;
use crate::producer::{FillMessage, TopicProducer};

/// Longest payload, in bytes: with its overhead below the limit of a server with default settings.
pub const MAX_PAYLOAD_BYTES: usize = 1_000_000;

pub(crate) struct KafkaPublisher {
    producer: TopicProducer,
    numbering: Numbering,
    /// Subscribers of a topic drop messages by sequence number; pullers of a queue do not.
    is_topic: bool,
    /// Encoded messages of the last call that are in doubt.
    unknown: Vec<Vec<u8>>,
    /// A later message was published behind one in doubt.
    is_overtaken: bool,
}

impl KafkaPublisher {
    pub fn of_topic(cluster: Arc<Cluster>, topic: String) -> Result<Self, ConnectError> {
        Self::open(cluster, topic, 1, true)
    }

    pub fn of_queue(cluster: Arc<Cluster>, topic: String, partitions: i32) -> Result<Self, ConnectError> {
        Self::open(cluster, topic, partitions, false)
    }

    fn open(cluster: Arc<Cluster>, topic: String, partitions: i32, is_topic: bool) -> Result<Self, ConnectError> {
        let numbering = Numbering::new(cluster.clock);
        let producer = TopicProducer::open(cluster.clone(), topic, partitions).map_err(|e| cluster.error(&e))?;
        Ok(Self { producer, numbering, is_topic, unknown: Vec::new(), is_overtaken: false })
    }

    /// Sends new messages, under the next sequence numbers.
    fn send_new(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let first = self.numbering.peek(0);
        let fill = |number: usize, value: &mut Vec<u8>| {
            let origin = MessageId { sequence: first.sequence + number as u64, ..first };
            value.extend_from_slice(&wire::header(stamp, kind, origin));
            value.extend_from_slice(payloads[number]);
        };
        let sent = self.send(payloads.len(), &fill);
        let used = match &sent {
            Ok(()) => payloads.len(),
            // Sequence numbers of trailing messages that are surely not published are free for the next call.
            Err(error) => error.done + error.fates.len(),
        };
        self.numbering.advance(used);
        sent
    }

    /// Sends messages, and keeps those in doubt.
    fn send(&mut self, count: usize, fill: &FillMessage<'_>) -> Result<(), BatchError> {
        self.unknown.clear();
        let Err(failure) = self.producer.send(count, fill) else { return Ok(()) };
        let error = BatchError::from_failure(&failure.fates, failure.reason, failure.is_transient);
        self.is_overtaken = is_overtaken(&error);
        self.unknown.extend(error.unknown().map(|number| {
            let mut copy = Vec::new();
            fill(number, &mut copy);
            copy
        }));
        Err(error)
    }

    /// Resends the messages in doubt, under the same sequence numbers. Those not acknowledged stay in doubt, because
    /// the first copy may have arrived.
    fn resend_unknown(&mut self) -> Result<(), BatchError> {
        let count = self.unknown.len();
        if self.is_topic && self.is_overtaken {
            let sentence = "what was published behind these messages has overtaken them, and subscribers would drop \
                            them as known; read the topic to see whether they have arrived, or publish them anew";
            return Err(BatchError::all_unknown(count, PublishError::Other(sentence.into())));
        }
        let unknown = &self.unknown;
        let fill = |number: usize, value: &mut Vec<u8>| value.extend_from_slice(&unknown[number]);
        let sent = self.producer.send(count, &fill);
        let Err(failure) = sent else {
            self.unknown.clear();
            return Ok(());
        };
        let mut fates: Vec<Fate> = failure.fates.into_iter().map(Fate::after_resend).collect();
        fates.resize(count, Fate::Unknown);
        let mut number = 0;
        self.unknown.retain(|_| {
            number += 1;
            fates[number - 1] == Fate::Unknown
        });
        // A lasting error is returned as such, and leaves the messages in doubt.
        let error = match failure.is_transient {
            true => PublishError::Unknown(failure.reason),
            false => PublishError::Other(failure.reason.into()),
        };
        let error = BatchError::from_fates(&fates, error);
        self.is_overtaken = is_overtaken(&error);
        Err(error)
    }
}

impl Publisher for KafkaPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        wire::check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        self.send_new(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_with_id(&mut self, origin: MessageId, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        wire::check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        let fill = |_number: usize, value: &mut Vec<u8>| {
            value.extend_from_slice(&wire::header(stamp, kind, origin));
            value.extend_from_slice(payload);
        };
        self.send(1, &fill).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.unknown.clear();
        wire::send_valid(kind, payloads, MAX_PAYLOAD_BYTES, |good| self.send_new(stamp, kind, good))
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        if self.unknown.is_empty() { Ok(()) } else { self.resend_unknown() }
    }
}

impl Pusher for KafkaPublisher {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.publish_batch(stamp, kind, payloads)
    }

    fn resend(&mut self) -> Result<(), BatchError> {
        Publisher::resend(self)
    }
}

/// Returns whether a message was published behind one in doubt.
fn is_overtaken(error: &BatchError) -> bool {
    let first = error.fates.iter().position(|&fate| fate == Fate::Unknown);
    first.is_some_and(|first| error.fates[first..].contains(&Fate::Published))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_doubt_is_overtaken_by_a_later_published_one() {
        use Fate::{NotPublished, Published, Unknown};
        let cases: [(&[Fate], bool); 5] = [
            (&[Published, Unknown, Unknown], false),
            (&[Unknown, NotPublished], false),
            (&[NotPublished, Published, Unknown], false),
            (&[Unknown, NotPublished, Published], true),
            (&[NotPublished, Published], false),
        ];
        for (fates, is_so) in cases {
            let error = BatchError::from_fates(fates, PublishError::Unknown(String::new()));
            assert_eq!(is_overtaken(&error), is_so, "{fates:?}");
        }
    }
}
