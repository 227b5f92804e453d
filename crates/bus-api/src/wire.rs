//! A message inside a broker's message, the same on every broker, so that a bridge can carry it.
//!
//! ```text
//!   0        8      9          16        24          32        40
//!   │ stamp  │ kind │ tickpt2  │ clock   │ publisher │ number  │ payload …
//! ```
//! Numbers are little-endian. The stamp is in ticks of the publisher's host, followed by the id of that host's clock,
//! the publisher id and the publisher's sequence number ([`MessageId`]). A header of 16 bytes that ends with the magic
//! `tickpt1` is accepted too, without a message id. Messages of other programs have no header: a subscriber gets them
//! as [`SubscriptionEvent::Foreign`], and a puller takes them if it was opened so, or else refuses or skips them.

use crate::message_id::{MessageId, MessageIdTracker, SequenceCheck};
use crate::{BatchError, ConnectError, ForeignMessage, Gap, Message, PublishError, SubscriptionEvent};

/// Header size, in bytes.
pub const HEADER_BYTES: usize = 40;

/// Header size of a message without a message id, in bytes.
const SHORT_HEADER_BYTES: usize = 16;
/// Magic of a message with this header; its last letter is the format's version.
const MAGIC: [u8; 7] = *b"tickpt2";
/// Magic of a message without a message id.
const SHORT_MAGIC: [u8; 7] = *b"tickpt1";

/// First kind that users can choose; lower kinds are reserved on every transport.
pub const FIRST_KIND: u8 = 16;

/// Max length of a topic or queue name, in bytes; the same everywhere, so that a topic can move.
pub const MAX_NAME_BYTES: usize = 128;

/// Returns the header that precedes a payload.
pub fn header(stamp: u64, kind: u8, id: MessageId) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
    bytes[8] = kind;
    bytes[9..16].copy_from_slice(&MAGIC);
    bytes[16..24].copy_from_slice(&id.clock.to_le_bytes());
    bytes[24..32].copy_from_slice(&id.publisher.to_le_bytes());
    bytes[32..].copy_from_slice(&id.sequence.to_le_bytes());
    bytes
}

/// Returns a whole message, header and payload.
pub fn encode(stamp: u64, kind: u8, id: MessageId, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&header(stamp, kind, id));
    bytes.extend_from_slice(payload);
    bytes
}

/// Decodes a message; returns `None` if another program made these bytes.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<Message<'_>> {
    let (short, rest) = bytes.split_first_chunk::<SHORT_HEADER_BYTES>()?;
    let (kind, magic) = (short[8], &short[9..]);
    if kind < FIRST_KIND {
        return None;
    }
    let stamp = read_u64(short, 0);
    if magic == SHORT_MAGIC {
        return Some(Message { sequence: None, stamp, kind, payload: rest, id: None });
    }
    let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let id = MessageId { clock: read_u64(header, 16), publisher: read_u64(header, 24), sequence: read_u64(header, 32) };
    (magic == MAGIC).then_some(Message { sequence: None, stamp, kind, payload, id: Some(id) })
}

/// Passes the event in these bytes to the handler; a duplicate or late message makes none. If messages of its publisher
/// are missing, it reports that gap instead and returns false, and the caller passes the same bytes again. A gap that
/// the topic's own count shows must be [reported](MessageIdTracker::gap_reported) to the tracker first.
#[inline]
pub fn deliver(
    tracker: &mut MessageIdTracker,
    sequence: Option<u64>,
    bytes: &[u8],
    handler: &mut dyn FnMut(SubscriptionEvent<'_>),
) -> bool {
    let Some(message) = decode(bytes) else {
        handler(SubscriptionEvent::Foreign(ForeignMessage { sequence, bytes, details: None }));
        return true;
    };
    if let Some(id) = message.id {
        match tracker.check(id) {
            SequenceCheck::Duplicate | SequenceCheck::OutOfOrder => return true,
            SequenceCheck::Gap(missed) => {
                handler(SubscriptionEvent::Gap(Gap::Missed(missed)));
                return false;
            }
            SequenceCheck::InOrder | SequenceCheck::First => {}
        }
    }
    let message = Message { sequence, ..message };
    let event = SubscriptionEvent::from_message(message);
    let is_gap = matches!(event, SubscriptionEvent::Gap(_));
    if is_gap {
        tracker.gap_reported();
    }
    handler(if is_gap && tracker.is_bridge() { SubscriptionEvent::Message(message) } else { event });
    true
}

/// Returns the message that a puller has taken. A foreign message gets this kind, if one is given, and no stamp.
pub fn decode_pulled(bytes: &[u8], foreign: Option<u8>) -> Option<Message<'_>> {
    let adopt = |kind| Message { sequence: None, stamp: 0, kind, payload: bytes, id: None };
    decode(bytes).or_else(|| foreign.map(adopt))
}

