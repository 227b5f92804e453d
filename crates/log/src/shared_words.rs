//! Two bare words in shared memory, a cache line each: the floor under every operation of a log.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use crate::folder::open_own_file;
use crate::log_path::LogPath;
use crate::mapping::{Access, allocate};
use crate::region::Region;

/// Words shared by processes, 128 bytes apart so that no two are fetched together.
pub struct SharedWords {
    region: Region,
}

const WORD_STRIDE: usize = 128;
const ENDING: &str = ".words";
const BYTES: usize = 4096;

impl SharedWords {
    /// Creates 32 zeroed words, or maps existing ones.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = open_own_file(&path(name)?)?;
        allocate(&file, 0, BYTES as u64)?;
        Ok(Self { region: Region::map(&file, 0, BYTES, Access::Write)? })
    }

    /// Lists the shared words in shared memory now, by name.
    pub fn all() -> io::Result<Vec<String>> {
        let words = |name: String| name.strip_suffix(ENDING).map(str::to_owned);
        Ok(LogPath::names_in_shared_memory()?.into_iter().filter_map(words).collect())
    }

    /// Returns one word.
    pub fn word(&self, number: usize) -> &AtomicU64 {
        self.region.word(number * WORD_STRIDE)
    }

    /// Removes the words. Processes that have them mapped keep their mappings.
    pub fn remove(name: &str) -> io::Result<()> {
        std::fs::remove_file(path(name)?)
    }
}

fn path(name: &str) -> io::Result<PathBuf> {
    let path = LogPath::shared_memory(&format!("{name}{ENDING}")).map_err(io::Error::other)?;
    Ok(path.dir().to_owned())
}
