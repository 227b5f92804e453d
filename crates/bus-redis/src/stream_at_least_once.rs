//! A stream whose entries stay pending with their puller until they are acknowledged.
//!
//! An entry that has been pending for longer than the silence that a puller may keep is claimed by another one; where
//! pullers differ in that, the longest silence of those that hold something counts. A puller that shows itself restarts
//! that time for what it holds; what is given back is marked as idle for long.
//!
//! ```text
//!   asked for, or shown ──────────── half of the silence ──────────── the silence
//!        nobody else can have it: done with    others may: the server looks whose it is, and says so
//! ```
//! So what is acknowledged soon costs two plain commands. The other half is for how much faster the server's clock may
//! go, and for the way to it. Should they be held up for longer than that, or the server's clock be set forward, they may
//! take away what another one was given meanwhile. It is done with, and comes to nobody again, as is said then; that other
//! one has a copy of it.

use std::time::Duration;

use tickpath_bus_api::{Pulled, QueueConfig};
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::moment::Moment;
use crate::portion::Portion;
use crate::puller::{Queue, SHORTEST_SLEEP, message};
use crate::server::TIMEOUT;
use crate::stream::{Id, read_reply};
use crate::stream_group::Consumer;

/// How often a puller that finds nothing looks for what others gave back, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// How often one that finds something does, in nanoseconds.
const BUSY_LOOK_NS: u64 = 1_000_000_000;

/// The most entries in one command.
const MOST_IDS: usize = 1000;

/// By so much sooner than a silence is over the server may take it for over, as it counts whole milliseconds, in nanoseconds.
const ROUNDED_NS: u64 = 2_000_000;

/// One puller's view.
pub(crate) struct StreamAtLeastOnce {
    consumer: Consumer,
    silence_ns: u64,
    /// The kind that messages of others get.
    foreign: Option<u8>,
    /// When it last showed that it lives.
    renewed: Moment,
    /// What it holds nobody else can have claimed before half of the silence has passed since then; none if others may
    /// have it already.
    sure: Option<Moment>,
    /// When it last looked for entries that it can claim.
    looked: Moment,
    /// Where that look goes on.
    next: Id,
    /// It has given an entry back, and not looked at all that is pending since.
    has_given_back: bool,
    portion: Portion,
    held: Held,
    /// What came while it slept, and when it had not come yet.
    kept: Option<(Moment, Id, Vec<u8>)>,
}

/// What was handed over, and not acknowledged: tags and entries, in the order of coming.
#[derive(Default)]
struct Held {
    /// The tag of the entry that came last.
    newest: u64,
    entries: Vec<(u64, Id)>,
}

impl Held {
    /// Takes one in; gives its tag.
    fn add(&mut self, id: Id) -> u64 {
        self.newest += 1;
        self.entries.push((self.newest, id));
        self.newest
    }

    /// Takes one in that may be here from before, and has another tag now.
    fn add_again(&mut self, id: Id) -> u64 {
        self.entries.retain(|&(_, held)| held != id);
        self.add(id)
    }

    /// The entry of this tag.
    fn entry(&self, tag: u64) -> Option<Id> {
        let at = self.entries.binary_search_by_key(&tag, |&(tag, _)| tag);
        at.ok().map(|at| self.entries[at].1)
    }

    /// Forgets the entry of this tag.
    fn remove(&mut self, tag: u64) {
        self.entries.retain(|&(held, _)| held != tag);
    }

    /// All of them, in the order of the stream.
    fn ids(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.entries.iter().map(|&(_, id)| id).collect();
        ids.sort_unstable();
        ids
    }
}

