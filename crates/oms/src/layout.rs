//! Which thread does what.
//!
//! ```text
//!  inline   one thread:  receive T1 ─> journal, core ─> venue T2 ─> reports
//!
//!  split    receiver: T1 ──lane──> core: journal, core, venue T2, reports <──lane── venue line
//!           three threads; T2 − T1 is the hand-over and the work
//!
//!  mutex    receiver: T1 ─> lock ─> journal, core, venue T2, reports <─ lock <─ venue line
//!           two threads that share the core
//! ```
//!
//! With two processors the core of `split` has one of its own, and the other threads share the other.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use tickpath_clock::{Clock, Priority, Wait, pin_to_cpu, set_priority};
use tickpath_log::{Config as LogConfig, Message, Next, PublishError, Reader, Writer, sleep_until_any};
use tickpath_market::{Kind, Request, TopOfBook};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::OmsError;
use crate::agent::{self, Agent, Gap, Gaps};
use crate::lanes::LanesConfig;
use crate::recover::Inbound;
use crate::sequencer::{Desk, Sequencer};

/// Gaps of a spinning thread from here on count as the host's.
const HOST_GAP_NS: u64 = 2_000;

/// Messages that one turn takes from one lane before it looks at the others.
const TURN: usize = 16;

/// How the work is put on threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// One thread does everything.
    #[default]
    Inline,
    /// Receiving, core and venue line have a thread each.
    Split,
    /// Receiving and venue line have a thread each and share the core under a lock.
    Mutex,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Inline, Self::Split, Self::Mutex];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Split => "split",
            Self::Mutex => "mutex",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no layout; use inline, split or mutex")]
pub struct ParseLayoutError(String);

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        Self::ALL.into_iter().find(|layout| layout.name() == text).ok_or_else(|| ParseLayoutError(text.to_owned()))
    }
}

/// How an OMS runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its lanes.
    pub lanes: LanesConfig,
    /// Its journal.
    pub journal: LogConfig,
    /// What can be traded, and by whom.
    pub desk: Desk,
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Which thread does what.
    pub layout: Layout,
    /// How the core's thread passes the time.
    pub wait: Wait,
    /// The processor of the core's thread.
    pub cpu: Option<usize>,
    /// The processor of the other threads, where a layout has some. They share it, and yield.
    pub other_cpu: Option<usize>,
    /// The priority of the core's thread.
    pub priority: Priority,
}

/// The OMS on one thread, to be polled by it.
pub struct Inline<C> {
    clock: C,
    sequencer: Sequencer<C>,
    requests: Vec<Source>,
    from_venue: Reader,
    ticks: Option<Reader>,
}

impl<C: Clock> Inline<C> {
    /// Opens lanes and journal, and replays what is there. `ticks` brings reference prices.
    pub fn open(clock: C, config: &Config, ticks: Option<Reader>) -> Result<Self, OmsError> {
        let (sequencer, Inbound { requests, from_venue }) = Sequencer::open(clock.clone(), config)?;
        Ok(Self {
            clock,
            sequencer,
            requests: requests.into_iter().map(Source::of_client).collect(),
            from_venue,
            ticks,
        })
    }

    /// The sequencer.
    pub fn sequencer(&mut self) -> &mut Sequencer<C> {
        &mut self.sequencer
    }
}

impl<C: Clock> Agent for Inline<C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, sequencer, requests, from_venue, ticks } = self;
        // Prices first: the first orders after a start must not be checked without one.
        let mut done = poll_ticks(ticks, sequencer)?;
        for (session, lane) in requests.iter_mut().enumerate() {
            done += lane.turn(|message| sequencer.request(session as u16, clock.ticks(), message))?;
        }
        done += turn(from_venue, |message| sequencer.report(clock.ticks(), message))?;
        if sequencer.queued() > 0 {
            done += sequencer.flush()?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        let mut sources: Vec<&Reader> = self.requests.iter().map(|lane| &lane.reader).collect();
        sources.push(&self.from_venue);
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}

/// A lane that others write. A client that damages its lane loses its session, and nobody else does; without the
/// venue's there is no OMS.
struct Source {
    reader: Reader,
    of_client: bool,
    broken: bool,
}

