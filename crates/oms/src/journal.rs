//! The journal: every input of the core, in the order in which it was applied.

use std::hash::{BuildHasher, RandomState};

use tickpath_clock::Calibration;
use tickpath_log::{Config, Cut, Next, Place, Reader, Registration, Start as From, Tail, Writer};
use tickpath_orders::{
    At, CORE_VERSION, Core, Digest, Input, Lane, Output, Outputs, RECORD_BYTES, RecordKind, Start, Stop,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::OmsError;
use crate::ledger::Ledger;

/// Inputs between two digests.
const DIGEST_EVERY: u64 = 1 << 16;

/// Writes inputs.
pub struct Journal {
    log: Writer,
    reserve_bytes: u64,
    inputs: u64,
    cut: Option<Cut>,
}

/// A record is summed up by words, as it lies there.
#[repr(align(16))]
struct Aligned([u8; RECORD_BYTES]);

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
    /// T2 of the last request, in ticks; zero if the journal does not tell.
    pub released: u64,
}

impl Journal {
    /// Opens the journal, or begins one with this id.
    pub fn open(config: &Config, calibration: &Calibration, id: u64) -> Result<Self, OmsError> {
        let mut log = Writer::open(&Config { reserve_bytes: 0, ..config.clone() }, calibration)?;
        if log.sequence() == 0 {
            let ticks_per_second = calibration.ticks_per_second;
            let start = Start { core_version: CORE_VERSION, reserved: 0, ticks_per_second, journal: id };
            log.publish(calibration.ticks, RecordKind::Start.code(), start.as_bytes()).map_err(OmsError::Journal)?;
        }
        let cut = log.cut();
        Ok(Self { log, reserve_bytes: config.reserve_bytes, inputs: 0, cut })
    }

    /// Writes one input; it survives the end of this process when this returns. Gives its sequence number.
    #[inline]
    pub fn append(&mut self, stamp: u64, input: &Input) -> Result<u64, OmsError> {
        let mut buffer = Aligned([0; RECORD_BYTES]);
        let kind = input.kind().code();
        let sequence = self.log.publish(stamp, kind, input.write(&mut buffer.0)).map_err(OmsError::Journal)?;
        self.inputs += 1;
        Ok(sequence)
    }

    /// Writes that a lane was made.
    pub fn lane(&mut self, stamp: u64, lane: &Lane) -> Result<(), OmsError> {
        self.log.publish(stamp, RecordKind::Lane.code(), lane.as_bytes()).map_err(OmsError::Journal)?;
        Ok(())
    }

    /// True if a digest is due.
    #[inline]
    pub fn wants_digest(&self) -> bool {
        self.inputs.is_multiple_of(DIGEST_EVERY)
    }

    /// Writes where the core stands.
    pub fn digest(&mut self, stamp: u64, digest: &Digest) -> Result<(), OmsError> {
        self.log.publish(stamp, RecordKind::Digest.code(), digest.as_bytes()).map_err(OmsError::Journal)?;
        Ok(())
    }

    /// Writes that the OMS stops in order, with the last T2 and whether that request had to wait for its line.
    pub fn stop(&mut self, stamp: u64, released: u64, queued: bool) -> Result<(), OmsError> {
        let stop = Stop { released_before: released, queued_before: u64::from(queued) };
        self.log.publish(stamp, RecordKind::Stop.code(), stop.as_bytes()).map_err(OmsError::Journal)?;
        Ok(())
    }

    /// Makes memory ready for what comes; to be called once the start has synced for the last time.
    pub fn reserve(&mut self) -> Result<(), OmsError> {
        self.log.reserve(self.reserve_bytes).map_err(OmsError::Disk)
    }

    /// Returns when all that was written would survive a loss of power.
    pub fn sync(&mut self) -> Result<(), OmsError> {
        self.log.sync().map_err(OmsError::Disk)
    }

    /// Where the next record will lie.
    #[inline]
    pub fn tail(&self) -> Tail {
        self.log.tail()
    }

    /// What a loss of power had left at the end that was of no use.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    pub(crate) fn log(&self) -> &Writer {
        &self.log
    }
}

