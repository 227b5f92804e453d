//! The reading half of the protocol, inside one segment: no files, no processes.

use tickpath_clock::relax;

use crate::ReadError;
use crate::append::frame_crc;
use crate::layout::{
    Commit, FIRST_KIND, FRAME_HEADER_BYTES, FrameShape, GENERATION, KIND_END, KIND_OPEN, LINE_BYTES, LINES_ALONG,
    SEGMENT_HEADER_BYTES, holding,
};
use crate::region::Region;
use crate::sync::{Ordering, fence};

/// How often a reader that spins looks for the next frame before it looks for anything else.
const LOOKS: usize = 12;

/// What can be wrong where a frame should be.
pub(crate) const WRONG: &str = "the checksum is wrong";
pub(crate) const MISFIT: &str = "the commit word does not fit the sequence";
pub(crate) const HOLE: &str = "nothing is there, but later frames are";

/// Follows the frames of one segment.
pub(crate) struct Follower {
    region: Region,
    frame: FrameShape,
    segment_bytes: usize,
    index: u64,
    offset: usize,
    sequence: u64,
    /// The next commit word if the next frame is like the last one, and the bytes that it takes then.
    expected: Commit,
    bytes: usize,
    /// Frames are pinned: lent where they lie instead of copied.
    lend: bool,
}

/// What lies at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A frame; the cursor is behind it now.
    Frame(FrameAt),
    /// Nothing yet.
    Empty,
    /// The segment is over; the next index follows.
    End,
    /// The segment was recycled under the cursor.
    Lapped,
}

/// What lies at the cursor, by its commit word alone.
enum Here {
    /// A frame, and the bytes that it takes.
    Frame(Commit, usize),
    Other(Step),
}

/// A frame that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameAt {
    pub sequence: u64,
    pub stamp: u64,
    pub kind: u8,
    pub length: usize,
    /// Where its payload lies in the segment.
    pub offset: usize,
}

/// Frames of one shape behind each other.
pub(crate) struct Run {
    from: FrameAt,
    bytes: usize,
    pub count: usize,
}

impl Follower {
    /// A cursor at the first frame of a segment.
    pub fn new(region: Region, frame: FrameShape, segment_bytes: usize, index: u64, base: u64, lend: bool) -> Self {
        let (offset, expected) = (SEGMENT_HEADER_BYTES, Commit::new(0, FIRST_KIND, base));
        Self { region, frame, segment_bytes, index, offset, sequence: base, expected, bytes: frame.bytes(0), lend }
    }

