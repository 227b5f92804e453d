//! The bus over RabbitMQ.
//!
//! ```no_run
//! use tickpath_bus_amqp::AmqpBus;
//! use tickpath_bus_api::{Connection, Policy, StartPosition, TopicConfig};
//! use tickpath_clock::{Clock, HostClock, Wait};
//!
//! let bus = AmqpBus::connect("amqp://127.0.0.1:5672")?;
//! let mut subscriber = bus.subscriber("ticks", StartPosition::Now, Wait::Block)?;
//! let mut publisher = bus.publisher("ticks", &TopicConfig::new(Policy::Overwrite))?;
//! publisher.publish(HostClock::get()?.ticks(), 200, b"101.5")?;
//! subscriber.wait(1_000_000_000);
//! subscriber.poll(64, &mut |event| println!("{event:?}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The URL is `amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST][?OPTIONS]`; the defaults are `guest:guest`,
//! port 5672 and the virtual host `/`. A `/` in the name of a virtual host is written `%2F`. Several servers are the
//! nodes of one cluster, and each connection uses the first that answers, also after a loss.
//!
//! * **TLS**: `amqps://`, port 5671, or `amqp://…?tls`; always required then, never optional. `&ca=FILE` names the only
//!   authority that is trusted, else those of this host are; `&cert=FILE&key=FILE` are our own certificate and its key.
//!   With these and no user in the URL, the certificate is the login (SASL `EXTERNAL`, for which the broker needs the
//!   plugin `rabbitmq_auth_mechanism_ssl`).
//! * **Durable**: `?durable` makes exchanges and queues that survive the broker, and messages persistent: queues are
//!   quorum queues, on the number of nodes in `&replicas=N`. All users of a topic or a queue must agree on it.
//!
//! A **topic** is a fanout exchange of the same name, made by the first publisher or subscriber, and not deleted with
//! its last subscriber. A subscriber's own queue there ends with its connection. RabbitMQ stores nothing for later
//! subscribers, and numbers no messages: there is no history, no sequence number, and only the policy `overwrite`.
//!
//! * Publishing waits for the broker's confirmation; a batch is sent in windows of 1024 messages or 4 MiB, and ends
//!   with the first window that fails. A topic without subscribers confirms, too.
//! * A subscriber is sent up to [`MAX_PREFETCH`] messages and [`MAX_PREFETCH_BYTES`] ahead, estimated from the lengths
//!   that it has seen, and exceeded only where long messages follow many short ones. For a subscriber that is further
//!   behind the broker keeps [`MAX_BEHIND_BYTES`] and drops the oldest messages.
//! * Dropped messages are counted as [`Gap::Missed`](tickpath_bus_api::Gap) where the publisher's sequence numbers
//!   allow it, else reported as `Reconnected`; so is a topic that was removed and made anew
//!   (`docs/design/rabbitmq-losses.md`).
//! * A lost connection is made again by a thread, and reported as [`Gap::Reconnected`](tickpath_bus_api::Gap). As long
//!   as no connection holds for 5 s, the pause before a reconnect grows to a second; the same holds for pullers.
//!
//! A **queue** is a queue of the same name, not exclusive; without `?durable`, at least once covers the death of
//! pullers, not that of the broker.
//!
//! * The broker sends a puller up to [`MAX_UNACKNOWLEDGED`] messages ahead, or [`MAX_PREFETCH_BYTES`], estimated
//!   likewise, and no more until it acknowledges. Messages sent ahead go to no other puller before this one ends, do
//!   not count as waiting, and are then marked as redelivered, also if they were never handed over.
//! * A single message that was handed over can be given back. Durable queues count deliveries, including messages sent
//!   ahead to a puller that ended. After [`max_deliveries`](tickpath_bus_api::QueueConfig::max_deliveries) a message
//!   goes to the dead-letter queue, which stores it before it is removed here; if the broker crashes meanwhile, the
//!   message may be there twice, under one message id. A puller of such a queue is sent one message at a time, so that
//!   no message goes there unseen. A queue without that number never gives a message up: a RabbitMQ from 4 on would do
//!   so after 20 deliveries, and is configured not to. All users of a queue must agree on the number, and a durable
//!   queue made before an update to 4 is refused: pull it empty, and remove it.
//! * Acknowledging waits until the broker has read the acknowledgement and passed it on to the queue. A durable queue
//!   writes it to disk a moment later: if the broker crashes between the two, such messages are redelivered, marked,
//!   and without a report. With at most once, a message is acknowledged before it is handed over.
//! * When a puller's connection is lost, all that it has not acknowledged is redelivered, marked. Its next
//!   acknowledgement reports how many messages that concerns, or how many are in doubt. Unread messages of a lost
//!   connection are not handed over. The broker closes the connection of a puller that holds messages for longer than
//!   its `consumer_timeout`, half an hour, with the same effect.
//! * A queue that no longer exists when the connection is made again is reported as
//!   [`MessagesLost`](tickpath_bus_api::ReceiveError::MessagesLost), also if a pusher has made it anew. So is the
//!   number of messages that may be gone, at most once, when a puller loses its connection while it takes them out.
//!
//! For both: a message that was sent and not confirmed, because the connection was lost or no answer came for 5 s, is
//! [`Unknown`](tickpath_bus_api::PublishError::Unknown), and never sent again automatically. A message that surely did
//! not leave is sent again, once per call, on a new connection; so is a message whose topic was removed. `resend` waits
//! for late confirmations, then sends under the same sequence numbers: a subscriber gets the message once, a queue may
//! have it twice. While the broker is short of memory or disk it reads no messages: the first message is in doubt, and
//! behind it publishing is [`Unavailable`](tickpath_bus_api::PublishError::Unavailable), after up to 5 s.
//!
//! A message of another program, without our header, reaches a subscriber as an event of its own; a puller hands it
//! over if it was opened to do so, else skips and removes it. The broker reserves names with `amq.` in front; these get
//! a `~` before them on the broker, which no name of ours can have.
//!
//! Each publisher, subscriber, pusher and puller has a connection with two threads: `lapin-io-loop`, the library's,
//! and `amqp`, which waits for the socket. The caller polls the library's futures itself:
//!
//! ```text
//!   publish   caller ──> io loop ──> socket ─broker─> socket ──> amqp ──> io loop ──> caller
//!   poll                             socket ──> amqp ──> io loop ──> caller, by a flag that is polled or slept on
//! ```

