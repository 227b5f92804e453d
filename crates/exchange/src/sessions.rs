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

use tickpath_market::{ExecutionReport, Request};

use crate::Venue;
use crate::input::LANES;
use crate::journal::Lane;
use crate::used::IdMap;

/// Reports, each with the time (ticks) that it waits for.
pub(crate) type Due = (u64, ExecutionReport);

/// All lines that come by sockets.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub list: Vec<Session>,
    /// The way of the last request that named an order, where that is not the lanes.
    ways: IdMap<u64, u32>,
}

/// A line that comes by sockets.
#[derive(Debug)]
pub(crate) struct Session {
    /// Whose numbers these are, and which life of them.
    pub journal: u64,
    pub incarnation: u64,
    /// All requests below this number are taken.
    pub next_request: u64,
    /// The number of the first report that is kept.
    pub first: u64,
    kept: VecDeque<Due>,
    /// Below this number the journal knows that reports need not be kept.
    pub trimmed: u64,
}

impl Sessions {
    /// The line that comes by this way.
    pub fn get(&self, way: usize) -> Option<&Session> {
        self.list.get(way.checked_sub(1)?)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, way: usize) -> Option<&mut Session> {
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
    pub fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// The report with this number, if it was said and is kept.
    #[inline]
    pub fn report(&self, number: u64) -> Option<&Due> {
        self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}
