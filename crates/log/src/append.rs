//! Writing half of the protocol: memory ordering only, without files or processes.
//!
//! The order of the stores follows `docs/design/publishing.md`, that of a batch `docs/design/batches.md`.

use std::collections::VecDeque;

use crate::control::ControlFile;
use crate::layout::{
    BASE_SEQUENCE, CommitWord, FRAME_HEADER_BYTES, FrameShape, GENERATION, KIND_END, LINE_BYTES, MAX_PAYLOAD_BYTES,
    READ_AHEAD_LINES, SEGMENT_CALIBRATION, SEGMENT_HEADER_BYTES, changing, holding,
};
use crate::region::Region;
use crate::segments::Segments;
use crate::sync::{Ordering, fence};
use crate::{LogPublishError, LogTail};

/// Max cache lines of the next frame that a writer prefetches: a kilobyte and the frame's header.
const LINES_AHEAD: usize = 17;
/// Cache lines that an idle writer takes per turn: a message that arrives waits until they are here.
const LINES_PER_TURN: usize = 4;

pub(crate) struct Appender {
    pub segments: Segments,
    pub control: ControlFile,
    frame: FrameShape,
    segment_bytes: usize,
    /// Set if readers gate the writer.
    gated: bool,
    pub region: Region,
    pub index: u64,
    offset: usize,
    /// Sequence number of the next frame.
    pub sequence: u64,
    /// Calibration bytes, copied into every segment's header.
    calibration: Vec<u8>,
    /// Index and first sequence number of each segment still present, oldest first; empty for a `keep` log.
    bases: VecDeque<(u64, u64)>,
    /// Lower bound of all cursors at the last check.
    slowest: u64,
    /// Number of joins of readers by the last check.
    joined: u64,
    /// Group's cursor at the last check; all ones if the log is no queue.
    done_below: u64,
}

pub(crate) enum BlockedReason {
    /// The cursor of this reader is in the segment that would be recycled.
    ByReader(usize),
    /// A message of a queue in the segment that would be recycled is not done.
    ByGroup,
    Io(std::io::Error),
}

pub(crate) struct AppenderParts<'a> {
    pub segments: Segments,
    pub control: ControlFile,
    pub frame: FrameShape,
    pub segment_bytes: usize,
    pub gated: bool,
    pub calibration: &'a [u8],
}

impl Appender {
    /// Builds an appender on fresh segments, whose first frame has the sequence number `first`.
    pub fn fresh(mut parts: AppenderParts, first: u64) -> std::io::Result<Self> {
        let region = parts.segments.get_or_create(0)?;
        let tail = LogTail { sequence: first, segment: 0, offset: SEGMENT_HEADER_BYTES as u64 };
        let mut appender = Self::at(parts, region.clone(), tail, VecDeque::new());
        appender.open_segment(&region, 0);
        Ok(appender)
    }

    /// Builds an appender that resumes behind `tail`, in the region of its segment; `bases` names a ring's segments.
    pub fn at(parts: AppenderParts, region: Region, tail: LogTail, bases: VecDeque<(u64, u64)>) -> Self {
        let AppenderParts { segments, control, frame, segment_bytes, gated, calibration } = parts;
        Self {
            segments,
            control,
            frame,
            segment_bytes,
            gated,
            region,
            index: tail.segment,
            offset: tail.offset as usize,
            sequence: tail.sequence,
            calibration: calibration.to_vec(),
            bases,
            slowest: 0,
            joined: 0,
            done_below: 0,
        }
    }

    /// Returns the sequence number of the oldest frame still present.
    pub fn oldest(&self) -> u64 {
        self.bases.front().map_or(self.sequence, |&(_, base)| base)
    }

    #[inline]
    pub fn tail(&self) -> LogTail {
        LogTail { sequence: self.sequence, segment: self.index, offset: self.offset as u64 }
    }

    /// Returns true if the current segment's header carries this calibration.
    pub fn is_stamped_by(&self, calibration: &[u8]) -> bool {
        let mut found = vec![0; calibration.len()];
        self.region.copy_out(SEGMENT_CALIBRATION, &mut found);
        found == calibration
    }

    /// Forces a new check of all cursors before the next segment is recycled.
    pub fn recheck_cursors(&mut self) {
        (self.slowest, self.done_below) = (0, 0);
    }

    /// Guards the mappings: from here on a truncated file kills no process.
    #[cfg(not(loom))]
    pub fn guard(&mut self) -> std::io::Result<()> {
        self.region.guard()?;
        self.segments.guard()
    }

