//! Control file: the words that readers write. Separate from the data, so that readers can map the data read-only.
//!
//! ```text
//!   0    magic and format version
//!   64   sleepers: 1 while a reader sleeps (a futex) · 72 readers: registered ones · 80 barrier: fence kind ·
//!        88 joined: times a cursor came, or went back · 96 mandatory: 1 if cursor 0 is the mandatory reader's
//!   128  group: the oldest message of a queue that is not done, plus one; zero if the log is no queue
//!   4096 cursors, 64 bytes each: state, sequence number to be read next, process id
//! ```
//! The line at 64 is the only one that a writer reads for each message; it changes when a reader comes, leaves or
//! sleeps, and otherwise stays in the writer's cache, however many readers there are.
//!
//! A log may name a mandatory reader, without which the log counts as unread. Cursor 0 is its own, and stays when it
//! leaves (`AWAY`), so that no message it has not read is recycled. In such a log only this reader is counted: a
//! recorder does not make the log a read one, and does not hide the death of the mandatory reader.

use crate::region::Region;
use crate::sync::{AtomicU64, Ordering};

pub(crate) const CONTROL_BYTES: usize = CURSORS + MAX_READERS * CURSOR_BYTES;

/// Max registered readers of one log; few for a model, which checks each.
pub const MAX_READERS: usize = if cfg!(loom) { 2 } else { 256 };

pub(crate) const SLEEPERS: usize = 64;
const READERS: usize = 72;
const BARRIER: usize = 80;
const JOINED: usize = 88;
const NAMED: usize = 96;
/// Not on the writer's line: pullers move the group's cursor after each batch, and the writer reads it once a segment.
const GROUP: usize = if cfg!(loom) { 104 } else { 128 };
const CURSORS: usize = if cfg!(loom) { 128 } else { 4096 };
const CURSOR_BYTES: usize = 64;
const FREE: u64 = 0;
const ACTIVE: u64 = 1;
const AWAY: u64 = 2;
/// Slot of the mandatory reader, where a log names one.
pub(crate) const MANDATORY: usize = 0;

#[derive(Clone)]
pub(crate) struct ControlFile {
    pub region: Region,
}

/// A registered reader, as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderInfo {
    /// Slot of its cursor.
    pub slot: usize,
    /// Sequence number that it will read next.
    pub cursor: u64,
    /// Process id; 0 while the reader is away.
    pub pid: u32,
    /// Set if it is the mandatory reader and away: its cursor gates the writer all the same.
    pub away: bool,
}

impl ControlFile {
    pub fn magic(&self) -> &AtomicU64 {
        self.region.word(0)
    }

    pub fn barrier(&self) -> &AtomicU64 {
        self.region.word(BARRIER)
    }

    #[cfg(not(loom))]
    #[inline]
    pub fn sleepers(&self) -> &std::sync::atomic::AtomicU32 {
        self.region.half_word(SLEEPERS)
    }

    #[cfg(not(loom))]
    #[inline(always)]
    pub fn wake_sleepers(&self) {
        let sleepers = self.sleepers();
        if sleepers.load(Ordering::Relaxed) != 0 {
            tickpath_clock::wake_all(sleepers);
        }
    }

    /// Returns the number of readers that count: the registered ones, or only the mandatory one where the log names it.
    #[inline(always)]
    pub fn readers(&self) -> u64 {
        self.region.word(READERS).load(Ordering::Relaxed)
    }

    /// Names the mandatory reader, which is away and needs all messages from `sequence` on. Only for the log's writer.
    pub fn add_mandatory(&self, sequence: u64) {
        self.cursor(MANDATORY).store(sequence, Ordering::Relaxed);
        self.word(MANDATORY, 0).store(AWAY, Ordering::SeqCst);
        self.region.word(READERS).store(0, Ordering::SeqCst);
        self.region.word(NAMED).store(1, Ordering::SeqCst);
    }

    pub fn has_mandatory(&self) -> bool {
        self.region.word(NAMED).load(Ordering::SeqCst) != 0
    }

