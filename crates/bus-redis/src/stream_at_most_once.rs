//! A stream whose entries are gone when they were handed over: read without anything pending, and deleted.

use std::time::Duration;

use tickpath_bus_api::{Pulled, wire};
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::puller::{Queue, hand_over};
use crate::resp;
use crate::server::TIMEOUT;
use crate::stream::{Id, read_reply};
use crate::stream_group::{Consumer, MOST_ENTRIES, hand_over_entry};

/// One puller's view.
pub(crate) struct StreamAtMostOnce {
    consumer: Consumer,
    /// The kind that messages of others get.
    foreign: Option<u8>,
    /// What came while it slept.
    kept: Option<Vec<u8>>,
}

impl StreamAtMostOnce {
    /// Of the queue of this name. Consumers that were silent for so long are forgotten.
    pub fn new(queue: &str, silence_ns: u64, foreign: Option<u8>, clock: HostClock) -> Self {
        Self { consumer: Consumer::new(queue, silence_ns, clock), foreign, kept: None }
    }

    /// Deletes entries. Nobody waits for that: they come to nobody any more.
    fn delete(&self, link: &mut Link, ids: &[Id]) -> Result<(), ServerError> {
        if ids.is_empty() { Ok(()) } else { link.tell(&self.consumer.deleting(ids)) }
    }
}

impl Queue for StreamAtMostOnce {
    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.consumer.join(link)
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            return hand_over(&message, false, self.foreign, handler);
        }
        self.consumer.ask(link, limit.min(MOST_ENTRIES), &["NOACK"])?;
        let (mut ids, foreign, mut outcome) = (Vec::new(), self.foreign, Ok(()));
        link.answer(TIMEOUT, |items| {
            read_reply(items, &mut |entry| match hand_over_entry(&entry, false, foreign, handler) {
                Ok(()) => ids.push(entry.id),
                // It stays in the stream.
                refused => outcome = refused,
            })
        })?;
        self.delete(link, &ids)?;
        outcome
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.consumer.ask(link, 1, &["NOACK", "BLOCK", &timeout.as_millis().to_string()])?;
        let (mut ids, foreign) = (Vec::new(), self.foreign);
        let kept = &mut self.kept;
        link.answer(timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let message = entry.whole().into_owned();
                // Another's stays in the stream; that is told by the next call.
                if wire::pulled(&message, foreign).is_some() {
                    ids.push(entry.id);
                }
                *kept = Some(message);
            })
        })?;
        self.delete(link, &ids)
    }

    fn is_holding(&self) -> bool {
        false
    }

    fn acknowledge(&mut self, _link: &mut Link) -> Result<(), ServerError> {
        Ok(())
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            let mut command = self.consumer.adding();
            resp::bulk(&mut command, &[&message]);
            link.send(&command)?;
            link.answer(TIMEOUT, |items| items.bulk().map(|_| ()))?;
        }
        self.consumer.leave(link)
    }
}
