//! A message inside a broker's message, the same on every broker, so that a bridge can carry it on.
//!
//! ```text
//!   0        8      9          16
//!   │ stamp  │ kind │ tickpt1  │ payload …
//! ```
//! The stamp is little-endian, in ticks of the publisher's host. What others publish, without this header, is no
//! message of ours: a subscriber gets it as [`Event::Foreign`], and a puller skips it and takes it
//! away.

use crate::{ConnectError, Event, Foreign, Message, PublishError};

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 16;

/// Tells a message of ours from what else has so many bytes; its last letter is the format's version.
const MARK: [u8; 7] = *b"tickpt1";

/// Kinds below this are reserved, on every transport.
pub const FIRST_KIND: u8 = 16;

/// The longest name of a topic or queue, in bytes; the same everywhere, so that a topic can move.
pub const MAX_NAME_BYTES: usize = 128;

/// The bytes before a payload.
pub fn header(stamp: u64, kind: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
    bytes[8] = kind;
    bytes[9..].copy_from_slice(&MARK);
    bytes
}

/// A whole message.
pub fn encode(stamp: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&header(stamp, kind));
    bytes.extend_from_slice(payload);
    bytes
}

/// The message in these bytes; none if somebody else made them.
pub fn decode(bytes: &[u8]) -> Option<Message<'_>> {
    let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let (stamp, rest) = header.split_first_chunk::<8>()?;
    let ours = rest[0] >= FIRST_KIND && rest[1..] == MARK;
    ours.then(|| Message { sequence: None, stamp: u64::from_le_bytes(*stamp), kind: rest[0], payload })
}

/// What these bytes are to a subscriber, with their place in the topic where that is counted.
pub fn event(sequence: Option<u64>, bytes: &[u8]) -> Event<'_> {
    match decode(bytes) {
        Some(message) => Event::Message(Message { sequence, ..message }),
        None => Event::Foreign(Foreign { sequence, bytes }),
    }
}

/// Refuses a reserved kind, and a payload above the limit.
pub fn check_message(kind: u8, payload: &[u8], limit: usize) -> Result<(), PublishError> {
    if kind < FIRST_KIND {
        let sentence = format!("message kind {kind} is reserved; use {FIRST_KIND} to 255");
        return Err(PublishError::Other(sentence.into()));
    }
    if payload.len() > limit {
        return Err(PublishError::TooLarge { bytes: payload.len(), limit });
    }
    Ok(())
}

/// Refuses a name that some transport could not carry. `what` is `topic` or `queue`.
pub fn check_name(what: &str, name: &str) -> Result<(), ConnectError> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"._-:".contains(&b);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with('.') || !name.bytes().all(good) {
        return Err(ConnectError::Name(format!(
            "'{name}' is no {what} name; use 1 to {MAX_NAME_BYTES} letters, digits, '.', '_', '-' or ':', \
             not starting with a point"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let bytes = encode(0x0102_0304_0506_0708, 200, b"payload");
        let message = decode(&bytes).unwrap();
        assert_eq!((message.stamp, message.kind, message.payload), (0x0102_0304_0506_0708, 200, &b"payload"[..]));
        assert_eq!(decode(&header(7, FIRST_KIND)).unwrap().payload, b"");
    }

    #[test]
    fn foreign_messages_are_not_ours() {
        let mut padded = header(1, 16);
        padded[12] = 1;
        // A time and a size, as others write them.
        let counted = [7, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 1, 2];
        for foreign in
            [&b""[..], b"hello", &[0; 16], b"{\"price\": 64000.5, \"size\": 1}", &counted, &padded, &header(1, 15)]
        {
            assert_eq!(decode(foreign), None, "{foreign:?}");
        }
    }
}
