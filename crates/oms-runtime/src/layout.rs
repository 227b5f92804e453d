//! Thread layouts: the assignment of the work to threads.
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
//! With two processors the core of `split` has its own, and the other threads share the second.

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
    /// Returns the error with the process that already has the journal or the lanes, if that process is another OMS.
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
            // The other ends belong to clients and venues.
            Some(kind) if kind.is_outbound() == writes && !kind.is_of_session() => {
                OmsError::Runs { pid, has: format!("of the name '{}'", self.lanes.name) }
            }
            _ => e,
        }
    }
}

/// Runs an OMS on its threads until `stop` is set; messages published before that, ordered by a Release, are still
/// taken. Calls `ready` when lanes and journal are open, and returns the gaps that the host caused on the core's
/// thread.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    run_with(clock, config, None::<fn(&mut Sequencer<C>, Opening) -> Result<NoFront, OmsError>>, ticks, stop, ready)
}

/// Runs an OMS with a front end, which is opened after lanes and journal.
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
    // Measured here, so that the first orders do not pay for it.
    (config.wait == Wait::Adaptive).then(WakeUp::of_this_host);
    match config.layout {
        Layout::Inline => {
            let has_front = front.is_some();
            // Opened before the thread is pinned: side threads must not share the core's CPU.
            let mut agent = Inline::with_front(clock.clone(), config, front, ticks)?;
            settle(config.cpu, config.priority)?;
            ready();
            // A check of sockets is a system call; a check of lanes is a memory access.
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
