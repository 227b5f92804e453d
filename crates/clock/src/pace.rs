//! Sending at intended times, and knowing how late one was.

use std::cell::Cell;
use std::convert::Infallible;

use crate::{Clock, Wait, relax, sleep_ns, yield_now};

/// How long before an intended time a pacer stops giving the processor away: longer than a yield takes to come back
/// on a shared core.
const SPIN_NS: u64 = 20_000;

/// A spinning loop that stands still for longer than this was stopped by the host.
pub const HOST_GAP_NS: u64 = 2_000;

/// How long before an intended time a spinning pacer makes no pauses any more.
const NEAR_NS: u64 = 500;

/// How long before an intended time a blocking pacer stops sleeping: longer than a timer wakes late.
const SLEEP_MARGIN_NS: u64 = 200_000;

/// Waits until intended times.
#[derive(Debug, Clone)]
pub struct Pacer<C> {
    clock: C,
    wait: Wait,
    spin: u64,
    margin: u64,
    near: u64,
    gap: u64,
    /// End of the last gap that the host made while we only spun.
    last_gap_end: Cell<u64>,
}

impl<C: Clock> Pacer<C> {
    /// A pacer that waits in this way: `busy` spins, `yield` gives the core to others until shortly before the time,
    /// `block` sleeps until shortly before the time.
    pub fn new(clock: C, wait: Wait) -> Self {
        let spin = clock.calibration().ticks_of_ns(SPIN_NS);
        let margin = clock.calibration().ticks_of_ns(SLEEP_MARGIN_NS);
        let near = clock.calibration().ticks_of_ns(NEAR_NS);
        let gap = clock.calibration().ticks_of_ns(HOST_GAP_NS);
        Self { clock, wait, spin, margin, near, gap, last_gap_end: Cell::new(0) }
    }

    /// Returns at `intended` (ticks), or at once if that has passed, with the ticks then.
    #[inline]
    pub fn until(&self, intended: u64) -> u64 {
        let Ok(now) = self.until_beside(intended, |rest| {
            rest.take();
            Ok::<_, Infallible>(false)
        });
        now
    }

    /// The same for a thread that has other work to do meanwhile: `turn` does some, and says so, or takes the rest. None
    /// begins shortly before the time.
    #[inline]
    pub fn until_beside<E>(&self, intended: u64, mut turn: impl FnMut(Rest) -> Result<bool, E>) -> Result<u64, E> {
        // The last reading, if nothing but spinning lies between it and the next.
        let mut spun_since = None;
        loop {
            let now = self.clock.ticks();
            if spun_since.is_some_and(|before| now - before > self.gap) {
                self.last_gap_end.set(now);
            }
            spun_since = Some(now);
            let left = intended.wrapping_sub(now) as i64;
            if left <= 0 {
                return Ok(now);
            }
            let rest = match self.wait {
                Wait::Block if left as u64 > self.margin => {
                    Rest::Sleep(self.clock.calibration().ns(left - self.margin as i64) as u64)
                }
                Wait::Yield | Wait::Block if left as u64 > self.spin => Rest::Yield,
                _ if left as u64 > self.near => Rest::Spin,
                // The last stretch without a pause: one takes as long as a message's whole way.
                _ => continue,
            };
            if turn(rest)? || rest != Rest::Spin {
                spun_since = None;
            }
        }
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

impl<C> Pacer<C> {
    /// True if the host held the generator up at this intended time: then being late is not the generator's doing.
    #[inline]
    pub fn was_held_up(&self, intended: u64) -> bool {
        intended <= self.last_gap_end.get()
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
