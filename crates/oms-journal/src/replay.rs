//! Applies a journal to a core: all of it, from a snapshot on, or for as long as it grows.

use tickpath_clock::Calibration;
use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart};
use tickpath_oms_core::{
    At, CORE_VERSION, Core, Departure, Input, JournalStop, LaneRecord, NameRecord, Output, Outputs, RecordKind,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::JournalError;
use crate::archive::{Archive, LogStart, archived_log, journal_of, open_log, read_start};
use crate::ledger::LaneLedger;

/// Totals of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayTotals {
    /// Records read.
    pub records: u64,
    /// Inputs applied.
    pub inputs: u64,
    /// Outputs of the core.
    pub outputs: u64,
    /// Digests checked.
    pub digests: u64,
    /// Departure of the last request, from the last orderly stop; its time is zero without such a stop.
    pub departure: Departure,
}

/// State at the end of the journal's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// The log is being written to.
    Open,
    /// A day ended in the log, so it goes into the archive.
    DayEnded,
    /// A core of another version wrote the log: it is archived before anything else is written.
    OfAnotherVersion,
    /// The log already records that another log follows.
    Rolled,
}

/// Replay of a journal: applies its records to a core one by one, and follows a growing journal when called again after
/// the end.
pub struct Replay {
    journal: LogPath,
    log: Reader,
    /// The last record is a rollover: another log follows.
    is_over: bool,
    /// Number of the first record to skip: the replay is of an archived day.
    end: u64,
    /// Version of the core that wrote the log, if it is another one; all of the log is in the snapshot.
    foreign: Option<u32>,
    outputs: Outputs,
    ledger: LaneLedger,
    totals: ReplayTotals,
}

impl Replay {
    /// Opens a replay at the beginning of a journal, if this version of the core wrote it.
    pub fn open(journal: &LogPath) -> Result<Self, JournalError> {
        let oldest = Archive::of(journal)?.oldest();
        let log = open_log(&oldest, ReaderStart::Oldest)?;
        match (log.first_sequence(), read_start(&oldest)?) {
            (0, Some(LogStart { core_version: found, .. })) if found != CORE_VERSION => {
                Err(JournalError::CoreVersion { found, expected: CORE_VERSION })
            }
            (0, _) => Ok(Self::with_log(journal, log, LaneLedger::default())),
            (first, _) => Err(JournalError::ArchiveGone { journal: journal.clone(), upto: first }),
        }
    }

    /// Opens a replay after the record before `next`, up to which a snapshot with this ledger holds everything; none if
    /// the journal lacks that record or holds another one in its place.
    pub(crate) fn resume(
        journal: &LogPath,
        next: u64,
        last: LastRecord,
        ledger: LaneLedger,
    ) -> Result<Option<Self>, JournalError> {
        let path = Archive::of(journal)?.log_of(next - 1);
        let mut log = match open_log(&path, ReaderStart::Sequence(next - 1)) {
            Err(LogOpenError::BeyondTail { .. } | LogOpenError::NotFound(_)) => return Ok(None),
            log => log?,
        };
        match log.next()? {
            Next::Message(record) if LastRecord::of(record.stamp, record.kind, record.payload) == last => {}
            _ => return Ok(None),
        }
        let mut replay = Self::with_log(journal, log, ledger);
        replay.is_over = last.kind == u32::from(RecordKind::JournalRollover.code());
        replay.foreign = read_start(&path)?.map(|start| start.core_version).filter(|&found| found != CORE_VERSION);
        Ok(Some(replay))
    }

    fn with_log(journal: &LogPath, log: Reader, ledger: LaneLedger) -> Self {
        let (journal, outputs, totals) = (journal.clone(), Outputs::new(), ReplayTotals::default());
        Self { journal, log, is_over: false, end: u64::MAX, foreign: None, outputs, ledger, totals }
    }

