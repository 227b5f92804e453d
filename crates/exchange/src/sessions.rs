//! Lines that come by sockets: what of each the journal knows. Which way an input came by is a part of it.
//!
//! ```text
//!   way 0      the lanes
//!   way 1 …    a line each, in the order in which they first came, for ever
//! ```
//!
//! What a request says goes back by its way; what happens to an order later goes by the way of the last request that named
//! it. Reports of a line are numbered, and kept until the other side says that it has them on its journal: a replay says them
//! again.

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_market::{ExecutionReport, Request};
use tickpath_venue_tcp::wire::{Logon, VERSION, Welcome};

use crate::journal::{Input, Lane, Record};
use crate::used::IdMap;
use crate::{Line, LineError, Venue};

/// The lanes.
pub(crate) const LANES: usize = 0;

/// Reports that the other side has before the journal says so: a replay keeps fewer then.
const TRIM_EVERY: u64 = 4096;

/// Reports, each with the time (ticks) that it waits for.
pub(crate) type Due = (u64, ExecutionReport);

/// All lines that come by sockets.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    list: Vec<Session>,
    /// The way of the last request that named an order, where that is not the lanes.
    ways: IdMap<u64, u32>,
}

/// A line that comes by sockets.
#[derive(Debug)]
pub(crate) struct Session {
    /// Whose numbers these are, and which life of them.
    journal: u64,
    incarnation: u64,
    /// All requests below this number are taken.
    pub next_request: u64,
    /// The number of the first report that is kept.
    first: u64,
    kept: VecDeque<Due>,
    /// Below this number the journal knows that reports need not be kept.
    trimmed: u64,
}

impl Sessions {
    /// The line that comes by this way.
    pub fn get(&self, way: usize) -> Option<&Session> {
        self.list.get(way.checked_sub(1)?)
    }

    fn get_mut(&mut self, way: usize) -> Option<&mut Session> {
        self.list.get_mut(way.checked_sub(1)?)
    }

    /// Its requests begin with this one.
    pub fn meet_requests(&mut self, way: usize, lane: Lane) {
        if self.get(way).is_none() {
            let Lane { journal, incarnation, first } = lane;
            let (kept, next_request) = (VecDeque::new(), first);
            self.list.push(Session { journal, incarnation, next_request, first: 0, kept, trimmed: 0 });
        }
        if let Some(session) = self.get_mut(way) {
            (session.incarnation, session.next_request) = (lane.incarnation, lane.first);
        }
    }

    /// Its reports begin with this one.
    pub fn meet_reports(&mut self, way: usize, lane: Lane) {
        if let Some(session) = self.get_mut(way) {
            session.kept.clear();
            (session.first, session.trimmed) = (lane.first, lane.first);
        }
    }

    /// A request is taken.
    #[inline]
    pub fn take(&mut self, way: usize, number: u64, request: &Request) {
        if let Some(session) = self.get_mut(way) {
            session.next_request = number + 1;
        }
        let order = match request {
            Request::New(new) => new.client_order_id,
            Request::Cancel(cancel) => cancel.original,
            Request::Replace(replace) => replace.original,
            Request::Status(status) => status.original,
            Request::MassCancel(_) => return,
            Request::Conditional(new) => new.order.client_order_id,
            Request::ReplaceConditional(replace) => replace.original,
        };
        if way != LANES {
            self.ways.insert(order.0, way as u32);
        } else if !self.ways.is_empty() {
            self.ways.remove(&order.0);
        }
    }

    /// The way that a report goes, of those that an input by `way` made.
    #[inline]
    pub fn way_of(&self, report: &ExecutionReport, way: usize) -> usize {
        match report.order_id.0 {
            _ if self.list.is_empty() => LANES,
            // Of no order: that names none.
            0 => way,
            order => self.ways.get(&order).map_or(LANES, |&way| way as usize),
        }
    }

    /// Keeps a report for a line.
    pub fn say(&mut self, way: usize, report: Due) {
        if let Some(session) = self.get_mut(way) {
            session.kept.push_back(report);
        }
    }

    /// Reports below this number need not be kept.
    pub fn trim(&mut self, way: usize, number: u64) {
        let Some(session) = self.get_mut(way) else { return };
        let gone = number.saturating_sub(session.first).min(session.kept.len() as u64);
        session.kept.drain(..gone as usize);
        session.first += gone;
    }

    /// The same, as the journal says.
    pub fn trimmed(&mut self, way: usize, number: u64) {
        self.trim(way, number);
        if let Some(session) = self.get_mut(way) {
            session.trimmed = number;
        }
    }

    /// When the next report that is held back may go, if there is any.
    pub fn due(&self) -> Option<u64> {
        self.list.iter().filter_map(|session| session.kept.back()).map(|(due, _)| *due).filter(|&due| due > 0).min()
    }

    /// A day has ended: orders that are forgotten have no way.
    pub fn end_day(&mut self, venue: &Venue) {
        self.ways.retain(|&order, _| venue.knows(order));
    }
}

impl Session {
    /// The number of the next report that will be said.
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// The report with this number, if it was said and is kept.
    #[inline]
    pub fn report(&self, number: u64) -> Option<&Due> {
        self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

impl<C: Clock> Line<C> {
    /// A line has come by a socket: gives its way, and what it is told.
    pub(crate) fn logon(&mut self, logon: &Logon) -> Result<(usize, Welcome), LineError> {
        let place = self.sessions.list.iter().position(|session| session.journal == logon.journal);
        let way = place.unwrap_or(self.sessions.list.len()) + 1;
        let lane = |first| Lane { journal: logon.journal, incarnation: logon.incarnation, first };
        let session = self.sessions.get(way);
        let knows_requests = session.is_some_and(|session| session.incarnation == logon.incarnation);
        let knows_reports = session.is_some_and(|session| (session.first..=session.end()).contains(&logon.next_report));
        if !knows_requests {
            self.write_by(way, &Record::Requests(lane(logon.next_request)))?;
            self.sessions.meet_requests(way, lane(logon.next_request));
        }
        if !knows_reports {
            self.write_by(way, &Record::Reports(lane(logon.next_report)))?;
            self.sessions.meet_reports(way, lane(logon.next_report));
        }
        let next_request = self.sessions.get(way).map_or(0, |session| session.next_request);
        let welcome = Welcome {
            version: VERSION,
            knows_requests: knows_requests.into(),
            knows_reports: knows_reports.into(),
            reserved: 0,
            next_request,
            next_report: logon.next_report,
        };
        Ok((way, welcome))
    }

    /// Takes a request of a line. One whose number was taken is dropped.
    #[inline]
    pub(crate) fn request_by(&mut self, way: usize, number: u64, request: Request) -> Result<(), LineError> {
        if self.sessions.get(way).is_none_or(|session| number < session.next_request) {
            return Ok(());
        }
        self.has_traded = true;
        self.take_by(way, self.clock.ticks(), Input::Request(number, request))
    }

    /// The other side has these reports on its journal.
    pub(crate) fn confirmed_by(&mut self, way: usize, number: u64) -> Result<(), LineError> {
        self.sessions.trim(way, number);
        let Some(session) = self.sessions.get_mut(way) else { return Ok(()) };
        if session.first - session.trimmed >= TRIM_EVERY {
            session.trimmed = session.first;
            let record = Record::Trimmed(session.first);
            self.write_by(way, &record)?;
        }
        Ok(())
    }
}
