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

use tickpath_bus_api::{PulledMessage, QueueConfig};
use tickpath_clock::HostClock;

use crate::batch_size::BatchSizer;
use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::puller::{MIN_SLEEP, PullHandler, RedisQueue, decode_message};
use crate::server::TIMEOUT;
use crate::stream::{EntryId, read_reply};
use crate::stream_group::GroupConsumer;

/// Interval at which an idle puller looks for entries that others returned, in nanoseconds.
const IDLE_CLAIM_NS: u64 = 100_000_000;

/// Interval at which a busy puller does so, in nanoseconds.
const BUSY_CLAIM_NS: u64 = 1_000_000_000;

const MAX_IDS: usize = 1000;

/// Max time by which the server may find a silence limit exceeded too early, as it counts whole milliseconds, in
/// nanoseconds.
const ROUNDING_NS: u64 = 2_000_000;

pub(crate) struct StreamAtLeastOnce {
    consumer: GroupConsumer,
    silence_ns: u64,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    last_heartbeat: HostInstant,
    /// Time since which the held entries are certain: no other puller can claim them before half of the silence limit
    /// has passed. None if others may have them already.
    owned_since: Option<HostInstant>,
    last_claim: HostInstant,
    /// Entry at which the next claim continues.
    claim_cursor: EntryId,
    /// True if an entry was returned, and not all pending entries were scanned since.
    has_given_back: bool,
    portion: BatchSizer,
    pending: PendingEntries,
    /// Entry that came during a sleep, and a time at which it had not come yet.
    prefetched: Option<(HostInstant, EntryId, Vec<u8>)>,
}

/// Entries handed over and not acknowledged: tag and id, in the order of arrival.
#[derive(Default)]
struct PendingEntries {
    /// Tag of the last entry.
    newest: u64,
    entries: Vec<(u64, EntryId)>,
}

impl PendingEntries {
    fn add(&mut self, id: EntryId) -> u64 {
        self.newest += 1;
        self.entries.push((self.newest, id));
        self.newest
    }

    /// Adds an entry that may be held already, and replaces its tag.
    fn add_redelivered(&mut self, id: EntryId) -> u64 {
        self.entries.retain(|&(_, pending)| pending != id);
        self.add(id)
    }

    fn id_of(&self, tag: u64) -> Option<EntryId> {
        let index = self.entries.binary_search_by_key(&tag, |&(tag, _)| tag);
        index.ok().map(|index| self.entries[index].1)
    }

    fn remove(&mut self, tag: u64) {
        self.entries.retain(|&(pending, _)| pending != tag);
    }

    /// Returns the ids of all entries, in the order of the stream.
    fn ids(&self) -> Vec<EntryId> {
        let mut ids: Vec<EntryId> = self.entries.iter().map(|&(_, id)| id).collect();
        ids.sort_unstable();
        ids
    }
}

