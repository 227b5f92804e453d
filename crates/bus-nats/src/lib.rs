//! The bus over NATS: `nats://[USER:PASSWORD@]HOST:PORT`, or `nats://TOKEN@HOST:PORT`; and over its JetStream, with
//! `?jetstream` behind the port.
//!
//! | | NATS core | JetStream |
//! |---|---|---|
//! | a topic | a subject | a stream in the server's memory, or in files |
//! | a message is published | when it is written to the socket: nobody confirms | when the server confirms |
//! | history and sequence numbers | none | the stream's, from 0 |
//! | a full topic | does not exist | `overwrite`: of that many bytes; `keep`: no bound |
//! | a queue | a queue group: at most once, and only to who pulls now | a stream: at least once, or at most once |
//!
//! What topics and queues are called on the server is in `name.rs`; usual names are their own subjects.
//!
//! **Where.** `nats://A:1,B:2` is the first of these servers that answers, at each connection anew; with JetStream, one
//! that has none now, or no leader, is passed over for the next one, until that says so, too. Who logs in by a file
//! writes `?creds=FILE` (a signed token and its key, as `nsc` writes them) or `?nkey=FILE` (a file with the seed
//! `SU…`). Files are read at each connection. `?tls`, or the scheme `tls://`, makes TLS a must, with `ca=FILE`, and
//! `cert=FILE&key=FILE` for servers that ask who comes; a server without TLS is refused then, and without `tls` one
//! that wants it.
//!
//! **What stays.** A topic that overwrites lets messages go by their age, too, if one is given; not below 100 ms. With
//! `?jetstream` all is in the server's memory, and lost with it. `?jetstream&durable` keeps it in files, and
//! `&replicas=N` on N servers of a cluster, 1 to 5. What is there already, kept in another way or on fewer servers, is
//! refused in words. A queue that was lost with its server is told by `pull` as
//! [`ReceiveError::Gone`](tickpath_bus_api::ReceiveError::Gone), once, and made anew.
//!
//! * Publishing and pushing run on the caller's thread, which itself waits for the socket, or for the confirmation: no
//!   other thread comes in between. So they are for threads that may wait, not for asynchronous code. While no call is
//!   under way nobody answers the server's questions: one that is idle for some minutes is disconnected, and the next
//!   call connects anew.
//! * If the server has hung up before a call, the call connects once more. If the connection is lost while messages are
//!   under way, core NATS says that [nobody knows](tickpath_bus_api::PublishError::Unknown), and `resend` sends them
//!   again: subscribers drop what came before, pullers do not. JetStream knows a message again for 10 s in a topic and
//!   for two minutes in a queue (by its header `Nats-Msg-Id`, the publisher and number in hexadecimal digits), which
//!   costs the server some memory a message: what was lost with a connection is sent again by the call itself, and
//!   nothing is kept twice. What a queue got longer ago than half of that is not sent again, and stays unknown; in a
//!   topic it is, and subscribers drop the copy. What may have arrived stays unknown whatever a later attempt is told.
//!   A server that does not answer for 5 s leaves it unknown, too; the next call, or `resend`, tries the same
//!   connection first.
//! * A batch is sent in parts of 256 messages. With JetStream each message of a part has its own answer, and an error
//!   tells the fate of each; the parts behind one with an error are not sent. What has no room now may pass
//!   ([`Unavailable`](tickpath_bus_api::PublishError::Unavailable)); what the user has no right to does not. What core
//!   NATS refuses by the user's rights shows in the next call, because nothing is confirmed.
//! * Subscribers and pullers have a thread each. A lost connection is made again beside them. With core NATS that is
//!   told as [`Gap::Reconnected`](tickpath_bus_api::Gap), to pullers as `Gone`; with JetStream reading goes on at the
//!   next sequence number, and what is overwritten is counted. `Reconnected` says there that the topic was removed or
//!   lost, and begins anew at 0, or that it has come back with less than was read, as from a backup, and goes on behind
//!   that; unless it has grown beyond what was read before anybody looked. The same holds for who goes on behind a
//!   [token](tickpath_bus_api::Subscriber::token), which says the next sequence number, when the stream was made, and
//!   when the last message came that was read.
//! * With core NATS at most [`MAX_UNREAD_BYTES`] lie unread in a subscriber or puller, of which each message takes 256
//!   beside its own, and 32 MiB more on the way there. Who is further behind is cut off, and told so as of a lost
//!   connection.
//! * A cluster that has no leader, as while it starts, is waited for up to 4 s by who opens, asks or sends on a new
//!   connection, shared by the servers of the URL, and by who receives until it has one.
//! * A subscriber to JetStream asks for at most 1,024 messages ahead, for at most 8 MiB in one request, and for no more
//!   while 32 MiB lie here unread. A puller asks for what its call hands over: as many as are there, up to 1,024
//!   messages or 8 MiB, and a call waits for them, at most a second. Only a call that finds nothing leaves a request
//!   for one message at the server. So what is pushed while a puller works goes to others; but for that one message,
//!   which is given back if it lay here for half the silence.
//! * The death of a puller shows in its silence only. A puller that is dropped in order gives back what it holds at
//!   once; what lay here unread may be marked as redelivered, too, and counts as delivered. An acknowledgement returns
//!   when the server has answered for each message, which are all asked about together. What it does not answer for
//!   within some seconds is [`NotAcknowledged`](tickpath_bus_api::ReceiveError::NotAcknowledged): done with, or to come
//!   again, if nobody knows. So is what was held for longer than the silence, or of a queue that has come back older.
//!   What was held for three quarters of the silence is not given back any more, for somebody else may have it soon.
//!   At most once, all is confirmed before anything is handed over; what the connection loses in between is gone, or
//!   comes again if the server knows nothing of it, and is told as `Gone`; and so is what came longer ago than the
//!   silence, to a process that stood still.
//! * A message that was delivered more often than a queue's limit is moved by the puller that gets it: kept among the
//!   dead letters first, by an id that is known again for two minutes, and then taken away here. A puller that ends in
//!   between leaves it to the next one; only if that comes later it is there twice, under the same origin. One that
//!   cannot be moved, as where the account's storage is full, is told once as `NotAcknowledged`, and tried again each
//!   second, while the others are pulled on.
//! * A queue of JetStream has no bound but the server's own memory or disk. How many wait does not count what was given
//!   back.
//! * A user whose rights are restricted must be allowed to publish and to subscribe to `_INBOX.>`, by which the
//!   server's answers come; with JetStream, to publish to `$JS.>`, too.
//! * What others publish, without our header, comes to a subscriber as an event of its own, with a sequence number in a
//!   topic of JetStream; what they push, a puller hands over as messages of the kind that it was opened with, or else
//!   skips and takes away.

