//! Numbers of a session's requests and reports. They outlive connections.

use std::collections::VecDeque;

use crc32c::crc32c;
use tickpath_market::{ClientOrderId, ExecutionReport, Kind as Message, OrderDenied, OrderExtension, Request};
use tickpath_oms_protocol::{ANY_SESSION, CommandAck, CopyHeader, FROM_NOW, Frame, FrameKind, Status, Welcome};

use crate::detail_numbers::DetailNumbers;
use crate::event::UNNUMBERED;
use crate::logon::{LogonRequest, check_end};
use crate::{ClientCounts, ClientError, ClientEvent, Config, CopiedReport, Since};

/// Max requests kept until the OMS confirms them: more bytes than the socket buffers of both sides together.
const MAX_UNCONFIRMED: usize = 1 << 20;

const REPORT: u8 = Message::ExecutionReport.code();
const COPY: u8 = FrameKind::Copy as u8;
const DENIAL: u8 = Message::OrderDenied.code();
const DETAIL: u8 = Message::ReportDetail.code();
const EXTENSION: u8 = Message::OrderExtension.code();

/// Numbers of a session, as this side knows them.
#[derive(Debug)]
pub(crate) struct SequenceNumbers {
    session: u16,
    was_connected: bool,
    /// Next report. Once connected it is always a number.
    pub since: Since,
    details: DetailNumbers,
    pub next_request: u64,
    /// Requests that the OMS may not have taken; the newest has the number before `next_request`.
    unconfirmed: VecDeque<Request>,
    /// Latest consecutive requests refused before the journal; the next connection begins again at the first of these.
    refused: (u64, u64),
    pub counts: ClientCounts,
}

impl SequenceNumbers {
    pub fn new(config: &Config) -> Self {
        let session = config.session.unwrap_or(ANY_SESSION);
        Self {
            session,
            was_connected: false,
            since: config.since,
            details: DetailNumbers::default(),
            next_request: 0,
            unconfirmed: VecDeque::new(),
            refused: (0, 0),
            counts: ClientCounts::default(),
        }
    }

    pub fn logon_request(&self) -> LogonRequest {
        let (journal, next_report, last_sum) = match self.since {
            Since::Start => (0, 0, 0),
            Since::Now => (0, FROM_NOW, 0),
            Since::Report { journal, number, last_sum } => (journal, number, last_sum),
        };
        let DetailNumbers { next: next_detail, last_sum: last_detail_sum } = self.details;
        let (is_reconnect, session) = (self.was_connected, self.session);
        LogonRequest { is_reconnect, session, journal, next_report, last_sum, next_detail, last_detail_sum }
    }

