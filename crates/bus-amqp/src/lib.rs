//! The bus over RabbitMQ: `amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST][?OPTIONS]`; `guest:guest`, port
//! 5672 and the virtual host `/` if not given. A `/` in the name of a virtual host is written `%2F`. Of several
//! servers, which are one cluster, the first that answers is taken, also after a loss.
//!
//! * **TLS**: `amqps://`, port 5671, or `amqp://…?tls`; never a wish, always a must. `&ca=FILE` names the only
//!   authority that is trusted, else it is those of this host; `&cert=FILE&key=FILE` are our own certificate and its
//!   key. With these and no user in the URL, the certificate is the login (SASL `EXTERNAL`, which the broker needs the
//!   plugin `rabbitmq_auth_mechanism_ssl` for).
//! * **Durable**: `?durable` makes exchanges and queues that survive the broker, and messages persistent: queues are
//!   quorum queues, on as many nodes as `&replicas=N` says. Who shares a topic or a queue must agree on it.
//!
//! A **topic** is a fanout exchange of the same name, not deleted with its last subscriber: whoever comes first makes
//! it. A subscriber has a queue of its own there, which ends with its connection. RabbitMQ keeps nothing for who is
//! not subscribed, and nobody counts; so there is neither history nor a sequence number, and only the policy
//! `overwrite`.
//!
//! * Publishing waits for the broker's confirmation; a batch is sent in windows of 1024 messages or 4 MiB, and ends
//!   with the first window that fails. A topic that nobody is subscribed to confirms, too.
//! * A subscriber is sent up to [`MAX_AHEAD`] messages ahead, and [`MAX_AHEAD_BYTES`], by the lengths that it has seen:
//!   it begins with few, and what it holds goes beyond that only where long messages follow upon many short ones, until
//!   it looks at the first of them. For one that is further behind the broker keeps
//!   [`MAX_BEHIND_BYTES`] and drops the oldest. It is given notice by a second queue of its own, to which the broker
//!   sends what it drops, and which holds one message. Where all that came is of one publisher, and what follows is
//!   his, too, [`Gap::Missed`](tickpath_bus_api::Gap) says how many, by his numbers; else they are told as
//!   `Reconnected` before what follows, for nobody can count them: each loss, some twice, and no more often than once a
//!   round trip to the broker. (Of somebody else who came and ended within what was dropped between the messages of that
//!   one publisher, nobody is told.)
//! * When its connection is lost, a thread makes it again, and [`Gap::Reconnected`](tickpath_bus_api::Gap) says so. As long
//!   as none holds for 5 s, that is after a pause that grows to a second; so it is for pullers.
//! * Once a second a subscriber asks whether the topic is still the same, and binds its queue to it again. If somebody
//!   removes the topic, it so hears again within about a second of looking, and is told as `Reconnected`, also if a
//!   publisher had made the topic anew before: subscribers bind the topic to two exchanges, named `~` and `~~` and
//!   sixteen digits, which are deleted with the topic. Where a user has no right to make and bind these, or the virtual
//!   host has a name that is longer than 32 bytes, a topic that was made anew is told by the publishers' numbers alone.
//!
//! A **queue** is a queue of the same name, not exclusive; without `?durable`, at least once holds against the death of
//! pullers, not against that of the broker.
//!
//! * The broker sends a puller up to [`MAX_UNACKNOWLEDGED`] messages ahead, or [`MAX_AHEAD_BYTES`], likewise by the
//!   lengths that it has seen, and no more until it acknowledges. So no puller takes everything; but what one was sent
//!   ahead no other one gets before it ends, does not count as waiting, and is then marked as redelivered, also if it
//!   was never handed over.
//! * One message that was handed over can be given back. Durable queues count deliveries, those too that were sent
//!   ahead to a puller which ended before it handed them over. What they delivered so often as
//!   [`most_deliveries`](QueueConfig::most_deliveries) says goes to the queue of dead letters, which holds it before it
//!   is gone from here; should the broker fall meanwhile, it may be there twice, under one origin. So that no message
//!   goes there unseen, a puller of a queue with that number is sent one message at a time: it must acknowledge it, or
//!   give it back, before it gets the next one, and pulls slower than others do; the one that was sent to a puller
//!   which ends before it pulls is counted all the same. Of a queue without that number no message is ever given up: a
//!   RabbitMQ from 4 on would do it after 20 deliveries, and is told not to. So who shares a queue must agree on the
//!   number, too, and a durable queue made before an update to 4 is refused: pull it empty, and remove it.
//! * Acknowledging waits until the broker has read it, and has passed it on to the queue. A durable queue writes it
//!   down a moment later: if the broker falls between the two, such messages come again, marked, and nobody is told.
//!   At most once, a message is acknowledged before it is handed over.
//! * When the connection of a puller is lost, all that it has not acknowledged comes again, marked; its next
//!   acknowledgement says how many, or of how many nobody knows, because the connection was lost before the broker had
//!   answered to it. What lies here of a connection that is lost is not handed over. The broker does the same to one
//!   that holds messages for longer than its `consumer_timeout`, half an hour.
//! * A queue that is not there any more when the connection is made again, because the broker was started anew or
//!   somebody removed it, is told as [`Gone`](tickpath_bus_api::ReceiveError::Gone), also if a pusher has made it anew
//!   before: pullers bind the queue to an exchange named `~` and sixteen digits, which is deleted with the queue, and ask
//!   for it, too, when they have changed how many messages they are sent ahead, for which they leave the queue. A
//!   user who has no right to make that is told only if nobody has made the queue anew; the same holds in a virtual
//!   host whose name is longer than 32 bytes.
//! * At most once, messages may be gone whose puller loses its connection just when it takes them out of the queue. It
//!   is told how many, as `Gone`, too.
//!
//! For both: what was sent and not confirmed, because the connection was lost or nothing came for 5 s, is
//! [`Unknown`](tickpath_bus_api::PublishError::Unknown), and never sent again by itself. What surely did not leave is,
//! once a call, on a new connection; so is a message whose topic was removed. Sending again waits for what may still
//! be confirmed, then sends under the same numbers: a subscriber gets it once, a queue may have it twice. While the
//! broker is short of memory or disk it takes nothing: the first message is unknown, and stays on its way until that
//! is over; behind it, publishing is [`Unavailable`](tickpath_bus_api::PublishError::Unavailable), after up to 5 s.
//!
//! What others send, without our header, comes to a subscriber as an event of its own; a puller takes it as it was
//! opened to, or skips it and takes it away. The broker reserves names with `amq.` in front; these go there with a `~`
//! before them, which no name of ours can have.
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
mod ahead;
mod doubts;
mod error;
mod incarnation;
mod inlet;
mod intake;
mod link;
mod losses;
mod notices;
mod outlet;
mod place;
mod policies;
mod puller;
mod reconnect;
mod sending;
mod server;
mod signal;
mod subscriber;

