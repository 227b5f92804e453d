//! Whether a log still lies where it did.

use crate::Place;
use crate::lock::{self, FileId};
use crate::place::DATA;

/// The data file of a log as it lay under its name at one moment, to ask later whether it still does.
#[derive(Debug, Clone)]
pub struct LogFile {
    place: Place,
    file: Option<FileId>,
}

impl LogFile {
    /// What lies there now.
    pub fn at(place: &Place) -> Self {
        Self { place: place.clone(), file: lock::file_at(place, DATA) }
    }

    /// True if it was there, and something else or nothing is now. Asks the operating system, about a microsecond.
    pub fn is_removed(&self) -> bool {
        self.file.is_some() && lock::file_at(&self.place, DATA) != self.file
    }
}
