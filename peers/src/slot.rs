//! A message as the slot of a ring: the payload alone, with its stamp inside.

use std::ops::Range;

use tickpath_bus::{Message, SubscriptionEvent};

/// Bytes of a message that hold its stamp. The measuring loop leaves these bytes empty, so that no peer pays for a
/// header.
const STAMP_BYTES: Range<usize> = 16..24;

/// Kind of the messages that the measuring loop publishes.
pub const KIND: u8 = 200;

/// Type of a ring's slots: a message of one size.
pub trait RingSlot: Copy + Send + 'static {
    /// Creates the message; the payload must have exactly the slot's size.
    fn new(stamp: u64, payload: &[u8]) -> Self;

    /// Returns the bytes of the message.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> RingSlot for [u8; N] {
    #[inline(always)]
    fn new(stamp: u64, payload: &[u8]) -> Self {
        let mut bytes = Self::try_from(payload).expect("the size that the URL names");
        write_stamp(&mut bytes, stamp);
        bytes
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A message that starts at a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct CacheLines<const N: usize>([u8; N]);

/// A message of half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub struct HalfLine([u8; 32]);

impl<const N: usize> RingSlot for CacheLines<N> {
    #[inline(always)]
    fn new(stamp: u64, payload: &[u8]) -> Self {
        Self(RingSlot::new(stamp, payload))
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl RingSlot for HalfLine {
    #[inline(always)]
    fn new(stamp: u64, payload: &[u8]) -> Self {
        Self(RingSlot::new(stamp, payload))
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a stamp into a message.
#[inline(always)]
pub fn write_stamp(message: &mut [u8], stamp: u64) {
    message[STAMP_BYTES].copy_from_slice(&stamp.to_le_bytes());
}

/// Returns the event for a message that holds its stamp.
#[inline(always)]
pub fn message_event(payload: &[u8]) -> SubscriptionEvent<'_> {
    let stamp = u64::from_le_bytes(payload[STAMP_BYTES].try_into().expect("eight bytes"));
    SubscriptionEvent::Message(Message { sequence: None, stamp, kind: KIND, payload, id: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_lies_where_the_measuring_loop_writes_nothing() {
        let mut payload = [7; 32];
        payload[16..24].fill(0);
        let slot = HalfLine::new(1_234_567, &payload);
        let SubscriptionEvent::Message(message) = message_event(slot.bytes()) else { panic!("a message") };
        assert_eq!((message.stamp, message.kind), (1_234_567, KIND));
        assert_eq!((&message.payload[..16], &message.payload[24..]), (&payload[..16], &payload[24..]));
    }

    #[test]
    fn slots_fill_whole_cache_lines_or_half_a_line() {
        assert_eq!((size_of::<HalfLine>(), align_of::<HalfLine>()), (32, 32));
        assert_eq!((size_of::<CacheLines<64>>(), align_of::<CacheLines<64>>()), (64, 64));
        assert_eq!(size_of::<CacheLines<65_536>>(), 65_536);
    }
}
