//! A reader of a log. Runs of frames: `docs/design/bulk-reading.md`.

mod cursor;
pub(crate) mod lent;
mod slot;
pub(crate) mod walk;

use std::fs::File;

use tickpath_clock::{
    Calibration, MAX_SLEEP_FLAGS, Wait, WakeBarrier, relax, sleep_while, sleep_while_all_set, yield_now,
};
use zerocopy::FromBytes;

use crate::control::{ControlFile, ReaderInfo};
use crate::files::{self, LogShape};
use crate::follow::{CursorStep, FrameAt, HOLE, SegmentCursor};
use crate::guard::ProcessTrust;
use crate::layout::{GENERATION, SEGMENT_CALIBRATION, holding, index_held};
use crate::lock::{self, FileId};
use crate::log_path::DATA;
use crate::mapping::Access;
use crate::progress::current_boot_id;
use crate::region::Region;
use crate::segments::Segments;
use crate::sync::Ordering;
use crate::truncation;
use crate::{LogOpenError, LogOwner, LogPath, LogReadError, OverflowPolicy};

use slot::CursorSlot;

/// Max frames found in one run and handed over together.
const MAX_RUN: usize = 32;
/// Max attempts to find a segment while a writer recycles the ring in microseconds: beyond it there is damage.
const TRIES: u32 = 100_000;

/// Start position of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderStart {
    /// At the next message to be published.
    Now,
    /// At the oldest message still present.
    Oldest,
    /// At this sequence number; messages already recycled are reported as a gap.
    Sequence(u64),
    /// At the mandatory reader's cursor; for other readers, at the oldest message.
    Cursor,
}

/// Registration of a reader with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The reader has a cursor in the control file: it gates a `fail` topic, may sleep, and appears in listings.
    Registered,
    /// The reader is the log's mandatory reader: no message that it has not read is recycled, even while it is away.
    Mandatory,
    /// The reader leaves no trace: for files of other boots and users, and for more than 256 readers of one topic.
    Unregistered,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A message.
    Message(LogMessage<'a>),
    /// Number of messages lost because the writer was faster.
    Gap(u64),
    /// No new message.
    Empty,
}

/// A message in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogMessage<'a> {
    /// Sequence number: from 0, without gaps.
    pub sequence: u64,
    /// Stamp, in ticks of the log's clock.
    pub stamp: u64,
    /// Kind of the message.
    pub kind: u8,
    /// Payload bytes.
    pub payload: &'a [u8],
}

/// Reader of a log, in order of sequence numbers.
pub struct Reader {
    cursor: SegmentCursor,
    segments: Segments,
    pub(crate) shape: LogShape,
    path: LogPath,
    control: Option<ControlFile>,
    slot: Option<CursorSlot>,
    buffer: Vec<u8>,
    missed: u64,
    /// Identity of the log: distinguishes it from others of the same name.
    identity: u64,
    /// Device and inode of the data file; none for an unnamed log.
    data: Option<FileId>,
    /// Sequence number below which no message of a `keep` log is ever cut.
    settled: u64,
    /// Set if only this user and root can write to the data file.
    is_ours: bool,
    trust: ProcessTrust,
}

impl Reader {
    /// Opens a log that a writer has created.
    pub fn open(path: &LogPath, start: ReaderStart, registration: Registration) -> Result<Self, LogOpenError> {
        let (file, shape) = files::open_data(path, Access::Read)?;
        Self::open_file(path, file, shape, start, registration, ProcessTrust::Trusted)
    }

    /// Opens a log that an untrusted process can write to: as its mandatory reader if the log names one, else
    /// registered. Every message is copied before it is checked, and a truncated file kills no process
    /// ([`Self::is_truncated`]).
    pub fn open_untrusted(path: &LogPath, start: ReaderStart) -> Result<Self, LogOpenError> {
        let (file, shape) = files::open_data(path, Access::Read)?;
        files::reject_holes(path, &file)?;
        let registration = if shape.mandatory { Registration::Mandatory } else { Registration::Registered };
        Self::open_file(path, file, shape, start, registration, ProcessTrust::Untrusted)
    }

