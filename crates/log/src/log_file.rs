//! Whether a log still lies where it did.

use crate::Place;
use crate::lock::{self, FileId};
use crate::place::{CONTROL, DATA};

/// The files of a log as they lay under their names at one moment, to ask later whether they still do.
#[derive(Debug, Clone)]
pub struct LogFile {
    place: Place,
    /// The data file, and the control file.
    files: [Option<FileId>; 2],
}

impl LogFile {
    /// The files that lie there now.
    pub fn at(place: &Place) -> Self {
        Self { place: place.clone(), files: [DATA, CONTROL].map(|name| lock::file_at(place, name).ok()) }
    }

    /// True if one of them was there, and something else or nothing is now. Asks the operating system, some microseconds.
    pub fn is_removed(&self) -> bool {
        let [data, control] = self.files;
        self.is_data_removed() || data.and(control).is_some_and(|file| lock::is_gone(&self.place, CONTROL, file))
    }

    /// True if the data file was there, and something else or nothing is now.
    pub(crate) fn is_data_removed(&self) -> bool {
        self.files[0].is_some_and(|file| lock::is_gone(&self.place, DATA, file))
    }
}
