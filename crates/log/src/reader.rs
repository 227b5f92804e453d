//! A reader of a log.

mod cursor;
pub(crate) mod lent;
mod slot;
pub(crate) mod walk;

use std::fs::File;

use tickpath_clock::{Calibration, Wait, relax, yield_now};
use zerocopy::FromBytes;

use crate::control::{Control, ReaderInfo};
use crate::cut;
use crate::files::{self, Shape};
use crate::follow::{Follower, FrameAt, Step};
use crate::guard::Others;
use crate::layout::{BASE_SEQUENCE, GENERATION, MAX_BASE, SEGMENT_CALIBRATION, holding, index_held};
use crate::lock::{self, FileId};
use crate::mapping::Access;
use crate::place::DATA;
use crate::progress::this_boot;
use crate::region::Region;
use crate::segments::Segments;
use crate::sync::{Ordering, fence};
use crate::wake::{Barrier, MOST_FLAGS, sleep_while_all_set, sleep_while_set, wake_all};
use crate::{OpenError, Owner, Place, Policy, ReadError};

use slot::Slot;

/// Frames that are handed over together.
const GATHER: usize = 32;

/// How often a reader looks again while a writer recycles under it. A writer passes by in microseconds; who is not done
/// by then looks at damage.
const TRIES: u32 = 100_000;

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next message to be published.
    Now,
    /// With the oldest that is still there.
    Oldest,
    /// With this sequence number. What is gone already is told as a gap.
    Sequence(u64),
    /// Where the mandatory reader's cursor stands; for others, with the oldest.
    Cursor,
}

/// Does the log know of a reader?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// It has a cursor in the control file: it gates a `fail` topic, may sleep, and shows in listings.
    Registered,
    /// It is the one that the log names: nothing that it has not read is recycled, also while it is away.
    Mandatory,
    /// It only looks: for files of other boots and of other users, and for more than 256 readers of one topic.
    Unregistered,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A message.
    Message(Message<'a>),
    /// The writer was faster: exactly so many messages are gone.
    Gap(u64),
    /// Nothing new.
    Empty,
}

/// A message in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number, from 0, without holes.
    pub sequence: u64,
    /// When it was stamped, in ticks of the log's clock.
    pub stamp: u64,
    /// What it is.
    pub kind: u8,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Reads a log from its place on.
pub struct Reader {
    follower: Follower,
    segments: Segments,
    shape: Shape,
    place: Place,
    control: Option<Control>,
    slot: Option<Slot>,
    buffer: Vec<u8>,
    missed: u64,
    /// What tells the log from others of its name.
    identity: u64,
    /// Its data file; none of a log without a name.
    data: Option<FileId>,
    /// Of a log that grows: no message before this number is ever cut.
    settled: u64,
    /// Nobody can write to it but who runs this, and root.
    is_ours: bool,
    others: Others,
}

impl Reader {
    /// Opens a log that a writer has made.
    pub fn open(place: &Place, start: Start, registration: Registration) -> Result<Self, OpenError> {
        let (file, shape) = files::open_data(place, Access::Read)?;
        Self::open_file(place, file, shape, start, registration, Others::Trusted)
    }

    /// Opens a log that a stranger writes, or can write to: as its mandatory reader if it names one, else registered.
    /// Each message is copied before it is looked at, whatever becomes of it meanwhile, and files that are cut short end
    /// nobody: see [`Self::is_cut`].
    pub fn open_untrusted(place: &Place, start: Start) -> Result<Self, OpenError> {
        let (file, shape) = files::open_data(place, Access::Read)?;
        files::refuse_holes(place, &file)?;
        let registration = if shape.mandatory { Registration::Mandatory } else { Registration::Registered };
        Self::open_file(place, file, shape, start, registration, Others::Untrusted)
    }

    /// The same from the oldest message on, without its writer's knowledge: nothing waits for this one, or sees it.
    pub fn look_untrusted(place: &Place) -> Result<Self, OpenError> {
        let (file, shape) = files::open_data(place, Access::Read)?;
        files::refuse_holes(place, &file)?;
        Self::open_file(place, file, shape, Start::Oldest, Registration::Unregistered, Others::Untrusted)
    }

