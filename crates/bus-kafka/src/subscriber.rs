//! Receives one topic, from a place in it on. What Kafka calls an offset is the sequence number.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::{
    ConnectError, Event, Gap, OriginTracker, PublisherState, ReceiveError, Start, Subscriber, wire,
};
use tickpath_clock::{Wait, utc_ns};

use crate::answer::ServerError;
use crate::cluster::{Cluster, drain};
use crate::deadline::whole_ms;
use crate::reasons::Reasons;

/// Who only reads at places of its own joins no group; the client library wants a name for one all the same.
const SETTINGS: [(&str, &str); 9] = [
    ("group.id", "tickpath-subscriber"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    // Where the server has not got the place any more, it is looked for anew: at the oldest message there may be what
    // lies before the subscription.
    ("auto.offset.reset", "error"),
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
    /// As it is called on the server.
    topic: String,
    consumer: BaseConsumer<Reasons>,
    wait: Wait,
    place: Place,
    trouble: Trouble,
    /// A gap that is not told yet; it lies before `held`.
    gap: Option<Gap>,
    /// A record that ended a sleep, or waits behind a gap.
    held: Option<Record>,
}

/// Why no record comes.
#[derive(Default)]
struct Trouble {
    /// The server has not got the place any more, and another one is not found yet.
    is_lost: bool,
    /// An error that is not told yet.
    error: Option<ServerError>,
}

/// How far a subscription has come.
struct Place {
    /// The offset that comes next.
    next: i64,
    /// When the newest record was made that was seen, or the subscription, if none was; UTC, in milliseconds.
    newest_ms: i64,
    tracker: OriginTracker,
}

struct Record {
    offset: i64,
    /// When it was made, if that is known.
    made_ms: Option<i64>,
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
        let newest_ms = now_ms();
        let marks = cluster.watermarks(consumer.client(), topic, PARTITION);
        let (low, high) = marks.map_err(|e| refusal(&cluster, &consumer, &e))?;
        let (next, gap) = match start {
            Start::Now => (high, None),
            Start::Oldest => (low, None),
            Start::Sequence(sequence) => place(topic, sequence, low, high)?,
            Start::After(token) => place(topic, token.read("kafka")?.0[0], low, high)?,
        };
        read_from(&consumer, topic, next).map_err(|e| refusal(&cluster, &consumer, &e))?;
        let place = Place { next, newest_ms, tracker: OriginTracker::default() };
        let topic = topic.to_owned();
        Ok(Self { cluster, topic, consumer, wait, place, trouble: Trouble::default(), gap, held: None })
    }

    /// Looks for the place to go on at; where the server does not say, the next call looks again.
    fn look(&mut self) {
        match self.go_on() {
            Ok(gap) => (self.trouble.is_lost, self.gap) = (false, gap),
            Err(error) => self.trouble.error = ServerError::lasting(&error),
        }
    }

    fn go_on(&mut self) -> KafkaResult<Option<Gap>> {
        let (low, high) = self.cluster.watermarks(self.consumer.client(), &self.topic, PARTITION)?;
        let newer = self.first_newer()?.unwrap_or(high);
        let (next, gap) = go_on(self.place.next, low, newer, high);
        read_from(&self.consumer, &self.topic, next)?;
        self.place.next = next;
        Ok(gap)
    }

    /// The offset of the first record that was made after all that were seen, if there is one. It is one that was put
    /// there when the server had lost what was seen, also if the topic is another one now.
    fn first_newer(&self) -> KafkaResult<Option<i64>> {
        // Of who makes records in the future, the present is all that can be believed.
        let seen_ms = self.place.newest_ms.min(now_ms());
        let mut times = TopicPartitionList::new();
        times.add_partition_offset(&self.topic, PARTITION, Offset::Offset(seen_ms + 1))?;
        let found = self.cluster.patiently(|left| self.consumer.offsets_for_times(times.clone(), left))?;
        let Some(found) = found.find_partition(&self.topic, PARTITION) else { return Ok(None) };
        found.error()?;
        match found.offset() {
            Offset::Offset(offset) => Ok(Some(offset)),
            _ => Ok(None),
        }
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
                self.place.tracker.told();
                hand_over(Event::Gap(gap));
            } else if let Some(held) = self.held.take() {
                self.gap = self.place.take(held.offset, held.made_ms, &held.value, &mut hand_over);
                self.held = self.gap.is_some().then_some(held);
            } else if self.trouble.error.is_some() {
                break;
            } else if self.trouble.is_lost {
                self.look();
                if self.trouble.is_lost {
                    break;
                }
            } else {
                match self.consumer.poll(Duration::ZERO) {
                    None => break,
                    Some(Err(e)) => self.trouble.note(&e),
                    Some(Ok(message)) => {
                        let value = message.payload().unwrap_or_default();
                        let made_ms = message.timestamp().to_millis();
                        self.gap = self.place.take(message.offset(), made_ms, value, &mut hand_over);
                        self.held = self.gap.is_some().then(|| Record::of(&message));
                    }
                }
            }
        }
        match self.trouble.error.take_if(|_| handed_over == 0) {
            Some(error) => Err(ReceiveError::Other(self.cluster.server().sentence(&error).into())),
            None => Ok(handed_over),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        if self.gap.is_some() || self.held.is_some() || self.trouble.is_any() {
            return;
        }
        match self.consumer.poll(whole_ms(timeout_ns)) {
            None => {}
            Some(Ok(message)) => self.held = Some(Record::of(&message)),
            Some(Err(e)) => self.trouble.note(&e),
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }
}