mod advice;
mod arrivals;
mod background;
mod backlog;
mod confirmations;
mod connected;
mod core_feed;
mod dead_letters;
mod demand;
mod error;
mod greeting;
mod inbox;
mod link;
mod name;
mod place;
mod publisher;
mod puller;
mod pulse;
mod queue_feed;
mod receipt;
mod sending;
mod server;
mod stream;
mod subscriber;
mod topic_feed;

use std::sync::Arc;

use tickpath_bus_api::{
    About, Capabilities, ConnectError, Connection, Delivery, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, Start, Subscriber, TopicConfig, Transport, adaptive, dead_letter_queue, wire,
};
use tickpath_clock::{HostClock, Wait};

use crate::connected::Connected;
use crate::dead_letters::DeadLetters;
use crate::error::{ServerError, said};
use crate::link::Link;
use crate::place::Place;
use crate::publisher::{NatsPublisher, Target};
use crate::puller::{CorePuller, StreamPuller};
use crate::queue_feed::Pulling;
use crate::server::{PORT, Server};
use crate::subscriber::NatsSubscriber;

pub use crate::backlog::MAX_UNREAD_BYTES;
pub use crate::stream::MAX_PAYLOAD_BYTES;

/// What this transport is.
pub const TRANSPORT: Transport = Transport {
    name: "NATS",
    schemes: &["nats", "tls"],
    form: "nats://HOST:PORT[?jetstream]",
    ways: &["", "?jetstream"],
    port: Some(PORT),
    connect: |url| Ok(Box::new(NatsBus::connect(url)?)),
    advise: advice::advise,
};

