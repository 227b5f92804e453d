//! Receives one topic from an offset on. The offset is the sequence number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tickpath_bus_api::details::{self, JsonObject};
use tickpath_bus_api::{
    ConnectError, Gap, PublisherState, ReceiveError, ResumeToken, StartPosition, Subscriber, SubscriptionEvent, wire,
};
use tickpath_clock::{Wait, utc_ns};

use crate::brokers;
use crate::cluster::{Cluster, drain_events};
use crate::deadline::whole_ms;
use crate::error::KafkaServerError;
use crate::outage_probe::OutageProbe;
use crate::position::{self, KafkaPosition, NewerOffsets, RecordOutcome, UnreportedGap};
use crate::reasons::OutageReasons;

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

const PARTITION: i32 = 0;

pub(crate) struct KafkaSubscriber {
    cluster: Arc<Cluster>,
    /// Name on the server.
    topic: String,
    consumer: Arc<BaseConsumer<OutageReasons>>,
    /// Detects the end of an outage.
    outage_probe: Option<OutageProbe>,
    outages: Arc<AtomicU64>,
    wait: Wait,
    position: KafkaPosition,
    fault: ReceiveFault,
    /// A gap before `pending_record` that is not reported yet.
    unreported_gap: Option<UnreportedGap>,
    /// A record that ended a sleep, or waits behind a gap.
    pending_record: Option<PendingRecord>,
}

/// Reasons for which no record comes.
#[derive(Default)]
struct ReceiveFault {
    /// The offset is void, and another one must be found.
    lost: Option<VoidOffset>,
    error: Option<KafkaServerError>,
}

/// Reason for which an offset is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VoidOffset {
    /// The server does not have the offset.
    Refused,
    /// Another record lies before the offset: the topic was recreated.
    TopicRecreated,
}

struct PendingRecord {
    offset: i64,
    made_ms: Option<i64>,
    value: Vec<u8>,
    /// Key and headers from another program, in JSON.
    details: Option<String>,
}

impl KafkaSubscriber {
    /// Finds the first offset over the connection that is then read from. The topic must exist.
    pub fn open(cluster: Arc<Cluster>, topic: &str, start: StartPosition, wait: Wait) -> Result<Self, ConnectError> {
        let consumer = cluster.server.consumer(&SETTINGS).map_err(|e| cluster.error(&e))?;
        let refused = |e: KafkaError| connect_error(&cluster, &consumer, &e);
        let now_ms = now_ms();
        let (low, high) = cluster.watermarks(consumer.client(), topic, PARTITION).map_err(refused)?;
        let (position, (from, gap)) = match start {
            StartPosition::Now => (KafkaPosition::at(high, now_ms), (high, None)),
            StartPosition::Oldest => (KafkaPosition::at(low, now_ms), (low, None)),
            StartPosition::Sequence(number) => {
                let found = position::sequence_start(topic, number, low, high)?;
                (KafkaPosition::at(number as i64, now_ms), found)
            }
            StartPosition::After(token) => {
                let mut position = KafkaPosition::from_token(&token)?;
                let found = match position.verification_offset(low, high) {
                    Some(from) => (from, None),
                    None => {
                        let newer = newer_offsets(&cluster, &consumer, topic, &position, high).map_err(refused)?;
                        position::resume_offset(position.next, low, newer, high)
                    }
                };
                (position, found)
            }
        };
        assign_from(&consumer, topic, from).map_err(refused)?;
        let unreported_gap = gap.map(|gap| UnreportedGap { gap, next: from });
        let topic = topic.to_owned();
        let (consumer, fault) = (Arc::new(consumer), ReceiveFault::default());
        Ok(Self {
            cluster,
            topic,
            consumer,
            outage_probe: None,
            outages: Arc::default(),
            wait,
            position,
            fault,
            unreported_gap,
            pending_record: None,
        })
    }

