//! Numbers of a session's requests and reports. They outlive connections.

use std::collections::VecDeque;

use crc32c::crc32c;
use tickpath_market::{ClientOrderId, ExecutionReport, Kind as Message, OrderDenied, Request};
use tickpath_oms_protocol::{ANY_SESSION, Copied, FROM_NOW, Frame, Kind, Status, Taken, Welcome};

use crate::event::UNNUMBERED;
use crate::logon::{Asked, farewell};
use crate::{ClientError, Config, CopiedReport, Counts, Event, Since};

/// Max requests that are kept until the OMS confirms them. Their sixty megabytes on the wire exceed the socket buffers
/// of both sides together, so older requests were read.
const MOST_UNCONFIRMED: usize = 1 << 20;

const REPORT: u8 = Message::ExecutionReport.code();
const COPY: u8 = Kind::Copy as u8;
const DENIAL: u8 = Message::OrderDenied.code();

/// Numbers of a session, as this side knows them.
#[derive(Debug)]
pub(crate) struct Numbers {
    session: u16,
    /// The session was connected before.
    was_connected: bool,
    /// Next report. Once connected it is always a number.
    since: Since,
    next_request: u64,
    /// Requests that the OMS may not have taken; the newest has the number before `next_request`.
    unconfirmed: VecDeque<Request>,
    /// Range of the latest consecutive requests that the OMS refused before its journal: the next connection begins
    /// again at the first of these numbers.
    refused: (u64, u64),
    pub counts: Counts,
}

impl Numbers {
    pub fn new(config: &Config) -> Self {
        let session = config.session.unwrap_or(ANY_SESSION);
        let (unconfirmed, refused, counts) = (VecDeque::new(), (0, 0), Counts::default());
        Self { session, was_connected: false, since: config.since, next_request: 0, unconfirmed, refused, counts }
    }

    /// Returns the report from which another client would resume.
    pub fn since(&self) -> Since {
        self.since
    }

    /// Returns the wishes for the next logon.
    pub fn asked(&self) -> Asked {
        let (journal, next_report, last_sum) = match self.since {
            Since::Start => (0, 0, 0),
            Since::Now => (0, FROM_NOW, 0),
            Since::Report { journal, number, last_sum } => (journal, number, last_sum),
        };
        Asked { again: self.was_connected, session: self.session, journal, next_report, last_sum }
    }

    /// Returns the number of the next request.
    pub fn next_request(&self) -> u64 {
        self.next_request
    }

