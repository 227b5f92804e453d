//! Sending at intended times, and measuring the lateness.

use std::convert::Infallible;

use crate::gap::{GapRecorder, HOST_GAP_NS};
use crate::{Clock, GapCause, SchedulingGap, Wait, relax, sleep_ns, yield_now};

/// Time before an intended time from which a pacer no longer yields the processor: longer than a yield takes to return
/// on a shared core.
const SPIN_NS: u64 = 20_000;

/// Time before an intended time from which a spinning pacer makes no pauses.
const NEAR_NS: u64 = 500;

/// Time before an intended time at which a blocking pacer ends its sleep: longer than a timer's delay.
const SLEEP_MARGIN_NS: u64 = 200_000;

/// Shortest call or sleep that may have been a stop of the whole process.
const MIN_STOP_NS: u64 = 100_000;

/// A clock-driven sender's wait for intended times.
#[derive(Debug)]
pub struct Pacer<C> {
    clock: C,
    wait: Wait,
    spin: u64,
    margin: u64,
    near: u64,
    gap: u64,
    stop: u64,
    last: Option<u64>,
    recorder: GapRecorder,
}

impl<C: Clock> Pacer<C> {
    /// Makes a pacer with a wait strategy: `busy` spins, `yield` gives the core to others until shortly before the
    /// time, `block` and `adaptive` sleep until shortly before the time.
    pub fn new(clock: C, wait: Wait) -> Self {
        let ticks = |ns| clock.calibration().ticks_of_ns(ns);
        let [spin, margin, near] = [SPIN_NS, SLEEP_MARGIN_NS, NEAR_NS].map(ticks);
        let [gap, stop] = [HOST_GAP_NS, MIN_STOP_NS].map(ticks);
        Self { clock, wait, spin, margin, near, gap, stop, last: None, recorder: GapRecorder::for_blocking_calls() }
    }

    /// Waits until `intended` (ticks), and returns the ticks then; at once if the time has passed.
    #[inline]
    pub fn until(&mut self, intended: u64) -> u64 {
        let Ok(now) = self.until_with_work(intended, |rest| {
            rest.perform();
            Ok::<_, Infallible>(false)
        });
        now
    }

    /// Waits like [`Self::until`], for a thread that has other work meanwhile: `turn` does some and returns true, or
    /// takes the rest. No turn begins shortly before the time.
    #[inline]
    pub fn until_with_work<E>(
        &mut self,
        intended: u64,
        mut turn: impl FnMut(IdleAction) -> Result<bool, E>,
    ) -> Result<u64, E> {
        // Set if only spinning lies between the last reading and the next.
        let mut has_spun = false;
        loop {
            let mut now = self.clock.ticks();
            let since_last = self.last.map_or(0, |last| now.saturating_sub(last));
            if since_last > self.gap {
                now = self.note_delay(now, since_last, has_spun);
            }
            self.last = Some(now);
            let left = intended.wrapping_sub(now) as i64;
            if left <= 0 {
                return Ok(now);
            }
            let rest = match self.wait {
                wait if wait.sleeps() && left as u64 > self.margin => {
                    IdleAction::Sleep(self.clock.calibration().ns(left - self.margin as i64) as u64)
                }
                wait if wait != Wait::Busy && left as u64 > self.spin => IdleAction::Yield,
                _ if left as u64 > self.near => IdleAction::Spin,
                // The last stretch is without pauses: a pause takes as long as a message's whole way.
                _ => {
                    has_spun = true;
                    continue;
                }
            };
            if rest == IdleAction::Spin && self.recorder.begin(now) {
                // The pacer's own query is no gap.
                self.last = Some(self.clock.ticks());
            }
            let has_worked = turn(rest)?;
            has_spun = rest == IdleAction::Spin && !has_worked;
        }
    }

    /// Notes a delay: in a spin it is a gap; in a call, in a sleep or behind a yield only a stop of the whole process
    /// can be detected. Returns the time from which the next gap counts.
    #[cold]
    fn note_delay(&mut self, now: u64, ticks: u64, has_spun: bool) -> u64 {
        if has_spun {
            return self.recorder.note(&self.clock, now - ticks, now);
        }
        if ticks > self.stop {
            self.recorder.note_if_stopped(now - ticks, now);
        }
        now
    }

    /// Returns the lateness of a send that was due, in nanoseconds, without the host's share as far as the kernel's
    /// account shows it: the generator's own lateness.
    #[inline]
    pub fn own_lateness_ns(&self, due: u64, actual: u64) -> u64 {
        let own = actual.saturating_sub(due).saturating_sub(self.host_delay(due, actual));
        self.clock.calibration().ns(own as i64) as u64
    }

    /// Returns the host's share of the time from `from` to `to`, in ticks.
    #[inline]
    fn host_delay(&self, from: u64, to: u64) -> u64 {
        let since = self.recorder.latest().take_while(|gap| gap.to > from).filter(|gap| gap.cause == GapCause::Host);
        since.map(|gap| gap.to.min(to).saturating_sub(gap.from.max(from))).sum()
    }

    /// Returns the gaps in the pacer's run, with their causes.
    pub fn into_gaps(self) -> Vec<SchedulingGap> {
        self.recorder.into_gaps()
    }
}

/// A moment's rest of a thread without work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleAction {
    /// Looks again at once.
    Spin,
    /// Gives the processor away.
    Yield,
    /// Sleeps for at most so many nanoseconds.
    Sleep(u64),
}

impl IdleAction {
    /// Takes the rest.
    #[inline]
    pub fn perform(self) {
        match self {
            Self::Spin => relax(),
            Self::Yield => yield_now(),
            Self::Sleep(ns) => sleep_ns(ns),
        }
    }
}

/// A generator's count of late sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Number of sends so far.
    pub sends: u64,
    /// Number of sends that came later than the allowance.
    pub late: u64,
}

impl Lateness {
    /// Counts a send that came `late_ns` after its time; it is late beyond `allowance_ns`.
    pub fn count(&mut self, late_ns: u64, allowance_ns: u64) {
        self.sends += 1;
        self.late += u64::from(late_ns > allowance_ns);
    }

    /// Returns the share of late sends, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.sends == 0 { 0.0 } else { self.late as f64 / self.sends as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedClock;

    #[test]
    fn only_the_hosts_part_of_a_delay_is_excused() {
        let gap = |from, to, cause| SchedulingGap { from, to, cause };
        let gaps = vec![
            gap(100, 200, GapCause::Host),
            gap(300, 400, GapCause::Preempted),
            gap(450, 480, GapCause::Unknown),
            gap(500, 600, GapCause::Host),
            gap(700, 800, GapCause::Stopped),
        ];
        let pacer = Pacer { recorder: GapRecorder::planted(gaps), ..Pacer::new(SimulatedClock::at(0), Wait::Busy) };
        for (from, to, held_up) in [
            (0, 1_000, 200),
            (150, 5_000, 150),
            (550, 560, 10),
            (200, 500, 0),
            (290, 410, 0),
            (440, 490, 0),
            (600, 900, 0),
        ] {
            assert_eq!(pacer.host_delay(from, to), held_up, "{from} to {to}");
            assert_eq!(pacer.own_lateness_ns(from, to), to - from - held_up, "{from} to {to}");
        }
    }
}
