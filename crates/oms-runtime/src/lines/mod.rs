//! Lines: venues that are reached by sockets.
//!
//! ```text
//!                                  ┌─ rate, window ─ lane of line 0, a log ─ agent ─ Line::send ─┐
//!   core ─> requests of a venue ───┼─ rate, window ─ lane of line 1 ──────── agent ──────────────┼──> the venue
//!                                  └─ rate, window ─ lane of line 2 ──────── agent ──────────────┘
//!   journal <─ sequencer <─ AgentEvent: reports, numbered by line ───────────── agents <─ Line::poll ──┘
//! ```
//!
//! A line is one socket connection to a venue; a lane is a log in shared memory with one reader. A line has a lane like
//! any venue, and the lane's reader is an agent of the OMS itself. A request is in the lane before it is sent,
//! its number on the line is its place in the lane, and the lane's cursor is the proof of receipt. After any crash the
//! next agent can therefore ask the venue for the number below which it has all requests, unless the venue does not
//! know.
//!
//! * A request that the venue does **not** have returns to the core, is checked again like all requests that waited,
//!   and leaves by any line that is ready. Its number is left out, and it is never resent as it lay: it may be too old.
//! * A request is in doubt if its venue does not know whether it has it.
//! * Reports have no lane: the journal knows their numbers, and the venue is asked for the reports from there on.
//!
//! A request goes to the first line, in turn, that is up, has room in its window of unproven requests, and may send one
//! more request in this second; without such a line it waits in the core. A request that names an order whose own
//! request is unproven follows that request on its line, up or not: a venue must not receive a cancel before its order.
//! Such a request keeps the line's rate limit, but needs no room in the window.

mod agent;
mod flow;
mod rate_limit;
mod validity;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tickpath_clock::Clock;
use tickpath_log::{LogPath, LogPublishError, Reader, ReaderStart, Registration, Writer};
use tickpath_market::Request;
use tickpath_oms_journal::LaneLedger;

pub use crate::line_config::{LineFactory, OmsLineConfig};
pub(crate) use agent::LineAgent;
use agent::{TickClock, for_each_message, order_of};
pub(crate) use flow::{LineFlow, LineWaker, LinesContext};
use rate_limit::LineRateLimit;
pub use tickpath_oms_journal::{LineId, MAX_LINES};

use crate::OmsError;
use crate::lanes::LanesConfig;

/// Max orders that are kept from a line at once.
const MAX_AVOIDED: usize = 256;

/// Progress of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputProgress {
    /// The output is in its lane, or the send to its venue has returned.
    Sent,
    /// The output waits for a send: by the thread of its line, or behind a full socket.
    HandedOver,
}

/// The lines of one venue, from the core's side.
pub(crate) struct VenueLines {
    now: TickClock,
    list: Vec<OutboundLine>,
    /// Index of the line that is tried first.
    next_line: usize,
    shared: LinesContext,
    /// Orders that should avoid a line, because it has refused them.
    avoided: Vec<(u64, u8)>,
}

/// A line, from the core's side.
struct OutboundLine {
    id: LineId,
    lane: Writer,
    path: LogPath,
    flow: Arc<LineFlow>,
    rate_limit: LineRateLimit,
    window: u64,
    /// Agent of the line, where the core's thread runs it.
    agent: Option<Box<LineAgent>>,
    /// Requests in flight, which are not settled: number, and the order that the request names.
    in_flight: VecDeque<(u64, u64)>,
    /// Time since when the line is down, in ticks; `None` while it is up, and once its requests were put in doubt.
    down_since: Option<u64>,
    lost_after: u64,
    /// Order and fill of the last report, if a client was sent the report and not yet its detail.
    awaited_detail: Option<(u64, u64)>,
}

/// Requests of a line that is down for too long.
pub(crate) enum InDoubtOrders {
    /// Orders that the lane names, of which some may be over, and an epoch: if earlier requests used the line, all
    /// orders of epochs before it count as well.
    Named(BTreeSet<u64>, u64),
    /// More orders than are known.
    All,
}

impl OutboundLine {
    /// Returns whether the window and the rate limit allow one more request.
    #[inline]
    fn has_room(&self, now: impl FnOnce() -> u64) -> bool {
        (self.in_flight.len() as u64) < self.window && self.rate_limit.has_room(now)
    }
}

impl VenueLines {
    /// Returns the lines of a venue, which take their time from this clock.
    pub fn new<C: Clock>(clock: &C, shared: LinesContext) -> Self {
        Self { now: now(clock), list: Vec::new(), next_line: 0, shared, avoided: Vec::new() }
    }

