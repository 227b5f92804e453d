//! The fields of a frame: one pass over its bytes makes a table of tags and spans, and a [`Message`] reads values by
//! it.
//!
//! ```text
//!   8=FIX.4.4|9=61|35=D|…|95=3|96=a|b|…|10=128|
//!             ^ start      ^ a data field: its end is known from 95, because it may contain the delimiter
//! ```
//!
//! A table is used again for each message, so that reading allocates nothing once the table has room for the longest
//! one.

mod data_tags;

use thiserror::Error;

pub use self::data_tags::DataTags;
use crate::soh::{SOH, SohScan};
pub use crate::tags::Tag;
use crate::tags::{MSG_SEQ_NUM, MSG_TYPE};
use crate::values::{ValueFault, parse_unsigned};

/// Max digits of a tag.
const MAX_TAG_DIGITS: usize = 9;
/// Fields that a new table has room for.
const ROOM: usize = 128;

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Number of the field.
    pub tag: Tag,
    /// Offset of the value in the frame, in bytes.
    pub start: u32,
    /// Length of the value in bytes.
    pub len: u32,
}

/// A fault in the fields of a frame. Each has the offset of its field in the frame, `at`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FieldFault {
    /// The last field has no delimiter behind it.
    #[error("the field at byte {at} does not end; the sender must end each field with the byte 01")]
    NoEnd {
        /// Offset of the field.
        at: u32,
    },
    /// A field without a tag or without `=`.
    #[error("the field at byte {at} is no tag=value; the sender must write one, or the length of the data before it")]
    NoTag {
        /// Offset of the field.
        at: u32,
    },
    /// The tag is not a number.
    #[error("the tag at byte {at} is not a number; correct it at the sender")]
    TagText {
        /// Offset of the field.
        at: u32,
        /// Length of the tag in bytes.
        len: u32,
    },
    /// The tag is a number that no field can have: 0, negative, with a zero in front, or above 999,999,999.
    #[error("the tag at byte {at} is not a number from 1 to 999999999; correct it at the sender")]
    TagNumber {
        /// Offset of the field.
        at: u32,
        /// Length of the tag in bytes.
        len: u32,
    },
    /// A length does not lead to the end of its data field.
    #[error("tag {tag} at byte {at} is not the length of the data behind it; correct it at the sender")]
    DataLength {
        /// Offset of the length field.
        at: u32,
        /// Tag of the length field.
        tag: Tag,
    },
    /// A field without a value. It is in the table.
    #[error("tag {tag} at byte {at} has no value; the sender must leave the field out")]
    NoValue {
        /// Offset of the field.
        at: u32,
        /// Tag of the field.
        tag: Tag,
    },
    /// The frame is longer than offsets of 32 bits reach.
    #[error("a frame of {bytes} bytes is too long; the limit is 4294967295 bytes")]
    TooLong {
        /// Length of the frame in bytes.
        bytes: usize,
    },
}

impl FieldFault {
    /// Returns whether the frame is garbled: it is ignored, and uses up no sequence number. Other faults are rejected.
    pub fn is_garbled(&self) -> bool {
        match self {
            Self::NoEnd { .. } | Self::NoTag { .. } | Self::TagText { .. } | Self::TooLong { .. } => true,
            Self::TagNumber { .. } | Self::DataLength { .. } | Self::NoValue { .. } => false,
        }
    }

    /// Returns the tag of the faulty field as it stands in the frame, for RefTagID (371); empty if there is none.
    pub fn tag_text<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let (at, len) = match *self {
            Self::TagText { at, len } | Self::TagNumber { at, len } => (at as usize, len as usize),
            Self::DataLength { at, .. } | Self::NoValue { at, .. } => {
                let rest = frame.get(at as usize..).unwrap_or_default();
                (at as usize, rest.iter().position(|&byte| byte == b'=').unwrap_or_default())
            }
            Self::NoEnd { .. } | Self::NoTag { .. } | Self::TooLong { .. } => return &[],
        };
        frame.get(at..at.saturating_add(len)).unwrap_or_default()
    }

    /// Returns whether another fault is the better reason to refuse the frame: an empty value may be allowed.
    fn yields(&self) -> bool {
        matches!(self, Self::NoValue { .. })
    }
}

