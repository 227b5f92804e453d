//! Reading half of the protocol, inside one segment. Design: `docs/design/spinning.md`, `docs/design/bulk-reading.md`.

use tickpath_clock::relax;

use crate::LogReadError;
use crate::append::frame_crc;
use crate::layout::{
    BASE_SEQUENCE, CommitWord, FIRST_KIND, FRAME_HEADER_BYTES, FrameShape, GENERATION, KIND_END, KIND_OPEN, LINE_BYTES,
    MAX_BASE, READ_AHEAD_LINES, SEGMENT_HEADER_BYTES, holding,
};
use crate::region::Region;
use crate::sync::{Ordering, fence};

/// Polls of the next commit word by a spinning reader before it checks anything else.
const SPIN_POLLS: usize = 12;
/// Kinds of damage at the position of a frame.
pub(crate) const CHECKSUM_MISMATCH: &str = "the checksum is wrong";
pub(crate) const BAD_COMMIT_WORD: &str = "the commit word does not fit the sequence";
pub(crate) const HOLE: &str = "nothing is there, but later frames are";

/// Cursor over the frames of one segment.
pub(crate) struct SegmentCursor {
    pub region: Region,
    frame: FrameShape,
    segment_bytes: usize,
    pub index: u64,
    pub offset: usize,
    /// Sequence number of the next frame.
    pub sequence: u64,
    /// Next commit word if the next frame has the last one's length and kind.
    expected: CommitWord,
    /// Size in bytes of a frame with the expected commit word.
    bytes: usize,
    /// Set if frames stay in place until the cursor moves, and are lent instead of copied.
    pub lend: bool,
}

/// Content at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorStep {
    /// A frame; the cursor is behind it now.
    Frame(FrameAt),
    /// No frame yet.
    Empty,
    /// The end of the segment; the next index follows.
    End,
    /// The segment was recycled under the cursor.
    Lapped,
}

/// Content at the cursor, by its commit word alone.
enum FrameState {
    /// A frame, and the bytes that it takes.
    Frame(CommitWord, usize),
    Other(CursorStep),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameAt {
    pub sequence: u64,
    pub stamp: u64,
    pub kind: u8,
    pub length: usize,
    /// Offset of its payload in the segment.
    pub offset: usize,
}

/// Consecutive frames of one length and kind.
pub(crate) struct FrameRun {
    from: FrameAt,
    bytes: usize,
    pub count: usize,
}

impl SegmentCursor {
    /// Returns a cursor at the first frame of a segment.
    pub fn new(region: Region, frame: FrameShape, segment_bytes: usize, index: u64, base: u64, lend: bool) -> Self {
        let (offset, expected) = (SEGMENT_HEADER_BYTES, CommitWord::new(0, FIRST_KIND, base));
        Self { region, frame, segment_bytes, index, offset, sequence: base, expected, bytes: frame.bytes(0), lend }
    }

    /// Returns a cursor at the first frame of a segment that is present, if the segment holds this index.
    pub fn enter(region: Region, frame: FrameShape, segment_bytes: usize, index: u64) -> Option<Self> {
        // Pairs with the writer's release when it opens the segment.
        if region.word(GENERATION).load(Ordering::Acquire) != holding(index) {
            return None;
        }
        let base = region.word(BASE_SEQUENCE).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let still = region.word(GENERATION).load(Ordering::Relaxed) == holding(index);
        (still && base <= MAX_BASE).then(|| Self::new(region, frame, segment_bytes, index, base, false))
    }

    /// Peeks at the cursor without moving it: none if the segment is full and the next one must be checked.
    #[inline(always)]
    pub fn has_news(&self) -> Option<bool> {
        let is_full = self.offset >= self.segment_bytes;
        // Before the generation: a reader that finds a later lap's content here sees the later generation.
        let commit = CommitWord(if is_full { 0 } else { self.region.word(self.offset).load(Ordering::Acquire) });
        if self.is_lapped() {
            return Some(true);
        }
        let is_end = is_full || commit == CommitWord::new(0, KIND_END, self.sequence);
        if is_end { None } else { Some(!self.is_nothing(commit)) }
    }

