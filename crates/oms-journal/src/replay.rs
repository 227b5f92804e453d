//! Applying a journal to a core: all of it, from a snapshot on, or for as long as it grows.

use tickpath_clock::Calibration;
use tickpath_log::{Next, OpenError, Place, Reader, Registration, Start as From};
use tickpath_orders::{At, CORE_VERSION, Core, Departure, Input, Lane, Name, Output, Outputs, RecordKind, Stop};
use zerocopy::{FromBytes, IntoBytes};

use crate::JournalError;
use crate::archive::{Archive, Beginning, folder, journal_of, read_start};
use crate::ledger::Ledger;

/// What a replay came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Records read.
    pub records: u64,
    /// Inputs applied.
    pub inputs: u64,
    /// Outputs given.
    pub outputs: u64,
    /// Digests that were checked.
    pub digests: u64,
    /// How the last request left, as the last orderly stop told; its time is zero if none did.
    pub departure: Departure,
}

/// How the journal's own log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is written to.
    Open,
    /// A day ended in it: it goes into the archive.
    Day,
    /// A core of another version wrote it: it goes there before anything else is written.
    OfAnotherVersion,
    /// It says already that it goes on elsewhere.
    Rolled,
}

/// Applies records to a core, one by one, for as long as there are some: a replay; and whoever goes on after the end
/// follows a journal that grows.
pub struct Replay {
    journal: Place,
    log: Reader,
    /// The last record said that another log follows.
    is_over: bool,
    /// Records from this number on are left out: the replay is of an archived day.
    end: u64,
    /// The log was written by another version of the core, and all of it is in the snapshot.
    foreign: Option<u32>,
    outputs: Outputs,
    ledger: Ledger,
    done: Replayed,
}

impl Replay {
    /// At the beginning of a journal, if this version of the core wrote it.
    pub fn open(journal: &Place) -> Result<Self, JournalError> {
        let oldest = Archive::of(journal)?.oldest();
        let log = Reader::open(&oldest, From::Oldest, Registration::Unregistered)?;
        match (log.first_sequence(), read_start(&oldest)?) {
            (0, Some(Beginning { core_version: found, .. })) if found != CORE_VERSION => {
                Err(JournalError::CoreVersion { found, expected: CORE_VERSION })
            }
            (0, _) => Ok(Self::on(journal, log, Ledger::default())),
            (first, _) => Err(JournalError::ArchiveGone { journal: journal.clone(), upto: first }),
        }
    }

    /// Behind the record before `next`, up to which everything is in a snapshot with this ledger; none if the journal does
    /// not hold that record, or another one.
    pub(crate) fn resume(
        journal: &Place,
        next: u64,
        last: LastRecord,
        ledger: Ledger,
    ) -> Result<Option<Self>, JournalError> {
        let place = Archive::of(journal)?.log_of(next - 1);
        let mut log = match Reader::open(&place, From::Sequence(next - 1), Registration::Unregistered) {
            Err(OpenError::Future { .. } | OpenError::NotFound(_)) => return Ok(None),
            log => log?,
        };
        match log.next()? {
            Next::Message(record) if LastRecord::of(record.stamp, record.kind, record.payload) == last => {}
            _ => return Ok(None),
        }
        let mut replay = Self::on(journal, log, ledger);
        replay.is_over = last.kind == u32::from(RecordKind::Rolled.code());
        replay.foreign = read_start(&place)?.map(|start| start.core_version).filter(|&found| found != CORE_VERSION);
        Ok(Some(replay))
    }

    fn on(journal: &Place, log: Reader, ledger: Ledger) -> Self {
        let (outputs, done) = (Outputs::new(), Replayed::default());
        Self { journal: journal.clone(), log, is_over: false, end: u64::MAX, foreign: None, outputs, ledger, done }
    }

    /// The same up to the log that ends before this record, and no further.
    pub(crate) fn until(self, end: u64) -> Self {
        Self { end, ..self }
    }

    /// Applies the next input, and gives it and what the core said to `emit`; false where the journal ends now.
    #[inline]
    pub fn step(&mut self, core: &mut Core, emit: impl FnOnce(At, &Input, &[Output])) -> Result<bool, JournalError> {
        loop {
            if self.is_over && !self.go_on()? {
                return Ok(false);
            }
            let Next::Message(record) = self.log.next()? else { return Ok(false) };
            let (sequence, stamp) = (record.sequence, record.stamp);
            self.done.records += 1;
            if record.kind == RecordKind::Start.code() || self.ledger.journal() == 0 {
                self.ledger.begin(check_start(record.kind, record.payload, self.ledger.journal())?);
                continue;
            }
            let input = Input::read(record.kind, record.payload);
            let Some(input) = input.map_err(|reason| JournalError::Record { sequence, reason })? else {
                let (kind, payload) = (record.kind, record.payload);
                self.is_over = kind == RecordKind::Rolled.code();
                note(&mut self.done, &mut self.ledger, core, sequence, kind, payload)?;
                continue;
            };
            if let Some(found) = self.foreign {
                return Err(JournalError::CoreVersion { found, expected: CORE_VERSION });
            }
            let at = At { sequence, stamp };
            core.apply(at, &input, &mut self.outputs);
            self.done.inputs += 1;
            self.done.outputs += self.outputs.len() as u64;
            self.ledger.note(&input, self.outputs.as_slice());
            emit(at, &input, self.outputs.as_slice());
            return Ok(true);
        }
    }

