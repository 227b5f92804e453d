//! Events that wait for their line to be up and polled. Reports are numbered when they are passed on.

use std::collections::VecDeque;

use tickpath_market::{ExecutionReport, ReportDetail};
use tickpath_venue::LineEvent;

/// Events in their order.
#[derive(Debug, Default)]
pub(crate) struct ReportOutbox {
    events: VecDeque<OutboxEvent>,
    next_number: u64,
    is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutboxEvent {
    Up,
    Acknowledged(u64),
    Report(ExecutionReport),
    Detail(ReportDetail),
}

impl ReportOutbox {
    /// Keeps events back until the next [`Self::open`]. Reports of a connect that failed stay: the line counts them as
    /// reported.
    pub fn close(&mut self) {
        self.is_open = false;
        self.events.retain(|event| matches!(event, OutboxEvent::Report(_) | OutboxEvent::Detail(_)));
    }

    /// Announces that the line is up, before the events that wait. Reports are numbered from here on.
    pub fn open(&mut self, next_number: u64) {
        (self.is_open, self.next_number) = (true, next_number);
        self.events.push_front(OutboxEvent::Up);
    }

    /// Adds an acknowledgement of all requests below a number.
    pub fn acknowledge(&mut self, next_request: u64) {
        self.events.push_back(OutboxEvent::Acknowledged(next_request));
    }

    /// Adds a report.
    pub fn report(&mut self, report: ExecutionReport) {
        self.events.push_back(OutboxEvent::Report(report));
    }

    /// Adds the detail of the report before it.
    pub fn detail(&mut self, detail: ReportDetail) {
        self.events.push_back(OutboxEvent::Detail(detail));
    }

    /// Passes on all events, if the line is up. OKX's clock is not this host's, so that no event has a stamp.
    #[inline]
    pub fn pass_on(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> usize {
        let mut done = 0;
        while self.is_open
            && let Some(event) = self.events.pop_front()
        {
            done += 1;
            match event {
                OutboxEvent::Up => take(LineEvent::Up { next_request: None, next_report: None }),
                OutboxEvent::Acknowledged(next) => take(LineEvent::Acknowledged(next)),
                OutboxEvent::Report(report) => {
                    take(LineEvent::Report { number: self.number(), stamp: 0, report: &report });
                }
                OutboxEvent::Detail(detail) => {
                    take(LineEvent::Detail { number: self.number(), stamp: 0, detail: &detail });
                }
            }
        }
        done
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }
}