    pub fn index(&self) -> u64 {
        self.index
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The sequence number of the next frame.
    #[inline(always)]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// True if frames stay where they are until the cursor moves, so that they need not be copied.
    pub fn lends(&self) -> bool {
        self.lend
    }

    /// From here on frames are pinned by a registered cursor.
    pub fn set_lending(&mut self, lend: bool) {
        self.lend = lend;
    }

    /// Looks at the cursor without moving it: none if the segment is full and the next one must be asked.
    #[inline(always)]
    pub fn has_news(&self) -> Option<bool> {
        let is_full = self.offset >= self.segment_bytes;
        // Before the generation: who finds nothing there of a later lap sees that it is one.
        let commit = Commit(if is_full { 0 } else { self.region.word(self.offset).load(Ordering::Acquire) });
        if self.is_lapped() {
            return Some(true);
        }
        let is_end = is_full || commit == Commit::new(0, KIND_END, self.sequence);
        if is_end { None } else { Some(!self.is_nothing(commit)) }
    }

    /// Reads the frame at the cursor. Its payload is copied into `buffer`, unless frames are lent.
    pub fn step(&mut self, buffer: &mut Vec<u8>) -> Result<Step, ReadError> {
        match self.here()? {
            Here::Frame(commit, bytes) => match self.take(commit, bytes, buffer) {
                Some(at) => Ok(Step::Frame(at)),
                None => self.lapped_or_damaged(WRONG),
            },
            Here::Other(step) => Ok(step),
        }
    }

    /// As [`Self::step`], of a frame that is there and is sound; in any other case none. It returns one thing, so that it
    /// stays in registers: a frame that had to be told from an error cost more than the rest of this.
    #[inline(always)]
    pub fn frame(&mut self, buffer: &mut Vec<u8>) -> Option<FrameAt> {
        if self.offset >= self.segment_bytes {
            return None;
        }
        // Pairs with the release of the writer's commit.
        let commit = Commit(self.region.word(self.offset).load(Ordering::Acquire));
        if commit.0 == 0 {
            return None;
        }
        let bytes = self.fits(commit)?;
        self.take(commit, bytes, buffer)
    }

    /// Steps over at most so many frames that are like the last one, and are lent. Their commit words are all that is
    /// looked at, and each one's place is known before the word of the one before has come: so the processor has many lines
    /// on their way at once.
    #[inline(always)]
    pub fn run(&mut self, most: usize) -> Run {
        let from = FrameAt {
            sequence: self.sequence,
            stamp: 0,
            kind: self.expected.kind(),
            length: self.expected.length(),
            offset: self.offset + FRAME_HEADER_BYTES,
        };
        let is_plain = self.lend && !self.frame.crc;
        let most = if is_plain { most } else { 0 };
        // Pairs with the release of the writer's commit.
        let count =
            self.region.count_words(self.offset, self.bytes, self.expected.0, 1 << 32, self.segment_bytes, most);
        self.offset += count * self.bytes;
        self.sequence += count as u64;
        self.expected = Commit(self.expected.0.wrapping_add((count as u64) << 32));
        Run { from, bytes: self.bytes, count }
    }

    /// One of a run's frames.
    #[inline(always)]
    pub fn of_run(&self, run: &Run, place: usize) -> FrameAt {
        let offset = run.from.offset + place * run.bytes;
        let stamp = self.region.word(offset + 8 - FRAME_HEADER_BYTES).load(Ordering::Relaxed);
        FrameAt { sequence: run.from.sequence + place as u64, stamp, offset, ..run.from }
    }

    /// The frame of this commit word, which was read at the cursor and fits; none if it was recycled or its checksum is
    /// wrong.
    #[inline(always)]
    fn take(&mut self, commit: Commit, bytes: usize, buffer: &mut Vec<u8>) -> Option<FrameAt> {
        let length = commit.length();
        let stamp = self.region.word(self.offset + 8).load(Ordering::Relaxed);
        let at = self.offset + FRAME_HEADER_BYTES;
        if !self.lend {
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            self.region.copy_out(at, &mut buffer[..length]);
            // Pairs with the release fence of a writer that takes the segment over: if we copied one of its bytes, we
            // see its generation.
            fence(Ordering::Acquire);
            if self.is_lapped() {
                return None;
            }
        }
        if self.frame.crc && !self.crc_is_good(commit, stamp, at, length, buffer) {
            return None;
        }
        Some(self.pass_over(commit, stamp, bytes))
    }

    /// Waits for the next frame about as long as a pause of the processor takes, and sees it at once. The lines behind the
    /// first are asked for along with it, guessing that it is as long as the last frame: they come together.
    #[inline]
    pub fn look_out(&self) {
        if self.offset >= self.segment_bytes {
            return relax();
        }
        let lines = self.bytes.div_ceil(LINE_BYTES).min(1 + LINES_ALONG);
        for _ in 0..LOOKS {
            (1..lines).for_each(|line| self.region.expect_read(self.offset + line * LINE_BYTES));
            if self.region.word(self.offset).load(Ordering::Relaxed) != 0 {
                return;
            }
        }
    }

    /// Whether the cursor stands where the next frame will lie, and it is not there yet.
    #[inline(always)]
    pub fn waits(&self) -> bool {
        self.offset < self.segment_bytes
            && self.region.word(self.offset).load(Ordering::Relaxed) == 0
            && !self.is_lapped()
    }

    /// Steps over the frame at the cursor without its payload, which may be recycled while we look.
    #[inline(always)]
    pub fn pass(&mut self) -> Result<Step, ReadError> {
        let (commit, bytes) = match self.here()? {
            Here::Frame(commit, bytes) => (commit, bytes),
            Here::Other(step) => return Ok(step),
        };
        let stamp = self.region.word(self.offset + 8).load(Ordering::Relaxed);
        // As in `take`: the words that we read are the frame's only if the segment still holds it.
        fence(Ordering::Acquire);
        if self.is_lapped() {
            return Ok(Step::Lapped);
        }
        Ok(Step::Frame(self.pass_over(commit, stamp, bytes)))
    }

    /// The payload of a frame of this segment that a puller has passed, then claimed, and not finished yet.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn claimed(&self, at: FrameAt) -> Result<&[u8], ReadError> {
        // SAFETY: the frame is committed, and pinned: the group's cursor stays at or before a message that is claimed,
        // and the writer recycles only what lies before the cursor. The caller has claimed it and not finished it, and
        // gives the view back before it does.
        let payload = unsafe { self.region.view(at.offset, at.length) };
        if self.frame.crc {
            let start = at.offset - FRAME_HEADER_BYTES;
            let stored = self.region.word(start + self.frame.crc_at(at.length)).load(Ordering::Relaxed);
            let commit = Commit::new(at.length, at.kind, at.sequence);
            if stored != u64::from(frame_crc(commit, at.stamp, payload)) {
                let (sequence, segment) = (at.sequence, self.index);
                return Err(ReadError::SetAside { sequence, segment, offset: start, what: WRONG });
            }
        }
        Ok(payload)
    }

    /// True if the segment does not hold this index any more.
    #[inline(always)]
    pub fn is_lapped(&self) -> bool {
        !self.lend && self.region.word(GENERATION).load(Ordering::Relaxed) != holding(self.index)
    }

    /// True if what lies at the cursor claims to be the next frame, as the torn last write of a writer does that died with
    /// its host.
    pub fn claims_next(&self) -> bool {
        let commit = Commit(self.region.word(self.offset).load(Ordering::Acquire));
        let bytes = self.frame.bytes(commit.length());
        let claims = commit.is_of(self.sequence) && commit.kind() > KIND_OPEN && self.frame.crc;
        claims && self.offset + bytes <= self.segment_bytes
    }

