//! Numbers of the details that come beside a session's reports.

use crc32c::crc32c;
use tickpath_oms_protocol::{DETAILS_VERSION, Frame, Logon, Welcome};

use crate::ClientCounts;

/// Position of a session among its details, which outlives connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetailNumbers {
    /// Number of the next detail; [`Logon::DETAILS_BEHIND`] before the first one is known.
    pub next: u64,
    /// CRC-32C of the detail before it, or zero.
    pub last_sum: u32,
}

impl Default for DetailNumbers {
    fn default() -> Self {
        Self { next: Logon::DETAILS_BEHIND, last_sum: 0 }
    }
}

impl DetailNumbers {
    /// Continues where the OMS does. An OMS that has lost its last details sends them again from a lower number on.
    pub fn resume(&mut self, welcome: &Welcome, counts: &mut ClientCounts) {
        let next = if welcome.version < DETAILS_VERSION { Logon::DETAILS_BEHIND } else { welcome.next_detail };
        if next != self.next {
            self.count_missing(next, counts);
            *self = Self { next, last_sum: 0 };
        }
    }

    /// Counts a detail. Returns false for a duplicate.
    pub fn accept(&mut self, frame: &Frame, counts: &mut ClientCounts) -> bool {
        let number = frame.sequence;
        if self.is_known() && number < self.next {
            counts.duplicates += 1;
            return false;
        }
        self.count_missing(number, counts);
        counts.details += 1;
        *self = Self { next: number.saturating_add(1), last_sum: crc32c(frame.payload) };
        true
    }

    /// Counts the details between the position and a later number.
    fn count_missing(&self, upto: u64, counts: &mut ClientCounts) {
        if self.is_known() && upto != Logon::DETAILS_BEHIND {
            counts.missing_details = counts.missing_details.saturating_add(upto.saturating_sub(self.next));
        }
    }

    fn is_known(&self) -> bool {
        self.next != Logon::DETAILS_BEHIND
    }
}
