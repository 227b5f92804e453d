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
mod split;
mod tick_feed;

use std::sync::atomic::AtomicBool;

use tickpath_clock::{Clock, GapDetector, SchedulingGap, Wait, WakeUpCost, apply_schedule};
use tickpath_log::{LogOpenError, Reader};
use tickpath_oms_journal::LaneKind;

use crate::OmsError;
use crate::agent;
use crate::front_end::{FrontEndState, OpenFrontEnd, OpenNoFrontEnd, SessionFrontEnd};
use crate::sequencer::Sequencer;

pub use crate::config::{Config, Layout, ParseLayoutError};
pub use crate::lanes::InputEvent;
pub use inline::Inline;

impl Config {
    /// Returns the error with the process that already has the journal or the lanes, if that process is another OMS.
    fn name_running_oms(&self, e: OmsError) -> OmsError {
        let (place, pid, writes) = match &e {
            OmsError::Open(LogOpenError::HasWriter { place, pid }) => (place, *pid, true),
            OmsError::Open(LogOpenError::HasReader { place, pid }) => (place, *pid, false),
            _ => return e,
        };
        if *place == self.journal.path {
            return OmsError::AlreadyRunning { pid, has: format!("on the journal {place}") };
        }
        let is_it = |kind: &LaneKind| self.lanes.lane(*kind).is_ok_and(|lane| lane.path == *place);
        match self.lanes.kinds().find(is_it) {
            // The other ends belong to clients and venues.
            Some(kind) if kind.is_outbound() == writes && !kind.is_session_lane() => {
                OmsError::AlreadyRunning { pid, has: format!("of the name '{}'", self.lanes.name) }
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
) -> Result<Vec<SchedulingGap>, OmsError> {
    run_with(clock, config, None::<OpenNoFrontEnd<C>>, ticks, stop, ready)
}

/// Runs an OMS with a front end, which is opened after lanes and journal.
pub fn run_with<C: Clock + Sync, F: SessionFrontEnd>(
    clock: C,
    config: &Config,
    front: Option<impl FnOnce(&mut Sequencer<C>, FrontEndState) -> Result<OpenFrontEnd<C, F>, OmsError>>,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<SchedulingGap>, OmsError> {
    // Measured here, so that the first orders do not pay for it.
    (config.wait == Wait::Adaptive).then(WakeUpCost::of_this_host);
    let run = || -> Result<_, OmsError> {
        match config.layout {
            Layout::Inline => {
                let has_front = front.is_some();
                // Opened before the thread is pinned: side threads must not share the core's CPU.
                let mut agent = Inline::with_front_end(clock.clone(), config, front, ticks)?;
                apply_schedule(config.cpu, config.priority)?;
                ready();
                // A check of sockets is a system call; a check of lanes is a memory access.
                let mut gaps = GapDetector::new(clock).with_kernel_calls(has_front || agent.sequencer().has_lines());
                agent::run(&mut agent, config.wait, stop, &mut gaps)?;
                agent.sequencer().stop()?;
                Ok(gaps.into_gaps())
            }
            Layout::Split => split::run(clock, config, front, ticks, stop, ready),
            Layout::Mutex if front.is_some() => Err(OmsError::NoServer),
            Layout::Mutex => mutex::run(clock, config, ticks, stop, ready),
        }
    };
    run().map_err(|e| config.name_running_oms(e))
}
