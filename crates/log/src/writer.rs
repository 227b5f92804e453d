//! The one writer of a log.

use std::hint::black_box;
use std::path::Path;

use tickpath_clock::{Birthplace, Calibration};
use zerocopy::IntoBytes;

use crate::append::{AppendError, Appender, Blocked, Parts};
use crate::control::{Control, MAX_READERS};
use crate::files::{self, Shape};
use crate::guard::Others;
use crate::layout::FIRST_KIND;
use crate::lock::{self, ByteLock, TryLock};
use crate::log_file::LogFile;
use crate::mapping::Access;
use crate::place::{QUEUE, READER_LOCKS, WRITER_LOCK};
use crate::recover::{Cut, Remains, ResumeError};
use crate::segments::Segments;
use crate::sync::Ordering;
use crate::wake::{Barrier, wake_all};
use crate::{BatchError, Config, OpenError, Owner, Place, Policy, PublishError, ReadError};

/// Publishes frames to a log that nobody else writes.
pub struct Writer {
    appender: Appender,
    place: Place,
    shape: Shape,
    barrier: Barrier,
    /// A message that no reader would see is refused.
    needs_reader: bool,
    /// A forked child's copy is not the writer.
    born: Birthplace,
    cut: Option<Cut>,
    /// Its data file.
    data: Box<LogFile>,
    /// None of a log that nobody else can find.
    _lock: Option<ByteLock>,
}

impl Writer {
    /// Makes a log, or takes up one that is there at its tail. Stamps must come from the clock of this calibration.
    pub fn open(config: &Config, calibration: &Calibration) -> Result<Self, OpenError> {
        let config = &config.with_group();
        files::create_folder(config)?;
        Self::open_or(config, calibration, Others::Trusted, create)
    }

    /// As [`Self::open`], for a log whose files strangers can write to as well: guarded from the first look on, see
    /// [`Self::guard`].
    pub fn open_untrusted(config: &Config, calibration: &Calibration) -> Result<Self, OpenError> {
        let config = &config.with_group();
        files::create_folder(config)?;
        let mut writer = Self::open_or(config, calibration, Others::Untrusted, create)?;
        writer.guard().map_err(|e| OpenError::from_io(&config.place, 0, e))?;
        Ok(writer)
    }

    /// Takes up a log that is there, as [`Self::open`] does, and never makes one. One that nobody has finished making is
    /// not there.
    pub fn join(config: &Config, calibration: &Calibration) -> Result<Self, OpenError> {
        let config = &config.with_group();
        files::look_for_segment(&config.place)?;
        Self::open_or(config, calibration, Others::Trusted, |config, _| Err(OpenError::NotFound(config.place.clone())))
    }

    fn open_or(
        config: &Config,
        calibration: &Calibration,
        others: Others,
        make: impl FnOnce(&Config, &Shape) -> Result<(Shape, Appender), OpenError>,
    ) -> Result<Self, OpenError> {
        // Before it is locked, for a refusal makes no file.
        Shape::of(config, calibration)?;
        let lock = take_lock(config)?;
        let mut writer = Self::locked(config, calibration, others, make)?;
        writer._lock = Some(lock);
        Ok(writer)
    }

    /// Opens a log whose lock somebody has for it.
    fn locked(
        config: &Config,
        calibration: &Calibration,
        others: Others,
        make: impl FnOnce(&Config, &Shape) -> Result<(Shape, Appender), OpenError>,
    ) -> Result<Self, OpenError> {
        let wanted = Shape::of(config, calibration)?;
        let place = config.place.clone();
        let barrier = Barrier::of_this_host();
        let (shape, (appender, cut)) = match files::open_data(&place, Access::Write) {
            Err(OpenError::NotFound(_)) => make(config, &wanted).map(|(shape, appender)| (shape, (appender, None)))?,
            Err(e) => return Err(e),
            Ok((file, shape)) => {
                let control = files::open_or_create_control(config, others)?;
                let segments = shape.segments(file, Access::Write, others);
                let segments = segments.map_err(|e| OpenError::from_io(&place, shape.segment_bytes as u64, e))?;
                (shape, resume(config, &wanted, shape, segments, control)?)
            }
        };
        appender.control.barrier().store(barrier.code(), Ordering::SeqCst);
        let needs_reader = shape.policy == Policy::Fail && appender.control.group().is_none();
        let (data, born) = (Box::new(LogFile::at(&place)), Birthplace::here());
        Ok(Self { appender, place, shape, barrier, needs_reader, born, cut, data, _lock: None })
    }

