//! `mutex`: receiving and venue line have a thread each and share the core under a lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use tickpath_clock::{Clock, settle};
use tickpath_log::{Reader, sleep_until_any};

use super::source::{Source, take_tick, turn};
use super::{Config, join, spawn};
use crate::OmsError;
use crate::agent::{self, Agent, Gap, Gaps};
use crate::recover::Inbound;
use crate::sequencer::Sequencer;

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

/// Runs receiver and venue line until they are told to stop.
pub(super) fn run<C: Clock + Sync>(
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
        let mut gaps = Gaps::new(receiver.clock.clone());
        let settled = settle(config.cpu, config.priority).map_err(OmsError::from);
        ready();
        let result = settled.and_then(|()| agent::run(&mut receiver, config.wait, stop, &mut gaps));
        stop.store(true, Ordering::Release);
        result.and(join(line)).map(|()| gaps.into_found())
    })?;
    lock(&core).stop()?;
    Ok(gaps)
}
