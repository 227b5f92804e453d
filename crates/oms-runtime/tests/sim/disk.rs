//! The part of the journal that a disk holds after a power loss: everything of the last sync, and any part of the later
//! writes, sector by sector.
//!
//! ```text
//!   header page │ segment │ segment │ segment │ …
//!    old or new │ ░░░░░░ firm ░░░░ │ old or new, or torn │
//! ```
//!
//! The journal's own mark shows the end of the last sync. The mark is written after the sync, so only the next sync
//! makes it certain on the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::plan::Dice;

/// The header page.
const PAGE: usize = 4096;
/// The mark in it: segment, offset, sequence number, each eight bytes.
const FIRM: std::ops::Range<usize> = 2048..2080;
/// Bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// The disk under the journal.
pub struct Disk {
    data: PathBuf,
    segment_bytes: usize,
    /// The header page that is certainly on the disk.
    header: Vec<u8>,
    /// The mark as last seen, and the farthest byte that any mark named.
    firm: Vec<u8>,
    firm_end: usize,
    /// The file as the last power loss left it: all of it is on the disk.
    left: Vec<u8>,
    /// The file after each sync, if the disk lies.
    synced: Option<Vec<Vec<u8>>>,
    /// Inode of the file: each day has its own file, and the earlier ones are on the disk.
    file: u64,
}

/// Fate of the writes since the last sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFate {
    Kept,
    Gone,
    InPieces,
    Torn,
}

impl Disk {
    pub fn new(data: PathBuf, segment_bytes: usize) -> Self {
        Self {
            data,
            segment_bytes,
            header: Vec::new(),
            firm: Vec::new(),
            firm_end: PAGE,
            left: Vec::new(),
            synced: None,
            file: 0,
        }
    }

    /// Lets the disk lose data that it reported as synced, from now on.
    pub fn drop_synced_writes(&mut self) {
        self.synced = Some(Vec::new());
    }

    /// Notes the synced part; to be called after every possible sync of the journal.
    pub fn observe_sync(&mut self) {
        let Ok(file) = fs::File::open(&self.data) else { return };
        let found = file.metadata().expect("an open file").ino();
        if self.file != found {
            self.begin_anew();
            self.file = found;
        }
        let mut page = vec![0; PAGE];
        if std::os::unix::fs::FileExt::read_exact_at(&file, &mut page, 0).is_err() {
            return;
        }
        if self.header.is_empty() {
            // The file is synced before it has its name.
            self.header = page.clone();
            self.header[SECTOR..].fill(0);
            self.firm = vec![0; FIRM.len()];
        }
        if page[FIRM] != self.firm[..] {
            self.firm_end = self.firm_end.max(self.marked(&page).0);
            let now = page[FIRM].to_vec();
            page[FIRM].copy_from_slice(&self.firm);
            (self.header, self.firm) = (page, now);
            if let Some(synced) = &mut self.synced {
                synced.push(fs::read(&self.data).expect("the journal can be read"));
            }
        }
    }

    /// Forgets the file, because another file, or none, has its name now, whatever the inode number.
    pub fn begin_anew(&mut self) {
        let (data, synced) = (std::mem::take(&mut self.data), self.synced.take().map(|_| Vec::new()));
        *self = Self { synced, ..Self::new(data, self.segment_bytes) };
    }

    /// Leaves the part of the file that survives a power loss. No process may have the file open.
    pub fn lose_power(&mut self, dice: &mut Dice) -> WriteFate {
        let Ok(mut now) = fs::read(&self.data) else { return WriteFate::Kept };
        if self.header.is_empty() || now.len() < PAGE {
            return WriteFate::Kept;
        }
        // The number of segments that a thread prepared ahead depends on real time: here it is one.
        let used = now.iter().rposition(|byte| *byte != 0).map_or(PAGE, |last| (last + 1).max(PAGE));
        now.resize(PAGE + (used - PAGE).next_multiple_of(self.segment_bytes) + self.segment_bytes, 0);
        let fate = match dice.below(4) {
            0 => WriteFate::Kept,
            1 => WriteFate::Gone,
            2 => WriteFate::InPieces,
            _ => WriteFate::Torn,
        };
        let mut image = self.left_of(&now, fate, dice);
        if let Some(older) = self.synced.as_mut().filter(|synced| synced.len() > 1) {
            image = older[dice.place(older.len() - 1)].clone();
        }
        fs::write(&self.data, &image).expect("the journal can be written");
        self.header = image[..PAGE].to_vec();
        self.firm = image[FIRM].to_vec();
        self.left = image;
        fate
    }

    /// Returns the end of the part that this header's mark names, and the end of its segment.
    fn marked(&self, page: &[u8]) -> (usize, usize) {
        let read_u64 = |from: usize| u64::from_le_bytes(page[from..from + 8].try_into().expect("eight bytes")) as usize;
        let (segment, offset) = (read_u64(FIRM.start), read_u64(FIRM.start + 8));
        // A mark is never all zeros: a segment begins with a header, so its offset is above zero.
        match offset {
            0 => (PAGE, PAGE),
            _ => (PAGE + segment * self.segment_bytes + offset, PAGE + (segment + 1) * self.segment_bytes),
        }
    }

    fn left_of(&self, now: &[u8], fate: WriteFate, dice: &mut Dice) -> Vec<u8> {
        let same = now.iter().zip(&self.left).skip(PAGE).take_while(|(now, left)| now == left).count();
        let firm = self.firm_end.max(PAGE + same).min(now.len());
        let needed = PAGE + (firm - PAGE).next_multiple_of(self.segment_bytes);
        let mut old = now.to_vec();
        old[firm..].fill(0);
        old[..PAGE].copy_from_slice(&self.header);
        let mut image = match fate {
            WriteFate::Kept => return now.to_vec(),
            WriteFate::Gone => old,
            WriteFate::InPieces => {
                for at in (0..now.len()).step_by(SECTOR) {
                    let sector = at..(at + SECTOR).min(now.len());
                    if dice.one_in(2) {
                        old[sector.clone()].copy_from_slice(&now[sector]);
                    }
                }
                old
            }
            WriteFate::Torn => {
                let used = now.iter().rposition(|byte| *byte != 0).map_or(firm, |last| last + 1).max(firm);
                // Words are never torn: the disk reads the memory that the OMS writes.
                let cut = (firm + dice.place(used - firm + 1)) / 8 * 8;
                old[PAGE..cut.max(PAGE)].copy_from_slice(&now[PAGE..cut.max(PAGE)]);
                old
            }
        };
        // A file grows by whole segments; the last ones may be missing from its length.
        let spare = now.len().saturating_sub(needed) / self.segment_bytes;
        image.truncate(needed + dice.place(spare + 1) * self.segment_bytes);
        image
    }
}
