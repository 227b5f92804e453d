//! Notices to the operator: losses, doubts, lanes that were set aside.

use std::collections::VecDeque;

use tickpath_market::{OrderId, VenueId};
use tickpath_oms_journal::meter::NOTICES;
use tickpath_oms_journal::{LaneKind, LineId};

/// Max notices that are kept; older notices are dropped, but stay counted.
const MAX_NOTICES: usize = 1024;

/// Event of the OMS that an operator must know and that shows nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// The journal's tail had not reached the disk when the host lost its power.
    #[error(
        "the journal's records from {sequence} on ({bytes} bytes) had not reached the disk and are lost; ask the \
         venue for their orders, which are unknown here"
    )]
    TailLost {
        /// The first record that is gone.
        sequence: u64,
        /// Useless bytes behind that record.
        bytes: u64,
    },
    /// A lane was missing, or belonged to another journal; a new lane was made.
    #[error("{lane} is replaced by a new one ({why}); processes that had it open must open it again")]
    LaneLost {
        /// The lane.
        lane: LaneKind,
        /// The reason.
        why: String,
    },
    /// Lanes were removed from shared memory while the OMS runs.
    #[error(
        "{lanes} lanes of this OMS were removed from /dev/shm, {first} among them (systemd does so when their user \
         logs out, unless RemoveIPC=no): no process can join them, and venues that used them are down. Restart the \
         OMS to make them anew; its journal has all requests that it took"
    )]
    LanesRemoved {
        /// Number of removed lanes.
        lanes: usize,
        /// One of those lanes.
        first: LaneKind,
    },
    /// Orders were put in doubt.
    #[error("messages to or from venue {venue} may be lost: {unknown} orders are unknown, and their venue is asked")]
    Doubt {
        /// The venue of the orders.
        venue: VenueId,
        /// Number of orders that are unknown now.
        unknown: u64,
    },
    /// Messages on a lane were lost before they were taken.
    #[error("{messages} messages of {lane} were lost before the OMS took them")]
    Missed {
        /// The lane.
        lane: LaneKind,
        /// Number of messages.
        messages: u64,
    },
    /// A lane is damaged. Nothing more is taken from it; the other lanes continue.
    #[error("{lane} is set aside ({why}); stop its writer and restart the OMS to have it made anew")]
    Quarantined {
        /// The lane.
        lane: LaneKind,
        /// The damage.
        why: String,
    },
    /// Requests had not left when the OMS ended: they wait, and are checked again before they leave.
    #[error("{requests} requests to venue {venue} had not left; they are checked again before they do")]
    Returned {
        /// The venue of the requests.
        venue: VenueId,
        /// Number of requests.
        requests: u64,
    },
    /// A line is lost, or cannot be connected. The OMS tries again for ever.
    #[error("{line} is down ({why}); it is tried again")]
    LineDown {
        /// The line.
        line: LineId,
        /// The reason.
        why: String,
    },
    /// A line takes requests.
    #[error("{0} is up")]
    LineUp(LineId),
    /// A line is down for too long: the orders that may have used it are in doubt.
    #[error(
        "{line} is down for too long: {orders} orders that went by it are unknown; the venue is asked by another \
         line, or by this line once it is up"
    )]
    LineGivenUp {
        /// The line.
        line: LineId,
        /// Number of orders in doubt.
        orders: u64,
    },
    /// The history of reports is missing, or was set aside; with the reason.
    #[error(
        "the day's report history is missing ({0}); it is written again from the journal, and the files that lay in \
         its place are in an archive beside it"
    )]
    HistoryLost(String),
    /// A venue cannot be reached.
    #[error("venue {0} takes no requests; they wait in the OMS")]
    VenueDown(VenueId),
    /// A venue can be reached again.
    #[error("venue {0} takes requests again")]
    VenueUp(VenueId),
    /// The journal's disk has failed: new orders are denied, cancels pass, nothing more is durable.
    #[error(
        "the journal's disk has failed ({0}); new orders, and orders that had not left, are denied, cancels pass, and \
         reports leave that no disk holds. Restart on a sound disk"
    )]
    DiskFailed(String),
    /// A day ended, but the archive does not take its log, which stays where it is; or an end of a day that came by the
    /// operator's lane was refused.
    #[error("{0}")]
    NotArchived(String),
    /// A snapshot could not be made. The journal is whole without it, but a start takes longer.
    #[error("{0}; a start takes longer until there is a snapshot")]
    SnapshotFailed(String),
    /// A venue has not answered a request in time: its order is in doubt.
    #[error(
        "venue {venue} has not answered in time: order {}.{} is unknown, and its venue is asked",
        .order.epoch(), .order.sequence()
    )]
    VenueSilent {
        /// The venue.
        venue: VenueId,
        /// The order.
        order: OrderId,
    },
    /// A venue refused a cancel or a replace because it does not work an order that is open here: the order is in
    /// doubt.
    #[error(
        "venue {venue} does not work order {}.{} (reason {reason}), which is open here: the order is unknown, and its \
         venue is asked",
        .order.epoch(), .order.sequence()
    )]
    RefusedOpen {
        /// The venue.
        venue: VenueId,
        /// The order.
        order: OrderId,
        /// The venue's reason.
        reason: u16,
    },
    /// A venue reported an unknown order beyond the limit of such reports since the journal began: further reports are
    /// dropped. Noted once a day.
    #[error(
        "venue {venue} has reported an unknown order beyond the limit of 65,536 such reports since the journal began: \
         they are neither kept nor journaled; check which system uses the venue's address"
    )]
    UnknownOrders {
        /// The venue.
        venue: VenueId,
    },
    /// A day ended by the calendar.
    #[error("day {day} has ended {}", end_text(*.is_late))]
    DayEnded {
        /// The day, as 20261122.
        day: u32,
        /// Whether its end had passed while no OMS ran.
        is_late: bool,
    },
    /// A day should have ended by the calendar, but its end was refused.
    #[error("day {day} should have ended by the calendar: {why}. It is tried again every minute")]
    DayNotEnded {
        /// The day, as 20261122.
        day: u32,
        /// The reason.
        why: String,
    },
}