impl Source {
    fn of_client(reader: Reader) -> Self {
        Self { reader, of_client: true, broken: false }
    }

    fn of_venue(reader: Reader) -> Self {
        Self { reader, of_client: false, broken: false }
    }

    #[inline]
    fn turn(&mut self, take: impl FnMut(&Message<'_>) -> Result<(), OmsError>) -> Result<usize, OmsError> {
        if self.broken {
            return Ok(0);
        }
        match turn(&mut self.reader, take) {
            Err(OmsError::Read(_)) if self.of_client => {
                self.broken = true;
                Ok(0)
            }
            done => done,
        }
    }
}

/// Takes up to a turn's messages from one lane.
#[inline]
fn turn(lane: &mut Reader, mut take: impl FnMut(&Message<'_>) -> Result<(), OmsError>) -> Result<usize, OmsError> {
    for done in 0..TURN {
        match lane.next()? {
            Next::Message(message) => take(&message)?,
            Next::Gap(_) => {}
            Next::Empty => return Ok(done),
        }
    }
    Ok(TURN)
}

#[inline]
fn poll_ticks<C: Clock>(ticks: &mut Option<Reader>, sequencer: &mut Sequencer<C>) -> Result<usize, OmsError> {
    let Some(ticks) = ticks else { return Ok(0) };
    turn(ticks, |message| {
        take_tick(message, |stamp, tick| sequencer.tick(stamp, tick));
        Ok(())
    })
}

#[inline]
fn take_tick(message: &Message<'_>, take: impl FnOnce(u64, &TopOfBook)) {
    if message.kind == Kind::TopOfBook.code()
        && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
    {
        take(message.stamp, &tick);
    }
}

/// Runs an OMS on its threads until it is told to stop. Calls `ready` when lanes and journal are open. Gives the gaps
/// that the host made on the core's thread.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    match config.layout {
        Layout::Inline => {
            // Opened first: its side threads must not share the core's CPU.
            let mut agent = Inline::open(clock.clone(), config, ticks)?;
            settle(config.cpu, config.priority)?;
            ready();
            let mut gaps = Gaps::new(clock, HOST_GAP_NS);
            agent::run(&mut agent, config.wait, stop, &mut gaps)?;
            agent.sequencer.stop()?;
            Ok(gaps.into_found())
        }
        Layout::Split => run_split(clock, config, ticks, stop, ready),
        Layout::Mutex => run_mutex(clock, config, ticks, stop, ready),
    }
}

/// Pins and prioritises the calling thread.
fn settle(cpu: Option<usize>, priority: Priority) -> Result<(), OmsError> {
    if let Some(cpu) = cpu {
        pin_to_cpu(cpu)?;
    }
    if priority != Priority::Normal {
        set_priority(priority)?;
    }
    Ok(())
}

/// Threads that share a processor must give it to each other.
fn shared_wait(wait: Wait) -> Wait {
    match wait {
        Wait::Busy | Wait::Yield => Wait::Yield,
        Wait::Block => Wait::Block,
    }
}

// --- split ---------------------------------------------------------------------------------------------------------

/// A request on its way from the receiver to the core: when it was sent, by whom; T1 is the frame's stamp.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HandOver {
    sent: u64,
    session: u64,
    length: u64,
    request: [u8; 56],
}

/// The kind of what a mover hands over in place of a message that cannot be one.
const REFUSED: u8 = 255;

/// Moves frames from lanes to the core, stamped when they were seen.
struct Mover<C> {
    clock: C,
    from: Vec<Source>,
    to: Writer,
    /// Requests are wrapped with who sent them and when; reports go as they are.
    wrap: bool,
}

impl<C: Clock> Agent for Mover<C> {
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, from, to, wrap } = self;
        let mut done = 0;
        for (session, lane) in from.iter_mut().enumerate() {
            done += lane.turn(|message| {
                let received = clock.ticks();
                if !*wrap {
                    return hand_over(to, received, message.kind, message.payload);
                }
                let mut wrapped =
                    HandOver { sent: message.stamp, session: session as u64, length: 0, request: [0; 56] };
                let length = message.payload.len().min(wrapped.request.len());
                wrapped.length = message.payload.len() as u64;
                wrapped.request[..length].copy_from_slice(&message.payload[..length]);
                hand_over(to, received, message.kind, wrapped.as_bytes())
            })?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        sleep_until_any(&self.from.iter().map(|lane| &lane.reader).collect::<Vec<_>>(), timeout_ns);
    }
}

