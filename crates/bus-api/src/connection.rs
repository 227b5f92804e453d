//! Connection to the topics and queues of one place.

use std::collections::BTreeMap;

use tickpath_clock::Wait;

use crate::advice::Advice;
use crate::error::ConnectError;
use crate::queue::{Puller, Pusher, QueueCapabilities, QueueConfig};
use crate::topic::{Capabilities, Publisher, StartPosition, Subscriber, TopicConfig};

/// A connection through which topics and queues are opened.
pub trait Connection: Send {
    /// Returns the capabilities of topics here.
    fn capabilities(&self) -> Capabilities;

    /// Returns the description that the server gives of itself; empty where there is no server, or it gives none.
    fn server_description(&self) -> ServerDescription {
        ServerDescription::default()
    }

    /// Opens a topic for publishing.
    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError>;

    /// Subscribes to a topic, with or without a publisher; may sleep with `Wait::Block` or `Wait::Adaptive`.
    fn subscriber(&self, topic: &str, start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError>;

    /// Removes everything that a topic has left behind. A topic that does not exist is no error.
    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError>;

    /// Returns the capabilities of queues here.
    fn queue_capabilities(&self) -> QueueCapabilities;

    /// Opens a queue for pushing, and creates it if it does not exist.
    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError>;

    /// Opens a queue for pulling, whether or not it exists; may sleep with `Wait::Block` or `Wait::Adaptive`.
    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError>;

    /// Returns the number of messages in a queue that no puller has taken, 0 if there is no queue; `None` if uncounted.
    fn count_waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError>;

    /// Returns how the server's settings may lose or refuse messages of a queue; `None` if not. Fails if unknown.
    fn loss_risk(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        Err(ConnectError::Other(
            format!("this server does not report which messages of the queue '{queue}' it drops").into(),
        ))
    }

    /// Returns advice that takes an extra query to the server, beyond [`server_description`](Self::server_description).
    fn advise(&self) -> Vec<Advice> {
        Vec::new()
    }

    /// Removes a queue with all its messages. A queue that does not exist is no error.
    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError>;
}

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerDescription {
    /// Common name of the server.
    pub server: Option<String>,
    /// Version of the server.
    pub version: Option<String>,
    /// Identity of the place of its topics: where two identities are equal, topics of the same name are one topic.
    pub identity: Option<String>,
    /// Settings and counts that decide which messages are kept and at what cost; or why they are not reported.
    pub settings: BTreeMap<&'static str, Result<String, String>>,
}

impl ServerDescription {
    /// Returns a setting, or why the server does not report it.
    pub fn setting(&self, name: &str) -> Result<&str, String> {
        match self.settings.get(name) {
            Some(value) => value.as_deref().map_err(Clone::clone),
            None => Err(format!("'{name}' is not reported")),
        }
    }
}
