//! A puller's walk through its log: with no cursor that gates the writer, past messages claimed by others, and without
//! copying.

use tickpath_clock::relax;

use super::{Message, Reader, Registration, Start, TRIES, enter, held};
use crate::follow::{FrameAt, Step};
use crate::guard::Others;
use crate::{OpenError, Place, ReadError, files};

/// Content at a puller's position.
pub(crate) enum Walked {
    /// A frame; the puller is behind it now. It is pinned only once it is claimed.
    Frame(FrameAt),
    /// No frame yet.
    Nothing,
    /// The segment was recycled, so all its messages are done.
    Lapped,
}

impl Reader {
    /// Opens a reader that gates no writer, and may sleep all the same.
    pub(crate) fn walking(place: &Place) -> Result<Self, OpenError> {
        let mut reader = Self::open(place, Start::Oldest, Registration::Unregistered)?;
        reader.control = Some(files::open_control(place, Others::Trusted)?);
        Ok(reader)
    }

    /// Steps over the next frame, claimed or not.
    #[inline(always)]
    pub(crate) fn walk(&mut self) -> Result<Walked, ReadError> {
        // Goes round the ring at most once, however fast the writer ends its segments.
        let mut segments = self.segments.ring_len().unwrap_or(u64::MAX);
        loop {
            match self.follower.pass()? {
                Step::Frame(at) => return Ok(Walked::Frame(at)),
                Step::Empty => return Ok(Walked::Nothing),
                Step::Lapped => return Ok(Walked::Lapped),
                Step::End => {}
            }
            if let Some(found) = self.walk_on()? {
                return Ok(found);
            }
            segments -= 1;
            if segments == 0 {
                return Ok(Walked::Nothing);
            }
        }
    }

    /// Returns a frame of this segment that the caller has walked over and then claimed.
    #[inline(always)]
    pub(crate) fn claimed(&self, at: FrameAt) -> Result<Message<'_>, ReadError> {
        let payload = self.follower.claimed(at)?;
        Ok(Message { sequence: at.sequence, stamp: at.stamp, kind: at.kind, payload })
    }

    /// Moves to this sequence number, or to the oldest message if it was recycled.
    #[cold]
    pub(crate) fn seek(&mut self, wanted: u64) -> Result<(), ReadError> {
        let segment = self.follower.index();
        for _ in 0..TRIES {
            let there = held(&self.segments, &self.shape).map_err(|reason| ReadError::Io { segment, reason })?;
            let found = there.partition_point(|f| f.sequence() <= wanted).saturating_sub(1);
            let Some(follower) = there.into_iter().nth(found) else {
                relax();
                continue;
            };
            self.follower = follower;
            if self.walk_to(wanted)? {
                return Ok(());
            }
        }
        let what = "no segment stays long enough to enter";
        Err(ReadError::Damaged { sequence: wanted, segment, offset: self.follower.offset(), what })
    }

    /// Steps over the frames of this segment before the wanted one. Returns false if the reader was lapped meanwhile.
    fn walk_to(&mut self, wanted: u64) -> Result<bool, ReadError> {
        while self.follower.sequence() < wanted {
            match self.follower.pass()? {
                Step::Frame(_) => {}
                Step::Lapped => return Ok(false),
                // The wanted message begins the next segment, or is still to be pushed.
                Step::Empty | Step::End => break,
            }
        }
        Ok(true)
    }

    /// Enters the next segment, or returns what prevents it.
    #[cold]
    fn walk_on(&mut self) -> Result<Option<Walked>, ReadError> {
        let segment = self.follower.index() + 1;
        let region = self.segments.get(segment).map_err(|reason| ReadError::Io { segment, reason })?;
        match region.and_then(|region| enter(region, &self.shape, segment)) {
            Some(follower) => {
                self.follower = follower;
                Ok(None)
            }
            // Not opened yet, or recycled already: then it holds a later index.
            None if self.is_past(segment) => Ok(Some(Walked::Lapped)),
            None => Ok(Some(Walked::Nothing)),
        }
    }
}
