//! The bus over NATS, core and JetStream.
//!
//! ```no_run
//! use tickpath_bus_api::{Connection, Policy, StartPosition, TopicConfig};
//! use tickpath_bus_nats::NatsBus;
//! use tickpath_clock::{Clock, HostClock, Wait};
//!
//! let bus = NatsBus::connect("nats://127.0.0.1:4222?jetstream")?;
//! let mut subscriber = bus.subscriber("ticks", StartPosition::Now, Wait::Block)?;
//! let mut publisher = bus.publisher("ticks", &TopicConfig::new(Policy::Keep))?;
//! publisher.publish(HostClock::get()?.ticks(), 200, b"101.5")?;
//! subscriber.wait(1_000_000_000);
//! subscriber.poll(64, &mut |event| println!("{event:?}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The URL is `nats://[USER:PASSWORD@]HOST:PORT` or `nats://TOKEN@HOST:PORT`, with `?jetstream` behind the port for
//! JetStream.
//!
//! | | NATS core | JetStream |
//! |---|---|---|
//! | topic | a subject | a stream in the server's memory, or in files |
//! | a message is published | when it is written to the socket: unconfirmed | when the server confirms it |
//! | history and sequence numbers | none | the stream's, from 0 |
//! | capacity of a topic | not applicable | `overwrite`: a bound in bytes; `keep`: no bound |
//! | queue | a queue group: at most once, to pullers subscribed then | a stream: at least once, or at most once |
//!
//! `names.rs` maps topics and queues to subjects and streams of the server; a usual topic name is its own subject.
//!
//! **Servers and logins.** With `nats://A:1,B:2` each connection goes to the first of these servers that answers. With
//! JetStream, a server that has no JetStream, or whose cluster has no leader, is skipped for the next server of the
//! URL; if all of them are like that, the error is the last server's. A login by a file is `?creds=FILE` (a signed
//! token and its key, as `nsc` writes them) or `?nkey=FILE` (a file with the seed `SU…`). Files are read at each
//! connection. `?tls`, or the scheme `tls://`, requires TLS, with `ca=FILE`, and `cert=FILE&key=FILE` for servers that
//! ask for a client certificate. Then a server without TLS is refused; without `tls`, a server that requires TLS.
//!
//! **Storage.** A topic that overwrites also expires messages by age, if an age is given; the shortest is 100 ms. With
//! `?jetstream` topics and queues are in the server's memory, and lost with the server. `?jetstream&durable` keeps them
//! in files, and `&replicas=N` on N servers of a cluster, 1 to 5. An existing topic or queue that is stored in another
//! way, or on fewer servers, is refused with an error that says so. `pull` reports a queue that was lost with its
//! server as [`ReceiveError::MessagesLost`](tickpath_bus_api::ReceiveError::MessagesLost), once, and the queue is made
//! anew.
//!
//! * Publishing and pushing run on the caller's thread, which itself waits for the socket or for the confirmation; no
//!   other thread is involved. They are for threads that may block, not for asynchronous code. Between calls nothing
//!   answers the server's pings: a connection that is idle for some minutes is closed by the server, and the next call
//!   reconnects.
//! * If the server has closed the connection before a call, the call reconnects once. With JetStream the call also
//!   resends messages that were in flight when the connection was lost; with core NATS they are in doubt
//!   (`docs/design/nats-resends.md`).
//! * A batch is sent in parts of 256 messages. With JetStream each message of a part has its own answer, and an error
//!   reports the fate of each; the parts behind a failed part are not sent. A lack of room may pass
//!   ([`Unavailable`](tickpath_bus_api::PublishError::Unavailable)); a missing permission does not. A publish that core
//!   NATS refuses for a missing permission shows in the next call, because core NATS confirms nothing.
//! * Each subscriber and each puller has a thread, which also reconnects after a loss. With core NATS a subscriber
//!   reports a loss as [`Gap::Reconnected`](tickpath_bus_api::Gap), a puller as `MessagesLost`. With JetStream a
//!   subscriber resumes at the next sequence number and counts overwritten messages. It reports `Gap::Reconnected` in
//!   two cases: the topic's stream was replaced, and the subscriber starts at its message 0; or the stream has lost
//!   messages that were read (restored from a backup), and the subscriber resumes at the first unread message. A
//!   restored stream that has grown beyond the read messages by then is not detected. A subscriber that resumes from a
//!   [token](tickpath_bus_api::Subscriber::resume_token) checks the same: the token holds the next sequence number, the
//!   stream's creation time, and the time of the last message that was read.
//! * With core NATS at most [`MAX_UNREAD_BYTES`] lie unread in a subscriber or puller, counting 256 bytes of overhead
//!   per message, and 32 MiB more in the client library. A subscriber or puller that is further behind is cut off, and
//!   reports it like a lost connection.
//! * While a cluster has no leader, as during its start, a call that opens, sends or asks waits up to 4 s for the
//!   election, in total for all servers of the URL. Subscribers and pullers wait until the cluster has a leader.
//! * A subscriber to JetStream requests at most 1,024 messages ahead and at most 8 MiB per request, and nothing more
//!   while 32 MiB lie unread in the process. A puller requests what its call hands over: as many messages as the queue
//!   has, up to 1,024 messages or 8 MiB, and the call waits for them, at most a second. Only a call that finds nothing
//!   leaves a request for one message at the server, which is given back if it lay unread for half the silence.
//! * The server notices a dead puller only by its silence. A puller that is dropped in order gives back at once what it
//!   holds; messages that lay unread may be marked as redelivered, too, and count as delivered. An acknowledgement
//!   returns when the server has answered for each message; all are asked about together. Messages without an answer
//!   within some seconds, messages held for longer than the silence, and those of a queue that has come back older are
//!   [`NotAcknowledged`](tickpath_bus_api::ReceiveError::NotAcknowledged): done, redelivered, or in doubt.
//! * With at most once, all messages are confirmed before any is handed over. Messages that the connection loses in
//!   between are gone, or redelivered if the server has no record of the confirmation, and are reported as
//!   `MessagesLost`; so are messages that came longer ago than the silence, to a process that was paused.
//! * A queue of JetStream has no bound but the server's own memory or disk. The number of waiting messages does not
//!   include those that were given back. A message delivered more often than the queue's limit goes to the dead-letter
//!   queue; one that cannot be moved is reported once as `NotAcknowledged`, and tried again each second.
//! * A user with restricted permissions must be allowed to publish and to subscribe to `_INBOX.>`, by which the
//!   server's answers come; with JetStream, to publish to `$JS.>`, too.
//! * A message from another program, without our header, reaches a subscriber as an event of its own, with a sequence
//!   number in a topic of JetStream; a puller hands it over as a message of the kind that the puller was opened with,
//!   or else skips and removes it.
//!
//! Invariant: a puller touches no message that another puller may hold by now. A message held for three quarters of the
//! silence is therefore not given back any more.

