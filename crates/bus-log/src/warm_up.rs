//! Warm-up while there is nothing to do, so that the next message finds its code and cache lines warm: the lines are
//! prefetched, and the code is run on a private log. Design: `docs/design/warm-up.md`.

use tickpath_log::WarmUpLog;

/// Idle turns between two warm-up runs: some ten microseconds, of which a run takes two tenths.
const IDLE_TURNS: u32 = 256;

/// Warm-up of one end, and its schedule.
pub(crate) struct IdleWarmUp<T> {
    turns: u32,
    state: IdleWarmUpState<T>,
}

enum IdleWarmUpState<T> {
    New,
    /// Objects of the warm-up, and its message, as long as the last real one.
    Ready(Box<T>, Vec<u8>),
    Off,
}

impl<T> IdleWarmUp<T> {
    pub(crate) fn new() -> Self {
        Self { turns: 0, state: IdleWarmUpState::New }
    }

    pub(crate) fn set_enabled(&mut self, keep: bool) {
        match (keep, &self.state) {
            (false, _) => self.state = IdleWarmUpState::Off,
            (true, IdleWarmUpState::Off) => self.state = IdleWarmUpState::New,
            (true, _) => {}
        }
    }

    /// Counts a turn without work; returns true if a warm-up run is due.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(IDLE_TURNS)
    }

    /// Returns the number of turns without work since the last work.
    #[inline(always)]
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// Schedules a warm-up run for the next turn without work: a sleep has left everything cold.
    pub(crate) fn schedule_next(&mut self) {
        self.turns = IDLE_TURNS - 1;
    }

    /// Postpones the warm-up: there was work, and more may be near.
    pub(crate) fn postpone(&mut self) {
        self.turns = 0;
    }

    /// Returns the objects of a warm-up run, and a message of this length; none if they cannot be made, or it is off.
    pub(crate) fn prepare(&mut self, make: impl FnOnce() -> Option<T>, bytes: usize) -> Option<(&mut T, &[u8])> {
        if let IdleWarmUpState::New = self.state {
            self.state = make().map_or(IdleWarmUpState::Off, |made| IdleWarmUpState::Ready(Box::new(made), Vec::new()));
        }
        let IdleWarmUpState::Ready(stage, message) = &mut self.state else { return None };
        message.resize(bytes.min(WarmUpLog::MAX_PAYLOAD), 0);
        Some((stage, message))
    }
}
