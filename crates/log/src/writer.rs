//! The one writer of a log.

use std::hint::black_box;
use std::path::Path;

use tickpath_clock::{Calibration, ForkGeneration, WakeBarrier};
use zerocopy::IntoBytes;

use crate::append::{AppendError, Appender, AppenderParts, BlockedReason};
use crate::control::{ControlFile, MAX_READERS};
use crate::files::{self, LogShape};
use crate::guard::ProcessTrust;
use crate::layout::FIRST_KIND;
use crate::lock::{self, ByteLock, TryLock, writer_lock};
use crate::log_file::LogFile;
use crate::log_path::{QUEUE, READER_LOCKS, WRITER_LOCK};
use crate::mapping::Access;
use crate::recover::{DroppedData, ResumableLog, ResumeError};
use crate::segments::Segments;
use crate::sync::Ordering;
use crate::{Config, LogBatchError, LogOpenError, LogOwner, LogPath, LogPublishError, OverflowPolicy};

/// Publisher of a log's frames; a kernel lock excludes a second one.
pub struct Writer {
    pub(crate) appender: Appender,
    path: LogPath,
    pub(crate) shape: LogShape,
    /// Orders a commit before the check for sleeping readers.
    pub(crate) barrier: WakeBarrier,
    /// Rejects a message while no reader is registered: set for `fail` logs without a group.
    needs_reader: bool,
    /// Process that opened the writer: detects a forked child, whose copy is not the writer.
    pub(crate) fork_generation: ForkGeneration,
    dropped: Option<DroppedData>,
    /// Data file of the log: detects its removal.
    data: Box<LogFile>,
    /// Writer lock; none for an unnamed log, which no other process can open.
    _lock: Option<ByteLock>,
}

/// Opens a log that has no files: creates them, or fails.
type OpenMissing = fn(&Config, &LogShape) -> Result<Appender, LogOpenError>;

impl Writer {
    /// Creates a log, or resumes an existing log at its tail. Stamps must come from the clock of this calibration.
    pub fn open(config: &Config, calibration: &Calibration) -> Result<Self, LogOpenError> {
        let config = &config.with_group();
        files::create_folder(config)?;
        Self::open_or(create, config, calibration, ProcessTrust::Trusted)
    }

    /// As [`Self::open`], for a log that an untrusted process can write to: an existing log is guarded before the first
    /// access, a new one once it is created.
    pub fn open_untrusted(config: &Config, calibration: &Calibration) -> Result<Self, LogOpenError> {
        let config = &config.with_group();
        files::create_folder(config)?;
        let mut writer = Self::open_or(create, config, calibration, ProcessTrust::Untrusted)?;
        writer.guard().map_err(|e| LogOpenError::from_io(&config.path, 0, e))?;
        Ok(writer)
    }

    /// Resumes an existing log, as [`Self::open`] does, and never creates one. A half-created log counts as missing.
    pub fn open_existing(config: &Config, calibration: &Calibration) -> Result<Self, LogOpenError> {
        let config = &config.with_group();
        files::require_first_segment(&config.path)?;
        let fail: OpenMissing = |config, _| Err(LogOpenError::NotFound(config.path.clone()));
        Self::open_or(fail, config, calibration, ProcessTrust::Trusted)
    }

    fn open_or(
        missing: OpenMissing,
        config: &Config,
        calibration: &Calibration,
        trust: ProcessTrust,
    ) -> Result<Self, LogOpenError> {
        // Before the lock is taken: a rejected configuration must not create a file.
        LogShape::of(config, calibration)?;
        let lock = writer_lock(&config.path, config.mode)?;
        let writer = Self::locked(missing, config, calibration, trust)?;
        Ok(Self { _lock: Some(lock), ..writer })
    }

    /// Opens a log whose writer lock the caller holds.
    fn locked(
        missing: OpenMissing,
        config: &Config,
        calibration: &Calibration,
        trust: ProcessTrust,
    ) -> Result<Self, LogOpenError> {
        let wanted = LogShape::of(config, calibration)?;
        let path = &config.path;
        let barrier = WakeBarrier::of_this_host();
        let (shape, (appender, dropped)) = match files::open_data(path, Access::Write) {
            Err(LogOpenError::NotFound(_)) => (wanted, (missing(config, &wanted)?, None)),
            Err(e) => return Err(e),
            Ok((file, shape)) => {
                let control = files::open_or_create_control(config, trust)?;
                let segments = shape.segments(file, Access::Write, trust);
                let segments = segments.map_err(|e| LogOpenError::from_io(path, shape.segment_bytes as u64, e))?;
                (shape, resume(config, &wanted, shape, segments, control)?)
            }
        };
        appender.control.barrier().store(barrier.code(), Ordering::SeqCst);
        Ok(Self { dropped, ..Self::new(appender, shape, path.clone(), barrier) })
    }

