//! Return times of a line's sends: T2 of the requests that the core hands to the thread of its line.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tickpath_clock::{Clock, HostClock};
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::samples::{load, preallocated_rows, save};
use tickpath_market::Request;
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

/// The OMS's id of each request that a line has sent, and the return time of its send in ticks.
#[derive(Debug, Clone, Default)]
pub(crate) struct SendLog(Arc<Mutex<Vec<[u64; 2]>>>);

impl SendLog {
    /// Preallocates room for `requests` rows and touches it: the room does not count as the OMS's growth, and costs no
    /// page fault between two sends.
    pub fn with_capacity(requests: usize) -> Self {
        Self(Arc::new(Mutex::new(preallocated_rows(requests))))
    }

    /// Returns their file, beside the gaps of their OMS.
    pub fn file(gaps: &Path) -> PathBuf {
        gaps.with_extension("sends")
    }

    pub fn save(&self, file: &Path) -> Result<(), LabError> {
        save(file, &self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the return times by the OMS's id; empty if no line has stamped any.
    pub fn load(file: &Path) -> Result<HashMap<u64, u64>, LabError> {
        let rows = if file.exists() { load::<2>(file)? } else { Vec::new() };
        Ok(rows.into_iter().map(|[id, returned]| (id, returned)).collect())
    }
}

/// A line that stamps the return of each send.
pub(crate) struct StampedLine<L> {
    pub line: L,
    pub clock: HostClock,
    pub sends: SendLog,
}

impl<L: Line> Line for StampedLine<L> {
    fn address(&self) -> String {
        self.line.address()
    }

    fn connect(&mut self, resume: &ResumeState) {
        self.line.connect(resume);
    }

    #[inline]
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), LineSendError> {
        self.line.send(number, stamp, request)?;
        let returned = self.clock.ticks();
        // No other thread takes the lock before the OMS has ended.
        self.sends.0.lock().unwrap_or_else(PoisonError::into_inner).push([request.client_order_id().0, returned]);
        Ok(())
    }

    fn confirm(&mut self, next_report: u64) {
        self.line.confirm(next_report);
    }

    #[inline]
    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        self.line.poll(take)
    }

    fn warm_up(&mut self) {
        self.line.warm_up();
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.line.socket()
    }
}
