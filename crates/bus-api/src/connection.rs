//! Where topics and queues are.

use std::collections::BTreeMap;

use tickpath_clock::Wait;

use crate::advice::Advice;
use crate::error::ConnectError;
use crate::queue::{Puller, Pusher, QueueCapabilities, QueueConfig};
use crate::topic::{Capabilities, Publisher, Start, Subscriber, TopicConfig};

/// Somewhere topics live.
pub trait Connection: Send {
    /// What can be done here.
    fn capabilities(&self) -> Capabilities;

    /// What the server says of itself; nothing where there is none, or where it tells nobody.
    fn about(&self) -> About {
        About::default()
    }

    /// Opens a topic for publishing.
    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError>;

    /// Subscribes to a topic, whether or not somebody publishes it yet. With `Wait::Block` or
    /// `Wait::Adaptive` the subscriber may sleep.
    fn subscriber(&self, topic: &str, start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError>;

    /// Removes what a topic has left, where it leaves anything. A topic that does not exist is no error.
    fn remove(&self, topic: &str) -> Result<(), ConnectError>;

    /// What queues can do here.
    fn queue_capabilities(&self) -> QueueCapabilities;

    /// Opens a queue for pushing, and makes it if it is not there.
    fn pusher(&self, queue: &str, config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError>;

    /// Opens a queue for pulling, whether or not somebody has pushed yet. With `Wait::Block` or
    /// `Wait::Adaptive` the puller may sleep.
    fn puller(&self, queue: &str, config: &QueueConfig, wait: Wait) -> Result<Box<dyn Puller>, ConnectError>;

    /// How many messages wait in a queue that nobody has taken; none where the transport cannot tell. A queue that does
    /// not exist holds none.
    fn waiting(&self, queue: &str) -> Result<Option<u64>, ConnectError>;

    /// How the server may lose or refuse what is pushed to a queue, by its own settings, in a sentence; none if it does
    /// neither. An error where nobody knows.
    fn may_drop(&self, queue: &str) -> Result<Option<String>, ConnectError> {
        Err(ConnectError::Other(format!("nobody tells what this server drops of the queue '{queue}'").into()))
    }

    /// Advice that takes a question which nobody asks in passing.
    fn advise(&self) -> Vec<Advice> {
        Vec::new()
    }

    /// Removes a queue with all that is in it. A queue that does not exist is no error.
    fn remove_queue(&self, queue: &str) -> Result<(), ConnectError>;
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// What people call it.
    pub server: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What tells the place of its topics from any other, however the URL is written: of two places that say the same, a
    /// topic of one name is one topic.
    pub identity: Option<String>,
    /// Settings and counts that decide what is kept and what it costs, by the server's own names; or why it does not tell.
    pub settings: BTreeMap<&'static str, Result<String, String>>,
}

impl About {
    /// A setting, or why it is not told.
    pub fn setting(&self, name: &str) -> Result<&str, String> {
        match self.settings.get(name) {
            Some(told) => told.as_deref().map_err(Clone::clone),
            None => Err(format!("'{name}' is not told")),
        }
    }
}
