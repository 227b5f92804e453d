//! Frames on a stream of bytes.
//!
//! ```text
//!    0        4      5      6        8          16       24             24 + fixed
//!    ┌────────┬──────┬──────┬────────┬──────────┬────────┬──────────────┬──────────┐
//!    │ length │ kind │ zero │ fixed  │ sequence │ stamp  │ message      │ text     │
//!    └────────┴──────┴──────┴────────┴──────────┴────────┴──────────────┴──────────┘
//!                                                        └──────── length ─────────┘
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The longest payload: nobody who says more is one of ours.
pub const MOST_PAYLOAD: usize = 4096;

/// Bytes of a [`Head`].
pub const HEAD_BYTES: usize = size_of::<Head>();

/// What an inbox reads at once.
const ROOM: usize = 64 << 10;

/// What stands before each payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Head {
    /// Bytes of the payload.
    pub length: u32,
    /// What the payload is: a kind of `tickpath-market`, a record of `tickpath-orders` (the words of operators), or a
    /// [`Kind`](crate::Kind).
    pub kind: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes of the message; what is behind it in the payload is text. A later version's message is longer.
    pub fixed: u16,
    /// The number of a request or a report; of a heartbeat the number that its sender expects next.
    pub sequence: u64,
    /// When it was sent, in ticks of the sender's clock: T0 of a request.
    pub stamp: u64,
}

/// A frame that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: u8,
    /// Its number.
    pub sequence: u64,
    /// When it was sent.
    pub stamp: u64,
    /// The message.
    pub payload: &'a [u8],
    /// The text behind it.
    pub text: &'a [u8],
}

impl Frame<'_> {
    /// The message as this version knows it, whatever version wrote it: what that lacks is zero.
    pub fn message<T: FromBytes + IntoBytes>(&self) -> T {
        let mut message = T::new_zeroed();
        let known = size_of::<T>().min(self.payload.len());
        message.as_mut_bytes()[..known].copy_from_slice(&self.payload[..known]);
        message
    }
}

/// Bytes that are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It claims to be longer than any message.
    #[error("a frame of {0} bytes is none of ours; is this an order entry port?")]
    Length(u32),
    /// Its message is longer than all of it.
    #[error("a frame of {length} bytes with a message of {fixed} is none of ours; is this an order entry port?")]
    Fixed {
        /// Bytes of the payload.
        length: u32,
        /// Bytes of the message in it.
        fixed: u16,
    },
}

/// Bytes as they come, taken apart into frames.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Where the next bytes go; never empty. [`Self::filled`] says how many came.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.bytes.is_empty() {
            // From the allocator's zeros: a page that no byte has come to costs no memory.
            self.bytes = vec![0; ROOM];
        }
        if self.bytes.len() - self.end < HEAD_BYTES + MOST_PAYLOAD {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes have come.
    pub fn filled(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.end, "more bytes came than there was room for");
        self.end += bytes;
    }

    /// Whether [`Self::next`] would say more than that there is none.
    #[inline]
    pub fn has_frame(&self) -> bool {
        let head = Head::read_from_prefix(&self.bytes[self.start..self.end]).ok();
        head.is_some_and(|(Head { length, fixed, .. }, rest)| {
            rest.len() >= length as usize || length as usize > MOST_PAYLOAD || u32::from(fixed) > length
        })
    }

    /// The next frame, if it is whole. To be asked until there is none before more bytes are read.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a frame borrows its inbox, an iterator cannot lend")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let Some((head, rest)) = Head::read_from_prefix(&self.bytes[self.start..self.end]).ok() else {
            return Ok(None);
        };
        let Head { length, kind, fixed, sequence, stamp, .. } = head;
        if length as usize > MOST_PAYLOAD {
            return Err(FrameError::Length(length));
        }
        if u32::from(fixed) > length {
            return Err(FrameError::Fixed { length, fixed });
        }
        let Some(payload) = rest.get(..length as usize) else { return Ok(None) };
        self.start += HEAD_BYTES + payload.len();
        let (payload, text) = payload.split_at(fixed.into());
        Ok(Some(Frame { kind, sequence, stamp, payload, text }))
    }
}

/// Writes the frame of a message behind what is there.
#[inline]
pub fn write_frame(out: &mut Vec<u8>, kind: u8, sequence: u64, stamp: u64, message: &[u8]) {
    write_with_text(out, kind, sequence, stamp, message, &[]);
}

/// The same of a message with a text, which is cut where a frame ends.
pub fn write_with_text(out: &mut Vec<u8>, kind: u8, sequence: u64, stamp: u64, message: &[u8], text: &[u8]) {
    debug_assert!(message.len() <= MOST_PAYLOAD);
    let text = &text[..text.len().min(MOST_PAYLOAD - message.len())];
    let (length, fixed) = ((message.len() + text.len()) as u32, message.len() as u16);
    let head = Head { length, kind, reserved: 0, fixed, sequence, stamp };
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(message);
    out.extend_from_slice(text);
}
