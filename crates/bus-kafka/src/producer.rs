//! Sends messages to one topic and waits for the outcome of each. It handles bytes only, without their origin.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};
use tickpath_bus_api::Fate;

use crate::cluster::Cluster;
use crate::deadline::TIMEOUT;
use crate::error::{KafkaServerError, ServerResult, fate, is_transient};
use crate::reports::DeliveryReports;

/// Producer settings: each message is sent at once, and arrives once and in order even if the client library resends
/// it.
const SETTINGS: [(&str, &str); 7] = [
    // Implies acks=all: a message is acknowledged by all in-sync replicas.
    ("enable.idempotence", "true"),
    ("linger.ms", "0"),
    // A message waits for its partition's next leader, which takes over when the old one's session has expired (9 s).
    ("message.timeout.ms", "30000"),
    ("request.timeout.ms", "5000"),
    // Largest message with its overhead; the topic itself takes up to 1,048,588 bytes.
    ("message.max.bytes", "1001000"),
    // Limits of one round; larger batches take several rounds.
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "65536"),
];

/// Max wait for delivery reports, longer than the client library's message timeout.
const REPORT_TIMEOUT: Duration = Duration::from_secs(40);

/// Interval between checks for an outage while waiting for reports, which wake the sender.
const OUTAGE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time for a server to answer after an outage, before the messages in flight are given up.
const LAST_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Appends the bytes of the message with this index to the buffer.
pub(crate) type FillMessage<'a> = dyn Fn(usize, &mut Vec<u8>) + 'a;

pub(crate) struct TopicProducer {
    cluster: Arc<Cluster>,
    /// Name on the server.
    topic: String,
    partitions: i32,
    /// Partition of the next message.
    next_partition: i32,
    /// None after an error that needs a new producer.
    producer: Option<ThreadedProducer<DeliveryReports>>,
    /// Buffer of the message being sent; kept, so that sending allocates nothing here.
    buffer: Vec<u8>,
}

/// Outcome of each message, and the reason of the first failure.
pub(crate) struct KafkaSendFailure {
    /// In the order of sending; messages beyond its end were not sent.
    pub fates: Vec<Fate>,
    /// Reason of the first failure.
    pub reason: String,
    /// The same call can succeed later, if only the network or the servers change.
    pub is_transient: bool,
}

impl TopicProducer {
    /// Connects at once, so that the first message does not pay for it. The topic must exist.
    pub fn open(cluster: Arc<Cluster>, topic: String, partitions: i32) -> ServerResult<Self> {
        let producer = connect(&cluster, &topic, partitions)?;
        Ok(Self { cluster, topic, partitions, next_partition: 0, producer: Some(producer), buffer: Vec::new() })
    }

    /// Sends `count` messages, in as many rounds as it takes. Nothing is sent after a failed round.
    pub fn send(&mut self, count: usize, fill: &FillMessage<'_>) -> Result<(), KafkaSendFailure> {
        let mut done = 0;
        while done < count {
            match self.send_round(done..count, fill) {
                Ok(delivered) => done += delivered,
                Err(failure) => {
                    let mut fates = vec![Fate::Published; done];
                    fates.extend_from_slice(&failure.fates);
                    return Err(KafkaSendFailure { fates, ..failure });
                }
            }
        }
        Ok(())
    }

