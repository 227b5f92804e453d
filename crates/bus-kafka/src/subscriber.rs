//! Receives one topic from an offset on. The offset is the sequence number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::details::{self, Object};
use tickpath_bus_api::{ConnectError, Event, Gap, PublisherState, ReceiveError, ResumeToken, Start, Subscriber, wire};
use tickpath_clock::{Wait, utc_ns};

use crate::answer::ServerError;
use crate::brokers;
use crate::cluster::{Cluster, drain};
use crate::deadline::whole_ms;
use crate::lookout::Lookout;
use crate::place::{self, Ahead, Newer, Place, Taken};
use crate::reasons::Reasons;

/// Consumer settings. A subscriber joins no group, but the client library requires a group id.
const SETTINGS: [(&str, &str); 11] = [
    ("group.id", "tickpath-subscriber"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    // An offset that the server no longer has is searched for by time: the oldest message may lie before the
    // subscription.
    ("auto.offset.reset", "error"),
    // A server that has records answers at once.
    ("fetch.min.bytes", "1"),
    ("fetch.wait.max.ms", "500"),
    ("fetch.error.backoff.ms", "20"),
    ("fetch.queue.backoff.ms", "10"),
    // Read-ahead of the client library; this crate keeps nothing more.
    ("queued.max.messages.kbytes", "65536"),
    ("fetch.max.bytes", "8388608"),
    ("enable.partition.eof", "false"),
];

/// The only partition of a topic.
const PARTITION: i32 = 0;

/// A subscription with its own connections.
pub(crate) struct KafkaSubscriber {
    cluster: Arc<Cluster>,
    /// Name on the server.
    topic: String,
    consumer: Arc<BaseConsumer<Reasons>>,
    /// Detects the end of an outage.
    lookout: Option<Lookout>,
    outages: Arc<AtomicU64>,
    wait: Wait,
    place: Place,
    trouble: Trouble,
    /// A gap before `held` that is not reported yet.
    ahead: Option<Ahead>,
    /// A record that ended a sleep, or waits behind a gap.
    held: Option<Record>,
}

/// Reasons for which no record comes.
#[derive(Default)]
struct Trouble {
    /// The offset is void, and another one must be found.
    lost: Option<Lost>,
    /// An error that is not reported yet.
    error: Option<ServerError>,
}

/// Reason for which an offset is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The server does not have the offset.
    Refused,
    /// Another record lies before the offset: the topic was recreated.
    Changed,
}

struct Record {
    offset: i64,
    /// Timestamp in milliseconds, if the record has one.
    made_ms: Option<i64>,
    value: Vec<u8>,
    /// Key and headers from another program, in JSON.
    beside: Option<String>,
}

impl KafkaSubscriber {
    /// Finds the first offset over the connection that is then read from. The topic must exist.
    pub fn open(cluster: Arc<Cluster>, topic: &str, start: Start, wait: Wait) -> Result<Self, ConnectError> {
        let consumer: BaseConsumer<Reasons> = cluster
            .server()
            .config(&SETTINGS)
            .create_with_context(Reasons::default())
            .map_err(|e| cluster.error(&(&e).into()))?;
        let refused = |e: KafkaError| refusal(&cluster, &consumer, &e);
        let now_ms = now_ms();
        let (low, high) = cluster.watermarks(consumer.client(), topic, PARTITION).map_err(refused)?;
        let (place, (from, gap)) = match start {
            Start::Now => (Place::at(high, now_ms), (high, None)),
            Start::Oldest => (Place::at(low, now_ms), (low, None)),
            Start::Sequence(number) => {
                let found = place::sequence(topic, number, low, high)?;
                (Place::at(number as i64, now_ms), found)
            }
            Start::After(token) => {
                let mut place = Place::of(&token)?;
                let found = match place.prove(low, high) {
                    Some(from) => (from, None),
                    None => {
                        let newer = newer(&cluster, &consumer, topic, &place, high).map_err(refused)?;
                        place::go_on(place.next, low, newer, high)
                    }
                };
                (place, found)
            }
        };
        read_from(&consumer, topic, from).map_err(refused)?;
        let ahead = gap.map(|gap| Ahead { gap, next: from });
        let topic = topic.to_owned();
        let (consumer, trouble) = (Arc::new(consumer), Trouble::default());
        Ok(Self {
            cluster,
            topic,
            consumer,
            lookout: None,
            outages: Arc::default(),
            wait,
            place,
            trouble,
            ahead,
            held: None,
        })
    }

