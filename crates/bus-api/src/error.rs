//! What goes wrong with topics and queues, in sentences.

/// Why there is no connection, publisher or subscriber. A sentence with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL names no transport.
    #[error("{0}")]
    Url(String),
    /// The topic's name is no name.
    #[error("{0}")]
    Name(String),
    /// The transport cannot do what was asked for.
    #[error("{transport} cannot {what}; {remedy}")]
    Unsupported {
        /// Which transport.
        transport: &'static str,
        /// What was asked for.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Somebody else publishes the topic.
    #[error("{0}")]
    HasPublisher(String),
    /// The server does not answer, or refuses.
    #[error("{server}: {what}")]
    Server {
        /// Which one.
        server: String,
        /// What happened, and what to do.
        what: String,
    },
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ConnectError {
    /// True if the call was wrong, and no server was asked.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Name(_) | Self::Unsupported { .. })
    }
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A registered subscriber is a whole topic behind.
    #[error("the topic is full: a subscriber is too slow; publish again when it has caught up, or stop it")]
    Full,
    /// Nobody is subscribed to a topic whose policy is `fail`.
    #[error("nobody is subscribed to this 'fail' topic; start a subscriber, or use 'overwrite'")]
    NoSubscriber,
    /// It does not fit.
    #[error("a message of {bytes} bytes does not fit; this topic takes up to {limit}")]
    TooLarge {
        /// The message.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// A batch that was published in part.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published, then: {error}")]
pub struct BatchError {
    /// Messages that are published.
    pub done: usize,
    /// Why the next one was not.
    #[source]
    pub error: PublishError,
}

/// Why a subscription cannot go on. A lost connection is not one: it is made again, and told as a gap.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The topic's own bytes are damaged.
    #[error("{0}")]
    Damaged(String),
    /// Anything else, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