    /// Opens an untrusted log at the oldest message, unregistered: the writer neither sees nor waits for this reader.
    pub fn observe_untrusted(path: &LogPath) -> Result<Self, LogOpenError> {
        let (file, shape) = files::open_data(path, Access::Read)?;
        files::reject_holes(path, &file)?;
        Self::open_file(path, file, shape, ReaderStart::Oldest, Registration::Unregistered, ProcessTrust::Untrusted)
    }

    fn open_file(
        path: &LogPath,
        file: File,
        shape: LogShape,
        start: ReaderStart,
        registration: Registration,
        trust: ProcessTrust,
    ) -> Result<Self, LogOpenError> {
        let io = |e| LogOpenError::from_io(path, 0, e);
        let identity = files::identity(&file, &shape).map_err(io)?;
        let is_ours = files::is_ours(&file).map_err(io)?;
        let data = Some(lock::file_id(&file.metadata().map_err(io)?));
        let segments = shape.segments(file, Access::Read, trust).map_err(io)?;
        let settled = match segments.survey(current_boot_id()).map_err(io)? {
            Some(Err(missing)) => return Err(LogOpenError::damaged(path, missing.damage(&segments, &shape))),
            surveyed => surveyed.and_then(Result::ok).map_or(0, |extent| extent.settled()),
        };
        let cursor = oldest(path, &segments, &shape, trust)?;
        let unnamed = Self::unnamed(cursor, segments, shape, path);
        let mut reader = Self { identity, data, settled, is_ours, trust, ..unnamed };
        reader.register(registration)?;
        reader.go_to(start)?;
        Ok(reader)
    }

    /// Builds an unregistered reader of a log that has no name, or none yet.
    pub(crate) fn unnamed(cursor: SegmentCursor, segments: Segments, shape: LogShape, path: &LogPath) -> Self {
        Self {
            cursor,
            segments,
            shape,
            path: path.clone(),
            control: None,
            slot: None,
            buffer: Vec::new(),
            missed: 0,
            identity: 0,
            data: None,
            settled: 0,
            is_ours: true,
            trust: ProcessTrust::Trusted,
        }
    }

