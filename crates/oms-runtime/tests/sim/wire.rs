//! The wire of a line: the OMS's end, which implements the contract of `tickpath_venue`, and the messages in flight.
//!
//! ```text
//!   agent ── SimLine::send ──> to_venue ──take──> │ venue │
//!   agent <── SimLine::poll ── there <──deliver── to_oms  │
//! ```
//!
//! A cut delivers the first part of the messages in flight, in each direction. Requests that an OMS sends before it
//! detects the cut never arrive.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_clock::Clock;
use tickpath_market::{AccountId, ExecutionReport, Request};
use tickpath_oms_core::AccountLimits;
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

use crate::clock::SimClock;
use crate::rule::BrokenRule;

const SECOND: u64 = 1_000_000_000;
/// Time for clock readings of a process between its check of an age and the sending.
const CLOCK_STEP_NS: u64 = 1_000;

/// The wire of one line; clones share it.
#[derive(Clone)]
pub struct Wire(Arc<Mutex<WireState>>);

/// Messages on a wire, and the state of both ends.
pub struct WireState {
    pub state: ConnectionPhase,
    /// The venue's end refuses connections.
    pub is_refused: bool,
    is_full: bool,
    pub to_venue: VecDeque<(u64, Request)>,
    pub to_oms: VecDeque<VenueMessage>,
    /// Messages that have arrived at the OMS's end.
    pub there: VecDeque<VenueMessage>,
    /// All reports below this number are journaled, as the OMS has confirmed.
    pub confirmed: u64,
    /// Reason of the end of the connection, until the OMS detects it.
    lost: Option<&'static str>,
    flow: LineLimitCheck,
    clock: SimClock,
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPhase {
    Ended,
    /// The OMS has sent its identity and its next numbers.
    Asking(ResumeState),
    Open,
}

/// A message from a venue.
#[derive(Debug, Clone, Copy)]
pub enum VenueMessage {
    Up(Option<u64>, Option<u64>),
    Received(u64),
    Report(u64, ExecutionReport),
}

/// Limits of a line, and the requests sent on it.
struct LineLimitCheck {
    rate: usize,
    window: usize,
    /// For each of the last requests, the interval in which it was handed to the line.
    given: VecDeque<(u64, u64)>,
    unproven: VecDeque<u64>,
    /// Max age of a new order or a replace by account, in nanoseconds, if known.
    ages: BTreeMap<AccountId, u64>,
    polled: u64,
    broken: Option<BrokenRule>,
}

impl Wire {
    /// Makes the wire of a line with this rate limit per second (zero for none) and this window of unconfirmed
    /// requests.
    pub fn new(rate: u32, window: u32, clock: SimClock) -> Self {
        let (given, unproven) = (VecDeque::new(), VecDeque::new());
        let (ages, rate, window) = (BTreeMap::new(), rate as usize, window as usize);
        let flow = LineLimitCheck { rate, window, given, unproven, ages, polled: 0, broken: None };
        Self(Arc::new(Mutex::new(WireState {
            state: ConnectionPhase::Ended,
            is_refused: false,
            is_full: false,
            to_venue: VecDeque::new(),
            to_oms: VecDeque::new(),
            there: VecDeque::new(),
            confirmed: 0,
            lost: None,
            flow,
            clock,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, WireState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Sets the clock of a new boot of the host.
    pub fn set_clock(&self, clock: SimClock) {
        self.lock().clock = clock;
    }

    /// Sets the limits in force from now on.
    pub fn set_accounts(&self, accounts: &[AccountLimits]) {
        let limited = accounts.iter().filter(|limits| limits.max_request_age_ns > 0);
        self.lock().flow.ages = limited.map(|limits| (limits.account, limits.max_request_age_ns)).collect();
    }

    /// Returns the OMS's end, for a process that has just begun.
    pub fn end(&self) -> SimLine {
        let mut on = self.lock();
        (on.flow.polled, on.lost) = (on.clock.ticks(), None);
        (on.flow.given, on.flow.unproven) = Default::default();
        drop(on);
        SimLine(self.clone())
    }
}

impl WireState {
    /// Ends the connection.
    pub fn lose(&mut self, why: &'static str) {
        (self.state, self.lost) = (ConnectionPhase::Ended, Some(why));
    }

    /// Sets whether the socket is full. A line with a rate limit is never full, because the limit counts requests as
    /// handed to the line, and a full socket delays them.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full && self.flow.rate == 0;
    }

    /// Returns the rule that a sent request broke.
    pub fn take_broken(&mut self) -> Option<BrokenRule> {
        self.flow.broken.take()
    }
}

impl LineLimitCheck {
    fn send(&mut self, number: u64, now: u64, request: &Request) {
        self.unproven.push_back(number);
        // A request that follows its order needs no room in the window.
        if matches!(request, Request::New(_)) && self.unproven.len() > self.window {
            let what = format!("{} requests have no proof: {:?}", self.unproven.len(), self.unproven);
            self.broken = Some(BrokenRule { rule: "a line's window holds", what });
        }
        if self.rate == 0 {
            return;
        }
        // The request was handed to the line since the last turn.
        self.given.push_back((self.polled, now));
        if self.given.len() > self.rate {
            let first = self.given.pop_front().map_or(0, |(from, _)| from);
            if now < first + SECOND {
                let what = format!("{} requests between {first} and {now}", self.rate + 1);
                self.broken = Some(BrokenRule { rule: "a line's rate holds", what });
            }
        }
    }

    fn check_age(&mut self, request: &Request, age: u64) {
        let limit = self.ages.get(&request.account());
        let is_over = limit.is_some_and(|limit| age > limit + CLOCK_STEP_NS);
        if is_over && matches!(request, Request::New(_) | Request::Replace(_)) {
            self.broken =
                Some(BrokenRule { rule: "what is too old does not leave", what: format!("{age} ns: {request:?}") });
        }
    }

    fn receive(&mut self, message: &VenueMessage) {
        match message {
            VenueMessage::Up(..) => self.unproven.clear(),
            VenueMessage::Received(next) => while self.unproven.pop_front_if(|number| *number < *next).is_some() {},
            VenueMessage::Report(..) => {}
        }
    }
}

/// The OMS's end of a wire.
pub struct SimLine(Wire);

impl Line for SimLine {
    fn address(&self) -> String {
        "a simulated wire".to_owned()
    }

    fn connect(&mut self, resume: &ResumeState) {
        let mut on = self.0.lock();
        on.confirmed = resume.next_report;
        match on.is_refused {
            true => on.lose("nobody listens"),
            false => on.state = ConnectionPhase::Asking(*resume),
        }
    }

    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), LineSendError> {
        let mut on = self.0.lock();
        if on.is_full {
            return Err(LineSendError::Full);
        }
        let now = on.clock.ticks();
        on.flow.send(number, now, request);
        on.flow.check_age(request, now.saturating_sub(stamp));
        if on.state == ConnectionPhase::Open {
            on.to_venue.push_back((number, *request));
        }
        Ok(())
    }

    fn confirm(&mut self, next_report: u64) {
        let mut on = self.0.lock();
        on.confirmed = on.confirmed.max(next_report);
    }

    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        let mut on = self.0.lock();
        on.flow.polled = on.clock.ticks();
        let (there, lost) = (std::mem::take(&mut on.there), on.lost.take());
        there.iter().for_each(|message| on.flow.receive(message));
        // No lock is held in front of the sequencer: the OMS may be killed there.
        drop(on);
        for message in &there {
            take(match message {
                VenueMessage::Up(next_request, next_report) => {
                    LineEvent::Up { next_request: *next_request, next_report: *next_report }
                }
                VenueMessage::Received(next) => LineEvent::Acknowledged(*next),
                VenueMessage::Report(number, report) => LineEvent::Report { number: *number, stamp: 0, report },
            });
        }
        lost.map_or(Ok(there.len()), |why| Err(ConnectionLost(why.to_owned())))
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
