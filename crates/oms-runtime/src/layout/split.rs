//! `split`: receiver, core and venue line run on a thread each, and pass messages through inner lanes.
//!
//! An outer lane's cursor moves behind the journal, not behind the hand-over: the core publishes how far it has
//! journaled each source, and the mover confirms that number. So a message that lies in an inner lane when the process
//! is killed is still in its outer lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tickpath_clock::{Calibration, Clock, GapDetector, SchedulingGap, apply_schedule};
use tickpath_log::{
    Config as LogConfig, LogMessage, LogPath, LogPublishError, OverflowPolicy, Reader, ReaderStart, Registration,
    Writer, sleep_until_any,
};
use tickpath_market::{ExecutionReport, ReportDetail};
use tickpath_oms_journal::LaneKind;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::tick_feed::{catch_up_ticks, poll_ticks};
use crate::OmsError;
use crate::agent::{self, Agent};
use crate::config::Config;
use crate::front_end::{ControlPort, FrontEndState, MAX_SESSIONS, OpenFrontEnd, SessionFrontEnd, open_front_end};
use crate::lane_source::{LaneSource, poll_log, split_sources};
use crate::lanes::InputEvent;
use crate::lines::LineAgent;
use crate::sequencer::Sequencer;
use crate::warm_up::{IdleTurns, WarmUpClient};

/// Header of a payload that is handed over; T1 is the frame's stamp.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HandOverHeader {
    /// The stamp in the outer lane: T0 of a request.
    sent: u64,
    /// The sequence number in the outer lane, or the number that an event carries.
    number: u64,
    /// Index of the source among the lanes.
    source: u32,
    /// The kind in the outer lane.
    kind: u8,
    event: u8,
    reserved: u16,
}

/// Values of [`HandOverHeader::event`].
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
const FRAME_KIND: u8 = 255;
const HAND_OVER_BYTES: usize = size_of::<HandOverHeader>();
/// The longest payload of a message; longer payloads are handed over truncated, and refused.
const MAX_PAYLOAD: usize = 128;
const _: () = assert!(MAX_PAYLOAD >= size_of::<ReportDetail>() && MAX_PAYLOAD >= size_of::<ExecutionReport>());

/// Number of the next message of each source: the core has journaled all before it.
type JournaledNumbers = Arc<[AtomicU64]>;

/// Forwards frames from lanes to the core, stamped at receipt.
struct LaneForwarder<C> {
    clock: C,
    /// Lanes, each with its index among all sources.
    sources: Vec<(usize, LaneSource)>,
    /// Lines, each with its index among all sources.
    agents: Vec<(usize, Box<LineAgent>)>,
    core_lane: Writer,
    journaled: JournaledNumbers,
}

impl<C: Clock> Agent for LaneForwarder<C> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sources, agents, core_lane, journaled } = self;
        let mut done = 0;
        for (index, agent) in agents {
            done += agent.poll()?;
            while let Some(event) = agent.next_event() {
                let received = clock.ticks();
                event.pass_to(|event| hand_over(core_lane, received, *index, &event))?;
            }
            done += agent.end_turn();
        }
        for (index, source) in sources {
            // Pairs with the Release of the core: the messages below this number are in the journal.
            source.confirm(journaled[*index].load(Ordering::Acquire));
            done += source.poll(clock, |_, event| hand_over(core_lane, clock.ticks(), *index, &event))?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        if !self.agents.is_empty() {
            // A thread cannot sleep on sockets and memory together.
            let timeout_ns = if self.sources.is_empty() { timeout_ns } else { timeout_ns.min(LANES_NS) };
            return LineAgent::sleep(&self.agents, timeout_ns);
        }
        let readers: Vec<&Reader> = self.sources.iter().filter_map(|(_, source)| source.reader()).collect();
        sleep_until_any(&readers, timeout_ns);
    }
}

/// Max nanoseconds between two checks of the lanes by a thread that sleeps on its sockets.
const LANES_NS: u64 = 200_000;

