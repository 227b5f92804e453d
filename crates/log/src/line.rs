//! Two bare words in shared memory, a cache line each: the floor under everything that a log does.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use crate::folder::own_file;
use crate::mapping::{Access, Mapping, allocate};
use crate::place::Place;
use crate::region::Region;

/// Words that processes share, 128 bytes apart so that no two are fetched together.
pub struct SharedWords {
    region: Region,
}

const APART: usize = 128;
const ENDING: &str = ".words";
const BYTES: usize = 4096;

impl SharedWords {
    /// Makes 32 words of zero, or maps those that are there.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = own_file(&path(name)?)?;
        allocate(&file, 0, BYTES as u64)?;
        let mapping = Mapping::new(&file, 0, BYTES, Access::Write)?;
        Ok(Self { region: Region::mapped(mapping) })
    }

    /// Those that lie in shared memory now, by name.
    pub fn all() -> io::Result<Vec<String>> {
        let words = |name: String| name.strip_suffix(ENDING).map(str::to_owned);
        Ok(Place::names_in_shared_memory()?.into_iter().filter_map(words).collect())
    }

    /// One word.
    pub fn word(&self, number: usize) -> &AtomicU64 {
        self.region.word(number * APART)
    }

    /// Removes them. Processes that have them mapped keep what they have.
    pub fn remove(name: &str) -> io::Result<()> {
        std::fs::remove_file(path(name)?)
    }
}

fn path(name: &str) -> io::Result<PathBuf> {
    let place = Place::shared_memory(&format!("{name}{ENDING}")).map_err(io::Error::other)?;
    Ok(place.dir().to_owned())
}