    /// Starts a lookout for the end of an outage, which the client library does not report.
    fn start_outage_probe(&mut self) {
        match &self.outage_probe {
            Some(probe) if probe.is_finished() => self.outage_probe = None,
            Some(_) => {}
            None if self.consumer.context().is_outage() => {
                let (cluster, consumer, topic) = (&self.cluster, &self.consumer, &self.topic);
                self.outage_probe =
                    Some(OutageProbe::start(cluster, consumer, topic, |reasons| reasons, &self.outages));
            }
            None => {}
        }
    }

    /// Searches for the offset to resume at; if the server does not answer, the next call retries.
    fn search_offset(&mut self, lost: VoidOffset) {
        match self.find_resume_offset(lost) {
            Ok(unreported_gap) => (self.fault.lost, self.unreported_gap) = (None, unreported_gap),
            Err(error) => self.fault.error = KafkaServerError::permanent(&error),
        }
    }

    fn find_resume_offset(&mut self, lost: VoidOffset) -> KafkaResult<Option<UnreportedGap>> {
        let (low, high) = self.cluster.watermarks(self.consumer.client(), &self.topic, PARTITION)?;
        let newer = newer_offsets(&self.cluster, &self.consumer, &self.topic, &self.position, high)?;
        let (next, gap) = match lost {
            VoidOffset::Refused => position::resume_offset(self.position.next, low, newer, high),
            VoidOffset::TopicRecreated => (newer.than_believed, Some(Gap::Reconnected)),
        };
        assign_from(&self.consumer, &self.topic, next)?;
        self.position.skip_verification();
        Ok(gap.map(|gap| UnreportedGap { gap, next }))
    }
}

impl Subscriber for KafkaSubscriber {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        let mut handed_over = 0;
        let mut hand_over = |event: SubscriptionEvent<'_>| {
            handed_over += 1;
            handler(event);
        };
        for _ in 0..limit {
            if let Some(unreported_gap) = self.unreported_gap.take() {
                self.position.report_gap(unreported_gap, &mut hand_over);
            } else if let Some(held) = self.pending_record.take() {
                let PendingRecord { offset, made_ms, value, details } = &held;
                let mut with = |event: SubscriptionEvent<'_>| {
                    details::deliver_with_details(event, || details.clone(), &mut hand_over)
                };
                match self.position.process_record(*offset, *made_ms, value, &mut with) {
                    RecordOutcome::HandedOver => {}
                    RecordOutcome::GapReported => self.pending_record = Some(held),
                    RecordOutcome::TopicRecreated => self.fault.lost = Some(VoidOffset::TopicRecreated),
                }
            } else if self.fault.error.is_some() {
                break;
            } else if let Some(lost) = self.fault.lost {
                self.search_offset(lost);
                if self.fault.lost.is_some() {
                    break;
                }
            } else {
                match self.consumer.poll(Duration::ZERO) {
                    None => {
                        self.start_outage_probe();
                        break;
                    }
                    Some(Err(e)) => self
                        .fault
                        .note(&e, self.cluster.permanent_error(self.consumer.client(), self.consumer.context(), &e)),
                    Some(Ok(message)) => {
                        let value = message.payload().unwrap_or_default();
                        let made_ms = message.timestamp().to_millis();
                        let mut with = |event: SubscriptionEvent<'_>| {
                            details::deliver_with_details(event, || record_details(&message), &mut hand_over)
                        };
                        match self.position.process_record(message.offset(), made_ms, value, &mut with) {
                            RecordOutcome::HandedOver => {}
                            RecordOutcome::GapReported => self.pending_record = Some(PendingRecord::of(&message)),
                            RecordOutcome::TopicRecreated => self.fault.lost = Some(VoidOffset::TopicRecreated),
                        }
                    }
                }
            }
        }
        match self.fault.error.take_if(|_| handed_over == 0) {
            Some(error) => Err(ReceiveError::Other(self.cluster.server.describe_error(&error).into())),
            None => Ok(handed_over),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            return self.wait.idle();
        }
        if self.unreported_gap.is_some() || self.pending_record.is_some() || self.fault.is_any() {
            return;
        }
        match self.consumer.poll(whole_ms(timeout_ns)) {
            None => self.start_outage_probe(),
            Some(Ok(message)) => self.pending_record = Some(PendingRecord::of(&message)),
            Some(Err(e)) => {
                self.fault.note(&e, self.cluster.permanent_error(self.consumer.client(), self.consumer.context(), &e))
            }
        }
    }

    /// Holds the next offset, the time of the newest record seen, and a fingerprint of the record before that offset.
    fn resume_token(&self) -> Option<ResumeToken> {
        Some(self.position.token())
    }

    fn enable_bridge_mode(&mut self) {
        self.position.deliver_gaps_as_messages();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.outages.load(Ordering::Relaxed))
    }

    fn duplicates(&self) -> Option<u64> {
        Some(self.position.duplicates())
    }

    fn out_of_order(&self) -> Option<u64> {
        Some(self.position.late())
    }

    fn outage(&self) -> Option<String> {
        self.consumer.context().outage().map(|why| self.cluster.server.describe_error(&why))
    }
}

