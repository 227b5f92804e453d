//! The bus over Kafka.
//!
//! ```no_run
//! use tickpath_bus_api::{Connection, Policy, StartPosition, TopicConfig};
//! use tickpath_bus_kafka::KafkaBus;
//! use tickpath_clock::{Clock, HostClock, Wait};
//!
//! let bus = KafkaBus::connect("kafka://127.0.0.1:9092")?;
//! let mut subscriber = bus.subscriber("ticks", StartPosition::Now, Wait::Block)?;
//! let mut publisher = bus.publisher("ticks", &TopicConfig::new(Policy::Keep))?;
//! publisher.publish(HostClock::get()?.ticks(), 200, b"101.5")?;
//! subscriber.wait(1_000_000_000);
//! subscriber.poll(64, &mut |event| println!("{event:?}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The URL is `kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…][?OPTION[&OPTION…]]`. The first server that answers names
//! all others of its cluster.
//!
//! | option | what it does |
//! |---|---|
//! | `tls` | TLS is mandatory, and the server's certificate must be for the host name that is connected to |
//! | `ca=FILE` | trusted certificate authorities, PEM; the host's own if absent |
//! | `cert=FILE`, `key=FILE` | client certificate and its key, PEM, for a server that asks for one |
//! | `sasl=MECHANISM` | login mechanism: `scram-sha-512` (the default), `scram-sha-256` or `plain` |
//! | `replicas=N` | topics are created on N servers, of which at least N-1 acknowledge (min.insync.replicas) |
//!
//! There is a login if the URL has a user and a password. `plain` sends the password in clear text: without `tls` it is
//! refused, unless all hosts are loopback. Without `replicas` a new topic gets the server's default.replication.factor;
//! an existing topic with fewer replicas than `replicas` is refused. min.insync.replicas is set on topics that are
//! created, and not checked on existing ones.
//!
//! **A topic** is a Kafka topic of one partition. Its offsets are the sequence numbers. The first publisher or
//! subscriber creates the topic.
//!
//! * The policy `keep` retains everything: `retention.ms` and `retention.bytes` are -1. With `overwrite`,
//!   `retention.bytes` is the capacity, and `retention.ms` the maximum age, or -1. Old messages are deleted by the
//!   segment, of which there are four, each of a mebibyte or more, and when the server checks (every five minutes
//!   unless `log.retention.check.interval.ms` differs). So a topic never holds less than its capacity, and may hold far
//!   more.
//! * A publisher is refused where the topic's retention differs from what it asks for. A publisher without the right
//!   DescribeConfigs takes the topic as it is. A subscriber that connects first creates an undecided topic: its
//!   `retention.ms` is 9223372036854775807. The first publisher decides, by `overwrite` only while the topic is empty,
//!   and keeps the topic's other settings; that takes the right AlterConfigs. Any other topic that keeps everything is
//!   refused to `overwrite`, even while empty. A subscriber takes any topic as it is.
//! * Publishing returns when all in-sync replicas have acknowledged (acks=all). Messages that the client library
//!   resends after a lost connection, or to the next leader, still arrive once and in order. A message waits for a
//!   leader for 30 s. If no server at all is reachable, it is given up after 5 s.
//! * A message that was given up may have arrived: the error says `Unknown`, and `resend` sends it again under the same
//!   message id, so that subscribers of this crate get it once; other subscribers see it twice. In a batch each message
//!   has its own fate. If a published message has overtaken an unknown one, `resend` refuses, because subscribers would
//!   drop the resent message. Failures before anything was sent are `Unavailable`.
//! * A subscriber tracks its own offset. After a lost connection it resumes there, and misses nothing. Messages that
//!   the server has deleted are reported as [`Gap::Missed`](tickpath_bus_api::Gap), with the exact number. Markers of
//!   other programs' transactions, records of aborted ones, and records replaced by compaction are no loss.
//! * A topic that has lost its end, or was removed and recreated, is reported as `Reconnected`; the subscriber resumes
//!   at the first message that can be new (`docs/design/kafka-client.md`).
//! * A subscriber or puller waits out a server that refuses TLS or the login as long as another server lets it in.
//! * Messages of other programs, without our header, come as a separate event, with a sequence number; a puller skips
//!   them, unless [`QueueConfig::foreign`](tickpath_bus_api::QueueConfig) gives them a kind. Skipped messages are
//!   acknowledged with the delivered ones, because a group has one offset per partition.
//! * A name is the same on the server, unless it holds a `:` (`names.rs`). If two names differ only in `.` and `_`,
//!   Kafka refuses the second one.
//!
//! **A queue** is a Kafka topic of six partitions and a consumer group. At most six pullers share it at a time, each
//! with its own partitions; a seventh waits. Pushing goes round the partitions, so that not even a single puller gets
//! all messages in the order of pushing.
//!
//! * A push that is unknown and sent again may be in the queue twice, under the same message id.
//! * At least once, acknowledging commits the group's offset; at most once, the offset is committed before messages are
//!   handed over. Marks of redelivered messages, lost acknowledgements and lost queues: `docs/design/kafka-queues.md`.
//! * A puller must pull or wait within `silence_ns` (two seconds or more). A puller that is silent for longer, or dies,
//!   loses its partitions; a dropped puller gives them away at once.
//! * `waiting` counts all messages that are not acknowledged, including those handed over. Acknowledged messages are
//!   deleted from the server's disk now and then.
//! * The server forgets a group's offset when it has had no puller for seven days (`offsets.retention.minutes`): then
//!   messages not deleted yet come again.
//! * A puller fetches up to 16 MiB ahead, and its client library as much.
//!
//! The client library reconnects in the background; what it does not report is in `docs/design/kafka-client.md`.
//! Connecting creates Kafka's own topic `__consumer_offsets`, as any client does. Nothing else on the server is
//! touched.
//!
//! # Features
//!
//! * `vendored-tls`: the client library builds OpenSSL and links it statically, so that the program needs no OpenSSL of
//!   the host.

