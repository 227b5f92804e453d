//! Lines: venues that are reached by sockets.
//!
//! ```text
//!                                  ┌─ rate, window ─ lane of line 0, a log ─ agent ─ Line::send ─┐
//!   core ─> requests of a venue ───┼─ rate, window ─ lane of line 1 ──────── agent ──────────────┼──> the venue
//!                                  └─ rate, window ─ lane of line 2 ──────── agent ──────────────┘
//!   journal <─ sequencer <─ reports, numbered by line ──────────────────────── agents <─ Line::poll ──┘
//! ```
//!
//! A line has a lane like any venue, and its far end is an agent of the OMS itself. A request is in the lane before it is
//! sent, its number on the line is its place in the lane, and the lane's cursor is the proof of receipt. So whatever ends, the
//! next agent knows what it must ask the venue: it has all below a number, or it cannot say.
//!
//! * What the venue does **not** have comes back to the core, is checked again like all that waited, and leaves by whichever
//!   line is ready. Its number is left out. Nothing is sent again as it lay there: it may be too old.
//! * What a venue that cannot say may have is in doubt.
//! * Reports have no lane: the journal knows their numbers, and the venue is asked for them from there.
//!
//! A request is given to the first line, in turn, that is up, has room in its window of unproven requests, and may
//! send one more in this second; where there is none it waits in the core. What names an order whose own request is unproven
//! follows that on its line, up or not: a venue must not see a cancel before its order. It keeps the line's rate, and needs no
//! room in its window.

mod agent;
mod flow;
mod hear;
mod pace;
mod validity;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tickpath_clock::Clock;
use tickpath_log::{Place, PublishError, Reader, Registration, Start, Writer};
use tickpath_market::Request;
use tickpath_oms_journal::Ledger;

pub use crate::line::{LineConfig, OpenLine};
pub(crate) use agent::LineAgent;
use agent::{Now, each, order_of};
pub(crate) use flow::{Bell, Flow, Shared};
use pace::Pace;
pub use tickpath_oms_journal::{LineId, MOST_LINES};

use crate::OmsError;
use crate::lanes::LanesConfig;

/// Orders that are kept from a line at once.
const MOST_AVOIDED: usize = 256;

/// How far an output has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It is in its lane, or the send to its venue has returned.
    Sent,
    /// It waits for a send: of the thread of its line, or behind a socket that is full.
    HandedOver,
}

/// The lines of one venue, from the core's side.
pub(crate) struct Lines {
    now: Now,
    list: Vec<OutLine>,
    /// The line that is asked first.
    turn: usize,
    shared: Shared,
    /// Orders that should not go by a line: it has refused them.
    avoided: Vec<(u64, u8)>,
}

/// A line, from the core's side.
struct OutLine {
    id: LineId,
    lane: Writer,
    place: Place,
    flow: Arc<Flow>,
    pace: Pace,
    window: u64,
    /// Where the core's thread does its work.
    agent: Option<Box<LineAgent>>,
    /// What was given to it and has no proof of receipt: its number, and the order that it names.
    on_way: VecDeque<(u64, u64)>,
    /// Since when it is down, in ticks; none while it is up, and once what went by it was put in doubt.
    down_since: Option<u64>,
    lost_after: u64,
}

/// What went by a line that is away for too long.
pub(crate) enum Went {
    /// The orders that its lane names, some of which may be over; and if any went by it before that lane was made, all of
    /// epochs before this one.
    Orders(BTreeSet<u64>, u64),
    /// More than is known.
    More,
}

impl OutLine {
    /// Whether its window and its pace let one more go.
    #[inline]
    fn has_room(&self, now: impl FnOnce() -> u64) -> bool {
        (self.on_way.len() as u64) < self.window && self.pace.has_room(now)
    }
}

impl Lines {
    /// Lines whose time is that of this clock.
    pub fn new<C: Clock>(clock: &C, shared: Shared) -> Self {
        Self { now: now(clock), list: Vec::new(), turn: 0, shared, avoided: Vec::new() }
    }

