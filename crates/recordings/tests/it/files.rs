//! Files of a test, and what is read from them.

use std::fs;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;
use tickpath_recordings::{DataFormat, ImportCounts, MarketFile, MarketFileError, MarketMessage};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Messages of a file with their receive times and the names of their instruments, and its counts.
#[derive(Debug)]
pub struct ReadFile {
    pub messages: Vec<(u64, String, MarketMessage)>,
    pub counts: ImportCounts,
}

impl ReadFile {
    /// Returns the messages alone.
    pub fn plain(&self) -> Vec<MarketMessage> {
        self.messages.iter().map(|(_, _, message)| *message).collect()
    }

    /// Returns the receive times.
    pub fn times(&self) -> Vec<u64> {
        self.messages.iter().map(|(utc_ns, _, _)| *utc_ns).collect()
    }
}

pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

/// Reads a file of this name with these bytes.
pub fn read(name: &str, bytes: &[u8]) -> Result<ReadFile, MarketFileError> {
    read_as(name, bytes, None)
}

/// Reads a file of this name with these bytes, in a format.
pub fn read_as(name: &str, bytes: &[u8], format: Option<DataFormat>) -> Result<ReadFile, MarketFileError> {
    let folder = folder();
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("the folder is writable");
    read_path(&path, format)
}

/// Reads a file.
pub fn read_path(path: &Path, format: Option<DataFormat>) -> Result<ReadFile, MarketFileError> {
    let mut messages = Vec::new();
    let counts = MarketFile::open(path, format)?.read(&mut |utc_ns, name, message| {
        messages.push((utc_ns, name.to_owned(), message));
        ControlFlow::Continue(())
    })?;
    Ok(ReadFile { messages, counts })
}

/// Compresses bytes with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// Packs members with these names into a zip archive.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default()).expect("the name is new");
        archive.write_all(bytes).expect("a vector takes all");
    }
    archive.finish().expect("a vector takes all").into_inner()
}
