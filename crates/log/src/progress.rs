//! How far a growing log has come, as its header page tells it: so that a file which lost its end, or a page in the
//! middle, is not taken for a shorter log.
//!
//! ```text
//!   1024  boot · segments opened in it or before · checksum      by the writer, when it has opened one
//!   2048  firm: segment, offset, sequence number · checksum      by who has synced, when all before that was on the disk
//! ```
//!
//! In one boot nothing that was written is lost, whoever is killed: what was opened is there. From another boot's log the
//! power may have taken what was not firm, in whatever pieces; what was firm is there. Each mark lies in a sector of its
//! own, so that one of them is never torn by writing the other.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::layout::{GENERATION, HEADER_BYTES, holding};

const OPENED: u64 = 1024;
const FIRM: u64 = 2048;

/// How often a mark is read again that its writer may just be changing.
const TRIES: usize = 100;

/// Where a log ends: behind the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tail {
    /// The sequence number of the next message.
    pub sequence: u64,
    /// The segment that is being filled.
    pub segment: u64,
    /// The next byte in it.
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
struct FirmMark {
    segment: u64,
    offset: u64,
    sequence: u64,
    checksum: u32,
    reserved: u32,
}

/// What of a growing log must be there, and what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// So many segments are open, one behind the other.
    pub open: u64,
    /// So many are there with those behind a hole.
    pub found: u64,
    /// So many were opened: the rest was lost with another boot, in whole or in part.
    pub opened: u64,
    /// Everything before this is there.
    pub firm: Tail,
    /// All that was ever written is there.
    pub same_boot: bool,
}

/// A segment that should be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub segment: u64,
    /// The first byte in it that is not there.
    pub offset: usize,
    pub what: &'static str,
}

/// The mark of what is on the disk, shared by all who sync one log.
#[derive(Clone, Default)]
pub(crate) struct Firm(Arc<Mutex<Tail>>);

impl Firm {
    /// Notes that everything before this is on the disk. Never takes back what was noted before.
    pub fn note(&self, file: &File, tail: Tail) -> io::Result<()> {
        let mut noted = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if *noted == Tail::default() {
            // Of a log that was there before.
            *noted = read::<FirmMark>(file, FIRM)?.map_or(*noted, FirmMark::tail);
        }
        if tail <= *noted {
            return Ok(());
        }
        let Tail { sequence, segment, offset } = tail;
        let mut mark = FirmMark { segment, offset, sequence, checksum: 0, reserved: 0 };
        mark.checksum = sum(&mark);
        file.write_all_at(mark.as_bytes(), FIRM)?;
        *noted = tail;
        Ok(())
    }
}

/// Notes that so many segments were opened.
pub(crate) fn note_opened(file: &File, boot_id: [u8; 16], opened: u64) -> io::Result<()> {
    let mut mark = OpenedMark { boot_id, opened, checksum: 0, reserved: 0 };
    mark.checksum = sum(&mark);
    file.write_all_at(mark.as_bytes(), OPENED)
}

/// The boot that this is.
pub(crate) fn this_boot() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// Looks at all segments of a growing log, not only up to the first that is not there. A writer may go on meanwhile.
pub(crate) fn survey(file: &File, segment_bytes: usize, boot: Option<[u8; 16]>) -> io::Result<Result<Extent, Missing>> {
    // The marks first: what they tell was there before, and is not taken away.
    let (Some(mark), Some(firm)) = (read::<OpenedMark>(file, OPENED)?, read::<FirmMark>(file, FIRM)?) else {
        let what = "the checksum of the header page's marks is wrong";
        return Ok(Err(Missing { segment: 0, offset: 0, what }));
    };
    let firm = firm.tail();
    let same_boot = boot == Some(mark.boot_id);
    let Some(bytes) = file.metadata()?.len().checked_sub(HEADER_BYTES as u64) else {
        return Ok(Err(Missing { segment: 0, offset: 0, what: "the file is cut short in its header page" }));
    };
    let (whole, rest) = (bytes / segment_bytes as u64, bytes % segment_bytes as u64);
    if rest >= 8 && word(file, segment_bytes, whole, GENERATION)? != 0 {
        return Ok(Err(Missing { segment: whole, offset: rest as usize, what: "the file is cut short" }));
    }
    let is_open = |index| Ok::<bool, io::Error>(index < whole && is_open(file, segment_bytes, index)?);
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
        return Ok(Err(Missing { segment: open, offset: 0, what }));
    }
    Ok(Ok(Extent { open, found, opened: mark.opened.max(found), firm, same_boot }))
}

impl Extent {
    /// No message before this number is ever cut, nor any other message written in its place, by who takes the log up.
    pub fn settled(&self) -> u64 {
        if self.same_boot { u64::MAX } else { self.firm.sequence }
    }
}

impl Tail {
    /// So many segments are there if everything before this is.
    fn needs(self) -> u64 {
        if self == Self::default() { 0 } else { self.segment.saturating_add(1) }
    }
}

fn is_open(file: &File, segment_bytes: usize, index: u64) -> io::Result<bool> {
    Ok(word(file, segment_bytes, index, GENERATION)? == holding(index))
}

fn word(file: &File, segment_bytes: usize, index: u64, offset: usize) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, HEADER_BYTES as u64 + index * segment_bytes as u64 + offset as u64)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A mark, zeros if it was never written; none if its checksum is wrong.
fn read<M: Mark>(file: &File, at: u64) -> io::Result<Option<M>> {
    for _ in 0..TRIES {
        let mut mark = M::new_zeroed();
        match file.read_exact_at(mark.as_mut_bytes(), at) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(M::new_zeroed())),
            other => other?,
        }
        if mark.as_bytes().iter().all(|byte| *byte == 0) || mark.checksum() == sum(&mark) {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

trait Mark: FromBytes + IntoBytes + Immutable + KnownLayout {
    fn checksum(&self) -> u32;
}

impl Mark for OpenedMark {
    fn checksum(&self) -> u32 {
        self.checksum
    }
}

impl FirmMark {
    fn tail(self) -> Tail {
        Tail { sequence: self.sequence, segment: self.segment, offset: self.offset }
    }
}

impl Mark for FirmMark {
    fn checksum(&self) -> u32 {
        self.checksum
    }
}

/// CRC32C of what lies before the checksum and the reserved bytes at a mark's end.
fn sum<M: IntoBytes + Immutable>(mark: &M) -> u32 {
    let bytes = mark.as_bytes();
    crc32c::crc32c(&bytes[..bytes.len() - 8])
}
