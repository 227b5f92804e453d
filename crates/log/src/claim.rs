//! Claim protocol of a queue: memory ordering only, without files or processes.
//!
//! ```text
//!   0     magic and format version · 8 capacity: owner words, a power of two
//!   64    rescan_count: requests to search for orphaned claims from the cursor again
//!   4096  slots of pullers, 64 bytes each: epoch, and free 0, active 1 or ended 2 in the low two bits
//!   8192  owner words, 8 bytes each: message s has word s % capacity, and is of lap s / capacity
//!
//!   owner word     63 ──────────────────────────────────── 2 1 0
//!   free           lap                                      │ 0
//!   claimed        epoch, from 24 │ lap, from 8 │ slot, 2   │ 1     to be acknowledged
//!   handed over    the same                                 │ 2     never acknowledged: at most once
//!   done           lap + 1                                  │ 0     the same word as free for the next lap
//!
//!   free ──CAS──> claimed ─────store──> done    claimed, its puller dead ─────CAS──> claimed by another, redelivered
//!     └────CAS──> handed over ─store──> done    handed over, its puller dead ─CAS──> done
//! ```
//!
//! The group's cursor, in the control file, is the oldest message that is not done. The writer recycles only messages
//! before the cursor, so a claimed message stays in place.
//!
//! `docs/design/queue-claims.md` shows that no stale word passes for the present one, and what a puller leaves that is
//! killed between any two instructions: the message is free, claimed for the next puller, or done.

use crate::control::ControlFile;
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering};

/// Max pullers of one queue; few for a model.
pub const MAX_PULLERS: usize = if cfg!(loom) { 2 } else { 64 };

const _: () = assert!(MAX_PULLERS <= 64, "an owner word has six bits for its puller's slot");

const MAGIC: u64 = u64::from_le_bytes(*b"TICKQUE1");
const CAPACITY: usize = 8;
const RESCAN_COUNT: usize = if cfg!(loom) { 16 } else { 64 };
const SLOTS: usize = if cfg!(loom) { 24 } else { 4096 };
const SLOT_BYTES: usize = if cfg!(loom) { 8 } else { 64 };
const OWNERS: usize = SLOTS + MAX_PULLERS * SLOT_BYTES;

/// Low two bits of a slot's word (zero if free), and of an owner word (zero if it holds no claim).
const STATE: u64 = 3;
const ACTIVE: u64 = 1;
const ENDED: u64 = 2;
const CLAIMED: u64 = 1;
const HANDED_OVER: u64 = 2;

const STATE_BITS: u32 = 2;
const LAP_SHIFT: u32 = 8;
const LAP_MASK: u64 = (1 << 16) - 1;
const EPOCH_SHIFT: u32 = 24;
const EPOCH_MASK: u64 = (1 << 40) - 1;

/// Treatment of a message whose puller ends before it acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueDelivery {
    /// The message is lost: it was already handed over.
    AtMostOnce,
    /// Another puller receives the message, marked as redelivered.
    AtLeastOnce,
}

#[derive(Clone)]
pub(crate) struct ClaimTable {
    region: Region,
    pub control: ControlFile,
    /// Base-two logarithm of the capacity.
    shift: u32,
}

/// A puller, as owner words name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimOwner {
    pub slot: usize,
    epoch: u64,
    state: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// No puller had claimed the message before.
    First,
    /// A dead puller had claimed the message.
    Redelivered,
}

impl ClaimTable {
    /// Returns the words of a queue with `capacity` owner words, in a region of [`Self::bytes`].
    pub fn new(region: Region, control: ControlFile, capacity: u64) -> Self {
        assert!(capacity.is_power_of_two(), "a mask finds a message's word");
        Self { region, control, shift: capacity.trailing_zeros() }
    }

    /// Returns the size in bytes of `capacity` owner words and the header before them.
    pub fn bytes(capacity: u64) -> usize {
        OWNERS + capacity as usize * 8
    }

    pub fn write_header(&self) {
        self.region.word(CAPACITY).store(self.capacity(), Ordering::Relaxed);
        self.region.word(0).store(MAGIC, Ordering::Release);
    }