    fn open_file(
        place: &Place,
        file: File,
        shape: Shape,
        start: Start,
        registration: Registration,
        others: Others,
    ) -> Result<Self, OpenError> {
        let io = |e| OpenError::from_io(place, 0, e);
        let identity = files::identity(&file, &shape).map_err(io)?;
        let is_ours = files::is_ours(&file).map_err(io)?;
        let data = Some(lock::file_id(&file.metadata().map_err(io)?));
        let segments = shape.segments(file, Access::Read, others).map_err(io)?;
        let settled = match segments.survey(this_boot()).map_err(io)? {
            Some(Err(missing)) => {
                let what = missing.damage(&segments, &shape).to_string();
                return Err(OpenError::Damaged { place: place.clone(), what });
            }
            surveyed => surveyed.and_then(Result::ok).map_or(0, |extent| extent.settled()),
        };
        let follower = oldest(place, &segments, &shape, others)?;
        let mut reader = Self {
            follower,
            segments,
            shape,
            place: place.clone(),
            control: None,
            slot: None,
            buffer: Vec::new(),
            missed: 0,
            identity,
            data,
            settled,
            is_ours,
            others,
        };
        reader.register(registration)?;
        reader.go_to(start)?;
        Ok(reader)
    }

    /// The reader of a log without a name.
    pub(crate) fn unnamed(follower: Follower, segments: Segments, shape: Shape, place: &Place) -> Self {
        Self {
            follower,
            segments,
            shape,
            place: place.clone(),
            control: None,
            slot: None,
            buffer: Vec::new(),
            missed: 0,
            identity: 0,
            data: None,
            settled: 0,
            is_ours: true,
            others: Others::Trusted,
        }
    }