/// Publishes an event to the core's lane. Waits while the lane is full, because the core always catches up.
fn hand_over(to: &mut Writer, stamp: u64, source: usize, event: &InputEvent<'_>) -> Result<(), OmsError> {
    let mut bytes = [0; HAND_OVER_BYTES + MAX_PAYLOAD];
    let source = source as u32;
    let head = HandOverHeader { sent: 0, number: 0, source, kind: 0, event: MESSAGE, reserved: 0 };
    let (head, payload) = match event {
        InputEvent::Message(m) => {
            (HandOverHeader { sent: m.stamp, number: m.sequence, kind: m.kind, ..head }, m.payload)
        }
        InputEvent::Missed(messages) => (HandOverHeader { number: *messages, event: MISSED, ..head }, &[][..]),
        InputEvent::Damaged(why) => (HandOverHeader { event: DAMAGED, ..head }, why.as_bytes()),
        InputEvent::Login(up) => (HandOverHeader { event: if *up { LOGIN } else { LOGOUT }, ..head }, &[][..]),
        InputEvent::Returned(m) => {
            (HandOverHeader { sent: m.stamp, number: m.sequence, kind: m.kind, event: RETURNED, ..head }, m.payload)
        }
        InputEvent::Lost { what, messages } => {
            (HandOverHeader { number: *messages, kind: *what, event: LOST, ..head }, &[][..])
        }
        InputEvent::LineUp(upto) => (HandOverHeader { number: *upto, event: LINE_UP, ..head }, &[][..]),
        InputEvent::LineDown(why) => (HandOverHeader { event: LINE_DOWN, ..head }, why.as_bytes()),
    };
    let length = payload.len().min(MAX_PAYLOAD);
    bytes[..HAND_OVER_BYTES].copy_from_slice(head.as_bytes());
    bytes[HAND_OVER_BYTES..HAND_OVER_BYTES + length].copy_from_slice(&payload[..length]);
    loop {
        match to.publish(stamp, FRAME_KIND, &bytes[..HAND_OVER_BYTES + length]) {
            Ok(_) => return Ok(()),
            Err(LogPublishError::Full) => tickpath_clock::yield_now(),
            // The core has ended, and this thread is about to end.
            Err(LogPublishError::NoReader) => return Ok(()),
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
    control: Option<Box<dyn ControlPort<C>>>,
    journaled: JournaledNumbers,
    warm_up: Option<SplitWarmUp<C>>,
    idle_turns: IdleTurns,
}

/// Warm-up: a second OMS with its receiver, and the client that sends it orders.
struct SplitWarmUp<C> {
    client: WarmUpClient,
    receiver: LaneForwarder<C>,
    core: Box<CoreAgent<C>>,
}

impl<C: Clock> SplitWarmUp<C> {
    fn of(real: &Sequencer<C>, like: &Writer, config: &Config) -> Option<Self> {
        let (sequencer, source, client) = real.warm_up_for(config)?;
        let made = like.warm_up_log().ok()?;
        let (clock, journaled) = (sequencer.clock().clone(), JournaledNumbers::from_iter([AtomicU64::new(0)]));
        let (lanes, sources) = (vec![source.lane], vec![(0, source)]);
        let receiver =
            LaneForwarder { clock, sources, agents: Vec::new(), core_lane: made.writer, journaled: journaled.clone() };
        Some(Self { client, receiver, core: Box::new(CoreAgent::of(sequencer, lanes, vec![made.reader], journaled)) })
    }
}

impl<C: Clock> CoreAgent<C> {
    fn of(sequencer: Sequencer<C>, lanes: Vec<LaneKind>, inner: Vec<Reader>, journaled: JournaledNumbers) -> Self {
        let (ticks, control, warm_up) = (None, None, None);
        Self { sequencer, lanes, inner, ticks, control, journaled, warm_up, idle_turns: IdleTurns::new(false) }
    }

    /// Takes a warm-up order through the OMS's own code, on private lanes and a private journal. Returns false without
    /// a warm-up.
    #[inline(never)]
    fn run_warm_up(&mut self) -> bool {
        let Some(SplitWarmUp { client, receiver, core }) = &mut self.warm_up else { return false };
        let sent = client.send_order(&self.sequencer, &mut core.sequencer);
        if sent.and_then(|()| receiver.poll()).and_then(|_| core.poll()).is_err() {
            // A failed warm-up costs latency only.
            self.warm_up = None;
        }
        true
    }

    /// Takes the pending messages and drops them: the core has failed, and the movers must end.
    fn discard(&mut self) -> Result<usize, OmsError> {
        self.inner.iter_mut().map(|lane| poll_log(lane, |_| Ok(()))).sum()
    }
}

impl<C: Clock> Agent for CoreAgent<C> {
    // Never inlined: a copy of the function for the warm-up would keep the OMS's own code cold.
    #[inline(never)]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { sequencer, lanes, inner, ticks, control, journaled, idle_turns, .. } = self;
        let mut done = poll_ticks(ticks, sequencer)?;
        for lane in inner {
            done += poll_log(lane, |message| apply_handed_over(sequencer, lanes, journaled, message))?;
        }
        done += sequencer.do_housekeeping(done == 0, control)?;
        idle_turns.note_work(done);
        Ok(done)
    }

    #[inline]
    fn idle(&mut self) -> bool {
        self.idle_turns.is_due() && self.run_warm_up()
    }

    fn sleep(&mut self, timeout_ns: u64) {
        if self.sequencer.held() > 0 {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.inner.iter().collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
        self.idle_turns.note_sleep();
    }
}

/// The front end on a thread of its own: its events go to the core through an inner lane.
struct FrontEndAgent<F> {
    front: F,
    core_lane: Writer,
    /// Indices among the lanes: session 0, which the other sessions follow, and behind those the admin commands.
    first_session: usize,
    commands: usize,
}

impl<F: SessionFrontEnd> Agent for FrontEndAgent<F> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { front, core_lane, first_session, commands } = self;
        front.poll(&mut |lane, received, event| {
            let source = match lane {
                LaneKind::Requests(session) => *first_session + usize::from(session),
                _ => *commands,
            };
            hand_over(core_lane, received, source, &event)
        })
    }

    fn sleep(&mut self, timeout_ns: u64) {
        self.front.sleep(timeout_ns);
    }
}

