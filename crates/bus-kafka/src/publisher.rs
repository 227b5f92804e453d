//! Sends to one topic, or to the topic of one queue.

use std::sync::Arc;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use tickpath_bus_api::{BatchError, ConnectError, PublishError, Publisher, Pusher, wire};

use crate::cluster::Cluster;
use crate::reports::{Outcome, Reports};
use crate::server::ServerError;

/// The longest payload, in bytes: with everything around it less than what a server with default settings takes.
pub const MAX_PAYLOAD_BYTES: usize = 1_000_000;

/// Each message leaves at once, and arrives once and in order, also where the client library has to send it again.
const SETTINGS: [(&str, &str); 7] = [
    ("enable.idempotence", "true"),
    ("linger.ms", "0"),
    ("message.timeout.ms", "5000"),
    ("request.timeout.ms", "5000"),
    // The largest message and what goes around it; the topic itself takes up to 1,048,588 bytes.
    ("message.max.bytes", "1001000"),
    // Of one round; more than this goes in several.
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "65536"),
];

/// A publisher or pusher with its own connections.
pub(crate) struct KafkaPublisher {
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

impl KafkaPublisher {
    /// Connects now, so that the first message does not pay for it. The topic is there.
    pub fn open(cluster: Arc<Cluster>, topic: String, partitions: i32) -> Result<Self, ConnectError> {
        let producer = connect(&cluster, &topic, partitions).map_err(|e| cluster.error(&e))?;
        Ok(Self { cluster, topic, partitions, next: 0, producer: Some(producer), value: Vec::new() })
    }

    /// Sends all, in as many rounds as it takes.
    fn send_all(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        while done < payloads.len() {
            let (delivered, error) = self.send_round(wire::header(stamp, kind), &payloads[done..]);
            done += delivered;
            if let Some(error) = error {
                let sentence = self.cluster.server().sentence(&error);
                return Err(BatchError { done, error: PublishError::Other(sentence.into()) });
            }
        }
        Ok(())
    }

    /// Sends as many as the client library takes in, then waits for their reports. Gives how many of the first ones
    /// the server has.
    fn send_round(&mut self, header: [u8; wire::HEADER_BYTES], payloads: &[&[u8]]) -> (usize, Option<ServerError>) {
        if self.producer.is_none() {
            match connect(&self.cluster, &self.topic, self.partitions) {
                Ok(producer) => self.producer = Some(producer),
                Err(error) => return (0, Some(error)),
            }
        }
        let producer = self.producer.as_ref().expect("connected");
        let reports = producer.context();
        reports.begin();
        let mut sent = 0;
        let mut refused = None;
        for payload in payloads {
            self.value.clear();
            self.value.extend_from_slice(&header);
            self.value.extend_from_slice(payload);
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
        let (delivered, error) = match reports.wait(sent) {
            Outcome::Delivered => (sent, refused),
            Outcome::Failed(number, error) => (number, Some(error)),
            Outcome::Silence => {
                self.producer = None;
                return (0, Some(ServerError::Timeout));
            }
        };
        let Some(error) = error else {
            reports.reasons.forget();
            return (delivered, None);
        };
        let error = reports.reasons.explain(&error);
        if producer.client().fatal_error().is_some() {
            self.producer = None;
        }
        (delivered, Some(error))
    }
}

impl Publisher for KafkaPublisher {
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        wire::check_message(kind, payload, MAX_PAYLOAD_BYTES)?;
        self.send_all(stamp, kind, &[payload]).map_err(|e| e.error)
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        // What lies before a bad message is published, as without a batch.
        let check = |payload: &&[u8]| wire::check_message(kind, payload, MAX_PAYLOAD_BYTES).err();
        let bad = payloads.iter().enumerate().find_map(|(at, payload)| check(payload).map(|error| (at, error)));
        let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(at, _)| *at)];
        self.send_all(stamp, kind, good)?;
        bad.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
    }
}

impl Pusher for KafkaPublisher {
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.publish(stamp, kind, payload)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.publish_batch(stamp, kind, payloads)
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
    Ok(producer)
}
