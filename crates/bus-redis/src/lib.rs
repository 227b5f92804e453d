//! The bus over Redis.
//!
//! | URL                                                             | topics                | queues               |
//! |-----------------------------------------------------------------|-----------------------|----------------------|
//! | `redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE]`      | publish and subscribe | lists                |
//! | … `?streams`                                                    | streams               | streams, with groups |
//! | `redis+unix:///PATH/TO/SOCKET`, and the same with `?streams`    | the same              | the same             |
//!
//! `rediss://`, or `?tls`, is over TLS and never without it: `ca=FILE` names the authorities to trust, else those of this
//! host, `cert=FILE&key=FILE` our own certificate. Of several servers the first one is taken that answers and is a master;
//! with `sentinel=NAME` they are sentinels, who are asked where the master of that name is. The server must be of version
//! 6.2 at least for queues, and for topics that overwrite.
//!
//! With `cluster` the servers are nodes of a cluster, of which any that answers says where a name lies: a topic or queue is
//! on one node whole. When its slot is given to another node the next connection goes there, and nothing is published twice;
//! a subscriber of a stream learns that nobody knows what the old node had not handed on. What is published on a channel all
//! nodes pass on. A queue of lists that acknowledges has several keys, which one node has only by chance: use `streams`.
//!
//! **Publish and subscribe.** A topic is the channel of the same name. Redis keeps nothing: who is not subscribed
//! misses a message. So there is neither history nor a sequence number, and only the policy `overwrite`. When a
//! subscriber's connection was lost and made again, [`Gap::Reconnected`](tickpath_bus_api::Gap) says so. A replica takes
//! what is published and tells nobody: a publisher refuses one, and asks once a second whether its server has become one.
//! What was published last is unknown then; what was published in that second before is missing by its numbers.
//!
//! **Streams.** A topic is the stream of the same name. By the policy `keep` it keeps everything. By `overwrite` it is cut
//! by who publishes: to about the bytes of its capacity, which is a count of entries over the mean of their bytes, and to
//! its age by the server's clock. A subscription can start at the oldest message, or behind a resume token; ids of entries
//! are times, so that there are no sequence numbers. After a lost connection a subscriber goes on behind the last entry
//! that it has, and misses nothing, if the server is the one that it was. Of one that was started again, unless it syncs
//! each write (`appendfsync always`), and of another one that has taken over, nobody knows what it has lost: that is
//! `Gap::Reconnected`, and reading goes on behind what has come. Only a stream that surely was removed and made anew is
//! read from its beginning. A replica may lag behind its master: behind a token, it is a server of which nobody knows that,
//! too. A stream does not keep the policy of its topic: publishers of both policies are let in, and one that overwrites
//! cuts what others mean to keep; give all publishers of a topic the same. What is cut before it is read is told with its
//! number: by the numbers of our publishers, and by the count of the server, which has one from version 7 on. What came and
//! was cut whole while nobody read is told within three seconds, so perhaps behind what followed.
//!
//! **Queues** are the list, or the stream, of the same name; on streams a topic and a queue cannot share a name. At
//! least once, a message stays on the server, with its puller, until it is acknowledged; of a puller that is dropped it
//! comes to others at once, of one that is silent for too long after that time, and then an acknowledgement says that it
//! was none. Where pullers of a queue do not agree on that silence, each loses what it holds by its own one from a list, and
//! from a stream by the longest of those that hold something. A puller that sleeps looks four times a second for what came
//! back. At most once, a message on its way when the connection breaks is lost, and what a dropped puller had fetched and
//! not handed over goes back: to the front of a list, to the end of a stream. One call takes up to 100 messages, fewer where
//! those that came last were long, so that they have about [`MAX_PULLED_BYTES`]; at least once from a list never more, but
//! for a longer message alone. Next to a list lie the keys `{QUEUE}/again`, `{QUEUE}/pullers`, `{QUEUE}/taken/ID`,
//! `{QUEUE}/alive/ID` and `{QUEUE}/back/ID`, in its own slot of a cluster.
//!
//! A stream that somebody removes is made anew by the next puller, and each of them is told, within a second: a second group,
//! `tickpath~ID`, which is gone with the stream, tells it from another one of its name. A list is there whenever something
//! lies in it, so that nobody sees that it was not.
//!
//! At least once, one message can be given back: it comes to the next puller that looks, which one that sleeps does within
//! a third of a second, and one on a stream where there is always something new within a second. Streams count deliveries;
//! what is given up moves to the stream of dead letters in one step of the server, and cannot be lost or be there twice. Of
//! a server whose memory is full pullers take as ever, and so empty it; who pushes is told.
//!
//! * Sending waits for the server's reply, as programs usually do; a batch is one pipeline, and of each of its messages it
//!   is known what became of it. A connection that the server has closed is made again before anything is sent. Where no
//!   reply comes the message is unknown; it is sent again by nobody but its owner, and in a queue may be there twice then.
//! * A server that has come back and is not ready yet, because it loads its data, is waited for up to 5 s by who sends,
//!   opens or asks, and by who receives until it is ready. Publishing and subscribing need not wait: it does both. What else
//!   passes (a replica that is no master yet, too many clients, memory or a disk that is full) receivers wait for, and
//!   senders are told.
//! * Everybody owns a socket, so that looking never waits, and waiting is sleeping in the kernel. When a connection is
//!   lost, a thread makes it again: where the server lets in and then refuses, after a pause that grows to a second.
//!   A puller then ends the one before (`CLIENT KILL`), so that nothing is done late that was asked for there; a user who has
//!   no right to do that goes without.
//! * An answer is bounded in bytes, in values and in how deep its arrays lie inside each other: 8 MiB where it brings no message,
//!   64 MiB more for each message that was asked for. Beyond that the connection is closed, and the error names the bound. A
//!   server that sends what nobody asked for is left, too.
//! * What others publish, without our header, comes to a subscriber as an event of its own, an entry of a stream as
//!   an object of its fields in JSON. What they push a puller refuses, and leaves there, unless its queue was opened with a
//!   kind for it ([`QueueConfig::foreign`]). In a stream such an entry is passed by, and stays.