/// Publishes to the core's lane; the core always catches up, so a full lane is waited for.
fn hand_over(to: &mut Writer, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), OmsError> {
    loop {
        match to.publish(stamp, kind, payload) {
            Ok(_) => return Ok(()),
            Err(PublishError::Full) => tickpath_clock::yield_now(),
            // The core has ended; so will we.
            Err(PublishError::NoReader) => return Ok(()),
            // No message of ours is so long or of such a kind: the core counts an empty one as refused.
            Err(PublishError::TooLarge { .. } | PublishError::Kind(_)) => return hand_over(to, stamp, REFUSED, &[]),
            Err(e) => return Err(OmsError::Lane(e)),
        }
    }
}

/// The core's thread in `split`.
struct CoreAgent<C> {
    clock: C,
    sequencer: Sequencer<C>,
    requests: Reader,
    reports: Reader,
    ticks: Option<Reader>,
}

impl<C: Clock> CoreAgent<C> {
    /// Takes what is there and does nothing with it: the core has failed, and the movers must end.
    fn discard(&mut self) -> Result<usize, OmsError> {
        let requests = turn(&mut self.requests, |_| Ok(()))?;
        Ok(requests + turn(&mut self.reports, |_| Ok(()))?)
    }
}

impl<C: Clock> Agent for CoreAgent<C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { sequencer, requests, reports, ticks, .. } = self;
        let mut done = poll_ticks(ticks, sequencer)?;
        done += turn(requests, |message| match unwrap(message) {
            Some((wrapped, request)) => sequencer.accept(wrapped.session as u16, wrapped.sent, message.stamp, request),
            None => {
                sequencer.refuse();
                Ok(())
            }
        })?;
        done += turn(reports, |message| sequencer.report(message.stamp, message))?;
        if sequencer.queued() > 0 {
            done += sequencer.flush()?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        let mut sources = vec![&self.requests, &self.reports];
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}

/// A request as its mover handed it over; none if it is none.
fn unwrap(message: &Message<'_>) -> Option<(HandOver, Request)> {
    let wrapped = HandOver::read_from_bytes(message.payload).ok()?;
    let request = Request::read(message.kind, wrapped.request.get(..wrapped.length as usize)?).ok()?;
    Some((wrapped, request))
}

fn run_split<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let calibration = *clock.calibration();
    let (sequencer, Inbound { requests, from_venue }) = Sequencer::open(clock.clone(), config)?;
    let (request_writer, request_reader) = inner_lane(config, "core.requests", &calibration)?;
    let (report_writer, report_reader) = inner_lane(config, "core.reports", &calibration)?;
    let mut core =
        CoreAgent { clock: clock.clone(), sequencer, requests: request_reader, reports: report_reader, ticks };
    let requests = requests.into_iter().map(Source::of_client).collect();
    let receiver = Mover { clock: clock.clone(), from: requests, to: request_writer, wrap: true };
    let line = Mover { clock: clock.clone(), from: vec![Source::of_venue(from_venue)], to: report_writer, wrap: false };
    let gaps = thread::scope(|scope| {
        let receiver = spawn(scope, "oms-receiver", config, &clock, receiver, stop);
        let line = spawn(scope, "oms-line", config, &clock, line, stop);
        let mut gaps = Gaps::new(core.clock.clone(), HOST_GAP_NS);
        let settled = settle(config.cpu, config.priority);
        ready();
        let result = settled.and_then(|()| agent::run(&mut core, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Relaxed);
        // A mover may wait for room in the core's lane: take what they hand over until they have ended.
        let mut drained = Ok(());
        while !(receiver.is_finished() && line.is_finished()) {
            match if result.is_ok() && drained.is_ok() { core.poll() } else { core.discard() } {
                Ok(0) => tickpath_clock::yield_now(),
                Ok(_) => {}
                Err(e) => drained = Err(e),
            }
        }
        result.and(drained).and(join(receiver)).and(join(line)).map(|()| gaps.into_found())
    })?;
    while core.poll()? > 0 {}
    core.sequencer.stop()?;
    for name in ["core.requests", "core.reports"] {
        let _ = inner_config(config, name)?.place.remove();
    }
    Ok(gaps)
}