/// Topics and queues on one NATS server.
#[derive(Debug, Clone)]
pub struct NatsBus {
    server: Arc<Server>,
    /// The longest message that the server takes, in bytes.
    server_bytes: usize,
    about: About,
}

impl NatsBus {
    /// Reads the URL, and asks the server for a sign of life; with `?jetstream`, its JetStream.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let server = Server::parse(url)?;
        let (server_bytes, about) = greet(&server).map_err(|e| server.error(&e))?;
        Ok(Self { server: Arc::new(server), server_bytes, about })
    }

    /// Does this on a connection of its own.
    fn ask<T>(&self, work: impl AsyncFn(&Connected) -> Result<T, ServerError>) -> Result<T, ConnectError> {
        let asked = self.server.on_each(|| Link::open(&self.server)?.run_patiently(&work));
        asked.map_err(|e| self.server.error(&e))
    }

    fn open_publisher(&self, target: Target) -> Result<NatsPublisher, ConnectError> {
        NatsPublisher::open(self.server.clone(), target, clock()?).map_err(|e| self.server.error(&e))
    }

    fn check_policy(&self, policy: Policy) -> Result<(), ConnectError> {
        if self.capabilities().policies.contains(&policy) {
            return Ok(());
        }
        let remedy = if self.server.is_jetstream() {
            "use 'overwrite' or 'keep', or a topic on shm:// or file://"
        } else {
            "use 'overwrite', or ?jetstream in the URL"
        };
        Err(self.unsupported(format!("hold a topic by the policy '{policy}'"), remedy))
    }

    fn check_delivery(&self, delivery: Delivery) -> Result<(), ConnectError> {
        if self.queue_capabilities().deliveries.contains(&delivery) {
            return Ok(());
        }
        Err(self.unsupported(format!("deliver '{delivery}'"), "use 'at-most-once', or ?jetstream in the URL"))
    }

    fn unsupported(&self, what: String, remedy: &'static str) -> ConnectError {
        let transport = if self.server.is_jetstream() { "JetStream" } else { "NATS core" };
        ConnectError::Unsupported { transport, what, remedy }
    }
}

