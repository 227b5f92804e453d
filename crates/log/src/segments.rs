//! Segments of a log: a ring that is mapped once, or a file that grows.

use std::io;
#[cfg(not(loom))]
use std::{
    collections::VecDeque,
    fs::File,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use crate::region::Region;
#[cfg(not(loom))]
use crate::{
    guard::ProcessTrust,
    layout::{GENERATION, HEADER_BYTES},
    mapping::{Access, allocate},
    progress::{self, DurableTail, LogExtent, MissingSegment},
    sync::Ordering,
};

pub(crate) enum Segments {
    Ring(Vec<Region>),
    #[cfg(not(loom))]
    Growing(GrowingFile),
}

/// A file with as many segments as were needed.
#[cfg(not(loom))]
pub(crate) struct GrowingFile {
    file: File,
    segment_bytes: usize,
    access: Access,
    trust: ProcessTrust,
    /// Boot id of the writer, and the durable extent.
    boot_id: [u8; 16],
    durable: DurableTail,
    /// Segments mapped and faulted in before they are needed, in order.
    ready: VecDeque<(u64, Region)>,
    /// Thread that creates the segment after those.
    preallocator: Option<SegmentPreallocator>,
}

/// A thread that creates the next segment while the writer fills this one.
#[cfg(not(loom))]
struct SegmentPreallocator {
    asked: SyncSender<u64>,
    made: Receiver<(u64, io::Result<Region>)>,
    pending: Option<u64>,
}

impl Segments {
    /// Returns the number of segments in the ring; none if the log grows.
    pub fn ring_len(&self) -> Option<u64> {
        match self {
            Self::Ring(regions) => Some(regions.len() as u64),
            #[cfg(not(loom))]
            Self::Growing(_) => None,
        }
    }

    /// Returns the segment that would hold this index; none if the file does not reach so far yet.
    pub fn get(&self, index: u64) -> io::Result<Option<Region>> {
        match self {
            Self::Ring(regions) => Ok(Some(regions[(index % regions.len() as u64) as usize].clone())),
            #[cfg(not(loom))]
            Self::Growing(growing) if index < growing.len()? => growing.map(index).map(Some),
            #[cfg(not(loom))]
            Self::Growing(_) => Ok(None),
        }
    }

    /// Returns the segment for this index, created if necessary.
    pub fn get_or_create(&mut self, index: u64) -> io::Result<Region> {
        match self {
            Self::Ring(_) => Ok(self.get(index)?.expect("a ring has every index")),
            #[cfg(not(loom))]
            Self::Growing(growing) => growing.get_or_create(index),
        }
    }

    /// Records that this segment was opened. Best effort: only the loss of a segment so recorded is detected.
    pub fn record_opened(&self, index: u64) {
        #[cfg(not(loom))]
        if let Self::Growing(growing) = self {
            let _ = progress::record_opened(&growing.file, growing.boot_id, index + 1);
        }
        #[cfg(loom)]
        let _ = index;
    }
}

#[cfg(not(loom))]
impl Segments {
    /// Maps a ring of `count` segments of `bytes` each.
    pub fn ring(file: &File, bytes: usize, count: usize, access: Access, trust: ProcessTrust) -> io::Result<Self> {
        let all = Region::map(file, HEADER_BYTES as u64, bytes * count, access)?;
        all.guard_against(trust)?;
        all.populate();
        Ok(Self::Ring((0..count).map(|i| all.part(i * bytes, bytes)).collect()))
    }

    /// Maps segments of a growing file one by one.
    pub fn growing(file: File, segment_bytes: usize, access: Access, trust: ProcessTrust) -> Self {
        Self::Growing(GrowingFile {
            file,
            segment_bytes,
            access,
            trust,
            boot_id: [0; 16],
            durable: DurableTail::default(),
            ready: VecDeque::new(),
            preallocator: None,
        })
    }

    /// Returns the generation of the segment that would hold this index; none if it cannot be read.
    pub fn generation(&self, index: u64) -> Option<u64> {
        Some(self.get(index).ok()??.word(GENERATION).load(Ordering::Acquire))
    }

    /// Guards the segments: from here on a truncated file kills no process.
    pub fn guard(&mut self) -> io::Result<()> {
        match self {
            Self::Ring(regions) => regions.iter().try_for_each(Region::guard),
            Self::Growing(growing) => {
                growing.trust = ProcessTrust::Untrusted;
                Ok(())
            }
        }
    }

    /// Compares the expected with the existing extent of a `keep` log, seen from this boot; none for a ring.
    pub fn survey(&self, boot: Option<[u8; 16]>) -> io::Result<Option<Result<LogExtent, MissingSegment>>> {
        match self {
            Self::Ring(_) => Ok(None),
            Self::Growing(growing) => progress::survey(&growing.file, growing.segment_bytes, boot).map(Some),
        }
    }

    pub fn set_boot_id(&mut self, boot: [u8; 16]) {
        if let Self::Growing(growing) = self {
            growing.boot_id = boot;
        }
    }

    /// Returns the file of a `keep` log, and its durable extent.
    pub fn growing_file(&self) -> Option<(&File, &DurableTail)> {
        match self {
            Self::Ring(_) => None,
            Self::Growing(growing) => Some((&growing.file, &growing.durable)),
        }
    }

    /// Maps and faults in `count` segments from `first` on, and starts a thread that creates more as they are used.
    pub fn preallocate(&mut self, first: u64, count: u64) -> io::Result<()> {
        let Self::Growing(growing) = self else { return Ok(()) };
        for index in first..first + count {
            let region = make_segment(&growing.file, index, growing.segment_bytes)?;
            growing.ready.push_back((index, region));
        }
        growing.preallocator = Some(SegmentPreallocator::start(growing.file.try_clone()?, growing.segment_bytes));
        Ok(())
    }
}

#[cfg(not(loom))]
impl GrowingFile {
    fn len(&self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len().saturating_sub(HEADER_BYTES as u64);
        Ok(bytes / self.segment_bytes as u64)
    }

    fn map(&self, index: u64) -> io::Result<Region> {
        let offset = HEADER_BYTES as u64 + index * self.segment_bytes as u64;
        let region = Region::map(&self.file, offset, self.segment_bytes, self.access)?;
        region.guard_against(self.trust)?;
        Ok(region)
    }

    fn get_or_create(&mut self, index: u64) -> io::Result<Region> {
        let region = match self.take_ready(index) {
            Some(region) => region?,
            None => make_segment(&self.file, index, self.segment_bytes)?,
        };
        // A preallocated segment was touched by the kernel only, for which a truncated file is an error and no signal.
        region.guard_against(self.trust)?;
        if self.ready.is_empty()
            && let Some(ahead) = &mut self.preallocator
        {
            ahead.request(index + 1);
        }
        Ok(region)
    }

    fn take_ready(&mut self, index: u64) -> Option<io::Result<Region>> {
        while let Some((ready, region)) = self.ready.pop_front() {
            if ready == index {
                return Some(Ok(region));
            }
        }
        self.preallocator.as_mut()?.take_requested(index)
    }
}

#[cfg(not(loom))]
impl SegmentPreallocator {
    fn start(file: File, segment_bytes: usize) -> Self {
        let (asked, orders) = sync_channel::<u64>(1);
        let (done, made) = sync_channel(1);
        let work = move || {
            for index in orders {
                if done.send((index, make_segment(&file, index, segment_bytes))).is_err() {
                    return;
                }
            }
        };
        // Without the thread the writer creates its segments itself: slower at each boundary, but correct.
        let _ = std::thread::Builder::new().name("log-ahead".into()).spawn(work);
        Self { asked, made, pending: None }
    }

    fn request(&mut self, index: u64) {
        if self.pending.is_none() && self.asked.try_send(index).is_ok() {
            self.pending = Some(index);
        }
    }

    /// Returns the requested segment; waits for it if it is pending.
    fn take_requested(&mut self, index: u64) -> Option<io::Result<Region>> {
        self.pending.take()?;
        let (made, region) = self.made.recv().ok()?;
        (made == index).then_some(region)
    }
}

/// Allocates, maps and faults in one segment.
#[cfg(not(loom))]
fn make_segment(file: &File, index: u64, segment_bytes: usize) -> io::Result<Region> {
    let offset = HEADER_BYTES as u64 + index * segment_bytes as u64;
    allocate(file, offset, segment_bytes as u64)?;
    let region = Region::map(file, offset, segment_bytes, Access::Write)?;
    region.populate();
    Ok(region)
}
