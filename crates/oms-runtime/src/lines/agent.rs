//! A line's agent: sends its lane's requests to the venue, yields the venue's reports to the sequencer, and finds out
//! at each connect which requests the venue has.
//!
//! ```text
//!   lane   ··· settled ··│··· sent, no proof ···│··· not sent ···│ tail
//!                      cursor                 reader
//!
//!   Down ──connect──> Connecting ──venue's number──> AwaitingCore ──core has the returned──> Up ──lost──> Down
//!                                                    ^                                       │
//!                                                    └── rest settled ── Expired <─ too old ─┘
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::Calibration;
use tickpath_log::{LogMessage, LogPath, LogReadError, Next, Reader, ReaderStart, Registration};
use tickpath_market::{ExecutionReport, Kind, ReportDetail, Request};
use tickpath_oms_core::{LOST_REPORTS, LOST_REQUESTS};
use tickpath_oms_journal::{LaneKind, LaneLedger, LineId};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};
use zerocopy::IntoBytes;

use super::flow::{LineFlow, LineWaker, LinesContext};
use super::validity::RequestValidity;
use crate::OmsError;
use crate::lanes::{InputEvent, LanesConfig};

/// Pause between two attempts to connect: the first, and the longest.
const MIN_PAUSE_NS: u64 = 10_000_000;
const MAX_PAUSE_NS: u64 = 1_000_000_000;

/// Clock of the inputs' stamps, in ticks.
pub(crate) type TickClock = Box<dyn Fn() -> u64 + Send>;

/// Connection state of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// Not connected; the next attempt is at this time, in ticks.
    Down(u64),
    Connecting,
    /// Connected, and the requests below this number are settled. The core has yet to acknowledge that.
    AwaitingCore(u64),
    Up,
    /// Up, but the request with this number is too old to leave. The lane from there on is given back once the venue is
    /// known to have all requests before it.
    Expired(u64),
}

/// Event of a line, which waits in the line's agent for the sequencer.
#[derive(Debug)]
pub(crate) enum AgentEvent {
    /// A report, with its number on the line and the time at which the venue sent it.
    Report { number: u64, stamp: u64, report: ExecutionReport },
    /// Details of a report, numbered like a report.
    Detail { number: u64, stamp: u64, detail: ReportDetail },
    /// A request that the venue does not have, with its number and stamp in the lane.
    Returned { number: u64, stamp: u64, request: Request },
    /// The venue may have lost requests or reports, as in [`InputEvent::Lost`].
    Lost { what: u8, messages: u64 },
    /// The line is connected: each request below this number is settled.
    Up(u64),
    /// The line is not connected, for this reason.
    Down(String),
}