    /// Appends one frame and makes it visible. Wakes no reader.
    #[inline(always)]
    pub fn append(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), AppendError> {
        let bytes = self.frame.bytes(payload.len());
        if self.offset + bytes > self.segment_bytes || payload.len() > MAX_PAYLOAD_BYTES {
            self.next_segment(bytes, payload.len())?;
        }
        let (at, next) = (self.offset, self.offset + bytes);
        if next < self.segment_bytes {
            self.region.word(next).store(0, Ordering::Relaxed);
        }
        let commit = CommitWord::new(payload.len(), kind, self.sequence);
        self.write(at, commit, stamp, payload);
        // Pairs with the reader's acquire of the same word: a reader that sees the word sees the payload, and sees the
        // next commit word as zero or as this writer's.
        self.region.word(at).store(commit.0, Ordering::Release);
        self.offset = next;
        self.sequence += 1;
        Ok(())
    }

    /// Appends frames until one does not fit the segment, or is too long, and makes them visible together: the first
    /// commit word is stored last. Returns their number. Wakes no reader.
    #[inline]
    pub fn append_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> usize {
        let Some((head, rest)) = payloads.split_first() else { return 0 };
        let (first, from) = (self.offset, self.sequence);
        let Some(behind) = self.end_of(first, head) else { return 0 };
        if self.frame.crc {
            self.open_batch(first);
        }
        let (count, next) = self.append_unseen(behind, from + 1, stamp, kind, rest);
        if next < self.segment_bytes {
            self.region.word(next).store(0, Ordering::Relaxed);
        }
        // The whole first frame comes last: readers poll its line all the while.
        let commit = CommitWord::new(head.len(), kind, from);
        self.write(first, commit, stamp, head);
        // Pairs with the reader's acquire, for the whole batch: no reader reads behind this word before it is stored.
        self.region.word(first).store(commit.0, Ordering::Release);
        (self.offset, self.sequence) = (next, from + 1 + count as u64);
        count + 1
    }

    /// Writes frames that no reader reads yet, as many as fit the segment; returns their number and their end.
    fn append_unseen(&self, mut next: usize, from: u64, stamp: u64, kind: u8, payloads: &[&[u8]]) -> (usize, usize) {
        let mut count = 0;
        while let Some(first) = payloads.get(count).filter(|first| first.len() <= MAX_PAYLOAD_BYTES) {
            let (begin, bytes) = (next, self.frame.bytes(first.len()));
            let fits = |payload: &&&[u8]| {
                let fits = payload.len() == first.len() && next + bytes <= self.segment_bytes;
                next += if fits { bytes } else { 0 };
                fits
            };
            let alike = &payloads[count..][..payloads[count..].iter().take_while(fits).count()];
            if alike.is_empty() {
                break;
            }
            let commit = |index: usize| CommitWord::new(first.len(), kind, from + index as u64);
            self.region.put_all(begin, bytes, [commit(count).0, stamp], 1 << 32, alike);
            if self.frame.crc {
                for (index, payload) in alike.iter().enumerate() {
                    self.write_checksum(begin + index * bytes, commit(count + index), stamp, payload);
                }
            }
            count += alike.len();
        }
        (count, next)
    }

    /// Returns the end of a frame at this offset, if the frame fits the segment.
    #[inline(always)]
    fn end_of(&self, at: usize, payload: &[u8]) -> Option<usize> {
        let behind = at + self.frame.bytes(payload.len());
        (behind <= self.segment_bytes && payload.len() <= MAX_PAYLOAD_BYTES).then_some(behind)
    }

    /// Marks a batch as open, so that recovery drops the frames of a writer killed within the batch instead of
    /// reporting a gap.
    fn open_batch(&self, at: usize) {
        self.region.word(at).store(CommitWord::open(self.sequence).0, Ordering::Relaxed);
        // Pairs with the acquire of a reader that checks for a hole.
        fence(Ordering::Release);
    }

    /// Writes all of a frame but its commit word, its first line last: readers poll that line, and would take it away.
    #[inline(always)]
    fn write(&self, at: usize, commit: CommitWord, stamp: u64, payload: &[u8]) {
        let (head, rest) = payload.split_at(payload.len().min(LINE_BYTES - FRAME_HEADER_BYTES));
        if !rest.is_empty() {
            self.region.copy_in(at + LINE_BYTES, rest);
        }
        if self.frame.crc {
            self.write_checksum(at, commit, stamp, payload);
        }
        self.region.word(at + 8).store(stamp, Ordering::Relaxed);
        self.region.copy_in(at + FRAME_HEADER_BYTES, head);
    }

