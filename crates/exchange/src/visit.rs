//! What a line that comes by a socket does at the venue.

use tickpath_clock::Clock;
use tickpath_market::Request;
use tickpath_venue_tcp::wire::{IDENTITY_VERSION, Logon, VERSION, Welcome};

use crate::input::Input;
use crate::journal::{Lane, Named, Record};
use crate::owners::COMMON;
use crate::{Line, LineError};

/// Reports that the other side has before the journal says so: a replay keeps fewer then.
const TRIM_EVERY: u64 = 4096;
/// No line ever comes to such a number.
const MOST_NUMBER: u64 = 1 << 62;

/// Why a logon is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwelcome {
    /// Its numbers are beyond all that a line can have.
    #[error("the numbers of this logon are beyond 2^62, which no line comes to; is its sender of another protocol?")]
    Numbers,
    /// The numbers of the line are those of another OMS.
    #[error("the numbers of this line belong to another OMS; give each OMS a journal of its own")]
    OtherOms,
    /// There are as many lines as may be, and none can be forgotten.
    #[error(
        "this exchange knows {0} lines, and each is here, has orders that rest, or has reports that nobody confirmed; raise \
         most_lines in exchange.toml, or cancel the orders of lines that are gone"
    )]
    Full(usize),
}

impl<C: Clock> Line<C> {
    /// A line has come by a socket: gives its way, and what it is told. Of more than `most` lines a new one takes the place
    /// of one that can be forgotten; the ways in `here` are those of lines that are connected.
    pub(crate) fn logon(
        &mut self,
        logon: &Logon,
        most: usize,
        here: &[usize],
    ) -> Result<Result<(usize, Welcome), Unwelcome>, LineError> {
        if logon.next_request.max(logon.next_report) > MOST_NUMBER {
            return Ok(Err(Unwelcome::Numbers));
        }
        let list = &self.sessions.list;
        let known = list.iter().position(|session| session.journal == logon.journal).map(|place| place + 1);
        let way = match known {
            Some(way) => Some(way),
            None if list.len() < most => Some(list.len() + 1),
            None => self.sessions.forgettable(here, self.venue()),
        };
        let Some(way) = way else { return Ok(Err(Unwelcome::Full(most))) };
        let oms = if logon.version < IDENTITY_VERSION { COMMON } else { logon.oms };
        let owner = if known.is_some() { self.sessions.owners.of(way) } else { COMMON };
        if oms != COMMON && owner != COMMON && oms != owner {
            return Ok(Err(Unwelcome::OtherOms));
        }
        let session = known.and_then(|way| self.sessions.get(way));
        let knows_requests = session.is_some_and(|session| session.incarnation == logon.incarnation);
        let knows_reports = session.is_some_and(|session| (session.first..=session.end()).contains(&logon.next_report));
        let first = session.filter(|_| knows_requests).map_or(logon.next_request, |session| session.next_request);
        let lane = |first| Lane { journal: logon.journal, incarnation: logon.incarnation, first };
        if !knows_requests || oms != COMMON && oms != owner {
            let record = match oms {
                COMMON => Record::Requests(lane(first)),
                oms => Record::Named(Named { lane: lane(first), oms }),
            };
            self.write_by(way, &record)?;
            self.sessions.meet_requests(way, lane(first), oms);
        }
        if !knows_reports {
            self.write_by(way, &Record::Reports(lane(logon.next_report)))?;
            self.sessions.meet_reports(way, lane(logon.next_report));
        }
        let welcome = Welcome {
            version: VERSION,
            knows_requests: knows_requests.into(),
            knows_reports: knows_reports.into(),
            venue: u32::from(self.venue().number().0) + 1,
            next_request: first,
            next_report: logon.next_report,
        };
        Ok(Ok((way, welcome)))
    }

    /// A line is gone: the journal learns what it has confirmed, so that it can be forgotten after a restart, too.
    pub(crate) fn left_by(&mut self, way: usize) -> Result<(), LineError> {
        let Some(session) = self.sessions.get_mut(way).filter(|session| session.first > session.trimmed) else {
            return Ok(());
        };
        session.trimmed = session.first;
        let record = Record::Trimmed(session.first);
        self.write_by(way, &record)
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