use std::sync::{Arc, Mutex, PoisonError};

use tickpath_bus_api::{
    About, Advice, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher,
    QueueCapabilities, QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive, dead_letter_queue, wire,
};
use tickpath_clock::Wait;

use crate::error::ServerError;
use crate::link::Link;
use crate::outlet::Outlet;
use crate::place::Place;
use crate::puller::AmqpPuller;
use crate::server::{Durability, Server};
use crate::subscriber::AmqpSubscriber;

pub use crate::ahead::MAX_AHEAD_BYTES;
pub use crate::intake::{MAX_AHEAD, MAX_BEHIND_BYTES, MAX_UNACKNOWLEDGED};
pub use crate::outlet::MAX_PAYLOAD_BYTES;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: "RabbitMQ",
    schemes: &["amqp", "amqps"],
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

    fn topic(&self, name: &str) -> Place {
        Place::topic(name, self.server.durability())
    }

    fn queue(&self, name: &str) -> Place {
        Place::queue(name, self.server.durability(), None)
    }

    /// Refuses what cannot be opened as a queue.
    fn check_queue(&self, queue: &str, config: &QueueConfig) -> Result<(), ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        match config.most_deliveries {
            // Somebody is to pull from there.
            Some(_) => wire::check_name("queue", &dead_letter_queue(queue)),
            None => Ok(()),
        }
    }

    /// Asks on the connection for that, and what fails there once more on a new one: it may have been lost, or have
    /// used up its channels.
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
        let kept = match self.server.durability() {
            Durability::Transient => "memory".to_owned(),
            Durability::Durable { replicas: None } => "majority".to_owned(),
            Durability::Durable { replicas: Some(replicas) } => replicas.to_string(),
        };
        let settings = [("kept", Ok(kept))].into();
        About { server: Some(TRANSPORT.name.to_owned()), version, settings, ..About::default() }
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
        let topic = &*self.server.names().of_topic(topic)?;
        if config.policy != Policy::Overwrite {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT.name,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'overwrite', a queue, or a topic on shm:// or file://",
            });
        }
        Ok(Box::new(Outlet::open(self.server.clone(), self.topic(topic))?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        let from = match start {
            Start::Now => {
                return adaptive::subscriber(wait, AmqpSubscriber::open(self.server.clone(), topic, wait)?);
            }
            Start::Oldest => "start at the oldest message".to_owned(),
            Start::Sequence(sequence) => format!("start at the sequence number {sequence}"),
            Start::After(_) => "go on behind a resume token".to_owned(),
        };
        let remedy = "its topics keep no messages: start 'now', or use a queue, or a topic on shm:// or file://";
        Err(ConnectError::Unsupported { transport: TRANSPORT.name, what: from, remedy })
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        self.ask(|link| self.topic(topic).delete(link))
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[Delivery::AtLeastOnce, Delivery::AtMostOnce],
            ordered: true,
            single_pusher: false,
            keeps_without_puller: true,
            sees_death: true,
            counts_waiting: true,
            exact_resend: false,
            counts_deliveries: self.server.durability() != Durability::Transient,
            gives_back: true,
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.check_queue(queue, config)?;
        let place = Place::queue(queue, self.server.durability(), config.most_deliveries);
        Ok(Box::new(Outlet::open(self.server.clone(), place)?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.check_queue(queue, config)?;
        adaptive::puller(wait, AmqpPuller::open(self.server.clone(), queue, config, wait)?)
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        wire::check_name("queue", queue)?;
        self.ask(|link| self.queue(queue).waiting(link)).map(|waiting| waiting.or(Some(0)))
    }

    fn advise(&self) -> Vec<Advice> {
        vec![advice::policies(policies::of_all(&self.server))]
    }

    fn may_drop(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        wire::check_name("queue", queue)?;
        policies::of_queue(&self.server, &self.queue(queue))
            .map_err(|what| ConnectError::Server { server: self.server.name(), what })
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        wire::check_name("queue", queue)?;
        self.ask(|link| self.queue(queue).delete(link))
    }
}