    /// How its log's frames are laid out.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The next message, a gap, or nothing. A message that was lent is given back by the next call.
    #[inline(always)]
    #[allow(clippy::should_implement_trait, reason = "it lends, which an Iterator cannot")]
    pub fn next(&mut self) -> Result<Next<'_>, ReadError> {
        self.publish_cursor()?;
        if let Some(at) = self.frame() {
            return Ok(Next::Message(self.message(at)));
        }
        // Most turns of who spins find nothing.
        if self.missed == 0 && self.follower.waits() {
            return self.rest().map(|_| Next::Empty);
        }
        match self.advance()? {
            Found::Frame(at) => Ok(Next::Message(self.message(at))),
            Found::Gap(missed) => Ok(Next::Gap(missed)),
            Found::Nothing => Ok(Next::Empty),
        }
    }

    /// Hands over up to `limit` messages and gaps; gives how many. The cursor moves once, at the end.
    #[inline(always)]
    pub fn drain(&mut self, limit: usize, mut hand_over: impl FnMut(Next<'_>)) -> Result<usize, ReadError> {
        self.refuse_fork()?;
        let mut count = 0;
        while count < limit {
            // Frames that stay where they are need not be handed over one by one: found together, they are handed over
            // together.
            if self.missed == 0 {
                let run = self.follower.run(GATHER.min(limit - count));
                (0..run.count)
                    .for_each(|place| hand_over(Next::Message(self.message(self.follower.of_run(&run, place)))));
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
                Found::Frame(at) => hand_over(Next::Message(self.message(at))),
                Found::Gap(missed) => hand_over(Next::Gap(missed)),
                Found::Nothing => break,
            }
            count += 1;
        }
        self.publish_cursor()?;
        Ok(count)
    }

    /// Passes the time until there is something, or `timeout_ns` is over for one that sleeps; the caller looks again. When
    /// one that adapts is to sleep the caller knows, by its [`AdaptiveWait`](tickpath_clock::AdaptiveWait).
    pub fn wait(&mut self, wait: Wait, timeout_ns: u64) {
        match wait {
            Wait::Busy => self.follower.look_out(),
            Wait::Yield => yield_now(),
            Wait::Block | Wait::Adaptive => self.sleep(timeout_ns),
        }
    }

    /// Checks, where the reader finds nothing more, that nothing lies behind: a hole in a log on a disk, as a lost page
    /// makes it, would pass for its end.
    pub fn check_end(&self) -> Result<(), ReadError> {
        if self.shape.policy != Policy::Keep || self.has_news() {
            return Ok(());
        }
        let index = self.follower.index();
        let io = |reason| ReadError::Io { segment: index, reason };
        let Some(surveyed) = self.segments.survey(this_boot()).map_err(io)? else { return Ok(()) };
        let extent = surveyed.map_err(|missing| missing.damage(&self.segments, &self.shape))?;
        // Frames behind a batch that is being written are its own.
        let is_hole = extent.found > index + 1
            || self.follower.sequence() < extent.firm.sequence
            || self.follower.has_later_frame() && !self.follower.is_open();
        // A writer may have gone on meanwhile.
        if is_hole && !self.has_news() { Err(self.follower.hole()) } else { Ok(()) }
    }

    /// True if the files of a log that was opened untrusted were cut short: from then on [`Self::next`] says so, too.
    /// Asks the operating system; whether it is time to ask, [`faults`](crate::faults) tells for nothing.
    pub fn is_cut(&self) -> bool {
        let bytes = self.shape.data_bytes(self.follower.index());
        cut::is_cut(self.follower.region(), self.control.as_ref(), &self.place, bytes)
    }

    /// The sequence number of the next message.
    pub fn sequence(&self) -> u64 {
        self.follower.sequence()
    }

    /// The sequence number of the next message or gap that is handed over.
    pub fn next_told(&self) -> u64 {
        self.follower.sequence() - self.missed
    }

    /// What tells this log from any other that lay or will lie at its place.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// True if the log does not lie under its name any more: somebody has removed or replaced its data file. What its
    /// writer still publishes there arrives. Asks the operating system.
    pub fn is_removed(&self) -> bool {
        self.data.is_some_and(|data| lock::is_gone(&self.place, DATA, data))
    }

    /// The process that writes the log now, if one does.
    pub fn writer(&self) -> Option<u32> {
        files::writer(&self.place)
    }

    /// Where the log lies.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What happens when the ring is full.
    pub fn policy(&self) -> Policy {
        self.shape.policy
    }

    /// The number of the log's first message ever.
    pub fn first_sequence(&self) -> u64 {
        self.shape.first_sequence
    }

    /// Whose the log is.
    pub fn owner(&self) -> Owner {
        self.shape.owner
    }

    /// The clock of the stamps where the reader stands.
    pub fn calibration(&self) -> Calibration {
        let mut bytes = [0; size_of::<Calibration>()];
        self.follower.region().copy_out(SEGMENT_CALIBRATION, &mut bytes);
        Calibration::read_from_bytes(&bytes).ok().filter(Calibration::is_sound).unwrap_or(self.shape.calibration)
    }

    /// Bytes from the first segment's start to the cursor, as if no segment had ever been recycled.
    pub fn position(&self) -> u64 {
        let before = self.follower.index().saturating_mul(self.shape.segment_bytes as u64);
        before.saturating_add(self.follower.offset() as u64)
    }

    /// Who is registered.
    pub fn readers(&self) -> Vec<ReaderInfo> {
        let looked_up = || files::open_control(&self.place, self.others).ok();
        let control = self.control.clone().or_else(looked_up);
        control.map(|control| control.registered().collect()).unwrap_or_default()
    }

    #[inline(always)]
    fn message(&self, at: FrameAt) -> Message<'_> {
        let payload = self.follower.payload(at.offset, at.length, &self.buffer);
        Message { sequence: at.sequence, stamp: at.stamp, kind: at.kind, payload }
    }

    /// The next frame, if nothing is to be told before it.
    #[inline(always)]
    fn frame(&mut self) -> Option<FrameAt> {
        if self.missed > 0 { None } else { self.follower.frame(&mut self.buffer) }
    }

    /// What there is if there is no frame; or one that has come meanwhile.
    fn advance(&mut self) -> Result<Found, ReadError> {
        if self.missed > 0 {
            return Ok(Found::Gap(std::mem::take(&mut self.missed)));
        }
        match self.follower.step(&mut self.buffer)? {
            Step::Frame(at) => Ok(Found::Frame(at)),
            Step::Empty => self.rest(),
            step => self.leave_segment(step),
        }
    }

    /// Nothing is there, unless the files are not there any more.
    #[inline(always)]
    fn rest(&self) -> Result<Found, ReadError> {
        let is_cut = || cut::is_known_cut(self.follower.region(), self.control.as_ref());
        if self.others == Others::Untrusted && is_cut() { Err(ReadError::Cut) } else { Ok(Found::Nothing) }
    }

    /// Goes on in the next segment, or where there is one if this one was recycled. However fast a writer ends its
    /// segments, it has us go round the ring once at most.
    #[cold]
    fn leave_segment(&mut self, mut step: Step) -> Result<Found, ReadError> {
        for _ in 0..=self.segments.ring_len().unwrap_or(u64::MAX) {
            let goes_on = if step == Step::End { self.enter_next()? } else { self.catch_up().map(|()| true)? };
            if !goes_on {
                return self.rest();
            }
            if self.missed > 0 {
                return Ok(Found::Gap(std::mem::take(&mut self.missed)));
            }
            step = match self.follower.step(&mut self.buffer)? {
                Step::Frame(at) => return Ok(Found::Frame(at)),
                Step::Empty => return self.rest(),
                step => step,
            };
        }
        Ok(Found::Nothing)
    }

    /// Enters the next segment, or another if that is recycled already. False if it is not opened yet.
    fn enter_next(&mut self) -> Result<bool, ReadError> {
        let next = self.follower.index() + 1;
        let region = self.segments.get(next).map_err(|reason| ReadError::Io { segment: next, reason })?;
        let Some(region) = region else { return Ok(false) };
        let Some(mut follower) = enter(region, &self.shape, next) else {
            // It holds a later index, or what is there cannot be entered yet.
            let is_past = self.is_past(next);
            return if is_past { self.catch_up().map(|()| true) } else { Ok(false) };
        };
        if follower.sequence() != self.follower.sequence() {
            let what = "the next segment begins with another number";
            return Err(self.follower.damage(what));
        }
        follower.set_lending(self.follower.lends());
        self.follower = follower;
        Ok(true)
    }

    /// True if the ring has gone beyond this index.
    fn is_past(&self, index: u64) -> bool {
        let region = self.segments.get(index).ok().flatten();
        region.is_some_and(|region| region.word(GENERATION).load(Ordering::Acquire) > holding(index))
    }

    /// After a lap: goes on in the middle of what is still there, so that the next lap is half a ring away.
    fn catch_up(&mut self) -> Result<(), ReadError> {
        if self.others == Others::Untrusted {
            if self.is_cut() {
                return Err(ReadError::Cut);
            }
            if self.pins() {
                return Err(self.follower.damage("the segment was recycled, though our cursor holds it"));
            }
        }
        let (before, index) = (self.follower.sequence(), self.follower.index());
        for _ in 0..tries(self.others) {
            let mut there =
                held(&self.segments, &self.shape).map_err(|reason| ReadError::Io { segment: index, reason })?;
            there.retain(|follower| follower.index() > index && follower.sequence() >= before);
            if there.is_empty() {
                relax();
                continue;
            }
            self.follower = there.swap_remove(there.len() / 2);
            self.missed = self.follower.sequence() - before;
            return Ok(());
        }
        Err(self.follower.damage("the ring went on, but no later segment is there"))
    }

    /// Sleeps until a writer wakes us.
    fn sleep(&self, timeout_ns: u64) {
        self.sleep_unless(timeout_ns, || false);
    }

    /// Sleeps until somebody wakes us, unless `is_told` is true when all can see that we fall asleep. Without a
    /// registration, or where the kernel cannot order us against the writer, this gives the core away instead.
    pub(crate) fn sleep_unless(&self, timeout_ns: u64, is_told: impl Fn() -> bool) {
        let Some(control) = &self.control else { return yield_now() };
        if !self.announce_sleep(control) {
            return yield_now();
        }
        if !self.has_news() && !is_told() {
            sleep_while_set(control.sleepers(), timeout_ns);
            stay_up(control);
        }
    }

    /// True if the next look would find something.
    fn has_news(&self) -> bool {
        if self.missed > 0 {
            return true;
        }
        self.follower.has_news().unwrap_or_else(|| {
            let next = self.follower.index() + 1;
            let region = self.segments.get(next).ok().flatten();
            region.is_some_and(|region| region.word(GENERATION).load(Ordering::Acquire) >= holding(next))
        })
    }

    /// Sets the flag and makes the sleeper's half of the fence; after it, news must be looked for once more.
    fn announce_sleep(&self, control: &Control) -> bool {
        control.sleepers().store(1, Ordering::SeqCst);
        Barrier::from_code(control.barrier().load(Ordering::SeqCst)).heavy()
    }
}

