//! The clock of this host.

use std::path::Path;

use crate::calibration::{Calibration, CalibrationError, ClockSource, host_calibration};
use crate::clock::Clock;
use crate::counter;
use crate::once::SetOnce;

/// The host's counter with the host's calibration. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    calibration: &'static Calibration,
    tsc: bool,
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
        Ok(Self { calibration, tsc: calibration.source() == Some(ClockSource::Tsc) })
    }
}

impl Clock for HostClock {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        if self.tsc { counter::tsc() } else { counter::monotonic_ns() }
    }

    fn calibration(&self) -> &Calibration {
        self.calibration
    }
}
