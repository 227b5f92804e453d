//! Two lanes of bytes between two processes that do not trust each other, in sealed memory without a name.
//!
//! ```text
//!            0      64       128     4096
//!   ours     │ head │ sleeps │ waits │ ring of what we send    │   we write it, they can only read it
//!   theirs   │ head │ sleeps │ waits │ ring of what they send  │   the other way round
//! ```
//!
//! Bytes sent at once form a record, which begins with a cache line: its length in a word, and its bytes. The length is
//! written last, and behind the newest record stands a zero: a receiver polls that word, and has the record's first
//! line with it. `head` counts the bytes of the other side's ring that have been received; it only grows. Each side
//! writes its own memory and nothing else, so it can corrupt only what it sends: impossible numbers are reported as
//! [`LaneError`], and no byte is checked before it is copied. Neither side can shorten the memory.
//!
//! A side announces that it goes to sleep ([`LanePair::announce_sleep`]) or waits for room ([`LanePair::write`]); the
//! other side then rings, by a bell that both have beside the lanes.

use crate::region::Region;
use crate::sync::{Ordering, fence};

/// Bytes of a lane's ring; in a model four lines, the fewest of which a half still takes a record.
const RING: u64 = if cfg!(loom) { 4 * LINE } else { 256 << 10 };
/// Bytes before the ring.
const RING_OFFSET: usize = if cfg!(loom) { 192 } else { 4096 };
/// Bytes of a lane's memory.
pub(crate) const BYTES: usize = RING_OFFSET + RING as usize;
/// Max bytes of a record: a part of the ring, so that a sender need not wait until all of it is read.
const MAX_RECORD_BYTES: usize = 16 << 10;
/// Max bytes of the ring that one read goes through; the last record may exceed it.
const MAX_READ_BYTES: u64 = RING / 4;
const HEAD: usize = 0;
const SLEEPS: usize = 64;
const WAITS: usize = 128;
const WORD: u64 = 8;
const LINE: u64 = 64;

/// One side's end of two lanes.
pub struct LanePair {
    own: Region,
    peer: Region,
    /// Start of our next record, and the highest position known to be received by the other side.
    tail: u64,
    acknowledged: u64,
    /// Position up to which we have received, and the bytes left of the current record.
    head: u64,
    left: usize,
    waits: bool,
}