    /// Returns true if the words belong to a queue with this capacity.
    pub fn has_header(&self) -> bool {
        let magic = self.region.word(0).load(Ordering::Acquire);
        (magic, self.region.word(CAPACITY).load(Ordering::Relaxed)) == (MAGIC, self.capacity())
    }

    pub fn capacity(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the sequence number of the oldest message that is not done.
    #[inline(always)]
    pub fn cursor(&self) -> u64 {
        self.control.group_cursor().unwrap_or(0)
    }

    /// Returns the number of requests to search for orphaned claims from the cursor again.
    #[inline(always)]
    pub fn rescan_count(&self) -> u64 {
        // Pairs with the release in `leave`: the puller's slot has ended.
        self.region.word(RESCAN_COUNT).load(Ordering::Acquire)
    }

    /// Takes a slot. The caller must hold the slot's lock.
    pub fn join(&self, slot: usize, delivery: QueueDelivery) -> ClaimOwner {
        self.leave(slot);
        let epoch = (self.slot(slot).load(Ordering::Relaxed) >> STATE_BITS) + 1;
        self.slot(slot).store(epoch << STATE_BITS | ACTIVE, Ordering::Release);
        let state = match delivery {
            QueueDelivery::AtMostOnce => HANDED_OVER,
            QueueDelivery::AtLeastOnce => CLAIMED,
        };
        ClaimOwner { slot, epoch: epoch & EPOCH_MASK, state }
    }

    /// Ends the slot's puller, if it has one: its claims are orphaned then. The caller must hold the slot's lock.
    pub fn leave(&self, slot: usize) {
        let word = self.slot(slot);
        let found = word.load(Ordering::Relaxed);
        if found & STATE == 0 {
            return;
        }
        // Pairs with the acquire in `is_active`: all accesses of the puller to its messages came before.
        word.store(found & !STATE | ENDED, Ordering::Release);
        self.region.word(RESCAN_COUNT).fetch_add(1, Ordering::AcqRel);
        word.store(found & !STATE, Ordering::Release);
    }

    /// Returns the slots that are not free.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_PULLERS).filter(|&slot| self.slot(slot).load(Ordering::Acquire) & STATE != 0)
    }

    /// Claims a readable message, if it is free or its puller is dead.
    #[inline(always)]
    pub fn claim(&self, sequence: u64, owner: ClaimOwner) -> Option<Claim> {
        let word = self.word(sequence);
        // Pairs with the release below: a process that sees a claim sees its puller's slot, and the puller's cursor.
        let found = word.load(Ordering::Acquire);
        let claim = if found == self.free(sequence) {
            Claim::First
        } else if self.is_orphaned(found, CLAIMED, sequence) {
            Claim::Redelivered
        } else {
            return None;
        };
        let claimed = owner.state
            | (owner.slot as u64) << STATE_BITS
            | (self.lap(sequence) & LAP_MASK) << LAP_SHIFT
            | owner.epoch << EPOCH_SHIFT;
        word.compare_exchange(found, claimed, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| claim)
    }

    /// Marks a message done; the caller has claimed it and no longer reads its bytes.
    #[inline(always)]
    pub fn finish(&self, sequence: u64) {
        // Pairs with the acquire in `is_done`: the reads of the message come before its recycling.
        self.word(sequence).store(self.done(sequence), Ordering::Release);
    }

    /// Moves the cursor over all done messages: to be called after messages were finished, or a puller has ended.
    pub fn advance(&self) {
        let mut next = self.cursor();
        loop {
            while self.is_done(next) {
                next += 1;
            }
            // Two pullers that finish neighbours at once may each have found the other's message not done. The second
            // to move the cursor acquires the first one's release there, checks once more, and sees the message done.
            next = self.control.advance_group(next);
            if !self.is_done(next) {
                return;
            }
        }
    }

    /// Returns the number of unclaimed messages before `tail`; claims of pullers in `gone` (slot bits) do not count.
    pub fn backlog(&self, tail: u64, gone: u64) -> u64 {
        let waits = |&sequence: &u64| {
            let found = self.word(sequence).load(Ordering::Acquire);
            let is_gone = found & STATE == CLAIMED && gone >> slot_of(found) & 1 == 1;
            is_gone || found == self.free(sequence) || self.is_orphaned(found, CLAIMED, sequence)
        };
        (self.cursor()..tail).filter(waits).count() as u64
    }