    /// Limits the replay to the records before this number.
    pub(crate) fn until(self, end: u64) -> Self {
        Self { end, ..self }
    }

    /// Applies the next input and passes it with the core's outputs to `emit`; false at the current end of the journal.
    #[inline]
    pub fn step(&mut self, core: &mut Core, emit: impl FnOnce(At, &Input, &[Output])) -> Result<bool, JournalError> {
        loop {
            if self.is_over && !self.open_next_log()? {
                return Ok(false);
            }
            let Next::Message(record) = self.log.next()? else { return Ok(false) };
            let (sequence, stamp) = (record.sequence, record.stamp);
            self.totals.records += 1;
            if record.kind == RecordKind::JournalStart.code() || self.ledger.journal() == 0 {
                self.ledger.begin_log(check_start(record.kind, record.payload, self.ledger.journal())?);
                continue;
            }
            let input = Input::read(record.kind, record.payload);
            let Some(input) = input.map_err(|reason| JournalError::Record { sequence, reason })? else {
                let (kind, payload) = (record.kind, record.payload);
                self.is_over = kind == RecordKind::JournalRollover.code();
                note_record(&mut self.totals, &mut self.ledger, core, sequence, kind, payload)?;
                continue;
            };
            if let Some(found) = self.foreign {
                return Err(JournalError::CoreVersion { found, expected: CORE_VERSION });
            }
            let at = At { sequence, stamp };
            core.apply(at, &input, &mut self.outputs);
            self.totals.inputs += 1;
            self.totals.outputs += self.outputs.len() as u64;
            self.ledger.note(&input, self.outputs.as_slice());
            emit(at, &input, self.outputs.as_slice());
            return Ok(true);
        }
    }

