//! What a line that comes by a socket does at the venue.

use tickpath_clock::Clock;
use tickpath_market::Request;
use tickpath_venue_tcp::wire::{Logon, VERSION, Welcome};

use crate::input::Input;
use crate::journal::{Lane, Record};
use crate::{Line, LineError};

/// Reports that the other side has before the journal says so: a replay keeps fewer then.
const TRIM_EVERY: u64 = 4096;

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