mod advice;
mod brokers;
mod cluster;
mod committer;
mod deadline;
mod error;
mod group;
mod handshake;
mod names;
mod outage_probe;
mod partition_state;
mod partitions;
mod position;
mod producer;
mod publisher;
mod puller;
mod reasons;
mod record;
mod reports;
mod retention;
mod server;
mod subscriber;

use std::sync::Arc;

use tickpath_bus_api::{
    Capabilities, ConnectError, Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, ServerDescription, StartPosition, Subscriber, TopicConfig, Transport, adaptive,
};
use tickpath_clock::Wait;

use crate::cluster::Cluster;
use crate::publisher::KafkaPublisher;
use crate::puller::KafkaPuller;
use crate::retention::TopicRetention;
use crate::server::KafkaEndpoint;
use crate::subscriber::KafkaSubscriber;

pub use crate::publisher::MAX_PAYLOAD_BYTES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The Kafka transport, as the bus registers it.
pub const TRANSPORT: Transport = Transport {
    name: names::TRANSPORT,
    schemes: &["kafka"],
    url_syntax: "kafka://HOST:PORT",
    modes: &[""],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(KafkaBus::connect(url)?)),
    advise: advice::advise,
};

/// Partitions of a queue, and so the max number of pullers that share it.
pub const QUEUE_PARTITIONS: i32 = 6;

/// Topics and queues on one Kafka cluster.
#[derive(Debug, Clone)]
pub struct KafkaBus {
    cluster: Arc<Cluster>,
}

impl KafkaBus {
    /// Parses the URL, and waits until the cluster answers.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let cluster = Cluster::open(KafkaEndpoint::parse(url)?)?;
        Ok(Self { cluster: Arc::new(cluster) })
    }

    /// Creates a topic of one partition with this retention unless it exists.
    fn ensure_topic(&self, topic: &str, server_name: &str, retention: TopicRetention) -> Result<(), ConnectError> {
        match self.cluster.ensure(server_name, 1, retention).map_err(|e| self.cluster.error(&e))? {
            1 => Ok(()),
            partitions => Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("number the messages of the topic '{topic}', which has {partitions} partitions"),
                remedy: "use a topic of one partition, or a name that is free: it is made as it should be",
            }),
        }
    }

    /// Creates the topic of a queue unless it exists; returns its number of partitions.
    fn ensure_queue(&self, server_name: &str) -> Result<i32, ConnectError> {
        let ensured = self.cluster.ensure(server_name, QUEUE_PARTITIONS, TopicRetention::ALL);
        ensured.map_err(|e| self.cluster.error(&e))
    }
}

impl Connection for KafkaBus {
    /// Names the transport only: Kafka's protocol reports no version.
    fn server_description(&self) -> ServerDescription {
        let replicas = self.cluster.server.replicas.map_or("the server's own".to_owned(), |count| count.to_string());
        let settings = [("replicas", Ok(replicas))].into();
        ServerDescription { server: Some(TRANSPORT.name.to_owned()), settings, ..ServerDescription::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: true,
            history: true,
            max_age: true,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies: &[Policy::Keep, Policy::Overwrite],
            lends: &[],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let server_name = names::topic(topic, &self.cluster.server.names)?;
        let Some(retention) = TopicRetention::from_config(config) else {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'keep' or 'overwrite', or a topic on shm:// or file://",
            });
        };
        self.ensure_topic(topic, &server_name, retention)?;
        self.cluster.ensure_retention(&server_name, retention).map_err(|e| self.cluster.error(&e))?;
        Ok(Box::new(KafkaPublisher::of_topic(self.cluster.clone(), server_name)?))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let server_name = names::topic(topic, &self.cluster.server.names)?;
        self.ensure_topic(topic, &server_name, TopicRetention::UNDECIDED)?;
        adaptive::subscriber(wait, KafkaSubscriber::open(self.cluster.clone(), &server_name, start, wait)?)
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        let server_name = names::topic(topic, &self.cluster.server.names)?;
        self.cluster.remove(&server_name).map_err(|e| self.cluster.error(&e))
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[DeliveryGuarantee::AtLeastOnce, DeliveryGuarantee::AtMostOnce],
            ordered: false,
            single_pusher: false,
            keeps_without_puller: true,
            detects_death: false,
            counts_waiting: true,
            exact_resend: false,
            counts_deliveries: false,
            gives_back: false,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        let server_name = names::queue(queue)?;
        let partitions = self.ensure_queue(&server_name)?;
        Ok(Box::new(KafkaPublisher::of_queue(self.cluster.clone(), server_name, partitions)?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        let server_name = names::queue(queue)?;
        self.ensure_queue(&server_name)?;
        adaptive::puller(wait, KafkaPuller::open(self.cluster.clone(), &server_name, config, wait)?)
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        let server_name = names::queue(queue)?;
        self.cluster.count_waiting(&server_name).map(Some).map_err(|e| self.cluster.error(&e))
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        let server_name = names::queue(queue)?;
        let removed =
            self.cluster.remove(&server_name).and_then(|()| self.cluster.remove_group(&server_name, QUEUE_PARTITIONS));
        removed.map_err(|e| self.cluster.error(&e))
    }
}
