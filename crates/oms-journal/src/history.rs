//! The day's outbound report log: every report to a session of a server, with its session and its sequence number.
//!
//! ```text
//!   FOLDER/reports            this day's      Base, then reports in the order in which they were sent
//!   FOLDER/reports/archive/N  of the days before, by the first record of their journal's log
//!
//!   a report   │ number 8 │ session 2 │ zero 6 │ the message │      kind: the message's
//!   Base       │ the next report's number of each session, 8 bytes each │
//! ```
//! A report's identity is (session, number), where the number counts the reports to that session in the journal. So a
//! start finds the reports that this log lacks by a replay, in whatever order held output was released, and a client
//! that reconnects resumes from its number without the core. Nothing waits for this log to be on a disk: reports that a
//! power loss took are written again, and reports that the journal lost with its own tail are removed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, LogMessage, LogOpenError, LogOwner, LogPath, LogReadError, Next, Reader, ReaderStart, Writer,
};
use tickpath_oms_core::Output;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub mod existing;

use crate::JournalError;
use crate::archive::{archive_folder, archived_days, archived_log, free_sibling, is_archived, make_folder, open_log};
use crate::lane::frame;
use crate::ledger::entry_mut;

/// The kind of a [`Base`] frame.
const BASE: u8 = 255;

/// Frames read between two checks for the report.
const CHECK_FRAMES: usize = 512;

/// Reports between two places from which a reader can begin.
const MARK_EVERY: u64 = 4096;

/// Header of each message.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ReportPrefix {
    number: u64,
    session: u16,
    reserved: [u8; 6],
}

const PREFIX: usize = size_of::<ReportPrefix>();
/// Bytes of the longest frame.
const MAX_FRAME_BYTES: usize = PREFIX + 128;

/// Writer of the history: numbers the reports of each session.
pub struct History {
    log: Writer,
    config: Config,
    calibration: Calibration,
    /// The number of the next report of each session.
    next: Vec<u64>,
    /// Frames since the last mark.
    frames_since_mark: u64,
    index: HistoryIndex,
}

/// Places from which a reader can begin, shared by the writer with the readers.
#[derive(Debug, Clone, Default)]
pub struct HistoryIndex(Arc<SharedIndex>);

#[derive(Debug, Default)]
struct SharedIndex {
    /// Days begun since the process started; changed under the lock, and read without it at every idle turn.
    day: AtomicU64,
    days: Mutex<IndexedDays>,
}

#[derive(Debug, Default)]
struct IndexedDays {
    log: Option<LogPath>,
    /// Owner of the current day's log.
    owner: LogOwner,
    /// Marks in ascending order.
    marks: Vec<HistoryMark>,
    /// Archived days that are read for clients that were away, in ascending order.
    ended: Vec<EndedDay>,
    /// Max archived days that are read; zero for all.
    keep: usize,
}

/// The history of an archived day.
#[derive(Debug)]
struct EndedDay {
    log: LogPath,
    first: HistoryMark,
}

/// A frame of the log, and the number of each session's next report there.
#[derive(Debug, Clone)]
struct HistoryMark {
    sequence: u64,
    next: Vec<u64>,
}

/// A report as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionReport<'a> {
    /// Session of the client.
    pub session: u16,
    /// The report's number in its session.
    pub number: u64,
    /// Time of sending in ticks.
    pub stamp: u64,
    /// The message's kind.
    pub kind: u8,
    /// The message.
    pub message: &'a [u8],
}

/// Returns the configuration of the history beside this journal. The history reserves as much memory as the journal.
pub fn config(journal: &Config) -> Config {
    let Config { segment_bytes, reserve_bytes, .. } = *journal;
    Config { segment_bytes, reserve_bytes, ..Config::journal(place(&journal.path)) }
}

/// Returns the place of a journal's history.
pub fn place(journal: &LogPath) -> LogPath {
    LogPath::folder(journal.dir().join("reports"))
}

impl History {
    /// Writes a report to its session, under the session's next number.
    #[inline]
    pub fn append(&mut self, stamp: u64, output: &Output) -> Result<(), JournalError> {
        let session = output.session();
        let (kind, message) = frame(output);
        let number = *entry_mut(&mut self.next, session);
        self.write(session, number, stamp, kind, message)
    }

    /// Returns the number of bytes in the last segment of the log.
    pub fn offset(&self) -> u64 {
        self.log.tail().offset
    }

    /// Returns the number of each session's next report.
    pub fn next_numbers(&self) -> &[u64] {
        &self.next
    }

    /// Returns the places from which readers can begin, shared with this writer.
    pub fn index(&self) -> HistoryIndex {
        self.index.clone()
    }

