//! A first `exchange.toml`, which works unchanged beside the first configuration of an OMS.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXCHANGE: &str = include_str!("exchange.toml");

/// Error of [`init`]: no file was written.
#[derive(Debug, thiserror::Error)]
pub enum VenueInitError {
    /// The file exists already.
    #[error("{} exists already and is not overwritten; name another folder", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{}: cannot be written ({}); name a folder that this user may write to", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

/// Writes `exchange.toml` into a folder. Returns its path; the table of instruments that the file names is the OMS's.
pub fn init(folder: &Path) -> Result<PathBuf, VenueInitError> {
    let file = folder.join("exchange.toml");
    let wrong = |reason| VenueInitError::Write(file.clone(), reason);
    fs::create_dir_all(folder).map_err(wrong)?;
    let mut made = match OpenOptions::new().write(true).create_new(true).open(&file) {
        Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => return Err(VenueInitError::Exists(file)),
        made => made.map_err(wrong)?,
    };
    made.write_all(EXCHANGE.as_bytes()).map_err(wrong)?;
    Ok(file)
}
