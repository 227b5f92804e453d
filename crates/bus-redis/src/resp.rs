//! The Redis protocol (RESP2): encodes commands, parses replies.
//!
//! A reply is a tree, read as its items in order; an array is read as its length, before its elements. When more bytes
//! have come, parsing restarts from the first byte, which is cheap because it hops from length to length. Every length
//! is checked against a bound before it is used, and nothing is allocated for it.
//!
//! One reply is bounded as a whole: in bytes by the request (see [`max_reply_bytes`]), in its number of values, and in
//! the nesting depth of its arrays. After a reply that exceeds a bound nothing more is read from the server.

use std::fmt;
use std::io::Write;

/// The longest payload that is accepted, in bytes: twice what a server buffers for one subscriber by default.
pub(crate) const MAX_BULK_BYTES: usize = 64 << 20;

/// Max length of a reply to a request for many messages, in bytes: room for 100 messages of the longest payload that
/// can be sent, and some more.
const MAX_REPLY_BYTES: usize = 104 * (16 << 20);

/// Max length of a reply that brings no message, in bytes: ten times the slot table of a cluster of 1,000 nodes.
pub(crate) const MAX_PLAIN_REPLY_BYTES: usize = 8 << 20;

const MAX_LINE_BYTES: usize = 8 << 10;

/// Max number of values in all arrays of one reply.
const MAX_ITEMS: usize = 1 << 20;

/// Max nesting depth of arrays; no reply to our requests needs more than five.
const MAX_DEPTH: usize = 16;

/// Error for bytes of no Redis server, or for a reply of the wrong shape.
pub(crate) const UNEXPECTED: RespError = RespError::Invalid("an unexpected reply");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RespItem<'a> {
    /// `+OK`
    Status(&'a [u8]),
    /// `-ERR reason`
    Error(&'a [u8]),
    /// `:7`
    Integer(i64),
    /// `$5` and five bytes
    Bulk(&'a [u8]),
    /// `*3`, and three values follow
    Array(usize),
    /// `$-1` or `*-1`
    Null,
}

/// Error of a reply that cannot be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RespError {
    /// Bytes that no Redis server sends.
    #[error("{0}")]
    Invalid(&'static str),
    /// A reply that exceeds a bound.
    #[error("a reply of more than {0}")]
    TooLarge(ReplyLimit),
}

/// Bound of one reply. Its text follows "more than" in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyLimit {
    Payload,
    Bytes(usize),
    Items,
    Depth,
}

impl fmt::Display for ReplyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload => write!(f, "{} MiB in one value", MAX_BULK_BYTES >> 20),
            Self::Bytes(max_bytes) => write!(f, "{} MiB", max_bytes >> 20),
            Self::Items => write!(f, "{MAX_ITEMS} values"),
            Self::Depth => write!(f, "{MAX_DEPTH} arrays one inside the other"),
        }
    }
}

/// Parser that yields the items of a reply in order.
#[derive(Debug, Clone)]
pub(crate) struct RespReader<'a> {
    bytes: &'a [u8],
    /// Number of bytes read so far.
    pub at: usize,
    max_bytes: usize,
}

/// Returns the max length of a reply that brings at most `messages` messages, in bytes.
pub(crate) fn max_reply_bytes(messages: usize) -> usize {
    messages.saturating_mul(MAX_BULK_BYTES).saturating_add(MAX_PLAIN_REPLY_BYTES).min(MAX_REPLY_BYTES)
}

/// Returns the length of the first reply in `bytes`, at most `max_bytes`; none if it is incomplete.
pub(crate) fn length(bytes: &[u8], max_bytes: usize) -> Result<Option<usize>, RespError> {
    let mut items = RespReader::with_limit(bytes, max_bytes);
    Ok(items.skip()?.then_some(items.at))
}

/// Returns the payload if this complete reply is a message on a channel.
pub(crate) fn message(reply: &[u8]) -> Option<&[u8]> {
    let mut items = RespReader::new(reply);
    let is_message = items.array() == Ok(3) && items.bulk() == Ok(&b"message"[..]);
    let _channel = is_message.then(|| items.bulk().ok()).flatten()?;
    items.bulk().ok()
}

pub(crate) fn command(out: &mut Vec<u8>, parts: &[&str]) {
    command_front(out, parts, 0);
}

/// Returns a command alone.
pub(crate) fn encode_command(parts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    command(&mut out, parts);
    out
}

/// Appends a command without its last part, which the caller appends by [`bulk`].
pub(crate) fn command_head(out: &mut Vec<u8>, parts: &[&str]) {
    command_front(out, parts, 1);
}

