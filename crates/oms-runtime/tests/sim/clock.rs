//! Simulated time, and the moments at which a process is killed.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::{Calibration, Clock};

/// Payload of a killed process's unwinding; it is no panic, so no panic hook runs.
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
    /// Readings until the reading process is killed; zero for no kill.
    fuse: AtomicU64,
}

impl SimClock {
    /// Returns the clock of a boot that begins at `ticks`, at this UTC time.
    pub fn of_boot(boot: u64, ticks: u64, utc_ns: u64) -> Self {
        let mut calibration = Calibration::nanoseconds();
        calibration.boot_id = u128::from(boot).to_le_bytes();
        (calibration.ticks, calibration.utc_ns) = (ticks, utc_ns);
        let time = Time { ticks: AtomicU64::new(ticks), fuse: AtomicU64::new(0) };
        Self { time: Arc::new(time), calibration, is_mortal: false }
    }

    /// Returns the same clock for a process that can be killed. A process reads the time between any two actions, so
    /// each reading is another moment for a kill.
    pub fn of_mortal(&self) -> Self {
        Self { is_mortal: true, ..self.clone() }
    }

    /// Kills the mortal process at its `reading`-th reading from now on; zero cancels the kill.
    pub fn kill_at(&self, reading: u64) {
        self.time.fuse.store(reading, Ordering::Relaxed);
    }

    /// Advances the time.
    pub fn advance(&self, ns: u64) {
        self.time.ticks.fetch_add(ns, Ordering::Relaxed);
    }

    /// Sets the time back, as on a host that was moved to another machine.
    pub fn set_back(&self, ns: u64) {
        let ticks = self.time.ticks.load(Ordering::Relaxed);
        self.time.ticks.store(ticks.saturating_sub(ns).max(1), Ordering::Relaxed);
    }

    /// Returns the host's time in nanoseconds since the Unix epoch.
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
