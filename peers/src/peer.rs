//! A peer in Rust as the loop sees it: a connection that has topics and nothing else.

use tickpath_bus::{
    Capabilities, ConnectError, Connection, Policy, Publisher, Puller, Pusher, QueueCapabilities, QueueConfig, Start,
    Subscriber, TopicConfig, Transport,
};
use tickpath_clock::Wait;

use crate::{iceoryx2, ringfire, rtrb, zeromq};

/// An end of a peer, opened.
type Opened<T> = Result<Box<T>, ConnectError>;

/// What opens the two ends of a topic.
pub struct Peer {
    /// Its URLs' scheme, and what it is called.
    pub name: &'static str,
    /// The full policies that it has, the usual one first.
    pub policies: &'static [Policy],
    /// Makes a topic, and publishes on it.
    pub publisher: fn(&Shape, &str, &TopicConfig) -> Opened<dyn Publisher>,
    /// Hears a topic that is there.
    pub subscriber: fn(&Shape, &str, Wait) -> Opened<dyn Subscriber>,
    /// Removes what a topic has left.
    pub remove: fn(&str),
}

/// All of them: one line each.
static PEERS: [Peer; 4] = [rtrb::PEER, ringfire::PEER, iceoryx2::PEER, zeromq::PEER];

/// The transports that this program adds to ours.
pub const TRANSPORTS: &[Transport] = &[Transport {
    name: "peer",
    schemes: &["rtrb", "ringfire", "iceoryx2", "zeromq"],
    form: "",
    ways: &[""],
    port: None,
    connect,
    advise: |_about| Vec::new(),
}];

/// What a topic is made for, as a peer's URL says it, `NAME://SIZE/READERS/POLICY`: peers whose types have one size
/// want to know it at both ends, before the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a message.
    pub size: usize,
    /// Subscriptions.
    pub readers: usize,
    /// What a full topic does.
    pub policy: Policy,
}

impl Shape {
    /// The URL of a peer of this name.
    pub fn url(&self, name: &str) -> String {
        format!("{name}://{}/{}/{}", self.size, self.readers, self.policy)
    }

    fn of(rest: &str) -> Option<Self> {
        let mut words = rest.split('/');
        let (size, readers) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?;
        let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name)?;
        Some(Self { size, readers, policy })
    }

    /// So many messages as fit a topic of this size, sixteen at least.
    pub fn slots(&self, config: &TopicConfig) -> usize {
        (config.capacity_bytes / self.size).max(16)
    }
}

/// Whatever went wrong there, in its own words.
pub fn failed(error: impl std::fmt::Display) -> Box<dyn std::error::Error + Send + Sync> {
    error.to_string().into()
}

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    let (name, rest) = url.split_once("://").unwrap_or_default();
    let peer = PEERS.iter().find(|peer| peer.name == name);
    let wrong = || ConnectError::Url(format!("'{url}' names no peer; use NAME://SIZE/READERS/POLICY"));
    let (peer, shape) = peer.zip(Shape::of(rest)).ok_or_else(wrong)?;
    Ok(Box::new(Place { peer, shape }))
}

/// A peer's topics of one shape.
struct Place {
    peer: &'static Peer,
    shape: Shape,
}

impl Place {
    fn no_queues<T>(&self) -> Result<T, ConnectError> {
        let what = "have queues".to_owned();
        Err(ConnectError::Unsupported { transport: self.peer.name, what, remedy: "use a topic" })
    }
}

impl Connection for Place {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: false,
            history: false,
            max_age: false,
            single_publisher: true,
            publisher_liveness: false,
            whole_batches: false,
            policies: self.peer.policies,
            lends: &[],
            max_payload: self.shape.size,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        (self.peer.publisher)(&self.shape, topic, config)
    }

    fn subscriber(&self, topic: &str, _start: Start, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        (self.peer.subscriber)(&self.shape, topic, wait)
    }

    fn remove(&self, topic: &str) -> Result<(), ConnectError> {
        (self.peer.remove)(topic);
        Ok(())
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[],
            ordered: false,
            single_pusher: false,
            keeps_without_puller: false,
            sees_death: false,
            counts_waiting: false,
            exact_resend: false,
            counts_deliveries: false,
            gives_back: false,
            max_payload: 0,
        }
    }

    fn pusher(&self, _queue: &str, _config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.no_queues()
    }

    fn puller(&self, _queue: &str, _config: &QueueConfig, _wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.no_queues()
    }

    fn waiting(&self, _queue: &str) -> Result<Option<u64>, ConnectError> {
        self.no_queues()
    }

    fn remove_queue(&self, _queue: &str) -> Result<(), ConnectError> {
        self.no_queues()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_what_a_topic_is_made_for() {
        let shape = Shape { size: 64, readers: 100, policy: Policy::Fail };
        assert_eq!(shape.url("ringfire"), "ringfire://64/100/fail");
        assert_eq!(Shape::of("64/100/fail"), Some(shape));
        assert_eq!(["", "64", "64/1", "64/1/never", "x/1/fail"].map(Shape::of), [None; 5]);
    }

    #[test]
    fn every_peer_has_its_scheme() {
        assert!(PEERS.iter().map(|peer| peer.name).eq(TRANSPORTS[0].schemes.iter().copied()));
    }
}