    /// Starts a lookout for the end of an outage, which the client library does not report.
    fn look_after(&mut self) {
        match &self.lookout {
            Some(lookout) if lookout.is_over() => self.lookout = None,
            Some(_) => {}
            None if self.consumer.context().is_outage() => {
                let (cluster, consumer, topic) = (&self.cluster, &self.consumer, &self.topic);
                self.lookout = Some(Lookout::start(cluster, consumer, topic, |reasons| reasons, &self.outages));
            }
            None => {}
        }
    }

    /// Searches for the offset to resume at; if the server does not answer, the next call retries.
    fn look(&mut self, lost: Lost) {
        match self.go_on(lost) {
            Ok(ahead) => (self.trouble.lost, self.ahead) = (None, ahead),
            Err(error) => self.trouble.error = ServerError::lasting(&error),
        }
    }

    fn go_on(&mut self, lost: Lost) -> KafkaResult<Option<Ahead>> {
        let (low, high) = self.cluster.watermarks(self.consumer.client(), &self.topic, PARTITION)?;
        let newer = newer(&self.cluster, &self.consumer, &self.topic, &self.place, high)?;
        let (next, gap) = match lost {
            Lost::Refused => place::go_on(self.place.next, low, newer, high),
            Lost::Changed => (newer.than_believed, Some(Gap::Reconnected)),
        };
        read_from(&self.consumer, &self.topic, next)?;
        self.place.give_up_proof();
        Ok(gap.map(|gap| Ahead { gap, next }))
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
            if let Some(ahead) = self.ahead.take() {
                self.place.tell(ahead, &mut hand_over);
            } else if let Some(held) = self.held.take() {
                let Record { offset, made_ms, value, beside } = &held;
                let mut with = |event: Event<'_>| details::hand_over(event, || beside.clone(), &mut hand_over);
                match self.place.take(*offset, *made_ms, value, &mut with) {
                    Taken::Over => {}
                    Taken::BehindGap => self.held = Some(held),
                    Taken::Changed => self.trouble.lost = Some(Lost::Changed),
                }
            } else if self.trouble.error.is_some() {
                break;
            } else if let Some(lost) = self.trouble.lost {
                self.look(lost);
                if self.trouble.lost.is_some() {
                    break;
                }
            } else {
                match self.consumer.poll(Duration::ZERO) {
                    None => {
                        self.look_after();
                        break;
                    }
                    Some(Err(e)) => {
                        self.trouble.note(&e, self.cluster.lasting(self.consumer.client(), self.consumer.context(), &e))
                    }
                    Some(Ok(message)) => {
                        let value = message.payload().unwrap_or_default();
                        let made_ms = message.timestamp().to_millis();
                        let mut with =
                            |event: Event<'_>| details::hand_over(event, || beside(&message), &mut hand_over);
                        match self.place.take(message.offset(), made_ms, value, &mut with) {
                            Taken::Over => {}
                            Taken::BehindGap => self.held = Some(Record::of(&message)),
                            Taken::Changed => self.trouble.lost = Some(Lost::Changed),
                        }
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
        if self.ahead.is_some() || self.held.is_some() || self.trouble.is_any() {
            return;
        }
        match self.consumer.poll(whole_ms(timeout_ns)) {
            None => self.look_after(),
            Some(Ok(message)) => self.held = Some(Record::of(&message)),
            Some(Err(e)) => {
                self.trouble.note(&e, self.cluster.lasting(self.consumer.client(), self.consumer.context(), &e))
            }
        }
    }

    /// Holds the next offset, the time of the newest record seen, and a fingerprint of the record before that offset.
    fn token(&self) -> Option<ResumeToken> {
        Some(self.place.token())
    }

    fn carry_on(&mut self) {
        self.place.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.outages.load(Ordering::Relaxed))
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.place.again())
    }

    fn late(&self) -> Option<u64> {
        Some(self.place.late())
    }

    fn outage(&self) -> Option<String> {
        self.consumer.context().outage().map(|why| self.cluster.server().sentence(&why))
    }
}

impl Trouble {
    /// Classifies an error that the client library returned instead of a record; keeps it if it is lasting.
    fn note(&mut self, error: &KafkaError, lasting: Option<ServerError>) {
        match error.rdkafka_error_code() {
            Some(Code::AutoOffsetReset | Code::OffsetOutOfRange) => self.lost = Some(Lost::Refused),
            _ => self.error = lasting,
        }
    }

