//! Journaled state of the socket lines. A route is the path of an input or report, and the journal records it.
//!
//! ```text
//!   route 0      the lanes
//!   route 1 …    a line each, in the order of their first logons; a forgotten line leaves its route to another line
//! ```
//!
//! The answer to a request goes back by its route; later reports of an order go by the route of its owner's last
//! request for that order. Reports of a line are numbered, and kept until the client confirms that they are in its
//! journal; a replay of the venue's journal produces them again.

use std::collections::VecDeque;

use tickpath_market::ExecutionReport;

use crate::faults::FaultInjector;
use crate::input::VenueInput;
use crate::journal::LaneJoin;
use crate::owners::{COMMON, OrderOwners, ResolvedRequest, RoutedReport};
use crate::{FillError, SimVenue};

/// Report with its earliest time of sending (ticks).
pub(crate) type DueReport = (u64, ExecutionReport);

/// All socket lines, and the owners of all orders.
#[derive(Debug, Default)]
pub(crate) struct LineSessions {
    pub list: Vec<LineSession>,
    pub owners: OrderOwners,
    routed: Vec<RoutedReport>,
}

#[derive(Debug, Default)]
pub(crate) struct LineSession {
    /// Client journal that the line's sequence numbers belong to.
    pub journal: u64,
    /// Incarnation of that journal.
    pub incarnation: u64,
    /// Number of the next request; all below it are taken.
    pub next_request: u64,
    /// Number of the first report that is kept.
    pub first: u64,
    unconfirmed: VecDeque<DueReport>,
    /// Number of the first report that must be kept, as the journal has it.
    pub journaled_first: u64,
    /// Whether the line ever sent a request or had a report.
    is_used: bool,
}

impl LineSessions {
    pub fn get(&self, route: usize) -> Option<&LineSession> {
        self.list.get(route.checked_sub(1)?)
    }

    pub fn get_mut(&mut self, route: usize) -> Option<&mut LineSession> {
        self.list.get_mut(route.checked_sub(1)?)
    }

    /// Starts the requests of a line at `lane.first`; `oms` is [`COMMON`] if the line names no OMS. Forgets a different
    /// line that had this route before.
    pub fn start_requests(&mut self, route: usize, lane: LaneJoin, oms: u64) {
        let LaneJoin { journal, incarnation, first } = lane;
        let is_known = self.get(route).is_some_and(|session| session.journal == journal);
        if !is_known {
            let new = LineSession { journal, incarnation, next_request: first, ..LineSession::default() };
            match self.get_mut(route) {
                Some(session) => {
                    *session = new;
                    self.owners.free_route(route);
                }
                None => self.list.push(new),
            }
        }
        if let Some(session) = self.get_mut(route) {
            (session.incarnation, session.next_request) = (incarnation, first);
        }
        match (oms, self.owners.owner_of(route)) {
            (COMMON, _) => {}
            (oms, COMMON) if is_known => self.owners.inherit(route, oms),
            (oms, _) => self.owners.assign(route, oms),
        }
    }

    pub fn start_reports(&mut self, route: usize, lane: LaneJoin) {
        if let Some(session) = self.get_mut(route) {
            session.unconfirmed.clear();
            (session.first, session.journaled_first) = (lane.first, lane.first);
        }
    }

    /// Applies an input that came by `route`, and fills the empty `out` with its reports, each with its route.
    pub fn apply(
        &mut self,
        route: usize,
        stamp: u64,
        input: &VenueInput,
        (venue, faults): (&mut SimVenue, &mut FaultInjector),
        out: &mut Vec<(usize, ExecutionReport)>,
    ) -> Result<(), FillError> {
        let (mut input, mut resolved) = (*input, ResolvedRequest::default());
        if let VenueInput::Request(number, request) = &mut input {
            if let Some(session) = self.get_mut(route) {
                (session.next_request, session.is_used) = (number.saturating_add(1), true);
            }
            resolved = self.owners.resolve(route, request, venue);
        }
        let Self { owners, routed, .. } = self;
        let applied = faults.apply(&input, venue, owners.translation(route, resolved), stamp, routed);
        out.extend(routed.drain(..).map(|routed| (owners.route_of(&routed), routed.report)));
        match input {
            VenueInput::Request(..) => owners.drop_unknown_route(resolved, venue),
            VenueInput::EndOfDay => owners.end_day(venue),
            _ => {}
        }
        applied
    }

    /// Returns a route with a forgettable line: no report is kept for it, no order of it rests, and it is not in
    /// `connected`. A line that was never used goes first.
    pub fn find_evictable(&self, connected: &[usize], venue: &SimVenue) -> Option<usize> {
        let rests = self.owners.routes_with_orders(self.list.len() + 1, venue);
        let is_evictable = |(route, session): &(usize, &LineSession)| {
            session.unconfirmed.is_empty() && !rests[*route] && !connected.contains(route)
        };
        let evictable: Vec<(usize, &LineSession)> = (1..).zip(&self.list).filter(is_evictable).collect();
        let unused = evictable.iter().find(|(_, session)| !session.is_used);
        unused.or(evictable.first()).map(|(route, _)| *route)
    }

    pub fn keep_report(&mut self, route: usize, report: DueReport) {
        if let Some(session) = self.get_mut(route) {
            session.unconfirmed.push_back(report);
            session.is_used = true;
        }
    }

    /// Drops kept reports below this number, which the client has confirmed.
    pub fn drop_confirmed(&mut self, route: usize, number: u64) {
        let Some(session) = self.get_mut(route) else { return };
        let confirmed = number.saturating_sub(session.first).min(session.unconfirmed.len() as u64);
        session.unconfirmed.drain(..confirmed as usize);
        session.first += confirmed;
    }

    /// Does as [`Self::drop_confirmed`] for a journal record, and notes that the journal has this number.
    pub fn apply_confirmed(&mut self, route: usize, number: u64) {
        self.drop_confirmed(route, number);
        if let Some(session) = self.get_mut(route) {
            session.journaled_first = number;
        }
    }

    /// Returns the earliest time (ticks) that a line's last kept report waits for, if any is delayed.
    pub fn next_due(&self) -> Option<u64> {
        let last = self.list.iter().filter_map(|session| session.unconfirmed.back());
        last.map(|(due, _)| *due).filter(|&due| due > 0).min()
    }
}

impl LineSession {
    pub fn end(&self) -> u64 {
        self.first + self.unconfirmed.len() as u64
    }

    /// Returns the report with this number, if it is kept.
    #[inline]
    pub fn report(&self, number: u64) -> Option<&DueReport> {
        self.unconfirmed.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}
