//! `split`: receiver, core and venue line run on a thread each, and pass messages through inner lanes.
//!
//! An outer lane's cursor moves behind the journal, not behind the hand-over: the core publishes how far it has
//! journaled each source, and the mover confirms that number. So a message that lies in an inner lane when the process
//! is killed is still in its outer lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tickpath_clock::{Clock, Gap, Gaps, settle};
use tickpath_log::{
    Config as LogConfig, Message, Place, Policy, PublishError, Reader, Registration, Start, Writer, sleep_until_any,
};
use tickpath_oms_journal::LaneKind;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::source::{Source, open_ticks, poll_ticks, split_sources, turn};
use crate::OmsError;
use crate::agent::{self, Agent};
use crate::config::Config;
use crate::front::{Front, MOST_SESSIONS, Opening};
use crate::lanes::Event;
use crate::lines::LineAgent;
use crate::rehearsal::{Client, Turns};
use crate::sequencer::Sequencer;

/// Header of a payload that is handed over; T1 is the frame's stamp.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HandOver {
    /// The stamp in the outer lane: T0 of a request.
    sent: u64,
    /// The sequence number in the outer lane, or the number that an event carries.
    number: u64,
    /// Place of the source among the lanes.
    source: u32,
    /// The kind in the outer lane.
    kind: u8,
    what: u8,
    reserved: u16,
}

/// Values of [`HandOver::what`].
const RETURNED: u8 = 6;
const LOST: u8 = 7;
const LINE_UP: u8 = 8;
const LINE_DOWN: u8 = 9;
const MESSAGE: u8 = 1;
const MISSED: u8 = 2;
const DAMAGED: u8 = 3;
const LOGIN: u8 = 4;
const LOGOUT: u8 = 5;

/// The kind of all frames of an inner lane.
const KIND: u8 = 255;
const HEAD: usize = size_of::<HandOver>();
/// The longest payload of a message; longer payloads are handed over truncated, and refused.
const LONGEST: usize = 112;

/// Number of the next message of each source: the core has journaled all before it.
type Taken = Arc<[AtomicU64]>;

/// Forwards frames from lanes to the core, stamped at receipt.
struct Mover<C> {
    clock: C,
    /// Lanes, each with its place among all sources.
    from: Vec<(usize, Source)>,
    /// Lines, each with its place among all sources.
    agents: Vec<(usize, Box<LineAgent>)>,
    to: Writer,
    taken: Taken,
}

impl<C: Clock> Agent for Mover<C> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, from, agents, to, taken } = self;
        let mut done = 0;
        for (place, agent) in agents {
            done += agent.poll(&mut |_, received, event| hand_over(to, received, *place, &event))?;
        }
        for (place, source) in from {
            // Pairs with the Release of the core: the messages that it has taken are in the journal.
            source.confirm(taken[*place].load(Ordering::Acquire));
            done += source.turn(clock, |_, event| hand_over(to, clock.ticks(), *place, &event))?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        if !self.agents.is_empty() {
            // A thread cannot sleep on sockets and memory together.
            let timeout_ns = if self.from.is_empty() { timeout_ns } else { timeout_ns.min(LANES_NS) };
            return LineAgent::sleep(&self.agents, timeout_ns);
        }
        let readers: Vec<&Reader> = self.from.iter().filter_map(|(_, source)| source.reader()).collect();
        sleep_until_any(&readers, timeout_ns);
    }
}

/// Max nanoseconds between two checks of the lanes by a thread that sleeps on its sockets.
const LANES_NS: u64 = 200_000;

