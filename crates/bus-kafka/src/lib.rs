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
//! **A topic** is a Kafka topic of one partition that keeps all: `retention.ms` and `retention.bytes` are -1. Its
//! offsets are the sequence numbers. Whoever comes first makes the topic.
//!
//! * Publishing returns when all replicas that are in step have acknowledged (acks=all). What the client library sends
//!   again after a lost connection, or to the next leader, still arrives once and in order. A message waits for a
//!   leader for 30 s. Where no server at all is there, it is given up after 5 s.
//! * A message that was given up may have arrived: the error says `Unknown`, and `resend` sends it again under the
//!   same origin, so that subscribers of this crate get it once; others see it twice. In a batch each message has a
//!   fate of its own. Should one that is published have overtaken one that is unknown, `resend` refuses, because
//!   subscribers would drop that one. What fails before anything was sent is `Unavailable`.
//! * A subscriber reads at places of its own. After a lost connection it goes on where it was, and nothing is told,
//!   because nothing is missed. What the server has forgotten is told as `Missed`, with the exact number, in which the
//!   marks that transactions of others leave are counted as well.
//! * Where the end of a topic is lost (a leader without all messages took over, or a disk lost some), or the topic was
//!   removed and made anew, a subscriber tells [`Gap::Reconnected`](tickpath_bus_api::Gap) and goes on with the first
//!   message whose time on Kafka is later than that of all it has seen and than its own beginning. The publisher's
//!   host sets that time: what one with a clock that is behind publishes meanwhile lies in the gap. What the
//!   subscriber had before does not come again. That it was a loss shows when the server refuses the place, or knows
//!   that it was of an earlier leader; a topic that is removed, made anew and filled beyond the place within a moment
//!   is not told from the old one.
//! * What others publish on the topic, without our header, comes as an event of its own, with a sequence number; a
//!   puller skips it, unless [`QueueConfig::foreign`](tickpath_bus_api::QueueConfig) gives it a kind.
//! * A name is the same there, unless it holds a `:`. Then there is a point in front, `:` is `-.` and `-` is `--`. Of
//!   names that differ only in `.` and `_` Kafka refuses the second one.
//!
//! **A queue** is a Kafka topic of six partitions and a consumer group, both called as a topic with a `:` is, and
//! `-queue` behind. So many pullers share it at a time, each with partitions of its own; one more waits. Pushing goes
//! round the partitions, so that not even a puller alone gets all messages in the order of pushing.
//!
//! * A push that is unknown and sent again may be in the queue twice, under the same origin.
//! * At least once, acknowledging moves the group's place. At most once, the place moves before messages are handed
//!   over. Acknowledging waits for a lost server as long as `silence_ns`: the messages are still this puller's then.
//!   After that it says `NotAcknowledged`; so it does, once, where messages went to another puller before they were
//!   acknowledged.
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
//! * Drop all pullers before a queue is removed. One that is left says `Gone`.
//!
//! The client library makes lost connections again in the background, and tells nobody how often: `reconnects` is none
//! for all four.
//!
//! Connecting makes Kafka's own topic `__consumer_offsets`, as any client does. Nothing else on the server is touched.

mod advice;
mod answer;
mod cluster;
mod deadline;
mod group;
mod handshake;
mod line;
mod names;
mod place;
mod publisher;
mod puller;
mod reasons;
mod reports;
mod server;
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

    /// Makes a topic of one partition unless it is there.
    fn ensure_topic(&self, topic: &str, there: &str) -> Result<(), ConnectError> {
        match self.cluster.ensure(there, 1).map_err(|e| self.cluster.error(&e))? {
            1 => Ok(()),
            partitions => Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("number the messages of the topic '{topic}', which has {partitions} partitions"),
                remedy: "use a topic of one partition, or a name that is free: it is made as it should be",
            }),
        }
    }
}

impl Connection for KafkaBus {
    /// Its protocol tells no version.
    fn about(&self) -> About {
        About { server: Some(TRANSPORT.name.to_owned()), ..About::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: true,
            history: true,
            max_age: false,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies: &[Policy::Keep],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let there = names::topic(topic)?;
        if config.policy != Policy::Keep {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "it drops old messages by the segment, whoever has read them or not: use 'keep', \
                         or a topic on shm:// or file://",
            });
        }
        self.ensure_topic(topic, &there)?;
        Ok(Box::new(KafkaPublisher::of_topic(self.cluster.clone(), there)?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let there = names::topic(topic)?;
        self.ensure_topic(topic, &there)?;
        adaptive::subscriber(wait, KafkaSubscriber::open(self.cluster.clone(), &there, start, wait)?)
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let there = names::topic(topic)?;
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
        let partitions = self.cluster.ensure(&there, QUEUE_PARTITIONS).map_err(|e| self.cluster.error(&e))?;
        Ok(Box::new(KafkaPublisher::of_queue(self.cluster.clone(), there, partitions)?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        let there = names::queue(queue)?;
        self.cluster.ensure(&there, QUEUE_PARTITIONS).map_err(|e| self.cluster.error(&e))?;
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