impl Connection for NatsBus {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let is_jetstream = self.server.is_jetstream();
        let usual_bytes = TopicConfig::new(Policy::Overwrite).capacity_bytes as i64;
        Capabilities {
            sequences: is_jetstream,
            history: is_jetstream,
            max_age: is_jetstream,
            single_publisher: false,
            publisher_liveness: false,
            whole_batches: false,
            policies: if is_jetstream { &[Policy::Overwrite, Policy::Keep] } else { &[Policy::Overwrite] },
            lends: &[],
            max_payload: stream::longest_payload(self.server_bytes, is_jetstream, is_jetstream.then_some(usual_bytes)),
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let topic = &*self.server.names().of_topic(topic)?;
        self.check_policy(config.policy)?;
        let stream = self.server.keeping().map(|keeping| stream::of_topic(topic, config, keeping));
        let subject = name::topic_subject(topic).into();
        Ok(Box::new(self.open_publisher(Target { subject, stream })?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        let server = self.server.clone();
        let opened = if server.is_jetstream() {
            let behind = match &start {
                Start::After(token) => Some(Place::read(token)?),
                Start::Now | Start::Oldest | Start::Sequence(_) => None,
            };
            NatsSubscriber::of_stream(server, topic, start, behind, wait)
        } else {
            let from = match start {
                Start::Now => None,
                Start::Oldest => Some("start at the oldest message".to_owned()),
                Start::Sequence(sequence) => Some(format!("start at the sequence number {sequence}")),
                Start::After(_) => Some("go on behind a resume token".to_owned()),
            };
            if let Some(from) = from {
                let remedy = "it keeps no messages: start 'now', or use ?jetstream in the URL";
                return Err(self.unsupported(from, remedy));
            }
            NatsSubscriber::to_subject(server, topic, wait)
        };
        adaptive::subscriber(wait, opened.map_err(|e| self.server.error(&e))?)
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names().of_topic(topic)?;
        if !self.server.is_jetstream() {
            return Ok(());
        }
        self.ask(async |connected: &Connected| stream::remove(connected, &name::topic_stream(topic)).await)
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        let is_jetstream = self.server.is_jetstream();
        QueueCapabilities {
            deliveries: if is_jetstream {
                &[Delivery::AtLeastOnce, Delivery::AtMostOnce]
            } else {
                &[Delivery::AtMostOnce]
            },
            ordered: true,
            single_pusher: false,
            keeps_without_puller: is_jetstream,
            sees_death: false,
            counts_waiting: is_jetstream,
            exact_resend: is_jetstream,
            counts_deliveries: is_jetstream,
            gives_back: is_jetstream,
            max_payload: stream::longest_payload(self.server_bytes, is_jetstream, None),
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        self.check_delivery(config.delivery)?;
        let stream = self.server.keeping().map(|keeping| stream::of_queue(queue, keeping));
        let subject = name::queue_subject(queue).into();
        Ok(Box::new(self.open_publisher(Target { subject, stream })?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        self.check_delivery(config.delivery)?;
        let server = self.server.clone();
        let error = |e: ServerError| self.server.error(&e);
        let Some(keeping) = server.keeping() else {
            return adaptive::puller(wait, CorePuller::open(server, queue, config, wait).map_err(error)?);
        };
        let dead = dead_letter_queue(queue);
        if config.most_deliveries.is_some() {
            wire::check_name("queue", &dead)?;
        }
        let dead_letters = config
            .most_deliveries
            .map(|most| DeadLetters { most_deliveries: most.get(), stream: stream::of_queue(&dead, keeping) });
        let pulling = Pulling {
            queue: queue.to_owned(),
            stream: stream::of_queue(queue, keeping),
            silence: puller::silence(config),
            foreign: config.foreign,
            dead_letters,
        };
        adaptive::puller(wait, StreamPuller::open(server, pulling, config, wait, clock()?).map_err(error)?)
    }

    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        wire::check_name("queue", queue)?;
        if !self.server.is_jetstream() {
            return Ok(None);
        }
        self.ask(async |connected: &Connected| stream::waiting(connected, &name::queue_stream(queue)).await).map(Some)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        wire::check_name("queue", queue)?;
        if !self.server.is_jetstream() {
            return Ok(());
        }
        self.ask(async |connected: &Connected| stream::remove(connected, &name::queue_stream(queue)).await)
    }
}

fn clock() -> Result<HostClock, ConnectError> {
    HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))
}

/// Asks for a sign of life; gives the longest message that the server takes, in bytes, and what it says of itself.
fn greet(server: &Server) -> Result<(usize, About), ServerError> {
    greeting::check(server)?;
    let link = server.on_each(|| {
        let link = Link::open(server)?;
        if server.is_jetstream() {
            link.run_patiently(async |connected: &Connected| stream::find(connected, "tickpath").await)?;
        }
        Ok(link)
    })?;
    let client = &link.connected().client;
    let info = client.server_info();
    let kept = server.keeping().map_or("nothing", |keeping| if keeping.is_durable { "disk" } else { "memory" });
    let replicas = server.keeping().map_or(0, |keeping| keeping.replicas);
    let told = [
        ("max_payload", info.max_payload.to_string()),
        ("jetstream", info.jetstream.to_string()),
        ("kept", kept.to_owned()),
        ("replicas", replicas.to_string()),
    ];
    let about = About {
        server: Some("nats-server".to_owned()),
        version: Some(said(&info.version)).filter(|version| !version.is_empty()),
        // A stream of JetStream has the subject that core NATS has.
        identity: Some(format!("nats {}", said(&info.server_id))).filter(|_| !info.server_id.is_empty()),
        settings: told.map(|(name, value)| (name, Ok(value))).into(),
    };
    Ok((client.max_payload(), about))
}
