//! Creation and opening of a log's files.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tickpath_clock::Calibration;
use zerocopy::{FromZeros, IntoBytes};

use crate::config::{MAX_SEGMENT_BYTES, MAX_SEGMENTS};
use crate::control::{CONTROL_BYTES, ControlFile, MANDATORY};
use crate::folder::CheckedFolder;
use crate::follow::{CursorStep, SegmentCursor};
use crate::guard::ProcessTrust;
use crate::layout::{
    BASE_SEQUENCE, FORMAT_VERSION, FRAME_HEADER_BYTES, FrameShape, GENERATION, HEADER_BYTES, LogHeader, MAGIC,
    MAX_BASE, SEGMENT_HEADER_BYTES,
};
use crate::log_path::{CONTROL, CONTROL_DRAFT, DATA, DATA_DRAFT, READER_LOCKS, WRITER_LOCK};
use crate::mapping::{Access, allocate};
use crate::progress::MissingSegment;
use crate::region::Region;
use crate::segments::Segments;
use crate::sync::Ordering;
use crate::{Config, LogOpenError, LogOwner, LogPath, LogReadError, OverflowPolicy, lock};

const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"TICKCTL1");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogShape {
    pub policy: OverflowPolicy,
    pub segment_bytes: usize,
    pub segments: usize,
    pub frame: FrameShape,
    pub calibration: Calibration,
    pub owner: LogOwner,
    pub first_sequence: u64,
    pub mandatory: bool,
}

impl LogShape {
    /// Returns the shape that this configuration asks for.
    pub fn of(config: &Config, calibration: &Calibration) -> Result<Self, LogOpenError> {
        config.check()?;
        let growing = config.policy == OverflowPolicy::Keep;
        Ok(Self {
            policy: config.policy,
            segment_bytes: config.segment_bytes,
            segments: if growing { 0 } else { config.segments },
            frame: FrameShape { align: if growing { 16 } else { 64 }, crc: !config.path.is_shared_memory() },
            calibration: *calibration,
            owner: config.owner,
            first_sequence: config.first_sequence,
            mandatory: config.mandatory,
        })
    }

    fn header(&self) -> LogHeader {
        let mut header = LogHeader {
            magic: MAGIC,
            version: FORMAT_VERSION,
            policy: self.policy.code(),
            segment_bytes: self.segment_bytes as u32,
            segments: self.segments as u32,
            frame_align: self.frame.align as u32,
            crc: u32::from(self.frame.crc),
            calibration: self.calibration,
            owner: self.owner,
            first_sequence: self.first_sequence,
            mandatory: u32::from(self.mandatory),
            checksum: 0,
        };
        header.checksum = header.sum();
        header
    }

    pub fn read(path: &LogPath, file: &mut File) -> Result<Self, LogOpenError> {
        let damaged = |what: &str| LogOpenError::damaged(path, what);
        let mut header = LogHeader::new_zeroed();
        file.read_exact(header.as_mut_bytes()).map_err(|_| damaged("its header is cut short"))?;
        if header.magic != MAGIC {
            return Err(damaged("it does not start like a Tickpath log"));
        }
        if header.version != FORMAT_VERSION {
            let (place, found) = (path.clone(), header.version);
            return Err(LogOpenError::Version { place, found, expected: FORMAT_VERSION });
        }
        if header.checksum != header.sum() {
            return Err(damaged("its header's checksum is wrong"));
        }
        let policy = OverflowPolicy::from_code(header.policy).ok_or_else(|| damaged("its policy is unknown"))?;
        let segment_bytes = header.segment_bytes as usize;
        let ring = (policy != OverflowPolicy::Keep) == (header.segments >= 2);
        if header.mandatory > u32::from(policy == OverflowPolicy::Fail) {
            return Err(damaged("its mandatory reader is impossible"));
        }
        let align = header.frame_align as usize;
        let fits = segment_bytes.is_multiple_of(HEADER_BYTES) && (1..=MAX_SEGMENT_BYTES).contains(&segment_bytes);
        if !ring || header.segments as usize > MAX_SEGMENTS || !(align == 16 || align == 64) || !fits {
            return Err(damaged("its geometry is impossible"));
        }
        if !header.calibration.is_sound() {
            return Err(damaged("its calibration is impossible"));
        }
        Ok(Self {
            policy,
            segment_bytes,
            segments: header.segments as usize,
            frame: FrameShape { align, crc: header.crc == 1 },
            calibration: header.calibration,
            owner: header.owner,
            first_sequence: header.first_sequence,
            mandatory: header.mandatory == 1,
        })
    }

    /// Returns the longest payload of one frame, in bytes.
    pub fn max_payload(&self) -> usize {
        let crc = if self.frame.crc { 8 } else { 0 };
        let room = self.segment_bytes - SEGMENT_HEADER_BYTES - FRAME_HEADER_BYTES - crc;
        room.min(crate::layout::MAX_PAYLOAD_BYTES)
    }