/// An id that no other journal has.
pub(crate) fn fresh_id(seed: Option<u64>, stamp: u64) -> u64 {
    let random = || RandomState::new().hash_one(stamp);
    seed.unwrap_or_else(random).max(1)
}

/// Applies records to a core, one by one, for as long as there are some: a replay; and whoever goes on after the end
/// follows a journal that grows.
pub struct Replay {
    log: Reader,
    outputs: Outputs,
    ledger: Ledger,
    done: Replayed,
}

impl Replay {
    /// At the beginning of a journal.
    pub fn open(place: &Place) -> Result<Self, OmsError> {
        let log = Reader::open(place, From::Oldest, Registration::Unregistered)?;
        Ok(Self { log, outputs: Outputs::new(), ledger: Ledger::default(), done: Replayed::default() })
    }

    /// Applies the next input, and gives it and what the core said to `emit`; false where the journal ends now.
    #[inline]
    pub fn step(&mut self, core: &mut Core, emit: impl FnOnce(At, &Input, &[Output])) -> Result<bool, OmsError> {
        loop {
            let Next::Message(record) = self.log.next()? else { return Ok(false) };
            let (sequence, stamp) = (record.sequence, record.stamp);
            self.done.records += 1;
            if sequence == 0 {
                self.ledger.journal = check_start(record.kind, record.payload)?;
            }
            let input = Input::read(record.kind, record.payload);
            let Some(input) = input.map_err(|reason| OmsError::Record { sequence, reason })? else {
                note(&mut self.done, &mut self.ledger, core, sequence, record.kind, record.payload)?;
                continue;
            };
            let at = At { sequence, stamp };
            core.apply(at, &input, &mut self.outputs);
            self.done.inputs += 1;
            self.done.outputs += self.outputs.len() as u64;
            self.ledger.note(&input, self.outputs.as_slice());
            emit(at, &input, self.outputs.as_slice());
            return Ok(true);
        }
    }

    /// Checks, at the end, that it is one, and no hole.
    pub fn check_end(&self) -> Result<(), OmsError> {
        Ok(self.log.check_end()?)
    }

    /// How far it has come.
    pub fn done(&self) -> Replayed {
        self.done
    }

    /// What the journal says of the lanes.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// Applies a journal to a new core: the same state and, to the byte, the same outputs, which go to `emit`. A journal
/// that does not exist yet is an empty one.
pub fn replay(place: &Place, core: &mut Core, mut emit: impl FnMut(&Input, &[Output])) -> Result<Replayed, OmsError> {
    if !place.exists() {
        return Ok(Replayed::default());
    }
    let mut replay = Replay::open(place)?;
    while replay.step(core, |_, input, outputs| emit(input, outputs))? {}
    replay.check_end()?;
    Ok(replay.done())
}

/// Checks the first record and tells the journal's id.
fn check_start(kind: u8, payload: &[u8]) -> Result<u64, OmsError> {
    if kind != RecordKind::Start.code() {
        return Err(OmsError::NoJournal);
    }
    // Every version begins with its own number.
    let found = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or(OmsError::NoJournal)?;
    match Start::read_from_bytes(payload) {
        Ok(start) if found == CORE_VERSION => Ok(start.journal),
        _ => Err(OmsError::CoreVersion { found, expected: CORE_VERSION }),
    }
}

/// Takes a record that is no input: a digest is compared, a stop tells the last T2, a lane was made.
fn note(
    done: &mut Replayed,
    ledger: &mut Ledger,
    core: &Core,
    sequence: u64,
    kind: u8,
    payload: &[u8],
) -> Result<(), OmsError> {
    match RecordKind::from_code(kind) {
        Some(RecordKind::Digest) => {
            if payload != core.digest().as_bytes() {
                return Err(OmsError::Digest { sequence });
            }
            done.digests += 1;
        }
        Some(RecordKind::Stop) => {
            done.released = Stop::read_from_bytes(payload).map_or(0, |stop| stop.released_before);
        }
        Some(RecordKind::Lane) => {
            if let Ok(lane) = Lane::read_from_bytes(payload) {
                ledger.note_lane(&lane);
            }
        }
        _ => {}
    }
    Ok(())
}
