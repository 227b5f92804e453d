//! A line whose venue is the test.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use tickpath_market::{ExecutionReport, Request};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

/// State of a test line.
#[derive(Default)]
pub struct TestLineState {
    /// Number of requests that the venue has, as the line reports it at the next connect. The line stays down while
    /// this is none.
    pub has: Option<Option<u64>>,
    pub resume: Option<ResumeState>,
    pub is_up: bool,
    is_cut: bool,
    pub is_full: bool,
    pub sent: Vec<(u64, Request)>,
    pub received: u64,
    next_report: u64,
    pub reports: Vec<ExecutionReport>,
}

/// A line under the test's control; clones share its state.
#[derive(Clone, Default)]
pub struct TestLine(Arc<Mutex<TestLineState>>);

impl TestLine {
    pub fn with_state<T>(&self, change: impl FnOnce(&mut TestLineState) -> T) -> T {
        change(&mut self.0.lock().expect("no thread panics with the lock"))
    }

    /// Returns the numbers of the sent requests and their kinds: N, C, R or S.
    pub fn sent(&self) -> Vec<(u64, char)> {
        let kind = |request: &Request| match request {
            Request::New(_) => 'N',
            Request::Cancel(_) => 'C',
            Request::Replace(_) => 'R',
            Request::Status(_) => 'S',
            Request::MassCancel(_) => 'M',
            Request::Conditional(_) | Request::ReplaceConditional(_) => panic!("an armed order has not left"),
            Request::Extended(_) | Request::ByTextId(_) => panic!("a text id does not leave"),
        };
        self.with_state(|state| state.sent.iter().map(|(number, request)| (*number, kind(request))).collect())
    }

    /// Cuts the connection at the next turn; the line then stays down.
    pub fn cut(&self) {
        self.with_state(|state| (state.is_cut, state.has) = (true, None));
    }

    /// Lets the line connect, to a venue that has the requests below this number, or does not know.
    pub fn accept_connect(&self, has: Option<u64>) {
        self.with_state(|state| state.has = Some(has));
    }
}

impl Line for TestLine {
    fn address(&self) -> String {
        "a line of a test".to_owned()
    }

    fn connect(&mut self, resume: &ResumeState) {
        self.with_state(|state| (state.resume, state.is_up, state.is_cut) = (Some(*resume), false, false));
    }

    fn send(&mut self, number: u64, _stamp: u64, request: &Request) -> Result<(), LineSendError> {
        self.with_state(|state| match (state.is_up, state.is_full) {
            (true, false) => {
                state.sent.push((number, *request));
                Ok(())
            }
            (true, true) => Err(LineSendError::Full),
            (false, _) => Err(LineSendError::Down),
        })
    }

    fn confirm(&mut self, _next_report: u64) {}

    fn poll(&mut self, sink: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        self.with_state(|state| {
            if std::mem::take(&mut state.is_cut) {
                (state.is_up, state.resume) = (false, None);
                return Err(ConnectionLost("cut".to_owned()));
            }
            if let (false, Some(next_request), Some(resume)) = (state.is_up, state.has, state.resume) {
                (state.is_up, state.next_report) = (true, resume.next_report);
                // A venue without a number of requests has none of reports either, as the real exchanges.
                sink(LineEvent::Up { next_request, next_report: next_request.map(|_| resume.next_report) });
                return Ok(1);
            }
            if state.is_up {
                sink(LineEvent::Acknowledged(state.received));
                for report in std::mem::take(&mut state.reports) {
                    sink(LineEvent::Report { number: state.next_report, stamp: 0, report: &report });
                    state.next_report += 1;
                }
            }
            Ok(0)
        })
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
