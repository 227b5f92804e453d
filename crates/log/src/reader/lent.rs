//! Messages that are lent for as long as who has them likes.
//!
//! ```text
//!   Reader ── lend ──> Lent, Lent … ──> their segment, mapped until the last of them has gone
//!     └── goes on, and is closed
//! ```
//!
//! A view of a frame is sound as long as nobody writes to the frame. Of a `keep` log that a reader has found, that is for good:
//!
//! * Its writer writes behind the tail only, the lines that it takes and the zeros that it puts there included.
//! * Who takes the log up after a writer was killed cuts what is behind the last whole frame, or behind the batch that was not
//!   ended: no reader finds that. Who does so in a later boot may also cut what was never known to be on the disk, behind a
//!   piece that is missing; a reader that began behind that piece has found it. Such a message is copied ([`Lent::is_copy`]).
//! * Who removes the log, or moves it away, leaves the mapped file as it is. A fork has the same pages.
//!
//! In a `fail` log a frame stays while a cursor holds it, and a cursor is a process's: a fork would read on when its parent has
//! moved it, or has died, and the writer had written there. So nothing of it is lent but to [`Reader::next`], until the next
//! call; and no writer waits for a message that somebody forgot.
//!
//! As for any reader of a log that only programs of ours write: who truncates its file ends whoever then looks at a message in
//! what is gone (SIGBUS), and who writes into the file by other means changes what was lent.

use std::fmt;

use super::{Found, Message, Reader};
use crate::follow::FrameAt;
use crate::region::Region;
use crate::{Policy, ReadError};

/// What a reader finds whose messages are lent.
#[derive(Debug)]
pub enum NextLent {
    /// A message.
    Message(Lent),
    /// Exactly so many messages are gone.
    Gap(u64),
    /// Nothing new.
    Empty,
}

/// A message that stays as it is until this is dropped, whatever becomes of its reader, its writer and the log's name. Its
/// segment stays mapped for it.
pub struct Lent {
    /// Its number, from 0, without holes.
    pub sequence: u64,
    /// When it was stamped, in ticks of the log's clock.
    pub stamp: u64,
    /// What it is.
    pub kind: u8,
    bytes: Bytes,
}

enum Bytes {
    InPlace { segment: Region, offset: usize, length: usize },
    Copied(Box<[u8]>),
}

impl Reader {
    /// Whether messages can be lent: those of a `keep` log that no stranger may write to.
    #[inline]
    pub fn lends(&self) -> bool {
        self.shape.policy == Policy::Keep && self.is_ours && self.follower.lends()
    }

    /// As [`Self::next`], but a message stays for as long as it is held. None where [`Self::lends`] says no; then nothing was
    /// taken.
    pub fn lend(&mut self) -> Result<Option<NextLent>, ReadError> {
        if !self.lends() {
            return Ok(None);
        }
        self.publish_cursor()?;
        let found = match self.frame() {
            Some(at) => Found::Frame(at),
            None => self.advance()?,
        };
        Ok(Some(match found {
            Found::Frame(at) => NextLent::Message(self.lent(at)),
            Found::Gap(missed) => NextLent::Gap(missed),
            Found::Nothing => NextLent::Empty,
        }))
    }

    /// A frame of this segment that was just found.
    fn lent(&self, at: FrameAt) -> Lent {
        if at.sequence >= self.settled {
            return Lent::copied(self.message(at));
        }
        // SAFETY: it was found, so it is committed; the log grows, so its writer never comes back to it; and whoever takes the
        // log up cuts nothing before `settled`.
        unsafe { Lent::in_place(self.follower.region().clone(), at) }
    }
}

impl Lent {
    /// A frame where it lies.
    ///
    /// # Safety
    /// It must be committed, lie in this segment, and never be written to again.
    pub(crate) unsafe fn in_place(segment: Region, at: FrameAt) -> Self {
        let FrameAt { sequence, stamp, kind, length, offset } = at;
        Self { sequence, stamp, kind, bytes: Bytes::InPlace { segment, offset, length } }
    }

    fn copied(message: Message<'_>) -> Self {
        let Message { sequence, stamp, kind, payload } = message;
        Self { sequence, stamp, kind, bytes: Bytes::Copied(payload.into()) }
    }

    /// Its bytes.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match &self.bytes {
            Bytes::InPlace { segment, offset, length } => {
                // SAFETY: the frame is committed and never written to again, as `in_place` was promised, and the segment keeps
                // the memory that it lies in.
                unsafe { segment.view(*offset, *length) }
            }
            Bytes::Copied(copy) => copy,
        }
    }

    /// Whether it does not lie in the log any more: it is of another boot, and could be cut there.
    pub fn is_copy(&self) -> bool {
        matches!(self.bytes, Bytes::Copied(_))
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.payload()
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, stamp, kind, .. } = self;
        f.debug_struct("Lent")
            .field("sequence", sequence)
            .field("stamp", stamp)
            .field("kind", kind)
            .field("bytes", &self.payload().len())
            .finish()
    }
}
