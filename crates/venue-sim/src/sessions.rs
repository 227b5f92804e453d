//! Journaled state of the socket lines. A way is the route of an input or report, and the journal records it.
//!
//! ```text
//!   way 0      the lanes
//!   way 1 …    a line each, in the order of their first logons; a forgotten line leaves its way to another line
//! ```
//!
//! The answer to a request goes back by its way; later reports of an order go by the way of its owner's last request
//! for that order. Reports of a line are numbered, and kept until the client confirms that they are in its journal; a
//! replay of the venue's journal produces them again.

use std::collections::VecDeque;

use tickpath_market::ExecutionReport;

use crate::faults::Faulty;
use crate::input::Input;
use crate::journal::Lane;
use crate::owners::{COMMON, Meant, Owners, Told};
use crate::{FillError, Venue};

/// Report with its earliest time of sending (ticks).
pub(crate) type Due = (u64, ExecutionReport);

/// All socket lines, and the owners of all orders.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub list: Vec<Session>,
    pub owners: Owners,
    told: Vec<Told>,
}

/// State of a socket line.
#[derive(Debug)]
pub(crate) struct Session {
    /// Client journal that the line's sequence numbers belong to.
    pub journal: u64,
    /// Incarnation of that journal.
    pub incarnation: u64,
    /// Number of the next request; all below it are taken.
    pub next_request: u64,
    /// Number of the first report that is kept.
    pub first: u64,
    kept: VecDeque<Due>,
    /// Number of the first report that must be kept, as the journal has it.
    pub trimmed: u64,
    /// Whether the line ever sent a request or had a report.
    is_used: bool,
}

impl Sessions {
    /// Returns the line of this way.
    pub fn get(&self, way: usize) -> Option<&Session> {
        self.list.get(way.checked_sub(1)?)
    }

    /// Returns the line of this way, mutably.
    pub fn get_mut(&mut self, way: usize) -> Option<&mut Session> {
        self.list.get_mut(way.checked_sub(1)?)
    }

    /// Starts the requests of a line at `lane.first`; `oms` is [`COMMON`] if the line names no OMS. Forgets a different
    /// line that had this way before.
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

    /// Starts the reports of a line at `lane.first`.
    pub fn meet_reports(&mut self, way: usize, lane: Lane) {
        if let Some(session) = self.get_mut(way) {
            session.kept.clear();
            (session.first, session.trimmed) = (lane.first, lane.first);
        }
    }

    /// Applies an input that came by `way`, and fills the empty `out` with its reports, each with the way that it goes.
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

    /// Returns a way with a forgettable line: no report is kept for it, no order of it rests, and it is not in `here`.
    /// A line that was never used goes first.
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

    /// Drops kept reports below this number, which the client has confirmed.
    pub fn trim(&mut self, way: usize, number: u64) {
        let Some(session) = self.get_mut(way) else { return };
        let gone = number.saturating_sub(session.first).min(session.kept.len() as u64);
        session.kept.drain(..gone as usize);
        session.first += gone;
    }

    /// Does as [`Self::trim`] for a journal record, and notes that the journal has this number.
    pub fn trimmed(&mut self, way: usize, number: u64) {
        self.trim(way, number);
        if let Some(session) = self.get_mut(way) {
            session.trimmed = number;
        }
    }

    /// Returns the earliest time (ticks) that a line's last kept report waits for, if any is delayed.
    pub fn due(&self) -> Option<u64> {
        self.list.iter().filter_map(|session| session.kept.back()).map(|(due, _)| *due).filter(|&due| due > 0).min()
    }
}

impl Session {
    /// Returns the number of the next report.
    pub fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Returns the report with this number, if it is kept.
    #[inline]
    pub fn report(&self, number: u64) -> Option<&Due> {
        self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}
