//! Frames from a stream of bytes, by BodyLength (9), so that `10=` inside data ends nothing. Bytes that are no message
//! are reported and dropped.
//!
//! ```text
//!   garbage 8=FIX.4.4|9=61|35=A|…|10=128|8=FIX.4.4|9=5
//!           └─ head ──────┘└ body ┘└────┘ trailer       ^ more bytes are needed
//! ```
//!
//! A search continues behind the end that a wrong BodyLength names, not behind its head: as other engines do, so that
//! both sides agree on which messages were lost. Each of them is resent for its sequence number.
//!
//! # Invariants
//!
//! * A frame has a right BodyLength and CheckSum, and begins with BeginString, BodyLength and MsgType.
//! * Each byte is in one frame or one garbled piece, in the order of arrival.
//! * Unread bytes are bounded by the longest message and the bytes of one [`FrameReader::room`], if the caller takes
//!   all frames before it adds more bytes.

use memchr::memmem;
use thiserror::Error;

use crate::check_sum::check_sum;
use crate::soh::SOH;

/// Begin of every frame.
const BEGIN: &[u8] = b"8=FIX";
/// Max length of a BeginString, `FIXT.1.1` and the like.
const MAX_BEGIN_STRING: usize = 16;
/// Max digits of a BodyLength, zeros in front included.
const MAX_LENGTH_DIGITS: usize = 9;
/// Length of `10=xxx|`.
const TRAILER_LENGTH: usize = 7;
/// First bytes of a body: MsgType is the third field.
const BODY_BEGIN: &[u8] = b"35=";
/// Bytes that a new reader has room for.
const ROOM: usize = 64 * 1024;

/// A whole message, checked by length and sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// From `8=` to the delimiter behind `10=xxx`.
    pub bytes: &'a [u8],
}

/// Bytes that are no message. They are dropped without a reject, and use up no sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{bytes} bytes from the peer are no message: {why}; they are dropped")]
pub struct Garbled {
    /// Number of bytes that are dropped.
    pub bytes: usize,
    /// Reason.
    pub why: GarbledReason,
}

/// Reason why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GarbledReason {
    /// The bytes do not begin with `8=FIX`.
    #[error("they do not begin with BeginString (8)")]
    NoBeginString,
    /// BeginString has no end.
    #[error("BeginString (8) is longer than 16 bytes")]
    BeginString,
    /// The second field is not BodyLength, or its value is not a number above 0.
    #[error("BodyLength (9) is not the second field, or no number above 0")]
    BodyLength,
    /// The body is longer than the limit.
    #[error("BodyLength (9) is above the limit for a message")]
    TooLong,
    /// No CheckSum field is where BodyLength leads to.
    #[error("CheckSum (10) is not where BodyLength (9) leads to")]
    NoCheckSum,
    /// The sum of the bytes is another one.
    #[error("CheckSum (10) is wrong")]
    CheckSum,
    /// The third field is not MsgType.
    #[error("MsgType (35) is not the third field")]
    MsgType,
}

/// Splits a stream into frames.
///
/// ```
/// use tickpath_fix::FrameReader;
///
/// let mut reader = FrameReader::new(1024);
/// reader.extend(b"?8=FIX.4.4\x019=5\x0135=0\x0110=163\x018=FI");
/// assert_eq!(reader.next().and_then(Result::err).map(|garbled| garbled.bytes), Some(1));
/// let frame = reader.next().ok_or("a frame is there")??;
/// assert!(frame.bytes.ends_with(b"\x0110=163\x01"));
/// assert!(reader.next().is_none());
/// assert_eq!(reader.unread(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FrameReader {
    /// Unread bytes are in `begin..end`; the bytes behind are room.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    max_body: usize,
}

/// Result of a look at the unread bytes.
enum Found {
    /// A frame of this length.
    Frame(usize),
    Garbled(Garbled),
    /// No decision without more bytes.
    Nothing,
}

impl FrameReader {
    /// Makes a reader of messages whose body, the part that BodyLength counts, has at most this many bytes. The limit
    /// is 999,999,999 at most.
    pub fn new(max_body_bytes: usize) -> Self {
        Self { buffer: vec![0; ROOM], begin: 0, end: 0, max_body: max_body_bytes.min(999_999_999) }
    }

    /// Returns room of at least `at_least` bytes, to receive bytes into. [`Self::add`] takes them over.
    #[inline]
    pub fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < at_least {
            self.make_room(at_least);
        }
        &mut self.buffer[self.end..]
    }

    /// Takes over the first `received` bytes of the room that was returned last.
    ///
    /// # Panics
    ///
    /// If the room has fewer bytes.
    #[inline]
    pub fn add(&mut self, received: usize) {
        assert!(received <= self.buffer.len() - self.end, "more bytes were received than the room has");
        self.end += received;
    }

    /// Copies received bytes behind the unread ones.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.add(bytes.len());
    }

    /// Returns the next frame, or the next piece that is no message; `None` if more bytes are needed.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "it lends, which an Iterator cannot")]
    pub fn next(&mut self) -> Option<Result<Frame<'_>, Garbled>> {
        match find(&self.buffer[self.begin..self.end], self.max_body) {
            Found::Frame(length) => {
                let begin = self.begin;
                self.begin += length;
                Some(Ok(Frame { bytes: &self.buffer[begin..self.begin] }))
            }
            Found::Garbled(garbled) => {
                self.begin += garbled.bytes;
                Some(Err(garbled))
            }
            Found::Nothing => None,
        }
    }

    /// Returns the number of received bytes that are in no frame and no garbled piece yet.
    pub fn unread(&self) -> usize {
        self.end - self.begin
    }

    /// Drops all unread bytes: a new connection begins.
    pub fn clear(&mut self) {
        (self.begin, self.end) = (0, 0);
    }

    /// Moves the unread bytes to the front, and grows the buffer if that is not enough.
    #[cold]
    fn make_room(&mut self, at_least: usize) {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        let needed = self.end + at_least;
        if self.buffer.len() < needed {
            self.buffer.resize(needed.next_power_of_two(), 0);
        }
    }
}