/// Publishes an event to the core's lane. Waits while the lane is full, because the core always catches up.
fn hand_over(to: &mut Writer, stamp: u64, source: usize, event: &Event<'_>) -> Result<(), OmsError> {
    let mut bytes = [0; HEAD + LONGEST];
    let source = source as u32;
    let head = HandOver { sent: 0, number: 0, source, kind: 0, what: MESSAGE, reserved: 0 };
    let (head, payload) = match event {
        Event::Message(m) => (HandOver { sent: m.stamp, number: m.sequence, kind: m.kind, ..head }, m.payload),
        Event::Missed(messages) => (HandOver { number: *messages, what: MISSED, ..head }, &[][..]),
        Event::Damaged(why) => (HandOver { what: DAMAGED, ..head }, why.as_bytes()),
        Event::Login(up) => (HandOver { what: if *up { LOGIN } else { LOGOUT }, ..head }, &[][..]),
        Event::Returned(m) => {
            (HandOver { sent: m.stamp, number: m.sequence, kind: m.kind, what: RETURNED, ..head }, m.payload)
        }
        Event::Lost { what, messages } => (HandOver { number: *messages, kind: *what, what: LOST, ..head }, &[][..]),
        Event::LineUp(upto) => (HandOver { number: *upto, what: LINE_UP, ..head }, &[][..]),
        Event::LineDown(why) => (HandOver { what: LINE_DOWN, ..head }, why.as_bytes()),
    };
    let length = payload.len().min(LONGEST);
    bytes[..HEAD].copy_from_slice(head.as_bytes());
    bytes[HEAD..HEAD + length].copy_from_slice(&payload[..length]);
    loop {
        match to.publish(stamp, KIND, &bytes[..HEAD + length]) {
            Ok(_) => return Ok(()),
            Err(PublishError::Full) => tickpath_clock::yield_now(),
            // The core has ended, and this thread is about to end.
            Err(PublishError::NoReader) => return Ok(()),
            Err(e) => return Err(OmsError::Lane(e)),
        }
    }
}

/// The core's thread in `split`.
struct CoreAgent<C> {
    sequencer: Sequencer<C>,
    lanes: Vec<LaneKind>,
    inner: Vec<Reader>,
    ticks: Option<Reader>,
    taken: Taken,
    rehearsal: Option<Rehearsal<C>>,
    turns: Turns,
}

/// Warm-up: a second OMS with its receiver, and the client that sends it orders.
struct Rehearsal<C> {
    client: Client,
    receiver: Mover<C>,
    core: Box<CoreAgent<C>>,
}

impl<C: Clock> Rehearsal<C> {
    fn of(real: &Sequencer<C>, like: &Writer, config: &Config) -> Option<Self> {
        let (sequencer, source, client) = real.rehearsal_of(config)?;
        let made = like.rehearsal().ok()?;
        let (clock, taken) = (sequencer.clock().clone(), Taken::from_iter([AtomicU64::new(0)]));
        let lanes = vec![source.lane()];
        let from = vec![(0, source)];
        let receiver = Mover { clock, from, agents: Vec::new(), to: made.writer, taken: taken.clone() };
        Some(Self { client, receiver, core: Box::new(CoreAgent::of(sequencer, lanes, vec![made.reader], taken)) })
    }
}

impl<C: Clock> CoreAgent<C> {
    fn of(sequencer: Sequencer<C>, lanes: Vec<LaneKind>, inner: Vec<Reader>, taken: Taken) -> Self {
        Self { sequencer, lanes, inner, ticks: None, taken, rehearsal: None, turns: Turns::default() }
    }

    /// Takes a warm-up order through the OMS's own code, on private lanes and a private journal. Returns false without
    /// a warm-up.
    #[inline(never)]
    fn rehearse(&mut self) -> bool {
        let Some(Rehearsal { client, receiver, core }) = &mut self.rehearsal else { return false };
        let sent = client.send(&self.sequencer, &mut core.sequencer);
        if sent.and_then(|()| receiver.poll()).and_then(|_| core.poll()).is_err() {
            // A failed warm-up costs latency only.
            self.rehearsal = None;
        }
        true
    }

    /// Takes the pending messages and drops them: the core has failed, and the movers must end.
    fn discard(&mut self) -> Result<usize, OmsError> {
        self.inner.iter_mut().map(|lane| turn(lane, |_| Ok(()))).sum()
    }
}

