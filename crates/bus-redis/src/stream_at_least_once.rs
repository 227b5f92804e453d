//! Queue on a stream: an entry stays pending with its puller until it is acknowledged.
//!
//! An entry that has been pending for longer than the silence limit is claimed by another puller; where pullers have
//! different limits, the longest limit of those that hold something counts. A heartbeat of a puller restarts that time
//! for its entries; returned entries are marked as idle for long.
//!
//! ```text
//!   request, or heartbeat ────────── half of the limit ───────────── the silence limit
//!        no other puller can have it: XACK     others may: the server checks the owner, and reports it
//! ```
//! So an early acknowledgement costs two plain commands. The other half of the limit covers a server's clock that runs
//! fast, and the commands' way to the server. If the commands are delayed for longer than that, or the server's clock
//! is set forward, they may acknowledge entries that another puller was given meanwhile. Such an entry is never
//! delivered again, as the acknowledgement reports; the other puller has a copy of it.

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

/// Interval at which an idle puller looks for entries that others returned, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// Interval at which a busy puller does so, in nanoseconds.
const BUSY_LOOK_NS: u64 = 1_000_000_000;

/// Max number of entries in one command.
const MOST_IDS: usize = 1000;

/// Max time by which the server may find a silence limit exceeded too early, as it counts whole milliseconds, in
/// nanoseconds.
const ROUNDED_NS: u64 = 2_000_000;

/// State of one puller.
pub(crate) struct StreamAtLeastOnce {
    consumer: Consumer,
    silence_ns: u64,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    /// Time of the last heartbeat.
    renewed: Moment,
    /// Time since which the held entries are certain: no other puller can claim them before half of the silence limit
    /// has passed. None if others may have them already.
    sure: Option<Moment>,
    /// Time of the last claim.
    looked: Moment,
    /// Entry at which the next claim continues.
    next: Id,
    /// True if an entry was returned, and not all pending entries were scanned since.
    has_given_back: bool,
    portion: Portion,
    held: Held,
    /// Entry that came during a sleep, and a time at which it had not come yet.
    kept: Option<(Moment, Id, Vec<u8>)>,
}

/// Entries handed over and not acknowledged: tag and id, in the order of arrival.
#[derive(Default)]
struct Held {
    /// Tag of the last entry.
    newest: u64,
    entries: Vec<(u64, Id)>,
}

impl Held {
    /// Adds an entry; returns its tag.
    fn add(&mut self, id: Id) -> u64 {
        self.newest += 1;
        self.entries.push((self.newest, id));
        self.newest
    }

    /// Adds an entry that may be held already, and replaces its tag.
    fn add_again(&mut self, id: Id) -> u64 {
        self.entries.retain(|&(_, held)| held != id);
        self.add(id)
    }

    /// Returns the entry of a tag.
    fn entry(&self, tag: u64) -> Option<Id> {
        let at = self.entries.binary_search_by_key(&tag, |&(tag, _)| tag);
        at.ok().map(|at| self.entries[at].1)
    }

    /// Removes the entry of a tag.
    fn remove(&mut self, tag: u64) {
        self.entries.retain(|&(held, _)| held != tag);
    }

    /// Returns the ids of all entries, in the order of the stream.
    fn ids(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.entries.iter().map(|&(_, id)| id).collect();
        ids.sort_unstable();
        ids
    }
}

impl StreamAtLeastOnce {
    /// Creates the state of a puller of this queue.
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

    /// Returns the entry that came during a sleep: any puller can claim it, unless another one already has.
    fn return_kept(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Some((_, id, _)) = self.kept.take() else { return Ok(()) };
        (self.next, self.has_given_back) = (Id::START, true);
        link.tell(&self.consumer.giving_back_unseen(id))
    }

    /// Sends a heartbeat when one is due. Entries that others have claimed stay theirs.
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

    /// Returns whether no other puller can have the held entries.
    fn is_sure(&self) -> bool {
        self.sure.is_some_and(|since| !since.is_past(self.silence_ns.saturating_sub(ROUNDED_NS) / 2))
    }

    /// Starts a request for entries. If none are held, those that come are certain from now on.
    fn begin(&mut self) {
        if self.held.entries.is_empty() && self.kept.is_none() {
            self.sure = Some(self.looked.restarted());
        }
    }

    /// Takes entries never delivered before.
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
                    // The foreign entry stays as it is, in the stream.
                    Err(refused) => outcome = Err(refused),
                }
            })
        })?;
        outcome
    }

    /// Claims entries that others returned, or held when they died.
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

    /// Takes entries: a kept one, returned ones or new ones.
    fn take_some(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        // Another puller may have got it meanwhile, and acknowledged it.
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
        // Also on a stream that always has new entries: entries of dead pullers must not wait for an empty stream.
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
        // A server that has come back may have given them to others, and the last heartbeat may not have arrived.
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
            // An acknowledged entry is never delivered again, however long the command took.
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
        // The server may treat a silence limit of a millisecond as exceeded at once.
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
