//! Detection of truncated files under an open log.

use crate::control::{CONTROL_BYTES, Control};
use crate::guard::Guard;
use crate::place::{CONTROL, DATA};
use crate::region::Region;
use crate::{Place, Writer};

impl Writer {
    /// Guards the log: from here on a truncation of its files kills this process no more. Messages published after a
    /// truncation are lost, and [`Self::is_cut`] returns true.
    pub fn guard(&mut self) -> std::io::Result<()> {
        self.control().region().guard()?;
        self.appender_mut().guard()
    }

    /// Returns true if the files of a guarded log were truncated. Asks the operating system, as
    /// [`Reader::is_cut`](crate::Reader::is_cut) does.
    pub fn is_cut(&self) -> bool {
        let bytes = self.shape().data_bytes(self.appender().index());
        is_cut(self.appender().region(), Some(self.control()), self.place(), bytes)
    }
}

/// Returns true if one of the two was found cut, or its file is shorter than its mapping; `bytes` is the data file's
/// minimum size. A detected truncation stays recorded.
pub(crate) fn is_cut(data: &Region, control: Option<&Control>, place: &Place, bytes: u64) -> bool {
    let length = |file| place.open_folder().and_then(|folder| folder.look(file)).map(|found| found.len());
    let is_short = |region: &Region, file, bytes| {
        let Some(guard) = region.guarded() else { return false };
        // By name: a removed log is still whole where it is open.
        if !guard.is_cut() && length(file).is_ok_and(|length| length < bytes) {
            guard.cut();
        }
        guard.is_cut()
    };
    is_short(data, DATA, bytes)
        || control.is_some_and(|control| is_short(control.region(), CONTROL, CONTROL_BYTES as u64))
}

/// Returns true if a truncation is already recorded, without asking the operating system.
pub(crate) fn is_known_cut(data: &Region, control: Option<&Control>) -> bool {
    let is_known = |region: &Region| region.guarded().is_some_and(Guard::is_cut);
    is_known(data) || control.is_some_and(|control| is_known(control.region()))
}
