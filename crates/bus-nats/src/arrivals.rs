//! What the thread has left for its caller.

use async_nats::Message;
use tickpath_bus_api::{Gap, Mailbox, ReceiveError};

/// Where the thread leaves what came, or a sentence that says why nothing can.
pub(crate) type Arrived<T> = Mailbox<Result<T, String>>;

/// What comes to a topic's subscriber.
pub(crate) enum Arrival {
    /// A message, with its place in the topic where that is counted.
    Message {
        /// Its place in the topic.
        sequence: Option<u64>,
        /// The message.
        message: Message,
    },
    /// Messages that will never come.
    Gap(Gap),
}

/// The caller's side of the mailbox.
pub(crate) struct Arrivals<T> {
    mailbox: Arrived<T>,
    /// A failure that came behind something else: told in the next call.
    failure: Option<String>,
}

impl<T> Arrivals<T> {
    /// What lies in this mailbox.
    pub fn new(mailbox: Arrived<T>) -> Self {
        Self { mailbox, failure: None }
    }

    /// How many are there.
    #[inline]
    pub fn unread(&self) -> usize {
        self.mailbox.len()
    }

    /// Takes up to `limit` that are there; gives how many. A failure is told after what came before it.
    pub fn take(&mut self, limit: usize, mut hand_over: impl FnMut(T)) -> Result<usize, ReceiveError> {
        if let Some(sentence) = self.failure.take() {
            return Err(ReceiveError::Other(sentence.into()));
        }
        for count in 0..limit {
            match self.mailbox.take() {
                Some(Ok(arrival)) => hand_over(arrival),
                Some(Err(sentence)) if count == 0 => return Err(ReceiveError::Other(sentence.into())),
                Some(Err(sentence)) => {
                    self.failure = Some(sentence);
                    return Ok(count);
                }
                None => return Ok(count),
            }
        }
        Ok(limit)
    }

    /// Sleeps until something is there, or for so long.
    pub fn wait(&self, timeout_ns: u64) {
        if self.failure.is_none() {
            self.mailbox.wait(timeout_ns);
        }
    }
}
