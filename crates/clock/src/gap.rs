//! What the host takes from a spinning thread.

use crate::clock::Clock;
use crate::pace::HOST_GAP_NS;

/// Empty turns between two looks at the clock: some hundred nanoseconds.
const LOOK_EVERY: u32 = 16;

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