/// The fields of one frame, in their order.
///
/// ```
/// use tickpath_fix::{DataTags, FieldTable, tags};
///
/// let frame = b"8=FIX.4.4\x019=26\x0135=0\x0134=7\x0149=A\x0156=B\x01112=x\x0110=211\x01";
/// let mut table = FieldTable::new();
/// let message = table.read(frame, &DataTags::standard())?;
/// assert_eq!(message.msg_type(), b"0");
/// assert_eq!(message.unsigned(tags::MSG_SEQ_NUM), Some(Ok(7)));
/// assert_eq!(message.get(tags::TEST_REQ_ID), Some(&b"x"[..]));
/// assert_eq!(message.get(tags::TEXT), None);
/// # Ok::<(), tickpath_fix::FieldFault>(())
/// ```
#[derive(Debug, Clone)]
pub struct FieldTable {
    fields: Vec<Field>,
}

impl Default for FieldTable {
    fn default() -> Self {
        Self::new()
    }
}

impl FieldTable {
    /// Makes an empty table, with room for most messages.
    pub fn new() -> Self {
        Self { fields: Vec::with_capacity(ROOM) }
    }

    /// Reads the fields of a frame. Data fields are read by their length field, because they may contain the delimiter.
    ///
    /// The error is the first fault; [`FieldFault::NoValue`] only if there is no other. The readable fields are in the
    /// table even so: [`Self::message`] returns them, for a Reject that needs the header.
    #[inline]
    pub fn read<'a>(&'a mut self, frame: &'a [u8], data_tags: &DataTags) -> Result<Message<'a>, FieldFault> {
        match self.fill(frame, data_tags) {
            None => Ok(self.message(frame)),
            Some(fault) => Err(fault),
        }
    }

    /// Returns the message of the frame that was read last, as far as its fields could be read. `frame` must be the
    /// same.
    #[inline]
    pub fn message<'a>(&'a self, frame: &'a [u8]) -> Message<'a> {
        Message { bytes: frame, fields: &self.fields }
    }

    /// Fills the table with the fields of a frame, and returns the fault that counts.
    fn fill(&mut self, frame: &[u8], data_tags: &DataTags) -> Option<FieldFault> {
        self.fields.clear();
        if u32::try_from(frame.len()).is_err() {
            return Some(FieldFault::TooLong { bytes: frame.len() });
        }
        let (mut fault, mut start) = (None, 0);
        let mut delimiters = SohScan::new(frame);
        while let Some(end) = delimiters.next_soh() {
            let field = &frame[start..end];
            let Some((tag, offset)) = read_tag(field) else {
                note(&mut fault, tag_fault(field, start));
                start = end + 1;
                continue;
            };
            let value = Field { tag, start: (start + offset) as u32, len: (field.len() - offset) as u32 };
            self.fields.push(value);
            if value.len == 0 {
                note(&mut fault, FieldFault::NoValue { at: start as u32, tag });
            }
            let at = start;
            start = end + 1;
            if let Some(data_tag) = data_tags.data_of(tag) {
                match read_data(frame, value, data_tag) {
                    Ok(None) => {}
                    Ok(Some(data)) => {
                        self.fields.push(data);
                        start = (data.start + data.len) as usize + 1;
                        delimiters.seek(start);
                    }
                    Err(()) => note(&mut fault, FieldFault::DataLength { at: at as u32, tag }),
                }
            }
        }
        if start < frame.len() {
            note(&mut fault, FieldFault::NoEnd { at: start as u32 });
        }
        fault
    }
}

/// A message, read into a [`FieldTable`].
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    fields: &'a [Field],
}