impl<C: Clock> Agent for CoreAgent<C> {
    // Never inlined: a copy of the function for the warm-up would keep the OMS's own code cold.
    #[inline(never)]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { sequencer, lanes, inner, ticks, taken, turns, .. } = self;
        let mut done = poll_ticks(ticks, sequencer)?;
        for lane in inner {
            done += turn(lane, |message| take(sequencer, lanes, taken, message))?;
        }
        done += sequencer.chores(done == 0)?;
        turns.have_done(done);
        Ok(done)
    }

    #[inline]
    fn idle(&mut self) -> bool {
        self.turns.is_due() && self.rehearse()
    }

    fn sleep(&mut self, timeout_ns: u64) {
        if self.sequencer.held() > 0 {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.inner.iter().collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
        self.turns.are_cold();
    }
}

/// The front end on a thread of its own: its events go to the core through an inner lane.
struct Outside<F> {
    front: F,
    to: Writer,
    /// Places among the lanes: session 0, which the other sessions follow, and behind those the admin commands.
    first: usize,
    words: usize,
}

/// Adds a place among the lanes for each possible session, because a desk may change while the OMS runs, and a last
/// place for the admin commands. Returns the first place.
fn add_sessions(lanes: &mut Vec<LaneKind>) -> usize {
    let first = lanes.len();
    lanes.extend((0..MOST_SESSIONS).map(LaneKind::Requests));
    lanes.push(LaneKind::Control);
    first
}

impl<F: Front> Agent for Outside<F> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { front, to, first, words } = self;
        front.poll(&mut |lane, received, event| {
            let place = match lane {
                LaneKind::Requests(session) => *first + usize::from(session),
                _ => *words,
            };
            hand_over(to, received, place, &event)
        })
    }

    fn sleep(&mut self, timeout_ns: u64) {
        self.front.sleep(timeout_ns);
    }
}

/// Applies an event that a mover handed over, and publishes its number once it is in the journal.
#[inline]
fn take<C: Clock>(
    sequencer: &mut Sequencer<C>,
    lanes: &[LaneKind],
    taken: &Taken,
    message: &Message<'_>,
) -> Result<(), OmsError> {
    let Ok((head, payload)) = HandOver::read_from_prefix(message.payload) else { return Ok(()) };
    let source = head.source as usize;
    let lane = lanes[source];
    let inner = Message { sequence: head.number, stamp: head.sent, kind: head.kind, payload };
    let event = match head.what {
        MISSED => Event::Missed(head.number),
        DAMAGED => Event::Damaged(String::from_utf8_lossy(payload).into_owned()),
        LOGIN | LOGOUT => Event::Login(head.what == LOGIN),
        RETURNED => Event::Returned(&inner),
        LOST => Event::Lost { what: head.kind, messages: head.number },
        LINE_UP => Event::LineUp(head.number),
        LINE_DOWN => Event::LineDown(std::str::from_utf8(payload).unwrap_or("for a reason in other letters")),
        _ => Event::Message(&inner),
    };
    let is_message = matches!(event, Event::Message(_));
    sequencer.event(lane, message.stamp, event)?;
    if is_message {
        taken[source].store(head.number.wrapping_add(1), Ordering::Release);
    }
    Ok(())
}