impl AgentEvent {
    /// Passes the event to a sink, in the form of a lane's event.
    #[inline]
    pub fn pass_to<T>(&self, sink: impl FnOnce(InputEvent<'_>) -> T) -> T {
        match self {
            Self::Report { number, stamp, report } => {
                let (kind, payload) = (Kind::ExecutionReport.code(), report.as_bytes());
                sink(InputEvent::Message(&LogMessage { sequence: *number, stamp: *stamp, kind, payload }))
            }
            Self::Detail { number, stamp, detail } => {
                let (kind, payload) = (Kind::ReportDetail.code(), detail.as_bytes());
                sink(InputEvent::Message(&LogMessage { sequence: *number, stamp: *stamp, kind, payload }))
            }
            Self::Returned { number, stamp, request } => {
                let (kind, payload) = (request.kind().code(), request.as_bytes());
                sink(InputEvent::Returned(&LogMessage { sequence: *number, stamp: *stamp, kind, payload }))
            }
            Self::Lost { what, messages } => sink(InputEvent::Lost { what: *what, messages: *messages }),
            Self::Up(upto) => sink(InputEvent::LineUp(*upto)),
            Self::Down(why) => sink(InputEvent::LineDown(why)),
        }
    }
}

/// Agent of one line.
pub(crate) struct LineAgent {
    pub id: LineId,
    now: TickClock,
    calibration: Calibration,
    line: Box<dyn Line>,
    /// Path of the lane.
    pub path: LogPath,
    requests: Reader,
    flow: Arc<LineFlow>,
    waker: Arc<LineWaker>,
    validity: Arc<RequestValidity>,
    state: LineState,
    pause_ns: u64,
    /// Since when requests leave by this connection, in ticks.
    up_since: Option<u64>,
    pub progress: LineProgress,
    /// Request that was read, but not yet taken by the line: number, stamp, request.
    pending: Option<(u64, u64, Request)>,
    /// Events that the sequencer has not applied yet.
    events: VecDeque<AgentEvent>,
    /// The number of reports that the line has lost at its connect, zero if unknown, until the core is notified.
    lost_reports: Option<u64>,
    /// Reason why the line is down, as last reported.
    reported_reason: Option<String>,
    /// Error that makes the lane unreadable.
    failed: Option<LogReadError>,
}

/// Progress of a line, in the numbers of its requests and reports.
pub(crate) struct LineProgress {
    /// Requests below this number are proven, were given back, or are in doubt. The cursor follows once the journal
    /// holds that.
    settled: u64,
    /// Highest number below which the venue has ever confirmed all requests.
    confirmed: u64,
    next_report: u64,
    /// Number behind the last request whose send has returned.
    pub sent: u64,
    /// The lane's end when this process opened it: an earlier process may have sent the requests below this number.
    opened: u64,
}

impl LineAgent {
    /// Resumes the lane where the last agent stopped.
    pub fn open(
        id: LineId,
        line: Box<dyn Line>,
        lanes: &LanesConfig,
        ledger: &LaneLedger,
        (flow, context): (Arc<LineFlow>, LinesContext),
        (now, calibration): (TickClock, Calibration),
    ) -> Result<Self, OmsError> {
        let LinesContext { waker, validity } = context;
        let path = lanes.lane(LaneKind::Line(id))?.path;
        let mut requests = Reader::open(&path, ReaderStart::Cursor, Registration::Mandatory)?;
        requests.freeze_cursor();
        // The journal holds the returned requests before the cursor moves.
        let (cursor, returned) = (requests.sequence(), ledger.first_unreturned(id));
        let settled = cursor.max(returned);
        let confirmed = if cursor > returned { cursor } else { 0 };
        let next_report = ledger.next_report(id);
        flow.set_settled(settled);
        flow.set_journaled(next_report);
        let opened = Reader::open(&path, ReaderStart::Now, Registration::Unregistered)?.sequence();
        Ok(Self {
            id,
            now,
            calibration,
            line,
            path,
            requests,
            flow,
            waker,
            validity,
            state: LineState::Down(0),
            pause_ns: MIN_PAUSE_NS,
            up_since: None,
            progress: LineProgress { settled, confirmed, next_report, sent: 0, opened },
            pending: None,
            events: VecDeque::new(),
            lost_reports: None,
            reported_reason: None,
            failed: None,
        })
    }

    /// Returns the requests in the lane that are not settled: number, and the order that the request names.
    pub fn unsettled_requests(&mut self) -> Result<VecDeque<(u64, u64)>, OmsError> {
        let mut list = VecDeque::new();
        for_each_message(&self.path, self.progress.settled, &mut |message| {
            if let Ok(request) = Request::read(message.kind, message.payload) {
                list.push_back((message.sequence, order_of(&request)));
            }
            Ok(())
        })?;
        Ok(list)
    }

    /// Sends the requests in the lane, and returns their number. The next turn returns an error of the lane.
    #[inline]
    pub fn send_pending(&mut self) -> usize {
        let mut done = 0;
        while self.state == LineState::Up && self.failed.is_none() {
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
                self.state = LineState::Expired(number);
                break;
            }
            match self.line.send(number, stamp, &request) {
                Ok(()) => {
                    self.progress.sent = number + 1;
                    done += 1;
                }
                Err(LineSendError::Full) => {
                    self.pending = Some((number, stamp, request));
                    break;
                }
                // The venue reports at the next connect which requests it has.
                Err(LineSendError::Down) => break,
            }
        }
        done
    }

    /// Begins a turn: connects, sends and receives, and keeps the events of the line. Returns the amount of work done.
    pub fn poll(&mut self) -> Result<usize, OmsError> {
        if let Some(e) = self.failed.take() {
            return Err(e.into());
        }
        match self.state {
            LineState::Down(again) => return self.connect(again),
            LineState::AwaitingCore(upto) if self.flow.is_up_from(upto) => self.begin_sending(upto)?,
            LineState::Expired(from) if self.progress.settled >= from => self.return_requests(from)?,
            LineState::AwaitingCore(upto) if self.flow.is_return_again_from(upto) => self.return_requests(upto)?,
            _ => {}
        }
        let sent = self.send_pending();
        match self.receive() {
            (Err(lost), _) => {
                self.disconnect(lost.0);
                Ok(1)
            }
            (Ok(done), None) => Ok(done + sent + self.send_pending()),
            (Ok(done), Some(next_request)) => self.compare_with_venue(next_request).map(|()| done + 1),
        }
    }