impl Notice {
    /// Returns the index of its kind in [`NOTICES`].
    pub fn kind(&self) -> usize {
        match self {
            Self::TailLost { .. } => 0,
            Self::LaneLost { .. } => 1,
            Self::Doubt { .. } => 2,
            Self::Missed { .. } => 3,
            Self::Quarantined { .. } => 4,
            Self::Returned { .. } => 5,
            Self::VenueDown(_) => 6,
            Self::VenueUp(_) => 7,
            Self::DiskFailed(_) => 8,
            Self::NotArchived(_) => 9,
            Self::SnapshotFailed(_) => 10,
            Self::LineDown { .. } => 11,
            Self::LineUp(_) => 12,
            Self::LineGivenUp { .. } => 13,
            Self::HistoryLost(_) => 14,
            Self::VenueSilent { .. } => 15,
            Self::RefusedOpen { .. } => 16,
            Self::DayEnded { .. } => 17,
            Self::DayNotEnded { .. } => 18,
            Self::UnknownOrders { .. } => 19,
            Self::LanesRemoved { .. } => 20,
        }
    }
}

/// Returns when a day ended, as its notice words it.
fn end_text(is_late: bool) -> &'static str {
    if is_late { "now: its end by the calendar passed before this OMS could end it" } else { "by the calendar" }
}

/// The last notices.
#[derive(Debug, Default)]
pub(crate) struct NoticeLog {
    pub list: VecDeque<Notice>,
    /// Number of all notices so far.
    pub count: u64,
    /// Number of all notices of each kind, ordered as in [`NOTICES`].
    pub by_kind: [u64; NOTICES.len()],
}

impl NoticeLog {
    #[cold]
    pub fn add(&mut self, notice: Notice) {
        if self.list.len() == MAX_NOTICES {
            self.list.pop_front();
        }
        self.by_kind[notice.kind()] += 1;
        self.list.push_back(notice);
        self.count += 1;
    }
}
