//! The clock of this host.

use std::path::Path;

use crate::calibration::{Calibration, CalibrationError, host_calibration};
use crate::clock::Clock;
use crate::clock_source::ClockSource;
use crate::counter;
use crate::once::SetOnce;

/// The host's counter with the host's calibration. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    calibration: &'static Calibration,
    is_counter: bool,
}

impl HostClock {
    /// Returns the clock of this host. The first process of a user in a boot takes root's calibration, or measures for
    /// 0.2 s; all others of this user read its result.
    pub fn get() -> Result<Self, CalibrationError> {
        static CALIBRATION: SetOnce<Calibration> = SetOnce::new();
        let calibration = match CALIBRATION.get() {
            Some(found) => found,
            None => {
                // SAFETY: geteuid has no preconditions.
                let user = unsafe { libc::geteuid() };
                let found = host_calibration(Path::new("/dev/shm/tickpath-clock"), user)?;
                CALIBRATION.get_or_init(|| found)
            }
        };
        Ok(Self { calibration, is_counter: calibration.source().is_some_and(ClockSource::is_counter) })
    }
}

impl Clock for HostClock {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        if self.is_counter { counter::ticks() } else { counter::monotonic_ns() }
    }

    fn calibration(&self) -> &Calibration {
        self.calibration
    }
}
