//! The bus over Redis.
//!
//! | URL                                                      | topics                | queues               |
//! |----------------------------------------------------------|-----------------------|----------------------|
//! | `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`           | publish and subscribe | lists                |
//! | `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]?streams`   | streams               | streams, with groups |
//! | `redis+unix:///PATH/TO/SOCKET`                           | publish and subscribe | lists                |
//! | `redis+unix:///PATH/TO/SOCKET?streams`                   | streams               | streams, with groups |
//!
//! The server must be of version 6.2 at least for queues.
//!
//! **Publish and subscribe.** A topic is the channel of the same name. Redis keeps nothing: who is not subscribed
//! misses a message, and nobody counts. So there is neither history nor a sequence number, and only the policy
//! `overwrite`. When a subscriber's connection was lost and made again, [`Gap::Reconnected`](tickpath_bus_api::Gap)
//! says so.
//!
//! **Streams.** A topic is the stream of the same name, and keeps everything: only the policy `keep`. A subscription
//! can start at the oldest message; ids of entries are times, so that there are no sequence numbers. After a lost
//! connection a subscriber goes on behind the last entry that it has, and misses nothing. If the server has lost the
//! stream meanwhile, or the subscriber had no entry yet by which to know it, it says `Gap::Reconnected` and begins with
//! the oldest that there is.
//!
//! **Queues** are the list, or the stream, of the same name; on streams a topic and a queue cannot share a name. At
//! least once, a message stays on the server, with its puller, until it is acknowledged; of a puller that is dropped it
//! comes to others at once, of one that is silent for too long after that time. A puller that sleeps looks four times a
//! second for what came back. At most once, a message on its way when the connection breaks is lost, and what a dropped
//! puller had fetched and not handed over goes back: to the front of a list, to the end of a stream.
//! Next to a list lie the keys `QUEUE/again`, `QUEUE/pullers`, `QUEUE/taken/ID` and `QUEUE/alive/ID`.
//!
//! * Sending waits for the server's reply, as programs usually do; a batch is one pipeline. If the server has closed
//!   the connection meanwhile, it is made again once and what has no reply yet is sent again: should the server have
//!   taken that in its last moment, it comes twice.
//! * A server that has come back and is not ready yet, because it loads its data, is waited for up to 5 s by who sends,
//!   opens or asks, and by who receives until it is ready. Publishing and subscribing need not wait: it does both.
//! * Everybody owns a socket, so that looking never waits, and waiting is sleeping in the kernel. When a connection is
//!   lost, a thread makes it again.
//! * What others publish, without our header, comes to a subscriber as an event of its own, an entry of a stream as
//!   an object of its fields in JSON; what they push, a puller skips and takes away.

mod about;
mod advice;
mod error;
mod info;
mod link;
mod list_at_least_once;
mod list_at_most_once;
mod moment;
mod puller;
mod reconnect;
mod resp;
mod sender;
mod server;
mod socket;
mod stream;
mod stream_at_least_once;
mod stream_at_most_once;
mod stream_feed;
mod stream_group;
mod stream_subscriber;
mod subscriber;

use std::sync::Arc;

use tickpath_bus_api::wire::check_name;
use tickpath_bus_api::{
    About, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::link::Link;
use crate::list_at_least_once::ListAtLeastOnce;
use crate::list_at_most_once::ListAtMostOnce;
use crate::puller::{Queue, RedisPuller};
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
        let answer = Link::open_ready(&self.server).and_then(|mut link| question(&mut link));
        answer.map_err(|e| self.server.error(&e))
    }

    fn open_puller(&self, queue: impl Queue + 'static, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        adaptive::puller(wait, RedisPuller::open(self.server.clone(), queue, wait)?)
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
            Mechanism::Streams => {
                "trimming a stream would lose messages silently: use 'keep', or a topic on shm:// or file://"
            }
        };
        let what = format!("hold a topic by the policy '{policy}'");
        Err(ConnectError::Unsupported { transport: self.transport(), what, remedy })
    }

    fn check_start(&self, start: Start) -> Result<(), ConnectError> {
        let (what, remedy) = match (self.server.mechanism(), start) {
            (_, Start::Now) | (Mechanism::Streams, Start::Oldest) => return Ok(()),
            (Mechanism::Plain, Start::Oldest) => {
                let remedy = "it keeps no messages: start 'now', or use ?streams in the URL, shm:// or file://";
                ("start at the oldest message".to_owned(), remedy)
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
            Mechanism::Streams => (true, &[Policy::Keep]),
        };
        Capabilities {
            sequences: false,
            history,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        check_name("topic", topic)?;
        self.check_policy(config.policy)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism() {
            Mechanism::Plain => Sender::to_channel(server, topic)?,
            Mechanism::Streams => Sender::to_key(server, &["XADD", topic, "*", stream::FIELD])?,
        }))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        check_name("topic", topic)?;
        self.check_start(start)?;
        let server = self.server.clone();
        match server.mechanism() {
            Mechanism::Plain => adaptive::subscriber(wait, RedisSubscriber::open(server, topic, wait)?),
            Mechanism::Streams => adaptive::subscriber(wait, StreamSubscriber::open(server, topic, start, wait)?),
        }
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        check_name("topic", topic)?;
        match self.server.mechanism() {
            Mechanism::Plain => Ok(()),
            Mechanism::Streams => self.ask(|link| stream::remove(link, topic)),
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
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, _config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        check_name("queue", queue)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism() {
            Mechanism::Plain => Sender::to_key(server, &["LPUSH", queue])?,
            Mechanism::Streams => Sender::to_key(server, &["XADD", queue, "*", stream::FIELD])?,
        }))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        check_name("queue", queue)?;
        let clock = self.server.clock();
        let QueueConfig { silence_ns, foreign, .. } = *config;
        match (self.server.mechanism(), config.delivery) {
            (Mechanism::Plain, Delivery::AtMostOnce) => self.open_puller(ListAtMostOnce::new(queue, foreign), wait),
            (Mechanism::Plain, Delivery::AtLeastOnce) => {
                self.open_puller(ListAtLeastOnce::new(queue, silence_ns, foreign, clock), wait)
            }
            (Mechanism::Streams, Delivery::AtMostOnce) => {
                self.open_puller(StreamAtMostOnce::new(queue, silence_ns, foreign, clock), wait)
            }
            (Mechanism::Streams, Delivery::AtLeastOnce) => {
                self.open_puller(StreamAtLeastOnce::new(queue, silence_ns, foreign, clock), wait)
            }
        }
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        check_name("queue", queue)?;
        let count = match self.server.mechanism() {
            Mechanism::Plain => self.ask(|link| list_at_least_once::count_waiting(link, queue)),
            Mechanism::Streams => self.ask(|link| stream_group::count_waiting(link, queue)),
        };
        count.map(Some)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        check_name("queue", queue)?;
        match self.server.mechanism() {
            Mechanism::Plain => self.ask(|link| list_at_least_once::remove(link, queue)),
            Mechanism::Streams => self.ask(|link| stream::remove(link, queue)),
        }
    }
}