impl StreamAtLeastOnce {
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let now = HostInstant::now(clock);
        Self {
            consumer: GroupConsumer::new(queue, config, clock),
            silence_ns: config.silence_ns,
            foreign: config.foreign,
            last_heartbeat: now,
            owned_since: None,
            last_claim: now,
            claim_cursor: EntryId::START,
            has_given_back: false,
            portion: BatchSizer::new(),
            pending: PendingEntries::default(),
            prefetched: None,
        }
    }

    /// Returns the entry that came during a sleep: any puller can claim it, unless another one already has.
    fn return_prefetched(&mut self, link: &mut RedisConnection) -> ServerResult {
        let Some((_, id, _)) = self.prefetched.take() else { return Ok(()) };
        (self.claim_cursor, self.has_given_back) = (EntryId::START, true);
        link.send_unanswered(&self.consumer.return_undelivered_command(id))
    }

    /// Sends a heartbeat when one is due. Entries that others have claimed stay theirs.
    fn send_heartbeat(&mut self, link: &mut RedisConnection) -> ServerResult {
        if !self.last_heartbeat.is_older_than(self.silence_ns / 3) {
            return Ok(());
        }
        self.last_heartbeat = self.last_heartbeat.restarted();
        self.owned_since = self.owns_pending().then_some(self.last_heartbeat);
        for ids in self.pending.ids().chunks(MAX_IDS) {
            link.send_unanswered(&self.consumer.reset_idle_command(ids))?;
        }
        Ok(())
    }

    /// Returns whether no other puller can have the held entries.
    fn owns_pending(&self) -> bool {
        self.owned_since.is_some_and(|since| !since.is_older_than(self.silence_ns.saturating_sub(ROUNDING_NS) / 2))
    }

    /// Starts a request for entries. If none are held, those that come are certain from now on.
    fn mark_owned(&mut self) {
        if self.pending.entries.is_empty() && self.prefetched.is_none() {
            self.owned_since = Some(self.last_claim.restarted());
        }
    }

    /// Takes entries never delivered before.
    fn take_new(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        let asked = self.portion.limit(limit);
        self.consumer.request_new(link, asked, &[])?;
        let (pending, portion, foreign) = (&mut self.pending, &mut self.portion, self.foreign);
        let mut outcome = Ok(());
        link.receive_messages(asked, TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let whole = entry.message_or_json();
                portion.record_size(whole.len());
                match decode_message(&whole, foreign) {
                    Ok(message) => {
                        let tag = pending.add(entry.id);
                        handler(PulledMessage { message, redelivered: false, deliveries: Some(1), tag });
                    }
                    // The foreign entry stays as it is, in the stream.
                    Err(refused) => outcome = Err(refused),
                }
            })
        })?;
        outcome
    }

    /// Claims entries that others returned, or held when they died.
    fn claim_returned(
        &mut self,
        link: &mut RedisConnection,
        limit: usize,
        handler: &mut PullHandler<'_>,
    ) -> ServerResult {
        self.last_claim = self.last_claim.restarted();
        let (pending, portion, foreign) = (&mut self.pending, &mut self.portion, self.foreign);
        let mut outcome = Ok(());
        let limit = portion.limit(limit);
        self.claim_cursor = self.consumer.claim(link, limit, self.claim_cursor, &mut |entry, deliveries| {
            let whole = entry.message_or_json();
            portion.record_size(whole.len());
            match decode_message(&whole, foreign) {
                Ok(message) => {
                    let tag = pending.add_redelivered(entry.id);
                    handler(PulledMessage { message, redelivered: true, deliveries: Some(deliveries), tag });
                }
                Err(refused) => outcome = Err(refused),
            }
        })?;
        if self.claim_cursor == EntryId::START {
            self.has_given_back = false;
        }
        outcome
    }

    /// Takes entries: a kept one, returned ones or new ones.
    fn take_batch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        // Another puller may have got it meanwhile, and acknowledged it.
        if self.prefetched.as_ref().is_some_and(|(before, ..)| before.is_older_than(self.silence_ns / 2)) {
            self.return_prefetched(link)?;
        }
        if let Some((_, id, bytes)) = self.prefetched.take() {
            let message = decode_message(&bytes, self.foreign)?;
            handler(PulledMessage { message, redelivered: false, deliveries: Some(1), tag: self.pending.add(id) });
            return Ok(());
        }
        self.send_heartbeat(link)?;
        self.mark_owned();
        let before = self.pending.newest;
        // Also on a stream that always has new entries: entries of dead pullers must not wait for an empty stream.
        if self.has_given_back || self.last_claim.is_older_than(BUSY_CLAIM_NS.min(self.silence_ns)) {
            self.claim_returned(link, limit, handler)?;
            if self.pending.newest > before {
                return Ok(());
            }
        }
        self.take_new(link, limit, handler)?;
        let is_empty = self.pending.newest == before;
        let is_due = self.claim_cursor != EntryId::START
            || self.last_claim.is_older_than(IDLE_CLAIM_NS.min(self.silence_ns / 2));
        if is_empty && is_due { self.claim_returned(link, limit, handler) } else { Ok(()) }
    }
}

