//! Receives one topic, from a place in it on. What Kafka calls an offset is the sequence number.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::{ConnectError, Event, Gap, PublisherState, ReceiveError, Start, Subscriber, wire};
use tickpath_clock::Wait;

use crate::cluster::{Cluster, drain};
use crate::deadline::whole_ms;
use crate::reasons::Reasons;
use crate::server::ServerError;

/// Who only reads at places of its own joins no group; the client library wants a name for one all the same.
const SETTINGS: [(&str, &str); 9] = [
    ("group.id", "tickpath-subscriber"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    // Where the server has forgotten the place, the oldest message comes next, and its number tells the gap.
    ("auto.offset.reset", "earliest"),
    // A server that has something answers at once.
    ("fetch.min.bytes", "1"),
    ("fetch.wait.max.ms", "500"),
    ("fetch.error.backoff.ms", "20"),
    ("fetch.queue.backoff.ms", "10"),
    ("enable.partition.eof", "false"),
];

/// The only partition of a topic.
const PARTITION: i32 = 0;

/// A subscription with its own connections.
pub(crate) struct KafkaSubscriber {
    cluster: Arc<Cluster>,
    consumer: BaseConsumer<Reasons>,
    wait: Wait,
    /// The offset that comes next.
    next: i64,
    /// A gap that is not told yet; it lies before `held`.
    gap: Option<Gap>,
    /// A record that ended a sleep, or waits behind a gap.
    held: Option<Record>,
    /// An error that is not told yet.
    error: Option<ServerError>,
}

struct Record {
    offset: i64,
    value: Vec<u8>,
}

impl KafkaSubscriber {
    /// Finds the place where to begin, over the connection that is then read from. The topic is there.
    pub fn open(cluster: Arc<Cluster>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let consumer: BaseConsumer<Reasons> = cluster
            .server()
            .config(&SETTINGS)
            .create_with_context(Reasons::default())
            .map_err(|e| cluster.error(&(&e).into()))?;
        let marks = cluster.watermarks(consumer.client(), topic, PARTITION);
        let (low, high) = marks.map_err(|e| refusal(&cluster, &consumer, &e))?;
        let (next, gap) = match start {
            Start::Now => (high, None),
            Start::Oldest => (low, None),
            Start::Sequence(sequence) => place(topic, sequence, low, high)?,
        };
        let from = |next| -> KafkaResult<()> {
            let mut places = TopicPartitionList::new();
            places.add_partition_offset(topic, PARTITION, Offset::Offset(next))?;
            consumer.assign(&places)
        };
        from(next).map_err(|e| refusal(&cluster, &consumer, &e))?;
        Ok(Self { cluster, consumer, wait, next, gap, held: None, error: None })
    }
}

impl Subscriber for KafkaSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let mut handed_over = 0;
        let mut hand_over = |event: Event<'_>| {
            handed_over += 1;
            handler(event);
        };
        for _ in 0..limit {
            if let Some(gap) = self.gap.take() {
                hand_over(Event::Gap(gap));
            } else if let Some(held) = self.held.take() {
                self.gap = take(&mut self.next, held.offset, &held.value, &mut hand_over);
                self.held = self.gap.is_some().then_some(held);
            } else if self.error.is_some() {
                break;
            } else {
                match self.consumer.poll(Duration::ZERO) {
                    None => break,
                    Some(Err(e)) => self.error = ServerError::lasting(&e),
                    Some(Ok(message)) => {
                        let value = message.payload().unwrap_or_default();
                        self.gap = take(&mut self.next, message.offset(), value, &mut hand_over);
                        self.held = self.gap.is_some().then(|| Record::of(&message));
                    }
                }
            }
        }
        match self.error.take_if(|_| handed_over == 0) {
            Some(error) => Err(ReceiveError::Other(self.cluster.server().sentence(&error).into())),
            None => Ok(handed_over),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        if self.gap.is_some() || self.held.is_some() || self.error.is_some() {
            return;
        }
        match self.consumer.poll(whole_ms(timeout_ns)) {
            None => {}
            Some(Ok(message)) => self.held = Some(Record::of(&message)),
            Some(Err(e)) => self.error = ServerError::lasting(&e),
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }
}

impl Record {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        Self { offset: message.offset(), value: message.payload().unwrap_or_default().to_vec() }
    }
}

/// Hands a record over, or gives what is missing before it.
fn take(next: &mut i64, offset: i64, value: &[u8], hand_over: &mut dyn FnMut(Event<'_>)) -> Option<Gap> {
    let expected = std::mem::replace(next, offset);
    if offset > expected {
        return Some(Gap::Missed((offset - expected) as u64));
    }
    if offset < expected {
        // Somebody has removed the topic, and it was made anew.
        return Some(Gap::Reconnected);
    }
    *next += 1;
    hand_over(wire::event(Some(offset as u64), value));
    None
}

/// Where a subscription from a sequence number on begins, and what is gone before that.
fn place(topic: &str, sequence: u64, low: i64, high: i64) -> Result<(i64, Option<Gap>), ConnectError> {
    match i64::try_from(sequence) {
        Ok(wanted) if wanted > high => {}
        Ok(wanted) if wanted < low => return Ok((low, Some(Gap::Missed((low - wanted) as u64)))),
        Ok(wanted) => return Ok((wanted, None)),
        Err(_) => {}
    }
    let sentence = format!(
        "topic '{topic}' has no message {sequence} yet, its next one is {high}; \
         start there or before it, at the oldest, or now"
    );
    Err(ConnectError::Other(sentence.into()))
}

fn refusal(cluster: &Cluster, consumer: &BaseConsumer<Reasons>, error: &KafkaError) -> ConnectError {
    drain(consumer);
    cluster.error(&consumer.context().explain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_handed_over_or_its_absence_is_told() {
        let ours = wire::encode(7, 16, b"ours");
        // The offset expected, that of the record, its value, the gap, the messages, the offset expected then.
        for (expected, offset, value, gap, messages, then) in [
            (5, 5, &ours[..], None, 1, 6),
            (5, 5, &b"of others"[..], None, 1, 6),
            (5, 9, &ours[..], Some(Gap::Missed(4)), 0, 9),
            (5, 0, &ours[..], Some(Gap::Reconnected), 0, 0),
        ] {
            let (mut next, mut seen) = (expected, Vec::new());
            let told = take(&mut next, offset, value, &mut |event| match event {
                Event::Message(message) => seen.push((message.sequence, ours.clone())),
                Event::Foreign(foreign) => seen.push((foreign.sequence, foreign.bytes.to_vec())),
                Event::Gap(gap) => panic!("{gap:?}"),
            });
            assert_eq!((told, seen.len(), next), (gap, messages, then), "{offset} after {expected}");
            assert!(seen.iter().all(|seen| *seen == (Some(offset as u64), value.to_vec())));
        }
    }

    #[test]
    fn a_sequence_number_is_a_place_or_a_gap_or_not_yet() {
        for (sequence, found) in [
            (0, Some((3, Some(Gap::Missed(3))))),
            (3, Some((3, None))),
            (9, Some((9, None))),
            (10, None),
            (u64::MAX, None),
        ] {
            assert_eq!(place("ticks", sequence, 3, 9).ok(), found, "{sequence}");
        }
    }
}
