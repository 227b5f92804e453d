//! Times as the exchange writes and reads them: milliseconds, or microseconds on request.

const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1_000;
/// Timestamps from here on are microseconds: in milliseconds this is the year 5138.
const LEAST_MICROSECONDS: u64 = 100_000_000_000_000;

/// Unit of the times in answers and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StampUnit {
    #[default]
    Millisecond,
    Microsecond,
}

impl StampUnit {
    /// Reads the value of `timeUnit`, or of the header `X-MBX-TIME-UNIT`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text {
            "MILLISECOND" | "millisecond" => Some(Self::Millisecond),
            "MICROSECOND" | "microsecond" => Some(Self::Microsecond),
            _ => None,
        }
    }

    /// Returns a time, given in nanoseconds since the Unix epoch, in this unit.
    pub(crate) fn of(self, ns: u64) -> u64 {
        match self {
            Self::Millisecond => ns / MILLISECOND_NS,
            Self::Microsecond => ns / MICROSECOND_NS,
        }
    }
}

/// Returns a client's timestamp in nanoseconds. Its magnitude decides between milliseconds and microseconds.
pub(crate) fn stamp_ns(stamp: u64) -> u64 {
    let unit = if stamp >= LEAST_MICROSECONDS { MICROSECOND_NS } else { MILLISECOND_NS };
    stamp.saturating_mul(unit)
}