/// Runs receiver, core and venue line until `stop` is set.
pub(super) fn run<C: Clock + Sync, F: Front>(
    clock: C,
    config: &Config,
    front: Option<impl FnOnce(&mut Sequencer<C>, Opening) -> Result<F, OmsError>>,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let calibration = *clock.calibration();
    let (mut sequencer, mut inbound) = Sequencer::open(clock.clone(), config)?;
    inbound.sources.iter_mut().for_each(Source::hold_cursor);
    let mut lanes: Vec<LaneKind> = inbound.sources.iter().map(Source::lane).collect();
    let agents: Vec<(usize, Box<LineAgent>)> = sequencer
        .take_agents()
        .into_iter()
        .map(|(line, agent)| {
            lanes.push(LaneKind::Line(line));
            (lanes.len() - 1, agent)
        })
        .collect();
    let first = if front.is_some() { add_sessions(&mut lanes) } else { lanes.len() };
    let taken: Taken = lanes.iter().map(|_| AtomicU64::new(0)).collect();
    let opening = Opening::outside(inbound.next_request, taken.clone(), first);
    let front = front.map(|open| open(&mut sequencer, opening)).transpose()?;
    let mut ticks = ticks;
    open_ticks(&mut ticks, &mut sequencer)?;
    let lane = front.is_some().then(|| inner_lane(config, "core.sockets", &calibration)).transpose()?;
    let words = lanes.len().saturating_sub(1);
    let outside = front.zip(lane).map(|(front, (to, from))| (Outside { front, to, first, words }, from));
    let (client_writer, clients) = inner_lane(config, "core.clients", &calibration)?;
    let (venue_writer, venues) = inner_lane(config, "core.venues", &calibration)?;
    let (outside, outer) = outside.unzip();
    let inner = [clients, venues].into_iter().chain(outer).collect();
    let rehearsal = Rehearsal::of(&sequencer, &client_writer, config);
    let mut core = CoreAgent { ticks, rehearsal, ..CoreAgent::of(sequencer, lanes, inner, taken.clone()) };
    (0..Client::REHEARSALS).for_each(|_| _ = core.rehearse());
    let (clients, venues) = split_sources(inbound.sources.into_iter().enumerate(), |(_, source)| source.lane());
    let receiver =
        Mover { clock: clock.clone(), from: clients, agents: Vec::new(), to: client_writer, taken: taken.clone() };
    let line = Mover { clock: clock.clone(), from: venues, agents, to: venue_writer, taken };
    let gaps = thread::scope(|scope| {
        let receiver = agent::spawn(scope, "oms-receiver", config, &clock, receiver, stop);
        let line = agent::spawn(scope, "oms-line", config, &clock, line, stop);
        let outside = outside.map(|outside| agent::spawn(scope, "oms-front", config, &clock, outside, stop));
        let mut gaps = Gaps::new(core.sequencer.clock().clone());
        let settled = settle(config.cpu, config.priority).map_err(OmsError::from);
        ready();
        let result = settled.and_then(|()| agent::run(&mut core, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Release);
        // A mover may wait for room in the core's lane, so the core takes messages until the movers have ended.
        let mut drained = Ok(());
        let is_finished = || outside.as_ref().is_none_or(thread::ScopedJoinHandle::is_finished);
        while !(receiver.is_finished() && line.is_finished() && is_finished()) {
            match if result.is_ok() && drained.is_ok() { core.poll() } else { core.discard() } {
                Ok(0) => tickpath_clock::yield_now(),
                Ok(_) => {}
                Err(e) => drained = Err(e),
            }
        }
        result
            .and(drained)
            .and(agent::join(receiver))
            .and(agent::join(line))
            .and(outside.map_or(Ok(()), agent::join))
            .map(|()| gaps.into_found())
    })?;
    while core.poll()? > 0 {}
    core.sequencer.stop()?;
    for name in ["core.clients", "core.venues", "core.sockets"] {
        let _ = inner_config(config, name)?.place.remove();
    }
    Ok(gaps)
}

/// Returns the configuration of an inner lane, whose frames outlive no process: a lane of an earlier run is useless.
fn inner_config(config: &Config, name: &str) -> Result<LogConfig, OmsError> {
    let place = Place::shared_memory(&format!("{}.{name}", config.lanes.name));
    let topic = LogConfig::topic(place.map_err(tickpath_log::OpenError::from)?, Policy::Fail);
    let segment_bytes = (config.lanes.report_bytes / topic.segments).next_multiple_of(4096).max(4096);
    Ok(LogConfig { segment_bytes, ..topic })
}

fn inner_lane(
    config: &Config,
    name: &str,
    calibration: &tickpath_clock::Calibration,
) -> Result<(Writer, Reader), OmsError> {
    let lane = inner_config(config, name)?;
    if lane.place.exists() {
        let _ = lane.place.remove();
    }
    let writer = Writer::open(&lane, calibration)?;
    let reader = Reader::open(&lane.place, Start::Oldest, Registration::Registered)?;
    Ok((writer, reader))
}
