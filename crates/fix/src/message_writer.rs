//! Writer of messages, into one buffer that is used again.
//!
//! ```text
//!   buffer:  ···· 8=FIX.4.4|9=61| 35=D|34=7|…|60=…| 10=128|
//!                 └ finish ─────┘ └ begin, fields ┘ └ finish
//! ```
//!
//! The head is written last, and ends where the body begins: BodyLength has no zeros in front, and no byte is moved.
//!
//! # Invariants
//!
//! * A finished message has a right BodyLength and CheckSum.
//! * No value can end its field: a delimiter in it is written as `?`, except in data, which has a length, and in
//!   [`MessageWriter::raw`].
//! * A field without a value is left out: FIX has no empty values.
//! * Nothing is allocated, except for a message that is longer than 4 KiB and than all before it.

use crate::check_sum::{check_sum, check_sum_digits};
use crate::digits::{MAX_DIGITS, PAIRS, decimal_room, digit_count, write_decimal, write_unsigned};
use crate::soh::{SOH, has_soh};
use crate::tags::{MSG_TYPE, Tag};
use crate::values::{SecondText, TIME_ROOM, TimePrecision};

/// Bytes that a new writer has room for.
const ROOM: usize = 4 * 1024;
/// Bytes that are written for `tag=`: a whole word, of which the value overwrites the rest.
const TAG_ROOM: usize = 8;
/// The first tag that is too long for that word.
const FIRST_LONG_TAG: Tag = 10_000;
/// Bytes that any `tag=` needs at most.
const LONG_TAG_ROOM: usize = 11;
/// Length of `10=xxx|`.
const TRAILER_LENGTH: usize = 7;
/// Stands for a delimiter in a value.
const REPLACEMENT: u8 = b'?';

/// Writes messages of one FIX version.
///
/// ```
/// use tickpath_fix::{MessageWriter, tags};
///
/// let mut writer = MessageWriter::new("FIX.4.4");
/// writer.begin(b"D");
/// writer.unsigned(tags::MSG_SEQ_NUM, 7);
/// writer.decimal(tags::PRICE, 6_180_025_000_000, 8);
/// let message = writer.finish();
/// assert_eq!(message, b"8=FIX.4.4\x019=22\x0135=D\x0134=7\x0144=61800.25\x0110=252\x01");
/// ```
#[derive(Debug, Clone)]
pub struct MessageWriter {
    /// Room of the head, the body up to `end`, and room.
    buffer: Vec<u8>,
    /// `8=FIX.4.4|9=`
    head: Vec<u8>,
    /// Offset of the body.
    body: usize,
    /// Offset behind the last field.
    end: usize,
    second: SecondText,
}

impl MessageWriter {
    /// Makes a writer of messages with this BeginString, such as `FIX.4.2`, `FIX.4.4` and `FIXT.1.1`.
    pub fn new(begin_string: &str) -> Self {
        let head = [&b"8="[..], begin_string.as_bytes(), &[SOH], b"9="].concat();
        let body = head.len() + MAX_DIGITS + 1;
        Self { buffer: vec![0; body + ROOM], head, body, end: body, second: SecondText::default() }
    }

    /// Begins a message of this type, and drops the one before. BeginString, BodyLength and CheckSum are written by
    /// [`Self::finish`].
    #[inline]
    pub fn begin(&mut self, msg_type: &[u8]) {
        self.end = self.body;
        self.bytes(MSG_TYPE, msg_type);
    }

    /// Writes a text.
    #[inline]
    pub fn text(&mut self, tag: Tag, value: &str) {
        self.bytes(tag, value.as_bytes());
    }

    /// Writes a value as it is.
    #[inline]
    pub fn bytes(&mut self, tag: Tag, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        let begin = self.tag(tag, value.len() + 1);
        let end = begin + value.len();
        if copy_value(&mut self.buffer[begin..end], value) {
            self.replace_delimiters(begin, end);
        }
        self.end_field(end);
    }

    /// Writes a whole number of at least 0.
    #[inline]
    pub fn unsigned(&mut self, tag: Tag, value: u64) {
        let begin = self.tag(tag, MAX_DIGITS + 1);
        let length = write_unsigned(&mut self.buffer[begin..], value);
        self.end_field(begin + length);
    }

    /// Writes a whole number.
    #[inline]
    pub fn signed(&mut self, tag: Tag, value: i64) {
        self.decimal(tag, value, 0);
    }