    /// Keeps a written request, under its number.
    pub fn keep(&mut self, request: &Request) -> u64 {
        if self.unconfirmed.len() == MOST_UNCONFIRMED {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back(*request);
        let number = self.next_request;
        self.next_request = number.saturating_add(1);
        number
    }

    /// Compares the numbers of both sides after a connect, and reports what was lost with the last connection.
    pub fn resume(&mut self, welcome: &Welcome, tell: &mut dyn FnMut(Event)) {
        let Welcome { session, journal: now, next_request, next_report: to, .. } = *welcome;
        tell(Event::Connected(*welcome));
        let mut last_sum = 0;
        match self.since {
            Since::Report { journal: before, .. } if before != now => {
                tell(Event::OtherJournal { before, now });
                self.doubt(tell);
                self.next_request = next_request;
            }
            Since::Report { number, .. } if number > to => tell(Event::SaidAgain { from: to, to: number }),
            Since::Report { number, .. } if number < to => self.miss(number, to, tell),
            Since::Report { last_sum: known, .. } => last_sum = known,
            Since::Start | Since::Now => {}
        }
        if welcome.others != 0 {
            self.doubt(tell);
            self.next_request = next_request;
        }
        self.compare_requests(next_request, tell);
        (self.session, self.was_connected, self.next_request) = (session, true, next_request);
        self.refused = (next_request, next_request);
        self.since = Since::Report { journal: now, number: to, last_sum };
    }

    /// Takes a frame of a connection; an error ends the connection.
    #[inline]
    pub fn hear(&mut self, frame: &Frame, tell: &mut dyn FnMut(Event)) -> Result<(), ClientError> {
        let Frame { kind, sequence: number, stamp, .. } = *frame;
        match kind {
            REPORT if self.is_next(frame, tell) => {
                let report: ExecutionReport = frame.message();
                self.was_answered(report.client_order_id);
                tell(Event::Report { number, stamp, report });
            }
            DENIAL if self.is_next(frame, tell) => {
                let denial: OrderDenied = frame.message();
                self.was_answered(denial.client_order_id);
                tell(Event::Denied { number, stamp, denial });
            }
            REPORT | DENIAL => {}
            COPY => self.hear_copy(frame, tell),
            _ => return self.hear_other(frame, tell),
        }
        Ok(())
    }

    /// Takes a copy of another session's report, which a drop copy brings.
    fn hear_copy(&mut self, frame: &Frame, tell: &mut dyn FnMut(Event)) {
        let Frame { sequence: number, stamp, payload, .. } = *frame;
        let (copied, Some(message)) = (frame.message::<Copied>(), payload.get(size_of::<Copied>()..)) else {
            self.counts.strange += 1;
            return;
        };
        let inner = Frame { kind: copied.kind, payload: message, ..*frame };
        let report = match copied.kind {
            REPORT => CopiedReport::Report(inner.message()),
            DENIAL => CopiedReport::Denied(inner.message()),
            _ => {
                self.counts.strange += 1;
                return;
            }
        };
        // The reports between them went to sessions outside this drop copy.
        if let Since::Report { number: expected, .. } = &mut self.since
            && copied.from <= *expected
        {
            *expected = number.max(*expected);
        }
        if self.is_next(&inner, tell) {
            let Copied { session, session_number, .. } = copied;
            let utc_ns = frame.text.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            tell(Event::Copied { number, stamp, utc_ns, session, session_number, report });
        }
    }

    /// Reports all unconfirmed requests as in doubt.
    pub fn doubt(&mut self, tell: &mut dyn FnMut(Event)) {
        self.hand_back(tell, |number, request| Event::InDoubt { number, request });
    }

    fn hear_other(&mut self, frame: &Frame, tell: &mut dyn FnMut(Event)) -> Result<(), ClientError> {
        match Kind::from_code(frame.kind) {
            Some(Kind::Heartbeat) if frame.sequence > self.next_request => {
                return Err(ClientError::Protocol("expects a request that was never sent"));
            }
            Some(Kind::Heartbeat) => self.confirm(frame.sequence),
            Some(Kind::OrderRow) => tell(Event::OrderRow { session: frame.stamp as u16, report: frame.message() }),
            Some(Kind::InstrumentRow) => tell(Event::InstrumentRow(frame.message())),
            Some(Kind::Answer) => {
                let status = !frame.payload.is_empty();
                if !frame.text.is_empty() {
                    tell(Event::KillSwitches(String::from_utf8_lossy(frame.text).into_owned()));
                }
                tell(Event::Answered(status.then(|| frame.message::<Status>())));
            }
            Some(Kind::Taken) => {
                let Taken { record } = frame.message();
                let why = || String::from_utf8_lossy(frame.text).into_owned();
                tell(Event::WordAnswered(if record == 0 { Err(why()) } else { Ok(record) }));
            }
            Some(Kind::RequestRefused) => {
                let denial: OrderDenied = frame.message();
                self.was_answered(denial.client_order_id);
                let from = if self.refused.1 == frame.sequence { self.refused.0 } else { frame.sequence };
                self.refused = (from, frame.sequence.saturating_add(1));
                tell(Event::Denied { number: UNNUMBERED, stamp: frame.stamp, denial });
            }
            Some(Kind::Refused | Kind::Logout) => return farewell(frame),
            _ => self.counts.strange += 1,
        }
        Ok(())
    }

    /// Compares the requests sent with the number that the OMS expects.
    fn compare_requests(&mut self, expected: u64, tell: &mut dyn FnMut(Event)) {
        // The OMS expects more than was sent: another client has used these numbers.
        if expected > self.next_request {
            self.doubt(tell);
        }
        let first = self.first_unconfirmed();
        let (from, to) = self.refused;
        if expected < first && !(from <= expected && first <= to) {
            tell(Event::Forgotten { from: expected, to: first });
        }
        self.confirm(expected);
        self.hand_back(tell, |number, request| Event::NotTaken { number, request });
    }

    /// Counts a report. Returns false for a duplicate.
    fn is_next(&mut self, frame: &Frame, tell: &mut dyn FnMut(Event)) -> bool {
        let Since::Report { journal, number: expected, .. } = self.since else { return false };
        let number = frame.sequence;
        if number < expected {
            self.counts.doubles += 1;
            tell(Event::Double { number });
            return false;
        }
        if number > expected {
            self.miss(expected, number, tell);
        }
        self.counts.reports += 1;
        self.since = Since::Report { journal, number: number.saturating_add(1), last_sum: crc32c(frame.payload) };
        true
    }

    /// Reports a gap: the reports between the two numbers do not arrive.
    fn miss(&mut self, from: u64, to: u64, tell: &mut dyn FnMut(Event)) {
        self.counts.gaps += 1;
        self.counts.missing = self.counts.missing.saturating_add(to - from);
        tell(Event::Gap { from, to });
    }

    /// Confirms the answered request; requests are answered in order. A request without an answer waits for a
    /// heartbeat, with those behind it.
    fn was_answered(&mut self, answered: ClientOrderId) {
        // A report that answers no request has no id.
        if answered.0 != 0 && self.unconfirmed.front().is_some_and(|first| first.client_order_id() == answered) {
            self.unconfirmed.pop_front();
        }
    }

    /// Confirms all requests below the number.
    fn confirm(&mut self, expected: u64) {
        let open = self.next_request.saturating_sub(expected).min(self.unconfirmed.len() as u64);
        self.unconfirmed.drain(..self.unconfirmed.len() - open as usize);
    }

    fn hand_back(&mut self, tell: &mut dyn FnMut(Event), event: impl Fn(u64, Request) -> Event) {
        for (number, request) in (self.first_unconfirmed()..).zip(self.unconfirmed.drain(..)) {
            tell(event(number, request));
        }
    }

    fn first_unconfirmed(&self) -> u64 {
        self.next_request - self.unconfirmed.len() as u64
    }
}