fn read_u64(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"))
}

/// Rejects a reserved kind, and a payload above the limit.
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

/// Sends the messages of a batch before the first one that [`check_message`] rejects, then returns that rejection.
pub fn send_valid(
    kind: u8,
    payloads: &[&[u8]],
    limit: usize,
    send: impl FnOnce(&[&[u8]]) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let check = |payload: &[u8]| check_message(kind, payload, limit).err();
    let bad = payloads.iter().enumerate().find_map(|(index, payload)| check(payload).map(|error| (index, error)));
    let good = &payloads[..bad.as_ref().map_or(payloads.len(), |(index, _)| *index)];
    if !good.is_empty() {
        send(good)?;
    }
    bad.map_or(Ok(()), |(done, error)| Err(BatchError::failed_at(done, error)))
}

/// Rejects a name that some transport could not carry. `what` is `topic` or `queue`.
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

    const ID: MessageId = MessageId { clock: u64::MAX, publisher: 0x1122_3344_5566_7788, sequence: 9 };

    #[test]
    fn a_message_is_decoded_as_it_was_encoded() {
        let bytes = encode(0x0102_0304_0506_0708, 200, ID, b"payload");
        let message = decode(&bytes).unwrap();
        assert_eq!((message.stamp, message.kind, message.payload), (0x0102_0304_0506_0708, 200, &b"payload"[..]));
        assert_eq!(message.id, Some(ID));
        assert_eq!(decode(&header(7, FIRST_KIND, ID)).unwrap().payload, b"");
    }

    #[test]
    fn a_message_without_an_id_is_read() {
        let bytes = b"\x07\0\0\0\0\0\0\0\x10tickpt1payload";
        let found = Message { sequence: None, stamp: 7, kind: 16, payload: b"payload", id: None };
        assert_eq!(decode(bytes), Some(found));
    }

    #[test]
    fn a_subscriber_gets_each_message_once_and_each_gap_in_its_place() {
        let encoded = |number| encode(number, 16, MessageId { sequence: number, ..ID }, b"");
        let (mut tracker, mut events) = (MessageIdTracker::default(), Vec::new());
        for number in [0, 1, 1, 3, 2, 4] {
            let mut hand_over = || {
                deliver(&mut tracker, None, &encoded(number), &mut |event| {
                    events.push(match event {
                        SubscriptionEvent::Message(message) => message.stamp.to_string(),
                        other => format!("{other:?}"),
                    });
                })
            };
            assert!(hand_over() || hand_over(), "{number}");
        }
        assert_eq!(events, ["0", "1", "Gap(Missed(1))", "3", "4"]);
        // A gap that the topic's own count has reported is not reported again by sequence numbers.
        tracker.gap_reported();
        assert!(deliver(&mut tracker, Some(9), &encoded(7), &mut |_| {}));
        assert_eq!(tracker.check(MessageId { sequence: 8, ..ID }), SequenceCheck::InOrder);
    }

    #[test]
    fn foreign_messages_are_not_decoded() {
        let mut padded = header(1, 16, ID);
        padded[12] = 1;
        // A time and a size, as other programs write them.
        let counted = [7, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 1, 2];
        let cut = &header(1, 16, ID)[..HEADER_BYTES - 1];
        for foreign in [
            &b""[..],
            b"hello",
            &[0; 16],
            b"{\"price\": 64000.5, \"size\": 1}",
            &counted,
            &padded,
            cut,
            &header(1, 15, ID),
        ] {
            assert_eq!(decode(foreign), None, "{foreign:?}");
            assert_eq!(decode_pulled(foreign, None), None);
            assert_eq!(decode_pulled(foreign, Some(128)).map(|message| message.payload), Some(foreign));
        }
    }
}
