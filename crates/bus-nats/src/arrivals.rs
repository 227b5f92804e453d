//! The mailbox between the receiving thread and its caller.

use async_nats::Message;
use tickpath_bus_api::{Gap, Mailbox, ReceiveError};

use crate::position::JetStreamPosition;
use crate::receipt::Receipt;

/// The mailbox: arrivals, and news of losses and errors.
pub(crate) type ArrivalMailbox<T> = Mailbox<Result<T, FeedReport>>;

/// A report of the thread to its caller, as a sentence.
#[derive(Debug)]
pub(crate) enum FeedReport {
    /// Nothing comes any more, until an operator changes something.
    PermanentError(String),
    /// Messages of a queue are gone. Those behind this report come from another connection, or from another queue.
    MessagesLost(String),
    /// Messages that were received are not acknowledged, and are redelivered.
    NotAcknowledged(String),
}

impl From<FeedReport> for ReceiveError {
    fn from(report: FeedReport) -> Self {
        match report {
            FeedReport::PermanentError(sentence) => Self::Other(sentence.into()),
            FeedReport::MessagesLost(sentence) => Self::MessagesLost(sentence),
            FeedReport::NotAcknowledged(sentence) => Self::NotAcknowledged(sentence),
        }
    }
}

/// An arrival of a topic.
pub(crate) enum TopicArrival {
    /// A message, with its position in the topic where JetStream counts it.
    Message { receipt: Option<Receipt>, message: Message },
    /// Messages that will never come.
    Gap {
        /// Their number, if known.
        gap: Gap,
        /// The position behind them, where it is known.
        position: Option<JetStreamPosition>,
    },
}

/// The thread's side of the mailbox. Until a message comes, it holds one unread loss and one unread final error at
/// most.
pub(crate) struct ArrivalSender<T> {
    mailbox: ArrivalMailbox<T>,
    /// The number of items behind the last loss, if no message has come since.
    behind_loss: Option<usize>,
    /// The number of items behind the last final error, if no message has come since.
    behind_final: Option<usize>,
}

impl<T> ArrivalSender<T> {
    pub fn new(mailbox: ArrivalMailbox<T>) -> Self {
        Self { mailbox, behind_loss: None, behind_final: None }
    }

    pub fn put(&mut self, arrival: T) {
        (self.behind_loss, self.behind_final) = (None, None);
        self.mailbox.push(Ok(arrival));
    }

    pub fn report(&mut self, report: FeedReport) {
        self.put_report(Err(report));
    }

    /// Reports a loss, unless an unread loss lies behind all messages and covers this one, too.
    pub fn report_loss(&mut self, loss: Result<T, FeedReport>) {
        if !self.is_unread(self.behind_loss) {
            self.put_report(loss);
            self.behind_loss = Some(0);
        }
    }

    /// Reports an error that does not pass by itself, unless such an error lies unread behind all messages.
    pub fn report_permanent(&mut self, sentence: String) {
        if !self.is_unread(self.behind_final) {
            self.report(FeedReport::PermanentError(sentence));
            self.behind_final = Some(0);
        }
    }

    /// Takes the oldest unread item back.
    pub fn take_back(&self) -> Option<Result<T, FeedReport>> {
        self.mailbox.pop()
    }

    /// Returns true if the item with that many items behind it is unread. The oldest item is read first, so it is
    /// unread while the mailbox holds more items than lie behind it.
    fn is_unread(&self, behind: Option<usize>) -> bool {
        behind.is_some_and(|behind| self.mailbox.len() > behind)
    }

    fn put_report(&mut self, report: Result<T, FeedReport>) {
        for behind in [&mut self.behind_loss, &mut self.behind_final].into_iter().flatten() {
            *behind += 1;
        }
        self.mailbox.push(report);
    }
}

/// The caller's side of the mailbox.
pub(crate) struct ArrivalReceiver<T> {
    mailbox: ArrivalMailbox<T>,
    /// An arrival that is to be handed over once more.
    returned: Option<T>,
    /// News that came behind other arrivals, for the next call.
    pending_report: Option<FeedReport>,
}

impl<T> ArrivalReceiver<T> {
    pub fn new(mailbox: ArrivalMailbox<T>) -> Self {
        Self { mailbox, returned: None, pending_report: None }
    }

    #[inline]
    pub fn unread(&self) -> usize {
        self.mailbox.len() + usize::from(self.returned.is_some())
    }

    /// Hands over arrivals until `limit` is reached by the counts that `hand_over` returns, and returns their sum; an
    /// arrival that `hand_over` returns is handed over once more, first. News come after the arrivals before them: in a
    /// later call if this call has handed over any, or if `has_some`.
    pub fn take_arrivals(
        &mut self,
        limit: usize,
        has_some: bool,
        mut hand_over: impl FnMut(T) -> (usize, Option<T>),
    ) -> Result<usize, ReceiveError> {
        if self.pending_report.is_none() {
            let mut count = 0;
            while count < limit {
                match self.returned.take().map(Ok).or_else(|| self.mailbox.pop()) {
                    Some(Ok(arrival)) => {
                        let (handed_over, back) = hand_over(arrival);
                        count += handed_over;
                        self.returned = back;
                    }
                    Some(Err(report)) => {
                        self.pending_report = Some(report);
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
        self.pending_report.take().map_or(Ok(0), |report| Err(report.into()))
    }

    /// Sleeps until an item is there, or until the timeout.
    pub fn wait(&self, timeout_ns: u64) {
        if self.pending_report.is_none() && self.returned.is_none() {
            self.mailbox.wait(timeout_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mailbox: &ArrivalMailbox<&'static str>) -> Vec<String> {
        let next = || mailbox.pop();
        std::iter::from_fn(next).map(|mail| mail.map_or_else(|report| format!("{report:?}"), str::to_owned)).collect()
    }

    #[test]
    fn a_loss_and_a_permanent_error_are_queued_once_and_in_order() {
        let mailbox = Mailbox::new();
        let mut arrived = ArrivalSender::new(mailbox.clone());
        for sentence in ["a", "b", "c"] {
            arrived.report_loss(Ok("gap"));
            arrived.report_permanent(sentence.to_owned());
        }
        assert_eq!(read(&mailbox), ["gap", "PermanentError(\"a\")"]);
        arrived.report_permanent("d".to_owned());
        arrived.put("message");
        arrived.report_permanent("e".to_owned());
        arrived.report_loss(Ok("gap"));
        assert_eq!(read(&mailbox), ["PermanentError(\"d\")", "message", "PermanentError(\"e\")", "gap"]);
    }

    #[test]
    fn a_loss_behind_an_unread_permanent_error_is_reported() {
        let mailbox = Mailbox::new();
        let mut arrived = ArrivalSender::new(mailbox.clone());
        arrived.report_loss(Ok("gap"));
        arrived.report_permanent("a".to_owned());
        assert!(mailbox.pop().is_some_and(|first| first.is_ok()), "the first loss is read");
        arrived.report_loss(Ok("gap"));
        arrived.report_permanent("b".to_owned());
        assert_eq!(read(&mailbox), ["PermanentError(\"a\")", "gap"]);
    }
}
