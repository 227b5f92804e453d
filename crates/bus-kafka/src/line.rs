//! Sends messages to one topic and waits for what became of each. It knows bytes, and not whose they are.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};
use tickpath_bus_api::{BatchError, Fate, PublishError};

use crate::answer::{ServerError, fate, may_pass};
use crate::cluster::Cluster;
use crate::deadline::TIMEOUT;
use crate::reports::Reports;

/// Each message leaves at once, and arrives once and in order, also where the client library has to send it again.
const SETTINGS: [(&str, &str); 7] = [
    // That a message is acknowledged by all replicas that are in step (acks=all) goes with it.
    ("enable.idempotence", "true"),
    ("linger.ms", "0"),
    // A partition gets another leader when the session of the old one has ended, which takes 9 s, and that has taken
    // over: a message waits for it.
    ("message.timeout.ms", "30000"),
    ("request.timeout.ms", "5000"),
    // The largest message and what goes around it; the topic itself takes up to 1,048,588 bytes.
    ("message.max.bytes", "1001000"),
    // Of one round; more than this goes in several.
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "65536"),
];

/// Longer than the client library takes to give a message up.
const PATIENCE: Duration = Duration::from_secs(40);

/// How long is slept between two looks whether a server is there at all; reports wake who sleeps.
const LOOK: Duration = Duration::from_millis(100);

/// How long a server that was away may take to show that it is there again, before what waits for it is given up.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Puts the bytes of the message of this number behind those that are there.
pub(crate) type Fill<'a> = dyn Fn(usize, &mut Vec<u8>) + 'a;

/// A way to one topic, with connections of its own.
pub(crate) struct Line {
    cluster: Arc<Cluster>,
    /// As it is called on the server.
    topic: String,
    partitions: i32,
    /// The partition of the next message.
    next: i32,
    /// None after an error that it does not get over.
    producer: Option<ThreadedProducer<Reports>>,
    /// The message on its way; kept, so that sending allocates nothing here.
    value: Vec<u8>,
}

/// What became of each message, and why the first one failed that is not published.
pub(crate) struct Failure {
    /// In the order of sending; of which there is nothing here was not sent.
    pub fates: Vec<Fate>,
    /// Why.
    pub sentence: String,
    /// The same can go well later, with nobody changing anything but the network or the servers.
    pub may_pass: bool,
}

impl Failure {
    /// The same as an error. It says of the first message that is not published whether that is sure.
    pub fn error(self) -> BatchError {
        let error = match self.fates.iter().find(|&&fate| fate != Fate::Published) {
            Some(Fate::Unknown) => PublishError::Unknown(self.sentence),
            _ => PublishError::not_published(self.sentence, self.may_pass),
        };
        BatchError::of(&self.fates, error)
    }
}

impl Line {
    /// Connects now, so that the first message does not pay for it. The topic is there.
    pub fn open(cluster: Arc<Cluster>, topic: String, partitions: i32) -> Result<Self, ServerError> {
        let producer = connect(&cluster, &topic, partitions)?;
        Ok(Self { cluster, topic, partitions, next: 0, producer: Some(producer), value: Vec::new() })
    }

    /// Sends so many messages, in as many rounds as it takes. None is sent behind a round that fails.
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

    /// Sends as many of these as the client library takes in, then waits for their reports. Gives how many the server
    /// has.
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
            // It never left.
            fates.push(Fate::NotPublished);
        }
        let first = results.into_iter().find_map(Result::err).or(refused).expect("one has failed");
        let sentence = self.cluster.server().sentence(&reports.reasons.explain(&first));
        // Behind a message of which nobody knows, the numbers by which the server tells what came twice have a hole.
        if fates.contains(&Fate::Unknown) || producer.client().fatal_error().is_some() {
            self.producer = None;
        }
        Err(Failure { fates, sentence, may_pass: may_pass(&first) })
    }

    /// Connects where there is no connection. Of what fails here nothing was sent.
    fn get_ready(&mut self) -> Result<(), Failure> {
        let error = match &self.producer {
            Some(producer) => {
                let reasons = &producer.context().reasons;
                // Mostly there is a server, and nothing is asked.
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
        // It would wait longer and longer between its attempts.
        self.producer = None;
        let sentence = self.cluster.server().sentence(&error);
        Err(Failure { fates: Vec::new(), sentence, may_pass: error.may_pass() })
    }

    /// Sleeps until the reports are in. Where no server at all is there for [`TIMEOUT`], what is on its way is dropped.
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

/// A producer with a connection to the leader of each partition.
fn connect(cluster: &Cluster, topic: &str, partitions: i32) -> Result<ThreadedProducer<Reports>, ServerError> {
    let config = cluster.server().config(&SETTINGS);
    let producer: ThreadedProducer<Reports> =
        config.create_with_context(Reports::default()).map_err(|e| ServerError::from(&e))?;
    for partition in 0..partitions {
        let marks = cluster.watermarks(producer.client(), topic, partition);
        marks.map_err(|e| producer.context().reasons.explain(&e))?;
    }
    // One of the servers may have refused before another one answered.
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
            // Nobody knows of it, whatever the last answer was.
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