    /// Adds a line on its lane. What lies in it without proof of receipt is found out when it is up.
    pub fn add<C: Clock>(
        &mut self,
        config: &LineConfig,
        lanes: &LanesConfig,
        lane: Writer,
        ledger: &Ledger,
        clock: &C,
    ) -> Result<(), OmsError> {
        let flow = Arc::new(Flow::default());
        let line = (config.open.0)().map_err(|reason| OmsError::Line { line: config.id, reason })?;
        let calibration = clock.calibration();
        let (shared, time) = ((flow.clone(), self.shared.clone()), (now(clock), *calibration));
        let mut agent = LineAgent::open(config.id, line, lanes, ledger, shared, time)?;
        let (on_way, place) = (agent.unproven()?, agent.place().clone());
        let pace = Pace::new(config.rate_per_second, calibration);
        let lost_after = calibration.ticks_of_ns(config.lost_after_ns);
        let (id, window, agent) = (config.id, config.window.into(), Some(Box::new(agent)));
        let down_since = Some((self.now)());
        self.list.push(OutLine { id, lane, place, flow, pace, window, agent, on_way, down_since, lost_after });
        Ok(())
    }

    /// Whether any line is up.
    pub fn is_up(&self) -> bool {
        self.list.iter().any(|line| line.flow.is_up())
    }

    /// Whether this request would find a line now.
    pub fn room_for(&mut self, request: &Request) -> Result<(), PublishError> {
        self.choose(request).map(|_| ())
    }

    /// Gives a request to a line, and says whether it has left: only the thread that does the line's work sends.
    #[inline]
    pub fn publish(&mut self, stamp: u64, request: &Request) -> Result<Passed, PublishError> {
        let place = self.choose(request)?;
        let Self { now, list, turn, shared, avoided } = self;
        let line = &mut list[place];
        line.pace.take(&*now);
        let number = line.lane.publish(stamp, request.kind().code(), request.as_bytes())?;
        line.on_way.push_back((number, order_of(request)));
        if !avoided.is_empty() {
            avoided.retain(|(order, _)| *order != order_of(request));
        }
        *turn = if place + 1 < list.len() { place + 1 } else { 0 };
        let line = &mut list[place];
        line.flow.set_published(number + 1);
        let Some(agent) = &mut line.agent else {
            shared.bell.ring();
            return Ok(Passed::HandedOver);
        };
        agent.carry();
        Ok(if agent.has_sent(number) { Passed::Sent } else { Passed::HandedOver })
    }

    #[inline]
    fn choose(&mut self, request: &Request) -> Result<usize, PublishError> {
        let Self { now, list, turn, avoided, .. } = self;
        for line in list.iter_mut() {
            let proven = line.flow.proven();
            while line.on_way.pop_front_if(|(number, _)| *number < proven).is_some() {}
        }
        if list.len() > 1 && !matches!(request, Request::New(_)) {
            let order = order_of(request);
            let follows = |line: &OutLine| line.on_way.iter().any(|(_, on_way)| *on_way == order);
            if let Some(place) = list.iter().position(follows) {
                let line = &mut list[place];
                // What a line finds in its lane when it comes up goes back to the core: while it is down it has no limits. And a
                // venue that proves nothing must not hold a cancel for ever, with all that waits behind it.
                let may_go = !line.flow.is_up() || line.pace.has_room(&*now);
                return if may_go {
                    line.lane.room_for(size_of::<Request>()).map(|()| place)
                } else {
                    Err(PublishError::Full)
                };
            }
        }
        let shunned = if avoided.is_empty() { None } else { shunned(list, avoided, request) };
        let mut refused = PublishError::NoReader;
        for step in 0..list.len() {
            let place = (*turn + step) % list.len();
            let line = &mut list[place];
            if !line.flow.is_up() || shunned == Some(line.id) {
                continue;
            }
            refused = PublishError::Full;
            if line.lane.room_for(size_of::<Request>()).is_ok() && line.has_room(&*now) {
                return Ok(place);
            }
        }
        Err(refused)
    }

    /// A line may take requests, if its agent has given back all that lay in its lane below this number, and nothing came
    /// behind. True if it may now.
    pub fn line_up(&mut self, id: LineId, upto: u64) -> bool {
        let Some(line) = self.list.iter_mut().find(|line| line.id == id) else { return false };
        let is_up = line.lane.sequence() == upto;
        if is_up {
            line.on_way.clear();
            line.down_since = None;
        }
        line.flow.answer(upto, is_up);
        self.shared.bell.ring();
        is_up
    }

