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
    /// The transport takes nothing now, which can pass by itself.
    #[error("{0}")]
    Unavailable(String),
    /// It was sent, and no answer came: it may be published, or be so later. [`Publisher::resend`](crate::Publisher::resend)
    /// finds out.
    #[error("{0}; nobody knows whether the message has arrived")]
    Unknown(String),
    /// Anything else, in the transport's own words. It does not pass by itself.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl PublishError {
    /// True if the same call can succeed later, with nobody changing anything but the load, the network or the servers.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Full | Self::NoSubscriber | Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::TooLarge { .. } | Self::Other(_) => false,
        }
    }

    /// That a message is surely not published, in words, and whether that can pass by itself.
    pub fn not_published(sentence: String, may_pass: bool) -> Self {
        if may_pass { Self::Unavailable(sentence) } else { Self::Other(sentence.into()) }
    }

    /// What became of the message.
    pub fn fate(&self) -> Fate {
        if matches!(self, Self::Unknown(_)) { Fate::Unknown } else { Fate::NotPublished }
    }
}

/// What became of a message of a batch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is published.
    Published,
    /// It is not, and will not be.
    NotPublished,
    /// Nobody knows.
    Unknown,
}

impl Fate {
    /// The numbers in a batch of the messages of which nobody knows.
    pub fn unknown(fates: &[Self]) -> impl Iterator<Item = usize> + '_ {
        fates.iter().enumerate().filter(|&(_, &fate)| fate == Self::Unknown).map(|(number, _)| number)
    }

    /// How many messages of a batch have used up the numbers of their publisher: all up to the last one that is published,
    /// or may be.
    pub fn used(fates: &[Self]) -> usize {
        fates.iter().rposition(|&fate| fate != Self::NotPublished).map_or(0, |last| last + 1)
    }
}

/// A batch that was published in part, or may have been.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published{}, then: {error}", others(.rest))]
pub struct BatchError {
    /// Messages that are published, before the first one that is not, or of which nobody knows.
    pub done: usize,
    /// What became of that one, and of those behind it; of which there is nothing here is not published.
    pub rest: Vec<Fate>,
    /// Why that one was not.
    #[source]
    pub error: PublishError,
}

impl BatchError {
    /// A batch of which the first `done` are published. The next one failed for this reason, and those behind it were not
    /// sent.
    pub fn at(done: usize, error: PublishError) -> Self {
        let rest = if error.fate() == Fate::Unknown { vec![Fate::Unknown] } else { Vec::new() };
        Self { done, rest, error }
    }

    /// What became of each message of a batch, and why the first one that is not published was not.
    pub fn of(fates: &[Fate], error: PublishError) -> Self {
        let done = fates.iter().take_while(|&&fate| fate == Fate::Published).count();
        Self { done, rest: fates[done..Fate::used(fates)].to_vec(), error }
    }

    /// What became of the message of this number in the batch.
    pub fn fate(&self, number: usize) -> Fate {
        match number.checked_sub(self.done) {
            None => Fate::Published,
            Some(behind) => self.rest.get(behind).copied().unwrap_or(Fate::NotPublished),
        }
    }

    /// The numbers in the batch of the messages of which nobody knows.
    pub fn unknown(&self) -> impl Iterator<Item = usize> + '_ {
        Fate::unknown(&self.rest).map(|behind| self.done + behind)
    }
}

/// What the sentence of a batch says of the others.
fn others(rest: &[Fate]) -> String {
    let count = |wanted| rest.iter().filter(|&&fate| fate == wanted).count();
    match (count(Fate::Published), count(Fate::Unknown)) {
        (0, 0) => String::new(),
        (0, unknown) => format!(", of {unknown} behind them nobody knows"),
        (later, 0) => format!(", and {later} behind others that are not"),
        (later, unknown) => format!(", and {later} behind others, of {unknown} nobody knows"),
    }
}

/// Why nothing can be received. A lost connection is not one: it is made again, and told as a gap.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The topic's own bytes are damaged.
    #[error("{0}")]
    Damaged(String),
    /// What was handed over is not surely acknowledged, at least not all of it: it comes again, marked, or somebody else has it
    /// by now, or nobody knows, as the sentence says. Told once; pulling goes on.
    #[error("{0}")]
    NotAcknowledged(String),
    /// What a queue held is gone, or part of it. Told once; pulling goes on.
    #[error("{0}")]
    Gone(String),
    /// Anything else, in the transport's own words. It does not pass by itself.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ReceiveError {
    /// True if it was news, and the next call can succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NotAcknowledged(_) | Self::Gone(_))
    }
}

/// Why a message is not lent.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// Nothing is lent here, for this reason.
    #[error("{0}; poll instead, which hands over copies")]
    NotHere(&'static str),
    /// Nothing can be received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_says_what_became_of_each() {
        use Fate::{NotPublished, Published, Unknown};
        let error = || PublishError::Unknown("x".to_owned());
        let told = BatchError::of(&[Published, Unknown, Published, NotPublished, Unknown], error());
        assert_eq!((told.done, told.unknown().collect::<Vec<_>>()), (1, vec![1, 4]));
        assert_eq!(
            told.to_string(),
            "1 messages of the batch are published, and 1 behind others, of 2 nobody knows, then: x; nobody knows \
             whether the message has arrived"
        );
        let fates = |told: BatchError| (0..5).map(|number| told.fate(number)).collect::<Vec<_>>();
        assert_eq!(fates(told), [Published, Unknown, Published, NotPublished, Unknown]);
        let at = BatchError::at(1, error());
        assert_eq!(fates(at), [Published, Unknown, NotPublished, NotPublished, NotPublished]);
        assert_eq!(BatchError::of(&[Published, NotPublished, NotPublished], PublishError::Full).rest, []);
    }
}