    /// Builds a writer without a lock.
    pub(crate) fn new(appender: Appender, shape: LogShape, path: LogPath, barrier: WakeBarrier) -> Self {
        Self {
            needs_reader: shape.policy == OverflowPolicy::Fail && appender.control.group_cursor().is_none(),
            data: Box::new(LogFile::at(&path)),
            appender,
            path,
            shape,
            barrier,
            fork_generation: ForkGeneration::current(),
            dropped: None,
            _lock: None,
        }
    }

    /// Recreates the log where its files [were removed](Self::is_removed), or resumes one found there by now, with the
    /// next sequence number; on an error the writer keeps its old files. In shared memory remaining files are removed
    /// too, because readers hold no cursor in a log with another control file.
    pub fn recreate(&mut self, config: &Config, calibration: &Calibration) -> Result<(), LogOpenError> {
        if self.fork_generation.is_forked() {
            let what = "this process is a fork of the one that writes the log; open a log of your own here".to_owned();
            return Err(LogOpenError::Config(what));
        }
        let config = &Config { first_sequence: self.sequence(), ..config.with_group() };
        files::create_folder(config)?;
        let mut lock = if self.has_lock() { None } else { Some(writer_lock(&config.path, config.mode)?) };
        if self.path.is_shared_memory() && !self.data.is_data_removed() {
            // A file that cannot be removed is reused.
            let _ = self.path.remove();
            files::create_folder(config)?;
            lock = Some(writer_lock(&config.path, config.mode)?);
        }
        let mut made = Self::locked(create, config, calibration, ProcessTrust::Trusted)?;
        if self.appender.control.group_cursor().is_some() {
            made.make_queue(config)?;
        }
        made._lock = lock.or_else(|| self._lock.take());
        *self = made;
        Ok(())
    }

    /// Returns the number of messages of a queue that are not done; 0 for a log that is no queue.
    pub fn unfinished(&self) -> u64 {
        self.appender.control.group_cursor().map_or(0, |done| self.sequence().saturating_sub(done))
    }

    /// Returns true if the lock file that excludes a second writer still has its name.
    fn has_lock(&self) -> bool {
        self._lock.as_ref().is_some_and(|lock| !lock::is_replaced(&self.path, WRITER_LOCK, lock.id))
    }

    /// Returns true in a forked child: the writer belongs to the parent.
    pub fn is_forked(&self) -> bool {
        self.fork_generation.is_forked()
    }

    /// Prefetches the cache lines of the next message of `payload` bytes, and the words that a publish checks.
    #[inline]
    pub fn warm_up(&self, payload: usize) {
        self.appender.prefetch_next(payload);
        black_box(self.check_writable().is_ok());
        black_box(self.appender.control.sleepers().load(Ordering::Relaxed));
    }

    /// Takes a few cache lines of the next message from the readers' caches, assuming `payload` bytes and other lines
    /// in each turn; meant for each idle turn, and invisible to readers. Does nothing on a disk, where it would dirty
    /// pages that hold nothing new, nor in a fork, whose writer is another process.
    #[inline]
    pub fn reclaim_lines(&self, payload: usize, turn: u32) {
        if self.path.is_shared_memory() && !self.fork_generation.is_forked() {
            self.appender.reclaim_lines(payload, turn);
        }
    }

    /// Publishes one message, stamped `stamp` (ticks), and wakes sleeping readers. Returns its sequence number.
    #[inline(always)]
    pub fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, LogPublishError> {
        let sequence = self.append(stamp, kind, payload)?;
        self.wake();
        self.appender.prefetch_next(payload.len());
        Ok(sequence)
    }

