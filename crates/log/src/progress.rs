//! Extent of a `keep` log, in its header page: a file that lost its end or a page is not taken for a shorter log.
//!
//! ```text
//!   1024  boot · segments opened in it or before · checksum      by the writer, when it has opened a segment
//!   2048  firm: segment, offset, sequence number · checksum      by the syncing thread, when all before is on the disk
//! ```
//!
//! In one boot no written data is lost, whichever process is killed: an opened segment is there. In a log of another
//! boot a loss of power may have taken data that was not firm, in any pieces; firm data is there. Each mark lies in a
//! sector of its own, so that writing one of them never tears the other.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::layout::{GENERATION, HEADER_BYTES, holding};

const OPENED: u64 = 1024;
const DURABLE_MARK_AT: u64 = 2048;

/// Bytes of the checksum and the reserved bytes at a mark's end.
const MARK_END_BYTES: usize = 8;

/// Max reads of a mark while its writer may be changing it.
const TRIES: usize = 100;

/// End of a log: behind the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogTail {
    /// Sequence number of the next message.
    pub sequence: u64,
    /// Index of the current segment.
    pub segment: u64,
    /// Offset of the next byte in it.
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OpenedMark {
    boot_id: [u8; 16],
    opened: u64,
    checksum: u32,
    reserved: u32,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DurableMark {
    segment: u64,
    offset: u64,
    sequence: u64,
    checksum: u32,
    reserved: u32,
}

/// Required and existing extent of a `keep` log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogExtent {
    /// Number of contiguous open segments, from the first.
    pub open: u64,
    /// Number of segments up to the last open one, holes included.
    pub found: u64,
    /// Number of segments ever opened: the rest was lost with another boot, in whole or in part.
    pub opened: u64,
    /// Durable tail: all data before it is there.
    pub durable: LogTail,
    /// Set if the writer was of this boot: all data ever written is there.
    pub same_boot: bool,
}

/// A segment that should be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingSegment {
    pub segment: u64,
    /// Offset of the first missing byte in it.
    pub offset: usize,
    pub what: &'static str,
}

/// Durable tail, shared by all threads that sync one log.
#[derive(Clone, Default)]
pub(crate) struct DurableTail(Arc<Mutex<LogTail>>);

impl DurableTail {
    /// Records that all data before `tail` is durable. Never takes back an earlier record.
    pub fn record(&self, file: &File, tail: LogTail) -> io::Result<()> {
        let mut noted = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if *noted == LogTail::default() {
            // For a log that existed before.
            *noted = read::<DurableMark>(file, DURABLE_MARK_AT)?.map_or(*noted, DurableMark::tail);
        }
        if tail <= *noted {
            return Ok(());
        }
        let LogTail { sequence, segment, offset } = tail;
        let mut mark = DurableMark { segment, offset, sequence, checksum: 0, reserved: 0 };
        mark.checksum = sum(&mark);
        file.write_all_at(mark.as_bytes(), DURABLE_MARK_AT)?;
        *noted = tail;
        Ok(())
    }
}

pub(crate) fn record_opened(file: &File, boot_id: [u8; 16], opened: u64) -> io::Result<()> {
    let mut mark = OpenedMark { boot_id, opened, checksum: 0, reserved: 0 };
    mark.checksum = sum(&mark);
    file.write_all_at(mark.as_bytes(), OPENED)
}

pub(crate) fn current_boot_id() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// Surveys all segments of a `keep` log, not only those up to the first missing one. A writer may publish meanwhile.
pub(crate) fn survey(
    file: &File,
    segment_bytes: usize,
    boot: Option<[u8; 16]>,
) -> io::Result<Result<LogExtent, MissingSegment>> {
    // The marks first: the data that they record was there before, and is never removed.
    let (Some(mark), Some(firm)) = (read::<OpenedMark>(file, OPENED)?, read::<DurableMark>(file, DURABLE_MARK_AT)?)
    else {
        let what = "the checksum of the header page's marks is wrong";
        return Ok(Err(MissingSegment { segment: 0, offset: 0, what }));
    };
    let firm = firm.tail();
    let same_boot = boot == Some(mark.boot_id);
    let Some(bytes) = file.metadata()?.len().checked_sub(HEADER_BYTES as u64) else {
        return Ok(Err(MissingSegment { segment: 0, offset: 0, what: "the file is cut short in its header page" }));
    };
    let (whole, rest) = (bytes / segment_bytes as u64, bytes % segment_bytes as u64);
    if rest >= 8 && word(file, segment_bytes, whole, GENERATION)? != 0 {
        return Ok(Err(MissingSegment { segment: whole, offset: rest as usize, what: "the file is cut short" }));
    }
    let is_open = |index| -> io::Result<bool> {
        Ok(index < whole && word(file, segment_bytes, index, GENERATION)? == holding(index))
    };
    let mut found = 0;
    for index in (0..whole).rev() {
        if is_open(index)? {
            found = index + 1;
            break;
        }
    }
    let needed = if same_boot { mark.opened.max(found) } else { firm.needs() };
    let mut open = 0;
    while open < found && is_open(open)? {
        open += 1;
    }
    if open < needed {
        let what = if open < whole { "the segment is not there, though it was" } else { "the file is cut short" };
        return Ok(Err(MissingSegment { segment: open, offset: 0, what }));
    }
    Ok(Ok(LogExtent { open, found, opened: mark.opened.max(found), durable: firm, same_boot }))
}

impl DurableMark {
    fn tail(self) -> LogTail {
        LogTail { sequence: self.sequence, segment: self.segment, offset: self.offset }
    }
}

impl LogExtent {
    /// Returns the sequence number below which resuming the log never cuts a message, nor writes another in its place.
    pub fn settled(&self) -> u64 {
        if self.same_boot { u64::MAX } else { self.durable.sequence }
    }
}

impl LogTail {
    /// Returns the number of segments present if all data before this tail is.
    fn needs(self) -> u64 {
        if self == Self::default() { 0 } else { self.segment.saturating_add(1) }
    }
}

fn word(file: &File, segment_bytes: usize, index: u64, offset: usize) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, HEADER_BYTES as u64 + index * segment_bytes as u64 + offset as u64)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns a mark, zeros if it was never written; none if its checksum is wrong.
fn read<M: FromBytes + IntoBytes + Immutable + KnownLayout>(file: &File, at: u64) -> io::Result<Option<M>> {
    for _ in 0..TRIES {
        let mut mark = M::new_zeroed();
        match file.read_exact_at(mark.as_mut_bytes(), at) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(M::new_zeroed())),
            other => other?,
        }
        let (content, end) = mark.as_bytes().split_at(size_of::<M>() - MARK_END_BYTES);
        let is_unwritten = content.iter().chain(end).all(|byte| *byte == 0);
        if is_unwritten || end.starts_with(&crc32c::crc32c(content).to_ne_bytes()) {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

/// Returns the checksum that a mark should carry: the CRC32C of all bytes before its end.
fn sum<M: IntoBytes + Immutable>(mark: &M) -> u32 {
    crc32c::crc32c(&mark.as_bytes()[..size_of::<M>() - MARK_END_BYTES])
}
