//! A stream whose entries stay pending with their puller until they are acknowledged.
//!
//! An entry that has been pending for longer than the silence that a puller may keep is claimed by another one. A
//! puller that shows itself restarts that time for what it holds; one that is dropped marks it as idle for long.

use std::time::Duration;

use tickpath_bus_api::Pulled;
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::moment::Moment;
use crate::puller::{Queue, SHORTEST_SLEEP, hand_over};
use crate::server::TIMEOUT;
use crate::stream::{Id, read_reply};
use crate::stream_group::{Consumer, MOST_ENTRIES, hand_over_entry};

/// How often a puller that finds nothing looks for what others gave back, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// The most entries in one command.
const MOST_IDS: usize = 1000;

/// One puller's view.
pub(crate) struct StreamAtLeastOnce {
    consumer: Consumer,
    silence_ns: u64,
    /// The kind that messages of others get.
    foreign: Option<u8>,
    /// When it last showed that it lives.
    renewed: Moment,
    /// When it last looked for entries that it can claim.
    looked: Moment,
    /// Where that look goes on.
    next: Id,
    /// Handed over, and not acknowledged.
    held: Vec<Id>,
    /// What came while it slept.
    kept: Option<(Id, Vec<u8>)>,
}

impl StreamAtLeastOnce {
    /// Of the queue of this name; a puller that is silent for so long is taken for dead.
    pub fn new(queue: &str, silence_ns: u64, foreign: Option<u8>, clock: HostClock) -> Self {
        let consumer = Consumer::new(queue, silence_ns, clock);
        let now = Moment::now(clock);
        Self { consumer, silence_ns, foreign, renewed: now, looked: now, next: Id::START, held: Vec::new(), kept: None }
    }

    /// Shows that this puller lives. One that has been silent for too long has lost what it held.
    fn renew(&mut self, link: &mut Link) -> Result<(), ServerError> {
        if !self.renewed.is_past(self.silence_ns / 3) {
            return Ok(());
        }
        let is_late = self.renewed.is_past(self.silence_ns);
        self.renewed = self.renewed.restarted();
        let still_held = if is_late { &[] } else { &self.held[..] };
        for ids in still_held.chunks(MOST_IDS) {
            link.tell(&self.consumer.holding(ids))?;
        }
        Ok(())
    }

    /// Takes entries that nobody has had.
    fn take_fresh(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        self.consumer.ask(link, limit.min(MOST_ENTRIES), &[])?;
        let (held, foreign) = (&mut self.held, self.foreign);
        let mut outcome = Ok(());
        link.answer(TIMEOUT, |items| {
            read_reply(items, &mut |entry| match hand_over_entry(&entry, false, foreign, handler) {
                Ok(()) => held.push(entry.id),
                // It stays as it is, with nobody.
                refused => outcome = refused,
            })
        })?;
        outcome
    }

    /// Takes entries that others gave back, or fell with.
    fn take_again(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        self.looked = self.looked.restarted();
        let (held, foreign) = (&mut self.held, self.foreign);
        let mut outcome = Ok(());
        self.next =
            self.consumer.claim(link, limit.min(MOST_ENTRIES), self.next, &mut |entry| match hand_over_entry(
                &entry, true, foreign, handler,
            ) {
                Ok(()) => held.push(entry.id),
                refused => outcome = refused,
            })?;
        outcome
    }
}

impl Queue for StreamAtLeastOnce {
    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.consumer.join(link)
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some((id, message)) = self.kept.take() {
            hand_over(&message, false, self.foreign, handler)?;
            self.held.push(id);
            return Ok(());
        }
        self.renew(link)?;
        let before = self.held.len();
        // Also where there is always something fresh: what the fallen had must not wait for an empty stream.
        if self.looked.is_past(self.silence_ns) {
            self.take_again(link, limit, handler)?;
            if self.held.len() > before {
                return Ok(());
            }
        }
        self.take_fresh(link, limit, handler)?;
        let is_empty = self.held.len() == before;
        let is_due = self.next != Id::START || self.looked.is_past(LOOK_NS.min(self.silence_ns / 2));
        if is_empty && is_due { self.take_again(link, limit, handler) } else { Ok(()) }
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.renew(link)?;
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(SHORTEST_SLEEP);
        self.consumer.ask(link, 1, &["BLOCK", &timeout.as_millis().to_string()])?;
        let kept = &mut self.kept;
        link.answer(timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| *kept = Some((entry.id, entry.whole().into_owned())))
        })
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError> {
        for ids in self.held.chunks(MOST_IDS) {
            // What is deleted comes to nobody, also if the second command gets lost.
            link.send(&[self.consumer.deleting(ids), self.consumer.acknowledging(ids)].concat())?;
            link.answer(TIMEOUT, |items| items.integer())?;
            link.answer(TIMEOUT, |items| items.integer())?;
        }
        self.held.clear();
        Ok(())
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.held.extend(self.kept.take().map(|(id, _)| id));
        for ids in self.held.chunks(MOST_IDS) {
            link.tell(&self.consumer.giving_back(ids))?;
        }
        self.consumer.leave(link)
    }
}