mod about;
mod advice;
mod error;
mod info;
mod link;
mod list;
mod list_at_least_once;
mod list_at_most_once;
mod login;
mod moment;
mod place;
mod portion;
mod puller;
mod reconnect;
mod resp;
mod retention;
mod sender;
mod server;
mod slot;
mod socket;
mod stream;
mod stream_at_least_once;
mod stream_at_most_once;
mod stream_feed;
mod stream_group;
mod stream_progress;
mod stream_subscriber;
mod subscriber;

use std::sync::Arc;

use tickpath_bus_api::wire::check_name;
use tickpath_bus_api::{
    About, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive, dead_letter_queue,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::link::Link;
use crate::list_at_least_once::ListAtLeastOnce;
use crate::list_at_most_once::ListAtMostOnce;
use crate::puller::{Queue, RedisPuller};
use crate::retention::Retention;
use crate::sender::Sender;
use crate::server::{Mechanism, Server};
use crate::stream_at_least_once::StreamAtLeastOnce;
use crate::stream_at_most_once::StreamAtMostOnce;
use crate::stream_subscriber::StreamSubscriber;
use crate::subscriber::RedisSubscriber;

pub use crate::puller::MAX_PULLED_BYTES;
pub use crate::sender::MAX_PAYLOAD_BYTES;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: "Redis",
    schemes: &["redis", "rediss", "redis+unix"],
    form: "redis://HOST:PORT[?streams]",
    ways: &["", "?streams"],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(RedisBus::connect(url)?)),
    advise: advice::advise,
};

/// Topics and queues on one Redis server.
#[derive(Debug, Clone)]
pub struct RedisBus {
    server: Arc<Server>,
}