    /// Marks the mandatory reader as present; its cursor stays where it is. The caller must hold the slot's lock.
    pub fn set_mandatory_present(&self, pid: u32) {
        self.word(MANDATORY, 16).store(u64::from(pid), Ordering::Relaxed);
        self.word(MANDATORY, 0).store(ACTIVE, Ordering::SeqCst);
        // Counted last, and uncounted first: a reader killed in between is away.
        self.region.word(READERS).store(1, Ordering::SeqCst);
        self.request_cursor_check();
    }

    /// Marks the mandatory reader as away; its cursor stays. The caller must hold the slot's lock.
    pub fn set_mandatory_away(&self) {
        self.region.word(READERS).store(0, Ordering::SeqCst);
        self.word(MANDATORY, 16).store(0, Ordering::Relaxed);
        self.word(MANDATORY, 0).store(AWAY, Ordering::SeqCst);
    }

    /// Takes a cursor that starts at `sequence`. The caller must hold the slot's lock, or be alone.
    pub fn activate(&self, slot: usize, sequence: u64, pid: u32) {
        self.cursor(slot).store(sequence, Ordering::Relaxed);
        self.word(slot, 16).store(u64::from(pid), Ordering::Relaxed);
        // A slot that its dead owner left active is counted already.
        if self.word(slot, 0).swap(ACTIVE, Ordering::SeqCst) == FREE && !self.has_mandatory() {
            self.region.word(READERS).fetch_add(1, Ordering::SeqCst);
        }
        self.request_cursor_check();
    }

    /// Requests a new check of all cursors from the writer: one has joined, or has gone back.
    pub fn request_cursor_check(&self) {
        self.region.word(JOINED).fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of times a cursor joined or went back: a change makes the writer check all cursors again.
    pub fn joined(&self) -> u64 {
        self.region.word(JOINED).load(Ordering::SeqCst)
    }

    /// Frees a cursor; that of the mandatory reader stays. The caller must hold the slot's lock.
    pub fn release(&self, slot: usize) {
        let names = self.has_mandatory();
        if names && slot == MANDATORY {
            return self.set_mandatory_away();
        }
        if !names && self.word(slot, 0).load(Ordering::SeqCst) == ACTIVE {
            // Uncounted before it is free: a reader killed in between makes the count too low, never too high.
            let counted = self.region.word(READERS);
            let _ = counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |readers| readers.checked_sub(1));
        }
        self.word(slot, 0).store(FREE, Ordering::SeqCst);
    }

    /// Returns the oldest message that is not done, if the log is a queue.
    #[inline(always)]
    pub fn group_cursor(&self) -> Option<u64> {
        // Pairs with the release of the puller that moved the cursor: messages before it are done and no longer read.
        self.region.word(GROUP).load(Ordering::Acquire).checked_sub(1)
    }

    /// Moves the group's cursor forward, never back; returns where it is now.
    pub fn advance_group(&self, to: u64) -> u64 {
        self.region.word(GROUP).fetch_max(to + 1, Ordering::AcqRel).max(to + 1) - 1
    }

    /// Makes the log a queue whose oldest message is this one. The caller must be the log's writer.
    pub fn set_group_cursor(&self, oldest: u64) {
        // Pairs with the acquire of a puller that opens the queue: its owner words agree with the log.
        self.region.word(GROUP).store(oldest + 1, Ordering::Release);
    }

    /// Returns the word that holds the sequence number to be read next.
    #[inline(always)]
    pub fn cursor(&self, slot: usize) -> &AtomicU64 {
        self.word(slot, 8)
    }

    /// Returns the readers whose cursors gate the writer: the registered ones, and an absent mandatory reader.
    pub fn registered(&self) -> impl Iterator<Item = ReaderInfo> + '_ {
        (0..MAX_READERS).filter_map(|slot| {
            let state = self.word(slot, 0).load(Ordering::SeqCst);
            matches!(state, ACTIVE | AWAY).then(|| ReaderInfo {
                slot,
                // Pairs with the reader's release: all messages before the cursor were read, or copied, already.
                cursor: self.cursor(slot).load(Ordering::Acquire),
                pid: self.word(slot, 16).load(Ordering::Relaxed) as u32,
                away: state == AWAY,
            })
        })
    }

    #[inline(always)]
    fn word(&self, slot: usize, offset: usize) -> &AtomicU64 {
        self.region.word(CURSORS + slot * CURSOR_BYTES + offset)
    }
}