fn inner_config(config: &Config, name: &str) -> Result<LogConfig, OmsError> {
    let lanes = LanesConfig { name: format!("{}.{name}", config.lanes.name), ..config.lanes.clone() };
    // Room for the longest message of either lane.
    let mut lane = lanes.venue_reports()?;
    // Frames in here outlive no process: a lane of an earlier run is of no use.
    lane.place = tickpath_log::Place::shared_memory(&lanes.name).map_err(tickpath_log::OpenError::from)?;
    Ok(lane)
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
    let reader = crate::lanes::attach(&lane, calibration)?;
    Ok((writer, reader))
}

type Ended = Result<(), OmsError>;

/// Runs an agent on a thread of its own beside the core.
fn spawn<'scope, 'env, C: Clock>(
    scope: &'scope thread::Scope<'scope, 'env>,
    name: &str,
    config: &'env Config,
    clock: &C,
    mut agent: impl Agent + Send + 'scope,
    stop: &'env AtomicBool,
) -> thread::ScopedJoinHandle<'scope, Ended> {
    let clock = clock.clone();
    let work = move || {
        // They yield to whoever shares their CPU, and real-time threads never yield to normal ones.
        let mut gaps = Gaps::new(clock, HOST_GAP_NS);
        let settled = settle(config.other_cpu, Priority::Normal);
        let ended = settled.and_then(|()| agent::run(&mut agent, shared_wait(config.wait), stop, &mut gaps));
        if ended.is_err() {
            // An OMS that does not hear is no OMS.
            stop.store(true, Ordering::Relaxed);
        }
        ended
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread can be started")
}

fn join(thread: thread::ScopedJoinHandle<'_, Ended>) -> Ended {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

// --- mutex ---------------------------------------------------------------------------------------------------------

/// A thread that takes the core's lock for each message.
struct Sharer<'a, C> {
    clock: C,
    core: &'a Mutex<Sequencer<C>>,
    from: Vec<Source>,
    ticks: Option<Reader>,
    /// The lane brings the venue's reports, not requests.
    reports: bool,
}

impl<C: Clock> Agent for Sharer<'_, C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, core, from, ticks, reports } = self;
        let mut done = 0;
        if let Some(lane) = ticks {
            done += turn(lane, |message| {
                take_tick(message, |stamp, tick| lock(core).tick(stamp, tick));
                Ok(())
            })?;
        }
        for (session, lane) in from.iter_mut().enumerate() {
            done += lane.turn(|message| {
                let received = clock.ticks();
                let mut sequencer = lock(core);
                match reports {
                    true => sequencer.report(received, message),
                    false => sequencer.request(session as u16, received, message),
                }
            })?;
        }
        if *reports {
            done += lock(core).flush()?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        let mut sources: Vec<&Reader> = self.from.iter().map(|lane| &lane.reader).collect();
        sources.extend(&self.ticks);
        sleep_until_any(&sources, timeout_ns);
    }
}

fn lock<C>(core: &Mutex<Sequencer<C>>) -> MutexGuard<'_, Sequencer<C>> {
    core.lock().expect("no thread panics with the core")
}

fn run_mutex<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let (sequencer, Inbound { requests, from_venue }) = Sequencer::open(clock.clone(), config)?;
    let core = Mutex::new(sequencer);
    let requests = requests.into_iter().map(Source::of_client).collect();
    let mut receiver = Sharer { clock: clock.clone(), core: &core, from: requests, ticks, reports: false };
    let line = Sharer {
        clock: clock.clone(),
        core: &core,
        from: vec![Source::of_venue(from_venue)],
        ticks: None,
        reports: true,
    };
    let gaps = thread::scope(|scope| {
        let line = spawn(scope, "oms-line", config, &clock, line, stop);
        let mut gaps = Gaps::new(receiver.clock.clone(), HOST_GAP_NS);
        let settled = settle(config.cpu, config.priority);
        ready();
        let result = settled.and_then(|()| agent::run(&mut receiver, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Relaxed);
        result.and(join(line)).map(|()| gaps.into_found())
    })?;
    lock(&core).stop()?;
    Ok(gaps)
}
