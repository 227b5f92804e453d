//! The bus over Redis.
//!
//! ```no_run
//! use tickpath_bus_api::{Connection, Policy, StartPosition, TopicConfig};
//! use tickpath_bus_redis::RedisBus;
//! use tickpath_clock::{Clock, HostClock, Wait};
//!
//! let bus = RedisBus::connect("redis://127.0.0.1:6379?streams")?;
//! let mut subscriber = bus.subscriber("ticks", StartPosition::Now, Wait::Block)?;
//! let mut publisher = bus.publisher("ticks", &TopicConfig::new(Policy::Keep))?;
//! publisher.publish(HostClock::get()?.ticks(), 200, b"101.5")?;
//! subscriber.wait(1_000_000_000);
//! subscriber.poll(64, &mut |event| println!("{event:?}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | URL                                                             | topics                | queues               |
//! |-----------------------------------------------------------------|-----------------------|----------------------|
//! | `redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE]`      | publish and subscribe | lists                |
//! | … `?streams`                                                    | streams               | streams, with groups |
//! | `redis+unix:///PATH/TO/SOCKET`, and the same with `?streams`    | the same              | the same             |
//!
//! `rediss://`, or `?tls`, requires TLS: `ca=FILE` names the trusted authorities (default: those of this host),
//! `cert=FILE&key=FILE` the client certificate. Of several servers, the first that answers and is a master is used;
//! with `sentinel=NAME` the servers are sentinels, which are asked for the master of that name. Queues, and stream
//! topics with the policy `overwrite`, need version 6.2 or newer.
//!
//! With `cluster` the servers are nodes of a cluster, and any node that answers is asked which one holds a name; a
//! topic or queue lies on one node as a whole. When its slot moves, the next connection goes to the new node, and
//! nothing is published twice; a subscriber of a stream gets `Gap::Reconnected`, because the old node may not have
//! passed everything on. Every node forwards the messages of a channel, and all keys of a queue on lists share the
//! queue's slot.
//!
//! **Publish and subscribe.** A topic is the channel of the same name. Redis keeps no message, and a client that is not
//! subscribed misses it, so there is neither history nor a sequence number, and `overwrite` is the only policy. A lost
//! and restored connection is reported as [`Gap::Reconnected`](tickpath_bus_api::Gap). A replica accepts a message and
//! delivers it to none of the master's subscribers: a publisher refuses a replica, and asks once a second whether its
//! server has become one. The last publish is in doubt then; messages of the second before it show up as a gap in their
//! numbers.
//!
//! **Streams.** A topic is the stream of the same name. The policy `keep` keeps everything. With `overwrite` the
//! publishers trim the stream: to about the bytes of its capacity (as a count of entries: capacity over mean entry
//! size), and to its max age by the server's clock. A subscription can start at the oldest message, or resume from a
//! token; entry ids are times, so there are no sequence numbers. After a lost connection a subscriber resumes after the
//! last entry that it received. Entries that are trimmed before they are read are counted, and a loss of unknown size
//! is `Gap::Reconnected` (`docs/design/redis-streams.md`). All publishers of a topic need the same policy: a stream
//! does not store it.
//!
//! **Queues** are the list, or the stream, of the same name; on streams a topic and a queue cannot share a name. At
//! least once, a message stays on the server, assigned to its puller, until it is acknowledged. Messages of a dropped
//! puller go to other pullers at once, those of a puller that exceeds its silence limit after that time; its
//! acknowledgement then fails. Where the pullers of a queue use different limits, a puller on a list loses messages by
//! its own limit, and one on a stream by the longest limit of all pullers that hold something. A sleeping puller polls
//! four times a second for returned messages. At most once, a message in flight when the connection breaks is lost, and
//! messages that a dropped puller had fetched but not handed over go back: to the front of a list, to the end of a
//! stream. One call takes up to 100 messages (at least once from a list, up to 1,024), fewer after long ones, so that
//! they have about [`MAX_PULLED_BYTES`]; at least once from a list that bound is exact, but for a single longer
//! message. `list_at_least_once.rs` draws the keys beside a list.
//!
//! At least once, a single message can be given back: it goes to the next puller that polls, within a third of a second
//! if that puller sleeps, and within a second on a stream that always has new entries. Streams count deliveries, and a
//! script moves a message that exceeds its limit to the dead-letter stream in one step, so that it is neither lost nor
//! duplicated. Pulling works on a server whose memory is full, and so empties it; a push gets an error.
//!
//! * Sending waits for the server's reply; a batch is one pipeline, and the outcome of each of its messages is known. A
//!   connection that the server has closed is restored before anything is sent. A message without a reply is in doubt
//!   (`Unknown`); only its owner sends it again, and it may then be in a queue twice.
//! * A restarted server that still loads its data is waited for up to 5 s by senders, opens and requests, and by
//!   receivers until it is ready. Publishing and subscribing need not wait: a loading server does both. Receivers also
//!   wait out other transient states (a replica not yet promoted, too many clients, full memory or disk); senders get
//!   an error.
//! * Every handle owns a socket, so that polling never waits, and waiting is sleeping in the kernel. A background
//!   thread restores a lost connection; where the server accepts and then refuses, after a pause that grows to a
//!   second. A puller then ends its previous connection (`CLIENT KILL`), so that no request in flight there takes
//!   effect late; a user without the right to do that goes without.
//! * Foreign messages, without our header, reach a subscriber as an event of their own, an entry of a stream as a JSON
//!   object of its fields. A puller refuses a foreign message and leaves it in the queue, unless the queue was opened
//!   with a kind for such messages ([`QueueConfig::foreign`]). In a stream such an entry is passed by, and stays.
//!
//! # Invariants
//!
//! * On a server of the user the adapter changes no setting, and leaves no keys but topics and queues.
//! * An answer is bounded in bytes, in values and in nesting before any of it is kept (`resp.rs`): 8 MiB where it
//!   brings no message, 64 MiB more for each message that was asked for. A server that exceeds a bound, or sends bytes
//!   that no request asked for, is disconnected, and the error names the bound.

