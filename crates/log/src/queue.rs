//! Queues: logs whose messages are shared among pullers.
//!
//! ```text
//!             publish                               pull, acknowledge
//!   Writer ───────────> │seg│seg│seg│ <───────────── Puller … Puller
//!      ▲                    data                        │
//!      └── gate, wake ── control: group, sleepers <─────┤
//!                         queue: slots, owner words <───┘
//! ```
//!
//! A queue is a log with the policy `fail`, whose writer is gated by the oldest message that is not done, whether or
//! not it has pullers. Claims of messages are in a file of their own; `claim.rs` describes how pullers share it.

use std::fs::File;
use std::io;

use tickpath_clock::Calibration;

use crate::claim::ClaimTable;
use crate::control::{ControlFile, MAX_READERS};
use crate::files::{self, LogShape};
use crate::guard::ProcessTrust;
use crate::layout::SEGMENT_HEADER_BYTES;
use crate::lock;
use crate::log_path::{QUEUE, QUEUE_DRAFT, READER_LOCKS};
use crate::mapping::{Access, allocate};
use crate::region::Region;
use crate::{Config, LogOpenError, LogPath, OverflowPolicy, Reader, Writer};

impl Writer {
    /// Creates a queue, or resumes an existing queue at its tail, as [`Writer::open`] does with a log. Each message is
    /// for one [`QueuePuller`](crate::QueuePuller) of the queue; without pullers messages stay until the queue is full.
    pub fn open_queue(config: &Config, calibration: &Calibration) -> Result<Self, LogOpenError> {
        if config.policy != OverflowPolicy::Fail {
            let policy = config.policy;
            return Err(LogOpenError::Config(format!("a queue cannot have the policy '{policy}'; use 'fail'")));
        }
        if config.mandatory {
            let what = "a queue keeps messages for its pullers, and can have no mandatory reader";
            return Err(LogOpenError::Config(what.to_owned()));
        }
        let config = &config.with_group();
        let mut writer = Self::open(config, calibration)?;
        writer.make_queue(config)?;
        Ok(writer)
    }

    pub(crate) fn make_queue(&mut self, config: &Config) -> Result<(), LogOpenError> {
        let control = self.appender.control.clone();
        let claims = match open_claims(&config.path, &self.shape, control.clone()) {
            Err(LogOpenError::NotFound(_)) => create_claims(config, &self.shape, control)?,
            other => other?,
        };
        claims.restore(self.appender.oldest(), self.sequence());
        self.gate_by_group();
        Ok(())
    }
}

/// Returns the number of messages of a queue that no living puller has claimed and that are not done.
pub fn queue_backlog(path: &LogPath) -> Result<u64, LogOpenError> {
    let mut reader = Reader::open_for_puller(path)?;
    // Passes damaged messages, too: pullers set them aside.
    reader.seek(u64::MAX).map_err(|e| LogOpenError::damaged(path, e))?;
    let tail = reader.sequence();
    let claims = open_existing_claims(path)?;
    let is_gone = |slot: &usize| matches!(lock::holder(path, READER_LOCKS, puller_lock_byte(*slot)), Ok(None));
    let gone = claims.slots().filter(is_gone).fold(0_u64, |gone, slot| gone | 1_u64 << slot);
    Ok(claims.backlog(tail, gone))
}

/// Opens the owner words of a queue that a writer has created.
pub(crate) fn open_existing_claims(path: &LogPath) -> Result<ClaimTable, LogOpenError> {
    let (_, shape) = files::open_data(path, Access::Read)?;
    let control = files::open_control(path, ProcessTrust::Trusted)?;
    if control.group_cursor().is_none() {
        return Err(LogOpenError::NoQueue(path.clone()));
    }
    open_claims(path, &shape, control)
}

/// Returns the byte of the readers' lock file that a puller with this slot holds.
pub(crate) fn puller_lock_byte(slot: usize) -> u32 {
    (MAX_READERS + slot) as u32
}

fn open_claims(path: &LogPath, shape: &LogShape, control: ControlFile) -> Result<ClaimTable, LogOpenError> {
    let (capacity, bytes) = size(shape);
    let fail = |e| LogOpenError::from_io(path, bytes as u64, e);
    let file = path.open_file(QUEUE, Access::Write).map_err(fail)?;
    let claims = map(&file, control, capacity).map_err(fail)?;
    if !claims.has_header() {
        return Err(LogOpenError::damaged(path, "its queue file is none, or of another size"));
    }
    Ok(claims)
}

/// Creates the queue file; it appears under its name only when it is complete.
fn create_claims(config: &Config, shape: &LogShape, control: ControlFile) -> Result<ClaimTable, LogOpenError> {
    let path = &config.path;
    let (capacity, bytes) = size(shape);
    let fail = |e| LogOpenError::from_io(path, bytes as u64, e);
    let folder = path.open_folder().map_err(fail)?;
    let file = folder.draft(QUEUE_DRAFT, config.mode).map_err(fail)?;
    allocate(&file, 0, bytes as u64).map_err(fail)?;
    let claims = map(&file, control, capacity).map_err(fail)?;
    claims.write_header();
    if !path.is_shared_memory() {
        file.sync_all().map_err(fail)?;
    }
    folder.rename(QUEUE_DRAFT, &folder, QUEUE).map_err(fail)?;
    Ok(claims)
}

fn map(file: &File, control: ControlFile, capacity: u64) -> io::Result<ClaimTable> {
    let region = Region::map(file, 0, ClaimTable::bytes(capacity), Access::Write)?;
    region.populate();
    Ok(ClaimTable::new(region, control, capacity))
}

/// Returns the number of owner words, at least one for each of the smallest frames, and the bytes of their file.
fn size(shape: &LogShape) -> (u64, usize) {
    let frames = (shape.segment_bytes - SEGMENT_HEADER_BYTES) / shape.frame.bytes(0);
    let capacity = (frames * shape.segments).next_power_of_two() as u64;
    (capacity, ClaimTable::bytes(capacity))
}