    /// Goes on in the log that follows; false if that has not begun.
    #[cold]
    fn go_on(&mut self) -> Result<bool, JournalError> {
        let next = self.log.sequence();
        if next >= self.end {
            return Ok(false);
        }
        let ended = Place::folder(folder(&self.journal, next));
        for place in [&ended, &self.journal] {
            match Reader::open(place, From::Oldest, Registration::Unregistered) {
                Ok(log) if log.first_sequence() == next => {
                    self.log.check_end()?;
                    (self.log, self.is_over, self.foreign) = (log, false, None);
                    return Ok(true);
                }
                Ok(log) if log.first_sequence() > next => {
                    let upto = log.first_sequence();
                    return Err(JournalError::ArchiveGone { journal: self.journal.clone(), upto });
                }
                // The log that has just ended, or one that is being moved or made.
                Ok(_) | Err(OpenError::NotFound(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(false)
    }

    /// Checks, at the end, that it is one, and no hole.
    pub fn check_end(&self) -> Result<(), JournalError> {
        Ok(self.log.check_end()?)
    }

    /// How far it has come.
    pub fn done(&self) -> Replayed {
        self.done
    }

    /// The number of the next record.
    pub fn sequence(&self) -> u64 {
        self.log.sequence()
    }

    /// The clock of the last record's stamps.
    pub fn calibration(&self) -> Calibration {
        self.log.calibration()
    }

    /// What the journal says of the lanes.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The record before the next one.
    pub(crate) fn last_record(&self) -> Result<LastRecord, JournalError> {
        let last = self.sequence().checked_sub(1).ok_or(JournalError::NoJournal)?;
        let place = Archive::of(&self.journal)?.log_of(last);
        match Reader::open(&place, From::Sequence(last), Registration::Unregistered)?.next()? {
            Next::Message(record) => Ok(LastRecord::of(record.stamp, record.kind, record.payload)),
            Next::Gap(_) | Next::Empty => Err(JournalError::NoJournal),
        }
    }

    /// Returns how the journal's own log ends, once [`Self::step`] has found no more input.
    pub fn log_end(&self) -> End {
        match self.is_over {
            true => End::Rolled,
            false if self.foreign.is_some() => End::OfAnotherVersion,
            false if self.ledger.day_has_ended() => End::Day,
            false => End::Open,
        }
    }
}

/// Applies a journal to a new core: the same state and, to the byte, the same outputs, which go to `emit`. A journal
/// that does not exist yet is an empty one. An archived log is replayed with the logs before it, whose state it goes on with.
pub fn replay(
    journal: &Place,
    core: &mut Core,
    mut emit: impl FnMut(&Input, &[Output]),
) -> Result<Replayed, JournalError> {
    let (journal, end) = journal_of(journal)?.unwrap_or_else(|| (journal.clone(), u64::MAX));
    if !Archive::of(&journal)?.oldest().exists() {
        return Ok(Replayed::default());
    }
    let mut replay = Replay::open(&journal)?.until(end);
    while replay.step(core, |_, input, outputs| emit(input, outputs))? {}
    replay.check_end()?;
    Ok(replay.done())
}

/// When a record was written, in nanoseconds since the Unix epoch; none if it cannot be read.
pub fn time_of(journal: &Place, sequence: u64) -> Option<u64> {
    let journal = journal_of(journal).ok()?.map_or_else(|| journal.clone(), |(journal, _)| journal);
    let place = Archive::of(&journal).ok()?.log_of(sequence);
    let mut log = Reader::open(&place, From::Sequence(sequence), Registration::Unregistered).ok()?;
    let stamp = match log.next().ok()? {
        Next::Message(record) if record.sequence == sequence => record.stamp,
        Next::Message(_) | Next::Gap(_) | Next::Empty => return None,
    };
    Some(log.calibration().utc_ns_of(stamp))
}

/// By which a record is known again.
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

/// Takes a record that is no input: a digest is compared, a stop tells the last T2, a lane was made, a number has a name.
fn note(
    done: &mut Replayed,
    ledger: &mut Ledger,
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
        Some(RecordKind::Stop) => {
            let stop = Stop::read_from_bytes(payload).unwrap_or_default();
            done.departure = stop.departure_before();
        }
        Some(RecordKind::Lane) => {
            if let Ok(lane) = Lane::read_from_bytes(payload) {
                ledger.note_lane(&lane);
            }
        }
        Some(RecordKind::Name) => {
            if let Ok(name) = Name::read_from_bytes(payload) {
                ledger.note_name(&name);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Checks the first record of a log and tells the journal's id, if that is not known already.
fn check_start(kind: u8, payload: &[u8], known: u64) -> Result<u64, JournalError> {
    let start = Beginning::read(payload).filter(|_| kind == RecordKind::Start.code()).ok_or(JournalError::NoJournal)?;
    match start {
        Beginning { core_version, .. } if core_version != CORE_VERSION => {
            Err(JournalError::CoreVersion { found: core_version, expected: CORE_VERSION })
        }
        Beginning { journal, .. } if journal != 0 && (known == 0 || known == journal) => Ok(journal),
        _ => Err(JournalError::NoJournal),
    }
}