impl StreamAtLeastOnce {
    /// Of the queue of this name.
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let now = Moment::now(clock);
        Self {
            consumer: Consumer::new(queue, config, clock),
            silence_ns: config.silence_ns,
            foreign: config.foreign,
            renewed: now,
            sure: None,
            looked: now,
            next: Id::START,
            has_given_back: false,
            portion: Portion::new(),
            held: Held::default(),
            kept: None,
        }
    }

    /// Lets go of what came while it slept: if it still is this puller's, it goes to whoever comes.
    fn return_kept(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Some((_, id, _)) = self.kept.take() else { return Ok(()) };
        (self.next, self.has_given_back) = (Id::START, true);
        link.tell(&self.consumer.giving_back_unseen(id))
    }

    /// Shows that this puller lives. What others have taken meanwhile stays theirs.
    fn renew(&mut self, link: &mut Link) -> Result<(), ServerError> {
        if !self.renewed.is_past(self.silence_ns / 3) {
            return Ok(());
        }
        self.renewed = self.renewed.restarted();
        self.sure = self.is_sure().then_some(self.renewed);
        for ids in self.held.ids().chunks(MOST_IDS) {
            link.tell(&self.consumer.holding(ids))?;
        }
        Ok(())
    }

    /// Whether nobody else can have what this puller holds.
    fn is_sure(&self) -> bool {
        self.sure.is_some_and(|since| !since.is_past(self.silence_ns.saturating_sub(ROUNDED_NS) / 2))
    }

    /// Entries are asked for. Where there were none before, those that come are this puller's.
    fn begin(&mut self) {
        if self.held.entries.is_empty() && self.kept.is_none() {
            self.sure = Some(self.looked.restarted());
        }
    }

    /// Takes entries that nobody has had.
    fn take_fresh(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        let asked = self.portion.limit(limit);
        self.consumer.ask(link, asked, &[])?;
        let (held, portion, foreign) = (&mut self.held, &mut self.portion, self.foreign);
        let mut outcome = Ok(());
        link.answer_of(asked, TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let whole = entry.whole();
                portion.came(whole.len());
                match message(&whole, foreign) {
                    Ok(message) => {
                        let tag = held.add(entry.id);
                        handler(Pulled { message, redelivered: false, deliveries: Some(1), tag });
                    }
                    // It stays as it is, with nobody.
                    Err(refused) => outcome = Err(refused),
                }
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
        let (held, portion, foreign) = (&mut self.held, &mut self.portion, self.foreign);
        let mut outcome = Ok(());
        let limit = portion.limit(limit);
        self.next = self.consumer.claim(link, limit, self.next, &mut |entry, deliveries| {
            let whole = entry.whole();
            portion.came(whole.len());
            match message(&whole, foreign) {
                Ok(message) => {
                    let tag = held.add_again(entry.id);
                    handler(Pulled { message, redelivered: true, deliveries: Some(deliveries), tag });
                }
                Err(refused) => outcome = Err(refused),
            }
        })?;
        if self.next == Id::START {
            self.has_given_back = false;
        }
        outcome
    }

    /// Takes entries, wherever they are.
    fn take_some(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        // Others may have had it meanwhile, and be done with it.
        if self.kept.as_ref().is_some_and(|(before, ..)| before.is_past(self.silence_ns / 2)) {
            self.return_kept(link)?;
        }
        if let Some((_, id, bytes)) = self.kept.take() {
            let message = message(&bytes, self.foreign)?;
            handler(Pulled { message, redelivered: false, deliveries: Some(1), tag: self.held.add(id) });
            return Ok(());
        }
        self.renew(link)?;
        self.begin();
        let before = self.held.newest;
        // Also where there is always something fresh: what the fallen had must not wait for an empty stream.
        if self.has_given_back || self.looked.is_past(BUSY_LOOK_NS.min(self.silence_ns)) {
            self.take_again(link, limit, handler)?;
            if self.held.newest > before {
                return Ok(());
            }
        }
        self.take_fresh(link, limit, handler)?;
        let is_empty = self.held.newest == before;
        let is_due = self.next != Id::START || self.looked.is_past(LOOK_NS.min(self.silence_ns / 2));
        if is_empty && is_due { self.take_again(link, limit, handler) } else { Ok(()) }
    }
}

impl Queue for StreamAtLeastOnce {
    const GIVES_BACK: bool = true;

    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut Link, has_kept_all: bool) -> Result<bool, ServerError> {
        // A server that has come back may have given them to others, and what was said last may not have come.
        self.sure = None;
        self.consumer.join(link)?;
        if !has_kept_all {
            self.return_kept(link)?;
        }
        Ok(self.consumer.has_changed())
    }

    fn forget(&mut self) {
        self.consumer.forget();
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        self.take_some(link, limit, handler)?;
        self.consumer.check(link)
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.renew(link)?;
        self.begin();
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(SHORTEST_SLEEP);
        let before = self.renewed.restarted();
        self.consumer.ask(link, 1, &["BLOCK", &timeout.as_millis().to_string()])?;
        let kept = &mut self.kept;
        link.answer_of(1, timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| *kept = Some((before, entry.id, entry.whole().into_owned())))
        })?;
        self.consumer.check(link)
    }

    fn is_holding(&self) -> bool {
        !self.held.entries.is_empty()
    }

    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let mut others = 0;
        for ids in self.held.ids().chunks(MOST_IDS) {
            // What is done comes to nobody again, however long it took.
            let is_done = self.is_sure() && self.consumer.acknowledge_own(link, ids)? == ids.len();
            if !is_done {
                others += self.consumer.acknowledge(link, ids)?;
            }
        }
        self.held.entries.clear();
        if others > 0 { Err(ServerError::NotAcknowledged(others as u64)) } else { Ok(()) }
    }

    fn give_back(&mut self, link: &mut Link, tag: u64) -> Result<bool, ServerError> {
        let Some(id) = self.held.entry(tag) else { return Ok(false) };
        link.send(&self.consumer.giving_back(&[id]))?;
        let count = link.answer(TIMEOUT, |items| items.integer())?;
        self.held.remove(tag);
        (self.next, self.has_given_back) = (Id::START, true);
        Ok(count > 0)
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.return_kept(link)?;
        for ids in self.held.ids().chunks(MOST_IDS) {
            link.tell(&self.consumer.giving_back(ids))?;
        }
        self.consumer.leave(link)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_bus_api::Delivery;

    use super::*;

    #[test]
    fn nobody_is_sure_of_what_others_may_claim_at_once() {
        let clock = HostClock::get().unwrap();
        let puller = |silence_ns| {
            let config = QueueConfig { silence_ns, ..QueueConfig::new(Delivery::AtLeastOnce) };
            StreamAtLeastOnce::new("orders", &config, clock)
        };
        // What the server takes for a millisecond may be over at once.
        for silence_ns in [0, 1, 1_000_000, ROUNDED_NS] {
            let mut hasty = puller(silence_ns);
            hasty.begin();
            assert!(!hasty.is_sure(), "{silence_ns}");
        }
        let mut patient = puller(3_600_000_000_000);
        assert!(!patient.is_sure(), "it has asked for nothing");
        patient.begin();
        assert!(patient.is_sure());
    }
}
