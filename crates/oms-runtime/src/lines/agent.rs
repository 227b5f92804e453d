//! A line's agent: sends its lane's requests to the venue, passes the venue's reports to the sequencer, and finds out
//! at each connect which requests the venue has.
//!
//! ```text
//!   lane   ··· proven ···│··· sent, no proof ···│··· not sent ···│ tail
//!                      cursor                 reader
//!
//!   down ──connect──> connecting ──Up──> give back what the venue lacks ──the core has it──> up ──Lost──> down
//!                                        ^                                                 │
//!                                        └── venue has all before it <── late <── too old ─┘
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::Calibration;
use tickpath_log::{Message, Next, Place, ReadError, Reader, Registration, Start};
use tickpath_market::{Kind, Request};
use tickpath_oms_core::{LOST_REPORTS, LOST_REQUESTS};
use tickpath_oms_journal::{LaneKind, Ledger, LineId};
use tickpath_venue::{Event as Said, Line, Resume, SendError};
use zerocopy::IntoBytes;

use super::flow::{Bell, Flow, Shared};
use super::validity::Validity;
use crate::OmsError;
use crate::lanes::{Event, LanesConfig};

/// Pause between two attempts to connect: the first, and the longest.
const FIRST_PAUSE_NS: u64 = 10_000_000;
const MOST_PAUSE_NS: u64 = 1_000_000_000;

/// Input sink for an agent's events: lane, time of receipt in ticks, event.
pub(crate) type Take<'a> = dyn FnMut(LaneKind, u64, Event<'_>) -> Result<(), OmsError> + 'a;

/// Clock of the inputs' stamps, in ticks.
pub(crate) type Now = Box<dyn Fn() -> u64 + Send>;

/// Connection state of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not connected; the next attempt is at this time, in ticks.
    Down(u64),
    Connecting,
    /// Connected, and the requests below this number are settled. The core has yet to acknowledge that.
    GivenBack(u64),
    Up,
    /// Up, but the request with this number is too old to leave. The lane from there on is given back once the venue is
    /// known to have all requests before it.
    Late(u64),
}

/// Agent of one line.
pub(crate) struct LineAgent {
    id: LineId,
    now: Now,
    calibration: Calibration,
    line: Box<dyn Line>,
    place: Place,
    requests: Reader,
    flow: Arc<Flow>,
    bell: Arc<Bell>,
    validity: Arc<Validity>,
    state: State,
    pause_ns: u64,
    /// Requests below this number are proven, were given back, or are in doubt. The cursor follows once the journal
    /// holds that.
    settled: u64,
    /// Highest number below which the venue has ever confirmed all requests.
    proof: u64,
    next_report: u64,
    /// Number behind the last request that was sent.
    sent: u64,
    /// Request that was read, but not yet taken by the line: number, stamp, request.
    pending: Option<(u64, u64, Request)>,
    /// Reason why the line is down, as last reported.
    told: Option<String>,
    /// Error that makes the lane unreadable.
    failed: Option<ReadError>,
}

impl LineAgent {
    /// Resumes the lane where the last agent stopped.
    pub fn open(
        id: LineId,
        line: Box<dyn Line>,
        lanes: &LanesConfig,
        ledger: &Ledger,
        (flow, shared): (Arc<Flow>, Shared),
        (now, calibration): (Now, Calibration),
    ) -> Result<Self, OmsError> {
        let Shared { bell, validity } = shared;
        let place = lanes.lane(LaneKind::Line(id))?.place;
        let mut requests = Reader::open(&place, Start::Cursor, Registration::Mandatory)?;
        requests.hold_cursor();
        // The journal holds the returned requests before the cursor moves.
        let (cursor, given_back) = (requests.sequence(), ledger.given_back(id));
        let settled = cursor.max(given_back);
        let proof = if cursor > given_back { cursor } else { 0 };
        let next_report = ledger.next_report(id);
        flow.prove(settled);
        flow.set_journaled(next_report);
        Ok(Self {
            id,
            now,
            calibration,
            line,
            place,
            requests,
            flow,
            bell,
            validity,
            state: State::Down(0),
            pause_ns: FIRST_PAUSE_NS,
            settled,
            proof,
            next_report,
            sent: 0,
            pending: None,
            told: None,
            failed: None,
        })
    }

    /// Returns the place of the lane.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the requests in the lane that are not settled: number, and the order that the request names.
    pub fn unproven(&mut self) -> Result<VecDeque<(u64, u64)>, OmsError> {
        let mut list = VecDeque::new();
        each(&self.place, self.settled, &mut |message| {
            if let Ok(request) = Request::read(message.kind, message.payload) {
                list.push_back((message.sequence, order_of(&request)));
            }
            Ok(())
        })?;
        Ok(list)
    }

