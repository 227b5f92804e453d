//! Messages lent for as long as their holder keeps them.
//!
//! ```text
//!   Reader ── lend ──> LentFrame, LentFrame … ──> their segment, mapped until the last of them is dropped
//!     └── continues, and is closed
//! ```
//!
//! A view of a frame is sound while no process writes to the frame: in a `keep` log, once read by a reader, for ever:
//!
//! * Its writer writes behind the tail only, including the lines that it takes and the zeros that it puts there.
//! * A writer that resumes the log after a kill cuts what is behind the last whole frame, or behind an unfinished
//!   batch: no reader returns that. In a later boot it may also cut data never known to be on the disk, behind a
//!   missing piece; a reader that began behind the piece has returned it. Such a message is copied, see
//!   [`LentFrame::is_copy`].
//! * Removing or moving the log leaves the mapped file as it is. A fork has the same pages.
//!
//! In a `fail` log a frame stays while a cursor holds it, and a cursor belongs to a process: a fork would read a frame
//! after its parent has moved the cursor, or died, and the writer has overwritten it. So such a frame is lent only by
//! [`Reader::next`], until the next call; and no writer waits for a forgotten message.
//!
//! As with any reader of a log that only trusted programs write: truncating the file kills a process that then reads a
//! lent message in the missing part (SIGBUS), and writing into the file by other means changes lent messages.

use std::fmt;

use super::{FrameOrGap, LogMessage, Reader};
use crate::follow::FrameAt;
use crate::region::Region;
use crate::{LogReadError, OverflowPolicy};

/// Result of a read that lends its message.
#[derive(Debug)]
pub enum NextLent {
    /// A message.
    Message(LentFrame),
    /// Number of messages lost.
    Gap(u64),
    /// No new message.
    Empty,
}

/// A message that stays unchanged and mapped until this is dropped, independent of reader, writer and name.
pub struct LentFrame {
    /// Sequence number: from 0, without gaps.
    pub sequence: u64,
    /// Stamp, in ticks of the log's clock.
    pub stamp: u64,
    /// Kind of the message.
    pub kind: u8,
    bytes: LentPayload,
}

enum LentPayload {
    InPlace { segment: Region, offset: usize, length: usize },
    Copied(Box<[u8]>),
}

impl Reader {
    /// Returns true if messages can be lent: those of a `keep` log that no other user may write to.
    #[inline]
    pub fn lends(&self) -> bool {
        self.shape.policy == OverflowPolicy::Keep && self.is_ours && self.cursor.lend
    }

    /// As [`Self::next`], but a message stays while it is held; none, without a read, if [`Self::lends`] is false.
    pub fn lend(&mut self) -> Result<Option<NextLent>, LogReadError> {
        if !self.lends() {
            return Ok(None);
        }
        self.publish_cursor()?;
        let found = match self.frame() {
            Some(at) => FrameOrGap::Frame(at),
            None => self.advance()?,
        };
        Ok(Some(match found {
            FrameOrGap::Frame(at) => NextLent::Message(self.lent(at)),
            FrameOrGap::Gap(missed) => NextLent::Gap(missed),
            FrameOrGap::Nothing => NextLent::Empty,
        }))
    }

    /// Lends a frame of this segment that was just found; copies it if a later boot could cut it.
    fn lent(&self, at: FrameAt) -> LentFrame {
        if at.sequence >= self.settled {
            return LentFrame::copied(self.message(at));
        }
        // SAFETY: the frame was found, so it is committed; the log grows, so its writer never writes there again; and
        // resuming the log cuts no frame before `settled`.
        unsafe { LentFrame::in_place(self.cursor.region.clone(), at) }
    }
}

impl LentFrame {
    /// Lends a frame in place.
    ///
    /// # Safety
    /// The frame must be committed, lie in this segment, and never be written to again.
    pub(crate) unsafe fn in_place(segment: Region, at: FrameAt) -> Self {
        let FrameAt { sequence, stamp, kind, length, offset } = at;
        Self { sequence, stamp, kind, bytes: LentPayload::InPlace { segment, offset, length } }
    }

    fn copied(message: LogMessage<'_>) -> Self {
        let LogMessage { sequence, stamp, kind, payload } = message;
        Self { sequence, stamp, kind, bytes: LentPayload::Copied(payload.into()) }
    }

    /// Returns the payload bytes.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match &self.bytes {
            LentPayload::InPlace { segment, offset, length } => {
                // SAFETY: the frame is committed and never written to again, as the caller of `in_place` promised, and
                // the segment keeps its memory mapped.
                unsafe { segment.view(*offset, *length) }
            }
            LentPayload::Copied(copy) => copy,
        }
    }

    /// Returns true if the message is a copy outside the log: it comes from another boot, and could be cut there.
    pub fn is_copy(&self) -> bool {
        matches!(self.bytes, LentPayload::Copied(_))
    }
}

impl AsRef<[u8]> for LentFrame {
    fn as_ref(&self) -> &[u8] {
        self.payload()
    }
}

impl fmt::Debug for LentFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, stamp, kind, .. } = self;
        f.debug_struct("LentFrame")
            .field("sequence", sequence)
            .field("stamp", stamp)
            .field("kind", kind)
            .field("bytes", &self.payload().len())
            .finish()
    }
}