/// Sleeps until one of the readers may have something, or `timeout_ns` is over. They must be registered; more than 128
/// cannot be slept on, and then this gives the core away instead.
pub fn sleep_until_any(readers: &[&Reader], timeout_ns: u64) {
    let controls: Vec<_> = readers.iter().filter_map(|reader| Some((*reader, reader.control.as_ref()?))).collect();
    if controls.len() < readers.len() || controls.is_empty() || controls.len() > MOST_FLAGS {
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
        controls.iter().for_each(|(_, control)| stay_up(control));
    }
}

/// Takes a flag back that no writer has: of one who woke by itself, its next message would wake nobody, in a call to the
/// kernel. Others who sleep look again, and set it again.
fn stay_up(control: &Control) {
    if control.sleepers().load(Ordering::Relaxed) != 0 {
        wake_all(control.sleepers());
    }
}

enum Found {
    Frame(FrameAt),
    Gap(u64),
    Nothing,
}

/// A cursor at the start of this segment, if it holds this index.
fn enter(region: Region, shape: &Shape, index: u64) -> Option<Follower> {
    // Pairs with the writer's release when it opens the segment.
    if region.word(GENERATION).load(Ordering::Acquire) != holding(index) {
        return None;
    }
    let base = region.word(BASE_SEQUENCE).load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    let still = region.word(GENERATION).load(Ordering::Relaxed) == holding(index);
    (still && base <= MAX_BASE).then(|| Follower::new(region, shape.frame, shape.segment_bytes, index, base, false))
}