impl RedisBus {
    /// Reads the URL, and asks the server for a sign of life.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let bus = Self { server: Arc::new(Server::parse(url)?) };
        bus.ask(|_ready| Ok(()))?;
        Ok(bus)
    }

    fn ask<T>(&self, question: impl FnOnce(&mut Link) -> Result<T, ServerError>) -> Result<T, ConnectError> {
        ask(&self.server, question)
    }

    fn open_puller(&self, queue: impl Queue + 'static, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        let server = self.server.at(queue.name());
        adaptive::puller(wait, RedisPuller::open(server, queue, wait)?)
    }

    /// How this transport is called in errors.
    fn transport(&self) -> &'static str {
        match self.server.mechanism() {
            Mechanism::Plain => "Redis publish and subscribe",
            Mechanism::Streams => "Redis streams",
        }
    }

    fn check_policy(&self, policy: Policy) -> Result<(), ConnectError> {
        if self.capabilities().policies.contains(&policy) {
            return Ok(());
        }
        let remedy = match self.server.mechanism() {
            Mechanism::Plain => "use 'overwrite', or a topic on shm:// or file://",
            Mechanism::Streams => "use 'keep' or 'overwrite', or a topic on shm:// or file://",
        };
        let what = format!("hold a topic by the policy '{policy}'");
        Err(ConnectError::Unsupported { transport: self.transport(), what, remedy })
    }

    /// Refuses a queue whose dead letters have no place.
    fn check_dead_letters(&self, queue: &str, config: &QueueConfig) -> Result<(), ConnectError> {
        if config.most_deliveries.is_none() {
            return Ok(());
        }
        if self.server.is_cluster() {
            return Err(ConnectError::Unsupported {
                transport: self.transport(),
                what: format!(
                    "move messages of '{queue}' to '{}', on another node of the cluster",
                    dead_letter_queue(queue)
                ),
                remedy: "use a server that is no cluster, or no limit",
            });
        }
        check_name("queue", &dead_letter_queue(queue))
    }

    fn check_start(&self, start: Start) -> Result<(), ConnectError> {
        let (what, remedy) = match (self.server.mechanism(), start) {
            (_, Start::Now) | (Mechanism::Streams, Start::Oldest | Start::After(_)) => return Ok(()),
            (Mechanism::Plain, Start::Oldest) => {
                let remedy = "it keeps no messages: start 'now', or use ?streams in the URL, shm:// or file://";
                ("start at the oldest message".to_owned(), remedy)
            }
            (_, Start::After(_)) => {
                let remedy = "it keeps no messages: start 'now', or use ?streams in the URL";
                ("go on behind a resume token".to_owned(), remedy)
            }
            (mechanism, Start::Sequence(sequence)) => {
                let remedy = match mechanism {
                    Mechanism::Plain => "it keeps no messages: start 'now', or use shm:// or file://",
                    Mechanism::Streams => {
                        "ids of its entries are times: start at the oldest message, or use shm:// or file://"
                    }
                };
                (format!("start at the sequence number {sequence}"), remedy)
            }
        };
        Err(ConnectError::Unsupported { transport: self.transport(), what, remedy })
    }
}

impl Connection for RedisBus {
    fn about(&self) -> About {
        about::about(&self.server)
    }

