//! Losses, and the message that reports one: a bridge publishes it, and a recording keeps it.

/// Kind of a message that reports a loss.
pub const GAP_KIND: u8 = 255;

/// First eight bytes of such a message, before the number of lost messages.
const MAGIC: [u8; 8] = *b"TICKGAP1";

/// Loss of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Exactly this many messages were lost.
    Missed(u64),
    /// The connection was lost and made again; how many messages were lost is unknown.
    Reconnected,
}

impl Gap {
    /// Returns the payload that reports the loss: eight letters, then its number, little-endian, or 0 if unknown.
    pub fn encode(self) -> [u8; 16] {
        let missed = match self {
            Self::Missed(missed) => missed,
            Self::Reconnected => 0,
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..].copy_from_slice(&missed.to_le_bytes());
        bytes
    }

    /// Returns the loss that a message reports; `None` for any other message.
    pub fn decode(kind: u8, payload: &[u8]) -> Option<Self> {
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
            let record = gap.encode();
            assert_eq!(Gap::decode(GAP_KIND, &record), Some(gap));
            assert_eq!(Gap::decode(GAP_KIND - 1, &record), None, "another kind is a message");
            assert_eq!(Gap::decode(GAP_KIND, &record[..15]), None, "another length is a message");
        }
        for payload in [&b""[..], b"TICKGAP", &[0; 16], &[255; 16]] {
            assert_eq!(Gap::decode(GAP_KIND, payload), None, "{payload:?}");
        }
    }
}
