//! Requests of a socket line: logon, disconnect, orders and confirmations.

use tickpath_clock::Clock;
use tickpath_market::Request;
use tickpath_venue_native::wire::{IDENTITY_VERSION, LineLogon, LineWelcome, VERSION};

use crate::input::VenueInput;
use crate::journal::{LaneJoin, NamedLine, VenueRecord};
use crate::line_sessions::LineSession;
use crate::owners::COMMON;
use crate::{EngineError, VenueEngine};

/// Number of confirmed reports after which the journal records the confirmation, which bounds the reports that a replay
/// keeps.
const TRIM_EVERY: u64 = 4096;
/// Upper bound of a line's sequence numbers, which no real line reaches.
const MAX_SEQUENCE: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LogonRefusal {
    #[error("the numbers of this logon are beyond 2^62, which no line reaches; does its sender use another protocol?")]
    Numbers,
    #[error("the numbers of this line belong to another OMS; give each OMS a journal of its own")]
    OtherOms,
    #[error(
        "this exchange knows {0} lines, and each is connected, has resting orders or has unconfirmed reports; raise \
         most_lines in exchange.toml, or cancel the orders of lines that are no longer used"
    )]
    Full(usize),
}

impl<C: Clock> VenueEngine<C> {
    /// Logs a socket line on. Returns its route and the reply; beyond `max_lines` known lines a new one replaces a line
    /// that can be forgotten and has no route in `connected`.
    pub(crate) fn logon(
        &mut self,
        logon: &LineLogon,
        max_lines: usize,
        connected: &[usize],
    ) -> Result<Result<(usize, LineWelcome), LogonRefusal>, EngineError> {
        if logon.next_request.max(logon.next_report) > MAX_SEQUENCE {
            return Ok(Err(LogonRefusal::Numbers));
        }
        let list = &self.sessions.list;
        let known = list.iter().position(|session| session.journal == logon.journal).map(|index| index + 1);
        let route = match known {
            Some(route) => Some(route),
            None if list.len() < max_lines => Some(list.len() + 1),
            None => self.sessions.find_evictable(connected, self.venue()),
        };
        let Some(route) = route else { return Ok(Err(LogonRefusal::Full(max_lines))) };
        let oms = if logon.version < IDENTITY_VERSION { COMMON } else { logon.oms };
        let owner = if known.is_some() { self.sessions.owners.owner_of(route) } else { COMMON };
        if oms != COMMON && owner != COMMON && oms != owner {
            return Ok(Err(LogonRefusal::OtherOms));
        }
        let session = known.and_then(|route| self.sessions.get(route));
        let knows_requests = session.is_some_and(|session| session.incarnation == logon.incarnation);
        let knows_reports = session.is_some_and(|session| (session.first..=session.end()).contains(&logon.next_report));
        let first = session.filter(|_| knows_requests).map_or(logon.next_request, |session| session.next_request);
        let lane = |first| LaneJoin { journal: logon.journal, incarnation: logon.incarnation, first };
        if !knows_requests || oms != COMMON && oms != owner {
            let record = match oms {
                COMMON => VenueRecord::Requests(lane(first)),
                oms => VenueRecord::NamedLine(NamedLine { lane: lane(first), oms }),
            };
            self.journal_from(route, &record)?;
            self.sessions.start_requests(route, lane(first), oms);
        }
        if !knows_reports {
            self.journal_from(route, &VenueRecord::Reports(lane(logon.next_report)))?;
            self.sessions.start_reports(route, lane(logon.next_report));
        }
        let welcome = LineWelcome {
            version: VERSION,
            knows_requests: knows_requests.into(),
            knows_reports: knows_reports.into(),
            venue: u32::from(self.venue().number().0) + 1,
            next_request: first,
            next_report: logon.next_report,
        };
        Ok(Ok((route, welcome)))
    }

    /// Journals the confirmed reports of a disconnected line, so that the line can be forgotten after a restart as
    /// well.
    pub(crate) fn disconnect_line(&mut self, route: usize) -> Result<(), EngineError> {
        self.journal_confirmed(route, 1)
    }

    /// Journals the confirmed reports of a line, if at least `min_new` of them are not journaled yet.
    fn journal_confirmed(&mut self, route: usize, min_new: u64) -> Result<(), EngineError> {
        let is_due = |session: &&mut LineSession| session.first >= session.journaled_first + min_new;
        let Some(session) = self.sessions.get_mut(route).filter(is_due) else { return Ok(()) };
        session.journaled_first = session.first;
        let record = VenueRecord::Confirmed(session.first);
        self.journal_from(route, &record)
    }

    /// Applies a request of a line. Drops a duplicate, which has a number below the next one.
    #[inline]
    pub(crate) fn apply_line_request(
        &mut self,
        route: usize,
        number: u64,
        request: Request,
    ) -> Result<(), EngineError> {
        if self.sessions.get(route).is_none_or(|session| number < session.next_request) {
            return Ok(());
        }
        self.has_traded = true;
        self.commit_from(route, self.clock.ticks(), VenueInput::Request(number, request))
    }

    /// Drops a line's reports below `number`, which the client has in its journal. Journals this every [`TRIM_EVERY`]
    /// reports.
    pub(crate) fn confirm_reports(&mut self, route: usize, number: u64) -> Result<(), EngineError> {
        self.sessions.drop_confirmed(route, number);
        self.journal_confirmed(route, TRIM_EVERY)
    }
}
