//! Sessions without lanes: they use a session front end, as over a socket, and read the history.
//!
//! ```text
//!   Remote ── wire ──> Front, in the OMS's process ──> the sequencer      requests in flight are lost with the process
//!   Remote <────────── the history, from the number of the next report
//! ```
//! A remote resumes as a client of ours does: a start reports the next request that it expects, and receives all from
//! there on; the remote requests the reports that it lacks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::{Kind as MessageKind, Request};
use tickpath_oms_core::Output;
use tickpath_oms_runtime::front_end::{FrontEndState, InputSink, SessionFrontEnd};
use tickpath_oms_runtime::history::{HistoryIndex, SessionReader};
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError, Sequencer};
use zerocopy::IntoBytes;

use crate::clock::SimClock;
use crate::rule::{BrokenRule, RuleCheck, broken};
use crate::step_context::StepContext;

/// Max frames that a remote reads in a turn.
const TURN: usize = 64;

/// Requests in flight to the OMS, by session.
#[derive(Clone, Default)]
pub struct RemoteWires(Arc<Mutex<QueuedRequests>>);

/// Requests with their number and the time of sending.
type QueuedRequests = BTreeMap<u16, VecDeque<(u64, u64, Request)>>;

/// The OMS's end of the wires.
pub struct SimFrontEnd {
    wires: RemoteWires,
    clock: SimClock,
    next_request: Vec<u64>,
}

/// The client's end of a wire.
pub struct RemoteSession {
    session: u16,
    wires: RemoteWires,
    /// Requests sent since the last power loss, from request `first` on.
    sent: Vec<(u64, Request)>,
    first: u64,
    next_report: u64,
    /// Reports received in this life of the host, by number.
    received: BTreeMap<u64, (u8, Vec<u8>)>,
    /// Number of the host's boot: reports of one boot may be gone in the next.
    boot: u64,
    marks: Option<HistoryIndex>,
    reading: Option<SessionReader>,
}

impl RemoteWires {
    fn lock(&self) -> MutexGuard<'_, QueuedRequests> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl SimFrontEnd {
    pub fn new(wires: RemoteWires, clock: SimClock, opening: FrontEndState) -> Self {
        Self { wires, clock, next_request: opening.next_request }
    }
}

impl SessionFrontEnd for SimFrontEnd {
    fn poll(&mut self, take: &mut impl InputSink) -> Result<usize, OmsError> {
        let mut done = 0;
        let sessions: Vec<u16> = self.wires.lock().keys().copied().collect();
        for session in sessions {
            // No lock is held in front of the sequencer: the OMS may be killed there.
            while let Some((number, stamp, request)) = self.wires.lock().get_mut(&session).and_then(VecDeque::pop_front)
            {
                let place = usize::from(session);
                self.next_request.resize(self.next_request.len().max(place + 1), 0);
                if number != self.next_request[place] {
                    continue;
                }
                self.next_request[place] += 1;
                let (kind, payload) = (request.kind().code(), request.as_bytes());
                let message = LogMessage { sequence: number, stamp, kind, payload };
                take(LaneKind::Requests(session), self.clock.ticks(), InputEvent::Message(&message))?;
                done += 1;
            }
        }
        Ok(done)
    }

    fn sleep(&mut self, _: u64) {}
}

impl RemoteSession {
    pub fn new(session: u16, wires: RemoteWires) -> Self {
        let (sent, marks, reading) = (Vec::new(), None, None);
        Self { session, wires, sent, first: 0, next_report: 0, received: BTreeMap::new(), boot: 0, marks, reading }
    }

    /// Sends a request; false if the OMS is down.
    pub fn send(&mut self, request: &Request, around: &mut StepContext<'_>) -> bool {
        if self.marks.is_none() {
            return false;
        }
        let (number, stamp) = (self.first + self.sent.len() as u64, around.clock.ticks());
        self.sent.push((stamp, *request));
        self.wires.lock().entry(self.session).or_default().push_back((number, stamp, *request));
        true
    }