    /// Reads the frame at the cursor. Copies its payload into `buffer`, unless frames are lent.
    pub fn step(&mut self, buffer: &mut Vec<u8>) -> Result<CursorStep, LogReadError> {
        match self.frame_state()? {
            FrameState::Frame(commit, bytes) => match self.read_frame(commit, bytes, buffer) {
                Some(at) => Ok(CursorStep::Frame(at)),
                None => self.lapped_or_damaged(CHECKSUM_MISMATCH),
            },
            FrameState::Other(step) => Ok(step),
        }
    }

    /// As [`Self::step`], for a frame that is present and sound; none in any other case. The single return type stays
    /// in registers: distinguishing a frame from an error cost more than the rest of the function.
    #[inline(always)]
    pub fn frame(&mut self, buffer: &mut Vec<u8>) -> Option<FrameAt> {
        if self.offset >= self.segment_bytes {
            return None;
        }
        // Pairs with the release of the writer's commit.
        let commit = CommitWord(self.region.word(self.offset).load(Ordering::Acquire));
        if commit.0 == 0 {
            return None;
        }
        let bytes = self.fits(commit)?;
        self.read_frame(commit, bytes, buffer)
    }

    /// Steps over at most `max` lent frames that are like the last one. Only commit words are read, and each offset is
    /// known before the previous word arrives, so that the processor loads many lines at once.
    #[inline(always)]
    pub fn read_run(&mut self, max: usize) -> FrameRun {
        let from = FrameAt {
            sequence: self.sequence,
            stamp: 0,
            kind: self.expected.kind(),
            length: self.expected.length(),
            offset: self.offset + FRAME_HEADER_BYTES,
        };
        let is_plain = self.lend && !self.frame.crc;
        let max = if is_plain { max } else { 0 };
        // Pairs with the release of the writer's commit.
        let count = self.region.count_words(self.offset, self.bytes, self.expected.0, 1 << 32, self.segment_bytes, max);
        self.offset += count * self.bytes;
        self.sequence += count as u64;
        self.expected = CommitWord(self.expected.0.wrapping_add((count as u64) << 32));
        FrameRun { from, bytes: self.bytes, count }
    }

    #[inline(always)]
    pub fn run_frame(&self, run: &FrameRun, index: usize) -> FrameAt {
        let offset = run.from.offset + index * run.bytes;
        let stamp = self.region.word(offset + 8 - FRAME_HEADER_BYTES).load(Ordering::Relaxed);
        FrameAt { sequence: run.from.sequence + index as u64, stamp, offset, ..run.from }
    }

    /// Reads the frame of this commit word, which fits; none if it was recycled or its checksum is wrong.
    #[inline(always)]
    fn read_frame(&mut self, commit: CommitWord, bytes: usize, buffer: &mut Vec<u8>) -> Option<FrameAt> {
        let length = commit.length();
        let stamp = self.region.word(self.offset + 8).load(Ordering::Relaxed);
        let at = self.offset + FRAME_HEADER_BYTES;
        if !self.lend {
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            self.region.copy_out(at, &mut buffer[..length]);
            // Pairs with the release fence of a writer that takes over the segment: a reader that copied one of its
            // bytes sees its generation.
            fence(Ordering::Acquire);
            if self.is_lapped() {
                return None;
            }
        }
        if self.frame.crc && !self.crc_is_good(commit, stamp, at, length, buffer) {
            return None;
        }
        Some(self.move_past(commit, stamp, bytes))
    }

    /// Polls for the next frame about as long as a pause instruction takes, and sees it at once. Prefetches the lines
    /// behind the first, assuming the last frame's length, so that they arrive together.
    #[inline]
    pub fn spin_poll(&self) {
        if self.offset >= self.segment_bytes {
            return relax();
        }
        let lines = self.bytes.div_ceil(LINE_BYTES).min(1 + READ_AHEAD_LINES);
        for _ in 0..SPIN_POLLS {
            (1..lines).for_each(|line| self.region.prefetch_read(self.offset + line * LINE_BYTES));
            if self.region.word(self.offset).load(Ordering::Relaxed) != 0 {
                return;
            }
        }
    }

