//! Location of a log: a folder in shared memory or on a disk.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::folder::{CheckedFolder, SymlinkPolicy};
use crate::mapping::Access;

/// Names of a log's files in its folder.
pub(crate) const DATA: &str = "data";
pub(crate) const CONTROL: &str = "control";
pub(crate) const QUEUE: &str = "queue";
pub(crate) const WRITER_LOCK: &str = "writer.lock";
pub(crate) const READER_LOCKS: &str = "readers.lock";

/// Names of the same files during creation: a killed writer leaves them.
pub(crate) const DATA_DRAFT: &str = "data.new";
pub(crate) const CONTROL_DRAFT: &str = "control.new";
pub(crate) const QUEUE_DRAFT: &str = "queue.new";

const SHARED_MEMORY: &str = "/dev/shm";

const MAX_NAME_BYTES: usize = 128;

/// Location of a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogPath {
    dir: PathBuf,
    shared_memory: bool,
    /// Group whose members may own and write the log's files, too.
    group: Option<u32>,
}

/// Error: the text names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogPathError {
    /// Not a valid topic name.
    #[error(
        "'{0}' is no topic name; use 1 to {MAX_NAME_BYTES} letters, digits, '.', '_', '-' or ':', not starting with a point"
    )]
    Name(String),
    /// Not an absolute path.
    #[error("'{0}' is no absolute path; write file:///PATH, from the root on")]
    Path(String),
    /// Neither scheme.
    #[error("'{0}' is neither shm://NAME nor file:///PATH")]
    Scheme(String),
}

impl LogPath {
    /// Returns the place of a topic in shared memory, by name.
    pub fn shared_memory(name: &str) -> Result<Self, LogPathError> {
        let good = |b: u8| b.is_ascii_alphanumeric() || b"._-:".contains(&b);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with('.') || !name.bytes().all(good) {
            return Err(LogPathError::Name(name.to_owned()));
        }
        Ok(Self { dir: Path::new(SHARED_MEMORY).join(format!("tickpath.{name}")), shared_memory: true, group: None })
    }

    /// Returns the place of an unnamed log; every open there fails.
    pub(crate) fn nowhere() -> Self {
        Self { dir: PathBuf::from("/dev/null/tickpath"), shared_memory: true, group: None }
    }

    /// Returns the place of a log on a disk, in a folder of its own.
    pub fn folder(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shared_memory: false, group: None }
    }

    /// Returns the same place, where members of this group id are trusted, too: they may own and write the log's files.
    pub fn shared_with(self, group: u32) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Returns the same place, where the group of `other` is trusted.
    pub(crate) fn with_group_of(self, other: &Self) -> Self {
        Self { group: other.group, ..self }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.group.is_some()
    }

    /// Lists the topics that lie in shared memory now, by name.
    pub fn all_in_shared_memory() -> std::io::Result<Vec<String>> {
        let mut names = Self::names_in_shared_memory()?;
        names.retain(|name| Self::shared_memory(name).is_ok_and(|path| path.exists()));
        Ok(names)
    }

    /// Lists all names with this library's prefix there, whether or not a log has them.
    pub(crate) fn names_in_shared_memory() -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(SHARED_MEMORY)? {
            let name = entry?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_prefix("tickpath.")).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Returns the folder that holds the log's files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns true if the log lies in shared memory and ends with the host.
    pub fn is_shared_memory(&self) -> bool {
        self.shared_memory
    }

    /// Returns true if a log is there.
    pub fn exists(&self) -> bool {
        self.dir.join(DATA).exists()
    }

    /// Removes the log's files. Processes that have it open keep their mappings.
    pub fn remove(&self) -> std::io::Result<()> {
        let folder = self.open_folder()?;
        let files = [DATA, CONTROL, QUEUE, WRITER_LOCK, READER_LOCKS, DATA_DRAFT, CONTROL_DRAFT, QUEUE_DRAFT];
        for file in files {
            match folder.remove(file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        std::fs::remove_dir(&self.dir)
    }

    /// Opens a file of the log, and checks it and its folder.
    pub(crate) fn open_file(&self, name: &str, access: Access) -> std::io::Result<File> {
        self.open_folder()?.open_file(name, access)
    }

    /// Opens the folder and checks its owner.
    pub(crate) fn open_folder(&self) -> std::io::Result<CheckedFolder> {
        let links = if self.shared_memory { SymlinkPolicy::Refused } else { SymlinkPolicy::Checked };
        CheckedFolder::open(&self.dir, links, self.group)
    }
}

impl FromStr for LogPath {
    type Err = LogPathError;

    fn from_str(url: &str) -> Result<Self, LogPathError> {
        if let Some(name) = url.strip_prefix("shm://") {
            return Self::shared_memory(name);
        }
        match url.strip_prefix("file://") {
            Some(path) if path.starts_with('/') && path.len() > 1 => Ok(Self::folder(path)),
            Some(path) => Err(LogPathError::Path(path.to_owned())),
            None => Err(LogPathError::Scheme(url.to_owned())),
        }
    }
}

impl fmt::Display for LogPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = self.dir.display();
        match self.dir.file_name().and_then(|n| n.to_str()?.strip_prefix("tickpath.")).filter(|_| self.shared_memory) {
            Some(name) => write!(f, "shm://{name}"),
            None => write!(f, "file://{dir}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_places() {
        for (url, dir) in [
            ("shm://ticks", "/dev/shm/tickpath.ticks"),
            ("shm://tickpath:r1:BTC-USDT_1.a", "/dev/shm/tickpath.tickpath:r1:BTC-USDT_1.a"),
            ("file:///tmp/journal", "/tmp/journal"),
        ] {
            let path: LogPath = url.parse().unwrap();
            assert_eq!((path.dir().to_str().unwrap(), path.to_string().as_str()), (dir, url));
        }
    }

    #[test]
    fn bad_names_are_refused() {
        let long = format!("shm://{}", "x".repeat(129));
        for bad in
            ["shm://", "shm://a/b", "shm://..", "shm://a b", "shm://é", "file://relative", "file:///", "tcp://x", &long]
        {
            assert!(bad.parse::<LogPath>().is_err(), "{bad}");
        }
    }
}
