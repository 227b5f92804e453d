//! The journal: every input of the core, in the order in which it was applied.
//!
//! The journal is a chain of logs with one numbering. The current log lies in the journal's folder; at the end of a day
//! it ends with a `JournalRollover`, moves to `archive/` under its first number, and the next log begins. A
//! `JournalStart` begins each log, so that a later core can begin the next one. The memory of the next records is made
//! ready behind a sync (`docs/design/journal-memory.md`).

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::io;

use tickpath_clock::Calibration;
use tickpath_log::{Config, DroppedData, LogPath, LogTail, Writer};
use tickpath_oms_core::{
    CORE_VERSION, Departure, Digest, Input, JournalRollover, JournalStart, JournalStop, LaneRecord, NameRecord,
    RECORD_BYTES, RecordKind,
};
use zerocopy::{Immutable, IntoBytes};

use crate::JournalError;
use crate::archive::{self, Archive, ArchivedEnd, read_start};
use crate::ballast::Ballast;

pub use crate::archive::logs;
pub use crate::replay::{LogEnd, Replay, ReplayTotals, replay, time_of};
pub use crate::snapshot::follow;

/// Inputs between two digests.
const DIGEST_EVERY: u64 = 1 << 16;

/// Writer of the journal's records.
pub struct Journal {
    log: Writer,
    id: u64,
    record: RecordBuffer,
    config: Config,
    calibration: Calibration,
    inputs: u64,
    cut: Option<DroppedData>,
}

/// Buffer of a record, aligned for the checksum, which reads whole words.
#[repr(align(16))]
struct RecordBuffer([u8; RECORD_BYTES]);

impl Journal {
    /// Opens the journal, or begins a journal with this id. After an archived log the journal keeps its id and its
    /// numbers, at whatever step of a roll a kill came.
    pub fn open(config: &Config, calibration: &Calibration, id: u64) -> Result<Self, JournalError> {
        let mut empty = Config { reserve_bytes: 0, ..config.clone() };
        let archive = Archive::of(&config.path)?;
        if !config.path.exists()
            && let Some(ended) = archive.newest_end()?
        {
            empty.first_sequence = ended.next;
        }
        let mut log = Writer::open(&empty, calibration)?;
        // After the lock is held: another OMS of this journal may own the ballast.
        Ballast::clear(config.path.dir());
        // The start of a longer log has checked its id, and needs no archived day.
        let may_follow = log.sequence() <= log.first_sequence() + 1;
        let last = if may_follow { archive.newest_end()? } else { None };
        let follows = last.filter(|ended| ended.next == log.first_sequence());
        if let Some(ended) = &follows
            && is_misnamed(&log, ended)?
        {
            drop(log);
            remove_files(&config.path)?;
            empty.first_sequence = ended.next;
            log = Writer::open(&empty, calibration)?;
        }
        let id = follows.map_or(id, |ended| ended.journal);
        let (cut, record) = (log.dropped_data(), RecordBuffer([0; RECORD_BYTES]));
        let mut journal = Self { log, id, record, config: config.clone(), calibration: *calibration, inputs: 0, cut };
        if journal.log.is_new() {
            journal.write_start()?;
        }
        Ok(journal)
    }

    /// Makes a journal for warm-up in this log; it is never read again.
    pub fn for_warm_up(log: Writer, real: &Self) -> Self {
        let Self { id, calibration, .. } = *real;
        let config = Config { path: log.path().clone(), ..real.config.clone() };
        Self { log, id, record: RecordBuffer([0; RECORD_BYTES]), config, calibration, inputs: 0, cut: None }
    }

    /// Continues the journal with this id after the replay of a start, in the next log if a roll is due.
    pub fn resume(&mut self, id: u64, end: LogEnd, stamp: u64) -> Result<(), JournalError> {
        self.id = id;
        match end {
            LogEnd::Open => Ok(()),
            // This roll can wait for the end of another day.
            LogEnd::DayEnded => self
                .roll(stamp, None)
                .or_else(|e| if matches!(e, JournalError::NotArchived(_)) { Ok(()) } else { Err(e) }),
            LogEnd::OfAnotherVersion => self.roll(stamp, None),
            LogEnd::Rolled => self.begin_next_log(),
        }
    }

    /// Writes the first record of a log.
    fn write_start(&mut self) -> Result<(), JournalError> {
        let ticks_per_second = self.calibration.ticks_per_second;
        let start = JournalStart { core_version: CORE_VERSION, reserved: 0, ticks_per_second, journal: self.id };
        self.write_record(self.calibration.ticks, RecordKind::JournalStart, &start)
    }

    /// Writes a record that is no input.
    fn write_record<T: IntoBytes + Immutable>(
        &mut self,
        stamp: u64,
        kind: RecordKind,
        record: &T,
    ) -> Result<(), JournalError> {
        self.log.publish(stamp, kind.code(), record.as_bytes()).map(drop).map_err(JournalError::Append)
    }