/// Applies an event that a mover handed over, and publishes its number once it is in the journal.
#[inline]
fn apply_handed_over<C: Clock>(
    sequencer: &mut Sequencer<C>,
    lanes: &[LaneKind],
    journaled: &JournaledNumbers,
    message: &LogMessage<'_>,
) -> Result<(), OmsError> {
    let Ok((head, payload)) = HandOverHeader::read_from_prefix(message.payload) else { return Ok(()) };
    let source = head.source as usize;
    let lane = lanes[source];
    let inner = LogMessage { sequence: head.number, stamp: head.sent, kind: head.kind, payload };
    let event = match head.event {
        MISSED => InputEvent::Missed(head.number),
        DAMAGED => InputEvent::Damaged(String::from_utf8_lossy(payload).into_owned()),
        LOGIN | LOGOUT => InputEvent::Login(head.event == LOGIN),
        RETURNED => InputEvent::Returned(&inner),
        LOST => InputEvent::Lost { what: head.kind, messages: head.number },
        LINE_UP => InputEvent::LineUp(head.number),
        LINE_DOWN => InputEvent::LineDown(std::str::from_utf8(payload).unwrap_or("for a reason in other letters")),
        _ => InputEvent::Message(&inner),
    };
    let is_message = matches!(event, InputEvent::Message(_));
    sequencer.handle_event(lane, message.stamp, event)?;
    if is_message {
        journaled[source].store(head.number.wrapping_add(1), Ordering::Release);
    }
    Ok(())
}

