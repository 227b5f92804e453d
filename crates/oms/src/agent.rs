//! Duty cycles, and what the host takes from them.

use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_clock::{Clock, HOST_GAP_NS, Wait};

use crate::OmsError;

/// The longest that a sleeping agent goes without looking whether it should stop.
const SLEEP_NS: u64 = 10_000_000;

/// Empty turns between two looks at the clock: some hundred nanoseconds.
const LOOK_EVERY: u32 = 16;

/// Work that is done in turns.
pub trait Agent {
    /// Does what there is to do now; says how much that was.
    fn poll(&mut self) -> Result<usize, OmsError>;

    /// Sleeps until there may be work, or `timeout_ns` is over.
    fn sleep(&mut self, timeout_ns: u64);
}

/// A stretch of time in which a thread wanted to run and did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last moment at which it ran, in ticks.
    pub from: u64,
    /// The next moment at which it ran, in ticks.
    pub to: u64,
}

/// Watches for gaps between two empty turns of a spinning thread. Only those are the host's: in between the thread did
/// nothing but ask for work, so a gap during work never counts.
#[derive(Debug)]
pub struct Gaps<C> {
    clock: C,
    threshold: u64,
    last_empty: Option<u64>,
    /// Empty turns since the last look at the clock.
    turns: u32,
    found: Vec<Gap>,
}

impl<C: Clock> Gaps<C> {
    /// Gaps from [`HOST_GAP_NS`] on.
    pub fn new(clock: C) -> Self {
        let threshold = clock.calibration().ticks_of_ns(HOST_GAP_NS);
        Self { clock, threshold, last_empty: None, turns: 0, found: Vec::with_capacity(1 << 16) }
    }

    /// Notes a turn that found no work. Only some turns look at the clock: that costs as much as a turn, and a message
    /// that comes meanwhile would wait for it.
    #[inline(always)]
    pub fn empty_turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(LOOK_EVERY) {
            self.look();
        }
    }

    #[inline(never)]
    fn look(&mut self) {
        let now = self.clock.ticks();
        if let Some(from) = self.last_empty
            && now - from > self.threshold
        {
            self.found.push(Gap { from, to: now });
        }
        self.last_empty = Some(now);
    }

    /// Notes a turn that found work, or one in which the thread slept of its own will.
    #[inline(always)]
    pub fn busy_turn(&mut self) {
        self.last_empty = None;
        self.turns = 0;
    }

    /// What was found.
    pub fn into_found(self) -> Vec<Gap> {
        self.found
    }
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