    /// Moves the log into the archive and begins the next log, durable before and after, with the disk space of the
    /// ballast. Changes nothing if the archive rejects the log.
    pub fn roll(&mut self, stamp: u64, ballast: Option<Ballast>) -> Result<(), JournalError> {
        archive::check_archivable(&self.config.path, self.log.first_sequence()).map_err(JournalError::NotArchived)?;
        self.sync()?;
        drop(ballast);
        self.write_record(stamp, RecordKind::JournalRollover, &JournalRollover { journal: self.id })?;
        self.begin_next_log()
    }

    /// Completes [`Self::roll`] for a journal that already has its [`JournalRollover`].
    fn begin_next_log(&mut self) -> Result<(), JournalError> {
        let folder = archive::archive_folder(&self.config.path, self.log.first_sequence());
        let empty = Config { reserve_bytes: 0, ..self.config.clone() };
        self.log.archive_to(&empty, &self.calibration, &folder)?;
        self.write_start()?;
        self.sync()
    }

    /// Writes one input and returns its sequence number. The input then survives the end of this process.
    #[inline]
    pub fn append(&mut self, stamp: u64, input: &Input) -> Result<u64, JournalError> {
        let kind = input.kind().code();
        let record = input.write(&mut self.record.0);
        let sequence = self.log.publish(stamp, kind, record).map_err(JournalError::Append)?;
        self.inputs += 1;
        Ok(sequence)
    }

    /// Touches the memory of the next record, so that the next append finds it in the cache.
    #[inline]
    pub fn prefetch(&self) {
        black_box(self.record.0);
        self.log.warm_up(RECORD_BYTES);
    }

    /// Records that a lane was made.
    pub fn lane(&mut self, stamp: u64, lane: &LaneRecord) -> Result<(), JournalError> {
        self.write_record(stamp, RecordKind::Lane, lane)
    }

    /// Writes the name of a venue or of a session's user.
    pub fn name(&mut self, stamp: u64, name: &NameRecord) -> Result<(), JournalError> {
        self.write_record(stamp, RecordKind::Name, name)
    }

    /// Returns whether a digest is due.
    #[inline]
    pub fn wants_digest(&self) -> bool {
        self.inputs.is_multiple_of(DIGEST_EVERY)
    }

    /// Records the digest of the core.
    pub fn digest(&mut self, stamp: u64, digest: &Digest) -> Result<(), JournalError> {
        self.write_record(stamp, RecordKind::Digest, digest)
    }

    /// Records an orderly stop of the OMS, with the departure of the last request.
    pub fn stop(&mut self, stamp: u64, last: Departure) -> Result<(), JournalError> {
        self.write_record(stamp, RecordKind::JournalStop, &JournalStop::after(last))
    }

    /// Reserves memory for the next records; to be called after the last sync of the start.
    pub fn reserve(&mut self) -> Result<(), JournalError> {
        self.log.reserve(self.config.reserve_bytes).map_err(JournalError::Disk)
    }

    /// Syncs the log: on return, all records survive a power loss.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.log.sync().map_err(JournalError::Disk)
    }

    /// Returns the position of the next record.
    #[inline]
    pub fn tail(&self) -> LogTail {
        self.log.tail()
    }

    /// Returns the size of the current day's log in bytes.
    pub fn bytes(&self) -> u64 {
        let tail = self.tail();
        tail.segment * self.config.segment_bytes as u64 + tail.offset
    }

    /// Returns the journal's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the unusable end that a power loss had left in the log and that was cut off.
    pub fn cut(&self) -> Option<DroppedData> {
        self.cut
    }

    /// Returns the configuration of the journal's logs.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the current day's log.
    #[inline]
    pub fn log(&self) -> &Writer {
        &self.log
    }
}

/// Returns whether a log holds only a start record with the id of another journal. Versions up to 0.1.0 left such a log
/// after a kill in the middle of a roll.
fn is_misnamed(log: &Writer, before: &ArchivedEnd) -> Result<bool, JournalError> {
    let holds_start_alone = log.sequence() == log.first_sequence() + 1;
    Ok(holds_start_alone && read_start(log.path())?.is_some_and(|start| start.journal != before.journal))
}

/// Removes a log's own files; the folder stays if it holds other files.
fn remove_files(log: &LogPath) -> Result<(), JournalError> {
    match log.remove() {
        Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => Err(JournalError::Disk(e)),
        _ => Ok(()),
    }
}

/// Returns an id that no other journal has, or the given id in simulations.
pub fn fresh_id(seed: Option<u64>, stamp: u64) -> u64 {
    let random = || RandomState::new().hash_one(stamp);
    seed.unwrap_or_else(random).max(1)
}