    /// Adds a line on its lane. Requests in the lane without proof of receipt are compared with the venue once the line
    /// is up.
    pub fn add<C: Clock>(
        &mut self,
        config: &OmsLineConfig,
        lanes: &LanesConfig,
        lane: Writer,
        ledger: &LaneLedger,
        clock: &C,
    ) -> Result<(), OmsError> {
        let flow = Arc::new(LineFlow::default());
        let line = (config.open.0)().map_err(|reason| OmsError::Line { line: config.id, reason })?;
        let calibration = clock.calibration();
        let (shared, time) = ((flow.clone(), self.shared.clone()), (now(clock), *calibration));
        let mut agent = LineAgent::open(config.id, line, lanes, ledger, shared, time)?;
        let (in_flight, path) = (agent.unsettled_requests()?, agent.path.clone());
        let rate_limit = LineRateLimit::new(config.rate_per_second, calibration);
        let lost_after = calibration.ticks_of_ns(config.lost_after_ns);
        let (id, window, agent) = (config.id, config.window.into(), Some(Box::new(agent)));
        let down_since = Some((self.now)());
        let awaited_detail = ledger.awaited_detail(id);
        self.list.push(OutboundLine {
            id,
            lane,
            path,
            flow,
            rate_limit,
            window,
            agent,
            in_flight,
            down_since,
            lost_after,
            awaited_detail,
        });
        Ok(())
    }

    fn line_mut(&mut self, id: LineId) -> Option<&mut OutboundLine> {
        self.list.iter_mut().find(|line| line.id == id)
    }

    /// Returns whether any line is up.
    pub fn is_up(&self) -> bool {
        self.list.iter().any(|line| line.flow.is_up())
    }

    /// Checks that a line would take this request now.
    pub fn room_for(&mut self, request: &Request) -> Result<(), LogPublishError> {
        self.choose_line(request).map(drop)
    }

    /// Gives a request to a line, and returns whether it was sent: only the thread that runs the line's agent sends.
    #[inline]
    pub fn publish(&mut self, stamp: u64, request: &Request) -> Result<OutputProgress, LogPublishError> {
        let index = self.choose_line(request)?;
        let Self { now, list, next_line, shared, avoided } = self;
        let line = &mut list[index];
        line.rate_limit.count_request(&*now);
        let number = line.lane.publish(stamp, request.kind().code(), request.as_bytes())?;
        line.in_flight.push_back((number, order_of(request)));
        if !avoided.is_empty() {
            avoided.retain(|(order, _)| *order != order_of(request));
        }
        *next_line = if index + 1 < list.len() { index + 1 } else { 0 };
        let line = &mut list[index];
        line.flow.set_published(number + 1);
        let Some(agent) = &mut line.agent else {
            shared.waker.wake();
            return Ok(OutputProgress::HandedOver);
        };
        agent.send_pending();
        Ok(if agent.progress.sent > number { OutputProgress::Sent } else { OutputProgress::HandedOver })
    }

    #[inline]
    fn choose_line(&mut self, request: &Request) -> Result<usize, LogPublishError> {
        let Self { now, list, next_line, avoided, .. } = self;
        for line in list.iter_mut() {
            let settled = line.flow.settled();
            while line.in_flight.pop_front_if(|(number, _)| *number < settled).is_some() {}
        }
        if list.len() > 1 && !matches!(request, Request::New(_)) {
            let order = order_of(request);
            let follows = |line: &OutboundLine| line.in_flight.iter().any(|(_, named)| *named == order);
            if let Some(index) = list.iter().position(follows) {
                let line = &mut list[index];
                // While the line is down it has no limits, because its lane returns to the core when it comes up. The
                // window does not count, or a venue that proves nothing would block a cancel, with all requests behind
                // it, for ever.
                let may_go = !line.flow.is_up() || line.rate_limit.has_room(&*now);
                return if may_go {
                    line.lane.check_room(size_of::<Request>()).map(|()| index)
                } else {
                    Err(LogPublishError::Full)
                };
            }
        }
        let avoided_line = if avoided.is_empty() { None } else { line_to_avoid(list, avoided, request) };
        let mut refused = LogPublishError::NoReader;
        for step in 0..list.len() {
            let index = (*next_line + step) % list.len();
            let line = &mut list[index];
            if !line.flow.is_up() || avoided_line == Some(line.id) {
                continue;
            }
            refused = LogPublishError::Full;
            if line.lane.check_room(size_of::<Request>()).is_ok() && line.has_room(&*now) {
                return Ok(index);
            }
        }
        Err(refused)
    }

    /// Marks a line as up, if its agent has given back all requests below this number and none was added behind them.
    /// Returns whether it is up.
    pub fn mark_up(&mut self, id: LineId, upto: u64) -> bool {
        let Some(line) = self.line_mut(id) else { return false };
        let is_up = line.lane.sequence() == upto;
        if is_up {
            line.in_flight.clear();
            line.down_since = None;
        }
        line.flow.answer(upto, is_up);
        self.shared.waker.wake();
        is_up
    }

    /// Notes that a line has given a request back: the request is not in flight any more.
    pub fn note_returned(&mut self, id: LineId, number: u64) {
        let Some(line) = self.line_mut(id) else { return };
        while line.in_flight.pop_front_if(|(sent, _)| *sent <= number).is_some() {}
    }