    /// Keeps a written request, under its number.
    pub fn record_sent(&mut self, request: &Request) -> u64 {
        if self.unconfirmed.len() == MAX_UNCONFIRMED {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back(*request);
        let number = self.next_request;
        self.next_request = number.saturating_add(1);
        number
    }

    /// Compares the numbers of both sides after a connect, and reports what was lost with the last connection.
    pub fn resume(&mut self, welcome: &Welcome, on_event: &mut dyn FnMut(ClientEvent)) {
        let Welcome { session, journal: now, next_request, next_report: to, .. } = *welcome;
        on_event(ClientEvent::Connected(*welcome));
        let mut last_sum = 0;
        match self.since {
            Since::Report { journal: before, .. } if before != now => {
                on_event(ClientEvent::OtherJournal { before, now });
                self.details = DetailNumbers::default();
                self.report_in_doubt(on_event);
                self.next_request = next_request;
            }
            Since::Report { number, .. } if number > to => on_event(ClientEvent::Resent { from: to, to: number }),
            Since::Report { number, .. } if number < to => self.report_gap(number, to, on_event),
            Since::Report { last_sum: known, .. } => last_sum = known,
            Since::Start | Since::Now => {}
        }
        if welcome.others != 0 {
            self.report_in_doubt(on_event);
            self.next_request = next_request;
        }
        self.compare_requests(next_request, on_event);
        (self.session, self.was_connected, self.next_request) = (session, true, next_request);
        self.refused = (next_request, next_request);
        self.since = Since::Report { journal: now, number: to, last_sum };
        self.details.resume(welcome, &mut self.counts);
    }

    /// Takes a frame of a connection; an error ends the connection.
    #[inline]
    pub fn receive(&mut self, frame: &Frame, on_event: &mut dyn FnMut(ClientEvent)) -> Result<(), ClientError> {
        let Frame { kind, sequence: number, stamp, .. } = *frame;
        match kind {
            REPORT if self.accept_report(frame, on_event) => {
                let report: ExecutionReport = frame.message();
                self.confirm_answered(report.client_order_id);
                on_event(ClientEvent::Report { number, stamp, report });
            }
            DENIAL if self.accept_report(frame, on_event) => {
                let denial: OrderDenied = frame.message();
                self.confirm_answered(denial.client_order_id);
                on_event(ClientEvent::Denied { number, stamp, denial });
            }
            EXTENSION if self.accept_report(frame, on_event) => {
                on_event(ClientEvent::Extension { number, stamp, extension: frame.message() });
            }
            REPORT | DENIAL | EXTENSION => {}
            DETAIL if self.details.accept(frame, &mut self.counts) => {
                on_event(ClientEvent::Detail { number, stamp, detail: frame.message() });
            }
            DETAIL => {}
            COPY => self.receive_copy(frame, on_event),
            _ => return self.receive_other(frame, on_event),
        }
        Ok(())
    }

    /// Takes a copy of another session's report, which a drop copy brings.
    fn receive_copy(&mut self, frame: &Frame, on_event: &mut dyn FnMut(ClientEvent)) {
        let Frame { sequence: number, stamp, payload, .. } = *frame;
        let (copied, Some(message)) = (frame.message::<CopyHeader>(), payload.get(size_of::<CopyHeader>()..)) else {
            self.counts.unknown_frames += 1;
            return;
        };
        let inner = Frame { kind: copied.kind, payload: message, ..*frame };
        let report = match copied.kind {
            REPORT => CopiedReport::Report(inner.message()),
            DENIAL => CopiedReport::Denied(inner.message()),
            DETAIL => CopiedReport::Detail(inner.message()),
            _ => {
                self.counts.unknown_frames += 1;
                return;
            }
        };
        // The reports between them went to sessions outside this drop copy.
        if let Since::Report { number: expected, .. } = &mut self.since
            && copied.from <= *expected
        {
            *expected = number.max(*expected);
        }
        if self.accept_report(&inner, on_event) {
            let CopyHeader { session, session_number, .. } = copied;
            let utc_ns = frame.text.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            on_event(ClientEvent::Copied { number, stamp, utc_ns, session, session_number, report });
        }
    }

    pub fn report_in_doubt(&mut self, on_event: &mut dyn FnMut(ClientEvent)) {
        self.drain_unconfirmed(on_event, |number, request| ClientEvent::InDoubt { number, request });
    }

    fn receive_other(&mut self, frame: &Frame, on_event: &mut dyn FnMut(ClientEvent)) -> Result<(), ClientError> {
        match FrameKind::from_code(frame.kind) {
            Some(FrameKind::Heartbeat) if frame.sequence > self.next_request => {
                return Err(ClientError::Protocol("expects a request that was never sent"));
            }
            Some(FrameKind::Heartbeat) => self.confirm(frame.sequence),
            Some(FrameKind::OrderRow) => {
                if !frame.text.is_empty() {
                    let inner = Frame { payload: frame.text, ..*frame };
                    let extension: OrderExtension = inner.message();
                    on_event(ClientEvent::Extension { number: UNNUMBERED, stamp: 0, extension });
                }
                on_event(ClientEvent::OrderRow { session: frame.stamp as u16, report: frame.message() })
            }
            Some(FrameKind::InstrumentRow) => on_event(ClientEvent::InstrumentRow(frame.message())),
            Some(FrameKind::Answer) => {
                let status = !frame.payload.is_empty();
                if !frame.text.is_empty() {
                    on_event(ClientEvent::KillSwitches(String::from_utf8_lossy(frame.text).into_owned()));
                }
                on_event(ClientEvent::Answered(status.then(|| frame.message::<Status>())));
            }
            Some(FrameKind::CommandAck) => {
                let CommandAck { record } = frame.message();
                let why = || String::from_utf8_lossy(frame.text).into_owned();
                on_event(ClientEvent::CommandAnswered(if record == 0 { Err(why()) } else { Ok(record) }));
            }
            Some(FrameKind::RequestRefused) => {
                let denial: OrderDenied = frame.message();
                self.confirm_answered(denial.client_order_id);
                let from = if self.refused.1 == frame.sequence { self.refused.0 } else { frame.sequence };
                self.refused = (from, frame.sequence.saturating_add(1));
                on_event(ClientEvent::Denied { number: UNNUMBERED, stamp: frame.stamp, denial });
            }
            Some(FrameKind::Refused | FrameKind::Logout) => return check_end(frame),
            _ => self.counts.unknown_frames += 1,
        }
        Ok(())
    }

    /// Compares the requests sent with the number that the OMS expects.
    fn compare_requests(&mut self, expected: u64, on_event: &mut dyn FnMut(ClientEvent)) {
        // The OMS expects more than was sent: another client has used these numbers.
        if expected > self.next_request {
            self.report_in_doubt(on_event);
        }
        let first = self.first_unconfirmed();
        let (from, to) = self.refused;
        if expected < first && !(from <= expected && first <= to) {
            on_event(ClientEvent::Forgotten { from: expected, to: first });
        }
        self.confirm(expected);
        self.drain_unconfirmed(on_event, |number, request| ClientEvent::NotTaken { number, request });
    }

    /// Counts a report. Returns false for a duplicate.
    fn accept_report(&mut self, frame: &Frame, on_event: &mut dyn FnMut(ClientEvent)) -> bool {
        let Since::Report { journal, number: expected, .. } = self.since else { return false };
        let number = frame.sequence;
        if number < expected {
            self.counts.duplicates += 1;
            on_event(ClientEvent::Duplicate { number });
            return false;
        }
        if number > expected {
            self.report_gap(expected, number, on_event);
        }
        self.counts.reports += 1;
        self.since = Since::Report { journal, number: number.saturating_add(1), last_sum: crc32c(frame.payload) };
        true
    }

    /// Reports a gap: the reports between the two numbers do not arrive.
    fn report_gap(&mut self, from: u64, to: u64, on_event: &mut dyn FnMut(ClientEvent)) {
        self.counts.gaps += 1;
        self.counts.missing = self.counts.missing.saturating_add(to - from);
        on_event(ClientEvent::Gap { from, to });
    }

    /// Confirms the answered request, which must be the oldest; one without an answer waits for a heartbeat.
    fn confirm_answered(&mut self, answered: ClientOrderId) {
        // A report that answers no request has no id.
        if answered.0 != 0 && self.unconfirmed.front().is_some_and(|first| first.client_order_id() == answered) {
            self.unconfirmed.pop_front();
        }
    }

    fn confirm(&mut self, expected: u64) {
        let open = self.next_request.saturating_sub(expected).min(self.unconfirmed.len() as u64);
        self.unconfirmed.drain(..self.unconfirmed.len() - open as usize);
    }

    fn drain_unconfirmed(
        &mut self,
        on_event: &mut dyn FnMut(ClientEvent),
        event: impl Fn(u64, Request) -> ClientEvent,
    ) {
        for (number, request) in (self.first_unconfirmed()..).zip(self.unconfirmed.drain(..)) {
            on_event(event(number, request));
        }
    }

    fn first_unconfirmed(&self) -> u64 {
        self.next_request - self.unconfirmed.len() as u64
    }
}
