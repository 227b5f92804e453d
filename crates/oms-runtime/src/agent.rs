//! Duty cycles, and the threads that run them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::{AdaptiveWait, Clock, GapDetector, IdleAction, Priority, Wait, apply_schedule};

use crate::OmsError;
use crate::config::Config;

/// Max nanoseconds that a sleeping agent goes without a check of `stop`.
const SLEEP_NS: u64 = 10_000_000;

/// Work that is done in turns.
pub trait Agent {
    /// Does the pending work; returns its amount.
    fn poll(&mut self) -> Result<usize, OmsError>;

    /// Uses a spinning turn without work to keep the path of the next message warm. Returns true if that took time.
    fn idle(&mut self) -> bool {
        false
    }

    /// Sleeps until there may be work, or `timeout_ns` is over.
    fn sleep(&mut self, timeout_ns: u64);
}

/// Runs an agent until `stop` is set and no work is left.
pub fn run<C: Clock>(
    agent: &mut impl Agent,
    wait: Wait,
    stop: &AtomicBool,
    gaps: &mut GapDetector<C>,
) -> Result<(), OmsError> {
    let mut rests = (wait == Wait::Adaptive).then(|| AdaptiveWait::new(gaps.clock().clone()));
    loop {
        if agent.poll()? > 0 {
            gaps.busy_turn();
            rests.iter_mut().for_each(AdaptiveWait::note_work);
            continue;
        }
        // Pairs with the Release of the thread that sets it: messages published before the stop are seen, and still
        // taken.
        if stop.load(Ordering::Acquire) {
            while agent.poll()? > 0 {}
            return Ok(());
        }
        match wait {
            Wait::Busy => {
                // A warm-up of our own is no gap.
                match agent.idle() {
                    true => gaps.busy_turn(),
                    false => gaps.empty_turn(),
                }
            }
            Wait::Yield => tickpath_clock::yield_now(),
            Wait::Block => agent.sleep(SLEEP_NS),
            Wait::Adaptive => rests.iter_mut().for_each(|rests| match rests.next_action(SLEEP_NS) {
                IdleAction::Sleep(ns) => {
                    agent.sleep(ns);
                    rests.note_wake_up();
                }
                IdleAction::Spin | IdleAction::Yield => _ = agent.idle(),
            }),
        }
    }
}

type AgentResult = Result<(), OmsError>;

/// Runs an agent on a thread of its own beside the core.
pub(crate) fn spawn<'scope, 'env, C: Clock>(
    scope: &'scope thread::Scope<'scope, 'env>,
    name: &str,
    config: &'env Config,
    clock: &C,
    mut agent: impl Agent + Send + 'scope,
    stop: &'env AtomicBool,
) -> thread::ScopedJoinHandle<'scope, AgentResult> {
    let clock = clock.clone();
    let work = move || {
        // These threads share a CPU and must yield it, and real-time threads never yield to normal ones.
        let wait = if config.wait.sleeps() { Wait::Block } else { Wait::Yield };
        let mut gaps = GapDetector::new(clock);
        let settled = apply_schedule(config.other_cpu, Priority::Normal).map_err(OmsError::from);
        let ended = settled.and_then(|()| run(&mut agent, wait, stop, &mut gaps));
        if ended.is_err() {
            // An OMS that receives nothing must stop.
            stop.store(true, Ordering::Release);
        }
        ended
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread can be started")
}

/// Waits for an agent's thread and returns its result; a panic of the thread resumes here.
pub(crate) fn join(thread: thread::ScopedJoinHandle<'_, AgentResult>) -> AgentResult {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