impl ReceiveFault {
    /// Classifies an error that the client library returned instead of a record; keeps it if it is lasting.
    fn note(&mut self, error: &KafkaError, lasting: Option<KafkaServerError>) {
        match error.rdkafka_error_code() {
            Some(Code::AutoOffsetReset | Code::OffsetOutOfRange) => self.lost = Some(VoidOffset::Refused),
            _ => self.error = lasting,
        }
    }

    fn is_any(&self) -> bool {
        self.lost.is_some() || self.error.is_some()
    }
}

impl PendingRecord {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let value = message.payload().unwrap_or_default().to_vec();
        let details = wire::decode(&value).is_none().then(|| record_details(message)).flatten();
        Self { offset: message.offset(), made_ms: message.timestamp().to_millis(), value, details }
    }
}

/// Returns the key, the headers and the absence of a value, as another program sent them beside the value. None if
/// there is nothing.
fn record_details(message: &BorrowedMessage<'_>) -> Option<String> {
    let (mut object, mut headers) = (JsonObject::default(), JsonObject::default());
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
    object.into_json_if_any()
}

/// Returns the first record with a later timestamp than all records seen, or the end. Such a record was written after
/// the server lost the seen ones, or to a recreated topic.
fn newer_offsets(
    cluster: &Cluster,
    consumer: &BaseConsumer<OutageReasons>,
    topic: &str,
    position: &KafkaPosition,
    high: i64,
) -> KafkaResult<NewerOffsets> {
    let (seen_ms, now_ms) = (position.newest_ms, now_ms());
    let than_seen = first_after(cluster, consumer, topic, seen_ms)?.unwrap_or(high);
    let than_believed =
        if seen_ms <= now_ms { than_seen } else { first_after(cluster, consumer, topic, now_ms)?.unwrap_or(high) };
    Ok(NewerOffsets { than_seen, than_believed })
}

/// Returns the offset of the first record with a later timestamp, if there is one.
fn first_after(
    cluster: &Cluster,
    consumer: &BaseConsumer<OutageReasons>,
    topic: &str,
    time_ms: i64,
) -> KafkaResult<Option<i64>> {
    let mut times = TopicPartitionList::new();
    times.add_partition_offset(topic, PARTITION, Offset::Offset(time_ms.max(0).saturating_add(1)))?;
    let found = cluster.retry_until_ready(|left| consumer.offsets_for_times(times.clone(), left))?;
    let Some(found) = found.find_partition(topic, PARTITION) else { return Ok(None) };
    found.error()?;
    match found.offset() {
        Offset::Offset(offset) => Ok(Some(offset)),
        _ => Ok(None),
    }
}

fn assign_from(consumer: &BaseConsumer<OutageReasons>, topic: &str, next: i64) -> KafkaResult<()> {
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(topic, PARTITION, Offset::Offset(next))?;
    consumer.assign(&assignment)
}

fn now_ms() -> i64 {
    (utc_ns() / 1_000_000) as i64
}

fn connect_error(cluster: &Cluster, consumer: &BaseConsumer<OutageReasons>, error: &KafkaError) -> ConnectError {
    drain_events(consumer);
    cluster.error(&consumer.context().explain(error))
}
