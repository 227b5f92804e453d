//! The little of the Redis protocol (RESP2) that a subscriber needs: commands out, flat replies and pushes in.
//!
//! Parsing starts anew when more bytes have come, which costs nothing: it hops from length to length. All lengths are
//! bounded before they are believed, and nothing is allocated for them.

use std::io::Write;

/// The longest payload that is believed, in bytes: twice what a server buffers for one subscriber by default.
pub(crate) const MAX_BULK_BYTES: usize = 64 << 20;

/// The longest status or error line, in bytes.
const MAX_LINE_BYTES: usize = 8 << 10;

/// The most items in a reply: a message by pattern has four.
const MAX_ITEMS: usize = 4;

/// A reply of the server, or what it pushes: one item, or a flat array of some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    items: [Item<'a>; MAX_ITEMS],
    length: usize,
}

/// One item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// `+OK`
    Status(&'a [u8]),
    /// `-ERR reason`
    Error(&'a [u8]),
    /// `:7`
    Integer(i64),
    /// `$5` and five bytes
    Bulk(&'a [u8]),
    /// `$-1`
    Null,
}

/// Bytes that no Redis server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(&'static str);

impl<'a> Reply<'a> {
    /// The items in their order.
    pub fn items(&self) -> &[Item<'a>] {
        &self.items[..self.length]
    }

    /// The payload, if this is a message on a channel.
    pub fn message(&self) -> Option<&'a [u8]> {
        match self.items() {
            [Item::Bulk(kind), Item::Bulk(_channel), Item::Bulk(payload)] if *kind == b"message" => Some(*payload),
            _ => None,
        }
    }

    fn one(item: Item<'a>) -> Self {
        let mut items = [Item::Null; MAX_ITEMS];
        items[0] = item;
        Self { items, length: 1 }
    }
}

/// The first reply in these bytes and its length in bytes; none if it is not whole yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    let mut cursor = Cursor { bytes, at: 0 };
    let reply = cursor.reply()?;
    Ok(reply.map(|reply| (reply, cursor.at)))
}

/// Appends a command.
pub(crate) fn command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    count(out, b'*', parts.len());
    for part in parts {
        bulk(out, &[part]);
    }
}

/// Appends the command that publishes `header` and `payload` as one message.
pub(crate) fn publish(out: &mut Vec<u8>, channel: &[u8], header: &[u8], payload: &[u8]) {
    count(out, b'*', 3);
    bulk(out, &[b"PUBLISH"]);
    bulk(out, &[channel]);
    bulk(out, &[header, payload]);
}

fn bulk(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    count(out, b'$', pieces.iter().map(|piece| piece.len()).sum());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\r\n");
}

