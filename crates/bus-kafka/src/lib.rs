//! The bus over Kafka: `kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…][?OPTION[&OPTION…]]`. Whichever of the servers
//! answers first names all others of its cluster.
//!
//! | option | what it does |
//! |---|---|
//! | `tls` | encryption is a must, and the server's certificate must be for the host that it is reached by |
//! | `ca=FILE` | the authorities to trust, PEM; those of this host if it is not there |
//! | `cert=FILE`, `key=FILE` | our own certificate and its key, PEM, for a server that asks who comes |
//! | `sasl=MECHANISM` | how user and password log in: `scram-sha-512` (the usual one), `scram-sha-256` or `plain` |
//! | `replicas=N` | topics are made on N servers, of which N-1 acknowledge at least (min.insync.replicas) |
//!
//! There is a login if the URL has a user and a password. `plain` sends the password as it is: without `tls` it is
//! refused, unless all hosts are loopback. Without `replicas` a topic has as many as the server's
//! default.replication.factor says; one that is there and has fewer than `replicas` is refused. min.insync.replicas is
//! set on topics that are made, and not looked at on others.
//!
//! **A topic** is a Kafka topic of one partition. Its offsets are the sequence numbers. Whoever comes first makes the
//! topic.
//!
//! * By the policy `keep` it keeps all: `retention.ms` and `retention.bytes` are -1. By `overwrite` `retention.bytes`
//!   is its capacity, and `retention.ms` its age, or -1. Messages go by the segment, of which there are four, each of a
//!   mebibyte or more, and when the server looks, which it does every five minutes unless
//!   `log.retention.check.interval.ms` says otherwise: until then more is there. So a topic never holds less, and may
//!   hold far more.
//! * A publisher is refused where the topic keeps something else than it asks for. Who has no right to ask for that
//!   (DescribeConfigs) takes the topic as it is. A subscriber that comes first makes one that is undecided: its
//!   `retention.ms` is 9223372036854775807. The first publisher decides, by `overwrite` only while nothing is in it, and
//!   what else is set on the topic stays; that takes the right AlterConfigs. Any other topic that keeps all is refused
//!   to `overwrite`, also while it is empty. A subscriber takes a topic as it is.
//! * Publishing returns when all replicas that are in step have acknowledged (acks=all). What the client library sends
//!   again after a lost connection, or to the next leader, still arrives once and in order. A message waits for a
//!   leader for 30 s. Where no server at all is there, it is given up after 5 s.
//! * A message that was given up may have arrived: the error says `Unknown`, and `resend` sends it again under the same
//!   origin, so that subscribers of this crate get it once; others see it twice. In a batch each message has a fate of
//!   its own. As the client library sends again by itself and tells the last answer only, each answer leaves a message
//!   unknown but that it is too large, or no record for this topic. Should one that is published have overtaken one
//!   that is unknown, `resend` refuses, because subscribers would drop that one. What fails before anything was sent is
//!   `Unavailable`.
//! * A subscriber reads at places of its own. After a lost connection it goes on where it was, and nothing is told,
//!   because nothing is missed. What the server has forgotten is told as `Missed`, with the exact number. The marks that
//!   transactions of others leave, and the records of those that were aborted, are no loss; nor is what a server that
//!   compacts the topic has replaced by newer records.
//! * Where the end of a topic is lost (a leader without all messages took over, or a disk lost some), or the topic was
//!   removed and made anew, a subscriber tells [`Gap::Reconnected`](tickpath_bus_api::Gap) and goes on with the first
//!   message whose time on Kafka is later than that of all it has seen and than its own beginning. The publisher's
//!   host sets that time: what one with a clock that is behind publishes meanwhile lies in the gap. What the
//!   subscriber had before does not come again. That it was a loss shows when the server refuses the place, or knows
//!   that it was of an earlier leader; a topic that is removed, made anew and filled beyond the place within a moment
//!   is not told from the old one.
//! * A token says which offset comes next, when the newest message was made that was seen, and what the record before
//!   that offset is known by. Kafka's own id of a topic is not to be had here, so who goes on reads that record once
//!   more: where it is another one, or not there, the topic is another one or has lost its end, and `Reconnected` is
//!   told. What is gone is told as `Missed`. Where nothing was seen before the token was given, only the times of
//!   messages tell.
//! * A message that the client library cannot read ends a subscription, or a puller, with an error: it has no zstd.
//!   gzip, snappy and lz4 are read.
//! * That a server refuses TLS or the login is waited for as long as another one lets us in.
//! * What others publish on the topic, without our header, comes as an event of its own, with a sequence number; a
//!   puller skips it, unless [`QueueConfig::foreign`](tickpath_bus_api::QueueConfig) gives it a kind. What is skipped
//!   is acknowledged with what was handed over, because a group has one place in a partition.
//! * A name is the same there, unless it holds a `:`. Then there is a point in front, `:` is `-.` and `-` is `--`. Of
//!   names that differ only in `.` and `_` Kafka refuses the second one.
//!
//! **A queue** is a Kafka topic of six partitions and a consumer group, both called as a topic with a `:` is, and
//! `-queue` behind. So many pullers share it at a time, each with partitions of its own; one more waits. Pushing goes
//! round the partitions, so that not even a puller alone gets all messages in the order of pushing.
//!
//! * A push that is unknown and sent again may be in the queue twice, under the same origin.
//! * At least once, acknowledging moves the group's place. At most once, the place moves before messages are handed
//!   over. Acknowledging waits for the server's answer for 5 s, or as long as `silence_ns` where that is less: the
//!   messages are still this puller's then. After that it says `NotAcknowledged`; so it does, once, where messages went
//!   to another puller before they were acknowledged. Where an acknowledgement was sent and no answer came, it says
//!   that nobody knows: they are done with, or come again. The answer may still come, and nothing else is acknowledged
//!   before; it counts for what was sent, and for nothing later.
//! * At most once, where the place was sent and no answer came, and the partition then goes to another puller, messages
//!   may be gone that nobody was handed: the next pull says `Gone`, and of how many at most.
//! * The client library shows life in the background, but a puller must also pull or wait within `silence_ns`. Who is
//!   silent for longer loses its partitions, and so does who dies; who is dropped gives them away at once. Ask for two
//!   seconds or more: the library shows life no more than twice a second.
//! * Partitions move when pullers come and go, while a puller pulls or waits. What it was handed before and has not
//!   acknowledged comes again at another one, marked: so acknowledge before the next pull.
//! * Nothing that another puller had is handed over without the mark. Who was dropped or gave a partition away leaves
//!   word how far it had come, and the marks are exact; after a death all that was pushed until then is marked. But a
//!   puller that the server has given up, and that does not know it yet, may hand over what another one gets as new.
//! * `waiting` counts what is not acknowledged, also what was handed over.
//! * What is acknowledged is freed on the server's disk now and then. The server forgets a group's place when nobody
//!   has pulled for seven days (`offsets.retention.minutes`): then what is not freed yet comes again.
//! * Drop all pullers before a queue is removed. One that is left says `Gone`, and tells the server no place of the
//!   topic that was removed: before each place it asks whether its last one is still kept there, for the server drops
//!   the places of a group with the topic. It then joins the group anew, and may mark as redelivered what nobody had.
//!   That question costs an acknowledgement a second way to the server and back, but for what follows within 5 ms.
//! * A puller says `Gone`, too, where a partition lost its end, or was made anew, and goes on with what it was not
//!   handed over. It tells that by the place and the time of a message: what was pushed after the loss and before the
//!   puller noticed it is skipped where it lies at a place that was handed over before, and its pusher's clock is
//!   behind the newest message that was.
//! * A puller fetches up to 16 MiB ahead, and its client library as much.
//!
//! The client library makes lost connections again in the background, and tells nobody how often: `reconnects` is none, but
//! for a subscriber, which counts how often no server was there at all.
//!
//! Connecting makes Kafka's own topic `__consumer_offsets`, as any client does. Nothing else on the server is touched.

