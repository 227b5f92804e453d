//! A line as the journal and the settings know it: its number, and how it is opened.

use std::fmt;
use std::sync::Arc;

use tickpath_market::VenueId;
use tickpath_venue::Line;

/// Lines of one venue, at most: their numbers have four bits, and one value says that there is none.
pub const MOST_LINES: usize = 15;
/// The number of a request in a record has so many bits.
pub(crate) const NUMBER_BITS: u32 = 28;

/// Which line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId {
    /// Of which venue.
    pub venue: VenueId,
    /// Its number there, from 0, below [`MOST_LINES`].
    pub line: u8,
}

/// A line as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineConfig {
    /// Which.
    pub id: LineId,
    /// How it is opened.
    pub open: OpenLine,
    /// Requests in any second, at most; zero for as many as come.
    pub rate_per_second: u32,
    /// Requests without proof of receipt, at most.
    pub window: u32,
    /// After so long without its venue, in nanoseconds, what went by it is in doubt, and asked for by another line.
    pub lost_after_ns: u64,
}

/// Opens a line: whoever adds a protocol gives one of these.
#[derive(Clone)]
pub struct OpenLine(pub(crate) Arc<Open>);

type Open = dyn Fn() -> Result<Box<dyn Line>, String> + Send + Sync;

impl OpenLine {
    /// By this function, at each start. It connects nothing yet; what it says where it cannot is a sentence.
    pub fn new(open: impl Fn() -> Result<Box<dyn Line>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for OpenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenLine")
    }
}

impl PartialEq for OpenLine {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OpenLine {}

impl LineId {
    /// As one number: the venue, and the line in the upper bits.
    pub(crate) fn index(self) -> u16 {
        self.venue.0 & 0x0fff | u16::from(self.line) << 12
    }

    /// From a record's line, which is one above its number; none for zero.
    pub(crate) fn recorded(venue: VenueId, line: u16) -> Option<Self> {
        Some(Self { venue, line: u8::try_from(line.checked_sub(1)?).ok()? })
    }

    /// A request's place in a record: the line, one above its number, and the low bits of the request's number.
    pub(crate) fn place(self, number: u64) -> u32 {
        (u32::from(self.line) + 1) << NUMBER_BITS | (number & ((1 << NUMBER_BITS) - 1)) as u32
    }
}

impl fmt::Display for LineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of venue {}", self.line, self.venue)
    }
}
