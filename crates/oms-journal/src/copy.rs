//! Reads all that was said to all sessions, from a place on: what a drop copy is made of.
//!
//! A report's place is its number in the [history], which goes on from day to day. It stays the same over
//! starts and kills. Only what a loss of power took is said again, and may lie in another place: whoever goes on from a place
//! compares the report before it with the one that it knows, and else begins with the day. The history is read from its files,
//! so nobody waits for who reads.

use tickpath_log::{Next, OpenError, Owner, Place, ReadError, Reader, Registration, Start, owner, writer};

use crate::archive::folder;
use crate::history::{self, SessionReport, archived_days};

/// Turns at the end of the log between two looks whether another day has begun.
const LOOK_EVERY: u32 = 16;

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A log of it cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A log of it is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// From which place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFrom {
    /// What is said from now on.
    Now,
    /// The first of this day.
    Day,
    /// This place, if the report before it has this sum; zero is any. Else the first of this day.
    Place {
        /// The place.
        place: u64,
        /// The CRC-32C of the message before it.
        last_sum: u32,
    },
}

/// Reads the history.
pub struct Copy {
    /// Of this day's history.
    history: Place,
    log: Reader,
    owner: Owner,
    next: u64,
    /// Where the log ended when it was opened.
    end: u64,
    looks: u32,
    /// Another day has begun: what is left of this one comes first.
    is_over: bool,
}

impl Copy {
    /// Opens the history of the journal in this place. None while a day is put away, for as long as its disk is busy: it is
    /// there in a while. Where nobody is who would begin the next day, that is an error.
    pub fn open(journal: &Place, from: CopyFrom) -> Result<Option<Self>, OpenError> {
        let history = history::place(journal);
        // Asked first: who is gone after a look may have begun a day behind it.
        let is_written = writer(&history).is_some();
        match Self::look(&history, from) {
            // An archive that is not whole will not be so in a while.
            Err(OpenError::NotFound(place)) if is_written && place == history => Ok(None),
            looked => looked,
        }
    }

    /// None if a day has ended meanwhile: what was opened by one name is of two days then.
    fn look(history: &Place, from: CopyFrom) -> Result<Option<Self>, OpenError> {
        let today = open(history, Start::Now)?;
        let (day, first, end) = (today.owner(), today.first_sequence(), today.sequence());
        let (log, next) = match from {
            CopyFrom::Now => (today, end),
            CopyFrom::Day => (open(history, Start::Oldest)?, first),
            CopyFrom::Place { place, last_sum } => match find(history, &today, place, last_sum)? {
                Some(log) => (log, place),
                None => (open(history, Start::Oldest)?, first),
            },
        };
        let is_one_day = owner(history)? == day;
        let (history, owner) = (history.clone(), log.owner());
        Ok(is_one_day.then_some(Self { history, log, owner, next, end, looks: 0, is_over: false }))
    }

    /// The journal's id.
    pub fn journal(&self) -> u64 {
        self.owner.journal
    }

    /// The place of what is read next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Where the history ended when this was opened: what lies behind is live.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Looks at up to so many frames and hands over each report with its place, until it is told to stop; false where
    /// there are no more now.
    pub fn turn(
        &mut self,
        frames: usize,
        mut take: impl FnMut(u64, &SessionReport<'_>) -> bool,
    ) -> Result<bool, CopyError> {
        for _ in 0..frames {
            match self.log.next()? {
                Next::Message(message) => {
                    self.next = message.sequence + 1;
                    if let Some(report) = history::read(&message)
                        && !take(message.sequence, &report)
                    {
                        return Ok(true);
                    }
                }
                Next::Gap(_) => {}
                Next::Empty if self.is_over => {
                    if !self.go_on()? {
                        return Ok(false);
                    }
                }
                Next::Empty => {
                    self.looks += 1;
                    if !self.looks.is_multiple_of(LOOK_EVERY) {
                        return Ok(false);
                    }
                    // A day that is just beginning has no log yet.
                    self.is_over = owner(&self.history).is_ok_and(|owner| owner != self.owner);
                    if !self.is_over {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Goes on with the day behind the one that was read to its end; false while another day ends.
    fn go_on(&mut self) -> Result<bool, OpenError> {
        let behind = || days(&self.history).into_iter().find(|&first| first > self.owner.base);
        let place = behind().map_or_else(|| self.history.clone(), |first| Place::folder(folder(&self.history, first)));
        let log = match open(&place, Start::Oldest) {
            Err(OpenError::NotFound(_)) => return Ok(false),
            log => log?,
        };
        if behind().is_some_and(|first| first < log.owner().base) {
            return Ok(false);
        }
        (self.owner, self.log, self.is_over) = (log.owner(), log, false);
        Ok(true)
    }
}

/// The days that are put away, each by the first record of its journal's log, rising.
fn days(history: &Place) -> Vec<u64> {
    let mut days = archived_days(history);
    // A folder is made before its day is over.
    days.retain(|&day| owner(&Place::folder(folder(history, day))).is_ok());
    days
}

/// A reader at this place, in this day's history or in that of a day before, if the report before it has the sum.
fn find(history: &Place, today: &Reader, place: u64, last_sum: u32) -> Result<Option<Reader>, OpenError> {
    if place > today.sequence() {
        return Ok(None);
    }
    let mut days = days(history);
    let mut log = history.clone();
    let mut first = today.first_sequence();
    while place < first {
        let Some(day) = days.pop() else { return Ok(None) };
        log = Place::folder(folder(history, day));
        let opened = open(&log, Start::Oldest)?;
        if opened.owner().journal != today.owner().journal {
            return Ok(None);
        }
        first = opened.first_sequence();
        // What lay between two days was set aside, and is nowhere.
        if place > open(&log, Start::Now)?.sequence() {
            return Ok(None);
        }
    }
    // What is the first of its day has the last of another one before it, which is no frame here.
    if last_sum != 0 && place > first {
        let mut before = open(&log, Start::Sequence(place - 1))?;
        let is_same = match before.next() {
            Ok(Next::Message(message)) => {
                history::read(&message).is_none_or(|report| crc32c::crc32c(report.message) == last_sum)
            }
            _ => false,
        };
        if !is_same {
            return Ok(None);
        }
    }
    open(&log, Start::Sequence(place)).map(Some)
}

fn open(place: &Place, start: Start) -> Result<Reader, OpenError> {
    Reader::open(place, start, Registration::Unregistered)
}