    fn capabilities(&self) -> Capabilities {
        let (history, policies): (bool, &[Policy]) = match self.server.mechanism() {
            Mechanism::Plain => (false, &[Policy::Overwrite]),
            Mechanism::Streams => (true, &[Policy::Keep, Policy::Overwrite]),
        };
        Capabilities {
            sequences: false,
            history,
            max_age: history,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies,
            lends: &[],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(self.transport(), config)?;
        let topic = &*self.server.names().of_topic(topic)?;
        self.check_policy(config.policy)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism() {
            Mechanism::Plain => Sender::to_channel(server, topic)?,
            Mechanism::Streams => Sender::to_stream(server, topic, Retention::of(topic, config))?,
        }))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        self.check_start(start)?;
        let server = self.server.clone();
        match server.mechanism() {
            Mechanism::Plain => adaptive::subscriber(wait, RedisSubscriber::open(server, topic, wait)?),
            Mechanism::Streams => {
                adaptive::subscriber(wait, StreamSubscriber::open(server.at(topic), topic, start, wait)?)
            }
        }
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        match self.server.mechanism() {
            Mechanism::Plain => Ok(()),
            Mechanism::Streams => ask(&self.server.at(topic), |link| stream::remove(link, topic)),
        }
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: match self.server.mechanism() {
                Mechanism::Plain => &[Delivery::AtMostOnce, Delivery::AtLeastOnce],
                Mechanism::Streams => &[Delivery::AtLeastOnce, Delivery::AtMostOnce],
            },
            ordered: true,
            single_pusher: false,
            keeps_without_puller: true,
            sees_death: false,
            counts_waiting: true,
            exact_resend: false,
            counts_deliveries: self.server.mechanism() == Mechanism::Streams,
            gives_back: true,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check(self.transport(), config)?;
        check_name("queue", queue)?;
        self.check_dead_letters(queue, config)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism() {
            Mechanism::Plain => Sender::to_key(server, &["LPUSH", queue])?,
            Mechanism::Streams => Sender::to_key(server, &["XADD", queue, "*", stream::FIELD])?,
        }))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check(self.transport(), config)?;
        check_name("queue", queue)?;
        self.check_dead_letters(queue, config)?;
        let clock = self.server.clock();
        let QueueConfig { silence_ns, foreign, .. } = *config;
        match (self.server.mechanism(), config.delivery) {
            (Mechanism::Plain, Delivery::AtMostOnce) => {
                self.open_puller(ListAtMostOnce::new(queue, foreign, clock), wait)
            }
            (Mechanism::Plain, Delivery::AtLeastOnce) => {
                self.open_puller(ListAtLeastOnce::new(queue, silence_ns, foreign, clock), wait)
            }
            (Mechanism::Streams, Delivery::AtMostOnce) => {
                self.open_puller(StreamAtMostOnce::new(queue, config, clock), wait)
            }
            (Mechanism::Streams, Delivery::AtLeastOnce) => {
                self.open_puller(StreamAtLeastOnce::new(queue, config, clock), wait)
            }
        }
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        check_name("queue", queue)?;
        let there = self.server.at(queue);
        let count = match self.server.mechanism() {
            Mechanism::Plain => ask(&there, |link| list_at_least_once::count_waiting(link, queue)),
            Mechanism::Streams => ask(&there, |link| stream_group::count_waiting(link, queue)),
        };
        count.map(Some)
    }

    fn may_drop(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        check_name("queue", queue)?;
        let about = self.about();
        let told = |name| {
            about.setting(name).map_err(|what| ConnectError::Server { server: self.server.name().to_owned(), what })
        };
        let (limit, policy) = (told("maxmemory")?, told("maxmemory-policy")?);
        // Keys that its other policies evict have a time to live, which no queue of ours has.
        let evicts = limit != "0" && policy.starts_with("allkeys-");
        Ok(evicts.then(|| format!("maxmemory-policy {policy} deletes whole queues when {limit} bytes are used")))
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        check_name("queue", queue)?;
        let there = self.server.at(queue);
        match self.server.mechanism() {
            Mechanism::Plain => ask(&there, |link| list_at_least_once::remove(link, queue)),
            Mechanism::Streams => ask(&there, |link| stream::remove(link, queue)),
        }
    }
}

/// Asks a server that is ready.
fn ask<T>(server: &Server, question: impl FnOnce(&mut Link) -> Result<T, ServerError>) -> Result<T, ConnectError> {
    Link::open_ready(server).and_then(|mut link| question(&mut link)).map_err(|e| server.error(&e))
}
