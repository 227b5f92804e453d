//! Queue on a stream: entries are read without becoming pending, and deleted once they were handed over.

use std::time::Duration;

use tickpath_bus_api::{Pulled, QueueConfig};
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::portion::Portion;
use crate::puller::{Queue, message};
use crate::resp;
use crate::server::TIMEOUT;
use crate::stream::{Id, read_reply};
use crate::stream_group::Consumer;

/// State of one puller.
pub(crate) struct StreamAtMostOnce {
    consumer: Consumer,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    portion: Portion,
    /// Message that came during a sleep.
    kept: Option<Vec<u8>>,
}

impl StreamAtMostOnce {
    /// Creates the state of a puller of this queue.
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let consumer = Consumer::new(queue, config, clock);
        Self { consumer, foreign: config.foreign, portion: Portion::new(), kept: None }
    }

    /// Deletes entries without waiting for the reply: they are not delivered again in any case.
    fn delete(&self, link: &mut Link, ids: &[Id]) -> Result<(), ServerError> {
        if ids.is_empty() { Ok(()) } else { link.tell(&self.consumer.deleting(ids)) }
    }
}

impl Queue for StreamAtMostOnce {
    const TAKES_AWAY: bool = true;

    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut Link, _has_kept_all: bool) -> Result<bool, ServerError> {
        self.consumer.join(link)?;
        Ok(self.consumer.has_changed())
    }

    fn forget(&mut self) {
        self.consumer.forget();
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(bytes) = self.kept.take() {
            handler(Pulled::plain(message(&bytes, self.foreign)?, false));
            return Ok(());
        }
        let asked = self.portion.limit(limit);
        self.consumer.ask(link, asked, &["NOACK"])?;
        let (mut ids, mut outcome) = (Vec::new(), Ok(()));
        let (portion, foreign) = (&mut self.portion, self.foreign);
        link.answer_of(asked, TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let whole = entry.whole();
                portion.came(whole.len());
                match message(&whole, foreign) {
                    Ok(message) => {
                        ids.push(entry.id);
                        handler(Pulled::plain(message, false));
                    }
                    // The foreign entry stays in the stream.
                    Err(refused) => outcome = Err(refused),
                }
            })
        })?;
        self.delete(link, &ids)?;
        outcome?;
        self.consumer.check(link)
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.consumer.ask(link, 1, &["NOACK", "BLOCK", &timeout.as_millis().to_string()])?;
        let (mut ids, foreign) = (Vec::new(), self.foreign);
        let kept = &mut self.kept;
        link.answer_of(1, timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let bytes = entry.whole().into_owned();
                // A foreign entry stays in the stream; the next call reports it.
                if message(&bytes, foreign).is_ok() {
                    ids.push(entry.id);
                }
                *kept = Some(bytes);
            })
        })?;
        self.delete(link, &ids)?;
        self.consumer.check(link)
    }

    fn is_holding(&self) -> bool {
        false
    }

    fn acknowledge(&mut self, _link: &mut Link) -> Result<(), ServerError> {
        Ok(())
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        // A foreign entry is still in the stream.
        if let Some(bytes) = self.kept.take().filter(|bytes| message(bytes, self.foreign).is_ok()) {
            let mut command = self.consumer.adding();
            resp::bulk(&mut command, &[&bytes]);
            link.send(&command)?;
            link.answer(TIMEOUT, |items| items.bulk().map(|_| ()))?;
        }
        self.consumer.leave(link)
    }
}
