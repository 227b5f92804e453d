//! Warm-up logs, on which an idle spinning thread publishes and reads.
//!
//! A thread that spins for milliseconds finds the code path of the next message cold, because it has not run since the
//! last message. Warm-up runs it on a log like the real one that no other process knows: same types, same functions,
//! private memory without a name that ends with the process. It never touches a file, a reader or a count of the real
//! log. Design: `docs/design/warm-up.md`.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};
use tickpath_clock::WakeBarrier;
use zerocopy::IntoBytes;

use crate::append::Appender;
use crate::control::{CONTROL_BYTES, ControlFile};
use crate::files::LogShape;
use crate::guard::ProcessTrust;
use crate::layout::HEADER_BYTES;
use crate::mapping::{Access, allocate};
use crate::reader::oldest;
use crate::region::Region;
use crate::writer::parts;
use crate::{LogPath, OverflowPolicy, Reader, Writer};

/// Number and bytes of segments: small, so that warm-up does not evict the cache lines that it is to keep warm.
const SEGMENTS: usize = 2;
const SEGMENT_BYTES: usize = 8192;

/// Both ends of a private log.
pub struct WarmUpLog {
    /// Writer of the log.
    pub writer: Writer,
    /// Reader of the log.
    pub reader: Reader,
}

impl Writer {
    /// Builds a warm-up log with frames like this one's.
    pub fn warm_up_log(&self) -> io::Result<WarmUpLog> {
        WarmUpLog::like(&self.shape, self.barrier)
    }
}

impl Reader {
    /// Builds a warm-up log with frames like this one's. Its reader copies them, because its writer never waits.
    pub fn warm_up_log(&self) -> io::Result<WarmUpLog> {
        // No reader sleeps on it: a fence, which needs no registration of this process.
        WarmUpLog::like(&self.shape, WakeBarrier::Fence)
    }
}

impl WarmUpLog {
    /// Max payload of a warm-up message, in bytes.
    pub const MAX_PAYLOAD: usize = SEGMENT_BYTES / 2;

    fn like(real: &LogShape, barrier: WakeBarrier) -> io::Result<Self> {
        let shape = LogShape {
            policy: OverflowPolicy::Overwrite,
            segments: SEGMENTS,
            segment_bytes: SEGMENT_BYTES,
            mandatory: false,
            first_sequence: 0,
            ..*real
        };
        let data = memory(HEADER_BYTES + SEGMENTS * SEGMENT_BYTES)?;
        let segments = |file| shape.segments(file, Access::Write, ProcessTrust::Trusted);
        let (of_writer, of_reader) = (segments(data.try_clone()?)?, segments(data)?);
        let region = Region::map(&memory(CONTROL_BYTES)?, 0, CONTROL_BYTES, Access::Write)?;
        let parts = parts(&shape, of_writer, ControlFile { region }, shape.calibration.as_bytes());
        let writer = Writer::new(Appender::fresh(parts, 0)?, shape, LogPath::nowhere(), barrier);
        let cursor = oldest(writer.path(), &of_reader, &shape, ProcessTrust::Trusted).map_err(io::Error::other)?;
        Ok(Self { reader: Reader::unnamed(cursor, of_reader, shape, writer.path()), writer })
    }
}

fn memory(bytes: usize) -> io::Result<File> {
    let file = File::from(memfd_create("tickpath-rehearsal", MemfdFlags::CLOEXEC)?);
    allocate(&file, 0, bytes as u64)?;
    Ok(file)
}