mod advice;
mod broker_version;
mod confirm_channel;
mod connection;
mod consumer;
mod destination;
mod drop_notices;
mod error;
mod in_doubt;
mod incarnation;
mod losses;
mod policies;
mod prefetch;
mod puller;
mod receiver;
mod reconnect;
mod sender;
mod server;
mod signal;
mod subscriber;

use std::sync::{Arc, Mutex, PoisonError};

use tickpath_bus_api::{
    Advice, Capabilities, ConnectError, Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher,
    QueueCapabilities, QueueConfig, ServerDescription, StartPosition, Subscriber, TopicConfig, Transport, adaptive,
    dead_letter_queue, wire,
};
use tickpath_clock::Wait;

use crate::connection::AmqpConnection;
use crate::destination::AmqpDestination;
use crate::error::AmqpServerError;
use crate::puller::AmqpPuller;
use crate::sender::AmqpSender;
use crate::server::{AmqpServer, Durability};
use crate::subscriber::AmqpSubscriber;

pub use crate::consumer::{MAX_BEHIND_BYTES, MAX_PREFETCH, MAX_UNACKNOWLEDGED};
pub use crate::prefetch::MAX_PREFETCH_BYTES;
pub use crate::sender::MAX_PAYLOAD_BYTES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The registration of this transport: its name, URL schemes and port.
pub const TRANSPORT: Transport = Transport {
    name: "RabbitMQ",
    schemes: &["amqp", "amqps"],
    url_syntax: "amqp://HOST:PORT",
    modes: &[""],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(AmqpBus::connect(url)?)),
    advise: advice::advise,
};

/// Bus connection to one RabbitMQ broker.
#[derive(Debug, Clone)]
pub struct AmqpBus {
    server: Arc<AmqpServer>,
    /// The connection for requests and removals; none after an error.
    control: Arc<Mutex<Option<AmqpConnection>>>,
}