    /// Continues in the next log; false if no next log has begun.
    #[cold]
    fn open_next_log(&mut self) -> Result<bool, JournalError> {
        let next = self.log.sequence();
        if next >= self.end {
            return Ok(false);
        }
        let ended = archived_log(&self.journal, next);
        for path in [&ended, &self.journal] {
            match open_log(path, ReaderStart::Oldest) {
                Ok(log) if log.first_sequence() == next => {
                    self.log.check_end()?;
                    (self.log, self.is_over, self.foreign) = (log, false, None);
                    return Ok(true);
                }
                Ok(log) if log.first_sequence() > next => {
                    let upto = log.first_sequence();
                    return Err(JournalError::ArchiveGone { journal: self.journal.clone(), upto });
                }
                // The log that has just ended, or a log that is being moved or made.
                Ok(_) | Err(LogOpenError::NotFound(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(false)
    }

    /// Checks that the end is a real end, and no lost page.
    pub fn check_end(&self) -> Result<(), JournalError> {
        Ok(self.log.check_end()?)
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> ReplayTotals {
        self.totals
    }

    /// Returns the number of the next record.
    pub fn sequence(&self) -> u64 {
        self.log.sequence()
    }

    /// Returns the calibration of the clock that stamped the last record.
    pub fn calibration(&self) -> Calibration {
        self.log.calibration()
    }

    /// Returns the journal's state of the lanes.
    pub fn ledger(&self) -> &LaneLedger {
        &self.ledger
    }

    /// Returns the fingerprint of the record before the next one.
    pub(crate) fn last_record(&self) -> Result<LastRecord, JournalError> {
        let last = self.sequence().checked_sub(1).ok_or(JournalError::NoJournal)?;
        let path = Archive::of(&self.journal)?.log_of(last);
        match open_log(&path, ReaderStart::Sequence(last))?.next()? {
            Next::Message(record) => Ok(LastRecord::of(record.stamp, record.kind, record.payload)),
            Next::Gap(_) | Next::Empty => Err(JournalError::NoJournal),
        }
    }

    /// Returns how the journal's own log ends, once [`Self::step`] has found no more input.
    pub fn log_end(&self) -> LogEnd {
        match self.is_over {
            true => LogEnd::Rolled,
            false if self.foreign.is_some() => LogEnd::OfAnotherVersion,
            false if self.ledger.day_has_ended() => LogEnd::DayEnded,
            false => LogEnd::Open,
        }
    }
}

/// Applies a journal to a new core and passes its inputs with the outputs, the same to the byte, to `emit`. A journal
/// that does not exist yet is empty; an archived log is replayed together with the logs before it, whose state it
/// continues.
pub fn replay(
    journal: &LogPath,
    core: &mut Core,
    mut emit: impl FnMut(&Input, &[Output]),
) -> Result<ReplayTotals, JournalError> {
    let (journal, end) = journal_of(journal)?.unwrap_or_else(|| (journal.clone(), u64::MAX));
    if !Archive::of(&journal)?.oldest().exists() {
        return Ok(ReplayTotals::default());
    }
    let mut replay = Replay::open(&journal)?.until(end);
    while replay.step(core, |_, input, outputs| emit(input, outputs))? {}
    replay.check_end()?;
    Ok(replay.totals())
}

/// Returns the time of a record in nanoseconds since the Unix epoch; none if the record cannot be read.
pub fn time_of(journal: &LogPath, sequence: u64) -> Option<u64> {
    let journal = journal_of(journal).ok()?.map_or_else(|| journal.clone(), |(journal, _)| journal);
    let path = Archive::of(&journal).ok()?.log_of(sequence);
    let mut log = open_log(&path, ReaderStart::Sequence(sequence)).ok()?;
    let stamp = match log.next().ok()? {
        Next::Message(record) if record.sequence == sequence => record.stamp,
        Next::Message(_) | Next::Gap(_) | Next::Empty => return None,
    };
    Some(log.calibration().utc_ns_of(stamp))
}

/// Fingerprint of a record, to recognize it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
#[repr(C)]
pub(crate) struct LastRecord {
    stamp: u64,
    pub kind: u32,
    sum: u32,
}

impl LastRecord {
    pub fn of(stamp: u64, kind: u8, payload: &[u8]) -> Self {
        Self { stamp, kind: kind.into(), sum: crc32c::crc32c(payload) }
    }
}

/// Records a record that is no input: compares a digest, reads the last T2 of a stop, notes a lane or a name.
fn note_record(
    done: &mut ReplayTotals,
    ledger: &mut LaneLedger,
    core: &Core,
    sequence: u64,
    kind: u8,
    payload: &[u8],
) -> Result<(), JournalError> {
    match RecordKind::from_code(kind) {
        Some(RecordKind::Digest) => {
            if payload != core.digest().as_bytes() {
                return Err(JournalError::Digest { sequence });
            }
            done.digests += 1;
        }
        Some(RecordKind::JournalStop) => {
            let stop = JournalStop::read_from_bytes(payload).unwrap_or_default();
            done.departure = stop.departure_before();
        }
        Some(RecordKind::Lane) => {
            if let Ok(lane) = LaneRecord::read_from_bytes(payload) {
                ledger.note_lane(&lane);
            }
        }
        Some(RecordKind::Name) => {
            if let Ok(name) = NameRecord::read_from_bytes(payload) {
                ledger.note_name(&name);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Checks the first record of a log and returns the journal's id, which must match a known id.
fn check_start(kind: u8, payload: &[u8], known: u64) -> Result<u64, JournalError> {
    let start =
        LogStart::read(payload).filter(|_| kind == RecordKind::JournalStart.code()).ok_or(JournalError::NoJournal)?;
    match start {
        LogStart { core_version, .. } if core_version != CORE_VERSION => {
            Err(JournalError::CoreVersion { found: core_version, expected: CORE_VERSION })
        }
        LogStart { journal, .. } if journal != 0 && (known == 0 || known == journal) => Ok(journal),
        _ => Err(JournalError::NoJournal),
    }
}
