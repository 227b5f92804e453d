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

/// Max bytes of a payload; a longer one comes from no client or OMS of this protocol.
pub const MAX_PAYLOAD: usize = 4096;

/// Bytes of a [`FrameHeader`].
pub const HEADER_BYTES: usize = size_of::<FrameHeader>();

/// Bytes of an inbox's buffer: the most that it reads at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Header of each payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub length: u32,
    /// Kind of the payload: a kind of `tickpath-market`, a record of `tickpath-oms-core` (admin commands), or a
    /// [`FrameKind`](crate::FrameKind).
    pub kind: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes of the message; text follows it in the payload. A later version's message is longer.
    pub fixed: u16,
    /// Number of a request or a report; in a heartbeat the number that its sender expects next.
    pub sequence: u64,
    /// Time of sending, in ticks of the sender's clock: T0 of a request.
    pub stamp: u64,
}

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Kind of the payload.
    pub kind: u8,
    /// Number of the frame.
    pub sequence: u64,
    /// Time of sending, in ticks of the sender's clock.
    pub stamp: u64,
    /// The message.
    pub payload: &'a [u8],
    /// The text behind the message.
    pub text: &'a [u8],
}

impl Frame<'_> {
    /// Returns the message as this version knows it, whatever version wrote it: missing bytes are zero.
    pub fn message<T: FromBytes + IntoBytes>(&self) -> T {
        let mut message = T::new_zeroed();
        let known = size_of::<T>().min(self.payload.len());
        message.as_mut_bytes()[..known].copy_from_slice(&self.payload[..known]);
        message
    }
}

/// Error of bytes that are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The payload is longer than any message.
    #[error("a frame of {0} bytes is not of this protocol; is this an order entry port?")]
    Length(u32),
    /// The message is longer than the payload.
    #[error(
        "a frame of {length} bytes with a message of {fixed} is not of this protocol; is this an order entry port?"
    )]
    Fixed {
        /// Bytes of the payload.
        length: u32,
        /// Bytes of the message in it.
        fixed: u16,
    },
}

/// Buffer of received bytes, which are split into frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl FrameBuffer {
    /// Returns the buffer for the next bytes, never empty. The caller reports their number with [`Self::advance`].
    pub fn free_space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.bytes.is_empty() {
            // The allocator's zeros: a page that no byte has come to costs no memory.
            self.bytes = vec![0; BUFFER_BYTES];
        }
        if self.bytes.len() - self.end < HEADER_BYTES + MAX_PAYLOAD {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Accepts so many bytes that were written to the buffer.
    pub fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.end, "more bytes than the buffer has room for");
        self.end += bytes;
    }

    /// Returns whether [`Self::next`] would return a frame or an error.
    #[inline]
    pub fn has_frame(&self) -> bool {
        let head = FrameHeader::read_from_prefix(&self.bytes[self.start..self.end]).ok();
        head.is_some_and(|(FrameHeader { length, fixed, .. }, rest)| {
            rest.len() >= length as usize || length as usize > MAX_PAYLOAD || u32::from(fixed) > length
        })
    }

    /// Returns the next frame, if it is whole. The caller must take all frames before it reads more bytes.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a frame borrows its inbox, an iterator cannot lend")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let Some((head, rest)) = FrameHeader::read_from_prefix(&self.bytes[self.start..self.end]).ok() else {
            return Ok(None);
        };
        let FrameHeader { length, kind, fixed, sequence, stamp, .. } = head;
        if length as usize > MAX_PAYLOAD {
            return Err(FrameError::Length(length));
        }
        if u32::from(fixed) > length {
            return Err(FrameError::Fixed { length, fixed });
        }
        let Some(payload) = rest.get(..length as usize) else { return Ok(None) };
        self.start += HEADER_BYTES + payload.len();
        let (payload, text) = payload.split_at(fixed.into());
        Ok(Some(Frame { kind, sequence, stamp, payload, text }))
    }
}

/// Appends the frame of a message.
#[inline]
pub fn write_frame(out: &mut Vec<u8>, kind: u8, sequence: u64, stamp: u64, message: &[u8]) {
    write_frame_with_text(out, kind, sequence, stamp, message, &[]);
}

/// Appends the frame of a message with a text, which is cut at the max payload.
pub fn write_frame_with_text(out: &mut Vec<u8>, kind: u8, sequence: u64, stamp: u64, message: &[u8], text: &[u8]) {
    debug_assert!(message.len() <= MAX_PAYLOAD);
    let text = &text[..text.len().min(MAX_PAYLOAD - message.len())];
    let (length, fixed) = ((message.len() + text.len()) as u32, message.len() as u16);
    let head = FrameHeader { length, kind, reserved: 0, fixed, sequence, stamp };
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(message);
    out.extend_from_slice(text);
}