    /// Marks a line as down.
    pub fn mark_down(&mut self, id: LineId) {
        let now = (self.now)();
        if let Some(line) = self.line_mut(id) {
            // A failed attempt to connect does not restart the time.
            if line.flow.is_up() {
                line.down_since = Some(now);
            }
            line.flow.set_down();
            self.shared.waker.wake();
        }
    }

    /// Returns whether a line is up.
    pub fn is_line_up(&self, id: LineId) -> bool {
        self.list.iter().any(|line| line.id == id && line.flow.is_up())
    }

    /// Takes a line that has just been down for too long, with the orders that it may have lost. Requests in flight on
    /// it are waited for no more: later requests for their orders use another line.
    #[cold]
    pub fn take_lost_line(&mut self) -> Result<Option<(LineId, InDoubtOrders)>, OmsError> {
        let now = (self.now)();
        let is_over =
            |line: &&mut OutboundLine| line.down_since.is_some_and(|since| now.saturating_sub(since) > line.lost_after);
        let Some(line) = self.list.iter_mut().find(is_over) else { return Ok(None) };
        line.down_since = None;
        line.in_flight.clear();
        Ok(Some((line.id, orders_in_doubt(&line.path, line.flow.journaled() > 0)?)))
    }

    /// Returns whether any line is down, but not for too long yet.
    pub fn awaits_line(&self) -> bool {
        self.list.iter().any(|line| line.down_since.is_some())
    }

    /// Keeps an order from this line, as long as another line is up.
    pub fn avoid(&mut self, order: u64, line: u8) {
        if self.list.len() > 1 && !self.avoided.contains(&(order, line)) {
            // An entry is useless if its order never left again, because it was canceled here.
            if self.avoided.len() >= MAX_AVOIDED {
                self.avoided.remove(0);
            }
            self.avoided.push((order, line));
        }
    }

    /// Notes that a line's reports below this number are in the journal.
    #[inline]
    pub fn note_journaled(&self, id: LineId, next: u64) {
        if let Some(line) = self.list.iter().find(|line| line.id == id) {
            line.flow.set_journaled(next);
        }
    }

    /// Notes the order and the fill of the last report of a line that a client was sent: its detail may follow.
    #[inline]
    pub fn await_detail(&mut self, id: LineId, report: (u64, u64)) {
        if let Some(line) = self.line_mut(id) {
            line.awaited_detail = Some(report);
        }
    }

    /// Returns whether a client was sent the report of this order and this fill, and not yet its detail: of a repeated
    /// report the detail is repeated, too.
    pub fn take_awaited_detail(&mut self, id: LineId, report: (u64, u64)) -> bool {
        self.line_mut(id).is_some_and(|line| line.awaited_detail.take_if(|awaited| *awaited == report).is_some())
    }

    /// Returns the agent of the line with this index, if the agent runs on the core's thread.
    #[inline]
    pub fn agent_mut(&mut self, index: usize) -> Option<&mut LineAgent> {
        self.list.get_mut(index)?.agent.as_deref_mut()
    }

    /// Moves out the agent of the line with this index, which runs on a thread of its own from then on.
    pub fn take_agent(&mut self, index: usize) -> Option<(LineId, Box<LineAgent>)> {
        let line = self.list.get_mut(index)?;
        Some((line.id, line.agent.take()?))
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

fn now<C: Clock>(clock: &C) -> TickClock {
    let clock = clock.clone();
    Box::new(move || clock.ticks())
}

/// Returns the line that a new order should avoid, if any other is up.
#[cold]
fn line_to_avoid(list: &[OutboundLine], avoided: &[(u64, u8)], request: &Request) -> Option<LineId> {
    let Request::New(new) = request else { return None };
    let (_, line) = avoided.iter().find(|(order, _)| *order == new.client_order_id.0)?;
    let (avoided, others): (Vec<&OutboundLine>, Vec<&OutboundLine>) =
        list.iter().partition(|other| other.id.line == *line);
    others.iter().any(|other| other.flow.is_up()).then(|| avoided.first().map(|line| line.id)).flatten()
}

/// Returns the orders that the requests of a lane name, and the epoch before which orders may have used the line, if it
/// was ever `used`: their reports come only by the line that they went by.
fn orders_in_doubt(path: &LogPath, used: bool) -> Result<InDoubtOrders, OmsError> {
    let reader = Reader::open(path, ReaderStart::Oldest, Registration::Unregistered)?;
    let owner = reader.owner();
    if reader.sequence() > owner.base {
        return Ok(InDoubtOrders::All);
    }
    drop(reader);
    let before = if used && owner.base > 0 { owner.incarnation } else { 0 };
    let mut orders = BTreeSet::new();
    for_each_message(path, 0, &mut |message| {
        if let Ok(request) = Request::read(message.kind, message.payload) {
            orders.insert(order_of(&request));
        }
        Ok(())
    })?;
    Ok(InDoubtOrders::Named(orders, before))
}