/// Looks for a frame at the begin of the unread bytes.
#[inline]
fn find(unread: &[u8], max_body: usize) -> Found {
    if !unread.starts_with(BEGIN) {
        return find_begin(unread);
    }
    let (head, length) = match read_head(unread) {
        Head::Complete { head, length } => (head, length),
        Head::Wrong(why) => return garbled(unread, BEGIN.len(), why),
        Head::Incomplete => return Found::Nothing,
    };
    if length > max_body {
        return garbled(unread, head, GarbledReason::TooLong);
    }
    let body_end = head + length;
    let Some(trailer) = unread.get(body_end..) else { return Found::Nothing };
    match read_trailer(trailer) {
        Trailer::Complete(sum) if unread[body_end - 1] == SOH => {
            let frame_end = body_end + TRAILER_LENGTH;
            if check_sum(&unread[..body_end]) != sum {
                return garbled(unread, frame_end, GarbledReason::CheckSum);
            }
            if !unread[head..body_end].starts_with(BODY_BEGIN) {
                return garbled(unread, frame_end, GarbledReason::MsgType);
            }
            Found::Frame(frame_end)
        }
        Trailer::Incomplete => Found::Nothing,
        Trailer::Complete(_) | Trailer::Wrong => garbled(unread, body_end, GarbledReason::NoCheckSum),
    }
}

/// Result of reading `8=…|9=…|`.
enum Head {
    /// Length of the head, and the length of the body that it names, in bytes.
    Complete {
        head: usize,
        length: usize,
    },
    Wrong(GarbledReason),
    Incomplete,
}

/// Reads the first two fields of bytes that begin with [`BEGIN`].
#[inline]
fn read_head(unread: &[u8]) -> Head {
    let value = &unread[2..];
    let Some(end) = value.iter().take(MAX_BEGIN_STRING + 1).position(|&byte| byte == SOH) else {
        let is_short = value.len() <= MAX_BEGIN_STRING;
        return if is_short { Head::Incomplete } else { Head::Wrong(GarbledReason::BeginString) };
    };
    let rest = &value[end + 1..];
    let Some(digits) = rest.strip_prefix(b"9=") else {
        return if b"9=".starts_with(rest) { Head::Incomplete } else { Head::Wrong(GarbledReason::BodyLength) };
    };
    let mut length = 0;
    for (count, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let is_length = byte == SOH && length > 0;
            let head = unread.len() - digits.len() + count + 1;
            return if is_length { Head::Complete { head, length } } else { Head::Wrong(GarbledReason::BodyLength) };
        }
        if count == MAX_LENGTH_DIGITS {
            return Head::Wrong(GarbledReason::TooLong);
        }
        length = length * 10 + usize::from(digit);
    }
    Head::Incomplete
}

/// Result of reading `10=xxx|`.
enum Trailer {
    /// The sum.
    Complete(u8),
    Wrong,
    Incomplete,
}

/// Reads the last field at the begin of the bytes behind a body.
#[inline]
fn read_trailer(bytes: &[u8]) -> Trailer {
    if let Some(&[b'1', b'0', b'=', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', SOH]) =
        bytes.first_chunk::<TRAILER_LENGTH>()
    {
        let sum = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
        return u8::try_from(sum).map_or(Trailer::Wrong, Trailer::Complete);
    }
    let may_be = |(place, &byte): (usize, &u8)| match place {
        0..3 => byte == b"10="[place],
        3..6 => byte.is_ascii_digit(),
        _ => false,
    };
    if bytes.len() < TRAILER_LENGTH && bytes.iter().enumerate().all(may_be) {
        Trailer::Incomplete
    } else {
        Trailer::Wrong
    }
}

/// Drops the bytes before the next begin of a frame; waits if they may be the begin of one.
#[cold]
fn find_begin(unread: &[u8]) -> Found {
    if BEGIN.starts_with(unread) { Found::Nothing } else { garbled(unread, 1, GarbledReason::NoBeginString) }
}

/// Drops the bytes up to the next begin of a frame at or behind `from`.
#[cold]
fn garbled(unread: &[u8], from: usize, why: GarbledReason) -> Found {
    let rest = &unread[from..];
    let dropped = memmem::find(rest, BEGIN).unwrap_or_else(|| {
        // Bytes at the end that may become a begin stay.
        let partial = (1..BEGIN.len()).rev().find(|&length| rest.ends_with(&BEGIN[..length]));
        rest.len() - partial.unwrap_or_default()
    });
    Found::Garbled(Garbled { bytes: from + dropped, why })
}