    /// Writes a number of `units` of 10^-`decimals`, without zeros at the end of its fraction.
    #[inline]
    pub fn decimal(&mut self, tag: Tag, units: i64, decimals: u8) {
        let begin = self.tag(tag, decimal_room(decimals) + 1);
        let length = write_decimal(&mut self.buffer[begin..], units, decimals);
        self.end_field(begin + length);
    }

    /// Writes `Y` or `N`.
    #[inline]
    pub fn flag(&mut self, tag: Tag, value: bool) {
        self.byte(tag, if value { b'Y' } else { b'N' });
    }

    /// Writes a value of one character.
    #[inline]
    pub fn byte(&mut self, tag: Tag, value: u8) {
        let begin = self.tag(tag, 2);
        self.buffer[begin] = if value == SOH { REPLACEMENT } else { value };
        self.end_field(begin + 1);
    }

    /// Writes a time in UTC, in nanoseconds since the Unix epoch.
    #[inline]
    pub fn time(&mut self, tag: Tag, ns: u64, precision: TimePrecision) {
        let begin = self.tag(tag, TIME_ROOM + 1);
        let length = match self.buffer[begin..].first_chunk_mut() {
            Some(room) => self.second.write(room, ns, precision),
            None => 0,
        };
        self.end_field(begin + length);
    }

    /// Writes the length of data, and the data, which may contain any byte.
    #[inline]
    pub fn data(&mut self, length_tag: Tag, data_tag: Tag, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        self.unsigned(length_tag, value.len() as u64);
        let begin = self.tag(data_tag, value.len() + 1);
        let end = begin + value.len();
        self.buffer[begin..end].copy_from_slice(value);
        self.end_field(end);
    }

    /// Writes fields that are ready: each is `tag=value` with its delimiter behind.
    #[inline]
    pub fn raw(&mut self, fields: &[u8]) {
        self.ensure(fields.len());
        let end = self.end + fields.len();
        self.buffer[self.end..end].copy_from_slice(fields);
        self.end = end;
    }

    /// Returns the fields that were written since [`Self::begin`], MsgType first.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.buffer[self.body..self.end]
    }

    /// Completes the message, and returns all of its bytes.
    #[inline]
    pub fn finish(&mut self) -> &[u8] {
        self.ensure(TRAILER_LENGTH);
        let length = (self.end - self.body) as u64;
        let digits_end = self.body - 1;
        let digits_begin = digits_end - digit_count(length);
        let begin = digits_begin - self.head.len();
        self.buffer[begin..digits_begin].copy_from_slice(&self.head);
        write_unsigned(&mut self.buffer[digits_begin..digits_end], length);
        self.buffer[digits_end] = SOH;
        let [a, b, c] = check_sum_digits(check_sum(&self.buffer[begin..self.end]));
        let end = self.end + TRAILER_LENGTH;
        self.buffer[self.end..end].copy_from_slice(&[b'1', b'0', b'=', a, b, c, SOH]);
        &self.buffer[begin..end]
    }

    /// Writes `tag=`, ensures room for as many bytes more, and returns the offset of the value.
    #[inline]
    fn tag(&mut self, tag: Tag, room: usize) -> usize {
        self.ensure(LONG_TAG_ROOM + room);
        if tag >= FIRST_LONG_TAG {
            return self.long_tag(tag);
        }
        let (text, length) = tag_text(tag);
        self.buffer[self.end..self.end + TAG_ROOM].copy_from_slice(&text);
        self.end + length
    }

    #[inline(never)]
    fn long_tag(&mut self, tag: Tag) -> usize {
        let end = self.end + write_unsigned(&mut self.buffer[self.end..], u64::from(tag));
        self.buffer[end] = b'=';
        end + 1
    }

    /// Writes the delimiter behind a value.
    #[inline]
    fn end_field(&mut self, end: usize) {
        self.buffer[end] = SOH;
        self.end = end + 1;
    }

    /// Ensures room for so many bytes behind the last field.
    #[inline]
    fn ensure(&mut self, bytes: usize) {
        if self.buffer.len() - self.end < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.buffer.resize((self.end + bytes).next_power_of_two(), 0);
    }

    #[cold]
    fn replace_delimiters(&mut self, begin: usize, end: usize) {
        self.buffer[begin..end].iter_mut().filter(|byte| **byte == SOH).for_each(|byte| *byte = REPLACEMENT);
    }
}

