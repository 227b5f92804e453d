//! Counters in shared memory: named runs of words that one process updates, and any other can read.
//!
//! ```text
//!   0      magic    version    incarnation    pid    runs    words    (a word each)
//!   64     a run: its name (56 bytes, padded with zeros), its number of words (8 bytes)
//!   …      the words of all runs, one behind the other, from the next multiple of 64 on
//! ```
//!
//! The file is complete before it gets its name, and never changes its layout. There is one writer, so an update is a
//! load and a store, both relaxed: a reader sees each word at some moment, and not all of them at the same moment. A
//! restart of the writer creates a new file under the same name, which [`CountersReader::is_current`] detects.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;

use tickpath_clock::ForkGeneration;

use crate::lock::{self, ByteLock, FileId, writer_lock};
use crate::log_path::WRITER_LOCK;
use crate::mapping::{Access, allocate};
use crate::region::Region;
use crate::sync::Ordering;
use crate::{LogOpenError, LogPath};

const MAGIC: u64 = u64::from_le_bytes(*b"TICKCNT1");
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 64;
const RUN_BYTES: usize = 64;
/// Max bytes of a run's name.
const NAME_BYTES: usize = 56;
/// Limits of a plausible header.
const MAX_RUNS: u64 = 1 << 16;
const MAX_WORDS: u64 = 1 << 20;
const MODE: u32 = 0o600;
/// File in the folder of the name, and its draft during creation.
const FILE: &str = "words";
const DRAFT: &str = "words.new";
/// Byte offsets in the header.
const VERSION_AT: usize = 8;
const INCARNATION_AT: usize = 16;
const RUNS_AT: usize = 32;
const WORDS_AT: usize = 40;

/// Counters that this process updates; removed from shared memory when dropped.
pub struct Counters {
    words: Region,
    path: LogPath,
    fork_generation: ForkGeneration,
    _lock: ByteLock,
}

impl Counters {
    /// Creates zeroed counters under a name of shared memory, in runs of a name and a number of words each.
    /// `incarnation` must be a number that no earlier writer of these counters had.
    pub fn open(path: &LogPath, incarnation: u64, runs: &[(String, usize)]) -> Result<Self, LogOpenError> {
        let fail = |e| LogOpenError::from_io(path, 0, e);
        DirBuilder::new().recursive(true).mode(MODE | 0o100).create(path.dir()).map_err(fail)?;
        let lock = writer_lock(path, MODE)?;
        if let Some((name, _)) = runs.iter().find(|(name, _)| name.is_empty() || name.len() > NAME_BYTES) {
            return Err(LogOpenError::Config(format!("'{name}' names no counters; use 1 to {NAME_BYTES} bytes")));
        }
        let words: usize = runs.iter().map(|(_, words)| words).sum();
        let (from, bytes) = (words_from(runs.len()), words_from(runs.len()) + words * 8);
        let folder = path.open_folder().map_err(fail)?;
        let file = folder.draft(DRAFT, MODE).map_err(fail)?;
        allocate(&file, 0, bytes as u64).map_err(fail)?;
        let region = Region::map(&file, 0, bytes, Access::Write).map_err(fail)?;
        let head = [MAGIC, VERSION.into(), incarnation, std::process::id().into(), runs.len() as u64, words as u64];
        for (index, word) in head.into_iter().enumerate() {
            region.word(index * 8).store(word, Ordering::Relaxed);
        }
        for (index, (name, words)) in runs.iter().enumerate() {
            let at = HEAD_BYTES + index * RUN_BYTES;
            region.copy_in(at, name.as_bytes());
            region.word(at + NAME_BYTES).store(*words as u64, Ordering::Relaxed);
        }
        // Renamed once complete: a reader that finds the file never sees a half-written header.
        folder.rename(DRAFT, &folder, FILE).map_err(fail)?;
        region.populate();
        let (words, fork_generation) = (region.part(from, words * 8), ForkGeneration::current());
        Ok(Self { words, path: path.clone(), fork_generation, _lock: lock })
    }