/// Appends a command without its last `follow` parts, which the caller appends by [`bulk`].
pub(crate) fn command_front(out: &mut Vec<u8>, parts: &[&str], follow: usize) {
    write_count(out, b'*', parts.len() + follow);
    for part in parts {
        bulk(out, &[part.as_bytes()]);
    }
}

/// Appends one part of a command, or a payload, made of pieces.
pub(crate) fn bulk(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    write_count(out, b'$', pieces.iter().map(|piece| piece.len()).sum());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\r\n");
}

impl<'a> RespReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with_limit(bytes, MAX_REPLY_BYTES)
    }

    pub fn with_limit(bytes: &'a [u8], max_bytes: usize) -> Self {
        Self { bytes, at: 0, max_bytes }
    }

    /// Reads the next item; none, without moving on, if it is incomplete.
    pub fn item(&mut self) -> Result<Option<RespItem<'a>>, RespError> {
        let start = self.at;
        let item = self.read()?;
        if item.is_none() {
            self.at = start;
        }
        if self.at > self.max_bytes { Err(self.too_large()) } else { Ok(item) }
    }

    /// Skips one value with everything in it; false if it is incomplete.
    pub fn skip(&mut self) -> Result<bool, RespError> {
        // Values still to come of each open array; the first element counts the value itself.
        let mut left = [0; MAX_DEPTH + 1];
        left[0] = 1;
        let (mut depth, mut announced) = (0, 0);
        loop {
            while left[depth] == 0 {
                if depth == 0 {
                    return Ok(true);
                }
                depth -= 1;
            }
            let Some(item) = self.item()? else { return Ok(false) };
            left[depth] -= 1;
            let RespItem::Array(length) = item else { continue };
            announced += length;
            if announced > MAX_ITEMS {
                return Err(RespError::TooLarge(ReplyLimit::Items));
            }
            if depth == MAX_DEPTH {
                return Err(RespError::TooLarge(ReplyLimit::Depth));
            }
            depth += 1;
            left[depth] = length;
        }
    }

    /// Reads an array's head and returns its length, 0 if it is null; any other item is an error.
    pub fn array(&mut self) -> Result<usize, RespError> {
        match self.item()? {
            Some(RespItem::Array(length)) => Ok(length),
            Some(RespItem::Null) => Ok(0),
            _ => Err(UNEXPECTED),
        }
    }

    pub fn bulk(&mut self) -> Result<&'a [u8], RespError> {
        self.bulk_or_null()?.ok_or(UNEXPECTED)
    }

    pub fn bulk_or_null(&mut self) -> Result<Option<&'a [u8]>, RespError> {
        match self.item()? {
            Some(RespItem::Bulk(payload)) => Ok(Some(payload)),
            Some(RespItem::Null) => Ok(None),
            _ => Err(UNEXPECTED),
        }
    }

    pub fn integer(&mut self) -> Result<i64, RespError> {
        match self.item()? {
            Some(RespItem::Integer(number)) => Ok(number),
            _ => Err(UNEXPECTED),
        }
    }

    pub fn status(&mut self) -> Result<&'a [u8], RespError> {
        match self.item()? {
            Some(RespItem::Status(line)) => Ok(line),
            _ => Err(UNEXPECTED),
        }
    }

    fn read(&mut self) -> Result<Option<RespItem<'a>>, RespError> {
        let Some(&mark) = self.bytes.get(self.at) else { return Ok(None) };
        self.at += 1;
        match mark {
            b'+' => Ok(self.line()?.map(RespItem::Status)),
            b'-' => Ok(self.line()?.map(RespItem::Error)),
            b':' => Ok(self.number()?.map(RespItem::Integer)),
            b'$' => self.payload(),
            b'*' => Ok(self
                .length(MAX_ITEMS, ReplyLimit::Items)?
                .map(|length| length.map_or(RespItem::Null, RespItem::Array))),
            _ => Err(RespError::Invalid("an item starts with none of + - : $ *")),
        }
    }

    fn payload(&mut self) -> Result<Option<RespItem<'a>>, RespError> {
        let Some(length) = self.length(MAX_BULK_BYTES, ReplyLimit::Payload)? else { return Ok(None) };
        let Some(length) = length else { return Ok(Some(RespItem::Null)) };
        let bytes = self.bytes;
        let end = self.at + length;
        if end > self.max_bytes {
            return Err(self.too_large());
        }
        let Some(tail) = bytes.get(end..end + 2) else { return Ok(None) };
        if tail != b"\r\n" {
            return Err(RespError::Invalid("a payload does not end where it says"));
        }
        let payload = &bytes[self.at..end];
        self.at = end + 2;
        Ok(Some(RespItem::Bulk(payload)))
    }

    /// Reads a length up to `max_bytes`, beyond which the error names `limit`. The inner option is none for the length
    /// -1.
    fn length(&mut self, max_bytes: usize, limit: ReplyLimit) -> Result<Option<Option<usize>>, RespError> {
        let Some(number) = self.number()? else { return Ok(None) };
        match usize::try_from(number) {
            Ok(length) if length <= max_bytes => Ok(Some(Some(length))),
            Ok(_) => Err(RespError::TooLarge(limit)),
            Err(_) if number == -1 => Ok(Some(None)),
            _ => Err(RespError::Invalid("a length is out of bounds")),
        }
    }

    fn too_large(&self) -> RespError {
        RespError::TooLarge(ReplyLimit::Bytes(self.max_bytes))
    }

    fn number(&mut self) -> Result<Option<i64>, RespError> {
        let Some(line) = self.line()? else { return Ok(None) };
        let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or(RespError::Invalid("a number is none"))
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, RespError> {
        let bytes = self.bytes;
        let rest = &bytes[self.at..];
        let window = &rest[..rest.len().min(MAX_LINE_BYTES)];
        match window.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if window.len() == MAX_LINE_BYTES => Err(RespError::Invalid("a line does not end")),
            None => Ok(None),
        }
    }
}

