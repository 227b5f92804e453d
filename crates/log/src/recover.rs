//! Resumption of a log where its last writer stopped, however it stopped.

use std::collections::VecDeque;

use crate::append::{Appender, AppenderParts};
use crate::follow::{BAD_COMMIT_WORD, CHECKSUM_MISMATCH, CursorStep, HOLE, SegmentCursor};
use crate::layout::{BASE_SEQUENCE, CommitWord, GENERATION, KIND_END, MAX_BASE, holding, index_held};
use crate::progress::LogExtent;
use crate::region::Region;
use crate::sync::Ordering;
use crate::{LogReadError, LogTail};

/// Data dropped when a log was opened: never known to be on the disk, and lost with the power or behind a loss, or part
/// of a batch in which the writer was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedData {
    /// First sequence number that is missing.
    pub sequence: u64,
    /// Bytes from there on that held data, or are known to have held it.
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResumeError {
    #[error(transparent)]
    Damaged(#[from] LogReadError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

pub(crate) struct ResumableLog<'a> {
    pub parts: AppenderParts<'a>,
    /// Sequence number of the first message if no segment is there.
    pub first: u64,
    /// Minimum extent of the data; none for a ring, which is never cut in the middle.
    pub extent: Option<LogExtent>,
}

/// Newest segment that was opened whole, and the bases of all still present.
struct NewestSegment {
    index: u64,
    base: u64,
    bases: VecDeque<(u64, u64)>,
}

/// End of the whole frames of a segment.
struct SegmentEnd {
    segment: u64,
    offset: usize,
    sequence: u64,
    content: TailContent,
}

/// Content behind the whole frames.
#[derive(Clone, Copy)]
enum TailContent {
    Nothing,
    /// The torn last write of a writer that crashed with its host, or a batch in which its writer was killed.
    Torn,
    /// Frames behind a hole, or behind a frame with a wrong checksum.
    FramesBehindDamage(&'static str),
    /// Damage that no loss of power causes.
    Damage(&'static str),
}

impl ResumableLog<'_> {
    /// Returns an appender that resumes at the tail of the log, and the extent of data dropped.
    pub fn resume(mut self) -> Result<(Appender, Option<DroppedData>), ResumeError> {
        let Some(mut found) = self.find()? else {
            let bytes = self.clear_from(0)?;
            let cut = (bytes > 0).then_some(DroppedData { sequence: self.first, bytes });
            return Ok((Appender::fresh(self.parts, self.first)?, cut));
        };
        let dropped = self.drop_fragments(&mut found)?;
        if found.index > 0 {
            self.end_previous(&found)?;
        }
        let region = self.parts.segments.get_or_create(found.index)?;
        let end = self.scan_segment(&region, found.index, found.base);
        let is_cut = self.must_truncate(&end)?;
        self.check_durable(&end, "the log ends here, though more of it was on the disk")?;
        let cleared = clear(&region, end.offset, self.parts.segment_bytes);
        let bytes = dropped + if is_cut { cleared } else { 0 };
        if bytes > 0 {
            // Before a frame overwrites another: after a second loss of power both could be present.
            self.parts.segments.growing_file().map_or(Ok(()), |(file, _)| file.sync_data())?;
        }
        self.parts.segments.record_opened(found.index);
        let cut = (bytes > 0).then_some(DroppedData { sequence: end.sequence, bytes });
        let tail = LogTail { sequence: end.sequence, segment: end.segment, offset: end.offset as u64 };
        Ok((Appender::at(self.parts, region, tail, found.bases), cut))
    }

    fn find(&self) -> Result<Option<NewestSegment>, ResumeError> {
        let ring = self.parts.segments.ring_len();
        let mut bases = Vec::new();
        for slot in 0..ring.or(self.extent.map(|extent| extent.open)).unwrap_or(0) {
            let Some(region) = self.parts.segments.get(slot)? else { break };
            let generation = region.word(GENERATION).load(Ordering::Acquire);
            if let Some(index) = index_held(generation, slot, ring) {
                let base = region.word(BASE_SEQUENCE).load(Ordering::Relaxed);
                if base > MAX_BASE {
                    let what = "its first number is impossible";
                    return Err(LogReadError::Damaged { sequence: base, segment: index, offset: 0, what }.into());
                }
                bases.push((index, base));
            }
        }
        bases.sort_unstable();
        let Some(&(index, base)) = bases.last() else { return Ok(None) };
        let bases = if ring.is_some() { bases.into() } else { VecDeque::new() };
        Ok(Some(NewestSegment { index, base, bases }))
    }

    /// Goes back, in a log of another boot, to the last gapless segment, and clears all behind it; returns the bytes.
    fn drop_fragments(&self, found: &mut NewestSegment) -> Result<u64, ResumeError> {
        let Some(extent) = self.extent.filter(|extent| !extent.same_boot) else { return Ok(0) };
        for index in extent.durable.segment..found.index {
            let Some((region, base)) = self.segment(index)? else { continue };
            let end = self.scan_segment(&region, index, base);
            let next = self.segment(index + 1)?.map(|(_, base)| base);
            if self.must_truncate(&end)? || next != Some(end.sequence) {
                self.check_durable(&end, "it ends before the next segment begins")?;
                (found.index, found.base) = (index, base);
                break;
            }
        }
        Ok(self.clear_from(found.index + 1)?)
    }

    /// Zeroes the segments of another boot from `first` on; returns their size in bytes. Scans the whole file, because
    /// a loss of power may lose the mark that a segment was opened; never cuts a ring, which has no end.
    fn clear_from(&self, first: u64) -> std::io::Result<u64> {
        let Some(extent) = self.extent else { return Ok(0) };
        let mut bytes = extent.opened.saturating_sub(first) * self.parts.segment_bytes as u64;
        let mut index = first;
        while index < extent.opened || !extent.same_boot {
            let Some(region) = self.parts.segments.get(index)? else { break };
            let cleared = clear(&region, 0, self.parts.segment_bytes);
            bytes += if index < extent.opened { 0 } else { cleared };
            index += 1;
        }
        Ok(bytes)
    }

    /// Ends the segment before the newest, which a killed writer may have left open: readers would stay there for ever.
    fn end_previous(&self, found: &NewestSegment) -> Result<(), ResumeError> {
        let Some((region, base)) = self.segment(found.index - 1)? else { return Ok(()) };
        let end = self.scan_segment(&region, found.index - 1, base);
        if self.must_truncate(&end)? || end.sequence != found.base {
            return Err(end.damage("it ends before the next segment begins"));
        }
        if end.offset < self.parts.segment_bytes {
            region.word(end.offset).store(CommitWord::new(0, KIND_END, end.sequence).0, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the memory and the first sequence number of the segment of this index, if it is present.
    fn segment(&self, index: u64) -> std::io::Result<Option<(Region, u64)>> {
        let region = self.parts.segments.get(index)?;
        let region = region.filter(|region| region.word(GENERATION).load(Ordering::Acquire) == holding(index));
        Ok(region.map(|region| {
            let base = region.word(BASE_SEQUENCE).load(Ordering::Relaxed);
            (region, base)
        }))
    }

    fn scan_segment(&self, region: &Region, segment: u64, base: u64) -> SegmentEnd {
        let AppenderParts { frame, segment_bytes, .. } = self.parts;
        let mut cursor = SegmentCursor::new(region.clone(), frame, segment_bytes, segment, base.min(MAX_BASE), false);
        let (mut buffer, is_queue) = (Vec::new(), self.parts.control.group_cursor().is_some());
        let rest = loop {
            match cursor.step(&mut buffer) {
                Ok(CursorStep::Frame(_)) => {}
                Ok(CursorStep::Empty) if cursor.is_open() => break TailContent::Torn,
                Ok(CursorStep::Empty) if cursor.has_later_frame() => break TailContent::FramesBehindDamage(HOLE),
                Ok(CursorStep::Empty | CursorStep::End | CursorStep::Lapped) => break TailContent::Nothing,
                Err(_) if !cursor.has_next_commit() => break TailContent::Damage(BAD_COMMIT_WORD),
                // In a queue a puller sets the message aside; the frames behind it are not lost with it.
                Err(_)
                    if cursor.has_later_frame()
                        && is_queue
                        && matches!(cursor.skip_frame(), Ok(CursorStep::Frame(_))) => {}
                Err(_) if cursor.has_later_frame() => break TailContent::FramesBehindDamage(CHECKSUM_MISMATCH),
                Err(_) => break TailContent::Torn,
            }
        };
        SegmentEnd { segment, offset: cursor.offset, sequence: cursor.sequence, content: rest }
    }

    /// Returns true if data behind the end must be cut. A torn last frame was never acknowledged; with frames behind it
    /// the damage lies in the middle, an error unless a loss of power left it where no data was firm.
    fn must_truncate(&self, end: &SegmentEnd) -> Result<bool, ResumeError> {
        let may_lie_in_pieces = self.extent.is_some_and(|extent| !extent.same_boot);
        match end.content {
            TailContent::Nothing => Ok(false),
            TailContent::Torn => self.check_durable(end, CHECKSUM_MISMATCH).map(|()| true),
            TailContent::FramesBehindDamage(what) if may_lie_in_pieces => self.check_durable(end, what).map(|()| true),
            TailContent::FramesBehindDamage(what) | TailContent::Damage(what) => Err(end.damage(what)),
        }
    }

    /// Rejects an end before the point up to which data was known to be on the disk.
    fn check_durable(&self, end: &SegmentEnd, what: &'static str) -> Result<(), ResumeError> {
        let firm = self.extent.map_or(0, |extent| extent.durable.sequence);
        if end.sequence < firm { Err(end.damage(what)) } else { Ok(()) }
    }
}

impl SegmentEnd {
    fn damage(&self, what: &'static str) -> ResumeError {
        LogReadError::Damaged { sequence: self.sequence, segment: self.segment, offset: self.offset, what }.into()
    }
}

/// Zeroes all data behind a segment's last frame, so that a torn write is never taken for a frame; returns the bytes up
/// to the last nonzero one. From the end down: a kill in the middle leaves the word that explains the data.
fn clear(region: &Region, offset: usize, segment_bytes: usize) -> u64 {
    let mut cleared = 0;
    for at in (offset..segment_bytes).step_by(8).rev() {
        if region.word(at).load(Ordering::Relaxed) != 0 {
            cleared = cleared.max((at + 8 - offset) as u64);
            // Release: visible after every word cleared before it.
            region.word(at).store(0, Ordering::Release);
        }
    }
    cleared
}
