//! The claim protocol of a queue: no files, no processes, only words in their order.
//!
//! ```text
//!   0     magic and format version · 8 capacity: owner words, a power of two
//!   64    fallen: how often a puller has gone
//!   4096  slots of pullers, 64 bytes each: epoch, and free 0, active 1 or ended 2 in the low two bits
//!   8192  owner words, 8 bytes each: message s has word s % capacity, and is of lap s / capacity
//!
//!   owner word     63 ──────────────────────────────────── 2 1 0
//!   free           lap                                      │ 0
//!   claimed        epoch, from 24 │ lap, from 8 │ slot, 2   │ 1     to be acknowledged
//!   taken          the same                                 │ 2     handed over for good
//!   done           lap + 1                                  │ 0     which is: free for the next lap
//!
//!   free ──CAS──> claimed ──store──> done         claimed, its puller gone ──CAS──> claimed by another, redelivered
//!     └───CAS──> taken ────store──> done          taken, its puller gone ────CAS──> done
//! ```
//!
//! The group's cursor, in the control file, is the oldest message that is not done. The writer recycles only what lies
//! before it, so whatever is claimed stays where it is.
//!
//! **No stale word passes for the present one.** There are at least as many words as frames fit the ring, and a segment
//! is recycled only when the cursor has passed all its messages. So message s + capacity is there only after s is done,
//! and from the moment when s can be read its word is free for s, then claims s, then says that s is done. Free and
//! done hold their whole lap: 62 bits are enough for every sequence number of 64 bits, nothing wraps around, and a word
//! is free for s once in the life of the log. A CAS from it is therefore right however late it comes. A claim holds
//! only 16 bits of its lap. Who finds one whose puller is gone looks at the cursor after the word: if the cursor has
//! not passed s, there is no later lap yet; and a claim of that puller's epoch is not made again, so that the CAS is
//! right, too. Epochs have 40 bits: a slot would have to be opened a million million times while a claim lies there.
//!
//! **A puller may be killed between any two instructions.** Its slot ends, and whoever then walks from the cursor on
//! finds what it left:
//!
//! * before the CAS: the message is free;
//! * claimed and not handed over, or handed over and not acknowledged: another one claims it, as redelivered (taken:
//!   it counts as handed over);
//! * acknowledged in part: each message is done or claimed by itself;
//! * done, but the cursor was not moved: the next one who moves it passes over what is done, whoever did it;
//! * while it moved the cursor: the cursor only grows, and what lies before it is done;
//! * while it ended another's slot, or its own: the slot is not free yet and its lock has fallen, so the next one who
//!   looks ends it again; to be told twice that somebody has fallen costs one walk;
//! * while it took over what another had left: the word is claimed by the one or by the other, both of them gone.

use crate::control::Control;
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering};

/// Pullers that one queue can have; few for a model.
pub const MAX_PULLERS: usize = if cfg!(loom) { 2 } else { 64 };

const _: () = assert!(MAX_PULLERS <= 64, "an owner word has six bits for its puller's slot");

const MAGIC: u64 = u64::from_le_bytes(*b"TICKQUE1");
const CAPACITY: usize = 8;
const FALLEN: usize = if cfg!(loom) { 16 } else { 64 };
const SLOTS: usize = if cfg!(loom) { 24 } else { 4096 };
const SLOT_BYTES: usize = if cfg!(loom) { 8 } else { 64 };
const OWNERS: usize = SLOTS + MAX_PULLERS * SLOT_BYTES;

/// The low two bits of a slot's word (zero if it is free), and of an owner word (zero if it holds no claim).
const STATE: u64 = 3;
const ACTIVE: u64 = 1;
const ENDED: u64 = 2;
const CLAIMED: u64 = 1;
const TAKEN: u64 = 2;

const STATE_BITS: u32 = 2;
const LAP_SHIFT: u32 = 8;
const LAP_MASK: u64 = (1 << 16) - 1;
const EPOCH_SHIFT: u32 = 24;
const EPOCH_MASK: u64 = (1 << 40) - 1;

/// What becomes of a message whose puller goes before it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is gone: it was handed over.
    AtMostOnce,
    /// Another puller gets it, marked as redelivered.
    AtLeastOnce,
}