    /// Moves the reports of the ended day into the archive and begins the next day, whose journal log begins with this
    /// record.
    pub fn begin_day(&mut self, first: u64) -> Result<(), JournalError> {
        let folder = free_sibling(archive_folder(&self.config.path, self.config.owner.base));
        make_folder(&folder).map_err(JournalError::NotArchived)?;
        self.config.owner.base = first;
        let marks = self.index.clone();
        // The lock prevents a reader from opening the new log with the marks of the old log.
        let mut marked = marks.lock();
        self.log.archive_to(&self.config, &self.calibration, &folder)?;
        self.log.reserve(0).map_err(JournalError::Disk)?;
        let first = marked.marks.first().cloned();
        marked.ended.extend(first.map(|first| EndedDay { log: LogPath::folder(folder), first }));
        marked.owner = self.config.owner;
        marked.drop_old_days();
        self.write_base(&mut marked)?;
        // Tells readers that all reports of the day before were written.
        marks.0.day.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn write_base(&mut self, marked: &mut IndexedDays) -> Result<(), JournalError> {
        self.frames_since_mark = 0;
        let first = HistoryMark { sequence: self.log.sequence(), next: self.next.clone() };
        marked.marks = vec![first];
        self.log.publish(0, BASE, self.next.as_bytes()).map_err(JournalError::History)?;
        Ok(())
    }

    #[inline]
    fn write(&mut self, session: u16, number: u64, stamp: u64, kind: u8, message: &[u8]) -> Result<(), JournalError> {
        let mut bytes = [0; MAX_FRAME_BYTES];
        let prefix = ReportPrefix { number, session, reserved: [0; 6] };
        bytes[..PREFIX].copy_from_slice(prefix.as_bytes());
        bytes[PREFIX..PREFIX + message.len()].copy_from_slice(message);
        self.log.publish(stamp, kind, &bytes[..PREFIX + message.len()]).map_err(JournalError::History)?;
        *entry_mut(&mut self.next, session) = number + 1;
        self.frames_since_mark += 1;
        if self.frames_since_mark == MARK_EVERY {
            self.add_mark();
        }
        Ok(())
    }

    #[cold]
    fn add_mark(&mut self) {
        self.frames_since_mark = 0;
        self.index.lock().marks.push(HistoryMark { sequence: self.log.sequence(), next: self.next.clone() });
    }
}

impl HistoryIndex {
    /// Reads the reports to a session from this number on, or from the first one that exists.
    pub fn read(&self, session: u16, from: u64) -> Result<SessionReader, LogOpenError> {
        self.lock().read(session, from)
    }

    /// Reads as [`Self::read`] does; none if this day is over.
    pub fn read_in(&self, day: u64, session: u16, from: u64) -> Result<Option<SessionReader>, LogOpenError> {
        let marked = self.lock();
        if self.day() == day { marked.read(session, from).map(Some) } else { Ok(None) }
    }

    /// Returns the checksum of a report of this day; none if there is no such report.
    pub fn checksum(&self, session: u16, number: u64) -> Option<u32> {
        let mut reading = self.read(session, number).ok()?;
        let mut sum = None;
        while sum.is_none() {
            let more = reading.read_frames(CHECK_FRAMES, |report| {
                sum = Some((report.number, crc32c::crc32c(report.message)));
                false
            });
            if !more.unwrap_or(false) {
                break;
            }
        }
        sum.filter(|&(found, _)| found == number).map(|(_, sum)| sum)
    }

    /// Returns the number of a session's first report of this day.
    pub fn first(&self, session: u16) -> u64 {
        self.lock().first(session)
    }

    /// Returns the number of a session's first report that can be read, in the archived days that are kept or in the
    /// current one.
    pub fn oldest(&self, session: u16) -> u64 {
        let marked = self.lock();
        marked.ended.first().map_or_else(|| marked.first(session), |day| day.first.next(session))
    }

    /// Sets the number of archived days that resuming clients can read; zero for all. The call deletes no file; the
    /// default is the last archived day alone.
    pub fn set_kept_days(&self, days: u32) {
        let mut marked = self.lock();
        marked.keep = days as usize;
        let Some(log) = &marked.log else { return };
        marked.ended = EndedDay::find(log, &marked.owner, marked.keep);
    }

    /// Returns the number of days begun so far.
    #[inline]
    pub fn day(&self) -> u64 {
        // Pairs with the release in `begin_day`: all reports of the day before are written.
        self.0.day.load(Ordering::Acquire)
    }

    /// Returns the current day and a reader of its reports from this start on.
    pub fn follow(&self, start: ReaderStart) -> Result<(u64, Reader), LogOpenError> {
        let marked = self.lock();
        Ok((self.day(), open_log(marked.log()?, start)?))
    }

