//! A message inside a Redis message.
//!
//! ```text
//!   0        8      9          16
//!   │ stamp  │ kind │ 7 zeros  │ payload …
//! ```
//! The stamp is little-endian, in ticks of the publisher's host.

use tickpath_bus_api::Message;

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 16;

/// Kinds below this are reserved, on every transport.
pub(crate) const FIRST_KIND: u8 = 16;

/// The bytes before a payload.
pub(crate) fn header(stamp: u64, kind: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
    bytes[8] = kind;
    bytes
}

/// The message in these bytes; none if somebody else made them.
pub(crate) fn decode(bytes: &[u8]) -> Option<Message<'_>> {
    let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let (stamp, rest) = header.split_first_chunk::<8>()?;
    let ours = rest[0] >= FIRST_KIND && rest[1..] == [0; 7];
    ours.then(|| Message { sequence: None, stamp: u64::from_le_bytes(*stamp), kind: rest[0], payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let bytes = [&header(0x0102_0304_0506_0708, 200)[..], b"payload"].concat();
        let message = decode(&bytes).unwrap();
        assert_eq!((message.stamp, message.kind, message.payload), (0x0102_0304_0506_0708, 200, &b"payload"[..]));
        assert_eq!(decode(&header(7, FIRST_KIND)).unwrap().payload, b"");
    }

    #[test]
    fn foreign_messages_are_not_ours() {
        let mut padded = header(1, 16);
        padded[12] = 1;
        for foreign in [&b""[..], b"hello", &[0; 16], b"{\"price\": 64000.5, \"size\": 1}", &padded, &header(1, 15)] {
            assert_eq!(decode(foreign), None, "{foreign:?}");
        }
    }
}