    /// Returns the next message, a gap, or [`Next::Empty`]. A lent message is returned to the log by the next call.
    #[inline(always)]
    #[allow(clippy::should_implement_trait, reason = "it lends, which an Iterator cannot")]
    pub fn next(&mut self) -> Result<Next<'_>, LogReadError> {
        self.publish_cursor()?;
        if let Some(at) = self.frame() {
            return Ok(Next::Message(self.message(at)));
        }
        // Fast path: most turns of a spinning reader find nothing.
        if self.missed == 0 && self.cursor.is_at_tail() {
            return self.empty_or_truncated().map(|_| Next::Empty);
        }
        match self.advance()? {
            FrameOrGap::Frame(at) => Ok(Next::Message(self.message(at))),
            FrameOrGap::Gap(missed) => Ok(Next::Gap(missed)),
            FrameOrGap::Nothing => Ok(Next::Empty),
        }
    }

    /// Passes up to `limit` messages and gaps to `hand_over`; returns their number. The cursor moves once, at the end.
    #[inline(always)]
    pub fn drain(&mut self, limit: usize, mut hand_over: impl FnMut(Next<'_>)) -> Result<usize, LogReadError> {
        self.refuse_fork()?;
        let mut count = 0;
        while count < limit {
            // Fast path: a run of pinned frames is found as a whole and handed over as a whole.
            if self.missed == 0 {
                let run = self.cursor.read_run(MAX_RUN.min(limit - count));
                (0..run.count)
                    .for_each(|index| hand_over(Next::Message(self.message(self.cursor.run_frame(&run, index)))));
                count += run.count;
                if run.count > 0 {
                    continue;
                }
            }
            if let Some(at) = self.frame() {
                hand_over(Next::Message(self.message(at)));
                count += 1;
                continue;
            }
            match self.advance()? {
                FrameOrGap::Frame(at) => hand_over(Next::Message(self.message(at))),
                FrameOrGap::Gap(missed) => hand_over(Next::Gap(missed)),
                FrameOrGap::Nothing => break,
            }
            count += 1;
        }
        self.publish_cursor()?;
        Ok(count)
    }

    /// Waits once for news, at most `timeout_ns` if it sleeps; the caller then reads again. The caller decides by its
    /// [`AdaptiveWait`](tickpath_clock::AdaptiveWait) when an adaptive wait is to sleep.
    pub fn wait(&mut self, wait: Wait, timeout_ns: u64) {
        match wait {
            Wait::Busy => self.cursor.spin_poll(),
            Wait::Yield => yield_now(),
            Wait::Block | Wait::Adaptive => self.sleep_unless(timeout_ns, || false),
        }
    }

    /// Checks at the end of a log on a disk that nothing lies behind it: a hole would pass for the end.
    pub fn check_end(&self) -> Result<(), LogReadError> {
        if self.shape.policy != OverflowPolicy::Keep || self.has_news() {
            return Ok(());
        }
        let index = self.cursor.index;
        let surveyed = self.segments.survey(current_boot_id()).map_err(unreadable(index))?;
        let Some(surveyed) = surveyed else { return Ok(()) };
        let extent = surveyed.map_err(|missing| missing.damage(&self.segments, &self.shape))?;
        // Frames behind an open batch belong to the batch.
        let is_hole = extent.found > index + 1
            || self.cursor.sequence < extent.durable.sequence
            || self.cursor.has_later_frame() && !self.cursor.is_open();
        // The writer may have published meanwhile.
        if is_hole && !self.has_news() { Err(self.cursor.damage(HOLE)) } else { Ok(()) }
    }

    /// Returns true if the files of an untrusted log were truncated; from then on [`Self::next`] fails too. Asks the
    /// operating system; [`faults`](crate::faults) indicates at no cost when to ask.
    pub fn is_truncated(&self) -> bool {
        let bytes = self.shape.data_bytes(self.cursor.index);
        truncation::is_truncated(&self.cursor.region, self.control.as_ref(), &self.path, bytes)
    }

    /// Returns the sequence number of the next message.
    pub fn sequence(&self) -> u64 {
        self.cursor.sequence
    }

    /// Returns the sequence number at which the next message or gap to be returned begins.
    pub fn next_reported(&self) -> u64 {
        self.cursor.sequence - self.missed
    }

    /// Returns the identity that distinguishes this log from any earlier or later log at its place.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns true if the log's data file was removed or replaced; messages still arrive. Asks the operating system.
    pub fn is_removed(&self) -> bool {
        self.data.is_some_and(|data| lock::is_replaced(&self.path, DATA, data))
    }

    /// Returns the process id of the log's writer, if it has one.
    pub fn writer(&self) -> Option<u32> {
        files::writer(&self.path)
    }

    /// Returns the location of the log.
    pub fn path(&self) -> &LogPath {
        &self.path
    }

    /// Returns the behaviour of the log when it is full.
    pub fn policy(&self) -> OverflowPolicy {
        self.shape.policy
    }

    /// Returns the sequence number of the first message ever published to the log.
    pub fn first_sequence(&self) -> u64 {
        self.shape.first_sequence
    }

    /// Returns the owner of the log.
    pub fn owner(&self) -> LogOwner {
        self.shape.owner
    }

    /// Returns the calibration of the stamps at the reader's position.
    pub fn calibration(&self) -> Calibration {
        let mut bytes = [0; size_of::<Calibration>()];
        self.cursor.region.copy_out(SEGMENT_CALIBRATION, &mut bytes);
        Calibration::read_from_bytes(&bytes).ok().filter(Calibration::is_sound).unwrap_or(self.shape.calibration)
    }

    /// Returns the bytes from the first segment's start to the cursor, as if no segment had ever been recycled.
    pub fn position(&self) -> u64 {
        let before = self.cursor.index.saturating_mul(self.shape.segment_bytes as u64);
        before.saturating_add(self.cursor.offset as u64)
    }

    /// Returns the registered readers.
    pub fn readers(&self) -> Vec<ReaderInfo> {
        let looked_up = || files::open_control(&self.path, self.trust).ok();
        let control = self.control.clone().or_else(looked_up);
        control.map(|control| control.registered().collect()).unwrap_or_default()
    }

    #[inline(always)]
    fn message(&self, at: FrameAt) -> LogMessage<'_> {
        let payload = self.cursor.payload(at.offset, at.length, &self.buffer);
        LogMessage { sequence: at.sequence, stamp: at.stamp, kind: at.kind, payload }
    }

    /// Returns the next frame, unless a gap must be reported first.
    #[inline(always)]
    fn frame(&mut self) -> Option<FrameAt> {
        if self.missed > 0 { None } else { self.cursor.frame(&mut self.buffer) }
    }

    /// Returns a gap, a frame that arrived meanwhile, or the next segment's first frame; else nothing.
    fn advance(&mut self) -> Result<FrameOrGap, LogReadError> {
        if self.missed > 0 {
            return Ok(FrameOrGap::Gap(std::mem::take(&mut self.missed)));
        }
        match self.cursor.step(&mut self.buffer)? {
            CursorStep::Frame(at) => Ok(FrameOrGap::Frame(at)),
            CursorStep::Empty => self.empty_or_truncated(),
            step => self.leave_segment(step),
        }
    }

    /// Returns nothing, or an error if the files of an untrusted log were truncated.
    #[inline(always)]
    fn empty_or_truncated(&self) -> Result<FrameOrGap, LogReadError> {
        let is_cut = || truncation::is_known_truncated(&self.cursor.region, self.control.as_ref());
        if self.trust == ProcessTrust::Untrusted && is_cut() {
            Err(LogReadError::Truncated)
        } else {
            Ok(FrameOrGap::Nothing)
        }
    }

    /// Continues in the next segment, or in a later one if this one was recycled; goes round the ring at most once.
    #[cold]
    fn leave_segment(&mut self, mut step: CursorStep) -> Result<FrameOrGap, LogReadError> {
        for _ in 0..=self.segments.ring_len().unwrap_or(u64::MAX) {
            let has_moved =
                if step == CursorStep::End { self.enter_next()? } else { self.catch_up().map(|()| true)? };
            if !has_moved {
                return self.empty_or_truncated();
            }
            if self.missed > 0 {
                return Ok(FrameOrGap::Gap(std::mem::take(&mut self.missed)));
            }
            step = match self.cursor.step(&mut self.buffer)? {
                CursorStep::Frame(at) => return Ok(FrameOrGap::Frame(at)),
                CursorStep::Empty => return self.empty_or_truncated(),
                step => step,
            };
        }
        Ok(FrameOrGap::Nothing)
    }

    /// Enters the next segment, or a later one if that was recycled already. Returns false if it is not opened yet.
    fn enter_next(&mut self) -> Result<bool, LogReadError> {
        let next = self.cursor.index + 1;
        let Some(region) = self.segments.get(next).map_err(unreadable(next))? else { return Ok(false) };
        let Some(mut cursor) = enter(region, &self.shape, next) else {
            // The segment holds a later index, or cannot be entered yet.
            let is_past = self.is_past(next);
            return if is_past { self.catch_up().map(|()| true) } else { Ok(false) };
        };
        if cursor.sequence != self.cursor.sequence {
            let what = "the next segment begins with another number";
            return Err(self.cursor.damage(what));
        }
        cursor.lend = self.cursor.lend;
        self.cursor = cursor;
        Ok(true)
    }

    /// Returns true if the ring has gone beyond this index.
    fn is_past(&self, index: u64) -> bool {
        self.segments.generation(index).is_some_and(|generation| generation > holding(index))
    }

    /// Moves a lapped reader to the middle of the segments still present, so that the next lap is half a ring away.
    fn catch_up(&mut self) -> Result<(), LogReadError> {
        if self.trust == ProcessTrust::Untrusted {
            if self.is_truncated() {
                return Err(LogReadError::Truncated);
            }
            if self.pins() {
                return Err(self.cursor.damage("the segment was recycled, though our cursor holds it"));
            }
        }
        let (before, index) = (self.cursor.sequence, self.cursor.index);
        for _ in 0..tries(self.trust) {
            let mut present = present_segments(&self.segments, &self.shape).map_err(unreadable(index))?;
            present.retain(|cursor| cursor.index > index && cursor.sequence >= before);
            if present.is_empty() {
                relax();
                continue;
            }
            self.cursor = present.swap_remove(present.len() / 2);
            self.missed = self.cursor.sequence - before;
            return Ok(());
        }
        Err(self.cursor.damage("the ring advanced, but no later segment is there"))
    }

    /// Sleeps until a wake-up, unless `has_other_news` returns true once the sleeper's flag is visible to all. Yields
    /// the core without a registration, or where the kernel cannot order the flag against the writer's commit.
    pub(crate) fn sleep_unless(&self, timeout_ns: u64, has_other_news: impl Fn() -> bool) {
        let Some(control) = &self.control else { return yield_now() };
        if !self.announce_sleep(control) {
            return yield_now();
        }
        if !self.has_news() && !has_other_news() {
            sleep_while(control.sleepers(), 1, timeout_ns);
            // A flag that no writer has cleared would cost the writer a useless system call at the next message. Other
            // sleepers wake too, check for news and set the flag again.
            control.wake_sleepers();
        }
    }

    /// Returns true if the next read would find a message or a gap.
    fn has_news(&self) -> bool {
        if self.missed > 0 {
            return true;
        }
        self.cursor.has_news().unwrap_or_else(|| {
            let next = self.cursor.index + 1;
            self.segments.generation(next).is_some_and(|generation| generation >= holding(next))
        })
    }

    /// Sets the sleeper's flag and makes the sleeper's half of the fence; the caller must then check for news again.
    fn announce_sleep(&self, control: &ControlFile) -> bool {
        control.sleepers().store(1, Ordering::SeqCst);
        WakeBarrier::from_code(control.barrier().load(Ordering::SeqCst)).sleeper_fence()
    }
}