    /// Makes the log anew where its files [were removed](Self::is_removed), and goes on there with the next number; what lies
    /// under its name by now, if that is nobody else's, is taken up instead. On an error it has what it had. In shared memory
    /// what is left of the files is removed, too: readers hold no place in a log whose control file is another one.
    pub fn renew(&mut self, config: &Config, calibration: &Calibration) -> Result<(), OpenError> {
        if self.born.is_elsewhere() {
            let what = "this process is a fork of the one that writes the log; open a log of your own here".to_owned();
            return Err(OpenError::Config(what));
        }
        let config = &Config { first_sequence: self.sequence(), ..config.with_group() };
        files::create_folder(config)?;
        let mut lock = if self.has_lock() { None } else { Some(take_lock(config)?) };
        if self.place.is_shared_memory() && !self.data.is_data_removed() {
            // A file that cannot be removed is taken up.
            let _ = self.place.remove();
            files::create_folder(config)?;
            lock = Some(take_lock(config)?);
        }
        let mut made = Self::locked(config, calibration, Others::Trusted, create)?;
        if self.control().group().is_some() {
            made.share_out(config)?;
        }
        made._lock = lock.or_else(|| self._lock.take());
        *self = made;
        Ok(())
    }

    /// Messages of a queue that nobody has finished; of others none.
    pub fn unfinished(&self) -> u64 {
        self.control().group().map_or(0, |done| self.sequence().saturating_sub(done))
    }

    /// Whether the file is there that keeps out a second writer.
    fn has_lock(&self) -> bool {
        self._lock.as_ref().is_some_and(|lock| !lock::is_gone(&self.place, WRITER_LOCK, lock.file()))
    }

    /// How it wakes who sleeps.
    pub(crate) fn barrier(&self) -> Barrier {
        self.barrier
    }

    /// True in a fork: there it is the parent's.
    pub fn is_forked(&self) -> bool {
        self.born.is_elsewhere()
    }

    /// The process that it is the writer of.
    pub(crate) fn born(&self) -> Birthplace {
        self.born
    }

    /// The writer of a log without a name.
    pub(crate) fn unnamed(appender: Appender, shape: Shape, barrier: Barrier) -> Self {
        let (place, born) = (Place::nowhere(), Birthplace::here());
        let data = Box::new(LogFile::at(&place));
        Self { appender, place, shape, barrier, needs_reader: false, born, cut: None, data, _lock: None }
    }

    /// Asks for what the next message will need, if it has so many bytes: its lines, and the words that are looked at
    /// beside. To be called while there is nothing to publish. Changes nothing.
    #[inline]
    pub fn keep_warm(&self, payload: usize) {
        self.appender.expect_next(payload);
        black_box(self.refuse().is_ok());
        black_box(self.appender.control.sleepers().load(Ordering::Relaxed));
    }

    /// Takes a few cache lines of the next message from the readers, if it has so many bytes: others in each turn. To be
    /// called in each turn with nothing to publish. Nobody sees anything of it. On a disk it does nothing, for pages would be
    /// written that hold nothing new; nor does it in a fork, whose writer is another process.
    #[inline]
    pub fn take_lines(&self, payload: usize, turn: u32) {
        if self.place.is_shared_memory() && !self.born.is_elsewhere() {
            self.appender.take_lines(payload, turn);
        }
    }

    /// Publishes one message, stamped `stamp` (ticks), and wakes who sleeps. Gives its sequence number.
    #[inline(always)]
    pub fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, PublishError> {
        let sequence = self.append(stamp, kind, payload)?;
        self.wake();
        self.appender.expect_next(payload.len());
        Ok(sequence)
    }