/// Error: the other side has broken its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its lane holds impossible data ({0}); its program has overwritten the lane's memory")]
pub struct LaneError(&'static str);

impl LanePair {
    /// Builds one side's end, over memory that is zero on both sides.
    pub(crate) fn new(own: Region, peer: Region) -> Self {
        Self { own, peer, tail: 0, acknowledged: 0, head: 0, left: 0, waits: false }
    }

    /// Receives bytes into `room`, which must hold at least a word; returns their number, 0 if there are none. Bounded
    /// per call, because a peer that sends a ring of single bytes and never stops would hold the caller.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, LaneError> {
        let (from, mut taken) = (self.head, 0);
        while self.head.wrapping_sub(from) < MAX_READ_BYTES {
            if self.left == 0 {
                // Pairs with the release of the sender.
                match self.peer.word(at(self.head)).load(Ordering::Acquire) {
                    0 => break,
                    length if length > MAX_RECORD_BYTES as u64 => {
                        return Err(LaneError("a record has an impossible length"));
                    }
                    length => (self.left, self.head) = (length as usize, self.head.wrapping_add(WORD)),
                }
            }
            let rest = room.len() - taken;
            let now = if self.left <= rest { self.left } else { rest / WORD as usize * WORD as usize };
            if now == 0 {
                break;
            }
            self.copy_out(&mut room[taken..taken + now]);
            (self.left, taken) = (self.left - now, taken + now);
            let head = self.head.wrapping_add(now as u64);
            self.head = if self.left == 0 { next_line(head) } else { head };
        }
        if taken > 0 {
            self.own.word(HEAD).store(self.head, Ordering::Release);
        }
        Ok(taken)
    }

    /// Sends as many of the bytes as there is room for; after fewer than all, the other side rings when there is more.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, LaneError> {
        let mut sent = 0;
        while sent < bytes.len() {
            let room = match self.room()? {
                0 if !self.waits => {
                    self.waits = true;
                    self.own.word(WAITS).store(1, Ordering::SeqCst);
                    // Pairs with the fence of the side that rings: either it sees this flag, or we see the room.
                    fence(Ordering::SeqCst);
                    continue;
                }
                0 => return Ok(sent),
                room => room,
            };
            let now = &bytes[sent..][..room.min(bytes.len() - sent)];
            let record = self.tail;
            self.copy_in(record.wrapping_add(WORD), now);
            self.tail = next_line(record.wrapping_add(WORD + now.len() as u64));
            self.own.word(at(self.tail)).store(0, Ordering::Relaxed);
            self.own.word(at(record)).store(now.len() as u64, Ordering::Release);
            sent += now.len();
        }
        if std::mem::take(&mut self.waits) {
            self.own.word(WAITS).store(0, Ordering::SeqCst);
        }
        // The first line of the next record is polled all the time; the others were, a ring ago.
        self.own.prefetch_write(at(self.tail.wrapping_add(LINE)));
        self.own.prefetch_write(at(self.tail.wrapping_add(2 * LINE)));
        Ok(sent)
    }

    /// Returns true if bytes are waiting to be received.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.left > 0 || self.peer.word(at(self.head)).load(Ordering::Acquire) != 0
    }

    /// Returns true if there is room to send, or the other side has broken its lane.
    pub fn has_room(&mut self) -> bool {
        self.room() != Ok(0)
    }

    /// Announces sleep; returns false if there is news, and the caller must not sleep.
    pub fn announce_sleep(&self) -> bool {
        self.own.word(SLEEPS).store(1, Ordering::SeqCst);
        // Pairs with the fence of the side that rings: either it sees this flag, or we see what it sent.
        fence(Ordering::SeqCst);
        !self.has_news()
    }

    /// Withdraws the announcement of sleep.
    pub fn withdraw_sleep(&self) {
        self.own.word(SLEEPS).store(0, Ordering::Relaxed);
    }

    /// Returns true if the other side sleeps and must be woken to receive what was sent.
    #[inline]
    pub fn must_wake_receiver(&self) -> bool {
        fence(Ordering::SeqCst);
        self.peer.word(SLEEPS).load(Ordering::Relaxed) != 0
    }

    /// Returns true if the other side waits for the room made by reading.
    #[inline]
    pub fn must_wake_sender(&self) -> bool {
        fence(Ordering::SeqCst);
        self.peer.word(WAITS).load(Ordering::Relaxed) != 0
    }

    /// Returns the max bytes of a record that fits now, with a zero behind it.
    fn room(&mut self) -> Result<usize, LaneError> {
        if self.tail.wrapping_sub(self.acknowledged) > RING / 2 {
            // Pairs with the release of the receiver: the bytes there were copied.
            let acknowledged = self.peer.word(HEAD).load(Ordering::Acquire);
            if self.tail.wrapping_sub(acknowledged) > RING {
                return Err(LaneError("more bytes were received than sent"));
            }
            self.acknowledged = acknowledged;
        }
        let free = (RING - self.tail.wrapping_sub(self.acknowledged)).saturating_sub(WORD) / LINE * LINE;
        Ok((free.saturating_sub(WORD) as usize).min(MAX_RECORD_BYTES))
    }

    /// Copies bytes out from the head, around the ring's end.
    fn copy_out(&self, to: &mut [u8]) {
        let (first, second) = to.split_at_mut(to.len().min(until_end(self.head)));
        self.peer.copy_out(at(self.head), first);
        self.peer.copy_out(RING_OFFSET, second);
    }

    /// Copies bytes in at a position, around the ring's end.
    fn copy_in(&self, to: u64, from: &[u8]) {
        let (first, second) = from.split_at(from.len().min(until_end(to)));
        self.own.copy_in(at(to), first);
        self.own.copy_in(RING_OFFSET, second);
    }
}

impl std::fmt::Debug for LanePair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LanePair").field("sent", &self.tail).field("received", &self.head).finish_non_exhaustive()
    }
}

fn at(position: u64) -> usize {
    RING_OFFSET + (position % RING) as usize
}

fn until_end(position: u64) -> usize {
    (RING - position % RING) as usize
}

/// Returns the start of the next line, or the position itself if a line begins there.
fn next_line(position: u64) -> u64 {
    position.wrapping_add(LINE - 1) & !(LINE - 1)
}
