//! Reads the reports to all sessions from a given place on: the source of a drop copy.
//!
//! A report's place is its sequence number in the [history], which continues from day to day and stays the same over
//! starts and kills. Only reports that a power loss took are sent again, possibly at another place: a reader that
//! resumes compares the report before its place with the copy it has, and restarts with the day if they differ. The
//! history is read from its files, so the OMS never waits for a reader.

use tickpath_log::{LogOpenError, LogOwner, LogPath, LogReadError, Next, Reader, ReaderStart, owner, writer};

use crate::archive::{archived_days, archived_log, open_log};
use crate::history::{self, SessionReport};

/// Turns at the end of the log between two checks for a new day.
const DAY_CHECK_EVERY: u32 = 16;

/// Reasons why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DropCopyError {
    /// A log of the history cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// A log of the history is damaged.
    #[error(transparent)]
    Read(#[from] LogReadError),
}

/// Starting place of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCopyStart {
    /// The end: only reports that are sent from now on.
    Now,
    /// The first report of the current day.
    Day,
    /// This place, if the report before it has this checksum (zero matches any), else the first report of the current
    /// day. Where the logs that held the place are gone, the first report of the oldest log after it.
    Place {
        /// The place.
        place: u64,
        /// The CRC-32C of the message before it.
        last_sum: u32,
    },
}

/// Reader of the history of all sessions.
pub struct DropCopyReader {
    /// The current day's history.
    history: LogPath,
    log: Reader,
    owner: LogOwner,
    next: u64,
    /// End of the log at the time it was opened.
    end: u64,
    empty_turns: u32,
    /// Copy of the message that is passed to the caller.
    message: Vec<u8>,
    /// Another day has begun: the rest of this day is read first.
    is_over: bool,
}

impl DropCopyReader {
    /// Opens the history of the journal in this place. Returns none while a day is being archived, which takes as long
    /// as its disk is busy; without a writer that would begin the next day, that state is an error.
    pub fn open(journal: &LogPath, from: DropCopyStart) -> Result<Option<Self>, LogOpenError> {
        let history = history::place(journal);
        // Checked first: a writer that exits after the open may have begun a day in between.
        let is_written = writer(&history).is_some();
        match Self::try_open(&history, from) {
            // An incomplete archive will not complete itself.
            Err(LogOpenError::NotFound(place)) if is_written && place == history => Ok(None),
            opened => opened,
        }
    }

    /// Opens the history; none if a day ended meanwhile, because the files opened by one name then belong to two days.
    fn try_open(history: &LogPath, from: DropCopyStart) -> Result<Option<Self>, LogOpenError> {
        let today = open_log(history, ReaderStart::Now)?;
        let (day, first, end) = (today.owner(), today.first_sequence(), today.sequence());
        let (log, next) = match from {
            DropCopyStart::Now => (today, end),
            DropCopyStart::Day => (open_log(history, ReaderStart::Oldest)?, first),
            DropCopyStart::Place { place, last_sum } => match find(history, &today, place, last_sum)? {
                Some(found) => found,
                None => (open_log(history, ReaderStart::Oldest)?, first),
            },
        };
        let is_one_day = owner(history)? == day;
        let (history, owner, message) = (history.clone(), log.owner(), Vec::new());
        Ok(is_one_day.then_some(Self { history, log, owner, next, end, empty_turns: 0, message, is_over: false }))
    }

    /// Returns the journal's id.
    pub fn journal(&self) -> u64 {
        self.owner.journal
    }

    /// Returns the place of the next report to read.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the end of the history at the time it was opened: later reports are live.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads at most this many frames and passes each report to `take` with its place and its time in nanoseconds since
    /// the Unix epoch, until `take` returns false. Returns false at the end of the frames written so far.
    pub fn read_frames(
        &mut self,
        frames: usize,
        mut take: impl FnMut(u64, &SessionReport<'_>, u64) -> bool,
    ) -> Result<bool, DropCopyError> {
        for _ in 0..frames {
            match self.log.next()? {
                Next::Message(message) => {
                    let place = message.sequence;
                    self.next = place + 1;
                    let Some(report) = history::parse_report(&message) else { continue };
                    let SessionReport { session, number, account, stamp, kind, message } = report;
                    self.message.clear();
                    self.message.extend_from_slice(message);
                    // Converted after the read: each segment of the log has the calibration of its boot.
                    let utc_ns = self.log.calibration().utc_ns_of(stamp);
                    let report = SessionReport { session, number, account, stamp, kind, message: &self.message };
                    if !take(place, &report, utc_ns) {
                        return Ok(true);
                    }
                }
                Next::Gap(_) => {}
                Next::Empty if self.is_over => {
                    if !self.open_next_day()? {
                        return Ok(false);
                    }
                }
                Next::Empty => {
                    self.empty_turns += 1;
                    if !self.empty_turns.is_multiple_of(DAY_CHECK_EVERY) {
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

    /// Continues with the day after the fully read one; false while another day is being archived.
    fn open_next_day(&mut self) -> Result<bool, LogOpenError> {
        let behind = || days(&self.history).into_iter().find(|&first| first > self.owner.base);
        let next = behind().map_or_else(|| self.history.clone(), |first| archived_log(&self.history, first));
        let log = match open_log(&next, ReaderStart::Oldest) {
            Err(LogOpenError::NotFound(_)) => return Ok(false),
            log => log?,
        };
        if behind().is_some_and(|first| first < log.owner().base) {
            return Ok(false);
        }
        (self.owner, self.log, self.is_over) = (log.owner(), log, false);
        Ok(true)
    }
}

/// Returns the archived days in ascending order, each by the first record of its journal's log.
fn days(history: &LogPath) -> Vec<u64> {
    let mut days = archived_days(history).unwrap_or_default();
    // The folder is made before its day has ended.
    days.retain(|&day| owner(&archived_log(history, day)).is_ok());
    days
}

/// Opens the log that holds this place, in the current day's history or in the archive, and returns the reader with its
/// first place: that of the oldest later log where no log holds the place. None if the place lies ahead, or the report
/// before it has another checksum.
fn find(history: &LogPath, today: &Reader, place: u64, last_sum: u32) -> Result<Option<(Reader, u64)>, LogOpenError> {
    if place > today.sequence() {
        return Ok(None);
    }
    let mut days = days(history);
    let mut log = history.clone();
    let mut first = today.first_sequence();
    while place < first {
        let Some(day) = days.pop() else { return begin(&log, first).map(Some) };
        let older = archived_log(history, day);
        let opened = open_log(&older, ReaderStart::Oldest)?;
        // The archive belongs to another journal, or the place lies between two logs, in a part that was set aside.
        if opened.owner().journal != today.owner().journal || place > open_log(&older, ReaderStart::Now)?.sequence() {
            return begin(&log, first).map(Some);
        }
        (log, first) = (older, opened.first_sequence());
    }
    // The first report of a day follows the last report of the day before, which is not in this log.
    if last_sum != 0 && place > first {
        let mut before = open_log(&log, ReaderStart::Sequence(place - 1))?;
        let is_same = match before.next() {
            Ok(Next::Message(message)) => {
                history::parse_report(&message).is_none_or(|report| crc32c::crc32c(report.message) == last_sum)
            }
            _ => false,
        };
        if !is_same {
            return Ok(None);
        }
    }
    Ok(Some((open_log(&log, ReaderStart::Sequence(place))?, place)))
}

/// Opens a log at its first frame and returns the reader with that place.
fn begin(log: &LogPath, first: u64) -> Result<(Reader, u64), LogOpenError> {
    Ok((open_log(log, ReaderStart::Oldest)?, first))
}