    /// Sends as many of these messages as the client library accepts, then waits for their reports. Returns the number
    /// of delivered messages.
    fn send_round(
        &mut self,
        numbers: std::ops::Range<usize>,
        fill: &FillMessage<'_>,
    ) -> Result<usize, KafkaSendFailure> {
        self.ensure_connected()?;
        let producer = self.producer.as_ref().expect("it is ready");
        let reports = producer.context();
        reports.begin();
        let mut sent = 0;
        let mut refused = None;
        for number in numbers {
            self.buffer.clear();
            fill(number, &mut self.buffer);
            let record = BaseRecord::<(), [u8], usize>::with_opaque_to(&self.topic, sent);
            match producer.send(record.partition(self.next_partition).payload(&self.buffer)) {
                Ok(()) => sent += 1,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) if sent > 0 => break,
                Err((error, _)) => {
                    refused = Some(error);
                    break;
                }
            }
            self.next_partition = (self.next_partition + 1) % self.partitions;
        }
        self.await_reports(producer, sent);
        let results = reports.results(sent);
        if results.is_none() && refused.is_none() {
            reports.reasons.clear();
            return Ok(sent);
        }
        let results = results.unwrap_or_else(|| vec![Ok(()); sent]);
        let mut fates: Vec<Fate> =
            results.iter().map(|result| result.as_ref().err().map_or(Fate::Published, fate)).collect();
        if refused.is_some() {
            // The refused message was never sent.
            fates.push(Fate::NotPublished);
        }
        let first = results.into_iter().find_map(Result::err).or(refused).expect("one has failed");
        let sentence = self.cluster.server.describe_error(&reports.reasons.explain(&first));
        // Behind a message in doubt, the idempotence sequence numbers of the producer have a gap.
        if fates.contains(&Fate::Unknown) || producer.client().fatal_error().is_some() {
            self.producer = None;
        }
        Err(KafkaSendFailure { fates, reason: sentence, is_transient: is_transient(&first) })
    }

    /// Connects if there is no connection. A failure here means that nothing was sent.
    fn ensure_connected(&mut self) -> Result<(), KafkaSendFailure> {
        let error = match &self.producer {
            Some(producer) => {
                let reasons = &producer.context().reasons;
                // Usually there is no outage, and no request is made.
                if reasons.outage().is_none() {
                    return Ok(());
                }
                self.cluster.server.add_brokers_again(producer.client());
                match self.cluster.watermarks(producer.client(), &self.topic, self.next_partition) {
                    Ok(_marks) => {
                        reasons.clear();
                        return Ok(());
                    }
                    Err(error) => reasons.explain(&error),
                }
            }
            None => match connect(&self.cluster, &self.topic, self.partitions) {
                Ok(producer) => {
                    self.producer = Some(producer);
                    return Ok(());
                }
                Err(error) => error,
            },
        };
        // The old producer would wait longer and longer between its attempts.
        self.producer = None;
        let sentence = self.cluster.server.describe_error(&error);
        Err(KafkaSendFailure { fates: Vec::new(), reason: sentence, is_transient: error.is_transient() })
    }

    /// Sleeps until all reports are in. If no server at all is reachable for [`TIMEOUT`], drops the messages in flight.
    fn await_reports(&self, producer: &ThreadedProducer<DeliveryReports>, sent: usize) {
        let reports = producer.context();
        let patience = self.cluster.deadline_after(REPORT_TIMEOUT);
        let mut outage = None;
        while !reports.wait(sent, OUTAGE_CHECK_INTERVAL) && !patience.is_expired() {
            if reports.reasons.outage().is_none() {
                outage = None;
                continue;
            }
            let deadline = outage.get_or_insert_with(|| {
                self.cluster.server.add_brokers_again(producer.client());
                self.cluster.deadline()
            });
            if !deadline.is_expired() {
                continue;
            }
            if producer.client().fetch_metadata(Some(&self.topic), LAST_PROBE_TIMEOUT).is_ok() {
                reports.reasons.clear();
                outage = None;
                continue;
            }
            producer.purge(PurgeConfig::default().queue().inflight());
            reports.wait(sent, TIMEOUT);
            return;
        }
    }
}

/// Creates a producer with a connection to the leader of each partition.
fn connect(cluster: &Cluster, topic: &str, partitions: i32) -> ServerResult<ThreadedProducer<DeliveryReports>> {
    let config = cluster.server.config(&SETTINGS);
    let producer: ThreadedProducer<DeliveryReports> =
        config.create_with_context(DeliveryReports::default()).map_err(|e| KafkaServerError::from(&e))?;
    for partition in 0..partitions {
        let marks = cluster.watermarks(producer.client(), topic, partition);
        marks.map_err(|e| producer.context().reasons.explain(&e))?;
    }
    // One server may have refused before another one answered.
    producer.context().reasons.clear();
    Ok(producer)
}
