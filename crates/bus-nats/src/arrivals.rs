//! The mailbox between the receiving thread and its caller.

use async_nats::Message;
use tickpath_bus_api::{Gap, Mailbox, ReceiveError};

use crate::place::Place;
use crate::receipt::Receipt;

/// The mailbox: arrivals, and news of losses and errors.
pub(crate) type Mail<T> = Mailbox<Result<T, News>>;

/// A report of the thread to its caller, as a sentence.
#[derive(Debug)]
pub(crate) enum News {
    /// Nothing comes any more, until an operator changes something.
    Final(String),
    /// Messages of a queue are gone. Those behind this report come from another connection, or from another queue.
    Gone(String),
    /// Messages that were received are not acknowledged, and are redelivered.
    NotAcknowledged(String),
}

impl From<News> for ReceiveError {
    fn from(news: News) -> Self {
        match news {
            News::Final(sentence) => Self::Other(sentence.into()),
            News::Gone(sentence) => Self::Gone(sentence),
            News::NotAcknowledged(sentence) => Self::NotAcknowledged(sentence),
        }
    }
}

/// An arrival of a topic.
pub(crate) enum Arrival {
    /// A message, with its place in the topic where JetStream counts it.
    Message {
        /// JetStream's metadata of the message.
        receipt: Option<Receipt>,
        /// The message.
        message: Message,
    },
    /// Messages that will never come.
    Gap {
        /// Their number, if known.
        gap: Gap,
        /// The place behind them, where it is known.
        place: Option<Place>,
    },
}

/// The thread's side of the mailbox. Until a message comes, it holds one unread loss and one unread final error at
/// most.
pub(crate) struct Arrived<T> {
    mailbox: Mail<T>,
    /// The number of items behind the last loss, if no message has come since.
    behind_loss: Option<usize>,
    /// The number of items behind the last final error, if no message has come since.
    behind_final: Option<usize>,
}

impl<T> Arrived<T> {
    /// Makes the thread's side of this mailbox.
    pub fn new(mailbox: Mail<T>) -> Self {
        Self { mailbox, behind_loss: None, behind_final: None }
    }

    /// Puts a message or gap.
    pub fn put(&mut self, arrival: T) {
        (self.behind_loss, self.behind_final) = (None, None);
        self.mailbox.put(Ok(arrival));
    }

    /// Puts a report.
    pub fn tell(&mut self, news: News) {
        self.leave(Err(news));
    }

    /// Reports a loss, unless an unread loss lies behind all messages and covers this one, too.
    pub fn tell_loss(&mut self, loss: Result<T, News>) {
        if !self.is_unread(self.behind_loss) {
            self.leave(loss);
            self.behind_loss = Some(0);
        }
    }

    /// Reports an error that does not pass by itself, unless such an error lies unread behind all messages.
    pub fn tell_final(&mut self, sentence: String) {
        if !self.is_unread(self.behind_final) {
            self.tell(News::Final(sentence));
            self.behind_final = Some(0);
        }
    }

    /// Takes the oldest unread item back.
    pub fn take(&self) -> Option<Result<T, News>> {
        self.mailbox.take()
    }

    /// Returns true if the item with that many items behind it is unread. The oldest item is read first, so it is
    /// unread while the mailbox holds more items than lie behind it.
    fn is_unread(&self, behind: Option<usize>) -> bool {
        behind.is_some_and(|behind| self.mailbox.len() > behind)
    }

    fn leave(&mut self, news: Result<T, News>) {
        for behind in [&mut self.behind_loss, &mut self.behind_final].into_iter().flatten() {
            *behind += 1;
        }
        self.mailbox.put(news);
    }
}

/// The caller's side of the mailbox.
pub(crate) struct Arrivals<T> {
    mailbox: Mail<T>,
    /// An arrival that is to be handed over once more.
    back: Option<T>,
    /// News that came behind other arrivals, for the next call.
    news: Option<News>,
}

impl<T> Arrivals<T> {
    /// Makes the caller's side of this mailbox.
    pub fn new(mailbox: Mail<T>) -> Self {
        Self { mailbox, back: None, news: None }
    }

    /// Returns the number of unread items.
    #[inline]
    pub fn unread(&self) -> usize {
        self.mailbox.len() + usize::from(self.back.is_some())
    }

    /// Hands over arrivals until `limit` is reached by the counts that `hand_over` returns, and returns their sum; an
    /// arrival that `hand_over` returns is handed over once more, first. News come after the arrivals before them: in a
    /// later call if this call has handed over any, or if `has_some`.
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

    /// Sleeps until an item is there, or until the timeout.
    pub fn wait(&self, timeout_ns: u64) {
        if self.news.is_none() && self.back.is_none() {
            self.mailbox.wait(timeout_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all items, in order.
    fn read(mailbox: &Mail<&'static str>) -> Vec<String> {
        let next = || mailbox.take();
        std::iter::from_fn(next).map(|mail| mail.map_or_else(|news| format!("{news:?}"), str::to_owned)).collect()
    }

    #[test]
    fn a_loss_and_a_final_word_lie_there_once_and_in_order() {
        let mailbox = Mailbox::new();
        let mut arrived = Arrived::new(mailbox.clone());
        for sentence in ["a", "b", "c"] {
            arrived.tell_loss(Ok("gap"));
            arrived.tell_final(sentence.to_owned());
        }
        assert_eq!(read(&mailbox), ["gap", "Final(\"a\")"]);
        arrived.tell_final("d".to_owned());
        arrived.put("message");
        arrived.tell_final("e".to_owned());
        arrived.tell_loss(Ok("gap"));
        assert_eq!(read(&mailbox), ["Final(\"d\")", "message", "Final(\"e\")", "gap"]);
    }

    #[test]
    fn a_loss_behind_an_unread_final_word_is_told() {
        let mailbox = Mailbox::new();
        let mut arrived = Arrived::new(mailbox.clone());
        arrived.tell_loss(Ok("gap"));
        arrived.tell_final("a".to_owned());
        assert!(mailbox.take().is_some_and(|first| first.is_ok()), "the first loss is read");
        arrived.tell_loss(Ok("gap"));
        arrived.tell_final("b".to_owned());
        assert_eq!(read(&mailbox), ["Final(\"a\")", "gap"]);
    }
}
