//! Warm-up while there is nothing to do, so that the next message finds its code and cache lines warm: the lines are
//! prefetched, and the code is run on a private log.

use tickpath_log::Rehearsal;

/// Idle turns between two warm-up runs: some ten microseconds, of which a run takes two tenths.
const EVERY: u32 = 256;

/// Warm-up of one end, and its schedule.
pub(crate) struct Warm<T> {
    /// Turns without work.
    turns: u32,
    state: State<T>,
}

enum State<T> {
    New,
    /// Objects of the warm-up, and its message, as long as the last real one.
    On(Box<T>, Vec<u8>),
    Off,
}

impl<T> Warm<T> {
    pub(crate) fn new() -> Self {
        Self { turns: 0, state: State::New }
    }

    pub(crate) fn keep(&mut self, keep: bool) {
        match (keep, &self.state) {
            (false, _) => self.state = State::Off,
            (true, State::Off) => self.state = State::New,
            (true, _) => {}
        }
    }

    /// Counts a turn without work; returns true if a warm-up run is due.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(EVERY)
    }

    /// Returns the number of turns without work since the last work.
    #[inline(always)]
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// Schedules a warm-up run for the next turn without work: a sleep has left everything cold.
    pub(crate) fn is_cold(&mut self) {
        self.turns = EVERY - 1;
    }

    /// Postpones the warm-up: there was work, and more may be near.
    pub(crate) fn has_worked(&mut self) {
        self.turns = 0;
    }

    /// Returns the objects of a warm-up run, and a message of this length; none if they cannot be made, or the warm-up
    /// is off.
    pub(crate) fn stage(&mut self, make: impl FnOnce() -> Option<T>, bytes: usize) -> Option<(&mut T, &[u8])> {
        if let State::New = self.state {
            self.state = make().map_or(State::Off, |made| State::On(Box::new(made), Vec::new()));
        }
        let State::On(stage, message) = &mut self.state else { return None };
        message.resize(bytes.min(Rehearsal::MAX_PAYLOAD), 0);
        Some((stage, message))
    }
}
