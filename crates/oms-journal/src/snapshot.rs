//! Snapshots: the state of an OMS after a record of its journal, so that a start need not read the records before it.
//!
//! ```text
//!   snapshot          the newest
//!   snapshot.before   the one before: for a lane that lagged when the newest was made
//!
//!   magic 8 · format 4 · zero 4 · next record 8 · last record 16 · bytes of the ledger 8
//!   the ledger · the core · crc32c 8
//! ```
//! A replay beside the core makes a snapshot, from the snapshot before and the journal's records since. The snapshot is
//! on the disk before it has its name; the journal is not synced for it, because that would stall the writer. A
//! snapshot is used only after the very record that it was made after: a journal that has lost that record, was
//! restored or begun anew is read from its beginning. Nothing is lost with a snapshot: a doubtful snapshot can be
//! removed. The thread that makes snapshots keeps its core (`docs/design/journal-memory.md`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tickpath_clock::Priority;
use tickpath_log::LogPath;
use tickpath_oms_core::{Config, Core};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::JournalError;
use crate::archive::journal_of;
use crate::ledger::LaneLedger;
use crate::replay::{LastRecord, Replay};

const MAGIC: u64 = u64::from_le_bytes(*b"TICKSNP1");
const FORMAT: u32 = 1;
const NEWEST: &str = "snapshot";
const BEFORE: &str = "snapshot.before";
/// Bytes of a file that are read or written at once.
const BUFFER: usize = 1 << 16;
/// Max bytes of a ledger: a larger ledger counts as damage.
const MAX_LEDGER_BYTES: u64 = 1 << 28;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SnapshotHeader {
    magic: u64,
    format: u32,
    reserved: u32,
    next: u64,
    last: LastRecord,
    ledger_bytes: u64,
}

/// A finished snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the first record that is not in the snapshot.
    pub next: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Inputs that were replayed for the snapshot: those since the snapshot before.
    pub replayed: u64,
}

/// A snapshot whose core has not been read yet.
pub(crate) struct OpenedSnapshot {
    next: u64,
    last: LastRecord,
    pub ledger: LaneLedger,
    file: ChecksummedStream<BufReader<File>>,
}

/// A stream with its checksum and byte count.
struct ChecksummedStream<T> {
    inner: T,
    sum: u32,
    bytes: u64,
}

/// Makes a snapshot of all records of a journal, whether or not an OMS is writing to it. The newest snapshot stays if
/// no input was added since.
pub fn make(journal: &LogPath) -> Result<SnapshotFile, JournalError> {
    let (mut replay, mut core) = open_replay(journal, Config::default(), |_, _| true)?;
    catch_up(journal, &mut replay, &mut core)
}

/// Returns the snapshots beside a journal, newest first: each with the first record that is not in it, or none if it is
/// damaged or was made of other records.
pub fn list(journal: &LogPath) -> Result<Vec<(PathBuf, Option<u64>)>, JournalError> {
    let mut found = Vec::new();
    for path in [NEWEST, BEFORE].map(|name| journal.dir().join(name)) {
        if !path.exists() {
            continue;
        }
        let mut next = None;
        if let Some(opened) = OpenedSnapshot::open(&path)
            && Replay::resume(journal, opened.next, opened.last, opened.ledger.clone())?.is_some()
        {
            let sequence = opened.next;
            next = opened.core(0).map(|_| sequence);
        }
        found.push((path, next));
    }
    Ok(found)
}

/// Returns a core and its replay, from the newest snapshot on, else from the journal's beginning. The core is up to
/// date once [`Replay::step`] returns false, and follows the journal from there; for an archived log both end with that
/// log, with the state of the days before.
pub fn follow(journal: &LogPath) -> Result<(Replay, Core), JournalError> {
    let Some((whole, end)) = journal_of(journal)? else { return open_replay(journal, Config::default(), |_, _| true) };
    let (replay, core) = open_replay(&whole, Config::default(), |next, _| next <= end)?;
    Ok((replay.until(end), core))
}

/// Applies the records since, and makes a snapshot.
fn catch_up(journal: &LogPath, replay: &mut Replay, core: &mut Core) -> Result<SnapshotFile, JournalError> {
    let before = replay.totals().inputs;
    while replay.step(core, |_, _, _| {})? {}
    // A lost page would look like the end.
    replay.check_end()?;
    let (next, replayed, path) = (replay.sequence(), replay.totals().inputs - before, journal.dir().join(NEWEST));
    let last = replay.last_record()?;
    if replayed == 0
        && OpenedSnapshot::open(&path).is_some_and(|newest| (newest.next, newest.last) == (next, last))
        && let Ok(file) = fs::metadata(&path)
    {
        return Ok(SnapshotFile { bytes: file.len(), next, replayed, path });
    }
    let head = SnapshotHeader { magic: MAGIC, format: FORMAT, reserved: 0, next, last, ledger_bytes: 0 };
    match write(journal.dir(), head, replay.ledger(), core) {
        Ok(bytes) => Ok(SnapshotFile { bytes, next, replayed, path }),
        Err(reason) => Err(JournalError::Snapshot { path, reason }),
    }
}

