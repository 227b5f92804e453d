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
    /// All roles.
    pub const ALL: [Self; 8] = [
        Self::Publisher,
        Self::Subscriber,
        Self::NonPoller,
        Self::Sleeper,
        Self::Pusher,
        Self::Puller,
        Self::Holder,
        Self::AtMostOnceHolder,
    ];

    /// Roles that publish or subscribe.
    pub(super) const OF_TOPICS: [Self; 4] = [Self::Publisher, Self::Subscriber, Self::NonPoller, Self::Sleeper];

    /// Returns the role as one word for the environment of a child.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::NonPoller => "stuck",
            Self::Sleeper => "sleeper",
            Self::Pusher => "pusher",
            Self::Puller => "puller",
            Self::Holder => "holder",
            Self::AtMostOnceHolder => "taker",
        }
    }

    /// Returns the role of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}
