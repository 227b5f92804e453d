//! Reports for the clients: live ones as the history grows, and older ones for a client that lacks reports.

use tickpath_log::{LogOpenError, Next, Reader, ReaderStart};
use tickpath_oms_protocol::{FROM_NOW, Logon};
use tickpath_oms_runtime::OmsError;
use tickpath_oms_runtime::history::{HistoryIndex, SessionReader, SessionReport, parse_report};

use super::client_table::{ClientTable, ReadyList};
use super::connection::{ClientConnection, ReportSource};
use super::denials::DenialBudget;
use super::session_numbers::SessionNumbers;

const MAX_LIVE_FRAMES: usize = 256;
const DENIED: u8 = tickpath_market::Kind::OrderDenied.code();

/// The history of reports, and the position of the live reports in it.
pub(super) struct ReportFeed {
    pub journal: u64,
    history: HistoryIndex,
    live: Reader,
    /// Day of the history that `live` reads.
    day: u64,
    /// The day has ended, and the rest of its reports is being read.
    day_ended: bool,
    next: SessionNumbers,
}

impl ReportFeed {
    /// Opens the feed; live reports are those written from now on.
    pub fn open(journal: u64, history: HistoryIndex, next: Vec<u64>) -> Result<Self, LogOpenError> {
        let (day, live) = history.follow(ReaderStart::Now)?;
        Ok(Self { journal, history, live, day, day_ended: false, next: SessionNumbers(next) })
    }

    pub fn next(&self, session: u16) -> u64 {
        self.next.next(session)
    }

    /// Forwards live reports to the clients that are caught up. Returns the number of frames read.
    pub fn forward_live(
        &mut self,
        clients: &mut ClientTable,
        ready: &mut ReadyList,
        denials: &mut DenialBudget,
    ) -> Result<usize, OmsError> {
        let Self { history, live, day, day_ended, next, .. } = self;
        for done in 0..MAX_LIVE_FRAMES {
            let message = match live.next()? {
                Next::Message(message) => message,
                _ if history.day() == *day => return Ok(done),
                // Reports written between the last read and the end of the day come first.
                _ if !*day_ended => {
                    *day_ended = true;
                    continue;
                }
                _ => {
                    (*day, *live) = history.follow(ReaderStart::Oldest)?;
                    *day_ended = false;
                    denials.begin_day();
                    continue;
                }
            };
            let Some(report) = parse_report(&message) else { continue };
            *next.next_mut(report.session) = report.number + 1;
            if report.kind == DENIED {
                denials.count(report.session);
            }
            if let Some((slot, connection)) = clients.of_session(report.session) {
                connection.limit.charge_mass_cancel(&report);
                ready.mark(slot);
                forward(history, *day, &report, connection);
            }
        }
        Ok(MAX_LIVE_FRAMES)
    }

    pub fn read(&self, session: u16, from: u64) -> Result<SessionReader, LogOpenError> {
        self.history.read(session, from)
    }

    pub fn source(&self, session: u16, from: u64) -> ReportSource {
        if from == self.next(session) {
            return ReportSource::Live;
        }
        ReportSource::History(self.read(session, from).ok().map(Box::new))
    }

    /// Returns the first report for a client: the one it asks for, if the checksum of the report before it matches.
    pub fn first_for(&self, session: u16, logon: &Logon) -> u64 {
        let (asked, last_sum) = (logon.next_report, logon.last_sum);
        let (first, next) = (self.history.first(session), self.next(session));
        if asked == FROM_NOW {
            return next;
        }
        // A client without a report begins with the current day; any other resumes behind its last one.
        if logon.journal != self.journal {
            return first;
        }
        let oldest = self.history.oldest(session);
        if asked <= oldest {
            return oldest;
        }
        let is_known = |sum: u32| last_sum == 0 || sum == last_sum;
        match self.history.checksum(session, asked - 1) {
            Some(sum) if !is_known(sum) => first,
            // A client that catches up from the history may be ahead of the live reports.
            None if asked > next => first,
            _ => asked,
        }
    }
}

/// Sends a live report of this day to a client that is caught up, or has the client catch up from the history.
#[inline]
fn forward(history: &HistoryIndex, day: u64, report: &SessionReport<'_>, connection: &mut ClientConnection) {
    if !matches!(connection.reports.source, ReportSource::Live) || report.number < connection.reports.next {
        return;
    }
    if report.number > connection.reports.next || connection.output.is_lagging() {
        // The position is taken now: when the client catches up, the day may be another one.
        let reading = history.read_in(day, report.session, connection.reports.next);
        // The rest of an ended day is in no log that could be opened: it is buffered for the client.
        if !matches!(reading, Ok(None)) || report.number > connection.reports.next {
            connection.reports.source = ReportSource::History(reading.ok().flatten().map(Box::new));
            return;
        }
    }
    connection.report(report);
}