fn count(out: &mut Vec<u8>, mark: u8, number: usize) {
    out.push(mark);
    write!(out, "{number}\r\n").expect("a vector takes every byte");
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn reply(&mut self) -> Result<Option<Reply<'a>>, Malformed> {
        if self.bytes.first() != Some(&b'*') {
            return Ok(self.item()?.map(Reply::one));
        }
        self.at = 1;
        let Some(length) = self.length(MAX_ITEMS)? else { return Ok(None) };
        let length = length.ok_or(Malformed("an array is null"))?;
        let mut reply = Reply { items: [Item::Null; MAX_ITEMS], length };
        for item in &mut reply.items[..length] {
            let Some(found) = self.item()? else { return Ok(None) };
            *item = found;
        }
        Ok(Some(reply))
    }

    fn item(&mut self) -> Result<Option<Item<'a>>, Malformed> {
        let Some(&mark) = self.bytes.get(self.at) else { return Ok(None) };
        self.at += 1;
        match mark {
            b'+' => Ok(self.line()?.map(Item::Status)),
            b'-' => Ok(self.line()?.map(Item::Error)),
            b':' => Ok(self.number()?.map(Item::Integer)),
            b'$' => self.bulk(),
            _ => Err(Malformed("an item starts with none of + - : $")),
        }
    }

    fn bulk(&mut self) -> Result<Option<Item<'a>>, Malformed> {
        let Some(length) = self.length(MAX_BULK_BYTES)? else { return Ok(None) };
        let Some(length) = length else { return Ok(Some(Item::Null)) };
        let bytes = self.bytes;
        let end = self.at + length;
        let Some(tail) = bytes.get(end..end + 2) else { return Ok(None) };
        if tail != b"\r\n" {
            return Err(Malformed("a payload does not end where it says"));
        }
        let payload = &bytes[self.at..end];
        self.at = end + 2;
        Ok(Some(Item::Bulk(payload)))
    }

    /// A length up to `most`; within, none for the length -1.
    fn length(&mut self, most: usize) -> Result<Option<Option<usize>>, Malformed> {
        let Some(number) = self.number()? else { return Ok(None) };
        match usize::try_from(number) {
            Ok(length) if length <= most => Ok(Some(Some(length))),
            Err(_) if number == -1 => Ok(Some(None)),
            _ => Err(Malformed("a length is out of bounds")),
        }
    }

    fn number(&mut self) -> Result<Option<i64>, Malformed> {
        let Some(line) = self.line()? else { return Ok(None) };
        let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or(Malformed("a number is none"))
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let bytes = self.bytes;
        let rest = &bytes[self.at..];
        let window = &rest[..rest.len().min(MAX_LINE_BYTES)];
        match window.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if window.len() == MAX_LINE_BYTES => Err(Malformed("a line does not end")),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        command(&mut bytes, &[b"message", b"ticks", payload]);
        bytes
    }

    /// All payloads in a stream that comes in pieces of these sizes, in turn.
    fn payloads(stream: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
        for piece in pieces.iter().cycle() {
            end = (end + piece).min(stream.len());
            while let Some((reply, length)) = parse(&stream[start..end])? {
                found.extend(reply.message().map(<[u8]>::to_vec));
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
        fn a_stream_means_the_same_however_it_is_cut(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            pieces in prop::collection::vec(1usize..200, 1..20),
        ) {
            let stream: Vec<u8> = sent.iter().flat_map(|payload| push(payload)).collect();
            prop_assert_eq!(payloads(&stream, &pieces), Ok(sent));
        }

        #[test]
        fn hostile_bytes_end_in_an_error_or_in_waiting(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = payloads(&bytes, &[7]);
            for mark in [b'*', b'$', b'+', b'-', b':'] {
                let _ = payloads(&[&[mark][..], &bytes[..]].concat(), &[600]);
            }
        }

        #[test]
        fn one_changed_byte_is_survived(
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
    fn replies_are_told_apart() {
        for (bytes, item) in [
            (&b"+PONG\r\n"[..], Item::Status(b"PONG")),
            (b"-NOAUTH Authentication required.\r\n", Item::Error(b"NOAUTH Authentication required.")),
            (b":-12\r\n", Item::Integer(-12)),
            (b"$3\r\na\r\n\r\n", Item::Bulk(b"a\r\n")),
            (b"$-1\r\n", Item::Null),
        ] {
            let (reply, length) = parse(bytes).unwrap().unwrap();
            assert_eq!((reply.items(), length), (&[item][..], bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(parse(&bytes[..cut]), Ok(None), "{cut} bytes of {item:?}");
            }
        }
    }

    #[test]
    fn impossible_lengths_are_refused_before_they_are_believed() {
        for bytes in [
            &b"$67108865\r\n"[..],
            b"$9223372036854775807\r\n",
            b"$99999999999999999999\r\n",
            b"$-2\r\n",
            b"*5\r\n",
            b"*-1\r\n",
            b"*1\r\n*1\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            &[b'+'; MAX_LINE_BYTES + 1],
        ] {
            assert!(parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
        }
    }

    #[test]
    fn publishing_is_a_command_of_three_parts() {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        command(&mut whole, &[b"PUBLISH", b"ticks", b"headerpayload"]);
        publish(&mut pieces, b"ticks", b"header", b"payload");
        assert_eq!(whole, pieces);
    }
}
