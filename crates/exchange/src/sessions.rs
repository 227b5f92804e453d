//! Lines that come by sockets: what of each the journal knows. Which way an input came by is a part of it.
//!
//! ```text
//!   way 0      the lanes
//!   way 1 …    a line each, in the order in which they first came; a line that is forgotten leaves its way to another
//! ```
//!
//! The answer to a request goes back by its way; what happens to an order later goes by the way of the last request of its
//! owner that named the order. Reports of a line are numbered, and kept until the other side confirms that they are in its
//! journal: a replay says them again.

use std::collections::VecDeque;

use tickpath_market::ExecutionReport;

use crate::faults::Faulty;
use crate::input::Input;
use crate::journal::Lane;
use crate::owners::{COMMON, Meant, Owners, Told};
use crate::{FillError, Venue};

/// Reports, each with the time (ticks) that it waits for.
pub(crate) type Due = (u64, ExecutionReport);

/// All lines that come by sockets, and the owners of all orders.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub list: Vec<Session>,
    pub owners: Owners,
    told: Vec<Told>,
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
    /// A request was taken, or a report was made for it.
    is_used: bool,
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

    /// The requests of a line begin with this one; `oms` is [`COMMON`] if it names none. A line that came by this way before
    /// and is another one is forgotten.
    pub fn meet_requests(&mut self, way: usize, lane: Lane, oms: u64) {
        let Lane { journal, incarnation, first } = lane;
        let is_known = self.get(way).is_some_and(|session| session.journal == journal);
        if !is_known {
            let kept = VecDeque::new();
            let new = Session { journal, incarnation, next_request: first, first: 0, kept, trimmed: 0, is_used: false };
            match self.get_mut(way) {
                Some(session) => {
                    *session = new;
                    self.owners.forget(way);
                }
                None => self.list.push(new),
            }
        }
        if let Some(session) = self.get_mut(way) {
            (session.incarnation, session.next_request) = (incarnation, first);
        }
        match (oms, self.owners.of(way)) {
            (COMMON, _) => {}
            (oms, COMMON) if is_known => self.owners.inherit(way, oms),
            (oms, _) => self.owners.set(way, oms),
        }
    }

    /// Its reports begin with this one.
    pub fn meet_reports(&mut self, way: usize, lane: Lane) {
        if let Some(session) = self.get_mut(way) {
            session.kept.clear();
            (session.first, session.trimmed) = (lane.first, lane.first);
        }
    }

    /// Applies an input that came by `way`, and leaves in `out`, which is empty, its reports, each with the way that it goes.
    pub fn apply(
        &mut self,
        way: usize,
        stamp: u64,
        input: &Input,
        (venue, faults): (&mut Venue, &mut Faulty),
        out: &mut Vec<(usize, ExecutionReport)>,
    ) -> Result<(), FillError> {
        let (mut input, mut meant) = (*input, Meant::default());
        if let Input::Request(number, request) = &mut input {
            if let Some(session) = self.get_mut(way) {
                (session.next_request, session.is_used) = (number.saturating_add(1), true);
            }
            meant = self.owners.take(way, request, venue);
        }
        let mut told = std::mem::take(&mut self.told);
        let applied = faults.apply(&input, venue, self.owners.view(way, meant), stamp, &mut told);
        out.extend(told.drain(..).map(|told| (self.owners.way_of(&told), told.report)));
        self.told = told;
        match input {
            Input::Request(..) => self.owners.done(meant, venue),
            Input::EndOfDay => self.owners.end_day(venue),
            _ => {}
        }
        applied
    }

    /// A way whose line can be forgotten: nothing is kept for it, no order of it rests, and it is not one of `here`. A line
    /// that never sent anything goes first.
    pub fn forgettable(&self, here: &[usize], venue: &Venue) -> Option<usize> {
        let rests = self.owners.resting(self.list.len() + 1, venue);
        let is_over = |way: usize, session: &Session| session.kept.is_empty() && !rests[way] && !here.contains(&way);
        let over: Vec<(usize, &Session)> =
            (1..).zip(&self.list).filter(|(way, session)| is_over(*way, session)).collect();
        let unused = over.iter().find(|(_, session)| !session.is_used);
        unused.or(over.first()).map(|(way, _)| *way)
    }

    /// Keeps a report for a line.
    pub fn say(&mut self, way: usize, report: Due) {
        if let Some(session) = self.get_mut(way) {
            session.kept.push_back(report);
            session.is_used = true;
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