    /// A line has given a request back: its order is not on this line's way any more.
    pub fn returned(&mut self, id: LineId, number: u64) {
        let Some(line) = self.list.iter_mut().find(|line| line.id == id) else { return };
        while line.on_way.pop_front_if(|(on_way, _)| *on_way <= number).is_some() {}
    }

    /// A line takes nothing any more.
    pub fn line_down(&mut self, id: LineId) {
        let now = (self.now)();
        if let Some(line) = self.list.iter_mut().find(|line| line.id == id) {
            // Not anew for each attempt to connect.
            if line.flow.is_up() {
                line.down_since = Some(now);
            }
            line.flow.down();
            self.shared.bell.ring();
        }
    }

    /// Whether a line takes requests.
    pub fn is_line_up(&self, id: LineId) -> bool {
        self.list.iter().any(|line| line.id == id && line.flow.is_up())
    }

    /// A line that was away for too long just now, and what went by it. What has no proof of
    /// receipt is waited for no more: what names it goes by another line.
    #[cold]
    pub fn give_up_one(&mut self) -> Result<Option<(LineId, Went)>, OmsError> {
        let now = (self.now)();
        let is_over =
            |line: &&mut OutLine| line.down_since.is_some_and(|since| now.saturating_sub(since) > line.lost_after);
        let Some(line) = self.list.iter_mut().find(is_over) else { return Ok(None) };
        line.down_since = None;
        line.on_way.clear();
        Ok(Some((line.id, went_by(&line.place, line.flow.journaled() > 0)?)))
    }

    /// Whether any line is down, and not for too long yet.
    pub fn waits_for_one(&self) -> bool {
        self.list.iter().any(|line| line.down_since.is_some())
    }

    /// An order is not to go by this line, as long as another one is up.
    pub fn avoid(&mut self, order: u64, line: u8) {
        if self.list.len() > 1 && !self.avoided.contains(&(order, line)) {
            // What never left since, because it was canceled here, is of no use.
            if self.avoided.len() >= MOST_AVOIDED {
                self.avoided.remove(0);
            }
            self.avoided.push((order, line));
        }
    }

    /// A report of a line is in the journal.
    #[inline]
    pub fn journaled(&self, id: LineId, next: u64) {
        if let Some(line) = self.list.iter().find(|line| line.id == id) {
            line.flow.set_journaled(next);
        }
    }

    /// The agents, for another thread, or for a turn of this one.
    pub fn take_agent(&mut self, place: usize) -> Option<Box<LineAgent>> {
        self.list.get_mut(place)?.agent.take()
    }

    /// Gives one back.
    pub fn put_agent(&mut self, place: usize, agent: Box<LineAgent>) {
        self.list[place].agent = Some(agent);
    }

    /// Which line has this place.
    pub fn id(&self, place: usize) -> Option<LineId> {
        self.list.get(place).map(|line| line.id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

fn now<C: Clock>(clock: &C) -> Now {
    let clock = clock.clone();
    Box::new(move || clock.ticks())
}

/// The line that a new order should not go by, if any other is up.
#[cold]
fn shunned(list: &[OutLine], avoided: &[(u64, u8)], request: &Request) -> Option<LineId> {
    let Request::New(new) = request else { return None };
    let (_, line) = avoided.iter().find(|(order, _)| *order == new.client_order_id.0)?;
    let (by, others): (Vec<&OutLine>, Vec<&OutLine>) = list.iter().partition(|other| other.id.line == *line);
    others.iter().any(|other| other.flow.is_up()).then(|| by.first().map(|line| line.id)).flatten()
}

/// The orders that the requests of a lane name, and those from before it was made, if its line has ever been `used`: their
/// reports come by the line that they went by.
fn went_by(place: &Place, used: bool) -> Result<Went, OmsError> {
    let look = Reader::open(place, Start::Oldest, Registration::Unregistered)?;
    let owner = look.owner();
    if look.sequence() > owner.base {
        return Ok(Went::More);
    }
    drop(look);
    let before = if used && owner.base > 0 { owner.incarnation } else { 0 };
    let mut orders = BTreeSet::new();
    each(place, 0, &mut |message| {
        if let Ok(request) = Request::read(message.kind, message.payload) {
            orders.insert(order_of(&request));
        }
        Ok(())
    })?;
    Ok(Went::Orders(orders, before))
}
