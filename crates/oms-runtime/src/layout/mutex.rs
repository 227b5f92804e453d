//! `mutex`: receiver and venue line run on a thread each and share the core under a lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use tickpath_clock::{Clock, GapDetector, SchedulingGap, apply_schedule};
use tickpath_log::{Reader, sleep_until_any};

use super::tick_feed::{apply_tick, catch_up_ticks};
use crate::OmsError;
use crate::agent::{self, Agent};
use crate::config::Config;
use crate::lane_source::{LaneSource, poll_log, split_sources};
use crate::sequencer::Sequencer;

/// A thread that takes the core's lock for each message.
struct LockedAgent<'a, C> {
    clock: C,
    core: &'a Mutex<Sequencer<C>>,
    sources: Vec<LaneSource>,
    ticks: Option<Reader>,
    /// Whether this thread does the core's work beside messages.
    does_housekeeping: bool,
}

impl<C: Clock> Agent for LockedAgent<'_, C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, core, sources, ticks, does_housekeeping } = self;
        let mut done = 0;
        if let Some(lane) = ticks {
            done += poll_log(lane, |message| apply_tick(message, || lock(core)))?;
        }
        for source in sources {
            done += source.poll(clock, |lane, event| {
                let received = clock.ticks();
                lock(core).handle_event(lane, received, event)
            })?;
        }
        if *does_housekeeping {
            let mut core = lock(core);
            done += core.poll_lines()?;
            // This layout has no front end.
            done += core.do_housekeeping(done == 0, &mut None)?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        // Work of the core for which nothing wakes the thread.
        let needs_polling = |core: &Sequencer<C>| core.held() > 0 || core.has_lines();
        if self.does_housekeeping && needs_polling(&lock(self.core)) {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.sources.iter().filter_map(LaneSource::reader).collect();
        sources.extend(&self.ticks);
        // Messages of the other thread may leave housekeeping for this thread, and do not wake it.
        let timeout_ns = if self.does_housekeeping { timeout_ns.min(HOUSEKEEPING_NS) } else { timeout_ns };
        sleep_until_any(&sources, timeout_ns);
    }
}

/// Max nanoseconds that a sleeping venue line goes without its housekeeping.
const HOUSEKEEPING_NS: u64 = 200_000;

fn lock<C>(core: &Mutex<Sequencer<C>>) -> MutexGuard<'_, Sequencer<C>> {
    core.lock().expect("no thread panics with the core")
}

/// Runs receiver and venue line until `stop` is set.
pub(super) fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    mut ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<SchedulingGap>, OmsError> {
    let (mut sequencer, inbound) = Sequencer::open(clock.clone(), config)?;
    // Prices first: the venue line releases waiting requests before the receiver has had its first turn.
    catch_up_ticks(&mut ticks, &mut sequencer)?;
    let core = Mutex::new(sequencer);
    let (clients, venues) = split_sources(inbound.sources, |source| source.lane);
    let mut receiver =
        LockedAgent { clock: clock.clone(), core: &core, sources: clients, ticks, does_housekeeping: false };
    let line = LockedAgent { clock: clock.clone(), core: &core, sources: venues, ticks: None, does_housekeeping: true };
    let gaps = thread::scope(|scope| {
        let line = agent::spawn(scope, "oms-line", config, &clock, line, stop);
        let mut gaps = GapDetector::new(receiver.clock.clone());
        let settled = apply_schedule(config.cpu, config.priority).map_err(OmsError::from);
        ready();
        let result = settled.and_then(|()| agent::run(&mut receiver, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Release);
        result.and(agent::join(line)).map(|()| gaps.into_gaps())
    })?;
    lock(&core).stop()?;
    Ok(gaps)
}
