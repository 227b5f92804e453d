//! Notices to the operator: losses, doubts, lanes that were set aside.

use std::collections::VecDeque;
use std::fmt;

use tickpath_market::{OrderId, VenueId};
use tickpath_oms_journal::meter::NOTICES;
use tickpath_oms_journal::{LaneKind, LineId};

/// Max notices that are kept; older notices are dropped, but stay counted.
const MAX_NOTICES: usize = 1024;

/// Event of the OMS that an operator must know and that shows nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The journal's tail had not reached the disk when the host lost its power.
    TailLost {
        /// The first record that is gone.
        sequence: u64,
        /// Useless bytes behind that record.
        bytes: u64,
    },
    /// A lane was missing, or belonged to another journal; a new lane was made.
    LaneLost {
        /// The lane.
        lane: LaneKind,
        /// The reason.
        why: String,
    },
    /// Lanes were removed from shared memory while the OMS runs.
    LanesRemoved {
        /// Number of removed lanes.
        lanes: usize,
        /// One of those lanes.
        first: LaneKind,
    },
    /// Orders were put in doubt.
    Doubt {
        /// The venue of the orders.
        venue: VenueId,
        /// Number of orders that are unknown now.
        unknown: u64,
    },
    /// Messages on a lane were lost before they were taken.
    Missed {
        /// The lane.
        lane: LaneKind,
        /// Number of messages.
        messages: u64,
    },
    /// A lane is damaged. Nothing more is taken from it; the other lanes continue.
    Quarantined {
        /// The lane.
        lane: LaneKind,
        /// The damage.
        why: String,
    },
    /// Requests had not left when the OMS ended: they wait, and are checked again before they leave.
    Returned {
        /// The venue of the requests.
        venue: VenueId,
        /// Number of requests.
        requests: u64,
    },
    /// A line is lost, or cannot be connected. The OMS tries again for ever.
    LineDown {
        /// The line.
        line: LineId,
        /// The reason.
        why: String,
    },
    /// A line takes requests.
    LineUp(LineId),
    /// A line is down for too long: the orders that may have used it are in doubt.
    LineGivenUp {
        /// The line.
        line: LineId,
        /// Number of orders in doubt.
        orders: u64,
    },
    /// The history of reports is missing, or was set aside; with the reason.
    HistoryLost(String),
    /// A venue cannot be reached.
    VenueDown(VenueId),
    /// A venue can be reached again.
    VenueUp(VenueId),
    /// The journal's disk has failed: new orders are denied, cancels pass, nothing more is durable.
    DiskFailed(String),
    /// A day ended, but the archive does not take its log, which stays where it is.
    NotArchived(String),
    /// A snapshot could not be made. The journal is whole without it, but a start takes longer.
    SnapshotFailed(String),
    /// A venue has not answered a request in time: its order is in doubt.
    VenueSilent {
        /// The venue.
        venue: VenueId,
        /// The order.
        order: OrderId,
    },
    /// A venue refused a cancel or a replace because it does not work an order that is open here: the order is in
    /// doubt.
    RefusedOpen {
        /// The venue.
        venue: VenueId,
        /// The order.
        order: OrderId,
        /// The venue's reason.
        reason: u16,
    },
    /// A venue reported more unknown orders than are kept; for the rest of the day such reports are dropped.
    UnknownOrders {
        /// The venue.
        venue: VenueId,
    },
    /// A day ended by the calendar.
    DayEnded {
        /// The day, as 20261122.
        day: u32,
        /// Whether its end had passed while no OMS ran.
        is_late: bool,
    },
    /// A day should have ended by the calendar, but its end was refused.
    DayNotEnded {
        /// The day, as 20261122.
        day: u32,
        /// The reason.
        why: String,
    },
}

