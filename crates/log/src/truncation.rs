//! Detection of truncated files under an open log.

use crate::control::{CONTROL_BYTES, ControlFile};
use crate::guard::TruncationGuard;
use crate::log_path::{CONTROL, DATA};
use crate::region::Region;
use crate::{LogPath, Writer};

impl Writer {
    /// Guards the log: from here on a truncation of its files kills this process no more. Messages published after a
    /// truncation are lost, and [`Self::is_truncated`] returns true.
    pub fn guard(&mut self) -> std::io::Result<()> {
        self.appender.control.region.guard()?;
        self.appender.guard()
    }

    /// Returns true if the files of a guarded log were truncated. Asks the operating system, as
    /// [`Reader::is_truncated`](crate::Reader::is_truncated) does.
    pub fn is_truncated(&self) -> bool {
        let bytes = self.shape.data_bytes(self.appender.index);
        is_truncated(&self.appender.region, Some(&self.appender.control), self.path(), bytes)
    }
}

/// Returns true if one of the two was truncated; `bytes` is the data file's minimum size. The result is recorded.
pub(crate) fn is_truncated(data: &Region, control: Option<&ControlFile>, path: &LogPath, bytes: u64) -> bool {
    let length = |file| path.open_folder().and_then(|folder| folder.metadata(file)).map(|found| found.len());
    let is_short = |region: &Region, file, bytes| {
        let Some(guard) = region.guarded() else { return false };
        // By name: a removed log is still whole where it is open.
        if !guard.is_truncated() && length(file).is_ok_and(|length| length < bytes) {
            guard.mark_truncated();
        }
        guard.is_truncated()
    };
    is_short(data, DATA, bytes)
        || control.is_some_and(|control| is_short(&control.region, CONTROL, CONTROL_BYTES as u64))
}

/// Returns true if a truncation is already recorded, without asking the operating system.
pub(crate) fn is_known_truncated(data: &Region, control: Option<&ControlFile>) -> bool {
    let is_known = |region: &Region| region.guarded().is_some_and(TruncationGuard::is_truncated);
    is_known(data) || control.is_some_and(|control| is_known(&control.region))
}