impl Trouble {
    /// Takes in what the client library says instead of a record.
    fn note(&mut self, error: &KafkaError) {
        match error.rdkafka_error_code() {
            Some(Code::AutoOffsetReset | Code::OffsetOutOfRange) => self.is_lost = true,
            _ => self.error = ServerError::lasting(error),
        }
    }

    fn is_any(&self) -> bool {
        self.is_lost || self.error.is_some()
    }
}

impl Record {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let value = message.payload().unwrap_or_default().to_vec();
        Self { offset: message.offset(), made_ms: message.timestamp().to_millis(), value }
    }
}

impl Place {
    /// Hands a record over, unless it came before, or gives what the topic's count or his publisher's tells to be missing
    /// before it: then it is to be taken once more.
    fn take(
        &mut self,
        offset: i64,
        made_ms: Option<i64>,
        value: &[u8],
        hand_over: &mut dyn FnMut(Event<'_>),
    ) -> Option<Gap> {
        let expected = std::mem::replace(&mut self.next, offset);
        if offset > expected {
            return Some(Gap::Missed((offset - expected) as u64));
        }
        if offset < expected {
            // Somebody has removed the topic, and it was made anew.
            return Some(Gap::Reconnected);
        }
        let mut missed = None;
        let is_over = wire::hand_over(&mut self.tracker, Some(offset as u64), value, &mut |event| match event {
            Event::Gap(gap) => missed = Some(gap),
            event => hand_over(event),
        });
        if is_over {
            self.next += 1;
            self.newest_ms = made_ms.map_or(self.newest_ms, |made_ms| made_ms.max(self.newest_ms));
        }
        missed
    }
}

fn read_from(consumer: &BaseConsumer<Reasons>, topic: &str, next: i64) -> KafkaResult<()> {
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(topic, PARTITION, Offset::Offset(next))?;
    consumer.assign(&places)
}

/// UTC, in milliseconds.
fn now_ms() -> i64 {
    (utc_ns() / 1_000_000) as i64
}

/// Where a subscription goes on whose next offset the server refuses, and what it has to tell. `newer` is the first
/// record that is newer than all that was seen, or `high`.
fn go_on(next: i64, low: i64, newer: i64, high: i64) -> (i64, Option<Gap>) {
    if next < low {
        return (low, Some(Gap::Missed((low - next) as u64)));
    }
    if next > high || newer < next {
        // The end of the topic was lost, or it is another topic: what lies before `newer` was seen, or lies before the
        // subscription.
        return (newer, Some(Gap::Reconnected));
    }
    // It was a leader that lagged behind.
    (next, None)
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
    use tickpath_bus_api::Origin;

    use super::*;

    fn at(next: i64) -> Place {
        Place { next, newest_ms: 0, tracker: OriginTracker::default() }
    }

    #[test]
    fn every_record_is_handed_over_or_its_absence_is_told() {
        let ours = wire::encode(7, 16, Origin { clock: 1, publisher: 2, number: 3 }, b"ours");
        // The offset expected, that of the record, its value, the gap, the messages, the offset expected then.
        for (expected, offset, value, gap, messages, then) in [
            (5, 5, &ours[..], None, 1, 6),
            (5, 5, &b"of others"[..], None, 1, 6),
            (5, 9, &ours[..], Some(Gap::Missed(4)), 0, 9),
            (5, 0, &ours[..], Some(Gap::Reconnected), 0, 0),
        ] {
            let (mut place, mut seen) = (at(expected), Vec::new());
            let told = place.take(offset, Some(8), value, &mut |event| match event {
                Event::Message(message) => seen.push((message.sequence, ours.clone())),
                Event::Foreign(foreign) => seen.push((foreign.sequence, foreign.bytes.to_vec())),
                Event::Gap(gap) => panic!("{gap:?}"),
            });
            assert_eq!((told, seen.len(), place.next), (gap, messages, then), "{offset} after {expected}");
            assert!(seen.iter().all(|seen| *seen == (Some(offset as u64), value.to_vec())));
            assert_eq!(place.newest_ms, if messages > 0 { 8 } else { 0 });
        }
    }

    #[test]
    fn what_was_sent_again_under_the_same_origin_comes_once() {
        let ours = |number| wire::encode(number, 16, Origin { clock: 1, publisher: 2, number }, b"ours");
        let (mut place, mut came) = (at(0), Vec::new());
        for (offset, number) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
            let gap = place.take(offset, None, &ours(number), &mut |event| match event {
                Event::Message(message) => came.push(message.stamp),
                other => panic!("{other:?}"),
            });
            assert_eq!(gap, None);
        }
        assert_eq!((came, place.next), (vec![0, 1, 2], 4));
    }

    #[test]
    fn a_place_that_is_gone_is_found_anew_and_nothing_old_is_new() {
        // The offset expected, the oldest, the first that is newer than what was seen, the next one; where it goes on.
        for (next, low, newer, high, then, gap) in [
            (5, 9, 9, 20, 9, Some(Gap::Missed(4))),
            // The end is lost, and nothing is new; three are; the topic has grown past the place again.
            (110, 0, 50, 50, 50, Some(Gap::Reconnected)),
            (110, 0, 50, 53, 50, Some(Gap::Reconnected)),
            (110, 0, 50, 200, 50, Some(Gap::Reconnected)),
            // The topic is another one.
            (110, 0, 0, 7, 0, Some(Gap::Reconnected)),
            // Nothing is lost.
            (110, 0, 110, 110, 110, None),
            (110, 0, 115, 120, 110, None),
        ] {
            assert_eq!(go_on(next, low, newer, high), (then, gap), "{next} in {low}..{high}, newer {newer}");
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