mod advice;
mod arrivals;
mod background;
mod backlog;
mod blocking_connection;
mod confirmations;
mod connection;
mod core_feed;
mod dead_letters;
mod demand;
mod error;
mod greeting;
mod inbox;
mod names;
mod position;
mod publish_progress;
mod publisher;
mod puller;
mod pulse;
mod queue_feed;
mod receipt;
mod server;
mod stream;
mod subscriber;
mod topic_feed;

use std::sync::Arc;

use tickpath_bus_api::{
    Capabilities, ConnectError, Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueCapabilities,
    QueueConfig, ServerDescription, StartPosition, Subscriber, TopicConfig, Transport, adaptive, dead_letter_queue,
    wire,
};
use tickpath_clock::{HostClock, Wait};

use crate::blocking_connection::BlockingConnection;
use crate::connection::NatsConnection;
use crate::dead_letters::DeadLetterQueue;
use crate::error::{NatsServerError, ServerResult, printable_server_text};
use crate::position::JetStreamPosition;
use crate::publisher::{NatsPublisher, PublishTarget};
use crate::puller::{CorePuller, StreamPuller};
use crate::queue_feed::QueueFeedConfig;
use crate::server::{NatsEndpoint, PORT};
use crate::subscriber::NatsSubscriber;

pub use crate::backlog::MAX_UNREAD_BYTES;
pub use crate::stream::MAX_PAYLOAD_BYTES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The registration of this transport: its name, URL schemes and port.
pub const TRANSPORT: Transport = Transport {
    name: "NATS",
    schemes: &["nats", "tls"],
    url_syntax: "nats://HOST:PORT[?jetstream]",
    modes: &["", "?jetstream"],
    port: Some(PORT),
    connect: |url| Ok(Box::new(NatsBus::connect(url)?)),
    advise: advice::advise,
};