impl AmqpBus {
    /// Reads the URL, and logs in.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let server = AmqpServer::parse(url)?;
        let control = AmqpConnection::open(&server).map_err(|e| server.error(&e))?;
        Ok(Self { server: Arc::new(server), control: Arc::new(Mutex::new(Some(control))) })
    }

    fn topic(&self, name: &str) -> AmqpDestination {
        AmqpDestination::topic(name, self.server.durability)
    }

    fn queue(&self, name: &str) -> AmqpDestination {
        AmqpDestination::queue(name, self.server.durability, None)
    }

    /// Refuses a queue name or configuration that cannot be opened.
    fn check_queue(&self, queue: &str, config: &QueueConfig) -> Result<(), ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        match config.max_deliveries {
            // The dead-letter queue must have a valid name, too, so that it can be pulled from.
            Some(_) => wire::check_name("queue", &dead_letter_queue(queue)),
            None => Ok(()),
        }
    }

    /// Runs a request on the control connection, and once more on a new one, if the old one was lost or is used up.
    fn request<T>(&self, question: impl Fn(&AmqpConnection) -> Result<T, AmqpServerError>) -> Result<T, ConnectError> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = control.as_ref().and_then(|link| question(link).ok()) {
            return Ok(answer);
        }
        *control = None;
        let link = AmqpConnection::open(&self.server).map_err(|e| self.server.error(&e))?;
        let answer = question(&link).map_err(|e| self.server.error(&e))?;
        *control = Some(link);
        Ok(answer)
    }
}

impl Connection for AmqpBus {
    fn server_description(&self) -> ServerDescription {
        let version = broker_version::version(&self.server).ok().flatten();
        let kept = match self.server.durability {
            Durability::Transient => "memory".to_owned(),
            Durability::Durable { replicas: None } => "majority".to_owned(),
            Durability::Durable { replicas: Some(replicas) } => replicas.to_string(),
        };
        let settings = [("kept", Ok(kept))].into();
        ServerDescription { server: Some(TRANSPORT.name.to_owned()), version, settings, ..ServerDescription::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: false,
            history: false,
            max_age: false,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies: &[Policy::Overwrite],
            lends: &[],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let topic = &*self.server.names.resolve(topic)?;
        if config.policy != Policy::Overwrite {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'overwrite', a queue, or a topic on shm:// or file://",
            });
        }
        Ok(Box::new(AmqpSender::open(self.server.clone(), self.topic(topic))?))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        let from = match start {
            StartPosition::Now => {
                return adaptive::subscriber(wait, AmqpSubscriber::open(self.server.clone(), topic, wait)?);
            }
            StartPosition::Oldest => "start at the oldest message".to_owned(),
            StartPosition::Sequence(sequence) => format!("start at the sequence number {sequence}"),
            StartPosition::After(_) => "resume after a token".to_owned(),
        };
        let remedy = "its topics keep no messages: start 'now', or use a queue, or a topic on shm:// or file://";
        Err(ConnectError::Unsupported { transport: TRANSPORT.name, what: from, remedy })
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        self.request(|link| self.topic(topic).delete(link))
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[DeliveryGuarantee::AtLeastOnce, DeliveryGuarantee::AtMostOnce],
            ordered: true,
            single_pusher: false,
            keeps_without_puller: true,
            detects_death: true,
            counts_waiting: true,
            exact_resend: false,
            counts_deliveries: self.server.durability != Durability::Transient,
            gives_back: true,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.check_queue(queue, config)?;
        let destination = AmqpDestination::queue(queue, self.server.durability, config.max_deliveries);
        Ok(Box::new(AmqpSender::open(self.server.clone(), destination)?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.check_queue(queue, config)?;
        adaptive::puller(wait, AmqpPuller::open(self.server.clone(), queue, config, wait)?)
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        wire::check_name("queue", queue)?;
        self.request(|link| self.queue(queue).waiting(link)).map(|waiting| waiting.or(Some(0)))
    }

    fn advise(&self) -> Vec<Advice> {
        vec![advice::policies(policies::all_loss_risks(&self.server))]
    }

    fn loss_risk(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        wire::check_name("queue", queue)?;
        policies::queue_loss_risk(&self.server, &self.queue(queue))
            .map_err(|what| ConnectError::Server { server: self.server.name(), what })
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        wire::check_name("queue", queue)?;
        self.request(|link| self.queue(queue).delete(link))
    }
}