mod about;
mod advice;
mod batch_size;
mod connection;
mod error;
mod host_instant;
mod info;
mod list;
mod list_at_least_once;
mod list_at_most_once;
mod login;
mod node_address;
mod publisher;
mod puller;
mod reconnect;
mod resp;
mod retention;
mod server;
mod slot;
mod socket;
mod stream;
mod stream_at_least_once;
mod stream_at_most_once;
mod stream_feed;
mod stream_group;
mod stream_position;
mod stream_subscriber;
mod subscriber;

use std::sync::Arc;

use tickpath_bus_api::wire::check_name;
use tickpath_bus_api::{
    Capabilities, ConnectError, Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, ServerDescription, StartPosition, Subscriber, TopicConfig, Transport, adaptive, dead_letter_queue,
};
use tickpath_clock::Wait;

use crate::connection::RedisConnection;
use crate::error::ServerResult;
use crate::list_at_least_once::ListAtLeastOnce;
use crate::list_at_most_once::ListAtMostOnce;
use crate::publisher::RedisPublisher;
use crate::puller::{RedisPuller, RedisQueue};
use crate::retention::StreamRetention;
use crate::server::{Mechanism, RedisEndpoint};
use crate::stream_at_least_once::StreamAtLeastOnce;
use crate::stream_at_most_once::StreamAtMostOnce;
use crate::stream_subscriber::StreamSubscriber;
use crate::subscriber::RedisSubscriber;

pub use crate::publisher::MAX_PAYLOAD_BYTES;
pub use crate::puller::MAX_PULLED_BYTES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The Redis transport: name, URL schemes, `connect` and `advise`.
pub const TRANSPORT: Transport = Transport {
    name: "Redis",
    schemes: &["redis", "rediss", "redis+unix"],
    url_syntax: "redis://HOST:PORT[?streams]",
    modes: &["", "?streams"],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(RedisBus::connect(url)?)),
    advise: advice::advise,
};

/// Topics and queues on one Redis server.
#[derive(Debug, Clone)]
pub struct RedisBus {
    server: Arc<RedisEndpoint>,
}