    /// Removes and returns the next event of this turn.
    #[inline]
    pub fn next_event(&mut self) -> Option<AgentEvent> {
        self.events.pop_front()
    }

    /// Ends a turn, whose events were passed on: confirms the reports that the journal holds, and sends the requests
    /// that the core has published meanwhile. Returns the number of sent requests.
    pub fn end_turn(&mut self) -> usize {
        if !matches!(self.state, LineState::Down(_)) {
            self.line.confirm(self.flow.journaled());
        }
        self.send_pending()
    }

    /// Receives from the line: keeps its events, and notes proofs of receipt. Also returns the venue's next request
    /// number if the line has just connected.
    fn receive(&mut self) -> (Result<usize, ConnectionLost>, Option<Option<u64>>) {
        let Self { line, flow, requests, progress, events, lost_reports, .. } = self;
        let LineProgress { next_report, settled, confirmed, .. } = progress;
        // A line without any message so far has lost nothing.
        let is_used = *next_report > 0 || requests.sequence() > requests.owner().base;
        let mut up = None;
        let polled = line.poll(&mut |event| match event {
            LineEvent::Up { next_request, next_report: next } => {
                up = Some(next_request);
                let messages = next.map_or(0, |next| next.saturating_sub(*next_report));
                *next_report = next.unwrap_or(*next_report).max(*next_report);
                if messages > 0 || (next.is_none() && is_used) {
                    *lost_reports = Some(messages);
                }
            }
            LineEvent::Acknowledged(next) => {
                let next = next.min(requests.sequence());
                if next > *settled {
                    (*settled, *confirmed) = (next, next);
                    flow.set_settled(next);
                    requests.confirm(next);
                }
            }
            LineEvent::Report { number, stamp, report } => {
                *next_report = number + 1;
                events.push_back(AgentEvent::Report { number, stamp, report: *report });
            }
            LineEvent::Detail { number, stamp, detail } => {
                *next_report = number + 1;
                events.push_back(AgentEvent::Detail { number, stamp, detail: *detail });
            }
        });
        (polled, up)
    }

    /// Sleeps until one of these agents has work, the waker is called, or the time is over.
    pub fn sleep(agents: &[(usize, Box<Self>)], timeout_ns: u64) {
        let Some(waker) = agents.first().map(|(_, agent)| agent.waker.clone()) else { return };
        waker.arm();
        let sockets: Vec<BorrowedFd<'_>> = agents.iter().filter_map(|(_, agent)| agent.line.socket()).collect();
        let mut watched: Vec<PollFd<'_>> = sockets
            .into_iter()
            .chain([waker.as_fd()])
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        // Work from before the waker was armed does not wake the thread.
        let has_work = agents.iter().any(|(_, agent)| agent.has_work());
        if !has_work {
            let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
            // An interrupted sleep ends like any other.
            let _ = poll(&mut watched, Some(&timeout));
        }
        waker.disarm();
    }

    /// Takes a request of the line's own through its code, on private memory.
    pub fn warm_up(&mut self) {
        self.line.warm_up();
    }

