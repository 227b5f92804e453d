//! Undoes the roll at a day's end step by step, down to the files that a kill or a power loss leaves between two file
//! operations.
//!
//! ```text
//!   each log, the journal first:  control moved ─ data moved ─ control made ─ data made ─ first segment ─ first record
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use tickpath_log::{HEADER_BYTES, LogPath, Next, Reader, ReaderStart, Registration, SEGMENT_HEADER_BYTES};

use crate::plan::Dice;

/// Steps of the roll of one log.
pub const STEPS: usize = 6;
/// Offsets of the marks in a log's header page: of opened segments, and of the synced end.
const OPENED: usize = 1024;
const SYNCED: usize = 2048;

/// A log that has just been rolled.
struct Rolled {
    folder: PathBuf,
    archived: PathBuf,
}

/// Undoes a drawn number of steps of the roll of the journal, whose ended log began with the record `first`, and of the
/// history beside it. Returns the number; the history's steps are undone first, and none after a later record. No
/// process may have the logs open.
pub fn undo(journal: &Path, first: u64, dice: &mut Dice) -> usize {
    let drawn = dice.place(2 * STEPS + 1);
    let mut undone = 0;
    for log in [Rolled::of(&journal.join("reports"), first), Rolled::of(journal, first)] {
        let steps = (drawn - undone).min(STEPS);
        if steps == 0 || !log.is_fresh() {
            break;
        }
        log.undo(steps);
        undone += steps;
    }
    undone
}

impl Rolled {
    fn of(folder: &Path, first: u64) -> Self {
        Self { folder: folder.to_owned(), archived: folder.join("archive").join(format!("{first:020}")) }
    }

    /// Returns whether the ended log lies in the archive, and the new one holds its first record alone.
    fn is_fresh(&self) -> bool {
        let place = LogPath::folder(&self.folder);
        let Ok(mut log) = Reader::open(&place, ReaderStart::Oldest, Registration::Unregistered) else { return false };
        let has_first = matches!(log.next(), Ok(Next::Message(_)));
        has_first && matches!(log.next(), Ok(Next::Empty)) && self.archived.join("data").exists()
    }

    fn undo(&self, steps: usize) {
        let undo: [fn(&Self); STEPS] = [
            Self::take_record,
            Self::take_segment,
            Self::take_data,
            Self::take_control,
            Self::put_data_back,
            Self::put_control_back,
        ];
        undo[..steps].iter().for_each(|undo| undo(self));
    }

    fn take_record(&self) {
        self.rewrite(|bytes| {
            bytes[SYNCED..HEADER_BYTES].fill(0);
            let behind = (HEADER_BYTES + SEGMENT_HEADER_BYTES).min(bytes.len());
            bytes[behind..].fill(0);
        });
    }

    fn take_segment(&self) {
        self.rewrite(|bytes| {
            bytes.truncate(HEADER_BYTES);
            bytes[OPENED..].fill(0);
        });
    }

    /// Gives the file its temporary name, under which it was made.
    fn take_data(&self) {
        self.rename("data", "data.new");
    }

    fn take_control(&self) {
        fs::remove_file(self.folder.join("data.new")).expect("it was just named so");
        self.rename("control", "control.new");
    }

    fn put_data_back(&self) {
        fs::remove_file(self.folder.join("control.new")).expect("it was just named so");
        fs::rename(self.archived.join("data"), self.folder.join("data")).expect("both are on one disk");
    }

    fn put_control_back(&self) {
        fs::rename(self.archived.join("control"), self.folder.join("control")).expect("both are on one disk");
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.folder.join(from), self.folder.join(to)).expect("the log's files are there");
    }

    /// Replaces the data file by a changed copy, which keeps the file's mode: a client may have the file mapped.
    fn rewrite(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let (data, copy) = (self.folder.join("data"), self.folder.join("data.copy"));
        let mut bytes = fs::read(&data).expect("the log can be read");
        change(&mut bytes);
        fs::copy(&data, &copy).expect("the log can be copied");
        fs::write(&copy, bytes).expect("the copy can be written");
        fs::rename(copy, data).expect("both are in one folder");
    }
}