mod advice;
mod answer;
mod brokers;
mod cluster;
mod committer;
mod deadline;
mod group;
mod handshake;
mod line;
mod lookout;
mod names;
mod place;
mod publisher;
mod puller;
mod reasons;
mod record;
mod reports;
mod retention;
mod server;
mod share;
mod subscriber;

use std::sync::Arc;

use tickpath_bus_api::{
    About, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive,
};
use tickpath_clock::Wait;

use crate::cluster::Cluster;
use crate::publisher::KafkaPublisher;
use crate::puller::KafkaPuller;
use crate::retention::Retention;
use crate::server::Server;
use crate::subscriber::KafkaSubscriber;

pub use crate::publisher::MAX_PAYLOAD_BYTES;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: names::TRANSPORT,
    schemes: &["kafka"],
    form: "kafka://HOST:PORT",
    ways: &[""],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(KafkaBus::connect(url)?)),
    advise: advice::advise,
};

/// How many pullers can share a queue.
pub const QUEUE_PARTITIONS: i32 = 6;

/// Topics and queues on one Kafka cluster.
#[derive(Debug, Clone)]
pub struct KafkaBus {
    cluster: Arc<Cluster>,
}

impl KafkaBus {
    /// Reads the URL, and asks the cluster for a sign of life.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let cluster = Cluster::open(Server::parse(url)?)?;
        Ok(Self { cluster: Arc::new(cluster) })
    }

    /// Makes a topic of one partition that keeps so much unless it is there.
    fn ensure_topic(&self, topic: &str, there: &str, retention: Retention) -> Result<(), ConnectError> {
        match self.cluster.ensure(there, 1, retention).map_err(|e| self.cluster.error(&e))? {
            1 => Ok(()),
            partitions => Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("number the messages of the topic '{topic}', which has {partitions} partitions"),
                remedy: "use a topic of one partition, or a name that is free: it is made as it should be",
            }),
        }
    }

    /// Makes the topic of a queue unless it is there; gives how many partitions it has.
    fn ensure_queue(&self, there: &str) -> Result<i32, ConnectError> {
        let ensured = self.cluster.ensure(there, QUEUE_PARTITIONS, Retention::ALL);
        ensured.map_err(|e| self.cluster.error(&e))
    }
}

