//! The numbers of a session: of the message expected next, and of the message sent next.

use std::cmp::Ordering;

/// Numbers of both directions. Both begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceNumbers {
    /// MsgSeqNum (34) that is expected next.
    pub next_in: u64,
    /// MsgSeqNum (34) of the message that is sent next.
    pub next_out: u64,
}

impl SequenceNumbers {
    /// Numbers of a new session, and of one that was reset.
    pub const FIRST: Self = Self { next_in: 1, next_out: 1 };
}

impl Default for SequenceNumbers {
    fn default() -> Self {
        Self::FIRST
    }
}

/// Place of a received number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberPlace {
    /// The number was received already.
    Low,
    /// The number is the next one.
    Expected,
    /// Numbers before this one are missing.
    High,
}

impl NumberPlace {
    /// Compares a received number with the one that is expected next.
    pub fn of(number: u64, next_in: u64) -> Self {
        match number.cmp(&next_in) {
            Ordering::Less => Self::Low,
            Ordering::Equal => Self::Expected,
            Ordering::Greater => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_low_expected_or_high() {
        let places = [4, 5, 6].map(|number| NumberPlace::of(number, 5));
        assert_eq!(places, [NumberPlace::Low, NumberPlace::Expected, NumberPlace::High]);
        assert_eq!(SequenceNumbers::default(), SequenceNumbers { next_in: 1, next_out: 1 });
    }
}