    /// Reconnects to a started OMS: resends the requests that it has not taken, and reads reports again.
    pub fn log_in<C: Clock>(&mut self, oms: &Sequencer<C>, next_request: u64) -> RuleCheck {
        let (session, next) = (self.session, self.first + self.sent.len() as u64);
        if self.marks.is_none() && self.sent.is_empty() {
            self.first = next_request;
        } else if next_request < self.first || next_request > next {
            let what =
                format!("session {session} has sent {} to {next}, and the OMS expects {next_request}", self.first);
            return broken("each request is accepted once", what);
        }
        (self.marks, self.reading) = (oms.history_index(), None);
        let rest = self.sent.iter().zip(self.first..).filter(|&(_, number)| number >= next_request);
        let rest = rest.map(|(&(stamp, request), number)| (number, stamp, request)).collect();
        self.wires.lock().insert(session, rest);
        Ok(())
    }

    /// Cuts the connection, because the OMS is gone.
    pub fn cut(&mut self) {
        (self.marks, self.reading) = (None, None);
        self.wires.lock().remove(&self.session);
    }

    /// Begins a new boot of the host: earlier requests are not sent again, and reports are requested from the start.
    pub fn power_lost(&mut self) {
        self.cut();
        self.sent.clear();
        self.received.clear();
        self.boot += 1;
        self.next_report = 0;
    }

    /// Forgets all reports and requests them again; false if the remote is disconnected.
    pub fn forget(&mut self) -> bool {
        (self.next_report, self.reading) = (0, None);
        self.marks.is_some()
    }

    /// Reads all available reports, each once and in order.
    pub fn receive(&mut self, around: &mut StepContext<'_>) -> Result<usize, BrokenRule> {
        let Some(marks) = self.marks.clone() else { return Ok(0) };
        let mut received = 0;
        loop {
            if self.reading.is_none() {
                let oldest = marks.oldest(self.session);
                around.tally.add("reports of days that are gone", u64::from(self.next_report < oldest));
                self.next_report = self.next_report.max(oldest);
            }
            let reading = match self.reading.take() {
                Some(reading) => Ok(reading),
                None => marks.read(self.session, self.next_report),
            };
            let mut reading = reading.or_else(|e| broken("the history can be read", e.to_string()))?;
            let mut frames = Vec::new();
            let more = reading.read_frames(TURN, |frame| {
                frames.push((frame.number, frame.kind, frame.message.to_vec()));
                true
            });
            let more = more.or_else(|e| broken("the history can be read", e.to_string()))?;
            for (number, kind, message) in frames {
                if number != self.next_report {
                    let what = format!("session {} hears {number}, and {} is due", self.session, self.next_report);
                    return broken("each report is delivered once, in order", what);
                }
                self.next_report += 1;
                received += 1;
                around.oracle.check_frame(self.session, (self.boot, number), kind, &message, around.tally)?;
                self.received.insert(number, (kind, message));
            }
            match more {
                true => self.reading = Some(reading),
                false if reading.is_over() => self.next_report = self.next_report.max(marks.first(self.session)),
                false => return Ok(received),
            }
        }
    }

    /// Checks that the journal's report with this number equals the one received.
    pub fn check_received(&self, number: u64, output: &Output) -> RuleCheck {
        let expected = match output {
            Output::Report { report, .. } => (MessageKind::ExecutionReport.code(), report.as_bytes()),
            Output::Denied { denied, .. } => (MessageKind::OrderDenied.code(), denied.as_bytes()),
            Output::Extension { extension, .. } => (MessageKind::OrderExtension.code(), extension.as_bytes()),
            Output::Venue { .. } => return Ok(()),
        };
        match self.received.get(&number) {
            Some((kind, message)) if (*kind, message.as_slice()) != expected => {
                broken("reports agree with the journal", format!("report {number} of session {}", self.session))
            }
            _ => Ok(()),
        }
    }

    /// Checks, at rest, that all reports to the session were received.
    pub fn check<C: Clock>(&self, oms: &Sequencer<C>) -> RuleCheck {
        let expected = oms.next_reports().get(usize::from(self.session)).copied().unwrap_or(0);
        match self.next_report == expected {
            true => Ok(()),
            false => broken(
                "no report is missing",
                format!("{} of {expected} of session {}", self.next_report, self.session),
            ),
        }
    }
}
