//! A puller's walk through its log: gates no writer, passes messages claimed by others, and copies nothing.

use tickpath_clock::relax;

use super::{LogMessage, Reader, ReaderStart, Registration, TRIES, enter, present_segments, unreadable};
use crate::follow::{CursorStep, FrameAt};
use crate::guard::ProcessTrust;
use crate::{LogOpenError, LogPath, LogReadError, files};

pub(crate) enum WalkStep {
    /// A frame; the puller is behind it now. It is pinned only once it is claimed.
    Frame(FrameAt),
    /// No frame yet.
    Nothing,
    /// The segment was recycled, so all its messages are done.
    Lapped,
}

impl Reader {
    /// Opens a reader that gates no writer, and may sleep all the same.
    pub(crate) fn open_for_puller(path: &LogPath) -> Result<Self, LogOpenError> {
        let mut reader = Self::open(path, ReaderStart::Oldest, Registration::Unregistered)?;
        reader.control = Some(files::open_control(path, ProcessTrust::Trusted)?);
        Ok(reader)
    }

    /// Steps over the next frame, claimed or not.
    #[inline(always)]
    pub(crate) fn walk(&mut self) -> Result<WalkStep, LogReadError> {
        // Goes round the ring at most once, however fast the writer ends its segments.
        let mut segments = self.segments.ring_len().unwrap_or(u64::MAX);
        loop {
            match self.cursor.skip_frame()? {
                CursorStep::Frame(at) => return Ok(WalkStep::Frame(at)),
                CursorStep::Empty => return Ok(WalkStep::Nothing),
                CursorStep::Lapped => return Ok(WalkStep::Lapped),
                CursorStep::End => {}
            }
            if let Some(found) = self.walk_on()? {
                return Ok(found);
            }
            segments -= 1;
            if segments == 0 {
                return Ok(WalkStep::Nothing);
            }
        }
    }

    /// Returns a frame of this segment that the caller has walked over and then claimed.
    #[inline(always)]
    pub(crate) fn claimed(&self, at: FrameAt) -> Result<LogMessage<'_>, LogReadError> {
        let payload = self.cursor.claimed(at)?;
        Ok(LogMessage { sequence: at.sequence, stamp: at.stamp, kind: at.kind, payload })
    }

    /// Moves to this sequence number, or to the oldest message if it was recycled.
    #[cold]
    pub(crate) fn seek(&mut self, wanted: u64) -> Result<(), LogReadError> {
        let segment = self.cursor.index;
        for _ in 0..TRIES {
            let present = present_segments(&self.segments, &self.shape).map_err(unreadable(segment))?;
            let found = present.partition_point(|f| f.sequence <= wanted).saturating_sub(1);
            let Some(cursor) = present.into_iter().nth(found) else {
                relax();
                continue;
            };
            self.cursor = cursor;
            if self.walk_to(wanted)? {
                return Ok(());
            }
        }
        let what = "no segment stays long enough to enter";
        Err(LogReadError::Damaged { sequence: wanted, segment, offset: self.cursor.offset, what })
    }

    /// Steps over the frames of this segment before the wanted one. Returns false if the reader was lapped meanwhile.
    fn walk_to(&mut self, wanted: u64) -> Result<bool, LogReadError> {
        while self.cursor.sequence < wanted {
            match self.cursor.skip_frame()? {
                CursorStep::Frame(_) => {}
                CursorStep::Lapped => return Ok(false),
                // The wanted message begins the next segment, or is still to be pushed.
                CursorStep::Empty | CursorStep::End => break,
            }
        }
        Ok(true)
    }

    /// Enters the next segment, or returns what prevents it.
    #[cold]
    fn walk_on(&mut self) -> Result<Option<WalkStep>, LogReadError> {
        let segment = self.cursor.index + 1;
        let region = self.segments.get(segment).map_err(unreadable(segment))?;
        match region.and_then(|region| enter(region, &self.shape, segment)) {
            Some(cursor) => {
                self.cursor = cursor;
                Ok(None)
            }
            // Not opened yet, or recycled already: then it holds a later index.
            None if self.is_past(segment) => Ok(Some(WalkStep::Lapped)),
            None => Ok(Some(WalkStep::Nothing)),
        }
    }
}
