//! A message as the slot of a ring: the payload alone, its stamp within it.

use tickpath_bus::{Event, Message};

/// Where a peer's message has its stamp. The loop leaves these bytes empty, so that no peer pays for a header.
const STAMP: std::ops::Range<usize> = 16..24;

/// The kind of what the loop publishes.
pub const KIND: u8 = 200;

/// A slot of a ring.
pub trait Item: Copy + Send + 'static {
    /// A message of exactly this size.
    fn of(stamp: u64, payload: &[u8]) -> Self;

    /// Its bytes.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Item for [u8; N] {
    #[inline(always)]
    fn of(stamp: u64, payload: &[u8]) -> Self {
        let mut bytes = Self::try_from(payload).expect("the size that the URL names");
        put_stamp(&mut bytes, stamp);
        bytes
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A message that begins where a cache line does.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Lines<const N: usize>([u8; N]);

/// Two messages a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub struct HalfLine([u8; 32]);

impl<const N: usize> Item for Lines<N> {
    #[inline(always)]
    fn of(stamp: u64, payload: &[u8]) -> Self {
        Self(Item::of(stamp, payload))
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Item for HalfLine {
    #[inline(always)]
    fn of(stamp: u64, payload: &[u8]) -> Self {
        Self(Item::of(stamp, payload))
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a stamp into a message.
#[inline(always)]
pub fn put_stamp(message: &mut [u8], stamp: u64) {
    message[STAMP].copy_from_slice(&stamp.to_le_bytes());
}

/// A message with its stamp, as the loop hears it.
#[inline(always)]
pub fn event(payload: &[u8]) -> Event<'_> {
    let stamp = u64::from_le_bytes(payload[STAMP].try_into().expect("eight bytes"));
    Event::Message(Message { sequence: None, stamp, kind: KIND, payload, origin: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_lies_where_the_loop_writes_nothing() {
        let mut payload = [7; 32];
        payload[16..24].fill(0);
        let item = HalfLine::of(1_234_567, &payload);
        let Event::Message(message) = event(item.bytes()) else { panic!("a message") };
        assert_eq!((message.stamp, message.kind), (1_234_567, KIND));
        assert_eq!((&message.payload[..16], &message.payload[24..]), (&payload[..16], &payload[24..]));
    }

    #[test]
    fn slots_lie_in_as_many_lines_as_they_need() {
        assert_eq!((size_of::<HalfLine>(), align_of::<HalfLine>()), (32, 32));
        assert_eq!((size_of::<Lines<64>>(), align_of::<Lines<64>>()), (64, 64));
        assert_eq!(size_of::<Lines<65_536>>(), 65_536);
    }
}