impl RedisBus {
    /// Parses the URL, connects and sends a `PING`.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let bus = Self { server: Arc::new(RedisEndpoint::parse(url)?) };
        with_new_connection(&bus.server, |_ready| Ok(()))?;
        Ok(bus)
    }

    fn open_puller(&self, queue: impl RedisQueue + 'static, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        let server = self.server.for_name(queue.name());
        adaptive::puller(wait, RedisPuller::open(server, queue, wait)?)
    }

    /// Returns the name of this transport in errors.
    fn transport(&self) -> &'static str {
        match self.server.mechanism {
            Mechanism::Plain => "Redis publish and subscribe",
            Mechanism::Streams => "Redis streams",
        }
    }

    fn check_policy(&self, policy: Policy) -> Result<(), ConnectError> {
        if self.capabilities().policies.contains(&policy) {
            return Ok(());
        }
        let remedy = match self.server.mechanism {
            Mechanism::Plain => "use 'overwrite', or a topic on shm:// or file://",
            Mechanism::Streams => "use 'keep' or 'overwrite', or a topic on shm:// or file://",
        };
        let what = format!("hold a topic by the policy '{policy}'");
        Err(ConnectError::Unsupported { transport: self.transport(), what, remedy })
    }

    /// Rejects a delivery limit where no dead-letter queue is possible: its stream may lie on another node of a
    /// cluster.
    fn check_dead_letters(&self, queue: &str, config: &QueueConfig) -> Result<(), ConnectError> {
        if config.max_deliveries.is_none() {
            return Ok(());
        }
        if self.server.is_cluster {
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

    fn check_start(&self, start: StartPosition) -> Result<(), ConnectError> {
        let (what, remedy) = match (self.server.mechanism, start) {
            (_, StartPosition::Now) | (Mechanism::Streams, StartPosition::Oldest | StartPosition::After(_)) => {
                return Ok(());
            }
            (Mechanism::Plain, StartPosition::Oldest) => {
                let remedy = "it keeps no messages: start 'now', or use ?streams in the URL, shm:// or file://";
                ("start at the oldest message".to_owned(), remedy)
            }
            (_, StartPosition::After(_)) => {
                let remedy = "it keeps no messages: start 'now', or use ?streams in the URL";
                ("resume after a token".to_owned(), remedy)
            }
            (mechanism, StartPosition::Sequence(sequence)) => {
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
    fn server_description(&self) -> ServerDescription {
        about::about(&self.server)
    }

    fn capabilities(&self) -> Capabilities {
        let (history, policies): (bool, &[Policy]) = match self.server.mechanism {
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
        let topic = &*self.server.names.resolve(topic)?;
        self.check_policy(config.policy)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism {
            Mechanism::Plain => RedisPublisher::to_channel(server, topic)?,
            Mechanism::Streams => {
                RedisPublisher::to_stream(server, topic, StreamRetention::from_config(topic, config))?
            }
        }))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        self.check_start(start)?;
        let server = self.server.clone();
        match server.mechanism {
            Mechanism::Plain => adaptive::subscriber(wait, RedisSubscriber::open(server, topic, wait)?),
            Mechanism::Streams => {
                adaptive::subscriber(wait, StreamSubscriber::open(server.for_name(topic), topic, start, wait)?)
            }
        }
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        match self.server.mechanism {
            Mechanism::Plain => Ok(()),
            Mechanism::Streams => with_new_connection(&self.server.for_name(topic), |link| stream::remove(link, topic)),
        }
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: match self.server.mechanism {
                Mechanism::Plain => &[DeliveryGuarantee::AtMostOnce, DeliveryGuarantee::AtLeastOnce],
                Mechanism::Streams => &[DeliveryGuarantee::AtLeastOnce, DeliveryGuarantee::AtMostOnce],
            },
            ordered: true,
            single_pusher: false,
            keeps_without_puller: true,
            detects_death: false,
            counts_waiting: true,
            exact_resend: false,
            counts_deliveries: self.server.mechanism == Mechanism::Streams,
            gives_back: true,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(self.transport(), config)?;
        check_name("queue", queue)?;
        self.check_dead_letters(queue, config)?;
        let server = self.server.clone();
        Ok(Box::new(match server.mechanism {
            Mechanism::Plain => RedisPublisher::to_key(server, &["LPUSH", queue])?,
            Mechanism::Streams => RedisPublisher::to_key(server, &["XADD", queue, "*", stream::MESSAGE_FIELD])?,
        }))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        use DeliveryGuarantee::{AtLeastOnce, AtMostOnce};
        use Mechanism::{Plain, Streams};
        self.queue_capabilities().check_max_deliveries(self.transport(), config)?;
        check_name("queue", queue)?;
        self.check_dead_letters(queue, config)?;
        let clock = self.server.clock;
        let QueueConfig { silence_ns, foreign, .. } = *config;
        match (self.server.mechanism, config.delivery) {
            (Plain, AtMostOnce) => self.open_puller(ListAtMostOnce::new(queue, foreign, clock), wait),
            (Plain, AtLeastOnce) => self.open_puller(ListAtLeastOnce::new(queue, silence_ns, foreign, clock), wait),
            (Streams, AtMostOnce) => self.open_puller(StreamAtMostOnce::new(queue, config, clock), wait),
            (Streams, AtLeastOnce) => self.open_puller(StreamAtLeastOnce::new(queue, config, clock), wait),
        }
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        check_name("queue", queue)?;
        let server = self.server.for_name(queue);
        let count = match self.server.mechanism {
            Mechanism::Plain => with_new_connection(&server, |link| list_at_least_once::count_waiting(link, queue)),
            Mechanism::Streams => with_new_connection(&server, |link| stream_group::count_waiting(link, queue)),
        };
        count.map(Some)
    }

    fn loss_risk(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        check_name("queue", queue)?;
        let about = self.server_description();
        let setting =
            |name| about.setting(name).map_err(|what| ConnectError::Server { server: self.server.name.clone(), what });
        let (limit, policy) = (setting("maxmemory")?, setting("maxmemory-policy")?);
        // The other policies evict only keys with a time to live, which queues do not have.
        let evicts = limit != "0" && policy.starts_with("allkeys-");
        Ok(evicts.then(|| format!("maxmemory-policy {policy} deletes whole queues when {limit} bytes are used")))
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        check_name("queue", queue)?;
        let server = self.server.for_name(queue);
        match self.server.mechanism {
            Mechanism::Plain => with_new_connection(&server, |link| list_at_least_once::remove(link, queue)),
            Mechanism::Streams => with_new_connection(&server, |link| stream::remove(link, queue)),
        }
    }
}

/// Opens a connection to a ready server, and runs the request over it.
fn with_new_connection<T>(
    server: &RedisEndpoint,
    request: impl FnOnce(&mut RedisConnection) -> ServerResult<T>,
) -> Result<T, ConnectError> {
    RedisConnection::open_ready(server).and_then(|mut link| request(&mut link)).map_err(|e| server.error(&e))
}