/// Returns a replay and its core: after the newest snapshot that fits this journal and that `is_of_use` accepts, given
/// the first record that is not in the snapshot and the ledger there; else at the journal's beginning, with a new core
/// of this configuration.
pub fn open_replay(
    journal: &LogPath,
    config: Config,
    is_of_use: impl Fn(u64, &LaneLedger) -> bool,
) -> Result<(Replay, Core), JournalError> {
    for name in [NEWEST, BEFORE] {
        let found =
            OpenedSnapshot::open(&journal.dir().join(name)).filter(|found| is_of_use(found.next, &found.ledger));
        let Some(found) = found else { continue };
        let Some(replay) = Replay::resume(journal, found.next, found.last, found.ledger.clone())? else { continue };
        if let Some(core) = found.core(config.expected_orders) {
            return Ok((replay, core));
        }
    }
    Ok((Replay::open(journal)?, Core::new(config)))
}

/// Writes a snapshot's file and renames it once it is on the disk.
fn write(folder: &Path, head: SnapshotHeader, ledger: &LaneLedger, core: &Core) -> io::Result<u64> {
    // Two makers at once would write into the same draft.
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join("snapshot.lock"))?;
    lock.lock()?;
    let draft = folder.join("snapshot.new");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    let mut file = ChecksummedStream::new(BufWriter::with_capacity(BUFFER, file));
    let ledger = ledger.save();
    file.put(SnapshotHeader { ledger_bytes: ledger.len() as u64, ..head }.as_bytes())?;
    file.put(&ledger)?;
    let mut written = Ok(());
    core.save(&mut |piece| {
        if written.is_ok() {
            written = file.put(piece);
        }
    });
    written?;
    let sum = u64::from(file.sum);
    file.put(sum.as_bytes())?;
    let bytes = file.bytes;
    file.inner.into_inner().map_err(|e| e.into_error())?.sync_all()?;
    // A damaged snapshot does not replace the one before.
    if OpenedSnapshot::open(&folder.join(NEWEST)).is_some() {
        fs::rename(folder.join(NEWEST), folder.join(BEFORE))?;
    }
    fs::rename(draft, folder.join(NEWEST))?;
    File::open(folder)?.sync_all()?;
    Ok(bytes)
}

/// A thread that makes snapshots of a journal on request.
pub struct SnapshotMaker {
    requests: SyncSender<()>,
    failed: Receiver<String>,
    every: u64,
}

impl SnapshotMaker {
    /// Starts the thread, on this processor if one is named. The thread ends with this value, after its current
    /// snapshot.
    pub fn start(journal: &LogPath, every: u64, cpu: Option<usize>) -> io::Result<Self> {
        let (requests, requested) = sync_channel(1);
        let (failures, failed) = sync_channel(1);
        let journal = journal.clone();
        let work = move || {
            // If it cannot be pinned, the thread runs on any processor.
            let _ = tickpath_clock::apply_schedule(cpu, Priority::Normal);
            // Continues from the last snapshot's core: less work than reading it again, and freeing the memory would
            // interrupt the core's processor for each page.
            let mut followed = None;
            for () in requested {
                let begun = followed.take().map_or_else(|| follow(&journal), Ok);
                let made = begun.and_then(|(mut replay, mut core)| {
                    catch_up(&journal, &mut replay, &mut core).map(|_| (replay, core))
                });
                match made {
                    Ok(follower) => followed = Some(follower),
                    Err(e) => drop(failures.try_send(e.to_string())),
                }
            }
        };
        std::thread::Builder::new().name("oms-snapshot".into()).spawn(work)?;
        Ok(Self { requests, failed, every })
    }

    /// Requests a snapshot; a request during a snapshot is served by the next one. Returns the record at which the next
    /// request is due.
    pub fn request(&self, sequence: u64) -> u64 {
        let _ = self.requests.try_send(());
        sequence + self.every
    }

    /// Returns the reason why the last snapshot failed, once.
    pub fn take_failure(&self) -> Option<String> {
        self.failed.try_recv().ok()
    }
}

impl OpenedSnapshot {
    /// Opens a snapshot up to its core; none if the file is no snapshot.
    fn open(path: &Path) -> Option<Self> {
        let mut file = ChecksummedStream::new(BufReader::with_capacity(BUFFER, File::open(path).ok()?));
        let mut head = SnapshotHeader::new_zeroed();
        file.take(head.as_mut_bytes()).ok()?;
        if head.magic != MAGIC || head.format != FORMAT || head.ledger_bytes > MAX_LEDGER_BYTES || head.next == 0 {
            return None;
        }
        let mut ledger = vec![0; head.ledger_bytes as usize];
        file.take(&mut ledger).ok()?;
        Some(Self { next: head.next, last: head.last, ledger: LaneLedger::load(&ledger)?, file })
    }

    /// Reads the core; none if the file is damaged.
    fn core(mut self, expected_orders: usize) -> Option<Core> {
        let core = Core::load(expected_orders, &mut |piece| self.file.take(piece).is_ok()).ok()?;
        let (expected, mut sum) = (u64::from(self.file.sum), [0; 8]);
        self.file.take(&mut sum).ok()?;
        (u64::from_le_bytes(sum) == expected).then_some(core)
    }
}

impl<T> ChecksummedStream<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: 0, bytes: 0 }
    }

    fn count(&mut self, piece: &[u8]) {
        self.sum = crc32c::crc32c_append(self.sum, piece);
        self.bytes += piece.len() as u64;
    }
}

impl<T: Write> ChecksummedStream<T> {
    fn put(&mut self, piece: &[u8]) -> io::Result<()> {
        self.count(piece);
        self.inner.write_all(piece)
    }
}

impl<T: Read> ChecksummedStream<T> {
    fn take(&mut self, piece: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(piece)?;
        self.count(piece);
        Ok(())
    }
}