    #[inline(always)]
    fn write_checksum(&self, at: usize, commit: CommitWord, stamp: u64, payload: &[u8]) {
        let sum = frame_crc(commit, stamp, payload);
        self.region.word(at + self.frame.crc_at(payload.len())).store(u64::from(sum), Ordering::Relaxed);
    }

    /// Prefetches the lines of the next frame, assuming the last one's length. Readers hold copies of them from the
    /// last lap; taking those back now is cheaper than when the message arrives.
    #[inline(always)]
    pub fn prefetch_next(&self, payload: usize) {
        let bytes = self.frame.bytes(payload);
        for line in 1..(bytes / LINE_BYTES + 1).min(LINES_AHEAD + 1) {
            self.region.prefetch_write(self.offset + line * LINE_BYTES);
        }
    }

    /// Takes a few lines of the next frame from the readers, assuming this length: others in each turn, round and
    /// round. Uses a store, because `prefetchw` leaves the lines with the readers, at least on the processors measured;
    /// behind the tail of its segment no reader reads. Skips the first lines: readers poll them all the while.
    #[inline]
    pub fn reclaim_lines(&self, payload: usize, turn: u32) {
        let end = (self.offset + self.frame.bytes(payload)).min(self.segment_bytes);
        let begin = self.offset + (1 + READ_AHEAD_LINES) * LINE_BYTES;
        let parts = end.saturating_sub(begin).div_ceil(LINES_PER_TURN * LINE_BYTES);
        if parts > 0 {
            let first = begin + turn as usize % parts * LINES_PER_TURN * LINE_BYTES;
            let last = end.min(first + LINES_PER_TURN * LINE_BYTES);
            (first..last).step_by(LINE_BYTES).for_each(|at| self.region.word(at).store(0, Ordering::Relaxed));
        }
    }

    #[cold]
    fn next_segment(&mut self, bytes: usize, payload: usize) -> Result<(), AppendError> {
        if SEGMENT_HEADER_BYTES + bytes > self.segment_bytes || payload > MAX_PAYLOAD_BYTES {
            return Err(AppendError::TooLarge(payload));
        }
        self.roll().map_err(AppendError::Blocked)
    }

    /// Ensures that a frame with a payload of this length fits the current segment.
    pub fn make_room(&mut self, payload: usize) -> Result<(), AppendError> {
        let bytes = self.frame.bytes(payload);
        if self.offset + bytes > self.segment_bytes || payload > MAX_PAYLOAD_BYTES {
            self.next_segment(bytes, payload)?;
        }
        Ok(())
    }

    /// Ensures that a batch fits one segment, or at least its first message, if the batch is larger than a segment.
    pub fn make_room_for_all(&mut self, payloads: &[&[u8]]) -> Result<(), AppendError> {
        if let Some(first) = payloads.first().filter(|first| first.len() > MAX_PAYLOAD_BYTES) {
            return Err(AppendError::TooLarge(first.len()));
        }
        let bytes: usize = payloads.iter().map(|payload| self.frame.bytes(payload.len())).sum();
        if self.offset + bytes <= self.segment_bytes {
            return Ok(());
        }
        if SEGMENT_HEADER_BYTES + bytes > self.segment_bytes {
            return self.make_room(payloads.first().map_or(0, |payload| payload.len()));
        }
        self.roll().map_err(AppendError::Blocked)
    }

    /// Ends this segment and opens the next.
    pub fn roll(&mut self) -> Result<(), BlockedReason> {
        let next = self.index + 1;
        let region = self.segments.get_or_create(next).map_err(BlockedReason::Io)?;
        self.gate(&region, next)?;
        self.index = next;
        self.open_segment(&region, next);
        self.end_segment();
        self.region = region;
        self.offset = SEGMENT_HEADER_BYTES;
        Ok(())
    }