impl Notice {
    /// Returns the place of its kind in [`NOTICES`].
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

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TailLost { sequence, bytes } => write!(
                f,
                "the journal had not reached the disk from record {sequence} on ({bytes} bytes); what it held is lost, \
                 and its orders, if a venue has them, are strangers: ask the venue"
            ),
            Self::LaneLost { lane, why } => {
                write!(f, "{lane} is made anew ({why}); whoever had it open must join again")
            }
            Self::LanesRemoved { lanes, first } => write!(
                f,
                "{lanes} lanes of this OMS were removed from /dev/shm, {first} among them (systemd does so when their user \
                 logs out, unless RemoveIPC=no): nobody else can join them, and a venue that came by them has left. Restart \
                 the OMS, which makes them anew; its journal has all that was taken"
            ),
            Self::Doubt { venue, unknown } => {
                write!(f, "messages to or from venue {venue} may be lost: {unknown} orders are unknown and asked for")
            }
            Self::Missed { lane, messages } => {
                write!(f, "{messages} messages of {lane} are gone before they were taken")
            }
            Self::Quarantined { lane, why } => {
                write!(f, "{lane} is set aside ({why}); stop its writer and restart the OMS to have it made anew")
            }
            Self::Returned { venue, requests } => {
                write!(f, "{requests} requests to venue {venue} had not left; they are checked again before they do")
            }
            Self::LineDown { line, why } => write!(f, "{line} is down ({why}); it is tried again"),
            Self::LineGivenUp { line, orders } => write!(
                f,
                "{line} is away for too long: {orders} orders that went by it are unknown; the venue is asked by another \
                 line, or by this one when it is back"
            ),
            Self::HistoryLost(why) => write!(
                f,
                "there is no history of what was said this day ({why}); it is said again from the journal, and what lay in \
                 its place is in an archive beside it"
            ),
            Self::LineUp(line) => write!(f, "{line} is up"),
            Self::VenueDown(venue) => write!(f, "venue {venue} takes nothing; requests wait here"),
            Self::VenueUp(venue) => write!(f, "venue {venue} is back"),
            Self::NotArchived(why) => f.write_str(why),
            Self::SnapshotFailed(why) => write!(f, "{why}; a start takes longer until there is one"),
            Self::VenueSilent { venue, order } => write!(
                f,
                "venue {venue} has not answered in time: order {}.{} is unknown, and its venue is asked",
                order.epoch(),
                order.sequence()
            ),
            Self::RefusedOpen { venue, order, reason } => write!(
                f,
                "venue {venue} says by reason {reason} that it does not work order {}.{}, which is open here: the order is \
                 unknown, and its venue is asked",
                order.epoch(),
                order.sequence()
            ),
            Self::UnknownOrders { venue } => write!(
                f,
                "venue {venue} has reported too many orders today that are not known here: such reports are neither kept nor \
                 journaled until the day ends; look who speaks at that address"
            ),
            Self::DayEnded { day, is_late: false } => write!(f, "day {day} has ended by the calendar"),
            Self::DayEnded { day, is_late: true } => {
                write!(f, "day {day} has ended now: its end by the calendar passed before this OMS could end it")
            }
            Self::DayNotEnded { day, why } => {
                write!(f, "day {day} should have ended by the calendar: {why}. It is tried again every minute")
            }
            Self::DiskFailed(why) => write!(
                f,
                "the journal's disk has failed ({why}); new orders, and those that had not left, are denied, cancels pass, \
                 and clients are told what no disk has. Restart on a sound disk"
            ),
        }
    }
}

/// The last notices.
#[derive(Debug, Default)]
pub(crate) struct NoticeLog {
    list: VecDeque<Notice>,
    /// Number of all notices so far.
    count: u64,
    /// Number of all notices of each kind.
    by_kind: [u64; NOTICES.len()],
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

    pub fn iter(&self) -> impl Iterator<Item = &Notice> {
        self.list.iter()
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of all notices of each kind, ordered as in [`NOTICES`].
    pub fn by_kind(&self) -> &[u64; NOTICES.len()] {
        &self.by_kind
    }
}
