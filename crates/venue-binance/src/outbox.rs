//! Events that wait for the OMS, and the numbers of the reports.

use std::collections::VecDeque;

use tickpath_market::{ExecutionReport, ReportDetail};
use tickpath_venue::LineEvent;

/// Events of a line, which are numbered when they are passed on.
#[derive(Default)]
pub(crate) struct Outbox {
    events: VecDeque<OutboxEvent>,
    next_report: u64,
}

enum OutboxEvent {
    Up,
    Acknowledged(u64),
    Report(ExecutionReport),
    Detail(ReportDetail),
    /// A report with its detail that is made once, and so outlasts a connection.
    Lasting(Box<(ExecutionReport, ReportDetail)>),
}

impl Outbox {
    /// Drops all events but fills and lasting reports, and numbers reports from here on. Both are counted as reported
    /// when they are added, so they stay for the next connection if this one ends before.
    pub(crate) fn restart(&mut self, next_report: u64) {
        self.events.retain(|event| match event {
            OutboxEvent::Report(report) => report.exec_id.0 != 0,
            OutboxEvent::Detail(detail) => detail.exec_id.0 != 0,
            OutboxEvent::Lasting(_) => true,
            OutboxEvent::Up | OutboxEvent::Acknowledged(_) => false,
        });
        self.next_report = next_report;
    }

    /// Drops all events: they belong to another OMS.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
    }

    /// Adds the end of a connect before all events that wait.
    pub(crate) fn go_up(&mut self) {
        self.events.push_front(OutboxEvent::Up);
    }

    /// Adds the proof that the exchange has all requests below this number.
    #[inline]
    pub(crate) fn acknowledge(&mut self, next_request: u64) {
        self.events.push_back(OutboxEvent::Acknowledged(next_request));
    }

    /// Adds a report.
    #[inline]
    pub(crate) fn report(&mut self, report: ExecutionReport) {
        self.events.push_back(OutboxEvent::Report(report));
    }

    /// Adds the detail of the report before it.
    #[inline]
    pub(crate) fn detail(&mut self, detail: ReportDetail) {
        self.events.push_back(OutboxEvent::Detail(detail));
    }

    /// Adds a report with its detail that no later event repeats.
    #[cold]
    pub(crate) fn lasting(&mut self, report: ExecutionReport, detail: ReportDetail) {
        self.events.push_back(OutboxEvent::Lasting(Box::new((report, detail))));
    }

    /// Passes all events on, and returns their number.
    #[inline]
    pub(crate) fn drain(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> usize {
        let mut done = 0;
        while let Some(event) = self.events.pop_front() {
            match event {
                // The exchange numbers nothing: it has no state of requests, and reports may be lost.
                OutboxEvent::Up => take(LineEvent::Up { next_request: None, next_report: None }),
                OutboxEvent::Acknowledged(next_request) => take(LineEvent::Acknowledged(next_request)),
                OutboxEvent::Report(report) => {
                    take(LineEvent::Report { number: self.next_number(), stamp: 0, report: &report });
                }
                OutboxEvent::Detail(detail) => {
                    take(LineEvent::Detail { number: self.next_number(), stamp: 0, detail: &detail });
                }
                OutboxEvent::Lasting(both) => {
                    let (report, detail) = &*both;
                    take(LineEvent::Report { number: self.next_number(), stamp: 0, report });
                    take(LineEvent::Detail { number: self.next_number(), stamp: 0, detail });
                }
            }
            done += 1;
        }
        done
    }

    fn next_number(&mut self) -> u64 {
        let number = self.next_report;
        self.next_report += 1;
        number
    }
}