    pub fn segments(&self, file: File, access: Access, trust: ProcessTrust) -> io::Result<Segments> {
        match self.policy {
            OverflowPolicy::Keep => Ok(Segments::growing(file, self.segment_bytes, access, trust)),
            OverflowPolicy::Overwrite | OverflowPolicy::Fail => {
                Segments::ring(&file, self.segment_bytes, self.segments, access, trust)
            }
        }
    }

    /// Returns the minimum size in bytes of the data file while the segment of this index exists.
    pub fn data_bytes(&self, index: u64) -> u64 {
        let segments = if self.policy == OverflowPolicy::Keep { index.saturating_add(1) } else { self.segments as u64 };
        segments.saturating_mul(self.segment_bytes as u64).saturating_add(HEADER_BYTES as u64)
    }
}

/// Returns the owner of a log, from its header alone.
pub fn owner(path: &LogPath) -> Result<LogOwner, LogOpenError> {
    open_data(path, Access::Read).map(|(_, shape)| shape.owner)
}

/// Returns the process that writes a log now, if there is one.
pub fn writer(path: &LogPath) -> Option<u32> {
    lock::holder(path, WRITER_LOCK, 0).ok().flatten()
}

/// Returns the process that is a log's mandatory reader now, if there is one.
pub fn mandatory_reader(path: &LogPath) -> Option<u32> {
    lock::holder(path, READER_LOCKS, MANDATORY as u32).ok().flatten()
}

/// Opens the data file for reading, or for writing as well.
pub(crate) fn open_data(path: &LogPath, access: Access) -> Result<(File, LogShape), LogOpenError> {
    let mut file = path.open_file(DATA, access).map_err(|e| LogOpenError::from_io(path, 0, e))?;
    let shape = LogShape::read(path, &mut file)?;
    Ok((file, shape))
}

/// Returns an identity that distinguishes a log from others of its name: from inode, creation time and clock.
pub(crate) fn identity(data: &File, shape: &LogShape) -> io::Result<u64> {
    let file = data.metadata()?;
    // A file system reuses the inode of a removed file, and not every file system records creation times.
    let made_ns =
        file.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok()).map_or(0, |made| made.as_nanos());
    let by = crc32c::crc32c(shape.calibration.as_bytes());
    Ok(file.ino().rotate_left(48) ^ u64::from(by).rotate_left(32) ^ made_ns as u64)
}

/// Returns true if only this user and root can write to a file.
pub(crate) fn is_ours(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let owner = metadata.uid();
    Ok((owner == 0 || owner == rustix::process::geteuid().as_raw()) && metadata.mode() & 0o022 == 0)
}

/// Creates both files. The data file appears under its name only when it is complete.
pub(crate) fn create(config: &Config, shape: &LogShape) -> Result<(File, ControlFile), LogOpenError> {
    let path = &config.path;
    let bytes = (HEADER_BYTES + shape.segment_bytes * shape.segments) as u64;
    let fail = |e| LogOpenError::from_io(path, bytes, e);
    let folder = path.open_folder().map_err(fail)?;
    let control = create_control(path, &folder, config.mode).map_err(fail)?;
    if shape.mandatory {
        control.add_mandatory(shape.first_sequence);
    }
    let made = create_data(path, &folder, shape, bytes, config.mode);
    let file = made.inspect_err(|_| discard(path, &folder)).map_err(fail)?;
    Ok((file, control))
}

/// Rejects a log whose creator has not yet opened the first segment, or was killed before.
pub(crate) fn require_first_segment(path: &LogPath) -> Result<(), LogOpenError> {
    let (file, shape) = open_data(path, Access::Read)?;
    let segments = shape.segments(file, Access::Read, ProcessTrust::Trusted);
    // A ring segment that was opened stays open; only the first lap begins with zeros.
    let first = segments.and_then(|segments| segments.get(0)).map_err(|e| LogOpenError::from_io(path, 0, e))?;
    let is_open = first.is_some_and(|first| first.word(GENERATION).load(Ordering::Acquire) != 0);
    if is_open { Ok(()) } else { Err(LogOpenError::NotFound(path.clone())) }
}

/// Rejects a shared-memory file with holes: reading a missing page would allocate the memory that its creator did not.
pub(crate) fn reject_holes(path: &LogPath, file: &File) -> Result<(), LogOpenError> {
    let metadata = file.metadata().map_err(|e| LogOpenError::from_io(path, 0, e))?;
    if path.is_shared_memory() && metadata.blocks().saturating_mul(512) < metadata.len() {
        return Err(LogOpenError::damaged(path, "its data file has holes"));
    }
    Ok(())
}

