//! Reads all that was said to all sessions, from a place on: what a drop copy is made of.
//!
//! A report's place is its number in the [history], which goes on from day to day. It stays the same over
//! starts and kills. Only what a loss of power took is said again, and may lie in another place: whoever goes on from a place
//! compares the report before it with the one that it knows, and else begins with the day. The history is read from its files,
//! so nobody waits for who reads.

use tickpath_log::{Next, OpenError, Owner, Place, ReadError, Reader, Registration, Start, owner, writer};

use crate::archive::{archived_days, folder};
use crate::history::{self, SessionReport};

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
    /// This place, if the report before it has this sum; zero is any. Else the first of this day. Where the logs that held
    /// the place are gone, the first report of the oldest log behind it.
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
    /// The message that is handed over.
    message: Vec<u8>,
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
                Some(found) => found,
                None => (open(history, Start::Oldest)?, first),
            },
        };
        let is_one_day = owner(history)? == day;
        let (history, owner) = (history.clone(), log.owner());
        Ok(is_one_day.then_some(Self { history, log, owner, next, end, looks: 0, message: Vec::new(), is_over: false }))
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
        self.turn_with_time(frames, |place, report, _| take(place, report))
    }

    /// Hands over reports as [`Self::turn`] does, each with its time in nanoseconds since the Unix epoch: stamps of another
    /// boot of the host are ticks of another clock.
    pub fn turn_with_time(
        &mut self,
        frames: usize,
        mut take: impl FnMut(u64, &SessionReport<'_>, u64) -> bool,
    ) -> Result<bool, CopyError> {
        for _ in 0..frames {
            match self.log.next()? {
                Next::Message(message) => {
                    let place = message.sequence;
                    self.next = place + 1;
                    let Some(report) = history::read(&message) else { continue };
                    let SessionReport { session, number, stamp, kind, message } = report;
                    self.message.clear();
                    self.message.extend_from_slice(message);
                    // Asked behind the message: each segment of the log has the calibration of its boot.
                    let utc_ns = self.log.calibration().utc_ns_of(stamp);
                    let report = SessionReport { session, number, stamp, kind, message: &self.message };
                    if !take(place, &report, utc_ns) {
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

/// Opens the log that has this place, in the current day's history or in the archive, and returns the reader with the place
/// where it begins: at the oldest log behind the place where no log has it. None if the place lies ahead, or the report
/// before it has another sum.
fn find(history: &Place, today: &Reader, place: u64, last_sum: u32) -> Result<Option<(Reader, u64)>, OpenError> {
    if place > today.sequence() {
        return Ok(None);
    }
    let mut days = days(history);
    let mut log = history.clone();
    let mut first = today.first_sequence();
    while place < first {
        let Some(day) = days.pop() else { return begin(&log, first).map(Some) };
        let older = Place::folder(folder(history, day));
        let opened = open(&older, Start::Oldest)?;
        // The archive of another journal, or a place between two logs, which was set aside and is in none.
        if opened.owner().journal != today.owner().journal || place > open(&older, Start::Now)?.sequence() {
            return begin(&log, first).map(Some);
        }
        (log, first) = (older, opened.first_sequence());
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
    Ok(Some((open(&log, Start::Sequence(place))?, place)))
}

/// Opens a log at its first frame, whose place is returned too.
fn begin(log: &Place, first: u64) -> Result<(Reader, u64), OpenError> {
    Ok((open(log, Start::Oldest)?, first))
}

fn open(place: &Place, start: Start) -> Result<Reader, OpenError> {
    Reader::open(place, start, Registration::Unregistered)
}
