//! What is done while there is nothing to do, so that the next message finds its way warm: its lines are asked for, and
//! the code is run on a log of which nobody else knows.

use tickpath_log::Rehearsal;

/// Turns without work between two rehearsals: some ten microseconds, of which one takes two tenths.
const EVERY: u32 = 256;

/// A rehearsal of one end, and when it is due.
pub(crate) struct Warm<T> {
    /// Turns without work.
    turns: u32,
    state: State<T>,
}

enum State<T> {
    New,
    /// What it is rehearsed on. Its messages have the length of the last real one.
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

    /// Notes a turn without work; true if a rehearsal is due.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(EVERY)
    }

    /// Turns without work since there was some.
    #[inline(always)]
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// The next turn without work is due: a sleep has left everything cold.
    pub(crate) fn is_cold(&mut self) {
        self.turns = EVERY - 1;
    }

    /// There was work, and more may be near: nothing is due for a while.
    pub(crate) fn has_worked(&mut self) {
        self.turns = 0;
    }

    /// What to rehearse on, and a message of this length; none if there is nothing.
    pub(crate) fn stage(&mut self, make: impl FnOnce() -> Option<T>, bytes: usize) -> Option<(&mut T, &[u8])> {
        if let State::New = self.state {
            self.state = make().map_or(State::Off, |made| State::On(Box::new(made), Vec::new()));
        }
        let State::On(stage, message) = &mut self.state else { return None };
        message.resize(bytes.min(Rehearsal::MAX_PAYLOAD), 0);
        Some((stage, message))
    }
}