/// Sleeps until a reader may have news, or `timeout_ns` is over. Yields if a reader is unregistered or there are more
/// than `MAX_SLEEP_FLAGS`.
pub fn sleep_until_any(readers: &[&Reader], timeout_ns: u64) {
    let controls: Vec<_> = readers.iter().filter_map(|reader| Some((*reader, reader.control.as_ref()?))).collect();
    if controls.len() < readers.len() || controls.is_empty() || controls.len() > MAX_SLEEP_FLAGS {
        return yield_now();
    }
    for (reader, control) in &controls {
        if !reader.announce_sleep(control) {
            return yield_now();
        }
    }
    if !controls.iter().any(|(reader, _)| reader.has_news()) {
        let flags: Vec<_> = controls.iter().map(|(_, control)| control.sleepers()).collect();
        sleep_while_all_set(&flags, timeout_ns);
        controls.iter().for_each(|(_, control)| control.wake_sleepers());
    }
}

fn unreadable(segment: u64) -> impl Fn(std::io::Error) -> LogReadError {
    move |reason| LogReadError::Io { segment, reason }
}

enum FrameOrGap {
    Frame(FrameAt),
    Gap(u64),
    Nothing,
}

/// Returns a cursor at the start of this segment, if it holds this index.
fn enter(region: Region, shape: &LogShape, index: u64) -> Option<SegmentCursor> {
    SegmentCursor::enter(region, shape.frame, shape.segment_bytes, index)
}