    /// Sends the requests in the lane, and returns their number. The next turn returns an error of the lane.
    #[inline]
    pub fn carry(&mut self) -> usize {
        let mut done = 0;
        while self.state == State::Up && self.failed.is_none() {
            let (number, stamp, request) = match self.pending.take() {
                Some(pending) => pending,
                None => match self.requests.next() {
                    Ok(Next::Message(message)) => match Request::read(message.kind, message.payload) {
                        Ok(request) => (message.sequence, message.stamp, request),
                        // Only the core writes here.
                        Err(_) => continue,
                    },
                    Ok(Next::Gap(_)) => continue,
                    Ok(Next::Empty) => break,
                    Err(e) => {
                        self.failed = Some(e);
                        break;
                    }
                },
            };
            if self.validity.is_over(&request, stamp, &self.now) {
                self.state = State::Late(number);
                break;
            }
            match self.line.send(number, stamp, &request) {
                Ok(()) => {
                    self.sent = number + 1;
                    done += 1;
                }
                Err(SendError::Full) => {
                    self.pending = Some((number, stamp, request));
                    break;
                }
                // The venue reports at the next connect which requests it has.
                Err(SendError::Down) => break,
            }
        }
        done
    }

    /// Returns whether the send of this request has returned.
    #[inline]
    pub fn has_sent(&self, number: u64) -> bool {
        self.sent > number
    }

    /// Does one turn: connects, sends, receives. Returns the amount of work done.
    pub fn poll(&mut self, take: &mut Take<'_>) -> Result<usize, OmsError> {
        let lane = LaneKind::Line(self.id);
        if let Some(e) = self.failed.take() {
            return Err(e.into());
        }
        match self.state {
            State::Down(again) => return self.connect(again),
            State::GivenBack(upto) if self.flow.is_up_from(upto) => self.begin(upto)?,
            State::Late(from) if self.settled >= from => self.give_back(from, take)?,
            State::GivenBack(upto) if self.flow.is_again_from(upto) => self.give_back(upto, take)?,
            _ => {}
        }
        let sent = self.carry();
        let Self { line, now, flow, requests, next_report, settled, proof, .. } = self;
        // A line without any message so far has lost nothing.
        let is_used = *next_report > 0 || requests.sequence() > requests.owner().base;
        let (mut up, mut ended) = (None, Ok(()));
        let polled = line.poll(&mut |said| {
            let told = match said {
                Said::Up { next_request, next_report: next } => {
                    up = Some(next_request);
                    let lost = next.map_or(0, |next| next.saturating_sub(*next_report));
                    *next_report = next.unwrap_or(*next_report).max(*next_report);
                    match next {
                        Some(_) if lost == 0 => Ok(()),
                        None if !is_used => Ok(()),
                        _ => take(lane, now(), Event::Lost { what: LOST_REPORTS, messages: lost }),
                    }
                }
                Said::Received(next) => {
                    let next = next.min(requests.sequence());
                    if next > *settled {
                        (*settled, *proof) = (next, next);
                        flow.prove(next);
                        requests.confirm(next);
                    }
                    Ok(())
                }
                Said::Report { number, stamp, report } => {
                    let kind = Kind::ExecutionReport.code();
                    *next_report = number + 1;
                    let message = Message { sequence: number, stamp, kind, payload: report.as_bytes() };
                    take(lane, now(), Event::Message(&message))
                }
            };
            if ended.is_ok() {
                ended = told;
            }
        });
        ended?;
        self.line.confirm(self.flow.journaled());
        match (polled, up) {
            (Err(lost), _) => self.lose(lost.0, take).map(|()| 1),
            (Ok(done), None) => Ok(done + sent + self.carry()),
            (Ok(done), Some(next_request)) => self.find_out(next_request, take).map(|()| done + 1),
        }
    }

    /// Sleeps until one of these agents has work, the waker is called, or the time is over.
    pub fn sleep(agents: &[(usize, Box<Self>)], timeout_ns: u64) {
        let Some(bell) = agents.first().map(|(_, agent)| agent.bell.clone()) else { return };
        bell.sleeps();
        let sockets: Vec<BorrowedFd<'_>> = agents.iter().filter_map(|(_, agent)| agent.line.socket()).collect();
        let mut looks: Vec<PollFd<'_>> = sockets
            .into_iter()
            .chain([bell.as_fd()])
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        // Work from before the waker was armed does not wake the thread.
        let has_work = agents.iter().any(|(_, agent)| agent.has_work());
        if !has_work {
            let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
            // An interrupted sleep ends like any other.
            let _ = poll(&mut looks, Some(&timeout));
        }
        bell.wakes();
    }