    /// Publishes messages that become visible together, with one check for sleeping readers. A batch larger than a
    /// segment becomes visible in parts; a kill in the middle leaves none, or the parts already visible.
    #[inline]
    pub fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), LogBatchError> {
        let mut done = 0;
        while done < payloads.len() {
            match self.publish_part(stamp, kind, &payloads[done..]) {
                Ok(part) => done += part,
                Err(error) => {
                    // The reader that blocks the writer may be asleep.
                    self.wake();
                    return Err(LogBatchError { done, error });
                }
            }
        }
        self.wake();
        self.appender.prefetch_next(payloads.last().map_or(0, |payload| payload.len()));
        Ok(())
    }

    /// Checks that a message of `payload` bytes could be published now, or why not. May open the next segment for it.
    #[cold]
    pub fn check_room(&mut self, payload: usize) -> Result<(), LogPublishError> {
        self.with_room(|appender| appender.make_room(payload))
    }

    /// Allocates and faults in `bytes` bytes of a `keep` log behind its end. Call it after a sync: a sync makes every
    /// page that it writes, even one without frames yet, cost another fault at the next write.
    pub fn reserve(&mut self, bytes: u64) -> std::io::Result<()> {
        self.appender.region.populate();
        let next = self.appender.index + 1;
        self.appender.segments.preallocate(next, bytes.div_ceil(self.shape.segment_bytes as u64))
    }

    /// Ends a `keep` log: syncs it, moves its files to `dir`, and resumes with the next sequence number in a new log
    /// at the old place, shaped by `config`. A kill in the middle leaves the log in place, or a place without a log;
    /// then the next [`Self::open`] needs the next number as [`Config::first_sequence`].
    pub fn archive_to(&mut self, config: &Config, calibration: &Calibration, dir: &Path) -> Result<(), LogOpenError> {
        assert!(self.policy() == OverflowPolicy::Keep, "a ring is never full of history");
        let fail = |e| LogOpenError::from_io(&self.path, 0, e);
        self.sync().map_err(fail)?;
        let next = Config { first_sequence: self.sequence(), path: self.path.clone(), ..config.clone() };
        files::move_to(&next, dir).map_err(fail)?;
        let shape = LogShape::of(&next, calibration)?;
        let appender = create(&next, &shape)?;
        appender.control.barrier().store(self.barrier.code(), Ordering::SeqCst);
        (self.shape, self.appender, self.dropped) = (shape, appender, None);
        *self.data = LogFile::at(&self.path);
        Ok(())
    }

    /// Returns the sequence number of the first message ever published to the log.
    pub fn first_sequence(&self) -> u64 {
        self.shape.first_sequence
    }

    /// Returns true until the first message is published.
    pub fn is_new(&self) -> bool {
        self.sequence() == self.first_sequence()
    }

    /// Returns the sequence number of the next message.
    pub fn sequence(&self) -> u64 {
        self.appender.sequence
    }

    /// Returns the owner of the log.
    pub fn owner(&self) -> LogOwner {
        self.shape.owner
    }

    /// Returns the location of the log.
    pub fn path(&self) -> &LogPath {
        &self.path
    }

    /// Returns the behaviour of the log when it is full.
    pub fn policy(&self) -> OverflowPolicy {
        self.shape.policy
    }

    /// Returns the maximum payload, in bytes.
    pub fn max_payload(&self) -> usize {
        self.shape.max_payload()
    }

    /// Returns the number of registered readers that are not away, killed ones included.
    pub fn readers(&self) -> usize {
        self.appender.control.registered().filter(|reader| !reader.away).count()
    }

    /// Returns true if a registered reader's process lives. Frees cursors of dead readers.
    pub fn has_live_reader(&self) -> bool {
        // An unnamed log is written and read by its creator.
        if self._lock.is_none() {
            return true;
        }
        // Absent readers hold no lock, and a returning reader must find its lock free.
        let present: Vec<_> = self.appender.control.registered().filter(|reader| !reader.away).collect();
        !present.is_empty() && !present.iter().all(|reader| free_if_dead(&self.path, &self.appender, reader.slot))
    }

    /// Returns true if the log's data file, or the lock file that excludes a second writer, was removed or replaced.
    /// The writer and its open readers continue, but no other process finds the log. Asks the operating system.
    pub fn is_removed(&self) -> bool {
        self.data.is_removed() || self._lock.is_some() && !self.has_lock()
    }

    /// Returns the data dropped when the log was opened, after a loss of power or a kill in a batch, if any.
    pub fn dropped_data(&self) -> Option<DroppedData> {
        self.dropped
    }

    /// Removes the log. Readers that have it open keep their mappings.
    pub fn remove(self) -> std::io::Result<()> {
        self.path.remove()
    }

    /// Gates this writer by the oldest message of the group that is not done; from then on it needs no reader.
    pub(crate) fn gate_by_group(&mut self) {
        self.needs_reader = false;
        self.appender.recheck_cursors();
    }

    /// Publishes as many payloads as one segment takes, at least one.
    #[inline]
    fn publish_part(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<usize, LogPublishError> {
        if kind < FIRST_KIND {
            return Err(LogPublishError::Kind(kind));
        }
        self.with_room(|appender| appender.make_room_for_all(payloads))?;
        Ok(self.appender.append_batch(stamp, kind, payloads))
    }

    #[inline]
    fn with_room(
        &mut self,
        mut make: impl FnMut(&mut Appender) -> Result<(), AppendError>,
    ) -> Result<(), LogPublishError> {
        for _ in 0..=MAX_READERS {
            self.check_writable()?;
            match make(&mut self.appender) {
                Ok(()) => return Ok(()),
                Err(e) => self.unblock(e)?,
            }
        }
        Err(LogPublishError::Full)
    }

    #[inline(always)]
    fn append(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, LogPublishError> {
        if kind < FIRST_KIND {
            return Err(LogPublishError::Kind(kind));
        }
        self.check_writable()?;
        let sequence = self.appender.sequence;
        match self.appender.append(stamp, kind, payload) {
            Ok(()) => Ok(sequence),
            Err(e) => self.retry_append(e, stamp, kind, payload),
        }
    }

    /// Rejects every publish in a fork, and in a log that needs a reader and has none.
    #[inline(always)]
    fn check_writable(&self) -> Result<(), LogPublishError> {
        if self.fork_generation.is_forked() {
            return Err(LogPublishError::Forked);
        }
        if self.needs_reader && self.appender.control.readers() == 0 && self.has_no_reader() {
            return Err(LogPublishError::NoReader);
        }
        Ok(())
    }

    /// Returns true if the count of zero readers is right: always for a mandatory reader, else by the cursors.
    #[cold]
    fn has_no_reader(&self) -> bool {
        self.shape.mandatory || self.appender.control.registered().next().is_none()
    }

    #[cold]
    fn retry_append(&mut self, e: AppendError, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, LogPublishError> {
        self.unblock(e)?;
        self.check_room(payload.len())?;
        let sequence = self.appender.sequence;
        self.appender.append(stamp, kind, payload)?;
        Ok(sequence)
    }

    /// Frees the cursor of a dead reader that blocks the writer, for a retry of the append; else returns the error.
    fn unblock(&mut self, e: AppendError) -> Result<(), LogPublishError> {
        match e {
            AppendError::TooLarge(bytes) => Err(LogPublishError::TooLarge { bytes, limit: self.max_payload() }),
            AppendError::Blocked(BlockedReason::ByReader(slot)) if free_if_dead(&self.path, &self.appender, slot) => {
                Ok(())
            }
            e => Err(e.into()),
        }
    }

    #[inline(always)]
    fn wake(&self) {
        self.barrier.writer_fence();
        self.appender.control.wake_sleepers();
    }
}

fn create(config: &Config, shape: &LogShape) -> Result<Appender, LogOpenError> {
    let fail = |e| LogOpenError::from_io(&config.path, shape.segment_bytes as u64, e);
    let (file, control) = files::create(config, shape)?;
    // Created here with the log's mode: a lock file created by the first reader would belong to that reader alone.
    let locks = lock::try_lock(&config.path, READER_LOCKS, 0, config.mode);
    drop(locks.map_err(|e| LogOpenError::from_io(&config.path, 0, e))?);
    let mut segments = shape.segments(file, Access::Write, ProcessTrust::Trusted).map_err(fail)?;
    segments.set_boot_id(shape.calibration.boot_id);
    reserve(config, shape, &mut segments, 0).map_err(fail)?;
    let parts = parts(shape, segments, control, shape.calibration.as_bytes());
    Appender::fresh(parts, config.first_sequence).map_err(fail)
}

pub(crate) fn parts<'a>(
    shape: &LogShape,
    segments: Segments,
    control: ControlFile,
    calibration: &'a [u8],
) -> AppenderParts<'a> {
    let LogShape { frame, segment_bytes, policy, .. } = *shape;
    AppenderParts { segments, control, frame, segment_bytes, gated: policy == OverflowPolicy::Fail, calibration }
}

