//! Seeing that somebody has truncated the files of a log that is open.

use crate::control::{CONTROL_BYTES, Control};
use crate::guard::Guard;
use crate::place::{CONTROL, DATA};
use crate::region::Region;
use crate::{Place, Writer};

impl Writer {
    /// From here on nobody can end this process by truncating the log's files: what is published then goes nowhere, and
    /// [`Self::is_cut`] says so.
    pub fn guard(&mut self) -> std::io::Result<()> {
        self.control().region().guard()?;
        self.appender_mut().guard()
    }

    /// True if the files of a guarded log were cut short. Asks the operating system, as [`Reader::is_cut`](crate::Reader::is_cut) does.
    pub fn is_cut(&self) -> bool {
        let bytes = self.shape().data_bytes(self.appender().index());
        is_cut(self.appender().region(), Some(self.control()), self.place(), bytes)
    }
}

/// True if one of the two was found cut, or its file is shorter than it was mapped; `bytes` are those of the data file.
/// What is found once stays.
pub(crate) fn is_cut(data: &Region, control: Option<&Control>, place: &Place, bytes: u64) -> bool {
    let length = |file| place.open_folder().and_then(|folder| folder.look(file)).map(|found| found.len());
    let is_short = |region: &Region, file, bytes| {
        let Some(guard) = region.guarded() else { return false };
        // By its name: a log that was removed is whole where it is open.
        if !guard.is_cut() && length(file).is_ok_and(|length| length < bytes) {
            guard.cut();
        }
        guard.is_cut()
    };
    is_short(data, DATA, bytes)
        || control.is_some_and(|control| is_short(control.region(), CONTROL, CONTROL_BYTES as u64))
}

/// The same, of what was touched or asked about before.
pub(crate) fn is_known_cut(data: &Region, control: Option<&Control>) -> bool {
    let is_known = |region: &Region| region.guarded().is_some_and(Guard::is_cut);
    is_known(data) || control.is_some_and(|control| is_known(control.region()))
}