/// Returns `tag=` of a tag below [`FIRST_LONG_TAG`], and its length in bytes. For a constant tag the compiler computes
/// it.
#[inline]
fn tag_text(tag: Tag) -> ([u8; TAG_ROOM], usize) {
    let [a, b] = PAIRS[(tag / 100 % 100) as usize];
    let [c, d] = PAIRS[(tag % 100) as usize];
    match tag {
        0..10 => ([d, b'=', 0, 0, 0, 0, 0, 0], 2),
        10..100 => ([c, d, b'=', 0, 0, 0, 0, 0], 3),
        100..1_000 => ([b, c, d, b'=', 0, 0, 0, 0], 4),
        _ => ([a, b, c, d, b'=', 0, 0, 0], 5),
    }
}

/// Copies a value that is not empty into a room of its length, and returns whether it contains a delimiter.
///
/// Short values, which most are, need no call: two copies overlap in their middle.
#[inline]
fn copy_value(room: &mut [u8], value: &[u8]) -> bool {
    if let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<8>()) {
        let length = value.len();
        if length <= 16 {
            room[..8].copy_from_slice(first);
            room[length - 8..].copy_from_slice(last);
            return has_soh(u64::from_le_bytes(*first)) || has_soh(u64::from_le_bytes(*last));
        }
        return copy_long_value(room, value);
    }
    if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        room[..4].copy_from_slice(first);
        let place = room.len() - 4;
        room[place..].copy_from_slice(last);
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return has_soh(first | (last << 32));
    }
    let mut has_delimiter = false;
    for (place, &byte) in room.iter_mut().zip(value) {
        *place = byte;
        has_delimiter |= byte == SOH;
    }
    has_delimiter
}

/// Copies a value of more than eight bytes.
#[inline]
fn copy_long_value(room: &mut [u8], value: &[u8]) -> bool {
    room.copy_from_slice(value);
    let (words, _) = value.as_chunks::<8>();
    let last = value.last_chunk::<8>().is_some_and(|last| has_soh(u64::from_le_bytes(*last)));
    words.iter().fold(last, |found, word| found | has_soh(u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_of_any_length_are_written() {
        let mut writer = MessageWriter::new("FIX.4.4");
        for tag in [1, 9, 10, 99, 100, 999, 1_000, 9_999, 10_000, 100_095, 999_999_999, Tag::MAX] {
            writer.begin(b"D");
            writer.byte(tag, b'x');
            assert_eq!(writer.body(), format!("35=D\x01{tag}=x\x01").as_bytes());
        }
    }

    #[test]
    fn a_long_message_grows_the_buffer() {
        let mut writer = MessageWriter::new("FIXT.1.1");
        let text = "x".repeat(3 * ROOM);
        writer.begin(b"B");
        writer.text(58, &text);
        writer.data(95, 96, &vec![SOH; 2 * ROOM]);
        let body = 5 + 4 + text.len() + 8 + 3 + 2 * ROOM + 1;
        let message = writer.finish().to_vec();
        assert!(message.starts_with(format!("8=FIXT.1.1\x019={body}\x0135=B\x0158=xxx").as_bytes()));
        assert_eq!(message.len(), "8=FIXT.1.1|9=20501|".len() + body + TRAILER_LENGTH);
        assert_eq!(writer.finish(), message, "a message may be finished again");
    }

    #[test]
    fn empty_values_are_left_out() {
        let mut writer = MessageWriter::new("FIX.4.2");
        writer.begin(b"0");
        writer.text(58, "");
        writer.data(95, 96, b"");
        writer.raw(b"");
        assert_eq!(writer.body(), b"35=0\x01");
    }

    proptest! {
        #[test]
        fn no_value_ends_its_field(value in vec(prop_oneof![Just(SOH), Just(0), any::<u8>()], 1..40)) {
            let mut writer = MessageWriter::new("FIX.4.4");
            writer.begin(b"D");
            writer.bytes(58, &value);
            let safe: Vec<u8> = value.iter().map(|&byte| if byte == SOH { REPLACEMENT } else { byte }).collect();
            prop_assert_eq!(writer.body(), [&b"35=D\x0158="[..], &safe, b"\x01"].concat());
        }
    }
}
