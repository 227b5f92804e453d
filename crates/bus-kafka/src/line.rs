//! Sends messages to one topic and waits for the outcome of each. It handles bytes only, without their origin.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};
use tickpath_bus_api::{BatchError, Fate, PublishError};

use crate::answer::{ServerError, fate, may_pass};
use crate::cluster::Cluster;
use crate::deadline::TIMEOUT;
use crate::reports::Reports;

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
const PATIENCE: Duration = Duration::from_secs(40);

/// Interval between checks for an outage while waiting for reports, which wake the sender.
const LOOK: Duration = Duration::from_millis(100);

/// Time for a server to answer after an outage, before the messages in flight are given up.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Appends the bytes of the message with this index to the buffer.
pub(crate) type Fill<'a> = dyn Fn(usize, &mut Vec<u8>) + 'a;

/// A sender to one topic, with its own connections.
pub(crate) struct Line {
    cluster: Arc<Cluster>,
    /// Name on the server.
    topic: String,
    partitions: i32,
    /// Partition of the next message.
    next: i32,
    /// None after an error that needs a new producer.
    producer: Option<ThreadedProducer<Reports>>,
    /// Buffer of the message being sent; kept, so that sending allocates nothing here.
    value: Vec<u8>,
}

/// Outcome of each message, and the reason of the first failure.
pub(crate) struct Failure {
    /// In the order of sending; messages beyond its end were not sent.
    pub fates: Vec<Fate>,
    /// Reason of the first failure.
    pub sentence: String,
    /// The same call can succeed later, if only the network or the servers change.
    pub may_pass: bool,
}

impl Failure {
    /// Converts the failure to an error, which states whether the first unpublished message is surely not published.
    pub fn error(self) -> BatchError {
        let error = match self.fates.iter().find(|&&fate| fate != Fate::Published) {
            Some(Fate::Unknown) => PublishError::Unknown(self.sentence),
            _ => PublishError::not_published(self.sentence, self.may_pass),
        };
        BatchError::of(&self.fates, error)
    }
}

impl Line {
    /// Connects at once, so that the first message does not pay for it. The topic must exist.
    pub fn open(cluster: Arc<Cluster>, topic: String, partitions: i32) -> Result<Self, ServerError> {
        let producer = connect(&cluster, &topic, partitions)?;
        Ok(Self { cluster, topic, partitions, next: 0, producer: Some(producer), value: Vec::new() })
    }

    /// Sends `count` messages, in as many rounds as it takes. Nothing is sent after a failed round.
    pub fn send(&mut self, count: usize, fill: &Fill<'_>) -> Result<(), Failure> {
        let mut done = 0;
        while done < count {
            match self.send_round(done..count, fill) {
                Ok(delivered) => done += delivered,
                Err(failure) => {
                    let mut fates = vec![Fate::Published; done];
                    fates.extend_from_slice(&failure.fates);
                    return Err(Failure { fates, ..failure });
                }
            }
        }
        Ok(())
    }

    /// Sends as many of these messages as the client library accepts, then waits for their reports. Returns the number
    /// of delivered messages.
    fn send_round(&mut self, numbers: std::ops::Range<usize>, fill: &Fill<'_>) -> Result<usize, Failure> {
        self.get_ready()?;
        let producer = self.producer.as_ref().expect("it is ready");
        let reports = producer.context();
        reports.begin();
        let mut sent = 0;
        let mut refused = None;
        for number in numbers {
            self.value.clear();
            fill(number, &mut self.value);
            let record = BaseRecord::<(), [u8], usize>::with_opaque_to(&self.topic, sent);
            match producer.send(record.partition(self.next).payload(&self.value)) {
                Ok(()) => sent += 1,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) if sent > 0 => break,
                Err((error, _)) => {
                    refused = Some(error);
                    break;
                }
            }
            self.next = (self.next + 1) % self.partitions;
        }
        self.await_reports(producer, sent);
        let results = reports.results(sent);
        if results.is_none() && refused.is_none() {
            reports.reasons.forget();
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
        let sentence = self.cluster.server().sentence(&reports.reasons.explain(&first));
        // Behind a message in doubt, the idempotence sequence numbers of the producer have a gap.
        if fates.contains(&Fate::Unknown) || producer.client().fatal_error().is_some() {
            self.producer = None;
        }
        Err(Failure { fates, sentence, may_pass: may_pass(&first) })
    }

    /// Connects if there is no connection. A failure here means that nothing was sent.
    fn get_ready(&mut self) -> Result<(), Failure> {
        let error = match &self.producer {
            Some(producer) => {
                let reasons = &producer.context().reasons;
                // Usually there is no outage, and no request is made.
                if reasons.outage().is_none() {
                    return Ok(());
                }
                self.cluster.server().tell_again(producer.client());
                match self.cluster.watermarks(producer.client(), &self.topic, self.next) {
                    Ok(_marks) => {
                        reasons.forget();
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
        let sentence = self.cluster.server().sentence(&error);
        Err(Failure { fates: Vec::new(), sentence, may_pass: error.may_pass() })
    }

    /// Sleeps until all reports are in. If no server at all is reachable for [`TIMEOUT`], drops the messages in flight.
    fn await_reports(&self, producer: &ThreadedProducer<Reports>, sent: usize) {
        let reports = producer.context();
        let patience = self.cluster.deadline_after(PATIENCE);
        let mut outage = None;
        while !reports.wait(sent, LOOK) && !patience.is_over() {
            if reports.reasons.outage().is_none() {
                outage = None;
                continue;
            }
            let deadline = outage.get_or_insert_with(|| {
                self.cluster.server().tell_again(producer.client());
                self.cluster.deadline()
            });
            if !deadline.is_over() {
                continue;
            }
            if producer.client().fetch_metadata(Some(&self.topic), LAST_LOOK).is_ok() {
                reports.reasons.forget();
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
fn connect(cluster: &Cluster, topic: &str, partitions: i32) -> Result<ThreadedProducer<Reports>, ServerError> {
    let config = cluster.server().config(&SETTINGS);
    let producer: ThreadedProducer<Reports> =
        config.create_with_context(Reports::default()).map_err(|e| ServerError::from(&e))?;
    for partition in 0..partitions {
        let marks = cluster.watermarks(producer.client(), topic, partition);
        marks.map_err(|e| producer.context().reasons.explain(&e))?;
    }
    // One server may have refused before another one answered.
    producer.context().reasons.forget();
    Ok(producer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_batch_is_that_of_its_first_message_that_is_not_published() {
        use Fate::{NotPublished, Published, Unknown};
        let cases: [(&[Fate], bool, Fate, bool); 6] = [
            (&[Published, Unknown, NotPublished], true, Unknown, true),
            // The first message is in doubt, whatever the last answer was.
            (&[Published, Unknown, NotPublished], false, Unknown, true),
            (&[NotPublished, Unknown], true, NotPublished, true),
            (&[NotPublished, Unknown], false, NotPublished, false),
            (&[Published], true, NotPublished, true),
            (&[], false, NotPublished, false),
        ];
        for (fates, may_pass, fate, passes) in cases {
            let error = Failure { fates: fates.to_vec(), sentence: String::new(), may_pass }.error();
            assert_eq!((error.error.fate(), error.error.may_pass()), (fate, passes), "{fates:?}");
            assert!((0..3).all(|number| error.fate(number) == fates.get(number).copied().unwrap_or(NotPublished)));
        }
    }
}
