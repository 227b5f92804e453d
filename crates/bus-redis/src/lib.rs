//! The bus over Redis publish and subscribe: `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`.
//!
//! A topic is the channel of the same name. Redis keeps nothing: who is not subscribed misses a message, and nobody
//! counts. So there is neither history nor a sequence number, and only the policy `overwrite`.
//!
//! * Publishing goes over a connection that is made when the topic is opened, and waits for the server's reply, as
//!   programs usually do; a batch is one pipeline. If the server has closed the connection meanwhile, it is made again
//!   once and what has no reply yet is sent again: should the server have delivered that in its last moment,
//!   subscribers that kept their connection see it twice.
//! * A subscriber owns its socket, so that it can look without waiting and sleep in the kernel. When its connection is
//!   lost, a thread makes it again, and [`Gap::Reconnected`](tickpath_bus_api::Gap) says so.
//! * What others publish on the channel, without our header, is skipped.

mod link;
mod publisher;
mod reconnect;
mod resp;
mod server;
mod subscriber;
mod wire;

use std::sync::Arc;

use tickpath_bus_api::{Capabilities, ConnectError, Connection, Policy, Publisher, Start, Subscriber, TopicConfig};
use tickpath_clock::Wait;

use crate::link::Link;
use crate::publisher::RedisPublisher;
use crate::server::Server;
use crate::subscriber::RedisSubscriber;

/// The longest payload, in bytes: half of what a server with default settings buffers before it drops a subscriber.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// How this transport is called in errors.
const TRANSPORT: &str = "Redis publish and subscribe";

/// The longest name of a topic, in bytes; the same as in the log, so that a topic can move.
const MAX_NAME_BYTES: usize = 128;

/// Topics on one Redis server.
#[derive(Debug, Clone)]
pub struct RedisBus {
    server: Arc<Server>,
}

impl RedisBus {
    /// Reads the URL, and asks the server for a sign of life.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let server = Server::parse(url)?;
        Link::open(&server).and_then(|mut link| link.ping()).map_err(|e| server.error(&e))?;
        Ok(Self { server: Arc::new(server) })
    }
}

impl Connection for RedisBus {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: false,
            history: false,
            single_publisher: false,
            publisher_liveness: false,
            policies: &[Policy::Overwrite],
            max_payload: MAX_PAYLOAD_BYTES,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        check_name(topic)?;
        if config.policy != Policy::Overwrite {
            return Err(ConnectError::Unsupported {
                transport: TRANSPORT,
                what: format!("hold a topic by the policy '{}'", config.policy),
                remedy: "use 'overwrite', or a topic on shm:// or file://",
            });
        }
        Ok(Box::new(RedisPublisher::open(self.server.clone(), topic)?))
    }

    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        check_name(topic)?;
        let from = match start {
            Start::Now => return Ok(Box::new(RedisSubscriber::open(self.server.clone(), topic, wait)?)),
            Start::Oldest => "start at the oldest message".to_owned(),
            Start::Sequence(sequence) => format!("start at the sequence number {sequence}"),
        };
        let remedy = "it keeps no messages: start 'now', or use a topic on shm:// or file://";
        Err(ConnectError::Unsupported { transport: TRANSPORT, what: from, remedy })
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        check_name(topic)
    }
}

fn check_name(topic: &str) -> Result<(), ConnectError> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"._-:".contains(&b);
    if topic.is_empty() || topic.len() > MAX_NAME_BYTES || topic.starts_with('.') || !topic.bytes().all(good) {
        return Err(ConnectError::Name(format!(
            "'{topic}' is no topic name; use 1 to {MAX_NAME_BYTES} letters, digits, '.', '_', '-' or ':', \
             not starting with a point"
        )));
    }
    Ok(())
}
