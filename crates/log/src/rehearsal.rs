//! Logs on which a thread that has nothing to do rehearses.
//!
//! A thread that spins for milliseconds finds the code of the next message's way cold: what it runs then, it has not run
//! since the last message. It is kept warm by running it, on a log like the real one of which nobody else knows: same
//! types, same functions, memory of its own that has no name and ends with the process. Nothing of it reaches a file,
//! a reader or a count of the real log.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};
use zerocopy::IntoBytes;

use crate::append::Appender;
use crate::control::{CONTROL_BYTES, Control};
use crate::files::Shape;
use crate::guard::Others;
use crate::layout::HEADER_BYTES;
use crate::mapping::{Access, Mapping, allocate};
use crate::reader::oldest;
use crate::region::Region;
use crate::wake::Barrier;
use crate::writer::parts;
use crate::{Policy, Reader, Writer};

/// A ring of so many segments of so many bytes: what is rehearsed in must not drive out what it is to keep warm.
const SEGMENTS: usize = 2;
const SEGMENT_BYTES: usize = 8192;

/// Both ends of a log that nobody else has.
pub struct Rehearsal {
    /// Publishes to it.
    pub writer: Writer,
    /// Reads it.
    pub reader: Reader,
}

impl Writer {
    /// A log with frames like this one's.
    pub fn rehearsal(&self) -> io::Result<Rehearsal> {
        Rehearsal::like(self.shape(), self.barrier())
    }
}

impl Reader {
    /// A log with frames like this one's. Its reader copies them, for its writer never waits.
    pub fn rehearsal(&self) -> io::Result<Rehearsal> {
        // Nobody sleeps on it: a fence, for which this process need ask nobody.
        Rehearsal::like(self.shape(), Barrier::Fence)
    }
}

impl Rehearsal {
    /// The longest message that can be rehearsed with, in bytes.
    pub const MAX_PAYLOAD: usize = SEGMENT_BYTES / 2;

    fn like(real: &Shape, barrier: Barrier) -> io::Result<Self> {
        let shape = Shape {
            policy: Policy::Overwrite,
            segments: SEGMENTS,
            segment_bytes: SEGMENT_BYTES,
            mandatory: false,
            first_sequence: 0,
            ..*real
        };
        let data = memory(HEADER_BYTES + SEGMENTS * SEGMENT_BYTES)?;
        let segments = |file| shape.segments(file, Access::Write, Others::Trusted);
        let (of_writer, of_reader) = (segments(data.try_clone()?)?, segments(data)?);
        let control = Mapping::new(&memory(CONTROL_BYTES)?, 0, CONTROL_BYTES, Access::Write)?;
        let parts = parts(&shape, of_writer, Control::new(Region::mapped(control)), shape.calibration.as_bytes());
        let writer = Writer::unnamed(Appender::fresh(parts, 0)?, shape, barrier);
        let follower = oldest(writer.place(), &of_reader, &shape, Others::Trusted).map_err(io::Error::other)?;
        Ok(Self { reader: Reader::unnamed(follower, of_reader, shape, writer.place()), writer })
    }
}

/// Memory without a name.
fn memory(bytes: usize) -> io::Result<File> {
    let file = File::from(memfd_create("tickpath-rehearsal", MemfdFlags::CLOEXEC)?);
    allocate(&file, 0, bytes as u64)?;
    Ok(file)
}
