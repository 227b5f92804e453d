//! Free space of the journal's disk, compared with the reserve for sessions that trade.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::statvfs;

const CHECK_NS: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// Monitor of the journal's disk, on a thread that no order waits for.
#[derive(Debug)]
pub(crate) struct DiskSpaceMonitor {
    pub folder: PathBuf,
    reserve: u64,
    /// Set while less than the reserve is free.
    pub is_low: Arc<AtomicBool>,
    check_at: u64,
}

impl DiskSpaceMonitor {
    pub fn new(folder: PathBuf, reserve: u64) -> Self {
        Self { folder, reserve, is_low: Arc::default(), check_at: 0 }
    }

    /// Checks the disk once a second. Returns a warning for the operator when free space falls below the reserve.
    pub fn check(&mut self, now: u64, ticks_of_ns: impl Fn(u64) -> u64) -> Option<String> {
        if now < self.check_at {
            return None;
        }
        self.check_at = now + ticks_of_ns(CHECK_NS);
        // A disk whose free space is unknown does not count as full.
        let disk = statvfs(self.folder.as_path()).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let is_low = free < self.reserve;
        let was_low = self.is_low.swap(is_low, Ordering::Relaxed);
        (is_low && !was_low).then(|| {
            format!(
                "{}: {} MiB are free on the journal's disk, and disk_reserve_mb keeps {} for sessions that trade: a session \
                 gets a hundredth of its denied requests from now on. Make room on the disk",
                self.folder.display(),
                free / MIB,
                self.reserve / MIB
            )
        })
    }
}