    /// Publishes messages that become visible together, with one look for sleepers: whoever finds the first finds all.
    /// Those that fit no segment together become visible in parts. Whoever is killed in it leaves none, or the parts that
    /// were visible.
    #[inline]
    pub fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let mut done = 0;
        while done < payloads.len() {
            match self.publish_part(stamp, kind, &payloads[done..]) {
                Ok(part) => done += part,
                Err(error) => {
                    // Whoever is in the way may be asleep.
                    self.wake();
                    return Err(BatchError { done, error });
                }
            }
        }
        self.wake();
        self.appender.expect_next(payloads.last().map_or(0, |payload| payload.len()));
        Ok(())
    }

    /// True if the next message with so many bytes would be published now; else why not. May go on to the next segment
    /// for it.
    #[cold]
    pub fn room_for(&mut self, payload: usize) -> Result<(), PublishError> {
        self.room(|appender| appender.make_room(payload))
    }

    /// Allocates and faults in so many bytes of a growing log behind where it ends. After a sync, and not before: the pages
    /// that it writes to the disk, also those that hold nothing yet, cost a fault each when they are written to again.
    pub fn reserve(&mut self, bytes: u64) -> std::io::Result<()> {
        self.appender.region().populate();
        let next = self.appender.index() + 1;
        self.appender.segments.prepare(next, bytes.div_ceil(self.shape.segment_bytes as u64))
    }

    /// Ends a growing log: moves its files to `folder`, and goes on with the next number in a new one where they were,
    /// as `config` says. Durable before it is moved. Who is killed in the middle of it leaves either the log where it was,
    /// or a place without one: then the next [`Self::open`] needs the next number as [`Config::first_sequence`].
    pub fn move_on(&mut self, config: &Config, calibration: &Calibration, folder: &Path) -> Result<(), OpenError> {
        assert!(self.policy() == Policy::Keep, "a ring is never full of history");
        let fail = |e| OpenError::from_io(&self.place, 0, e);
        self.sync().map_err(fail)?;
        let next = Config { first_sequence: self.sequence(), place: self.place.clone(), ..config.clone() };
        files::move_to(&next, folder).map_err(fail)?;
        let (shape, appender) = create(&next, &Shape::of(&next, calibration)?)?;
        appender.control.barrier().store(self.barrier.code(), Ordering::SeqCst);
        (self.shape, self.appender, self.cut) = (shape, appender, None);
        *self.data = LogFile::at(&self.place);
        Ok(())
    }

    /// The number of the log's first message ever.
    pub fn first_sequence(&self) -> u64 {
        self.shape.first_sequence
    }

    /// True while nothing was ever published.
    pub fn is_new(&self) -> bool {
        self.sequence() == self.first_sequence()
    }

    /// The sequence number of the next message.
    pub fn sequence(&self) -> u64 {
        self.appender.sequence()
    }

    /// Whose the log is.
    pub fn owner(&self) -> Owner {
        self.shape.owner
    }

    /// Where the log lies.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What happens when the ring is full.
    pub fn policy(&self) -> Policy {
        self.shape.policy
    }

    /// The longest message, in bytes.
    pub fn max_payload(&self) -> usize {
        self.shape.max_payload()
    }

    /// Registered readers now.
    pub fn readers(&self) -> usize {
        self.appender.control.registered().filter(|reader| !reader.away).count()
    }

    /// Whether a reader that counts is there. It asks the kernel: the count alone does not know of one that was killed.
    pub fn is_read(&self) -> bool {
        // A log without a name is its maker's, at both ends.
        if self._lock.is_none() {
            return true;
        }
        // Those that are away hold no lock, and one that is just coming back must find it free.
        let here: Vec<usize> =
            self.appender.control.registered().filter(|reader| !reader.away).map(|reader| reader.slot).collect();
        !here.is_empty() && !here.into_iter().all(|slot| self.bury(slot))
    }

    /// True if the log does not lie under its name any more: somebody has removed or replaced its data file, or the file
    /// that keeps out a second writer. Who has it open goes on, and nobody else finds it. Asks the operating system.
    pub fn is_removed(&self) -> bool {
        self.data.is_removed() || self._lock.is_some() && !self.has_lock()
    }

    /// What was dropped when the log was opened, after a loss of power or a kill in a batch; none if nothing was.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Removes the log. Readers that have it open keep what they have.
    pub fn remove(self) -> std::io::Result<()> {
        self.place.remove()
    }

    pub(crate) fn appender(&self) -> &Appender {
        &self.appender
    }

    pub(crate) fn appender_mut(&mut self) -> &mut Appender {
        &mut self.appender
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn control(&self) -> &Control {
        &self.appender.control
    }

    /// The sequence number of the oldest message that is there.
    pub(crate) fn oldest(&self) -> u64 {
        self.appender.oldest()
    }

    /// From here on the oldest message of a group that is not done holds this writer, and it needs no reader.
    pub(crate) fn gate_by_group(&mut self) {
        self.needs_reader = false;
        self.appender.forget_cursors();
    }

    /// Publishes as many of them as one segment takes, and one at least.
    #[inline]
    fn publish_part(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<usize, PublishError> {
        if kind < FIRST_KIND {
            return Err(PublishError::Kind(kind));
        }
        self.room(|appender| appender.make_room_for_all(payloads))?;
        Ok(self.appender.append_batch(stamp, kind, payloads))
    }

    #[inline]
    fn room(&mut self, mut make: impl FnMut(&mut Appender) -> Result<(), AppendError>) -> Result<(), PublishError> {
        for _ in 0..=MAX_READERS {
            self.refuse()?;
            match make(&mut self.appender) {
                Ok(()) => return Ok(()),
                Err(e) => self.clear_the_way(e)?,
            }
        }
        Err(PublishError::Full)
    }

    #[inline(always)]
    fn append(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, PublishError> {
        if kind < FIRST_KIND {
            return Err(PublishError::Kind(kind));
        }
        self.refuse()?;
        let sequence = self.appender.sequence();
        match self.appender.append(stamp, kind, payload) {
            Ok(()) => Ok(sequence),
            Err(e) => self.append_again(e, stamp, kind, payload),
        }
    }

    /// Says why nothing at all can be published, if that is so.
    #[inline(always)]
    fn refuse(&self) -> Result<(), PublishError> {
        if self.born.is_elsewhere() {
            return Err(PublishError::Forked);
        }
        if self.needs_reader && self.appender.control.readers() == 0 && self.is_alone() {
            return Err(PublishError::NoReader);
        }
        Ok(())
    }

    /// The count says that nobody reads. Of readers that come and go it may be wrong; of the mandatory one it is not.
    #[cold]
    fn is_alone(&self) -> bool {
        self.shape.mandatory || self.appender.control.registered().next().is_none()
    }

    #[cold]
    fn append_again(&mut self, e: AppendError, stamp: u64, kind: u8, payload: &[u8]) -> Result<u64, PublishError> {
        self.clear_the_way(e)?;
        self.room_for(payload.len())?;
        let sequence = self.appender.sequence();
        self.appender.append(stamp, kind, payload)?;
        Ok(sequence)
    }

    /// A reader in the way may be dead; its lock tells.
    fn clear_the_way(&mut self, e: AppendError) -> Result<(), PublishError> {
        match e {
            AppendError::TooLarge(bytes) => Err(PublishError::TooLarge { bytes, limit: self.max_payload() }),
            AppendError::Blocked(Blocked::By(slot)) if self.bury(slot) => Ok(()),
            e => Err(e.into()),
        }
    }

    /// Frees the cursor of a reader whose process has ended. False if it lives.
    fn bury(&self, slot: usize) -> bool {
        match lock::try_lock(&self.place, READER_LOCKS, slot as u32, 0o600) {
            Ok(TryLock::Ours(_lock)) => {
                self.appender.control.release(slot);
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn wake(&self) {
        self.barrier.light();
        let sleepers = self.appender.control.sleepers();
        if sleepers.load(Ordering::Relaxed) != 0 {
            wake_all(sleepers);
        }
    }
}

fn take_lock(config: &Config) -> Result<ByteLock, OpenError> {
    let place = &config.place;
    match lock::try_lock(place, WRITER_LOCK, 0, config.mode) {
        Ok(TryLock::Ours(lock)) => Ok(lock),
        Ok(TryLock::Taken(pid)) => Err(OpenError::HasWriter { place: place.clone(), pid }),
        Err(e) => Err(OpenError::from_io(place, 0, e)),
    }
}

fn create(config: &Config, shape: &Shape) -> Result<(Shape, Appender), OpenError> {
    let fail = |e| OpenError::from_io(&config.place, shape.segment_bytes as u64, e);
    let (file, control) = files::create(config, shape)?;
    // Made here, with the log's mode: made by the first reader it would be that reader's alone.
    let locks = lock::try_lock(&config.place, READER_LOCKS, 0, config.mode);
    drop(locks.map_err(|e| OpenError::from_io(&config.place, 0, e))?);
    let mut segments = shape.segments(file, Access::Write, Others::Trusted).map_err(fail)?;
    segments.belong_to(shape.calibration.boot_id);
    reserve(config, shape, &mut segments, 0).map_err(fail)?;
    let parts = parts(shape, segments, control, shape.calibration.as_bytes());
    let appender = Appender::fresh(parts, config.first_sequence).map_err(fail)?;
    Ok((*shape, appender))
}

pub(crate) fn parts<'a>(shape: &Shape, segments: Segments, control: Control, calibration: &'a [u8]) -> Parts<'a> {
    let Shape { frame, segment_bytes, policy, .. } = *shape;
    Parts { segments, control, frame, segment_bytes, gated: policy == Policy::Fail, calibration }
}

fn resume(
    config: &Config,
    wanted: &Shape,
    found: Shape,
    mut segments: Segments,
    control: Control,
) -> Result<(Appender, Option<Cut>), OpenError> {
    let place = &config.place;
    let io = |e| OpenError::from_io(place, found.segment_bytes as u64, e);
    let same = |s: &Shape| (s.policy, s.segment_bytes, s.segments);
    // Who asks for no mandatory reader takes the log as it is.
    if same(wanted) != same(&found) || wanted.mandatory && !found.mandatory {
        return Err(OpenError::Differs { place: place.clone(), found: describe(&found), wanted: describe(wanted) });
    }
    if place.is_shared_memory() && !wanted.calibration.agrees_with(&found.calibration) {
        return Err(OpenError::Clock { place: place.clone(), found: clock_name(&found.calibration) });
    }
    // One counter that was measured twice in a boot goes on as it was measured first.
    let same_boot = wanted.calibration.agrees_with(&found.calibration);
    let calibration = if same_boot { &found.calibration } else { &wanted.calibration }.as_bytes();
    // Not this configuration's: whoever made the log was killed before its first segment, and has told others this number.
    let first = found.first_sequence;
    let boot = wanted.calibration.boot_id;
    let extent = segments.survey(Some(boot)).map_err(io)?.transpose();
    let extent = extent.map_err(|missing| damaged(place, &missing.damage(&segments, &found)))?;
    segments.belong_to(boot);
    let remains = Remains { parts: parts(&found, segments, control, calibration), first, extent };
    let (mut appender, cut) = remains.resume().map_err(|e| match e {
        ResumeError::Io(e) => io(e),
        ResumeError::Damaged(what) => damaged(place, &what),
    })?;
    let next = appender.index() + 1;
    reserve(config, &found, &mut appender.segments, next).map_err(io)?;
    if found.mandatory && !appender.control.names_mandatory() {
        // The control file was lost: nothing that is there counts as read.
        appender.control.name_mandatory(appender.oldest());
    }
    bury_dead(place, &appender);
    let has_queue = || place.open_folder().is_ok_and(|folder| folder.look(QUEUE).is_ok());
    if appender.control.group().is_none() && has_queue() {
        // A queue that has lost its control file: nothing of it counts as done until its owner words say so.
        appender.control.set_group(appender.oldest());
    }
    if !appender.is_stamped_by(calibration) {
        // Another boot: its stamps belong into a segment that says so.
        appender.roll().map_err(|blocked| match blocked {
            Blocked::ByGroup => OpenError::OtherBoot(place.clone()),
            Blocked::Io(e) => io(e),
            Blocked::By(_) => OpenError::Differs {
                place: place.clone(),
                found: "readers of another boot".to_owned(),
                wanted: "a new segment".to_owned(),
            },
        })?;
    }
    Ok((appender, cut))
}

/// Frees the cursors of readers whose processes have ended.
fn bury_dead(place: &Place, appender: &Appender) {
    let registered: Vec<_> = appender.control.registered().collect();
    for reader in registered {
        if let Ok(TryLock::Ours(_lock)) = lock::try_lock(place, READER_LOCKS, reader.slot as u32, 0o600) {
            appender.control.release(reader.slot);
        }
    }
}

fn reserve(config: &Config, shape: &Shape, segments: &mut Segments, first: u64) -> std::io::Result<()> {
    let count = config.reserve_bytes.div_ceil(shape.segment_bytes as u64);
    segments.prepare(first, count)
}

fn damaged(place: &Place, what: &ReadError) -> OpenError {
    OpenError::Damaged { place: place.clone(), what: what.to_string() }
}

fn describe(shape: &Shape) -> String {
    let Shape { policy, segment_bytes, segments, .. } = shape;
    match policy {
        Policy::Keep => format!("policy {policy}, segments of {segment_bytes} bytes"),
        _ if shape.mandatory => {
            format!("policy {policy}, a mandatory reader, {segments} segments of {segment_bytes} bytes")
        }
        _ => format!("policy {policy}, {segments} segments of {segment_bytes} bytes"),
    }
}

fn clock_name(calibration: &Calibration) -> String {
    let source = calibration.source().map_or("unknown", |source| source.name());
    format!("{source}, {} ticks a second, boot {:02x?}", calibration.ticks_per_second, &calibration.boot_id[..4])
}
