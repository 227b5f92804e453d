//! Since when what comes now can have lain unread: a process that stood still reads late what came early.

use std::time::Duration;

use tickpath_clock::Clock;

/// Beats within the silence that a puller may keep.
const BEATS: u32 = 16;

/// The beats of a thread that looks at least so often what has come.
///
/// What came before the beat before the last one was read by the last one. So what is read now came after it, also if
/// the process stood still since.
pub(crate) struct Pulse<C> {
    clock: C,
    interval: Duration,
    /// The beat before the last one, in ticks.
    before: u64,
    /// The last one, in ticks.
    last: u64,
}

impl<C: Clock> Pulse<C> {
    /// Of a thread that beats often enough for this silence, from now on.
    pub fn new(clock: C, silence: Duration) -> Self {
        let now = clock.ticks();
        Self { clock, interval: silence / BEATS, before: now, last: now }
    }

    /// The time between two beats.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Begins anew: nothing that came before is read any more.
    pub fn restart(&mut self) {
        let now = self.clock.ticks();
        (self.before, self.last) = (now, now);
    }

    /// The thread is awake: a beat, if it is time for one.
    pub fn beat(&mut self) {
        let now = self.clock.ticks();
        if self.clock.ns_between(self.last, now) >= self.interval.as_nanos() as i64 {
            (self.before, self.last) = (self.last, now);
        }
    }

    /// How long ago that was.
    pub fn age(&self, ticks: u64) -> Duration {
        age(&self.clock, ticks)
    }

    /// Since when what is read now can have lain here, in ticks.
    pub fn since(&self) -> u64 {
        self.before
    }
}

/// How long ago that was by this clock.
pub(crate) fn age(clock: &impl Clock, ticks: u64) -> Duration {
    let ns = clock.ns_between(ticks, clock.ticks());
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

/// For how long a message is surely ours to give back, with some room; later it may be in other hands.
pub(crate) fn ours(silence: Duration) -> Duration {
    silence * 3 / 4
}

#[cfg(test)]
mod tests {
    use tickpath_clock::SimulatedClock;

    use super::*;

    #[test]
    fn what_is_read_after_a_process_stood_still_is_as_old_as_that() {
        let clock = SimulatedClock::at(0);
        let mut pulse = Pulse::new(clock.clone(), Duration::from_nanos(1600));
        // Awake all the time: never more than two beats old.
        for _ in 0..100 {
            clock.advance(30);
            pulse.beat();
            assert!(clock.ticks() - pulse.since() <= 260, "{} at {}", pulse.since(), clock.ticks());
        }
        let halted = clock.ticks();
        clock.advance(5000);
        // Whatever wakes it, before or after it has read what came meanwhile.
        pulse.beat();
        pulse.beat();
        assert!(pulse.since() <= halted);
        for _ in 0..2 {
            clock.advance(100);
            pulse.beat();
        }
        assert!(pulse.since() > halted, "what comes now is new");
        clock.advance(7000);
        pulse.restart();
        assert_eq!(pulse.since(), clock.ticks(), "another connection");
    }
}