/// Returns cursors at the start of each segment present, oldest first.
fn present_segments(segments: &Segments, shape: &LogShape) -> std::io::Result<Vec<SegmentCursor>> {
    let mut present = Vec::new();
    for slot in 0..segments.ring_len().unwrap_or(u64::MAX) {
        let Some(region) = segments.get(slot)? else { break };
        let generation = region.word(GENERATION).load(Ordering::Acquire);
        if generation == 0 && segments.ring_len().is_none() {
            break;
        }
        if let Some(index) = index_held(generation, slot, segments.ring_len()) {
            present.extend(enter(region, shape, index));
        }
    }
    present.sort_by_key(|cursor| cursor.index);
    Ok(present)
}

/// Returns the max attempts to find a segment; fewer with an untrusted writer, so that it cannot hold the reader up.
fn tries(trust: ProcessTrust) -> u32 {
    match trust {
        ProcessTrust::Trusted => TRIES,
        ProcessTrust::Untrusted => TRIES / 100,
    }
}

/// Returns a cursor at the oldest segment; retries while a short ring recycles, fails before the first is opened.
pub(crate) fn oldest(
    path: &LogPath,
    segments: &Segments,
    shape: &LogShape,
    trust: ProcessTrust,
) -> Result<SegmentCursor, LogOpenError> {
    for _ in 0..tries(trust) {
        let held = present_segments(segments, shape).map_err(|e| LogOpenError::from_io(path, 0, e))?;
        if let Some(oldest) = held.into_iter().next() {
            return Ok(oldest);
        }
        if segments.generation(0).is_none_or(|generation| generation == 0) {
            return Err(LogOpenError::NotFound(path.clone()));
        }
        relax();
    }
    Err(LogOpenError::damaged(path, "no segment is whole"))
}
