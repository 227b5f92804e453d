//! The bus over RabbitMQ: `amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]`; `guest:guest`, port 5672 and the virtual host
//! `/` if not given. A `/` in the name of a virtual host is written `%2F`.
//!
//! A **topic** is a fanout exchange of the same name, neither durable nor deleted with its last subscriber: whoever
//! comes first makes it. A subscriber has a queue of its own there, which ends with its connection. RabbitMQ keeps
//! nothing for who is not subscribed, and nobody counts; so there is neither history nor a sequence number, and only
//! the policy `overwrite`.
//!
//! * Publishing waits for the broker's confirmation; a batch is sent as a whole and confirmed in its order. A topic
//!   that nobody is subscribed to confirms, too.
//! * A subscriber that does not look gathers the messages in its own memory. When its connection is lost, a thread
//!   makes it again, and [`Gap::Reconnected`](tickpath_bus_api::Gap) says so.
//! * Removing a topic leaves those who are still subscribed deaf: they must subscribe again.
//!
//! A **queue** is a queue of the same name, neither durable nor exclusive, and its messages are not persistent: at
//! least once holds against the death of pullers, not against that of the broker.
//!
//! * The broker sends a puller up to [`MAX_UNACKNOWLEDGED`] messages ahead, and no more until it acknowledges. So no
//!   puller takes everything; but what one was sent ahead no other one gets before it ends, does not count as
//!   waiting, and is then marked as redelivered, also if it was never handed over.
//! * Acknowledging waits until the broker has it. At most once, a message is acknowledged before it is handed over.
//! * When the connection of a puller is lost, all that it has not acknowledged comes again, marked. The broker does the
//!   same to one that holds messages for longer than its `consumer_timeout`, half an hour.
//!
//! For both: a publisher or pusher whose connection was lost makes it again, once a call, and sends again what is not
//! confirmed; should the broker have taken that in its last moment, it comes twice. A broker that does not confirm
//! within 5 s may have the message all the same. What others send, without our header, comes to a subscriber as an event
//! of its own; a puller skips it and takes it away. The broker reserves names with `amq.` in front; these go there with a `~` before them, which no name of ours
//! can have.
//!
//! # Threads
//!
//! Each publisher, subscriber, pusher and puller has a connection of its own, and that two threads: `lapin-io-loop`,
//! the library's, which writes, reads and parses, and `amqp`, which waits for the socket. The caller runs the library's
//! futures by itself, so that no task and no channel of ours lies in between. (Once a process the library starts one
//! more thread, which sleeps.)
//!
//! ```text
//!   publish   caller ──> io loop ──> socket ─broker─> socket ──> amqp ──> io loop ──> caller
//!   poll                             socket ──> amqp ──> io loop ──> caller, by a flag that is looked at or slept on
//! ```

mod about;
mod advice;
mod error;
mod inlet;
mod intake;
mod link;
mod outlet;
mod place;
mod puller;
mod reconnect;
mod server;
mod signal;
mod subscriber;

use std::sync::{Arc, Mutex, PoisonError};

use tickpath_bus_api::{
    About, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive, wire,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::link::Link;
use crate::outlet::Outlet;
use crate::place::Place;
use crate::puller::AmqpPuller;
use crate::server::Server;
use crate::subscriber::AmqpSubscriber;

pub use crate::intake::MAX_UNACKNOWLEDGED;
pub use crate::outlet::MAX_PAYLOAD_BYTES;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: "RabbitMQ",
    schemes: &["amqp"],
    form: "amqp://HOST:PORT",
    ways: &[""],
    port: Some(server::PORT),
    connect: |url| Ok(Box::new(AmqpBus::connect(url)?)),
    advise: advice::advise,
};

/// Topics and queues on one RabbitMQ server.
#[derive(Debug, Clone)]
pub struct AmqpBus {
    server: Arc<Server>,
    /// For questions and removals; none after an error.
    control: Arc<Mutex<Option<Link>>>,
}

impl AmqpBus {
    /// Reads the URL, and logs in.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let server = Server::parse(url)?;
        let control = Link::open(&server).map_err(|e| server.error(&e))?;
        Ok(Self { server: Arc::new(server), control: Arc::new(Mutex::new(Some(control))) })
    }

    /// Asks on the connection for that, and what fails there once more on a new one: it may have been lost, or have used
    /// up its channels.
    fn ask<T>(&self, question: impl Fn(&Link) -> Result<T, ServerError>) -> Result<T, ConnectError> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = control.as_ref().and_then(|link| question(link).ok()) {
            return Ok(answer);
        }
        *control = None;
        let link = Link::open(&self.server).map_err(|e| self.server.error(&e))?;
        let answer = question(&link).map_err(|e| self.server.error(&e))?;
        *control = Some(link);
        Ok(answer)
    }
}

impl Connection for AmqpBus {
    fn about(&self) -> About {
        let version = about::version(&self.server).ok().flatten();
        About { server: Some(TRANSPORT.name.to_owned()), version, ..About::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: false,
            history: false,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies: &[Policy::Overwrite],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        wire::check_name("topic", topic)?;
        if config.policy != Policy::Overwrite {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'overwrite', a queue, or a topic on shm:// or file://",
            });
        }
        Ok(Box::new(Outlet::open(self.server.clone(), Place::topic(topic))?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        wire::check_name("topic", topic)?;
        let from = match start {
            Start::Now => {
                return adaptive::subscriber(wait, AmqpSubscriber::open(self.server.clone(), topic, wait)?);
            }
            Start::Oldest => "start at the oldest message".to_owned(),
            Start::Sequence(sequence) => format!("start at the sequence number {sequence}"),
        };
        let remedy = "its topics keep no messages: start 'now', or use a queue, or a topic on shm:// or file://";
        Err(ConnectError::Unsupported { transport: TRANSPORT.name, what: from, remedy })
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        wire::check_name("topic", topic)?;
        self.ask(|link| Place::topic(topic).delete(link))
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[Delivery::AtLeastOnce, Delivery::AtMostOnce],
            ordered: true,
            single_pusher: false,
            keeps_without_puller: true,
            sees_death: true,
            counts_waiting: true,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, _config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        wire::check_name("queue", queue)?;
        Ok(Box::new(Outlet::open(self.server.clone(), Place::queue(queue))?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        wire::check_name("queue", queue)?;
        adaptive::puller(wait, AmqpPuller::open(self.server.clone(), queue, config.delivery, wait)?)
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        wire::check_name("queue", queue)?;
        self.ask(|link| Place::queue(queue).waiting(link)).map(Some)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        wire::check_name("queue", queue)?;
        self.ask(|link| Place::queue(queue).delete(link))
    }
}
