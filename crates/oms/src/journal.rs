//! The journal: every input of the core, in the order in which it was applied.

use tickpath_clock::Calibration;
use tickpath_log::{Config, Next, Place, Reader, Registration, Start as From, Writer};
use tickpath_orders::{At, CORE_VERSION, Core, Digest, Input, Output, Outputs, RecordKind, Start, Stop};
use zerocopy::{FromBytes, IntoBytes};

use crate::OmsError;

/// Inputs between two digests.
const DIGEST_EVERY: u64 = 1 << 16;

/// Writes inputs.
pub struct Journal {
    log: Writer,
    inputs: u64,
}

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
    /// Opens the journal, or begins one.
    pub fn open(config: &Config, calibration: &Calibration) -> Result<Self, OmsError> {
        let mut log = Writer::open(config, calibration)?;
        if log.sequence() == 0 {
            let start =
                Start { core_version: CORE_VERSION, reserved: 0, ticks_per_second: calibration.ticks_per_second };
            log.publish(calibration.ticks, RecordKind::Start.code(), start.as_bytes()).map_err(OmsError::Journal)?;
        }
        Ok(Self { log, inputs: 0 })
    }

    /// Writes one input; it survives the end of this process when this returns. Gives its sequence number.
    #[inline]
    pub fn append(&mut self, stamp: u64, input: &Input) -> Result<u64, OmsError> {
        let mut buffer = [0; 128];
        let kind = input.kind().code();
        let sequence = self.log.publish(stamp, kind, input.write(&mut buffer)).map_err(OmsError::Journal)?;
        self.inputs += 1;
        Ok(sequence)
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
}

/// Applies a journal to a new core: the same state and, to the byte, the same outputs, which go to `emit`. A journal
/// that does not exist yet is an empty one.
pub fn replay(place: &Place, core: &mut Core, mut emit: impl FnMut(&Input, &[Output])) -> Result<Replayed, OmsError> {
    let mut done = Replayed::default();
    if !place.exists() {
        return Ok(done);
    }
    let mut log = Reader::open(place, From::Oldest, Registration::Unregistered)?;
    let mut outputs = Outputs::new();
    while let Next::Message(record) = log.next()? {
        done.records += 1;
        let sequence = record.sequence;
        check_start(sequence, record.kind, record.payload)?;
        let input = Input::read(record.kind, record.payload);
        match input.map_err(|reason| OmsError::Record { sequence, reason })? {
            Some(input) => {
                core.apply(At { sequence, stamp: record.stamp }, &input, &mut outputs);
                done.inputs += 1;
                done.outputs += outputs.len() as u64;
                emit(&input, outputs.as_slice());
            }
            None => note(&mut done, core, sequence, record.kind, record.payload)?,
        }
    }
    log.check_end()?;
    Ok(done)
}

fn check_start(sequence: u64, kind: u8, payload: &[u8]) -> Result<(), OmsError> {
    if sequence > 0 {
        return Ok(());
    }
    let start = Start::read_from_bytes(payload).ok().filter(|_| kind == RecordKind::Start.code());
    match start {
        None => Err(OmsError::NoJournal),
        Some(start) if start.core_version != CORE_VERSION => {
            Err(OmsError::CoreVersion { found: start.core_version, expected: CORE_VERSION })
        }
        Some(_) => Ok(()),
    }
}

/// Takes a record that is no input: a digest is compared, a stop tells the last T2.
fn note(done: &mut Replayed, core: &Core, sequence: u64, kind: u8, payload: &[u8]) -> Result<(), OmsError> {
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
        _ => {}
    }
    Ok(())
}