/// The words of a queue.
#[derive(Clone)]
pub(crate) struct Claims {
    region: Region,
    control: Control,
    /// The capacity is two to the power of this.
    shift: u32,
}

/// A puller, as owner words name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimant {
    pub slot: usize,
    epoch: u64,
    state: u64,
}

/// A message that is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody had it before.
    First,
    /// A puller that is gone had claimed it.
    Again,
}

impl Claims {
    /// The words of a queue with so many owner words, in a region of [`Self::bytes`].
    pub fn new(region: Region, control: Control, capacity: u64) -> Self {
        assert!(capacity.is_power_of_two(), "a mask finds a message's word");
        Self { region, control, shift: capacity.trailing_zeros() }
    }

    /// Bytes that so many owner words take with what lies before them.
    pub fn bytes(capacity: u64) -> usize {
        OWNERS + capacity as usize * 8
    }

    /// Makes fresh words those of a queue.
    pub fn mark(&self) {
        self.region.word(CAPACITY).store(self.capacity(), Ordering::Relaxed);
        self.region.word(0).store(MAGIC, Ordering::Release);
    }

    /// True if the words are those of a queue with this capacity.
    pub fn is_marked(&self) -> bool {
        let magic = self.region.word(0).load(Ordering::Acquire);
        (magic, self.region.word(CAPACITY).load(Ordering::Relaxed)) == (MAGIC, self.capacity())
    }

    /// How many messages have a word of their own.
    pub fn capacity(&self) -> u64 {
        1 << self.shift
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The oldest message that is not done.
    #[inline(always)]
    pub fn cursor(&self) -> u64 {
        self.control.group().unwrap_or(0)
    }

    /// How often a puller has gone: a change means that its claims are to be found from the cursor on.
    #[inline(always)]
    pub fn fallen(&self) -> u64 {
        // Pairs with the release in `leave`: its slot has ended.
        self.region.word(FALLEN).load(Ordering::Acquire)
    }

    /// Takes a slot. Whoever calls this holds the slot's lock.
    pub fn join(&self, slot: usize, delivery: Delivery) -> Claimant {
        self.leave(slot);
        let epoch = (self.slot(slot).load(Ordering::Relaxed) >> STATE_BITS) + 1;
        self.slot(slot).store(epoch << STATE_BITS | ACTIVE, Ordering::Release);
        let state = match delivery {
            Delivery::AtMostOnce => TAKEN,
            Delivery::AtLeastOnce => CLAIMED,
        };
        Claimant { slot, epoch: epoch & EPOCH_MASK, state }
    }

    /// Ends who has the slot, if somebody does: what it has claimed is nobody's from here on. Same rule.
    pub fn leave(&self, slot: usize) {
        let word = self.slot(slot);
        let found = word.load(Ordering::Relaxed);
        if found & STATE == 0 {
            return;
        }
        // Pairs with the acquire in `is_active`: all that the puller did with its messages was before.
        word.store(found & !STATE | ENDED, Ordering::Release);
        self.region.word(FALLEN).fetch_add(1, Ordering::AcqRel);
        word.store(found & !STATE, Ordering::Release);
    }

    /// The slots that are not free.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_PULLERS).filter(|&slot| self.slot(slot).load(Ordering::Acquire) & STATE != 0)
    }

    /// Claims a message that can be read, if it is free or its puller is gone.
    #[inline(always)]
    pub fn claim(&self, sequence: u64, owner: Claimant) -> Option<Claim> {
        let word = self.word(sequence);
        // Pairs with the release below: who sees a claim sees its puller's slot, and the cursor that it saw.
        let found = word.load(Ordering::Acquire);
        let claim = if found == self.free(sequence) {
            Claim::First
        } else if self.is_left(found, CLAIMED, sequence) {
            Claim::Again
        } else {
            return None;
        };
        let ours = owner.state
            | (owner.slot as u64) << STATE_BITS
            | (self.lap(sequence) & LAP_MASK) << LAP_SHIFT
            | owner.epoch << EPOCH_SHIFT;
        word.compare_exchange(found, ours, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| claim)
    }

