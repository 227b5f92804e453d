//! Layout of a log. `docs/log-format.md` draws it; a test checks the drawing against these constants.
//!
//! ```text
//! data     ┌──────────────┬───────────┬───────────┬─ ─ ─
//!          │ header, 4 KiB│ segment 0 │ segment 1 │        a ring of segments, or a growing file
//!          └──────────────┴───────────┴───────────┴─ ─ ─
//! segment  ┌─────────────────────┬───────┬───────┬─ ─ ─┬─────┐
//!          │ segment header 128 B│ frame │ frame │      │ end │
//!          └─────────────────────┴───────┴───────┴─ ─ ─┴─────┘
//! frame    ┌───────────────┬──────────┬───────────────────┬─────────┐
//!          │ commit word 8 │ stamp 8  │ payload, to 8     │ crc 8 ? │   aligned to 64 (topics) or 16 (journals)
//!          └───────────────┴──────────┴───────────────────┴─────────┘
//! commit    bits 0..24 payload length, 24..32 kind (never 0), 32..64 low half of the sequence number
//! batch     its first commit word is stored last; until then it is zero, or marks an open batch (with checksums)
//! ```
//!
//! Design: `docs/design/log-frames.md`.

use tickpath_clock::Calibration;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Format version that this code writes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// Bytes before the first segment: one page.
pub const HEADER_BYTES: usize = 4096;

/// Bytes before the first frame of a segment.
pub const SEGMENT_HEADER_BYTES: usize = 128;

/// Bytes before a frame's payload.
pub const FRAME_HEADER_BYTES: usize = 16;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// Cache lines behind a frame's first that a spinning reader prefetches, so that all arrive together.
pub(crate) const READ_AHEAD_LINES: usize = 4;

/// Max payload length that a commit word can express, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = (1 << 24) - 1;

pub(crate) const MAGIC: [u8; 8] = *b"TICKLOG\0";

/// Offsets in a segment's header.
pub(crate) const GENERATION: usize = 0;
pub(crate) const BASE_SEQUENCE: usize = 8;
pub(crate) const SEGMENT_CALIBRATION: usize = 16;

/// Max base sequence number: only damage exceeds it, and counting from here never wraps around.
pub(crate) const MAX_BASE: u64 = 1 << 62;

/// Lowest kind of a message; kinds below mark the log's own frames.
pub const FIRST_KIND: u8 = 16;

/// Kind of the frame that ends a segment before its last byte.
pub(crate) const KIND_END: u8 = 1;

/// Kind of the first frame of a batch that is still being written: no message yet. Used only where frames carry
/// checksums, where frames behind it could pass for frames behind a hole.
pub(crate) const KIND_OPEN: u8 = 2;

/// Content of a log's first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LogHeader {
    pub magic: [u8; 8],
    pub version: u32,
    pub policy: u32,
    pub segment_bytes: u32,
    /// Segments in the ring; zero if the log grows.
    pub segments: u32,
    pub frame_align: u32,
    /// 1 if every frame carries a CRC32C.
    pub crc: u32,
    pub calibration: Calibration,
    pub owner: LogOwner,
    /// Sequence number of the first message that the log was created for.
    pub first_sequence: u64,
    /// 1 if the log names a mandatory reader.
    pub mandatory: u32,
    /// CRC32C of all bytes before.
    pub checksum: u32,
}

/// Owner of a log: a journal, its incarnation, and the log's start in it. Never compared here; zeros mean no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogOwner {
    /// Id of the journal that the log belongs to.
    pub journal: u64,
    /// Incarnation of that journal's program that created the log.
    pub incarnation: u64,
    /// Position of the log's first message in its owner's numbering.
    pub base: u64,
}

impl LogHeader {
    /// Returns the checksum that these bytes should carry.
    pub fn sum(&self) -> u32 {
        crc32c::crc32c(&self.as_bytes()[..core::mem::offset_of!(LogHeader, checksum)])
    }
}

/// Commit word: makes a frame visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitWord(pub u64);

impl CommitWord {
    #[inline(always)]
    pub fn new(length: usize, kind: u8, sequence: u64) -> Self {
        Self(length as u64 | u64::from(kind) << 24 | sequence << 32)
    }

    /// Returns the placeholder of the first frame of a batch that is being written.
    #[inline(always)]
    pub fn open(sequence: u64) -> Self {
        Self::new(0, KIND_OPEN, sequence)
    }

    /// Returns the next frame's commit word, if that frame has this one's length and kind.
    #[inline(always)]
    pub fn next_alike(self) -> Self {
        Self(self.0.wrapping_add(1 << 32))
    }

    #[inline(always)]
    pub fn length(self) -> usize {
        self.0 as usize & MAX_PAYLOAD_BYTES
    }

    #[inline(always)]
    pub fn kind(self) -> u8 {
        (self.0 >> 24) as u8
    }

    #[inline(always)]
    pub fn is_of(self, sequence: u64) -> bool {
        (self.0 >> 32) as u32 == sequence as u32
    }
}

/// Returns the generation of a segment while its bytes change: odd.
#[inline(always)]
pub(crate) fn changing(index: u64) -> u64 {
    2 * index + 1
}

/// Returns the generation of a segment that holds this index's frames: even, never zero.
#[inline(always)]
pub(crate) fn holding(index: u64) -> u64 {
    2 * index + 2
}

/// Returns the index that a slot of a ring, or of a growing file, holds by its generation; none if none can be there.
pub(crate) fn index_held(generation: u64, slot: u64, ring: Option<u64>) -> Option<u64> {
    /// Max index: only damage exceeds it.
    const MAX_INDEX: u64 = 1 << 62;
    let index = (generation / 2).checked_sub(1).filter(|index| generation.is_multiple_of(2) && *index < MAX_INDEX)?;
    let lies_at = ring.map_or(index, |ring| index % ring);
    (lies_at == slot).then_some(index)
}

/// Layout of frames in one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameShape {
    pub align: usize,
    pub crc: bool,
}

impl FrameShape {
    /// Returns the bytes that a frame with this payload takes.
    #[inline(always)]
    pub fn bytes(self, payload: usize) -> usize {
        let crc = if self.crc { 8 } else { 0 };
        // A power of two, so that a mask suffices: a division would delay every next frame.
        (FRAME_HEADER_BYTES + payload.next_multiple_of(8) + crc + self.align - 1) & !(self.align - 1)
    }

    #[inline(always)]
    pub fn crc_at(self, payload: usize) -> usize {
        FRAME_HEADER_BYTES + payload.next_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_word_holds_its_parts() {
        let commit = CommitWord::new(1024, 48, 0x1_2345_6789);
        assert_eq!((commit.length(), commit.kind()), (1024, 48));
        assert!(commit.is_of(0x1_2345_6789) && commit.is_of(0x2345_6789) && !commit.is_of(7));
        assert_ne!(CommitWord::new(0, KIND_END, 0).0, 0);
        assert_eq!(CommitWord::new(MAX_PAYLOAD_BYTES, 255, 0).length(), MAX_PAYLOAD_BYTES);
    }

    #[test]
    fn frames_keep_their_alignment() {
        let topic = FrameShape { align: 64, crc: false };
        assert_eq!([32, 48, 49, 64, 1024].map(|n| topic.bytes(n)), [64, 64, 128, 128, 1088]);
        let journal = FrameShape { align: 16, crc: true };
        assert_eq!([88, 104].map(|n| journal.bytes(n)), [112, 128]);
    }
}
