//! The interface of an adapter: how a peer in Rust opens the two ends of a topic.

use tickpath_bus::{ConnectError, Policy, Publisher, Subscriber, TopicConfig};
use tickpath_clock::Wait;

/// An opened end of a topic, or the reason why it could not be opened.
pub type PeerEnd<T> = Result<Box<T>, ConnectError>;

/// An entry in the list of peers.
pub struct Peer {
    /// Scheme of the peer's URLs, and its name in results.
    pub name: &'static str,
    /// Policies of a full topic that the peer supports; the default first.
    pub policies: &'static [Policy],
    /// Creates a topic and opens it for publishing.
    pub publisher: fn(&TopicShape, &str, &TopicConfig) -> PeerEnd<dyn Publisher>,
    /// Subscribes to a topic that exists.
    pub subscriber: fn(&TopicShape, &str, Wait) -> PeerEnd<dyn Subscriber>,
    /// Removes everything that a topic has left behind.
    pub remove: fn(&str),
}

/// Fixed properties of a topic, as a peer's URL names them: `NAME://SIZE/READERS/POLICY`. Peers with slots of one size
/// need the size at both ends before the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicShape {
    /// Size of every message in bytes.
    pub size: usize,
    /// Number of subscriptions.
    pub readers: usize,
    /// Behaviour of a full topic.
    pub policy: Policy,
}

impl TopicShape {
    /// Returns the URL of this shape for a peer.
    pub fn url(&self, name: &str) -> String {
        format!("{name}://{}/{}/{}", self.size, self.readers, self.policy)
    }

    /// Parses the part of a URL after `://`; `None` for any other text.
    pub fn parse(rest: &str) -> Option<Self> {
        let mut words = rest.split('/');
        let (size, readers) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?;
        let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name)?;
        Some(Self { size, readers, policy })
    }

    /// Returns the number of messages that fit the configured capacity, at least sixteen.
    pub fn slots(&self, config: &TopicConfig) -> usize {
        (config.capacity_bytes / self.size).max(16)
    }
}

/// Converts the error of a peer's library, in its own words.
pub fn library_error(error: impl std::fmt::Display) -> Box<dyn std::error::Error + Send + Sync> {
    error.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_shape_of_its_topics() {
        let shape = TopicShape { size: 64, readers: 100, policy: Policy::Fail };
        assert_eq!(shape.url("ringfire"), "ringfire://64/100/fail");
        assert_eq!(TopicShape::parse("64/100/fail"), Some(shape));
        assert_eq!(["", "64", "64/1", "64/1/never", "x/1/fail"].map(TopicShape::parse), [None; 5]);
    }

    #[test]
    fn a_topic_has_at_least_sixteen_slots() {
        let shape = TopicShape { size: 1_024, readers: 1, policy: Policy::Fail };
        let slots = |capacity_bytes| shape.slots(&TopicConfig { capacity_bytes, ..TopicConfig::new(Policy::Fail) });
        assert_eq!([0, 16_384, 1 << 20].map(slots), [16, 16, 1_024]);
    }
}