    /// Marks a message done that the caller has claimed, and whose bytes it does not look at any more.
    #[inline(always)]
    pub fn finish(&self, sequence: u64) {
        // Pairs with the acquire in `is_done`: what we read of the message was read before it is recycled.
        self.word(sequence).store(self.done(sequence), Ordering::Release);
    }

    /// Moves the cursor over all that is done. After messages were finished, and whenever somebody has fallen.
    pub fn advance(&self) {
        let mut next = self.cursor();
        loop {
            while self.is_done(next) {
                next += 1;
            }
            // Two who finish neighbours at once may both have found the other's not done. Whoever moves the cursor
            // second acquires what the first one released there, looks once more, and sees it.
            next = self.control.advance_group(next);
            if !self.is_done(next) {
                return;
            }
        }
    }

    /// How many messages before `tail` are neither claimed nor done; what pullers in `gone`, a bit a slot, hold counts
    /// as not claimed.
    pub fn waiting(&self, tail: u64, gone: u64) -> u64 {
        let waits = |&sequence: &u64| {
            let found = self.word(sequence).load(Ordering::Acquire);
            let is_gone = found & STATE == CLAIMED && gone >> slot_of(found) & 1 == 1;
            is_gone || found == self.free(sequence) || self.is_left(found, CLAIMED, sequence)
        };
        (self.cursor()..tail).filter(waits).count() as u64
    }

    /// Brings all words in line with a log that holds the messages from `oldest` up to before `tail`: of a new queue,
    /// and of one on a disk that has kept one page and lost another with its host. What fits stays, so pullers may be
    /// at work; nobody pushes.
    pub fn restore(&self, oldest: u64, tail: u64) {
        let found = self.control.group();
        let cursor = found.unwrap_or(oldest).clamp(oldest, tail);
        let mut repaired = false;
        for sequence in cursor..cursor + self.capacity() {
            let word = self.word(sequence);
            if !self.is_in_line(word.load(Ordering::Acquire), sequence, tail) {
                word.store(self.free(sequence), Ordering::Release);
                repaired = true;
            }
        }
        if repaired {
            // Whoever has passed such a message must come back to it.
            self.region.word(FALLEN).fetch_add(1, Ordering::AcqRel);
        }
        if found != Some(cursor) {
            self.control.set_group(cursor);
        }
    }

    /// True if this message can have this word while the cursor has not passed it.
    fn is_in_line(&self, word: u64, sequence: u64, tail: u64) -> bool {
        // Claims of a puller whose slot was lost would wait for an epoch to end that has not begun.
        let is_claim = || self.is_claim_of(word, sequence) && epoch_of(word) <= self.slot_parts(slot_of(word)).0;
        word == self.free(sequence) || sequence < tail && (word == self.done(sequence) || is_claim())
    }

    /// True if the message is done; one that was taken by a puller that is gone becomes so.
    fn is_done(&self, sequence: u64) -> bool {
        let word = self.word(sequence);
        // Pairs with the release in `finish`.
        let (found, done) = (word.load(Ordering::Acquire), self.done(sequence));
        found == done
            || self.is_left(found, TAKEN, sequence)
                && word.compare_exchange(found, done, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// True if this word of the message is in this state and its puller is gone. The word was read with acquire.
    #[inline]
    fn is_left(&self, word: u64, state: u64, sequence: u64) -> bool {
        word & STATE == state
            && self.is_claim_of(word, sequence)
            && !self.is_active(word)
            // Looked at after the word: while the cursor has not passed the message, the word is not a later one's.
            && self.cursor() <= sequence
    }

    /// True if the word claims the message, or a message of a far lap.
    fn is_claim_of(&self, word: u64, sequence: u64) -> bool {
        matches!(word & STATE, CLAIMED | TAKEN) && word >> LAP_SHIFT & LAP_MASK == self.lap(sequence) & LAP_MASK
    }

    /// True if the puller that made this claim has its slot still.
    fn is_active(&self, word: u64) -> bool {
        self.slot_parts(slot_of(word)) == (epoch_of(word), ACTIVE)
    }

    /// Epoch and state of a slot.
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
