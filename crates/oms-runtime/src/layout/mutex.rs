//! `mutex`: receiver and venue line run on a thread each and share the core under a lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use tickpath_clock::{Clock, Gap, Gaps, settle};
use tickpath_log::{Reader, sleep_until_any};

use super::source::{Source, open_ticks, split_sources, take_tick, turn};
use crate::OmsError;
use crate::agent::{self, Agent};
use crate::config::Config;
use crate::sequencer::Sequencer;

/// A thread that takes the core's lock for each message.
struct Sharer<'a, C> {
    clock: C,
    core: &'a Mutex<Sequencer<C>>,
    from: Vec<Source>,
    ticks: Option<Reader>,
    /// Whether this thread does the core's work beside messages.
    does_chores: bool,
}

impl<C: Clock> Agent for Sharer<'_, C> {
    #[inline]
    fn poll(&mut self) -> Result<usize, OmsError> {
        let Self { clock, core, from, ticks, does_chores } = self;
        let mut done = 0;
        if let Some(lane) = ticks {
            done += turn(lane, |message| take_tick(message, || lock(core)))?;
        }
        for source in from {
            done += source.turn(clock, |lane, event| {
                let received = clock.ticks();
                lock(core).event(lane, received, event)
            })?;
        }
        if *does_chores {
            let mut core = lock(core);
            done += core.poll_lines()?;
            done += core.chores(done == 0)?;
        }
        Ok(done)
    }

    fn sleep(&mut self, timeout_ns: u64) {
        if self.does_chores && is_watched(&lock(self.core)) {
            return tickpath_clock::yield_now();
        }
        let mut sources: Vec<&Reader> = self.from.iter().filter_map(Source::reader).collect();
        sources.extend(&self.ticks);
        // Messages of the other thread may leave chores for this thread, and do not wake it.
        let timeout_ns = if self.does_chores { timeout_ns.min(CHORES_NS) } else { timeout_ns };
        sleep_until_any(&sources, timeout_ns);
    }
}

/// Max nanoseconds that a sleeping venue line goes without its chores.
const CHORES_NS: u64 = 200_000;

/// Returns whether the core may have work for which nothing wakes the thread.
fn is_watched<C: Clock>(core: &Sequencer<C>) -> bool {
    core.held() > 0 || core.has_lines()
}

fn lock<C>(core: &Mutex<Sequencer<C>>) -> MutexGuard<'_, Sequencer<C>> {
    core.lock().expect("no thread panics with the core")
}

/// Runs receiver and venue line until `stop` is set.
pub(super) fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let (mut sequencer, inbound) = Sequencer::open(clock.clone(), config)?;
    let mut ticks = ticks;
    // Prices first: the venue line releases waiting requests before the receiver has had its first turn.
    open_ticks(&mut ticks, &mut sequencer)?;
    let core = Mutex::new(sequencer);
    let (clients, venues) = split_sources(inbound.sources, Source::lane);
    let mut receiver = Sharer { clock: clock.clone(), core: &core, from: clients, ticks, does_chores: false };
    let line = Sharer { clock: clock.clone(), core: &core, from: venues, ticks: None, does_chores: true };
    let gaps = thread::scope(|scope| {
        let line = agent::spawn(scope, "oms-line", config, &clock, line, stop);
        let mut gaps = Gaps::new(receiver.clock.clone());
        let settled = settle(config.cpu, config.priority).map_err(OmsError::from);
        ready();
        let result = settled.and_then(|()| agent::run(&mut receiver, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Release);
        result.and(agent::join(line)).map(|()| gaps.into_found())
    })?;
    lock(&core).stop()?;
    Ok(gaps)
}