    fn has_work(&self) -> bool {
        match self.state {
            LineState::Up => self.requests.sequence() < self.flow.published(),
            LineState::AwaitingCore(_) => !self.flow.is_down(),
            LineState::Expired(from) => self.progress.settled >= from,
            LineState::Connecting | LineState::Down(_) => false,
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
        self.progress.next_report = next_report;
        let (journal, incarnation, next_request) = (owner.journal, owner.incarnation, self.requests.sequence());
        let oms = LaneKind::Line(self.id).journal_of_mark(journal);
        self.line.connect(&ResumeState { journal, oms, incarnation, next_request, next_report });
        self.state = LineState::Connecting;
        Ok(1)
    }

    /// Compares the venue's next request number with the lane, and gives back the requests that the venue does not
    /// have.
    fn compare_with_venue(&mut self, next_request: Option<u64>) -> Result<(), OmsError> {
        while self.requests.next()? != Next::Empty {}
        let tail = self.requests.sequence();
        if next_request.is_some() {
            self.push_lost_reports();
        }
        let from = match next_request {
            Some(next) if next > tail => {
                let why = format!(
                    "{}: the venue has requests up to {next}, and the lane ends at {tail}: the venue takes this line \
                     for another one. Give each line of each OMS its own login at the venue",
                    self.line.address()
                );
                self.disconnect(why);
                return Ok(());
            }
            Some(next) if next >= self.progress.confirmed => {
                self.progress.confirmed = next;
                next
            }
            // The venue knows fewer requests than before.
            Some(next) => {
                self.events.push_back(AgentEvent::Lost { what: LOST_REQUESTS, messages: 0 });
                self.progress.confirmed = 0;
                next
            }
            // Requests may have left up to the last send, or to the lane's end when this process opened it.
            None => return self.return_unsent(self.progress.sent.max(self.progress.opened)),
        };
        // Requests that were given back before are not given back again, whatever became of that connection.
        self.return_requests(from.max(self.progress.settled))
    }

    /// Gives back the requests from this number on, which never left; those before it may be lost. A loss comes behind
    /// them: it puts in doubt all orders that do not wait in the core.
    fn return_unsent(&mut self, from: u64) -> Result<(), OmsError> {
        let LineProgress { settled, sent, opened, .. } = self.progress;
        self.progress.confirmed = 0;
        self.push_returned(from.max(settled))?;
        self.push_lost_reports();
        // An earlier process may have ended between the requests that it gave back and the loss.
        let is_first_connect = sent == 0 && opened > self.requests.owner().base;
        if from > settled || is_first_connect {
            self.events.push_back(AgentEvent::Lost { what: LOST_REQUESTS, messages: 0 });
        }
        self.await_core();
        Ok(())
    }

    fn push_lost_reports(&mut self) {
        if let Some(messages) = self.lost_reports.take() {
            self.events.push_back(AgentEvent::Lost { what: LOST_REPORTS, messages });
        }
    }

    /// Gives back the requests from this number on: they never left, or the venue does not have them.
    fn return_requests(&mut self, from: u64) -> Result<(), OmsError> {
        self.push_returned(from)?;
        self.await_core();
        Ok(())
    }

    /// Settles all requests in the lane, and passes those from this number on to the core.
    fn push_returned(&mut self, from: u64) -> Result<(), OmsError> {
        let Self { path, events, .. } = self;
        let mut upto = from;
        for_each_message(path, from, &mut |message| {
            upto = message.sequence + 1;
            // Only the core writes here.
            if let Ok(request) = Request::read(message.kind, message.payload) {
                events.push_back(AgentEvent::Returned { number: message.sequence, stamp: message.stamp, request });
            }
            Ok(())
        })?;
        self.progress.settled = upto;
        Ok(())
    }

    /// Waits for the core to take what was given back.
    fn await_core(&mut self) {
        let upto = self.progress.settled;
        self.state = LineState::AwaitingCore(upto);
        self.events.push_back(AgentEvent::Up(upto));
    }

    /// Begins to send: the core has the requests that were given back.
    fn begin_sending(&mut self, upto: u64) -> Result<(), OmsError> {
        while self.requests.sequence() < upto && self.requests.next()? != Next::Empty {}
        self.flow.set_settled(upto);
        self.requests.confirm(upto);
        (self.state, self.up_since, self.reported_reason) = (LineState::Up, Some((self.now)()), None);
        Ok(())
    }

    fn disconnect(&mut self, why: String) {
        let now = (self.now)();
        // A venue that accepts connections and ends each at once is not asked at the pace of a first attempt.
        let longest = self.calibration.ticks_of_ns(MAX_PAUSE_NS);
        if self.up_since.take().is_some_and(|since| now.saturating_sub(since) >= longest) {
            self.pause_ns = MIN_PAUSE_NS;
        }
        let again = LineState::Down(now + self.calibration.ticks_of_ns(self.pause_ns));
        self.pause_ns = (self.pause_ns * 2).min(MAX_PAUSE_NS);
        // Reports a reason once for all attempts, but always reports the end of a connection whose start was reported.
        let was_up = matches!(
            std::mem::replace(&mut self.state, again),
            LineState::Up | LineState::AwaitingCore(_) | LineState::Expired(_)
        );
        if was_up || self.reported_reason.as_deref() != Some(&why) {
            self.events.push_back(AgentEvent::Down(why.clone()));
            self.reported_reason = Some(why);
        }
    }
}

/// Passes each message in a lane from this number on to `sink`.
pub(super) fn for_each_message(
    path: &LogPath,
    from: u64,
    sink: &mut dyn FnMut(&LogMessage<'_>) -> Result<(), OmsError>,
) -> Result<(), OmsError> {
    let mut reader = Reader::open(path, ReaderStart::Oldest, Registration::Unregistered)?;
    loop {
        match reader.next()? {
            Next::Message(message) if message.sequence >= from => sink(&message)?,
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
        Request::Extended(_) | Request::ByTextId(_) => 0,
    }
}
