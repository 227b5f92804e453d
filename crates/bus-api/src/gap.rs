//! Losses, and the message that carries the news of one: a bridge publishes it, and a recording keeps it.

/// The kind of a message that tells of a loss.
pub const GAP_KIND: u8 = 255;

/// What such a message begins with: eight letters, then how many messages were lost.
const MAGIC: [u8; 8] = *b"TICKGAP1";

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Exactly so many messages.
    Missed(u64),
    /// The connection was lost and made anew; nobody knows what came meanwhile.
    Reconnected,
}

impl Gap {
    /// The payload of the message that tells of it: eight letters, then how many messages were lost, little-endian; zero if
    /// nobody knows.
    pub fn record(self) -> [u8; 16] {
        let missed = match self {
            Self::Missed(missed) => missed,
            Self::Reconnected => 0,
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..].copy_from_slice(&missed.to_le_bytes());
        bytes
    }

    /// The loss that a message tells of; none if it is any other.
    pub fn read(kind: u8, payload: &[u8]) -> Option<Self> {
        let missed = payload.strip_prefix(&MAGIC).filter(|_| kind == GAP_KIND)?;
        Some(match u64::from_le_bytes(missed.try_into().ok()?) {
            0 => Self::Reconnected,
            missed => Self::Missed(missed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_written_and_read() {
        for gap in [Gap::Missed(1), Gap::Missed(u64::MAX), Gap::Reconnected] {
            let record = gap.record();
            assert_eq!(Gap::read(GAP_KIND, &record), Some(gap));
            assert_eq!(Gap::read(GAP_KIND - 1, &record), None, "another kind is a message");
            assert_eq!(Gap::read(GAP_KIND, &record[..15]), None, "another length is a message");
        }
        for payload in [&b""[..], b"TICKGAP", &[0; 16], &[255; 16]] {
            assert_eq!(Gap::read(GAP_KIND, payload), None, "{payload:?}");
        }
    }
}
