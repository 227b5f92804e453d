//! What the thread has left for its caller.

use async_nats::Message;
use tickpath_bus_api::{Gap, Mailbox, ReceiveError};

/// Where the thread leaves what came, or news of what did not.
pub(crate) type Arrived<T> = Mailbox<Result<T, News>>;

/// What the thread has to tell, in a sentence.
#[derive(Debug)]
pub(crate) enum News {
    /// Nothing comes any more, until somebody changes something.
    Final(String),
    /// What a queue held is gone, or part of it. What comes behind it is of another connection, or of another queue.
    Gone(String),
}

impl From<News> for ReceiveError {
    fn from(news: News) -> Self {
        match news {
            News::Final(sentence) => Self::Other(sentence.into()),
            News::Gone(sentence) => Self::Gone(sentence),
        }
    }
}

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
    /// What was taken, and is to be handed over once more.
    back: Option<T>,
    /// News that came behind something else: told in the next call.
    news: Option<News>,
}

impl<T> Arrivals<T> {
    /// What lies in this mailbox.
    pub fn new(mailbox: Arrived<T>) -> Self {
        Self { mailbox, back: None, news: None }
    }

    /// How many are there.
    #[inline]
    pub fn unread(&self) -> usize {
        self.mailbox.len() + usize::from(self.back.is_some())
    }

    /// Hands over what is there, until `limit` is reached by what `hand_over` counts; gives that count. What that gives back
    /// is handed over once more, before all else. News are told
    /// after what came before them: in a later call if anything was handed over, or `has_some` already.
    pub fn take(
        &mut self,
        limit: usize,
        has_some: bool,
        mut hand_over: impl FnMut(T) -> (usize, Option<T>),
    ) -> Result<usize, ReceiveError> {
        if self.news.is_none() {
            let mut count = 0;
            while count < limit {
                match self.back.take().map(Ok).or_else(|| self.mailbox.take()) {
                    Some(Ok(arrival)) => {
                        let (handed_over, back) = hand_over(arrival);
                        count += handed_over;
                        self.back = back;
                    }
                    Some(Err(news)) => {
                        self.news = Some(news);
                        break;
                    }
                    None => break,
                }
            }
            if count > 0 {
                return Ok(count);
            }
        }
        if has_some {
            return Ok(0);
        }
        self.news.take().map_or(Ok(0), |news| Err(news.into()))
    }

    /// Sleeps until something is there, or for so long.
    pub fn wait(&self, timeout_ns: u64) {
        if self.news.is_none() && self.back.is_none() {
            self.mailbox.wait(timeout_ns);
        }
    }
}