/// Cursors at the start of each segment that is there, oldest first.
fn held(segments: &Segments, shape: &Shape) -> std::io::Result<Vec<Follower>> {
    let mut there = Vec::new();
    for slot in 0..segments.ring_len().unwrap_or(u64::MAX) {
        let Some(region) = segments.get(slot)? else { break };
        let generation = region.word(GENERATION).load(Ordering::Acquire);
        if generation == 0 && segments.ring_len().is_none() {
            break;
        }
        if let Some(index) = index_held(generation, slot, segments.ring_len()) {
            there.extend(enter(region, shape, index));
        }
    }
    there.sort_by_key(Follower::index);
    Ok(there)
}

/// How often to look again; a stranger is not given that much of our time.
fn tries(others: Others) -> u32 {
    match others {
        Others::Trusted => TRIES,
        Others::Untrusted => TRIES / 100,
    }
}

/// The oldest segment that is there. None is there for a moment while a short ring recycles, and before the first one
/// is opened.
pub(crate) fn oldest(place: &Place, segments: &Segments, shape: &Shape, others: Others) -> Result<Follower, OpenError> {
    for _ in 0..tries(others) {
        let held = held(segments, shape).map_err(|e| OpenError::from_io(place, 0, e))?;
        if let Some(oldest) = held.into_iter().next() {
            return Ok(oldest);
        }
        if segments.get(0).ok().flatten().is_none_or(|first| first.word(GENERATION).load(Ordering::Acquire) == 0) {
            return Err(OpenError::NotFound(place.clone()));
        }
        relax();
    }
    Err(OpenError::Damaged { place: place.clone(), what: "no segment is whole".to_owned() })
}
