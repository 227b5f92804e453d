//! Errors of topics and queues, each written as a sentence.

/// Reason why there is no connection, publisher or subscriber: a sentence with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL names no transport.
    #[error("{0}")]
    Url(String),
    /// The topic's name is invalid.
    #[error("{0}")]
    Name(String),
    /// The transport does not support the operation.
    #[error("{transport} cannot {what}; {remedy}")]
    Unsupported {
        /// Name of the transport.
        transport: &'static str,
        /// The unsupported operation.
        what: String,
        /// Alternative to use instead.
        remedy: &'static str,
    },
    /// Another publisher holds the topic.
    #[error("{0}")]
    HasPublisher(String),
    /// The server does not answer, or refuses.
    #[error("{server}: {what}")]
    Server {
        /// The server that failed.
        server: String,
        /// The failure and its remedy.
        what: String,
    },
    /// Any other error, in the transport's own words.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ConnectError {
    /// Returns true if the call itself was wrong, so that no server was asked.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Name(_) | Self::Unsupported { .. })
    }
}

/// Reason why a message was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A registered subscriber is a whole topic behind.
    #[error("the topic is full: a subscriber is too slow; publish again when it has caught up, or stop it")]
    Full,
    /// A topic with the policy `fail` has no subscriber.
    #[error("this 'fail' topic has no subscriber; start one, or use 'overwrite'")]
    NoSubscriber,
    /// The message does not fit.
    #[error("a message of {bytes} bytes does not fit; this topic takes up to {limit}")]
    TooLarge {
        /// Size of the message.
        bytes: usize,
        /// The largest size that fits.
        limit: usize,
    },
    /// The transport accepts nothing now, which can pass by itself.
    #[error("{0}")]
    Unavailable(String),
    /// In doubt: the message was sent and not confirmed, so it may be published now or later.
    /// [`Publisher::resend`](crate::Publisher::resend) resolves it.
    #[error("{0}; it is unknown whether the message has arrived")]
    Unknown(String),
    /// Any other error, in the transport's own words. It does not pass by itself.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl PublishError {
    /// Returns true if the same call can succeed later without any other action.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Full | Self::NoSubscriber | Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::TooLarge { .. } | Self::Other(_) => false,
        }
    }

    /// Returns the error for a message that is certainly not published; a transient cause can pass by itself.
    pub fn not_published(sentence: String, is_transient: bool) -> Self {
        if is_transient { Self::Unavailable(sentence) } else { Self::Other(sentence.into()) }
    }

    /// Returns the fate of the message.
    pub fn fate(&self) -> Fate {
        if matches!(self, Self::Unknown(_)) { Fate::Unknown } else { Fate::NotPublished }
    }
}

/// Fate of a message of a batch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The message is published.
    Published,
    /// The message is not published, and will not be.
    NotPublished,
    /// In doubt: the message may be published now or later.
    Unknown,
}

impl Fate {
    /// Returns the indexes of the messages in doubt.
    pub fn unknown(fates: &[Self]) -> impl Iterator<Item = usize> + '_ {
        fates.iter().enumerate().filter(|&(_, &fate)| fate == Self::Unknown).map(|(index, _)| index)
    }

    /// Returns the fate of a message in doubt that was resent with this fate: in doubt, unless it is published now.
    #[must_use]
    pub fn after_resend(self) -> Self {
        if self == Self::Published { self } else { Self::Unknown }
    }

    /// Returns how many sequence numbers the batch has used: up to the last message that is published or in doubt.
    pub fn used(fates: &[Self]) -> usize {
        fates.iter().rposition(|&fate| fate != Self::NotPublished).map_or(0, |last| last + 1)
    }
}

/// Error of a batch that was published in part, or may have been.
#[derive(Debug, thiserror::Error)]
#[error("{done} messages of the batch are published{}, then: {error}", others(.fates))]
pub struct BatchError {
    /// Number of messages published before the first one that is not, or that is in doubt.
    pub done: usize,
    /// Fates of message `done` and of those after it; a message beyond the end of the list is not published.
    pub fates: Vec<Fate>,
    /// Reason why message `done` failed.
    #[source]
    pub error: PublishError,
}

impl BatchError {
    /// Returns the error of a batch whose first `done` messages are published, and whose next one failed.
    pub fn failed_at(done: usize, error: PublishError) -> Self {
        let rest = if error.fate() == Fate::Unknown { vec![Fate::Unknown] } else { Vec::new() };
        Self { done, fates: rest, error }
    }

    /// Returns the error of a batch from the fate of each message, and the reason why the first unpublished one failed.
    pub fn from_fates(fates: &[Fate], error: PublishError) -> Self {
        let done = fates.iter().take_while(|&&fate| fate == Fate::Published).count();
        Self { done, fates: fates[done..Fate::used(fates)].to_vec(), error }
    }

