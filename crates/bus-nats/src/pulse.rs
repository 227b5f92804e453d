//! A lower bound for the arrival time of messages: a process that was paused reads late what came early.

use std::time::Duration;

use tickpath_clock::Clock;

/// The number of beats within a puller's silence.
const BEATS: u32 = 16;

/// The beats of a thread that looks for messages at least this often.
///
/// Messages that came before the last beat but one were read by the last beat. So a message that is read now came after
/// the last beat but one, also if the process was paused since.
pub(crate) struct Pulse<C> {
    clock: C,
    interval: Duration,
    /// The time of the last beat but one, in ticks.
    previous: u64,
    last: u64,
}

impl<C: Clock> Pulse<C> {
    /// Starts the beats of a thread, often enough for this silence.
    pub fn new(clock: C, silence: Duration) -> Self {
        let now = clock.ticks();
        Self { clock, interval: silence / BEATS, previous: now, last: now }
    }

    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Restarts the beats: messages that came before are never read.
    pub fn restart(&mut self) {
        let now = self.clock.ticks();
        (self.previous, self.last) = (now, now);
    }

    pub fn beat(&mut self) {
        let now = self.clock.ticks();
        if self.clock.ns_between(self.last, now) >= self.interval.as_nanos() as i64 {
            (self.previous, self.last) = (self.last, now);
        }
    }

    pub fn age(&self, ticks: u64) -> Duration {
        age(&self.clock, ticks)
    }

    /// Returns the earliest possible arrival time of messages that are read now, in ticks.
    pub fn since(&self) -> u64 {
        self.previous
    }
}

/// Returns the time since `ticks` by this clock.
pub(crate) fn age(clock: &impl Clock, ticks: u64) -> Duration {
    let ns = clock.ns_between(ticks, clock.ticks());
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

/// Returns how long a message surely belongs to a puller that may give it back, with a margin; later another puller may
/// have it.
pub(crate) fn safe_hold_time(silence: Duration) -> Duration {
    silence * 3 / 4
}

#[cfg(test)]
mod tests {
    use tickpath_clock::SimulatedClock;

    use super::*;

    #[test]
    fn messages_read_after_a_pause_count_as_old_as_the_pause() {
        let clock = SimulatedClock::at(0);
        let mut pulse = Pulse::new(clock.clone(), Duration::from_nanos(1600));
        // Never paused: `since` is never more than two beats old.
        for _ in 0..100 {
            clock.advance(30);
            pulse.beat();
            assert!(clock.ticks() - pulse.since() <= 260, "{} at {}", pulse.since(), clock.ticks());
        }
        let halted = clock.ticks();
        clock.advance(5000);
        // Two beats, one before and one after reading what came meanwhile.
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
