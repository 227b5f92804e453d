//! Identities of lanes and lines in the journal's records and in a lane's header, and the frame of an output.

use std::fmt;

use tickpath_market::{Kind, VenueId};
use tickpath_oms_core::Output;
use zerocopy::IntoBytes;

/// Max lines of a venue: a line's number has four bits, and one value means that there is no line.
pub const MAX_LINES: usize = 15;
/// Bits of a request's number in a record.
pub(crate) const NUMBER_BITS: u32 = 28;

/// Kind of a lane, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneKind {
    /// Requests of a client session: written by the client.
    Requests(u16),
    /// Reports to a client session: written by the OMS. A slow client never stops it.
    Reports(u16),
    /// Requests to a venue: written by the OMS, read by the venue.
    VenueRequests(VenueId),
    /// Reports of a venue: written by the venue, which waits for the OMS.
    VenueReports(VenueId),
    /// Requests to a venue by a line, which the OMS itself transmits; the reports of a line use no lane.
    Line(LineId),
    /// Admin commands of the operator.
    Control,
}

/// Identity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId {
    /// The venue of the line.
    pub venue: VenueId,
    /// The line's number at its venue, from 0, below [`MAX_LINES`].
    pub line: u8,
}

impl LaneKind {
    /// Returns the code of the lane's kind and the number of its session, venue or line, as in a journal record.
    #[inline]
    pub fn code(self) -> (u8, u16) {
        match self {
            Self::Requests(session) => (1, session),
            Self::Reports(session) => (2, session),
            Self::VenueRequests(venue) => (3, venue.0),
            Self::VenueReports(venue) => (4, venue.0),
            Self::Control => (5, 0),
            Self::Line(line) => (6, line.index()),
        }
    }

    /// Returns the journal id in the header of a lane of this journal. The id differs for each lane, so that two lanes
    /// whose names were swapped are not mistaken for each other.
    pub fn journal_mark(self, journal: u64) -> u64 {
        let (carries, index) = self.code();
        journal ^ (u64::from(carries) << 16 | u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the journal id behind a mark of [`Self::journal_mark`]: all lanes and lines of an OMS share it.
    pub fn journal_of_mark(self, mark: u64) -> u64 {
        // Exclusive or is its own inverse.
        self.journal_mark(mark)
    }

    /// Returns whether the client of a session can write to the lane's files: a start rebuilds such a lane and never
    /// refuses it for its content.
    #[inline]
    pub fn is_session_lane(self) -> bool {
        matches!(self, Self::Requests(_) | Self::Reports(_))
    }

    /// Returns whether the OMS writes the lane.
    #[inline]
    pub fn is_outbound(self) -> bool {
        matches!(self, Self::Reports(_) | Self::VenueRequests(_) | Self::Line(_))
    }
}

impl LineId {
    /// Returns the line as one number: the venue, and the line in the upper bits.
    #[inline]
    pub fn index(self) -> u16 {
        self.venue.0 & 0x0fff | u16::from(self.line) << 12
    }

    /// Returns the line that a record names, which is one above its number; none for zero.
    #[inline]
    pub fn recorded(venue: VenueId, line: u16) -> Option<Self> {
        Some(Self { venue, line: u8::try_from(line.checked_sub(1)?).ok()? })
    }

    /// Returns a request's place in a record: the line, one above its number, and the low bits of the request's number.
    #[inline]
    pub fn place(self, number: u64) -> u32 {
        (u32::from(self.line) + 1) << NUMBER_BITS | (number & ((1 << NUMBER_BITS) - 1)) as u32
    }
}

impl fmt::Display for LaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(session) => write!(f, "the request lane of session {session}"),
            Self::Reports(session) => write!(f, "the report log of session {session}"),
            Self::VenueRequests(venue) => write!(f, "the request lane of venue {venue}"),
            Self::VenueReports(venue) => write!(f, "the report lane of venue {venue}"),
            Self::Line(line) => write!(f, "the request lane of {line}"),
            Self::Control => write!(f, "the operator's lane"),
        }
    }
}

impl fmt::Display for LineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of venue {}", self.line, self.venue)
    }
}

/// Returns the kind and the bytes of an output's frame, the same in a lane and in the history.
#[inline]
pub fn frame(output: &Output) -> (u8, &[u8]) {
    match output {
        Output::Venue { request, .. } => (request.kind().code(), request.as_bytes()),
        Output::Report { report, .. } => (Kind::ExecutionReport.code(), report.as_bytes()),
        Output::Denied { denied, .. } => (Kind::OrderDenied.code(), denied.as_bytes()),
        Output::Extension { extension, .. } => (Kind::OrderExtension.code(), extension.as_bytes()),
    }
}