fn write_count(out: &mut Vec<u8>, mark: u8, number: usize) {
    out.push(mark);
    write!(out, "{number}\r\n").expect("a vector takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Tree {
        Integer(i64),
        Bulk(Vec<u8>),
        Null,
        Array(Vec<Tree>),
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Tree::Integer),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Tree::Bulk),
            Just(Tree::Null),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Tree::Array))
    }

    fn encode(tree: &Tree, out: &mut Vec<u8>) {
        match tree {
            Tree::Integer(number) => write!(out, ":{number}\r\n").unwrap(),
            Tree::Bulk(payload) => bulk(out, &[payload]),
            Tree::Null => out.extend_from_slice(b"$-1\r\n"),
            Tree::Array(trees) => {
                write_count(out, b'*', trees.len());
                trees.iter().for_each(|tree| encode(tree, out));
            }
        }
    }

    fn flatten<'a>(tree: &'a Tree, items: &mut Vec<RespItem<'a>>) {
        match tree {
            Tree::Integer(number) => items.push(RespItem::Integer(*number)),
            Tree::Bulk(payload) => items.push(RespItem::Bulk(payload)),
            Tree::Null => items.push(RespItem::Null),
            Tree::Array(trees) => {
                items.push(RespItem::Array(trees.len()));
                trees.iter().for_each(|tree| flatten(tree, items));
            }
        }
    }

    fn push(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        command_head(&mut bytes, &["message", "ticks"]);
        bulk(&mut bytes, &[payload]);
        bytes
    }

    /// Returns the length of the first of these replies.
    fn whole(bytes: &[u8]) -> Result<Option<usize>, RespError> {
        length(bytes, MAX_REPLY_BYTES)
    }

    /// Returns all payloads of a stream that is received in pieces of these sizes, in turn.
    fn payloads(stream: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>, RespError> {
        let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
        for piece in pieces.iter().cycle() {
            end = (end + piece).min(stream.len());
            while let Some(length) = whole(&stream[start..end])? {
                found.extend(message(&stream[start..start + length]).map(<[u8]>::to_vec));
                start += length;
            }
            if end == stream.len() {
                break;
            }
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn a_reply_is_parsed_as_its_items(
            tree in trees(),
            behind in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            encode(&tree, &mut bytes);
            flatten(&tree, &mut expected);
            let end = bytes.len();
            for cut in 0..end {
                prop_assert_eq!(whole(&bytes[..cut]), Ok(None), "{} bytes", cut);
            }
            bytes.extend(behind);
            prop_assert_eq!(whole(&bytes), Ok(Some(end)));
            let mut items = RespReader::new(&bytes[..end]);
            for item in expected {
                prop_assert_eq!(items.item(), Ok(Some(item)));
            }
            prop_assert_eq!((items.at, items.item()), (end, Ok(None)));
        }

        #[test]
        fn messages_parse_the_same_in_pieces_of_any_size(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            pieces in prop::collection::vec(1usize..200, 1..20),
        ) {
            let stream: Vec<u8> = sent.iter().flat_map(|payload| push(payload)).collect();
            prop_assert_eq!(payloads(&stream, &pieces), Ok(sent));
        }

        #[test]
        fn arbitrary_bytes_never_panic_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = payloads(&bytes, &[7]);
            for mark in [b'*', b'$', b'+', b'-', b':'] {
                let _ = payloads(&[&[mark][..], &bytes[..]].concat(), &[600]);
            }
        }

        #[test]
        fn one_corrupted_byte_never_panics_the_parser(
            payload in prop::collection::vec(any::<u8>(), 0..50),
            at: prop::sample::Index,
            to: u8,
        ) {
            let mut bytes = push(&payload);
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = payloads(&bytes, &[3]);
        }
    }

    #[test]
    fn each_kind_of_item_is_recognized() {
        for (bytes, item) in [
            (&b"+PONG\r\n"[..], RespItem::Status(b"PONG")),
            (b"-NOAUTH Authentication required.\r\n", RespItem::Error(b"NOAUTH Authentication required.")),
            (b":-12\r\n", RespItem::Integer(-12)),
            (b"$3\r\na\r\n\r\n", RespItem::Bulk(b"a\r\n")),
            (b"$-1\r\n", RespItem::Null),
            (b"*-1\r\n", RespItem::Null),
            (b"*0\r\n", RespItem::Array(0)),
        ] {
            assert_eq!(RespReader::new(bytes).item(), Ok(Some(item)));
            assert_eq!(whole(bytes), Ok(Some(bytes.len())), "{item:?}");
            for cut in 0..bytes.len() {
                assert_eq!(RespReader::new(&bytes[..cut]).item(), Ok(None), "{cut} bytes of {item:?}");
            }
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for bytes in [
            &b"$67108865\r\n"[..],
            b"$9223372036854775807\r\n",
            b"$99999999999999999999\r\n",
            b"$-2\r\n",
            b"*1048577\r\n",
            b"*-2\r\n",
            b"*1\r\n*9223372036854775807\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            &[b'+'; MAX_LINE_BYTES + 1],
        ] {
            assert!(whole(bytes).is_err(), "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
        }
    }

    #[test]
    fn a_too_long_value_is_distinguished_from_garbage() {
        assert_eq!(whole(b"$536870912\r\n"), Err(RespError::TooLarge(ReplyLimit::Payload)));
        assert!(matches!(whole(b"$-2\r\n"), Err(RespError::Invalid(_))));
    }

    #[test]
    fn a_reply_is_bounded_in_bytes_in_values_and_in_depth() {
        let nested = |arrays: usize| [b"*1\r\n".repeat(arrays), b":7\r\n".to_vec()].concat();
        assert_eq!(whole(&nested(MAX_DEPTH)), Ok(Some(4 * MAX_DEPTH + 4)));
        assert_eq!(whole(&nested(MAX_DEPTH + 1)), Err(RespError::TooLarge(ReplyLimit::Depth)));
        let announced = |lengths: &[usize]| {
            let mut bytes = Vec::new();
            lengths.iter().for_each(|&length| write_count(&mut bytes, b'*', length));
            whole(&bytes)
        };
        assert_eq!(announced(&[MAX_ITEMS]), Ok(None));
        assert_eq!(announced(&[MAX_ITEMS - 1, 1]), Ok(None));
        assert_eq!(announced(&[MAX_ITEMS, 1]), Err(RespError::TooLarge(ReplyLimit::Items)));
        let beyond = Err(RespError::TooLarge(ReplyLimit::Bytes(20)));
        for (bytes, within) in [
            (&b"*2\r\n+eight\r\n+eight\r\n"[..], Ok(Some(20))),
            (b"*2\r\n+eight\r\n+eight.\r\n", beyond),
            (b"$13\r\n", Ok(None)),
            (b"$16\r\n", beyond),
        ] {
            assert_eq!(length(bytes, 20), within, "{}", bytes.escape_ascii());
        }
        assert!(
            max_reply_bytes(1) > MAX_BULK_BYTES
                && max_reply_bytes(0) == MAX_PLAIN_REPLY_BYTES
                && max_reply_bytes(usize::MAX) == MAX_REPLY_BYTES
        );
    }

    #[test]
    fn a_command_head_and_its_message_form_a_command() {
        let (whole, mut pieces) = (encode_command(&["PUBLISH", "ticks", "headerpayload"]), Vec::new());
        command_head(&mut pieces, &["PUBLISH", "ticks"]);
        bulk(&mut pieces, &[b"header", b"payload"]);
        assert_eq!(whole, pieces);
    }
}