    /// Ensures that no registered reader and no group still needs the segment that the new one replaces.
    fn gate(&mut self, region: &Region, next: u64) -> Result<(), BlockedReason> {
        let Some(ring) = self.segments.ring_len().filter(|_| self.gated) else { return Ok(()) };
        if next < ring {
            return Ok(());
        }
        let still_needed_below =
            self.bases.iter().find(|(index, _)| index + ring > next).map_or(self.sequence, |b| b.1);
        // The group comes first: its cursor never goes back, so the check needs no fence, and pullers may take an odd
        // generation as proof that all messages of the segment are done.
        if self.done_below < still_needed_below {
            self.done_below = self.control.group_cursor().unwrap_or(u64::MAX);
            if self.done_below < still_needed_below {
                return Err(BlockedReason::ByGroup);
            }
        }
        // A reader plainly in the way is reported before the generation changes: a writer killed while it is odd would
        // leave the segment unreadable, with unread messages.
        if self.slowest <= still_needed_below || self.control.joined() != self.joined {
            let slowest = self.control.registered().min_by_key(|reader| reader.cursor);
            if let Some(reader) = slowest.filter(|reader| reader.cursor <= still_needed_below) {
                return Err(BlockedReason::ByReader(reader.slot));
            }
        }
        // A reader that joins now publishes its cursor and then checks the generation; the writer changes the
        // generation and then checks the cursors. With a full fence on both sides at least one sees the other.
        let generation = region.word(GENERATION);
        let before = generation.load(Ordering::Relaxed);
        generation.store(changing(next), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let joined = self.control.joined();
        if joined == self.joined && self.slowest > still_needed_below {
            return Ok(());
        }
        self.joined = joined;
        // All slots: the count is wrong about a reader that is just joining, or was killed while it joined or left.
        let slowest = self.control.registered().min_by_key(|reader| reader.cursor);
        self.slowest = slowest.map_or(u64::MAX, |reader| reader.cursor);
        match slowest {
            // A cursor at the first frame behind the segment may still stand at its end mark.
            Some(reader) if reader.cursor <= still_needed_below => {
                generation.store(before, Ordering::Release);
                Err(BlockedReason::ByReader(reader.slot))
            }
            _ => Ok(()),
        }
    }

    /// Takes over a segment for `index`: odd generation, empty segment, even generation.
    fn open_segment(&mut self, region: &Region, index: u64) {
        region.word(GENERATION).store(changing(index), Ordering::Relaxed);
        // Pairs with the acquire fence of a reader between its copy and its second check of the generation: a reader
        // that copied a byte changed from here on sees at least this generation.
        fence(Ordering::Release);
        region.word(SEGMENT_HEADER_BYTES).store(0, Ordering::Relaxed);
        region.word(BASE_SEQUENCE).store(self.sequence, Ordering::Relaxed);
        region.copy_in(SEGMENT_CALIBRATION, &self.calibration);
        // Pairs with the acquire of a reader that enters: it sees an empty segment with this base.
        region.word(GENERATION).store(holding(index), Ordering::Release);
        self.segments.record_opened(index);
        if let Some(ring) = self.segments.ring_len() {
            self.bases.push_back((index, self.sequence));
            while self.bases.len() as u64 > ring {
                self.bases.pop_front();
            }
        }
    }

    fn end_segment(&self) {
        if self.offset < self.segment_bytes {
            let end = CommitWord::new(0, KIND_END, self.sequence);
            self.region.word(self.offset).store(end.0, Ordering::Release);
        }
    }
}

pub(crate) enum AppendError {
    TooLarge(usize),
    Blocked(BlockedReason),
}

impl From<AppendError> for LogPublishError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::TooLarge(bytes) => Self::TooLarge { bytes, limit: 0 },
            AppendError::Blocked(BlockedReason::ByReader(_) | BlockedReason::ByGroup) => Self::Full,
            AppendError::Blocked(BlockedReason::Io(e)) => Self::Grow(e),
        }
    }
}

#[cfg(test)]
impl Appender {
    /// Builds a ring on the heap, with its segments and its control file.
    pub fn on_heap(segments: usize, segment_bytes: usize, gated: bool) -> (Self, Vec<Region>, ControlFile) {
        let regions: Vec<_> = (0..segments).map(|_| Region::heap(segment_bytes)).collect();
        let control = ControlFile { region: Region::heap(crate::control::CONTROL_BYTES) };
        let frame = FrameShape { align: 64, crc: false };
        let segments = Segments::Ring(regions.clone());
        let parts = AppenderParts { segments, control: control.clone(), frame, segment_bytes, gated, calibration: &[] };
        (Self::fresh(parts, 0).expect("memory cannot fail"), regions, control)
    }
}

/// Returns the checksum of a frame, over every byte that a reader trusts.
pub(crate) fn frame_crc(commit: CommitWord, stamp: u64, payload: &[u8]) -> u32 {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&commit.0.to_le_bytes());
    head[8..].copy_from_slice(&stamp.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&head), payload)
}