    fn is_any(&self) -> bool {
        self.lost.is_some() || self.error.is_some()
    }
}

impl Record {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let value = message.payload().unwrap_or_default().to_vec();
        let beside = wire::decode(&value).is_none().then(|| beside(message)).flatten();
        Self { offset: message.offset(), made_ms: message.timestamp().to_millis(), value, beside }
    }
}

/// Returns the key, the headers and the absence of a value, as another program sent them beside the value. None if
/// there is nothing.
fn beside(message: &BorrowedMessage<'_>) -> Option<String> {
    let (mut object, mut headers) = (Object::default(), Object::default());
    if let Some(key) = message.key() {
        object.add(b"key", key);
    }
    brokers::headers(message, |name, value| match value {
        Some(value) => headers.add(name, value),
        None => headers.add_json(name, "null"),
    });
    object.add_object(b"headers", headers);
    if message.payload().is_none() {
        object.add_json(b"tombstone", "true");
    }
    object.if_any()
}

/// Returns the first record with a later timestamp than all records seen, or the end. Such a record was written after
/// the server lost the seen ones, or to a recreated topic.
fn newer(
    cluster: &Cluster,
    consumer: &BaseConsumer<Reasons>,
    topic: &str,
    place: &Place,
    high: i64,
) -> KafkaResult<Newer> {
    let (seen_ms, now_ms) = (place.newest_ms, now_ms());
    let than_seen = first_after(cluster, consumer, topic, seen_ms)?.unwrap_or(high);
    let than_believed =
        if seen_ms <= now_ms { than_seen } else { first_after(cluster, consumer, topic, now_ms)?.unwrap_or(high) };
    Ok(Newer { than_seen, than_believed })
}

/// Returns the offset of the first record with a later timestamp, if there is one.
fn first_after(
    cluster: &Cluster,
    consumer: &BaseConsumer<Reasons>,
    topic: &str,
    time_ms: i64,
) -> KafkaResult<Option<i64>> {
    let mut times = TopicPartitionList::new();
    times.add_partition_offset(topic, PARTITION, Offset::Offset(time_ms.max(0).saturating_add(1)))?;
    let found = cluster.patiently(|left| consumer.offsets_for_times(times.clone(), left))?;
    let Some(found) = found.find_partition(topic, PARTITION) else { return Ok(None) };
    found.error()?;
    match found.offset() {
        Offset::Offset(offset) => Ok(Some(offset)),
        _ => Ok(None),
    }
}

fn read_from(consumer: &BaseConsumer<Reasons>, topic: &str, next: i64) -> KafkaResult<()> {
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(topic, PARTITION, Offset::Offset(next))?;
    consumer.assign(&places)
}

/// Returns the current UTC time in milliseconds.
fn now_ms() -> i64 {
    (utc_ns() / 1_000_000) as i64
}

fn refusal(cluster: &Cluster, consumer: &BaseConsumer<Reasons>, error: &KafkaError) -> ConnectError {
    drain(consumer);
    cluster.error(&consumer.context().explain(error))
}