    fn has_work(&self) -> bool {
        match self.state {
            State::Up => self.requests.sequence() < self.flow.published(),
            State::GivenBack(_) => !self.flow.is_down(),
            State::Late(from) => self.settled >= from,
            State::Connecting | State::Down(_) => false,
        }
    }

    fn connect(&mut self, again: u64) -> Result<usize, OmsError> {
        // Waits until the core knows that the line is down: until then the core may add requests that it takes for
        // sent.
        if !self.flow.is_down() || (self.now)() < again {
            return Ok(0);
        }
        let owner = self.requests.owner();
        while self.requests.next()? != Next::Empty {}
        self.pending = None;
        let next_report = self.flow.journaled();
        self.next_report = next_report;
        let (journal, incarnation, next_request) = (owner.journal, owner.incarnation, self.requests.sequence());
        let oms = LaneKind::Line(self.id).unmark(journal);
        self.line.connect(&Resume { journal, oms, incarnation, next_request, next_report });
        self.state = State::Connecting;
        Ok(1)
    }

    /// Compares the venue's next request number with the lane, and gives back the requests that the venue does not
    /// have.
    fn find_out(&mut self, next_request: Option<u64>, take: &mut Take<'_>) -> Result<(), OmsError> {
        let lane = LaneKind::Line(self.id);
        while self.requests.next()? != Next::Empty {}
        let tail = self.requests.sequence();
        let from = match next_request {
            Some(next) if next > tail => {
                let why = format!(
                    "{}: the venue has requests up to {next}, and the lane ends at {tail}: it takes this line for another \
                     one. Give each line of each OMS its own login there",
                    self.line.address()
                );
                return self.lose(why, take);
            }
            Some(next) if next >= self.proof => {
                self.proof = next;
                next
            }
            // The venue had more requests than it knows of now, or cannot tell.
            forgotten => {
                if tail > self.settled || forgotten.is_some() {
                    take(lane, (self.now)(), Event::Lost { what: LOST_REQUESTS, messages: 0 })?;
                }
                self.proof = 0;
                forgotten.unwrap_or(tail)
            }
        };
        // Requests that were given back before are not given back again, whatever became of that connection.
        self.give_back(from.max(self.settled), take)
    }

    /// Gives back the requests from this number on: they never left, or the venue does not have them.
    fn give_back(&mut self, from: u64, take: &mut Take<'_>) -> Result<(), OmsError> {
        let lane = LaneKind::Line(self.id);
        let mut upto = from;
        let now = &self.now;
        each(&self.place, from, &mut |message| {
            upto = message.sequence + 1;
            take(lane, now(), Event::Returned(message))
        })?;
        self.settled = upto;
        self.state = State::GivenBack(upto);
        take(lane, (self.now)(), Event::LineUp(upto))
    }

    /// Begins to send: the core has the requests that were given back.
    fn begin(&mut self, upto: u64) -> Result<(), OmsError> {
        while self.requests.sequence() < upto && self.requests.next()? != Next::Empty {}
        self.flow.prove(upto);
        self.requests.confirm(upto);
        (self.state, self.pause_ns, self.told) = (State::Up, FIRST_PAUSE_NS, None);
        Ok(())
    }

    fn lose(&mut self, why: String, take: &mut Take<'_>) -> Result<(), OmsError> {
        let now = (self.now)();
        let again = State::Down(now + self.calibration.ticks_of_ns(self.pause_ns));
        self.pause_ns = (self.pause_ns * 2).min(MOST_PAUSE_NS);
        // Reports a reason once for all attempts, but always reports the end of a connection whose start was reported.
        let was_up =
            matches!(std::mem::replace(&mut self.state, again), State::Up | State::GivenBack(_) | State::Late(_));
        if was_up || self.told.as_deref() != Some(&why) {
            take(LaneKind::Line(self.id), now, Event::LineDown(&why))?;
            self.told = Some(why);
        }
        Ok(())
    }
}

/// Passes each message in a lane from this number on to `take`.
pub(super) fn each(
    place: &Place,
    from: u64,
    take: &mut dyn FnMut(&Message<'_>) -> Result<(), OmsError>,
) -> Result<(), OmsError> {
    let mut look = Reader::open(place, Start::Oldest, Registration::Unregistered)?;
    loop {
        match look.next()? {
            Next::Message(message) if message.sequence >= from => take(&message)?,
            Next::Message(_) | Next::Gap(_) => {}
            Next::Empty => return Ok(()),
        }
    }
}

/// Returns the order that a request names; zero if it names none.
pub(super) fn order_of(request: &Request) -> u64 {
    match request {
        Request::New(new) => new.client_order_id.0,
        Request::Cancel(cancel) => cancel.original.0,
        Request::Replace(replace) => replace.original.0,
        Request::Status(status) => status.original.0,
        Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => 0,
    }
}
