//! Check whether a log's files still have their names.

use crate::LogPath;
use crate::lock::{self, FileId};
use crate::log_path::{CONTROL, DATA};

/// The files under a log's names at one moment, for later checks of whether they are still the same.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: LogPath,
    /// Data file and control file.
    files: [Option<FileId>; 2],
}

impl LogFile {
    /// Records the files that lie there now.
    pub fn at(path: &LogPath) -> Self {
        Self { path: path.clone(), files: [DATA, CONTROL].map(|name| lock::file_at(path, name).ok()) }
    }

    /// Returns true if a recorded file was removed or replaced. Asks the operating system, for some microseconds.
    pub fn is_removed(&self) -> bool {
        let [data, control] = self.files;
        self.is_data_removed() || data.and(control).is_some_and(|file| lock::is_replaced(&self.path, CONTROL, file))
    }

    /// Returns true if the recorded data file was removed or replaced.
    pub(crate) fn is_data_removed(&self) -> bool {
        self.files[0].is_some_and(|file| lock::is_replaced(&self.path, DATA, file))
    }
}