impl Connection for KafkaBus {
    /// Its protocol tells no version.
    fn about(&self) -> About {
        let replicas = self.cluster.server().replicas.map_or("the server's own".to_owned(), |count| count.to_string());
        let settings = [("replicas", Ok(replicas))].into();
        About { server: Some(TRANSPORT.name.to_owned()), settings, ..About::default() }
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
        let Some(retention) = Retention::of(config) else {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'keep' or 'overwrite', or a topic on shm:// or file://",
            });
        };
        self.ensure_topic(topic, &there, retention)?;
        self.cluster.hold(&there, retention).map_err(|e| self.cluster.error(&e))?;
        Ok(Box::new(KafkaPublisher::of_topic(self.cluster.clone(), there)?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let there = names::topic(topic, &self.cluster.server().names)?;
        self.ensure_topic(topic, &there, Retention::UNDECIDED)?;
        adaptive::subscriber(wait, KafkaSubscriber::open(self.cluster.clone(), &there, start, wait)?)
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let there = names::topic(topic, &self.cluster.server().names)?;
        self.cluster.remove(&there).map_err(|e| self.cluster.error(&e))
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[Delivery::AtLeastOnce, Delivery::AtMostOnce],
            ordered: false,
            single_pusher: false,
            keeps_without_puller: true,
            sees_death: false,
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

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        let there = names::queue(queue)?;
        self.cluster.waiting(&there).map(Some).map_err(|e| self.cluster.error(&e))
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        let there = names::queue(queue)?;
        let removed = self.cluster.remove(&there).and_then(|()| self.cluster.remove_group(&there, QUEUE_PARTITIONS));
        removed.map_err(|e| self.cluster.error(&e))
    }
}