    /// Returns true if the cursor stands where the next frame will lie, and the frame is not there yet.
    #[inline(always)]
    pub fn is_at_tail(&self) -> bool {
        self.offset < self.segment_bytes
            && self.region.word(self.offset).load(Ordering::Relaxed) == 0
            && !self.is_lapped()
    }

    /// Steps over the frame at the cursor without its payload, which may be recycled meanwhile.
    #[inline(always)]
    pub fn skip_frame(&mut self) -> Result<CursorStep, LogReadError> {
        let (commit, bytes) = match self.frame_state()? {
            FrameState::Frame(commit, bytes) => (commit, bytes),
            FrameState::Other(step) => return Ok(step),
        };
        let stamp = self.region.word(self.offset + 8).load(Ordering::Relaxed);
        // As in `read_frame`: the words read belong to the frame only if the segment still holds it.
        fence(Ordering::Acquire);
        if self.is_lapped() {
            return Ok(CursorStep::Lapped);
        }
        Ok(CursorStep::Frame(self.move_past(commit, stamp, bytes)))
    }

    /// Returns the payload of a frame of this segment that a puller has passed, then claimed, and not finished yet.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn claimed(&self, at: FrameAt) -> Result<&[u8], LogReadError> {
        // SAFETY: the frame is committed, and pinned: the group's cursor stays at or before a claimed message, and the
        // writer recycles only what lies before the cursor. The caller has claimed the message, and drops the view
        // before it finishes it.
        let payload = unsafe { self.region.view(at.offset, at.length) };
        if self.frame.crc {
            let start = at.offset - FRAME_HEADER_BYTES;
            let stored = self.region.word(start + self.frame.crc_at(at.length)).load(Ordering::Relaxed);
            let commit = CommitWord::new(at.length, at.kind, at.sequence);
            if stored != u64::from(frame_crc(commit, at.stamp, payload)) {
                let (sequence, segment) = (at.sequence, self.index);
                return Err(LogReadError::SetAside { sequence, segment, offset: start, what: CHECKSUM_MISMATCH });
            }
        }
        Ok(payload)
    }

    /// Returns true if the segment no longer holds this index; always false while frames are lent.
    #[inline(always)]
    pub fn is_lapped(&self) -> bool {
        !self.lend && self.region.word(GENERATION).load(Ordering::Relaxed) != holding(self.index)
    }

    /// Returns true if the word at the cursor is the commit word of the next frame, whole or torn by a host's crash.
    pub fn has_next_commit(&self) -> bool {
        let commit = CommitWord(self.region.word(self.offset).load(Ordering::Acquire));
        let bytes = self.frame.bytes(commit.length());
        let is_next = commit.is_of(self.sequence) && commit.kind() > KIND_OPEN && self.frame.crc;
        is_next && self.offset + bytes <= self.segment_bytes
    }

    /// Searches for a whole frame with a later sequence number behind the cursor: it shows that a frame was lost.
    pub fn has_later_frame(&self) -> bool {
        (self.offset..self.segment_bytes).step_by(self.frame.align).skip(1).any(|at| {
            let commit = CommitWord(self.region.word(at).load(Ordering::Relaxed));
            let ahead = (commit.0 >> 32) as u32;
            let later = ahead.wrapping_sub(self.sequence as u32).wrapping_sub(1) < u32::MAX / 2;
            let fits = at + self.frame.bytes(commit.length()) <= self.segment_bytes;
            let is_end = commit.length() == 0 && commit.kind() == KIND_END;
            let is_frame = || commit.kind() > KIND_OPEN && fits && self.is_whole(at, commit);
            self.frame.crc && later && (is_end || is_frame())
        })
    }

    /// Returns true if the batch at the cursor is unfinished: frames behind it are no messages yet.
    pub fn is_open(&self) -> bool {
        // Pairs with the fence in `open_batch`: a reader that has seen a frame behind the word sees the batch's state.
        fence(Ordering::Acquire);
        let has_word = self.offset < self.segment_bytes;
        has_word && self.region.word(self.offset).load(Ordering::Acquire) == CommitWord::open(self.sequence).0
    }