/// Runs receiver, core and venue line until `stop` is set.
pub(super) fn run<C: Clock + Sync, F: SessionFrontEnd>(
    clock: C,
    config: &Config,
    front: Option<impl FnOnce(&mut Sequencer<C>, FrontEndState) -> Result<OpenFrontEnd<C, F>, OmsError>>,
    mut ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<SchedulingGap>, OmsError> {
    let calibration = *clock.calibration();
    let (mut sequencer, mut inbound) = Sequencer::open(clock.clone(), config)?;
    inbound.sources.iter_mut().for_each(LaneSource::hold_cursor);
    let mut lanes: Vec<LaneKind> = inbound.sources.iter().map(|source| source.lane).collect();
    let mut agents = Vec::new();
    for (line, agent) in sequencer.release.venues.take_agents() {
        agents.push((lanes.len(), agent));
        lanes.push(LaneKind::Line(line));
    }
    let first = lanes.len();
    if front.is_some() {
        // All possible sessions, because the configuration may change while the OMS runs, and then the admin commands.
        lanes.extend((0..MAX_SESSIONS).map(LaneKind::Requests).chain([LaneKind::Control]));
    }
    let journaled: JournaledNumbers = lanes.iter().map(|_| AtomicU64::new(0)).collect();
    let state = FrontEndState::new(inbound.next_request, Some((journaled.clone(), first)));
    let front = open_front_end(front, &mut sequencer, state)?;
    let (front, control) = front.map_or((None, None), |front| (Some(front.sessions), front.control));
    catch_up_ticks(&mut ticks, &mut sequencer)?;
    let lane = front.is_some().then(|| inner_lane(config, "core.sockets", &calibration)).transpose()?;
    let commands = lanes.len().saturating_sub(1);
    let outside = front.zip(lane).map(|(front, (core_lane, reader))| {
        (FrontEndAgent { front, core_lane, first_session: first, commands }, reader)
    });
    let (client_writer, clients) = inner_lane(config, "core.clients", &calibration)?;
    let (venue_writer, venues) = inner_lane(config, "core.venues", &calibration)?;
    let (outside, outer) = outside.unzip();
    let inner = [clients, venues].into_iter().chain(outer).collect();
    let warm_up = SplitWarmUp::of(&sequencer, &client_writer, config);
    let core = CoreAgent::of(sequencer, lanes, inner, journaled.clone());
    let mut core = CoreAgent { ticks, control, warm_up, ..core };
    (0..WarmUpClient::WARM_UPS).for_each(|_| _ = core.run_warm_up());
    let (clients, venues) = split_sources(inbound.sources.into_iter().enumerate(), |(_, source)| source.lane);
    let forwarder = |sources, agents, core_lane| {
        let (clock, journaled) = (clock.clone(), journaled.clone());
        LaneForwarder { clock, sources, agents, core_lane, journaled }
    };
    let receiver = forwarder(clients, Vec::new(), client_writer);
    let line = forwarder(venues, agents, venue_writer);
    let gaps = thread::scope(|scope| {
        let receiver = agent::spawn(scope, "oms-receiver", config, &clock, receiver, stop);
        let line = agent::spawn(scope, "oms-line", config, &clock, line, stop);
        let outside = outside.map(|outside| agent::spawn(scope, "oms-front", config, &clock, outside, stop));
        let mut gaps = GapDetector::new(core.sequencer.clock().clone());
        let settled = apply_schedule(config.cpu, config.priority).map_err(OmsError::from);
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
            .map(|()| gaps.into_gaps())
    })?;
    while core.poll()? > 0 {}
    core.sequencer.stop()?;
    for name in ["core.clients", "core.venues", "core.sockets"] {
        let _ = inner_config(config, name)?.path.remove();
    }
    Ok(gaps)
}

/// Returns the configuration of an inner lane, whose frames outlive no process: a lane of an earlier run is useless.
fn inner_config(config: &Config, name: &str) -> Result<LogConfig, OmsError> {
    let path = LogPath::shared_memory(&format!("{}.{name}", config.lanes.name));
    let topic = LogConfig::topic(path.map_err(tickpath_log::LogOpenError::from)?, OverflowPolicy::Fail);
    let segment_bytes = (config.lanes.report_bytes / topic.segments).next_multiple_of(4096).max(4096);
    Ok(LogConfig { segment_bytes, ..topic })
}

fn inner_lane(config: &Config, name: &str, calibration: &Calibration) -> Result<(Writer, Reader), OmsError> {
    let lane = inner_config(config, name)?;
    if lane.path.exists() {
        let _ = lane.path.remove();
    }
    let writer = Writer::open(&lane, calibration)?;
    let reader = Reader::open(&lane.path, ReaderStart::Oldest, Registration::Registered)?;
    Ok((writer, reader))
}