impl RedisQueue for StreamAtLeastOnce {
    const GIVES_BACK: bool = true;

    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut RedisConnection, has_retained_all: bool) -> ServerResult<bool> {
        // A server that has come back may have given them to others, and the last heartbeat may not have arrived.
        self.owned_since = None;
        self.consumer.join(link)?;
        if !has_retained_all {
            self.return_prefetched(link)?;
        }
        Ok(self.consumer.take_replaced())
    }

    fn accept_any_queue(&mut self) {
        self.consumer.accept_any_stream();
    }

    fn fetch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        self.take_batch(link, limit, handler)?;
        self.consumer.check(link)
    }

    fn wait_for_message(&mut self, link: &mut RedisConnection, timeout: Duration) -> ServerResult {
        if self.prefetched.is_some() {
            return Ok(());
        }
        self.send_heartbeat(link)?;
        self.mark_owned();
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(MIN_SLEEP);
        let before = self.last_heartbeat.restarted();
        self.consumer.request_new(link, 1, &["BLOCK", &timeout.as_millis().to_string()])?;
        let kept = &mut self.prefetched;
        link.receive_messages(1, timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| *kept = Some((before, entry.id, entry.message_or_json().into_owned())))
        })?;
        self.consumer.check(link)
    }

    fn has_unacknowledged(&self) -> bool {
        !self.pending.entries.is_empty()
    }

    fn acknowledge(&mut self, link: &mut RedisConnection) -> ServerResult {
        let mut others = 0;
        for ids in self.pending.ids().chunks(MAX_IDS) {
            // An acknowledged entry is never delivered again, however long the command took.
            let is_done = self.owns_pending() && self.consumer.acknowledge_own(link, ids)? == ids.len();
            if !is_done {
                others += self.consumer.acknowledge(link, ids)?;
            }
        }
        self.pending.entries.clear();
        if others > 0 { Err(RedisServerError::NotAcknowledged(others as u64)) } else { Ok(()) }
    }

    fn give_back(&mut self, link: &mut RedisConnection, tag: u64) -> ServerResult<bool> {
        let Some(id) = self.pending.id_of(tag) else { return Ok(false) };
        link.send(&self.consumer.give_back_command(&[id]))?;
        let count = link.receive_reply(TIMEOUT, |items| items.integer())?;
        self.pending.remove(tag);
        (self.claim_cursor, self.has_given_back) = (EntryId::START, true);
        Ok(count > 0)
    }

    fn return_unacknowledged(&mut self, link: &mut RedisConnection) -> ServerResult {
        self.return_prefetched(link)?;
        for ids in self.pending.ids().chunks(MAX_IDS) {
            link.send_unanswered(&self.consumer.give_back_command(ids))?;
        }
        self.consumer.leave(link)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_bus_api::DeliveryGuarantee;

    use super::*;

    #[test]
    fn a_puller_never_owns_entries_under_a_tiny_silence_limit() {
        let clock = HostClock::get().unwrap();
        let puller = |silence_ns| {
            let config = QueueConfig { silence_ns, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
            StreamAtLeastOnce::new("orders", &config, clock)
        };
        // The server may treat a silence limit of a millisecond as exceeded at once.
        for silence_ns in [0, 1, 1_000_000, ROUNDING_NS] {
            let mut hasty = puller(silence_ns);
            hasty.mark_owned();
            assert!(!hasty.owns_pending(), "{silence_ns}");
        }
        let mut patient = puller(3_600_000_000_000);
        assert!(!patient.owns_pending(), "it has asked for nothing");
        patient.mark_owned();
        assert!(patient.owns_pending());
    }
}