/// Bus connection to one NATS server, or to the first that answers of several.
#[derive(Debug, Clone)]
pub struct NatsBus {
    server: Arc<NatsEndpoint>,
    /// The server's limit for a message, in bytes.
    server_bytes: usize,
    about: ServerDescription,
}

impl NatsBus {
    /// Reads the URL and checks that the server answers; with `?jetstream`, that its JetStream does.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let server = NatsEndpoint::parse(url)?;
        let (server_bytes, about) = probe_server(&server).map_err(|e| server.error(&e))?;
        Ok(Self { server: Arc::new(server), server_bytes, about })
    }

    /// Runs `work` on a connection of its own.
    fn with_connection<T>(&self, work: impl AsyncFn(&NatsConnection) -> ServerResult<T>) -> Result<T, ConnectError> {
        let result = self.server.try_each(|| BlockingConnection::open(&self.server)?.run_until_leader(&work));
        result.map_err(|e| self.server.error(&e))
    }

    fn open_publisher(&self, target: PublishTarget) -> Result<NatsPublisher, ConnectError> {
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

    fn check_delivery(&self, delivery: DeliveryGuarantee) -> Result<(), ConnectError> {
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
    fn server_description(&self) -> ServerDescription {
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
            max_payload: stream::max_payload_bytes(
                self.server_bytes,
                is_jetstream,
                is_jetstream.then_some(usual_bytes),
            ),
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        self.capabilities().check_age(TRANSPORT.name, config)?;
        let topic = &*self.server.names.resolve(topic)?;
        self.check_policy(config.policy)?;
        let stream = self.server.storage.map(|storage| stream::topic_stream_config(topic, config, storage));
        let subject = names::topic_subject(topic).into();
        Ok(Box::new(self.open_publisher(PublishTarget { subject, stream })?))
    }

    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        let server = self.server.clone();
        let opened = if server.is_jetstream() {
            let behind = match &start {
                StartPosition::After(token) => Some(JetStreamPosition::from_token(token)?),
                StartPosition::Now | StartPosition::Oldest | StartPosition::Sequence(_) => None,
            };
            NatsSubscriber::of_stream(server, topic, start, behind, wait)
        } else {
            let from = match start {
                StartPosition::Now => None,
                StartPosition::Oldest => Some("start at the oldest message".to_owned()),
                StartPosition::Sequence(sequence) => Some(format!("start at the sequence number {sequence}")),
                StartPosition::After(_) => Some("resume after a token".to_owned()),
            };
            if let Some(from) = from {
                let remedy = "it keeps no messages: start 'now', or use ?jetstream in the URL";
                return Err(self.unsupported(from, remedy));
            }
            NatsSubscriber::to_subject(server, topic, wait)
        };
        adaptive::subscriber(wait, opened.map_err(|e| self.server.error(&e))?)
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        let topic = &*self.server.names.resolve(topic)?;
        if !self.server.is_jetstream() {
            return Ok(());
        }
        self.with_connection(async |connected: &NatsConnection| {
            stream::remove(connected, &names::topic_stream(topic)).await
        })
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        let is_jetstream = self.server.is_jetstream();
        QueueCapabilities {
            deliveries: if is_jetstream {
                &[DeliveryGuarantee::AtLeastOnce, DeliveryGuarantee::AtMostOnce]
            } else {
                &[DeliveryGuarantee::AtMostOnce]
            },
            ordered: true,
            single_pusher: false,
            keeps_without_puller: is_jetstream,
            detects_death: false,
            counts_waiting: is_jetstream,
            exact_resend: is_jetstream,
            counts_deliveries: is_jetstream,
            gives_back: is_jetstream,
            max_payload: stream::max_payload_bytes(self.server_bytes, is_jetstream, None),
        }
    }

    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        self.check_delivery(config.delivery)?;
        let stream = self.server.storage.map(|storage| stream::queue_stream_config(queue, storage));
        let subject = names::queue_subject(queue).into();
        Ok(Box::new(self.open_publisher(PublishTarget { subject, stream })?))
    }

    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.queue_capabilities().check_max_deliveries(TRANSPORT.name, config)?;
        wire::check_name("queue", queue)?;
        self.check_delivery(config.delivery)?;
        let server = self.server.clone();
        let error = |e: NatsServerError| self.server.error(&e);
        let Some(storage) = server.storage else {
            return adaptive::puller(wait, CorePuller::open(server, queue, config, wait).map_err(error)?);
        };
        let dead = dead_letter_queue(queue);
        if config.max_deliveries.is_some() {
            wire::check_name("queue", &dead)?;
        }
        let dead_letters = config.max_deliveries.map(|max| DeadLetterQueue {
            max_deliveries: max.get(),
            stream: stream::queue_stream_config(&dead, storage),
        });
        let pulling = QueueFeedConfig {
            queue: queue.to_owned(),
            stream: stream::queue_stream_config(queue, storage),
            silence: puller::silence(config),
            foreign: config.foreign,
            dead_letters,
        };
        adaptive::puller(wait, StreamPuller::open(server, pulling, config, wait, clock()?).map_err(error)?)
    }

    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError> {
        wire::check_name("queue", queue)?;
        if !self.server.is_jetstream() {
            return Ok(None);
        }
        self.with_connection(async |connected: &NatsConnection| {
            stream::count_waiting(connected, &names::queue_stream(queue)).await
        })
        .map(Some)
    }

    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError> {
        wire::check_name("queue", queue)?;
        if !self.server.is_jetstream() {
            return Ok(());
        }
        self.with_connection(async |connected: &NatsConnection| {
            stream::remove(connected, &names::queue_stream(queue)).await
        })
    }
}

