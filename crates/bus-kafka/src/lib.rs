//! The bus over Kafka: `kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…][?OPTION[&OPTION…]]`. The first server that
//! answers names all others of its cluster.
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
//!   segment, of which there are four, each of a mebibyte or more, and when the server checks, every five minutes
//!   unless `log.retention.check.interval.ms` differs. So a topic never holds less than its capacity, and may hold far
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
//!   origin, so that subscribers of this crate get it once; other subscribers see it twice. In a batch each message has
//!   its own fate. As the client library retries by itself and reports the last answer only, every failure leaves a
//!   message unknown, except that it is too large or no valid record for this topic. If a published message has
//!   overtaken an unknown one, `resend` refuses, because subscribers would drop the resent message. Failures before
//!   anything was sent are `Unavailable`.
//! * A subscriber tracks its own offset. After a lost connection it resumes there, and reports nothing, because nothing
//!   is missed. Messages that the server has deleted are reported as `ReportsLost`, with the exact number. Markers of other
//!   programs' transactions, and records of aborted ones, are no loss; neither are records that compaction has replaced
//!   by newer ones.
//! * Where the end of a topic is lost (a leader without all messages took over, or a disk lost some), or the topic was
//!   removed and recreated, a subscriber reports [`Gap::Reconnected`](tickpath_bus_api::Gap) and resumes at the first
//!   message whose Kafka timestamp is later than that of all messages seen and than the subscription's own start. The
//!   publisher's host sets that timestamp: messages of a publisher whose clock is behind lie in the gap. No message
//!   that the subscriber had before comes again. A loss is detected when the server refuses the offset, or knows that
//!   it belongs to an earlier leader; a topic that is removed, recreated and filled beyond the offset within a moment
//!   is not detected.
//! * A token holds the next offset, the time of the newest message seen, and a fingerprint of the record before that
//!   offset. The client library does not offer Kafka's topic id, so a resuming subscriber reads that record once more:
//!   if it differs or is missing, the topic is another one or has lost its end, and `Reconnected` is reported. Deleted
//!   messages are reported as `ReportsLost`. If nothing was seen before the token was given, only message times decide.
//! * A message that the client library cannot read ends a subscription, or a puller, with an error: it has no zstd.
//!   gzip, snappy and lz4 are supported.
//! * A subscriber or puller waits out a server that refuses TLS or the login as long as another server lets it in.
//! * Messages of other programs, without our header, come as a separate event, with a sequence number; a puller skips
//!   them, unless [`QueueConfig::foreign`](tickpath_bus_api::QueueConfig) gives them a kind. Skipped messages are
//!   acknowledged with the delivered ones, because a group has one offset per partition.
//! * A name is the same on the server, unless it holds a `:`. Then it gets a leading point, and `:` becomes `-.` and
//!   `-` becomes `--`. If two names differ only in `.` and `_`, Kafka refuses the second one.
//!
//! **A queue** is a Kafka topic of six partitions and a consumer group, both named like a topic with a `:`, with
//! `-queue` appended. At most six pullers share it at a time, each with its own partitions; a seventh waits. Pushing
//! goes round the partitions, so that not even a single puller gets all messages in the order of pushing.
//!
//! * A push that is unknown and sent again may be in the queue twice, under the same origin.
//! * At least once, acknowledging commits the group's offset. At most once, the offset is committed before messages are
//!   handed over. Acknowledging waits for the server's answer for 5 s, or for `silence_ns` if that is less: until then
//!   the messages still belong to this puller. After that it returns `NotAcknowledged`, as it does, once, if messages
//!   went to another puller before they were acknowledged. If an acknowledgement was sent and not answered, the
//!   messages are in doubt: they are done, or come again. The answer may still come, and nothing else is acknowledged
//!   before; it counts only for the offsets that were sent.
//! * At most once, if a commit is not answered and the partition then goes to another puller, messages may be lost that
//!   no puller was handed: the next pull returns `TopicGone`, with an upper bound of their number.
//! * The client library sends heartbeats in the background, but a puller must also pull or wait within `silence_ns`. A
//!   puller that is silent for longer, or dies, loses its partitions; a dropped puller gives them away at once. Ask for
//!   two seconds or more: the library sends at most two heartbeats a second.
//! * Partitions move when pullers come and go, while a puller pulls or waits. Messages that it was handed before and
//!   has not acknowledged come again at another puller, marked: so acknowledge before the next pull.
//! * Nothing that another puller had is handed over without the mark. A puller that was dropped or gave a partition
//!   away commits a note of its position, and the marks are exact; after a death everything pushed until then is
//!   marked. But a puller that the server has given up without its knowledge may hand over messages that another one
//!   gets as new.
//! * `waiting` counts all messages that are not acknowledged, including those handed over.
//! * Acknowledged messages are deleted from the server's disk now and then. The server forgets a group's offset when it
//!   has had no puller for seven days (`offsets.retention.minutes`): then messages not deleted yet come again.
//! * Drop all pullers before a queue is removed. A remaining puller returns `TopicGone`, and commits no offset of the
//!   removed topic: before each commit it asks whether its last one is still kept, for the server drops a group's
//!   offsets with the topic. It then joins the group anew, and may mark as redelivered messages that no puller had.
//!   That check costs an acknowledgement a second round trip, except within 5 ms of the last one.
//! * A puller also returns `TopicGone` if a partition lost its end, or was recreated, and resumes with the messages that it
//!   was not handed. It recognizes these by offset and timestamp: a message pushed after the loss and before the puller
//!   noticed it is skipped if its offset was handed over before, and its pusher's clock is behind the newest message
//!   that was.
//! * A puller fetches up to 16 MiB ahead, and its client library as much.
//!
//! The client library reconnects in the background, and does not report how often: `reconnects` is none, except for a
//! subscriber, which counts how often no server at all was reachable.
//!
//! Connecting creates Kafka's own topic `__consumer_offsets`, as any client does. Nothing else on the server is
//! touched.

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
    fn ensure_topic(&self, topic: &str, there: &str, retention: TopicRetention) -> Result<(), ConnectError> {
        match self.cluster.ensure(there, 1, retention).map_err(|e| self.cluster.error(&e))? {
            1 => Ok(()),
            partitions => Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("number the messages of the topic '{topic}', which has {partitions} partitions"),
                remedy: "use a topic of one partition, or a name that is free: it is made as it should be",
            }),
        }
    }

    /// Creates the topic of a queue unless it exists; returns its number of partitions.
    fn ensure_queue(&self, there: &str) -> Result<i32, ConnectError> {
        let ensured = self.cluster.ensure(there, QUEUE_PARTITIONS, TopicRetention::ALL);
        ensured.map_err(|e| self.cluster.error(&e))
    }
}

