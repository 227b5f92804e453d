//! Receives one topic, from a place in it on. What Kafka calls an offset is the sequence number.

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

/// Who only reads at places of its own joins no group; the client library wants a name for one all the same.
const SETTINGS: [(&str, &str); 11] = [
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
    // What the client library reads ahead; nothing more is kept here.
    ("queued.max.messages.kbytes", "65536"),
    ("fetch.max.bytes", "8388608"),
    ("enable.partition.eof", "false"),
];

/// The only partition of a topic.
const PARTITION: i32 = 0;

/// A subscription with its own connections.
pub(crate) struct KafkaSubscriber {
    cluster: Arc<Cluster>,
    /// As it is called on the server.
    topic: String,
    consumer: Arc<BaseConsumer<Reasons>>,
    /// Finds out when an outage is over.
    lookout: Option<Lookout>,
    outages: Arc<AtomicU64>,
    wait: Wait,
    place: Place,
    trouble: Trouble,
    /// A gap that is not told yet; it lies before `held`.
    ahead: Option<Ahead>,
    /// A record that ended a sleep, or waits behind a gap.
    held: Option<Record>,
}

/// Why no record comes.
#[derive(Default)]
struct Trouble {
    /// Another place is to be found.
    lost: Option<Lost>,
    /// An error that is not told yet.
    error: Option<ServerError>,
}

/// Why a place is no place any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The server has not got it.
    Refused,
    /// Another record lies before it: the topic is another one.
    Changed,
}

struct Record {
    offset: i64,
    /// When it was made, if that is known.
    made_ms: Option<i64>,
    value: Vec<u8>,
    /// Details beside the value of another program, in JSON.
    beside: Option<String>,
}

impl KafkaSubscriber {
    /// Finds the place where to begin, over the connection that is then read from. The topic is there.
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

    /// Nothing has come: has an outage looked after that the client library tells of, and never says that it is over.
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

    /// Looks for the place to go on at; where the server does not say, the next call looks again.
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

    /// Its words are the next offset, when the newest record was made that was seen, and what the record before that
    /// offset is known by.
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
    /// Takes in what the client library says instead of a record, and what of it does not pass.
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

/// Details that another program has sent beside the value: the key, the headers, and that there is no value. None if there is nothing.
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

/// The first record that was made after all that were seen, or the end. It is one that was put there when the server
/// had lost what was seen, also if the topic is another one now.
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

/// The offset of the first record that was made after this time, if there is one.
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

/// UTC, in milliseconds.
fn now_ms() -> i64 {
    (utc_ns() / 1_000_000) as i64
}

fn refusal(cluster: &Cluster, consumer: &BaseConsumer<Reasons>, error: &KafkaError) -> ConnectError {
    drain(consumer);
    cluster.error(&consumer.context().explain(error))
}