fn resume(
    config: &Config,
    wanted: &LogShape,
    found: LogShape,
    mut segments: Segments,
    control: ControlFile,
) -> Result<(Appender, Option<DroppedData>), LogOpenError> {
    let path = &config.path;
    let io = |e| LogOpenError::from_io(path, found.segment_bytes as u64, e);
    let same = |s: &LogShape| (s.policy, s.segment_bytes, s.segments);
    // A configuration without a mandatory reader accepts a log with one.
    if same(wanted) != same(&found) || wanted.mandatory && !found.mandatory {
        let place = path.clone();
        return Err(LogOpenError::ConfigMismatch { place, found: describe(&found), wanted: describe(wanted) });
    }
    if path.is_shared_memory() && !wanted.calibration.agrees_with(&found.calibration) {
        return Err(LogOpenError::Clock { place: path.clone(), found: clock_name(&found.calibration) });
    }
    // A counter calibrated twice in a boot keeps its first calibration.
    let same_boot = wanted.calibration.agrees_with(&found.calibration);
    let calibration = if same_boot { &found.calibration } else { &wanted.calibration }.as_bytes();
    // From the header, not from this configuration: a killed creator may have announced that number already.
    let first = found.first_sequence;
    let boot = wanted.calibration.boot_id;
    let extent = segments.survey(Some(boot)).map_err(io)?.transpose();
    let extent = extent.map_err(|missing| LogOpenError::damaged(path, missing.damage(&segments, &found)))?;
    segments.set_boot_id(boot);
    let remains = ResumableLog { parts: parts(&found, segments, control, calibration), first, extent };
    let (mut appender, cut) = remains.resume().map_err(|e| match e {
        ResumeError::Io(e) => io(e),
        ResumeError::Damaged(what) => LogOpenError::damaged(path, what),
    })?;
    let next = appender.index + 1;
    reserve(config, &found, &mut appender.segments, next).map_err(io)?;
    if found.mandatory && !appender.control.has_mandatory() {
        // The control file was lost: no message counts as read.
        appender.control.add_mandatory(appender.oldest());
    }
    for reader in appender.control.registered().collect::<Vec<_>>() {
        free_if_dead(path, &appender, reader.slot);
    }
    let has_queue = || path.open_folder().is_ok_and(|folder| folder.metadata(QUEUE).is_ok());
    if appender.control.group_cursor().is_none() && has_queue() {
        // The queue lost its control file: a message counts as done only by its owner word.
        appender.control.set_group_cursor(appender.oldest());
    }
    if !appender.is_stamped_by(calibration) {
        // Another boot: its stamps need a segment with their own calibration.
        appender.roll().map_err(|blocked| match blocked {
            BlockedReason::ByGroup => LogOpenError::OtherBoot(path.clone()),
            BlockedReason::Io(e) => io(e),
            BlockedReason::ByReader(_) => LogOpenError::ReadersOfOtherBoot(path.clone()),
        })?;
    }
    Ok((appender, cut))
}

