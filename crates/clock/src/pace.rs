//! Sending at intended times, and knowing how late one was.

use std::convert::Infallible;

use crate::gap::{Found, HOST_GAP_NS};
use crate::{Cause, Clock, Gap, Wait, relax, sleep_ns, yield_now};

/// How long before an intended time a pacer stops giving the processor away: longer than a yield takes to come back
/// on a shared core.
const SPIN_NS: u64 = 20_000;

/// How long before an intended time a spinning pacer makes no pauses any more.
const NEAR_NS: u64 = 500;

/// How long before an intended time a blocking pacer stops sleeping: longer than a timer wakes late.
const SLEEP_MARGIN_NS: u64 = 200_000;

/// A call or a sleep that takes longer than this may have been a stop of the whole process.
const LEAST_STOP_NS: u64 = 100_000;

/// Waits until intended times.
#[derive(Debug)]
pub struct Pacer<C> {
    clock: C,
    wait: Wait,
    spin: u64,
    margin: u64,
    near: u64,
    gap: u64,
    stop: u64,
    /// The last reading of the clock.
    last: Option<u64>,
    found: Found,
}

impl<C: Clock> Pacer<C> {
    /// A pacer that waits in this way: `busy` spins, `yield` gives the core to others until shortly before the time,
    /// `block` and `adaptive` sleep until shortly before the time.
    pub fn new(clock: C, wait: Wait) -> Self {
        let ticks = |ns| clock.calibration().ticks_of_ns(ns);
        let [spin, margin, near] = [SPIN_NS, SLEEP_MARGIN_NS, NEAR_NS].map(ticks);
        let [gap, stop] = [HOST_GAP_NS, LEAST_STOP_NS].map(ticks);
        Self { clock, wait, spin, margin, near, gap, stop, last: None, found: Found::of_a_caller() }
    }

    /// Returns at `intended` (ticks), or at once if that has passed, with the ticks then.
    #[inline]
    pub fn until(&mut self, intended: u64) -> u64 {
        let Ok(now) = self.until_beside(intended, |rest| {
            rest.take();
            Ok::<_, Infallible>(false)
        });
        now
    }

    /// The same for a thread that has other work to do meanwhile: `turn` does some, and says so, or takes the rest. None
    /// begins shortly before the time.
    #[inline]
    pub fn until_beside<E>(&mut self, intended: u64, mut turn: impl FnMut(Rest) -> Result<bool, E>) -> Result<u64, E> {
        // Whether nothing but spinning lies between the last reading and the next.
        let mut has_spun = false;
        loop {
            let mut now = self.clock.ticks();
            let since_last = self.last.map_or(0, |last| now.saturating_sub(last));
            if since_last > self.gap {
                now = self.stood_still(now, since_last, has_spun);
            }
            self.last = Some(now);
            let left = intended.wrapping_sub(now) as i64;
            if left <= 0 {
                return Ok(now);
            }
            let rest = match self.wait {
                wait if wait.sleeps() && left as u64 > self.margin => {
                    Rest::Sleep(self.clock.calibration().ns(left - self.margin as i64) as u64)
                }
                wait if wait != Wait::Busy && left as u64 > self.spin => Rest::Yield,
                _ if left as u64 > self.near => Rest::Spin,
                // The last stretch without a pause: one takes as long as a message's whole way.
                _ => {
                    has_spun = true;
                    continue;
                }
            };
            if rest == Rest::Spin && self.found.begin(now) {
                // Its own question is no gap.
                self.last = Some(self.clock.ticks());
            }
            let has_worked = turn(rest)?;
            has_spun = rest == Rest::Spin && !has_worked;
        }
    }

    /// In a spin this is a gap; in a call, in a sleep or behind a yield only a stop of the whole process can be told.
    /// Gives the time from which on the next one counts.
    #[cold]
    fn stood_still(&mut self, now: u64, ticks: u64, has_spun: bool) -> u64 {
        if has_spun {
            return self.found.note(&self.clock, now - ticks, now);
        }
        if ticks > self.stop {
            self.found.note_if_stopped(now - ticks, now);
        }
        now
    }

    /// How late something went out that was due, in nanoseconds, without what was the host's of that, as far as the
    /// kernel's account shows it: the generator's own doing.
    #[inline]
    pub fn own_lateness_ns(&self, due: u64, actual: u64) -> u64 {
        let own = actual.saturating_sub(due).saturating_sub(self.held_up(due, actual));
        self.clock.calibration().ns(own as i64) as u64
    }

    /// How much of the time from `from` to `to` was the host's, in ticks.
    #[inline]
    fn held_up(&self, from: u64, to: u64) -> u64 {
        let since = self.found.latest().take_while(|gap| gap.to > from).filter(|gap| gap.cause == Cause::Host);
        since.map(|gap| gap.to.min(to).saturating_sub(gap.from.max(from))).sum()
    }

    /// When it stood still, and why.
    pub fn into_found(self) -> Vec<Gap> {
        self.found.into_gaps()
    }
}

/// How a thread that finds nothing to do passes a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It goes on looking.
    Spin,
    /// It gives the processor away.
    Yield,
    /// It sleeps for at most so many nanoseconds.
    Sleep(u64),
}

impl Rest {
    /// Passes it.
    #[inline]
    pub fn take(self) {
        match self {
            Self::Spin => relax(),
            Self::Yield => yield_now(),
            Self::Sleep(ns) => sleep_ns(ns),
        }
    }
}

/// What a generator knows about its own punctuality.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Sends so far.
    pub sends: u64,
    /// Sends that came later than the allowance.
    pub late: u64,
}

impl Lateness {
    /// Counts a send that came `late_ns` after its time, with `allowance_ns` of grace.
    pub fn count(&mut self, late_ns: u64, allowance_ns: u64) {
        self.sends += 1;
        self.late += u64::from(late_ns > allowance_ns);
    }

    /// Late sends among all, 0 to 1.
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
        let gap = |from, to, cause| Gap { from, to, cause };
        let gaps = vec![
            gap(100, 200, Cause::Host),
            gap(300, 400, Cause::Preempted),
            gap(450, 480, Cause::Untold),
            gap(500, 600, Cause::Host),
            gap(700, 800, Cause::Stopped),
        ];
        let pacer = Pacer { found: Found::planted(gaps), ..Pacer::new(SimulatedClock::at(0), Wait::Busy) };
        for (from, to, held_up) in [
            (0, 1_000, 200),
            (150, 5_000, 150),
            (550, 560, 10),
            (200, 500, 0),
            (290, 410, 0),
            (440, 490, 0),
            (600, 900, 0),
        ] {
            assert_eq!(pacer.held_up(from, to), held_up, "{from} to {to}");
            assert_eq!(pacer.own_lateness_ns(from, to), to - from - held_up, "{from} to {to}");
        }
    }
}