    fn lock(&self) -> MutexGuard<'_, IndexedDays> {
        self.0.days.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl IndexedDays {
    fn read(&self, session: u16, from: u64) -> Result<SessionReader, LogOpenError> {
        let ends = self.ended.iter().skip(1).map(|day| day.first.next(session)).chain([self.first(session)]);
        for (day, end) in self.ended.iter().zip(ends) {
            // The reports of a day whose files are gone are a gap.
            if from < end
                && let Ok(log) = open_log(&day.log, ReaderStart::Oldest)
            {
                return Ok(SessionReader { log, session, first: from.max(day.first.next(session)), end: Some(end) });
            }
        }
        let behind = self.marks.partition_point(|mark| mark.next(session) <= from);
        let first = if behind == 0 { self.first(session) } else { from };
        let start = self
            .marks
            .get(behind.saturating_sub(1))
            .map_or(ReaderStart::Oldest, |mark| ReaderStart::Sequence(mark.sequence));
        let log = open_log(self.log()?, start)?;
        Ok(SessionReader { log, session, first, end: None })
    }

    /// Drops the oldest archived days beyond the limit.
    fn drop_old_days(&mut self) {
        let more = if self.keep == 0 { 0 } else { self.ended.len().saturating_sub(self.keep) };
        self.ended.drain(..more);
    }

    fn first(&self, session: u16) -> u64 {
        self.marks.first().map_or(0, |mark| mark.next(session))
    }

    fn log(&self) -> Result<&LogPath, LogOpenError> {
        self.log.as_ref().ok_or_else(|| LogOpenError::Config("no history was opened".to_owned()))
    }
}

impl HistoryMark {
    fn next(&self, session: u16) -> u64 {
        self.next.get(usize::from(session)).copied().unwrap_or(0)
    }
}

/// Reader of the reports to one session.
pub struct SessionReader {
    log: Reader,
    session: u16,
    first: u64,
    end: Option<u64>,
}

impl SessionReader {
    /// Returns whether the reader began in an archived day.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the number of the session's first report after the archived day that is read; none for the current day.
    pub fn end(&self) -> Option<u64> {
        self.end
    }

    /// Reads at most this many frames and passes the session's reports to `take`, until `take` returns false. Returns
    /// false at the end of the log.
    pub fn read_frames(
        &mut self,
        frames: usize,
        mut take: impl FnMut(&SessionReport<'_>) -> bool,
    ) -> Result<bool, LogReadError> {
        for _ in 0..frames {
            let Next::Message(message) = self.log.next()? else { return Ok(false) };
            if let Some(report) = parse_report(&message)
                && report.session == self.session
                && report.number >= self.first
                && !take(&report)
            {
                return Ok(true);
            }
        }
        Ok(true)
    }
}

/// Parses a report of the history; none for any other frame.
#[inline]
pub fn parse_report<'a>(message: &LogMessage<'a>) -> Option<SessionReport<'a>> {
    if message.kind == BASE {
        return None;
    }
    let (prefix, rest) = ReportPrefix::read_from_prefix(message.payload).ok()?;
    Some(SessionReport {
        session: prefix.session,
        number: prefix.number,
        stamp: message.stamp,
        kind: message.kind,
        message: rest,
    })
}

/// Result of reading a whole history.
#[derive(Default)]
struct HistoryScan {
    base: bool,
    next: Vec<u64>,
    marks: Vec<HistoryMark>,
    frames_since_mark: u64,
}

impl HistoryScan {
    fn note_frame(&mut self, message: &LogMessage<'_>) {
        if message.kind == BASE {
            self.base = true;
            self.next =
                message.payload.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap_or_default())).collect();
            self.marks.push(HistoryMark { sequence: message.sequence, next: self.next.clone() });
            return;
        }
        let Some(report) = parse_report(message) else { return };
        let next = entry_mut(&mut self.next, report.session);
        *next = (*next).max(report.number + 1);
        self.frames_since_mark += 1;
        if self.frames_since_mark == MARK_EVERY {
            self.frames_since_mark = 0;
            self.marks.push(HistoryMark { sequence: message.sequence + 1, next: self.next.clone() });
        }
    }
}

impl EndedDay {
    /// Finds the last days of this journal that were archived before this owner's day began, in ascending order: at
    /// most `set_kept_days`, or all for zero.
    fn find(log: &LogPath, now: &LogOwner, keep: usize) -> Vec<Self> {
        let firsts = archived_days(log).unwrap_or_default().into_iter().rev();
        let before = firsts.filter(|&first| first < now.base && is_archived(log, first));
        let opened = before.filter_map(|first| Self::open(archived_log(log, first)));
        let own = opened.take_while(|(journal, _)| *journal == now.journal).map(|(_, day)| day);
        let mut days: Vec<Self> = if keep == 0 { own.collect() } else { own.take(keep).collect() };
        days.reverse();
        days
    }

    /// Opens an archived day and returns its journal's id with it; none if it cannot be read.
    fn open(log: LogPath) -> Option<(u64, Self)> {
        let mut reader = open_log(&log, ReaderStart::Oldest).ok()?;
        let mut scan = HistoryScan::default();
        if let Next::Message(message) = reader.next().ok()? {
            scan.note_frame(&message);
        }
        let first = scan.marks.into_iter().next()?;
        Some((reader.owner().journal, Self { log, first }))
    }

    /// Returns the number after the day's last frame.
    fn end(&self) -> u64 {
        open_log(&self.log, ReaderStart::Now).map_or(0, |log| log.sequence())
    }
}