/// Frees the cursor of a reader whose process has ended, as its free lock shows; returns false while the process lives.
fn free_if_dead(path: &LogPath, appender: &Appender, slot: usize) -> bool {
    let lock = lock::try_lock(path, READER_LOCKS, slot as u32, 0o600);
    let is_dead = matches!(lock, Ok(TryLock::Acquired(_)));
    if is_dead {
        appender.control.release(slot);
    }
    is_dead
}

fn reserve(config: &Config, shape: &LogShape, segments: &mut Segments, first: u64) -> std::io::Result<()> {
    let count = config.reserve_bytes.div_ceil(shape.segment_bytes as u64);
    segments.preallocate(first, count)
}

fn describe(shape: &LogShape) -> String {
    let LogShape { policy, segment_bytes, segments, .. } = shape;
    let reader = if shape.mandatory { ", a mandatory reader" } else { "" };
    let count = if *policy == OverflowPolicy::Keep { String::new() } else { format!("{segments} ") };
    format!("policy {policy}{reader}, {count}segments of {segment_bytes} bytes")
}

fn clock_name(calibration: &Calibration) -> String {
    let source = calibration.source().map_or("unknown", |source| source.name());
    format!("{source}, {} ticks a second, boot {:02x?}", calibration.ticks_per_second, &calibration.boot_id[..4])
}