    pub fn damage(&self, what: &'static str) -> LogReadError {
        LogReadError::Damaged { sequence: self.sequence, segment: self.index, offset: self.offset, what }
    }

    /// Returns true if the frame at this offset carries the right checksum.
    fn is_whole(&self, at: usize, commit: CommitWord) -> bool {
        let mut payload = vec![0; commit.length()];
        self.region.copy_out(at + FRAME_HEADER_BYTES, &mut payload);
        let stamp = self.region.word(at + 8).load(Ordering::Relaxed);
        let stored = self.region.word(at + self.frame.crc_at(payload.len())).load(Ordering::Relaxed);
        stored == u64::from(frame_crc(commit, stamp, &payload))
    }

    fn crc_is_good(&self, commit: CommitWord, stamp: u64, at: usize, length: usize, copied: &[u8]) -> bool {
        let crc_at = self.offset + self.frame.crc_at(length);
        let stored = self.region.word(crc_at).load(Ordering::Relaxed);
        stored == u64::from(frame_crc(commit, stamp, self.payload(at, length, copied)))
    }

    /// Returns the payload: in place, or from the copy.
    #[inline(always)]
    pub fn payload<'a>(&'a self, at: usize, length: usize, copied: &'a [u8]) -> &'a [u8] {
        #[cfg(not(loom))]
        if self.lend {
            // SAFETY: the frame is committed, and pinned: the log grows, or the registered cursor is at or before it.
            return unsafe { self.region.view(at, length) };
        }
        #[cfg(loom)]
        let _ = at;
        &copied[..length]
    }

    /// Decodes the commit word at the cursor; checks it before its length is used.
    #[inline(always)]
    fn frame_state(&self) -> Result<FrameState, LogReadError> {
        if self.offset >= self.segment_bytes {
            return Ok(FrameState::Other(if self.is_lapped() { CursorStep::Lapped } else { CursorStep::End }));
        }
        // Pairs with the release of the writer's commit.
        let commit = CommitWord(self.region.word(self.offset).load(Ordering::Acquire));
        if self.is_nothing(commit) {
            return Ok(FrameState::Other(if self.is_lapped() { CursorStep::Lapped } else { CursorStep::Empty }));
        }
        if commit == CommitWord::new(0, KIND_END, self.sequence) {
            return Ok(FrameState::Other(if self.is_lapped() { CursorStep::Lapped } else { CursorStep::End }));
        }
        match self.fits(commit) {
            Some(bytes) => Ok(FrameState::Frame(commit, bytes)),
            None => self.lapped_or_damaged(BAD_COMMIT_WORD).map(FrameState::Other),
        }
    }

    /// Returns the size in bytes of the frame of this commit word, if the word fits the next frame.
    #[inline(always)]
    fn fits(&self, commit: CommitWord) -> Option<usize> {
        let bytes = self.frame.bytes(commit.length());
        let fits =
            commit.is_of(self.sequence) && self.offset + bytes <= self.segment_bytes && commit.kind() > KIND_OPEN;
        fits.then_some(bytes)
    }

    /// Returns true if this word, read at the cursor, means that no frame is there yet.
    #[inline(always)]
    fn is_nothing(&self, commit: CommitWord) -> bool {
        commit.0 == 0 || commit == CommitWord::open(self.sequence)
    }

    #[inline(always)]
    fn move_past(&mut self, commit: CommitWord, stamp: u64, bytes: usize) -> FrameAt {
        let offset = self.offset + FRAME_HEADER_BYTES;
        let at = FrameAt { sequence: self.sequence, stamp, kind: commit.kind(), length: commit.length(), offset };
        self.offset += bytes;
        self.sequence += 1;
        (self.expected, self.bytes) = (commit.next_alike(), bytes);
        at
    }

    #[cold]
    fn lapped_or_damaged(&self, what: &'static str) -> Result<CursorStep, LogReadError> {
        fence(Ordering::Acquire);
        if self.is_lapped() {
            return Ok(CursorStep::Lapped);
        }
        Err(self.damage(what))
    }
}