    /// Looks for any whole frame of a later number behind the cursor: then what is missing at it was there.
    pub fn has_later_frame(&self) -> bool {
        (self.offset..self.segment_bytes).step_by(self.frame.align).skip(1).any(|at| {
            let commit = Commit(self.region.word(at).load(Ordering::Relaxed));
            let ahead = (commit.0 >> 32) as u32;
            let later = ahead.wrapping_sub(self.sequence as u32).wrapping_sub(1) < u32::MAX / 2;
            let fits = at + self.frame.bytes(commit.length()) <= self.segment_bytes;
            let is_end = commit.length() == 0 && commit.kind() == KIND_END;
            let is_frame = || commit.kind() > KIND_OPEN && fits && self.is_whole(at, commit);
            self.frame.crc && later && (is_end || is_frame())
        })
    }

    /// True if a batch is being written at the cursor, or was when its writer was killed: what lies behind is no message
    /// yet.
    pub fn is_open(&self) -> bool {
        // Pairs with the fence of who opens a batch: whoever has seen a frame behind it sees that it is open, or there.
        fence(Ordering::Acquire);
        let has_word = self.offset < self.segment_bytes;
        has_word && self.region.word(self.offset).load(Ordering::Acquire) == Commit::open(self.sequence).0
    }

    /// What is wrong if frames lie behind a cursor that finds nothing.
    pub fn hole(&self) -> ReadError {
        self.damage(HOLE)
    }

    /// That the log is damaged where the cursor is.
    pub fn damage(&self, what: &'static str) -> ReadError {
        ReadError::Damaged { sequence: self.sequence, segment: self.index, offset: self.offset, what }
    }

    /// True if the frame at this offset carries the right checksum.
    fn is_whole(&self, at: usize, commit: Commit) -> bool {
        let mut payload = vec![0; commit.length()];
        self.region.copy_out(at + FRAME_HEADER_BYTES, &mut payload);
        let stamp = self.region.word(at + 8).load(Ordering::Relaxed);
        let stored = self.region.word(at + self.frame.crc_at(payload.len())).load(Ordering::Relaxed);
        stored == u64::from(frame_crc(commit, stamp, &payload))
    }

    fn crc_is_good(&self, commit: Commit, stamp: u64, at: usize, length: usize, copied: &[u8]) -> bool {
        let crc_at = self.offset + self.frame.crc_at(length);
        let stored = self.region.word(crc_at).load(Ordering::Relaxed);
        stored == u64::from(frame_crc(commit, stamp, self.payload(at, length, copied)))
    }

    /// The payload: where it lies, or where it was copied to.
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

    /// What the commit word at the cursor says, checked before its length is used.
    #[inline(always)]
    fn here(&self) -> Result<Here, ReadError> {
        if self.offset >= self.segment_bytes {
            return Ok(Here::Other(if self.is_lapped() { Step::Lapped } else { Step::End }));
        }
        // Pairs with the release of the writer's commit.
        let commit = Commit(self.region.word(self.offset).load(Ordering::Acquire));
        if self.is_nothing(commit) {
            return Ok(Here::Other(if self.is_lapped() { Step::Lapped } else { Step::Empty }));
        }
        if commit == Commit::new(0, KIND_END, self.sequence) {
            return Ok(Here::Other(if self.is_lapped() { Step::Lapped } else { Step::End }));
        }
        match self.fits(commit) {
            Some(bytes) => Ok(Here::Frame(commit, bytes)),
            None => self.lapped_or_damaged(MISFIT).map(Here::Other),
        }
    }

    /// The bytes of the frame that this commit word is of, if it is one of the next frame.
    #[inline(always)]
    fn fits(&self, commit: Commit) -> Option<usize> {
        let bytes = self.frame.bytes(commit.length());
        let fits =
            commit.is_of(self.sequence) && self.offset + bytes <= self.segment_bytes && commit.kind() > KIND_OPEN;
        fits.then_some(bytes)
    }

    /// Whether this word, at the cursor, says that there is nothing yet.
    #[inline(always)]
    fn is_nothing(&self, commit: Commit) -> bool {
        commit.0 == 0 || commit == Commit::open(self.sequence)
    }

    /// Moves the cursor behind the frame at it.
    #[inline(always)]
    fn pass_over(&mut self, commit: Commit, stamp: u64, bytes: usize) -> FrameAt {
        let offset = self.offset + FRAME_HEADER_BYTES;
        let at = FrameAt { sequence: self.sequence, stamp, kind: commit.kind(), length: commit.length(), offset };
        self.offset += bytes;
        self.sequence += 1;
        (self.expected, self.bytes) = (commit.next_alike(), bytes);
        at
    }

    #[cold]
    fn lapped_or_damaged(&self, what: &'static str) -> Result<Step, ReadError> {
        fence(Ordering::Acquire);
        if self.is_lapped() {
            return Ok(Step::Lapped);
        }
        Err(self.damage(what))
    }
}
