//! Time that only the simulation moves, and the moment at which a process is killed.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, Clock};

/// What a killed process unwinds with. No panic: nobody is told.
pub struct Killed;

/// A clock of one boot of the host; clones share the time. Each reading takes a tick, which is a nanosecond.
#[derive(Clone)]
pub struct SimClock {
    time: Arc<Time>,
    calibration: Calibration,
    is_mortal: bool,
}

struct Time {
    ticks: AtomicU64,
    /// Readings until whoever reads is killed; zero if nobody is to be.
    fuse: AtomicU64,
}

impl SimClock {
    /// The clock of a boot that begins at `ticks`, at this time of the world's clocks.
    pub fn of_boot(boot: u64, ticks: u64, utc_ns: u64) -> Self {
        let mut calibration = Calibration::nanoseconds();
        calibration.boot_id = u128::from(boot).to_le_bytes();
        (calibration.ticks, calibration.utc_ns) = (ticks, utc_ns);
        let time = Time { ticks: AtomicU64::new(ticks), fuse: AtomicU64::new(0) };
        Self { time: Arc::new(time), calibration, is_mortal: false }
    }

    /// The same clock for a process that can be killed: between any two things that it does it reads the time, so each
    /// reading is another moment to be killed at.
    pub fn of_mortal(&self) -> Self {
        Self { is_mortal: true, ..self.clone() }
    }

    /// The mortal process dies at its `reading`-th look from here on; zero spares it.
    pub fn kill_at(&self, reading: u64) {
        self.time.fuse.store(reading, Ordering::Relaxed);
    }

    /// Moves the time on.
    pub fn advance(&self, ns: u64) {
        self.time.ticks.fetch_add(ns, Ordering::Relaxed);
    }

    /// Moves the time back, as a host does that was moved to another machine.
    pub fn set_back(&self, ns: u64) {
        let ticks = self.time.ticks.load(Ordering::Relaxed);
        self.time.ticks.store(ticks.saturating_sub(ns).max(1), Ordering::Relaxed);
    }

    /// Nanoseconds since the Unix epoch, as the host sees it.
    pub fn utc_ns(&self) -> u64 {
        self.calibration.utc_ns_of(self.time.ticks.load(Ordering::Relaxed))
    }
}

impl Clock for SimClock {
    fn ticks(&self) -> u64 {
        if self.is_mortal {
            match self.time.fuse.load(Ordering::Relaxed) {
                0 => {}
                1 => {
                    self.kill_at(0);
                    resume_unwind(Box::new(Killed));
                }
                left => self.kill_at(left - 1),
            }
        }
        self.time.ticks.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}