    /// Adds to a counter: a load and a store, because there is no other writer.
    #[inline(always)]
    pub fn add(&mut self, word: usize, more: u64) {
        let word = self.words.word(word * 8);
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Sets a gauge.
    #[inline(always)]
    pub fn set(&mut self, word: usize, value: u64) {
        self.words.word(word * 8).store(value, Ordering::Relaxed);
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // A forked child's copy is not the writer.
        if self.fork_generation.is_forked() {
            return;
        }
        let Ok(folder) = self.path.open_folder() else { return };
        let _ = folder.remove(FILE);
        let _ = folder.remove(WRITER_LOCK);
        let _ = fs::remove_dir(self.path.dir());
    }
}

/// Another process's counters, mapped read-only.
pub struct CountersReader {
    path: LogPath,
    words: Region,
    /// Each run with its first word and its number of words.
    runs: Vec<(String, usize, usize)>,
    incarnation: u64,
    file: FileId,
}

impl CountersReader {
    /// Maps the counters of this name.
    pub fn open(path: &LogPath) -> Result<Self, LogOpenError> {
        let fail = |e: io::Error| LogOpenError::from_io(path, 0, e);
        let damaged = |what: &str| LogOpenError::damaged(path, what);
        let file = path.open_file(FILE, Access::Read).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        let bytes = metadata.len() as usize;
        if bytes < HEAD_BYTES {
            return Err(damaged("its header is cut short"));
        }
        let region = Region::map(&file, 0, bytes, Access::Read).map_err(fail)?;
        // A later truncation of the file makes reads return zeros, and kills no process.
        region.guard().map_err(fail)?;
        let head = |at: usize| region.word(at).load(Ordering::Relaxed);
        if head(0) != MAGIC {
            return Err(damaged("it does not start like counters"));
        }
        let version = head(VERSION_AT);
        if version != VERSION.into() {
            return Err(LogOpenError::Version { place: path.clone(), found: version as u32, expected: VERSION });
        }
        let (count, words) = (head(RUNS_AT), head(WORDS_AT));
        if count > MAX_RUNS || words > MAX_WORDS || words_from(count as usize) + words as usize * 8 > bytes {
            return Err(damaged("its header counts more than it holds"));
        }
        let runs = read_runs(&region, count as usize, words as usize);
        let runs = runs.ok_or_else(|| damaged("the names of its counters are damaged"))?;
        let incarnation = head(INCARNATION_AT);
        let words = region.part(words_from(runs.len()), words as usize * 8);
        Ok(Self { path: path.clone(), words, runs, incarnation, file: lock::file_id(&metadata) })
    }

    /// Returns the incarnation of the writer.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Returns the process that writes the counters, if it lives.
    pub fn writer(&self) -> Option<u32> {
        lock::holder(&self.path, WRITER_LOCK, 0).ok().flatten().filter(|_| self.is_current())
    }

    /// Returns false once a restart of the writer has new counters under this name, or the name is gone.
    pub fn is_current(&self) -> bool {
        lock::file_at(&self.path, FILE).is_ok_and(|now| now == self.file)
    }

    /// Returns the runs: each with its name, and its words as they are now.
    pub fn runs(&self) -> impl Iterator<Item = (&str, Vec<u64>)> + '_ {
        self.runs.iter().map(|(name, first, words)| {
            let read = |word: usize| self.words.word(word * 8).load(Ordering::Relaxed);
            (name.as_str(), (*first..first + words).map(read).collect())
        })
    }
}

fn read_runs(region: &Region, count: usize, max: usize) -> Option<Vec<(String, usize, usize)>> {
    let (mut runs, mut first) = (Vec::with_capacity(count), 0_usize);
    for index in 0..count {
        let at = HEAD_BYTES + index * RUN_BYTES;
        let mut name = [0; NAME_BYTES];
        region.copy_out(at, &mut name);
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        let name = std::str::from_utf8(&name[..length]).ok()?;
        let words = region.word(at + NAME_BYTES).load(Ordering::Relaxed);
        let next = first.checked_add(usize::try_from(words).ok()?).filter(|next| *next <= max)?;
        runs.push((name.to_owned(), first, next - first));
        first = next;
    }
    Some(runs)
}

/// Returns the offset of the first word behind this number of runs.
fn words_from(runs: usize) -> usize {
    HEAD_BYTES + runs * RUN_BYTES
}
