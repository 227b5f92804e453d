//! Roles of the child processes.

/// Action of a child process until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildRole {
    /// Publishes, the first 5,000 messages as fast as it can.
    Publisher,
    /// Receives as fast as it can.
    Subscriber,
    /// Subscribes, and never polls.
    NonPoller,
    /// Sleeps until a message arrives.
    Sleeper,
    /// Pushes as fast as it can.
    Pusher,
    /// Pulls and acknowledges a few messages at a time.
    Puller,
    /// Pulls ten messages at least once, prints their numbers, and never acknowledges them.
    Holder,
    /// Pulls ten messages at most once, and prints their numbers.
    AtMostOnceHolder,
}

impl ChildRole {
    /// Roles that publish or subscribe.
    pub(super) const OF_TOPICS: [Self; 4] = [Self::Publisher, Self::Subscriber, Self::NonPoller, Self::Sleeper];
    const OF_QUEUES: [Self; 4] = [Self::Pusher, Self::Puller, Self::Holder, Self::AtMostOnceHolder];

    /// Returns the role whose variant has this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::OF_TOPICS.into_iter().chain(Self::OF_QUEUES).find(|role| format!("{role:?}") == name)
    }
}
