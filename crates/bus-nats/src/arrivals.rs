//! What the thread has left for its caller.

use async_nats::Message;
use tickpath_bus_api::{Gap, Mailbox, ReceiveError};

use crate::place::Place;
use crate::receipt::Receipt;

/// Where what came lies, and news of what did not.
pub(crate) type Mail<T> = Mailbox<Result<T, News>>;

/// What the thread has to tell, in a sentence.
#[derive(Debug)]
pub(crate) enum News {
    /// Nothing comes any more, until somebody changes something.
    Final(String),
    /// What a queue held is gone, or part of it. What comes behind it is of another connection, or of another queue.
    Gone(String),
    /// What came is not done with, and comes again.
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

/// What comes to a topic's subscriber.
pub(crate) enum Arrival {
    /// A message, with its place in the topic where that is counted.
    Message {
        /// What JetStream says about it.
        receipt: Option<Receipt>,
        /// The message.
        message: Message,
    },
    /// Messages that will never come.
    Gap {
        /// So many.
        gap: Gap,
        /// What lies behind them, where that is known.
        place: Option<Place>,
    },
}

/// The thread's side of the mailbox. As long as nothing comes, a loss lies there once at most, and a final word, too.
pub(crate) struct Arrived<T> {
    mailbox: Mail<T>,
    /// How many lie behind the last loss, if nothing has come since.
    behind_loss: Option<usize>,
    /// How many lie behind the last final word, if nothing has come since.
    behind_final: Option<usize>,
}

impl<T> Arrived<T> {
    /// Leaves it in this mailbox.
    pub fn new(mailbox: Mail<T>) -> Self {
        Self { mailbox, behind_loss: None, behind_final: None }
    }

    /// Leaves what came.
    pub fn put(&mut self, arrival: T) {
        (self.behind_loss, self.behind_final) = (None, None);
        self.mailbox.put(Ok(arrival));
    }

    /// Tells this.
    pub fn tell(&mut self, news: News) {
        self.leave(Err(news));
    }

    /// Tells of a loss, unless one lies unread behind all that came: that is told for this one, too.
    pub fn tell_loss(&mut self, loss: Result<T, News>) {
        if !self.is_unread(self.behind_loss) {
            self.leave(loss);
            self.behind_loss = Some(0);
        }
    }

    /// Tells what does not pass by itself, unless that lies unread behind all that came.
    pub fn tell_final(&mut self, sentence: String) {
        if !self.is_unread(self.behind_final) {
            self.tell(News::Final(sentence));
            self.behind_final = Some(0);
        }
    }

    /// Takes back the oldest that is unread.
    pub fn take(&self) -> Option<Result<T, News>> {
        self.mailbox.take()
    }

    /// The oldest is read first: what has fewer behind it than there are is among them.
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
    /// What was taken, and is to be handed over once more.
    back: Option<T>,
    /// News that came behind something else: told in the next call.
    news: Option<News>,
}

impl<T> Arrivals<T> {
    /// What lies in this mailbox.
    pub fn new(mailbox: Mail<T>) -> Self {
        Self { mailbox, back: None, news: None }
    }

    /// How many are there.
    #[inline]
    pub fn unread(&self) -> usize {
        self.mailbox.len() + usize::from(self.back.is_some())
    }

    /// Hands over what is there, until `limit` is reached by what `hand_over` counts; gives that count. What that gives
    /// back is handed over once more, before all else. News are told after what came before them: in a later call if
    /// anything was handed over, or `has_some` already.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies there, in order.
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