impl Connection for KafkaBus {
    /// Names the transport only: Kafka's protocol reports no version.
    fn server_description(&self) -> ServerDescription {
        let replicas = self.cluster.server().replicas.map_or("the server's own".to_owned(), |count| count.to_string());
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
        let there = names::topic(topic, &self.cluster.server().names)?;
        let Some(retention) = TopicRetention::from_config(config) else {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'keep' or 'overwrite', or a topic on shm:// or file://",
            });
        };
        self.ensure_topic(topic, &there, retention)?;
        self.cluster.ensure_retention(&there, retention).map_err(|e| self.cluster.error(&e))?;
        Ok(Box::new(KafkaPublisher::of_topic(self.cluster.clone(), there)?))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let there = names::topic(topic, &self.cluster.server().names)?;
        self.ensure_topic(topic, &there, TopicRetention::UNDECIDED)?;
        adaptive::subscriber(wait, KafkaSubscriber::open(self.cluster.clone(), &there, start, wait)?)
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        let there = names::topic(topic, &self.cluster.server().names)?;
        self.cluster.remove(&there).map_err(|e| self.cluster.error(&e))
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
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        let there = names::queue(queue)?;
        let partitions = self.ensure_queue(&there)?;
        Ok(Box::new(KafkaPublisher::of_queue(self.cluster.clone(), there, partitions)?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        let there = names::queue(queue)?;
        self.ensure_queue(&there)?;
        adaptive::puller(wait, KafkaPuller::open(self.cluster.clone(), &there, config, wait)?)
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        let there = names::queue(queue)?;
        self.cluster.count_waiting(&there).map(Some).map_err(|e| self.cluster.error(&e))
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        let there = names::queue(queue)?;
        let removed = self.cluster.remove(&there).and_then(|()| self.cluster.remove_group(&there, QUEUE_PARTITIONS));
        removed.map_err(|e| self.cluster.error(&e))
    }
}
