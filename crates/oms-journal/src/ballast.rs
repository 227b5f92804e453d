//! Disk space and file descriptors that are reserved before a day ends, so that no step of its roll lacks them.
//!
//! ```text
//!   DayEnd asked for ── reserve: reports, roll ── DayEnd journaled, its reports written ── roll: archive, next logs
//!                                                 └ from here on the first part is free    └ from here on the second
//! ```
//! The space is two preallocated files in the journal's folder. A kill leaves them there; the next start removes them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// Files that hold the space for the reports of a day's end, and for the logs of the next day.
const NAMES: [&str; 2] = ["ballast.reports", "ballast.roll"];

/// Reserved disk space and descriptors; freed when the value is dropped.
#[derive(Debug)]
pub struct Ballast {
    reports: PathBuf,
    roll: PathBuf,
    descriptors: Vec<File>,
}

impl Ballast {
    /// Reserves this many bytes for each part on the disk of this folder. Reserves nothing if the disk lacks room for
    /// either part.
    pub fn reserve(folder: &Path, reports: u64, roll: u64) -> io::Result<Self> {
        let [reports_file, roll_file] = NAMES.map(|name| folder.join(name));
        let ballast = Self { reports: reports_file, roll: roll_file, descriptors: Vec::new() };
        for (path, bytes) in [(&ballast.reports, reports), (&ballast.roll, roll)] {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
            fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        }
        Ok(ballast)
    }

    /// Reserves this many file descriptors as well.
    pub fn hold_descriptors(mut self, count: usize) -> io::Result<Self> {
        for _ in 0..count {
            self.descriptors.push(File::open(&self.roll)?);
        }
        Ok(self)
    }

    /// Frees the space for the day's last reports.
    pub fn free_reports(&self) {
        let _ = fs::remove_file(&self.reports);
    }

    /// Removes the files that a kill has left in this folder.
    pub(crate) fn clear(folder: &Path) {
        for name in NAMES {
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.reports);
        let _ = fs::remove_file(&self.roll);
    }
}
