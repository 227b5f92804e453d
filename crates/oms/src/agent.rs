//! Duty cycles.

use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_clock::{Clock, Gaps, Wait};

use crate::OmsError;

/// The longest that a sleeping agent goes without looking whether it should stop.
const SLEEP_NS: u64 = 10_000_000;

/// Work that is done in turns.
pub trait Agent {
    /// Does what there is to do now; says how much that was.
    fn poll(&mut self) -> Result<usize, OmsError>;

    /// Sleeps until there may be work, or `timeout_ns` is over.
    fn sleep(&mut self, timeout_ns: u64);
}

/// Runs an agent until it is told to stop and finds no more work.
pub fn run<C: Clock>(
    agent: &mut impl Agent,
    wait: Wait,
    stop: &AtomicBool,
    gaps: &mut Gaps<C>,
) -> Result<(), OmsError> {
    loop {
        if agent.poll()? > 0 {
            gaps.busy_turn();
            continue;
        }
        // Pairs with the Release of who says it: what was published before the stop is seen, and still taken.
        if stop.load(Ordering::Acquire) {
            while agent.poll()? > 0 {}
            return Ok(());
        }
        match wait {
            Wait::Busy => gaps.empty_turn(),
            Wait::Yield => tickpath_clock::yield_now(),
            Wait::Block => agent.sleep(SLEEP_NS),
        }
    }
}