/// Creates the folder of a log, accessible to users who may use the log.
pub(crate) fn create_folder(config: &Config) -> Result<(), LogOpenError> {
    config.check()?;
    make_folder(config.path.dir(), config.mode).map_err(|e| LogOpenError::no_folder(&config.path, e))
}

/// Creates a folder and its parents, accessible to users who may use files of this mode.
fn make_folder(dir: &Path, mode: u32) -> io::Result<()> {
    let search = (mode & 0o444) >> 2;
    DirBuilder::new().recursive(true).mode(mode | search).create(dir)
}

fn create_data(path: &LogPath, folder: &CheckedFolder, shape: &LogShape, bytes: u64, mode: u32) -> io::Result<File> {
    let mut file = folder.draft(DATA_DRAFT, mode)?;
    allocate(&file, 0, bytes)?;
    file.write_all(shape.header().as_bytes())?;
    if !path.is_shared_memory() {
        file.sync_all()?;
    }
    folder.rename(DATA_DRAFT, folder, DATA)?;
    if !path.is_shared_memory() {
        folder.sync()?;
        path.dir().parent().map_or(Ok(()), sync_folder)?;
    }
    Ok(file)
}

/// Moves the files of a log to another folder of the same disk. The move of the data file comes last and decides.
pub(crate) fn move_to(config: &Config, dir: &Path) -> io::Result<()> {
    make_folder(dir, config.mode)?;
    let target = LogPath::folder(dir).with_group_of(&config.path).open_folder()?;
    let source = config.path.open_folder()?;
    for name in [CONTROL, DATA] {
        source.rename(name, &target, name)?;
    }
    target.sync()?;
    dir.parent().map_or(Ok(()), sync_folder)?;
    source.sync()
}

/// Syncs a folder: a rename is durable only when its folder is.
fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes the files of a failed creation.
fn discard(path: &LogPath, folder: &CheckedFolder) {
    let _ = folder.remove(DATA_DRAFT);
    let _ = path.remove();
}

fn create_control(path: &LogPath, folder: &CheckedFolder, mode: u32) -> io::Result<ControlFile> {
    let file = folder.draft(CONTROL_DRAFT, mode)?;
    allocate(&file, 0, CONTROL_BYTES as u64)?;
    let control = map_control(&file, ProcessTrust::Trusted)?;
    control.magic().store(CONTROL_MAGIC, Ordering::SeqCst);
    // Data that survives a loss of power is useless behind a control file that did not.
    if !path.is_shared_memory() {
        file.sync_all()?;
    }
    folder.rename(CONTROL_DRAFT, folder, CONTROL)?;
    Ok(control)
}

/// Maps the control file of an existing log; the writer recreates a lost one.
pub(crate) fn open_control(path: &LogPath, trust: ProcessTrust) -> Result<ControlFile, LogOpenError> {
    let fail = |e| LogOpenError::from_io(path, CONTROL_BYTES as u64, e);
    let file = path.open_file(CONTROL, Access::Write).map_err(fail)?;
    let control = map_control(&file, trust).map_err(fail)?;
    if control.magic().load(Ordering::SeqCst) != CONTROL_MAGIC {
        return Err(LogOpenError::damaged(path, "its control file is none"));
    }
    Ok(control)
}

impl MissingSegment {
    /// Returns the damage with the sequence number of the first missing message.
    pub fn damage(&self, segments: &Segments, shape: &LogShape) -> LogReadError {
        let &Self { segment, offset, what } = self;
        let before = segment.checked_sub(1).and_then(|before| Some((before, segments.get(before).ok()??)));
        let sequence = before.map_or(shape.first_sequence, |(index, region)| {
            let base = region.word(BASE_SEQUENCE).load(Ordering::Relaxed).min(MAX_BASE);
            let mut cursor = SegmentCursor::new(region, shape.frame, shape.segment_bytes, index, base, false);
            while let Ok(CursorStep::Frame(_)) = cursor.skip_frame() {}
            cursor.sequence
        });
        LogReadError::Damaged { sequence, segment, offset, what }
    }
}

/// Opens the control file, or recreates a lost one.
pub(crate) fn open_or_create_control(config: &Config, trust: ProcessTrust) -> Result<ControlFile, LogOpenError> {
    let path = &config.path;
    match open_control(path, trust) {
        Err(LogOpenError::NotFound(_)) => {
            let made = path.open_folder().and_then(|folder| create_control(path, &folder, config.mode));
            made.map_err(|e| LogOpenError::from_io(path, CONTROL_BYTES as u64, e))
        }
        other => other,
    }
}

fn map_control(file: &File, trust: ProcessTrust) -> io::Result<ControlFile> {
    let region = Region::map(file, 0, CONTROL_BYTES, Access::Write)?;
    region.guard_against(trust)?;
    region.populate();
    Ok(ControlFile { region })
}