fn clock() -> Result<HostClock, ConnectError> {
    HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))
}

/// Checks that the server answers; returns the server's message limit, in bytes, and its description.
fn probe_server(server: &NatsEndpoint) -> ServerResult<(usize, ServerDescription)> {
    greeting::check(server)?;
    let link = server.try_each(|| {
        let link = BlockingConnection::open(server)?;
        if server.is_jetstream() {
            link.run_until_leader(async |connected: &NatsConnection| stream::find(connected, "tickpath").await)?;
        }
        Ok(link)
    })?;
    let client = &link.connected.client;
    let info = client.server_info();
    let kept = server.storage.map_or("nothing", |storage| if storage.is_durable { "disk" } else { "memory" });
    let replicas = server.storage.map_or(0, |storage| storage.replicas);
    let settings = [
        ("max_payload", info.max_payload.to_string()),
        ("jetstream", info.jetstream.to_string()),
        ("kept", kept.to_owned()),
        ("replicas", replicas.to_string()),
    ];
    let about = ServerDescription {
        server: Some("nats-server".to_owned()),
        version: Some(printable_server_text(&info.version)).filter(|version| !version.is_empty()),
        // JetStream shares the identity: a stream has the subject that core NATS has.
        identity: Some(format!("nats {}", printable_server_text(&info.server_id)))
            .filter(|_| !info.server_id.is_empty()),
        settings: settings.map(|(name, value)| (name, Ok(value))).into(),
    };
    Ok((client.max_payload(), about))
}
