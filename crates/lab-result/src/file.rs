//! Load and save: a result is either whole on the disk or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::shape::{ResultFile, SCHEMA};

/// Why a result file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file does not open, or does not read.
    #[error("cannot read {}: {reason}; check the path and its permissions", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// The file ends in the middle.
    #[error("{} is cut short (it ends at line {line}); copy it again, or measure again", .path.display())]
    CutShort {
        /// Which file.
        path: PathBuf,
        /// Where it ends.
        line: usize,
    },
    /// The file is something else.
    #[error("{} is not JSON ({reason}); give a file that a bench wrote with --json", .path.display())]
    NotJson {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        reason: serde_json::Error,
    },
    /// The file is JSON of another kind.
    #[error("{} is JSON without a 'schema' text; give a file that a bench wrote with --json", .path.display())]
    NoSchema {
        /// Which file.
        path: PathBuf,
    },
    /// The file is of another version, or of another program.
    #[error(
        "{} says schema {found}; this tickpath reads {reads}; use the tickpath that wrote it",
        .path.display(),
        reads = SCHEMA
    )]
    Schema {
        /// Which file.
        path: PathBuf,
        /// The schema it names.
        found: String,
    },
    /// The file names this schema and does not keep it.
    #[error(
        "{} breaks {contract}: {reason}; docs/result.schema.json says what is allowed",
        .path.display(),
        contract = SCHEMA
    )]
    Shape {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        reason: serde_json::Error,
    },
}

/// Why a result file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The path has no file name.
    #[error("{} names no file; give a path that ends in a file name", .0.display())]
    NoName(PathBuf),
    /// The result does not become JSON.
    #[error("the result does not become JSON: {0}; this is a fault of tickpath, so report it with the command")]
    Encode(serde_json::Error),
    /// The file does not write.
    #[error("cannot write {}: {reason}; check the folder, its permissions and its free space", .path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
}

impl ResultFile {
    /// Reads a result file of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref().to_owned();
        let text = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(reason) => return Err(LoadError::Read { path, reason }),
        };
        let value: Value = match serde_json::from_slice(&text) {
            Ok(value) => value,
            Err(reason) if reason.is_eof() => return Err(LoadError::CutShort { path, line: reason.line() }),
            Err(reason) => return Err(LoadError::NotJson { path, reason }),
        };
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(found) => return Err(LoadError::Schema { path, found: found.to_owned() }),
            None => return Err(LoadError::NoSchema { path }),
        }
        // From the text again, so that the error names a line.
        serde_json::from_slice(&text).map_err(|reason| LoadError::Shape { path, reason })
    }

    /// Writes the file, as [`save_json`] does.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SaveError> {
        save_json(self, path)
    }
}

/// Writes a value as a JSON file, whole or not at all: beside its place first, then onto the disk, then by its name.
///
/// A link is followed; a pipe or terminal is written directly, for a new name would replace it.
pub fn save_json(value: &impl Serialize, path: impl AsRef<Path>) -> Result<(), SaveError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(SaveError::Encode)?;
    text.push(b'\n');
    let target = fs::canonicalize(path.as_ref()).unwrap_or_else(|_| path.as_ref().to_owned());
    let is_stream = fs::metadata(path.as_ref()).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let written =
        if is_stream { stream(path.as_ref(), &text) } else { replace(&target, &temporary_path(&target)?, &text) };
    written.map_err(|reason| SaveError::Write { path: target, reason })
}

fn stream(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text)
}

fn replace(target: &Path, part: &Path, text: &[u8]) -> io::Result<()> {
    let written = write_synced(part, text).and_then(|()| fs::rename(part, target)).and_then(|()| sync_folder(target));
    if written.is_err() {
        let _ = fs::remove_file(part);
    }
    written
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// A rename is on the disk only once its folder is.
fn sync_folder(target: &Path) -> io::Result<()> {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// A name of this process in the same folder, for a rename does not cross file systems.
fn temporary_path(target: &Path) -> Result<PathBuf, SaveError> {
    let name = target.file_name().ok_or_else(|| SaveError::NoName(target.to_owned()))?;
    let mut part = name.to_owned();
    part.push(format!(".{}.part", std::process::id()));
    Ok(target.with_file_name(part))
}
