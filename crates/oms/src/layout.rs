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

use std::sync::atomic::AtomicBool;

use tickpath_clock::{Clock, Gap, Gaps, Wait, WakeUp, settle};
use tickpath_log::{OpenError, Reader};
use tickpath_oms_journal::LaneKind;

use crate::OmsError;
use crate::agent;
use crate::front::{Front, NoFront, Opening};
use crate::sequencer::Sequencer;

pub use crate::config::{Config, Layout, ParseLayoutError};
pub use crate::lanes::Event;
pub use inline::Inline;
pub(crate) use source::Source;

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
    // What that takes is not taken from the first orders.
    (config.wait == Wait::Adaptive).then(WakeUp::of_this_host);
    match config.layout {
        Layout::Inline => {
            let has_front = front.is_some();
            // Opened first: its side threads must not share the core's CPU.
            let mut agent = Inline::with_front(clock.clone(), config, front, ticks)?;
            settle(config.cpu, config.priority)?;
            ready();
            // A look at sockets is a call to the kernel, and lanes are memory.
            let mut gaps = Gaps::new(clock).of_calls(has_front || agent.sequencer().has_lines());
            agent::run(&mut agent, config.wait, stop, &mut gaps)?;
            agent.sequencer().stop()?;
            Ok(gaps.into_found())
        }
        Layout::Split => split::run(clock, config, front, ticks, stop, ready),
        Layout::Mutex if front.is_some() => Err(OmsError::NoServer),
        Layout::Mutex => mutex::run(clock, config, ticks, stop, ready),
    }
}
