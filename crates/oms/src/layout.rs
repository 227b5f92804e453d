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

mod inline;
mod mutex;
mod source;
mod split;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::{Clock, Gap, Gaps, Priority, Wait, settle};
use tickpath_log::{Config as LogConfig, OpenError, Reader};

use crate::OmsError;
use crate::agent::{self, Agent};
use crate::front::{Front, NoFront, Opening};
use crate::lanes::{LaneKind, LanesConfig};
use crate::sequencer::{Desk, Sequencer};

pub use inline::Inline;
pub use source::Event;
pub(crate) use source::Source;

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
    /// What is said to sessions without lanes is kept as a [history](crate::history), for a front that tells them.
    pub history: bool,
    /// Inputs between two snapshots, and one at the end of a day; zero for none. They are made by a thread beside the core,
    /// which takes as much memory as the core itself.
    pub snapshot_every: u64,
    /// What is random otherwise, for tests that must come out the same: none.
    pub seed: Option<u64>,
}

impl Config {
    /// Says which OMS it is, where another one has the journal or the lanes.
    fn who_runs(&self, e: OmsError) -> OmsError {
        let (place, pid, writes) = match &e {
            OmsError::Open(OpenError::HasWriter { place, pid }) => (place, *pid, true),
            OmsError::Open(OpenError::HasReader { place, pid }) => (place, *pid, false),
            _ => return e,
        };
        if *place == self.journal.place {
            return OmsError::Runs { pid, has: format!("on the journal {place}") };
        }
        let is_it = |kind: &LaneKind| self.lanes.lane(*kind).is_ok_and(|lane| lane.place == *place);
        match self.lanes.kinds().find(is_it) {
            // The other ends are those of clients and venues.
            Some(kind) if kind.is_outbound() == writes && !kind.is_of_session() => {
                OmsError::Runs { pid, has: format!("of the name '{}'", self.lanes.name) }
            }
            _ => e,
        }
    }
}

/// Runs an OMS on its threads until it is told to stop; what was published before `stop` was set, by a Release, is still
/// taken. Calls `ready` when lanes and journal are open. Gives the gaps that the host made on the core's thread.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    run_with(clock, config, None::<fn(&mut Sequencer<C>, Opening) -> Result<NoFront, OmsError>>, ticks, stop, ready)
}

/// The same with a front, which is opened once lanes and journal are.
pub fn run_with<C: Clock + Sync, F: Front>(
    clock: C,
    config: &Config,
    front: Option<impl FnOnce(&mut Sequencer<C>, Opening) -> Result<F, OmsError>>,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    run_on(clock, config, front, ticks, stop, ready).map_err(|e| config.who_runs(e))
}

fn run_on<C: Clock + Sync, F: Front>(
    clock: C,
    config: &Config,
    front: Option<impl FnOnce(&mut Sequencer<C>, Opening) -> Result<F, OmsError>>,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    match config.layout {
        Layout::Inline => {
            // Opened first: its side threads must not share the core's CPU.
            let mut agent = Inline::with_front(clock.clone(), config, front, ticks)?;
            settle(config.cpu, config.priority)?;
            ready();
            let mut gaps = Gaps::new(clock);
            agent::run(&mut agent, config.wait, stop, &mut gaps)?;
            agent.sequencer().stop()?;
            Ok(gaps.into_found())
        }
        Layout::Split => split::run(clock, config, front, ticks, stop, ready),
        Layout::Mutex if front.is_some() => Err(OmsError::NoServer),
        Layout::Mutex => mutex::run(clock, config, ticks, stop, ready),
    }
}

/// Threads that share a processor must give it to each other.
fn shared_wait(wait: Wait) -> Wait {
    match wait {
        Wait::Busy | Wait::Yield => Wait::Yield,
        Wait::Block => Wait::Block,
    }
}

/// The lanes of clients and operators, and those of venues: each for a thread.
fn split_sources<S: HasLane>(sources: impl IntoIterator<Item = S>) -> (Vec<S>, Vec<S>) {
    sources.into_iter().partition(|source| !matches!(source.lane(), LaneKind::VenueReports(_)))
}

/// A source, or one with its place.
trait HasLane {
    fn lane(&self) -> LaneKind;
}

impl HasLane for Source {
    fn lane(&self) -> LaneKind {
        Source::lane(self)
    }
}

impl HasLane for (usize, Source) {
    fn lane(&self) -> LaneKind {
        self.1.lane()
    }
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
        let mut gaps = Gaps::new(clock);
        let settled = settle(config.other_cpu, Priority::Normal).map_err(OmsError::from);
        let ended = settled.and_then(|()| agent::run(&mut agent, shared_wait(config.wait), stop, &mut gaps));
        if ended.is_err() {
            // An OMS that does not hear is no OMS.
            stop.store(true, Ordering::Release);
        }
        ended
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread can be started")
}

fn join(thread: thread::ScopedJoinHandle<'_, Ended>) -> Ended {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