    /// Returns the error of a batch from the fate of each message, and the reason of the first failure, which
    /// `is_transient` if it can pass by itself. The error states whether the first unpublished message is in doubt.
    pub fn from_failure(fates: &[Fate], reason: String, is_transient: bool) -> Self {
        let error = match fates.iter().find(|&&fate| fate != Fate::Published) {
            // Applies to permanent reasons, too: the message may have arrived.
            Some(Fate::Unknown) => PublishError::Unknown(reason),
            _ => PublishError::not_published(reason, is_transient),
        };
        Self::from_fates(fates, error)
    }

    /// Returns the error of so many messages that all stay in doubt, for this reason.
    pub fn all_unknown(count: usize, error: PublishError) -> Self {
        Self::from_fates(&vec![Fate::Unknown; count], error)
    }

    /// Returns the fate of the message at this index of the batch.
    pub fn fate(&self, index: usize) -> Fate {
        match index.checked_sub(self.done) {
            None => Fate::Published,
            Some(index) => self.fates.get(index).copied().unwrap_or(Fate::NotPublished),
        }
    }

    /// Returns the indexes of the messages in doubt.
    pub fn unknown(&self) -> impl Iterator<Item = usize> + '_ {
        Fate::unknown(&self.fates).map(|index| self.done + index)
    }
}

/// Returns the part of a batch error's text about the messages after the first failure.
fn others(rest: &[Fate]) -> String {
    let count = |wanted| rest.iter().filter(|&&fate| fate == wanted).count();
    match (count(Fate::Published), count(Fate::Unknown)) {
        (0, 0) => String::new(),
        (0, unknown) => format!(", and {unknown} after them are in doubt"),
        (later, 0) => format!(", and {later} after others that are not"),
        (later, unknown) => format!(", and {later} after others; {unknown} are in doubt"),
    }
}

/// Reason why nothing can be received. A lost connection is no such error: it is made again and reported as a gap.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The topic's own bytes are damaged.
    #[error("{0}")]
    Damaged(String),
    /// Delivered messages may not all be acknowledged: as the text states, they are redelivered, marked, or another
    /// puller holds them by now, or they are in doubt. Reported once; pulling continues.
    #[error("{0}")]
    NotAcknowledged(String),
    /// The queue has lost its messages, or part of them. Reported once; pulling continues.
    #[error("{0}")]
    MessagesLost(String),
    /// Any other error, in the transport's own words. It does not pass by itself.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ReceiveError {
    /// Returns true if the error is only a notice, so that the next call can succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NotAcknowledged(_) | Self::MessagesLost(_))
    }
}

/// Reason why a message is not lent.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// Messages are not lent here, for this reason.
    #[error("{0}; poll instead, which hands over copies")]
    Unsupported(&'static str),
    /// Receiving failed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_batch_states_the_fate_of_each_message() {
        use Fate::{NotPublished, Published, Unknown};
        let error = || PublishError::Unknown("x".to_owned());
        let batch = BatchError::from_fates(&[Published, Unknown, Published, NotPublished, Unknown], error());
        assert_eq!((batch.done, batch.unknown().collect::<Vec<_>>()), (1, vec![1, 4]));
        assert_eq!(
            batch.to_string(),
            "1 messages of the batch are published, and 1 after others; 2 are in doubt, then: x; it is unknown whether \
             the message has arrived"
        );
        let fates = |batch: BatchError| (0..5).map(|index| batch.fate(index)).collect::<Vec<_>>();
        assert_eq!(fates(batch), [Published, Unknown, Published, NotPublished, Unknown]);
        let failed = BatchError::failed_at(1, error());
        assert_eq!(fates(failed), [Published, Unknown, NotPublished, NotPublished, NotPublished]);
        assert_eq!(BatchError::from_fates(&[Published, NotPublished, NotPublished], PublishError::Full).fates, []);
        assert_eq!(fates(BatchError::all_unknown(2, error()))[..3], [Unknown, Unknown, NotPublished]);
    }

    #[test]
    fn a_batch_has_the_error_of_its_first_unpublished_message() {
        use Fate::{NotPublished, Published, Unknown};
        let cases: [(&[Fate], bool, Fate, bool); 6] = [
            (&[Published, Unknown, NotPublished], true, Unknown, true),
            // The first message is in doubt, whatever the last answer was.
            (&[Published, Unknown, NotPublished], false, Unknown, true),
            (&[NotPublished, Unknown], true, NotPublished, true),
            (&[NotPublished, Unknown], false, NotPublished, false),
            (&[Published], true, NotPublished, true),
            (&[], false, NotPublished, false),
        ];
        for (fates, is_transient, fate, passes) in cases {
            let error = BatchError::from_failure(fates, String::new(), is_transient);
            assert_eq!((error.error.fate(), error.error.is_transient()), (fate, passes), "{fates:?}");
            assert!((0..3).all(|number| error.fate(number) == fates.get(number).copied().unwrap_or(NotPublished)));
        }
    }

    #[test]
    fn a_resend_that_is_refused_leaves_a_message_in_doubt() {
        use Fate::{NotPublished, Published, Unknown};
        assert_eq!([Published, NotPublished, Unknown].map(Fate::after_resend), [Published, Unknown, Unknown]);
    }
}