    /// Makes all words agree with a log that holds the messages from `oldest` to before `tail`: for a new queue, and
    /// one of which a crash of the host kept only some pages. Pullers may be active, because words that agree stay.
    pub fn restore(&self, oldest: u64, tail: u64) {
        let found = self.control.group_cursor();
        let cursor = found.unwrap_or(oldest).clamp(oldest, tail);
        let mut repaired = false;
        for sequence in cursor..cursor + self.capacity() {
            let word = self.word(sequence);
            if !self.is_consistent(word.load(Ordering::Acquire), sequence, tail) {
                word.store(self.free(sequence), Ordering::Release);
                repaired = true;
            }
        }
        if repaired {
            // A puller that has passed such a message must return to it.
            self.region.word(RESCAN_COUNT).fetch_add(1, Ordering::AcqRel);
        }
        if found != Some(cursor) {
            self.control.set_group_cursor(cursor);
        }
    }

    /// Returns true if the message can have this word while the cursor has not passed it.
    fn is_consistent(&self, word: u64, sequence: u64, tail: u64) -> bool {
        // A claim whose puller's slot was lost would wait for an epoch that has not begun to end.
        let is_claim = || self.is_claim_of(word, sequence) && epoch_of(word) <= self.slot_parts(slot_of(word)).0;
        word == self.free(sequence) || sequence < tail && (word == self.done(sequence) || is_claim())
    }

    /// Returns true if the message is done; marks a message done that was handed over to a dead puller.
    fn is_done(&self, sequence: u64) -> bool {
        let word = self.word(sequence);
        // Pairs with the release in `finish`.
        let (found, done) = (word.load(Ordering::Acquire), self.done(sequence));
        found == done
            || self.is_orphaned(found, HANDED_OVER, sequence)
                && word.compare_exchange(found, done, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns true if this word of the message, read with acquire, is in this state and its puller is dead.
    #[inline]
    fn is_orphaned(&self, word: u64, state: u64, sequence: u64) -> bool {
        word & STATE == state
            && self.is_claim_of(word, sequence)
            && !self.is_active(word)
            // Checked after the word: while the cursor has not passed the message, the word belongs to no later lap.
            && self.cursor() <= sequence
    }

    /// Returns true if the word claims the message, or one 65,536 laps (or a multiple) away.
    fn is_claim_of(&self, word: u64, sequence: u64) -> bool {
        matches!(word & STATE, CLAIMED | HANDED_OVER) && word >> LAP_SHIFT & LAP_MASK == self.lap(sequence) & LAP_MASK
    }

    /// Returns true if the puller that made this claim still has its slot.
    fn is_active(&self, word: u64) -> bool {
        self.slot_parts(slot_of(word)) == (epoch_of(word), ACTIVE)
    }

    fn slot_parts(&self, slot: usize) -> (u64, u64) {
        let word = self.slot(slot).load(Ordering::Acquire);
        (word >> STATE_BITS & EPOCH_MASK, word & STATE)
    }

    #[inline(always)]
    fn free(&self, sequence: u64) -> u64 {
        self.lap(sequence) << STATE_BITS
    }

    #[inline(always)]
    fn done(&self, sequence: u64) -> u64 {
        (self.lap(sequence) + 1) << STATE_BITS
    }

    #[inline(always)]
    fn lap(&self, sequence: u64) -> u64 {
        sequence >> self.shift
    }

    #[inline(always)]
    fn word(&self, sequence: u64) -> &AtomicU64 {
        self.region.word(OWNERS + (sequence & (self.capacity() - 1)) as usize * 8)
    }

    fn slot(&self, slot: usize) -> &AtomicU64 {
        self.region.word(SLOTS + slot * SLOT_BYTES)
    }
}

fn slot_of(claim: u64) -> usize {
    // Six bits; a model has fewer slots.
    (claim >> STATE_BITS) as usize % MAX_PULLERS
}

fn epoch_of(claim: u64) -> u64 {
    claim >> EPOCH_SHIFT
}
