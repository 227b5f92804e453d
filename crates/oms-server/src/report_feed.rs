//! Reports for the clients: live ones as the history grows, and older ones for a client that lacks reports.

use tickpath_log::{LogOpenError, Next, Reader, ReaderStart};
use tickpath_oms_protocol::{DETAILS_VERSION, FROM_NOW, Logon};
use tickpath_oms_runtime::history::{HistoryIndex, SessionReader, SessionReport, parse_report};
use tickpath_oms_runtime::{NextNumbers, OmsError, SessionPosition};

use super::client_table::{ClientTable, ReadyList};
use super::connection::{ClientConnection, DetailPosition, ReportPosition, ReportSource};
use super::denials::DenialBudget;

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
    next: NextNumbers,
}

impl ReportFeed {
    /// Opens the feed; live reports are those written from now on.
    pub fn open(journal: u64, history: HistoryIndex, next: NextNumbers) -> Result<Self, LogOpenError> {
        let (day, live) = history.follow(ReaderStart::Now)?;
        Ok(Self { journal, history, live, day, day_ended: false, next })
    }

    /// Returns the position of the next live report and detail of a session.
    pub fn next(&self, session: u16) -> SessionPosition {
        self.next.of(session)
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
            *next.next_mut(report.kind, report.session) = report.number + 1;
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

    pub fn read(&self, session: u16, from: u64, details: DetailPosition) -> Result<SessionReader, LogOpenError> {
        match details {
            DetailPosition::Behind => self.history.resume_behind(session, from),
            DetailPosition::Off | DetailPosition::Next(_) => self.history.resume(session, position(from, details)),
        }
    }

    /// Returns the position of a client at its logon: live, or where the history has to be read from.
    pub fn position_for(&self, session: u16, logon: &Logon) -> ReportPosition {
        let (from, details) = self.first_for(session, logon);
        let next = self.next(session);
        let is_live =
            from == next.report && [DetailPosition::Off, DetailPosition::Next(next.detail)].contains(&details);
        if is_live {
            return ReportPosition { next: from, details, source: ReportSource::Live };
        }
        let reader = self.read(session, from, details).ok().map(Box::new);
        ReportPosition { next: from, details, source: ReportSource::History(reader) }
    }

    /// Returns the first report and the first detail for a client: those that it asks for, if the checksums of those
    /// before them match.
    fn first_for(&self, session: u16, logon: &Logon) -> (u64, DetailPosition) {
        let asked = logon.next_report;
        let report = self.first_report_for(session, logon);
        let first = self.history.first_position(session);
        if logon.version < DETAILS_VERSION {
            return (report, DetailPosition::Off);
        }
        match logon.next_detail {
            _ if asked == FROM_NOW => (report, DetailPosition::Next(self.next(session).detail)),
            // The whole day is sent, because the client has no reports of this journal, or other ones.
            _ if logon.journal != self.journal || report < asked => (report, DetailPosition::Next(first.detail)),
            Logon::DETAILS_BEHIND if report == asked => (report, DetailPosition::Behind),
            Logon::DETAILS_BEHIND => (report, DetailPosition::Next(self.history.oldest_position(session).detail)),
            next if self.has_detail_before(session, next, logon.last_detail_sum) => {
                (report, DetailPosition::Next(next.max(self.history.oldest_position(session).detail)))
            }
            // The reports match, so only the day's details are sent again.
            _ => (report, DetailPosition::Next(first.detail)),
        }
    }

    /// Returns whether the detail before this number is the one that a client has, as far as this can be known.
    fn has_detail_before(&self, session: u16, next: u64, last_sum: u32) -> bool {
        if next <= self.history.oldest_position(session).detail {
            return true;
        }
        match self.history.detail_checksum(session, next - 1) {
            Some(sum) => last_sum == 0 || sum == last_sum,
            // A client that catches up from the history may be ahead of the live details.
            None => next <= self.next(session).detail,
        }
    }

    /// Returns the first report for a client: the one it asks for, if the checksum of the report before it matches.
    fn first_report_for(&self, session: u16, logon: &Logon) -> u64 {
        let (asked, last_sum) = (logon.next_report, logon.last_sum);
        let (first, next) = (self.history.first(session), self.next(session).report);
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

/// Returns a client's position in the history, once the details have a number.
fn position(next: u64, details: DetailPosition) -> SessionPosition {
    match details {
        DetailPosition::Next(detail) => SessionPosition { report: next, detail },
        DetailPosition::Off | DetailPosition::Behind => SessionPosition::without_details(next),
    }
}

/// Sends a live report or detail of this day to a client that is caught up, or has the client catch up from the
/// history.
#[inline]
fn forward(history: &HistoryIndex, day: u64, report: &SessionReport<'_>, connection: &mut ClientConnection) {
    let Some(next) = connection.reports.next_of(report) else { return };
    if !matches!(connection.reports.source, ReportSource::Live) || report.number < next {
        return;
    }
    if report.number > next || connection.output.is_lagging() {
        // The position is taken now: when the client catches up, the day may be another one.
        let from = position(connection.reports.next, connection.reports.details);
        let reading = history.resume_in(day, report.session, from);
        // The rest of an ended day is in no log that could be opened: it is buffered for the client.
        if !matches!(reading, Ok(None)) || report.number > next {
            connection.reports.source = ReportSource::History(reading.ok().flatten().map(Box::new));
            return;
        }
    }
    connection.report(report);
}