impl<'a> Message<'a> {
    /// Returns the whole frame.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns all fields, in the order of the frame.
    #[inline]
    pub fn fields(&self) -> &'a [Field] {
        self.fields
    }

    /// Returns the value of a field of this message.
    #[inline]
    pub fn value(&self, field: &Field) -> &'a [u8] {
        &self.bytes[field.start as usize..][..field.len as usize]
    }

    /// Returns the value of the first field with this tag.
    #[inline]
    pub fn get(&self, tag: Tag) -> Option<&'a [u8]> {
        self.fields.iter().find(|field| field.tag == tag).map(|field| self.value(field))
    }

    /// Returns the index in [`Self::fields`] of the first field with this tag.
    #[inline]
    pub fn position(&self, tag: Tag) -> Option<usize> {
        self.fields.iter().position(|field| field.tag == tag)
    }

    /// Returns the value of MsgType (35), empty if the message has none.
    #[inline]
    pub fn msg_type(&self) -> &'a [u8] {
        match self.fields.get(2) {
            Some(field) if field.tag == MSG_TYPE => self.value(field),
            _ => self.get(MSG_TYPE).unwrap_or_default(),
        }
    }

    /// Returns the value of MsgSeqNum (34); `None` if it is absent or is no whole number.
    #[inline]
    pub fn sequence_number(&self) -> Option<u64> {
        parse_unsigned(self.get(MSG_SEQ_NUM)?)
    }

    /// Returns the value of the first field with this tag as a whole number.
    #[inline]
    pub fn unsigned(&self, tag: Tag) -> Option<Result<u64, ValueFault>> {
        let value = self.get(tag)?;
        Some(parse_unsigned(value).ok_or(ValueFault::Unsigned { tag }))
    }

    /// Returns whether the first field with this tag is `Y`.
    #[inline]
    pub fn has_flag(&self, tag: Tag) -> bool {
        self.get(tag) == Some(b"Y")
    }
}

/// Keeps the first fault, and gives up an empty value for another one.
#[cold]
fn note(fault: &mut Option<FieldFault>, new: FieldFault) {
    if fault.is_none_or(|known| known.yields() && !new.yields()) {
        *fault = Some(new);
    }
}

/// Reads `tag=` at the begin of the bytes: the tag, and the offset of the value.
#[inline]
fn read_tag(field: &[u8]) -> Option<(Tag, usize)> {
    let mut tag: Tag = 0;
    for (offset, &byte) in field.iter().take(MAX_TAG_DIGITS + 1).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (byte == b'=' && tag != 0).then_some((tag, offset + 1));
        }
        if digit == 0 && tag == 0 {
            return None;
        }
        // Wraps for ten digits, which are no tag.
        tag = tag.wrapping_mul(10).wrapping_add(Tag::from(digit));
    }
    None
}

/// Returns the fault of a field whose tag cannot be read.
#[cold]
fn tag_fault(field: &[u8], at: usize) -> FieldFault {
    let at = at as u32;
    let Some(len) = field.iter().position(|&byte| byte == b'=') else {
        return FieldFault::NoTag { at };
    };
    let digits = field[..len].strip_prefix(b"-").unwrap_or(&field[..len]);
    match len {
        0 => FieldFault::NoTag { at },
        _ if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            FieldFault::TagNumber { at, len: len as u32 }
        }
        _ => FieldFault::TagText { at, len: len as u32 },
    }
}

/// Reads the data field behind its length field. `Ok(None)` if another field is there, or a length of zero; an error if
/// the length does not lead to the end of the data.
fn read_data(frame: &[u8], length: Field, data_tag: Tag) -> Result<Option<Field>, ()> {
    let end = (length.start + length.len) as usize;
    let Some((_, start)) = read_tag(&frame[end + 1..]).filter(|(tag, _)| *tag == data_tag) else {
        return Ok(None);
    };
    let start = end + 1 + start;
    let data = parse_unsigned(&frame[length.start as usize..end]).and_then(|len| usize::try_from(len).ok());
    match data.and_then(|len| Some((len, start.checked_add(len)?))) {
        Some((0, end)) if frame.get(end) == Some(&SOH) => Ok(None),
        Some((len, end)) if frame.get(end) == Some(&SOH) => {
            Ok(Some(Field { tag: data_tag, start: start as u32, len: len as u32 }))
        }
        _ => Err(()),
    }
}
