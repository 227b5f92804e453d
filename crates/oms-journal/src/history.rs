//! The day's outbound report log: every report to a session of a server, with its session and its sequence number.
//!
//! ```text
//!   FOLDER/reports            this day's      bases, then reports in the order in which they were sent
//!   FOLDER/reports/archive/N  of the days before, by the first record of their journal's log
//!
//!   a report   │ number 8 │ session 2 │ zero 2 │ account 4, of a detail │ the message │      kind: the message's
//!   DetailBase │ the next detail's number of each session, 8 bytes each │
//!   Base       │ the next report's number of each session, 8 bytes each │
//! ```
//! The details of reports lie between the reports, and have numbers of their own.
//!
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
use tickpath_market::{AccountId, Kind};
use tickpath_oms_core::{DetailRecord, Output};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub mod existing;

use crate::JournalError;
use crate::archive::{archive_folder, archived_days, archived_log, free_sibling, is_archived, make_folder, open_log};
use crate::lane::frame;
use crate::numbers::{NextNumbers, SessionPosition};

/// The kind of a [`Base`] frame.
const BASE: u8 = 255;
/// The kind of a DetailBase frame, which precedes the base unless there was no detail yet.
const DETAIL_BASE: u8 = 254;

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
    reserved: u16,
    /// Account of a detail's order, which its message does not have; zero for a report.
    account: AccountId,
}

const PREFIX: usize = size_of::<ReportPrefix>();
/// Bytes of the longest frame.
const MAX_FRAME_BYTES: usize = PREFIX + 128;

/// Writer of the history: numbers the reports of each session.
pub struct History {
    log: Writer,
    config: Config,
    calibration: Calibration,
    next: NextNumbers,
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

/// A frame of the log, and the numbers of each session's next report and detail there.
#[derive(Debug, Clone)]
struct HistoryMark {
    sequence: u64,
    next: NextNumbers,
}

/// A report as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionReport<'a> {
    /// Session of the client.
    pub session: u16,
    /// The report's number in its session; a detail's among the details.
    pub number: u64,
    /// Account of a detail's order; zero for a report, whose message has it.
    pub account: AccountId,
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
        let number = *self.next.next_mut(kind, session);
        self.write(ReportPrefix { number, session, reserved: 0, account: AccountId(0) }, stamp, kind, message)
    }

    /// Writes a detail to its session, under the session's next number for details.
    pub fn append_detail(&mut self, stamp: u64, record: &DetailRecord) -> Result<(), JournalError> {
        let Some(session) = record.session.checked_sub(1) else { return Ok(()) };
        let kind = Kind::ReportDetail.code();
        let number = *self.next.next_mut(kind, session);
        let prefix = ReportPrefix { number, session, reserved: 0, account: record.account };
        self.write(prefix, stamp, kind, record.detail.as_bytes())
    }

    /// Returns the number of bytes in the last segment of the log.
    pub fn offset(&self) -> u64 {
        self.log.tail().offset
    }

    /// Returns the numbers of each session's next report and detail.
    pub fn next_numbers(&self) -> &NextNumbers {
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
        // The base comes last, because a history without it counts as torn.
        if !self.next.details.is_empty() {
            self.log.publish(0, DETAIL_BASE, self.next.details.as_bytes()).map_err(JournalError::History)?;
        }
        self.log.publish(0, BASE, self.next.reports.as_bytes()).map_err(JournalError::History)?;
        Ok(())
    }

    #[inline]
    fn write(&mut self, prefix: ReportPrefix, stamp: u64, kind: u8, message: &[u8]) -> Result<(), JournalError> {
        let mut bytes = [0; MAX_FRAME_BYTES];
        bytes[..PREFIX].copy_from_slice(prefix.as_bytes());
        bytes[PREFIX..PREFIX + message.len()].copy_from_slice(message);
        self.log.publish(stamp, kind, &bytes[..PREFIX + message.len()]).map_err(JournalError::History)?;
        *self.next.next_mut(kind, prefix.session) = prefix.number + 1;
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
    /// Reads the reports to a session from this number on, or from the first one that exists, without details.
    pub fn read(&self, session: u16, from: u64) -> Result<SessionReader, LogOpenError> {
        self.resume(session, SessionPosition::without_details(from))
    }

    /// Reads the reports to a session and their details from this position on, or from the first ones that exist.
    pub fn resume(&self, session: u16, from: SessionPosition) -> Result<SessionReader, LogOpenError> {
        self.lock().read(session, from)
    }

    /// Reads as [`Self::resume`] does, with the details that lie behind the report before this number: those of a
    /// client that knows no number of a detail.
    pub fn resume_behind(&self, session: u16, from: u64) -> Result<SessionReader, LogOpenError> {
        let before = from.checked_sub(1);
        let mut reader = self.read(session, before.unwrap_or(0))?;
        reader.first = SessionPosition { report: reader.first.report.max(from), detail: 0 };
        reader.details_behind = before;
        Ok(reader)
    }

    /// Reads as [`Self::resume`] does; none if this day is over.
    pub fn resume_in(
        &self,
        day: u64,
        session: u16,
        from: SessionPosition,
    ) -> Result<Option<SessionReader>, LogOpenError> {
        let marked = self.lock();
        if self.day() == day { marked.read(session, from).map(Some) } else { Ok(None) }
    }

    /// Returns the checksum of a report of this day; none if there is no such report.
    pub fn checksum(&self, session: u16, number: u64) -> Option<u32> {
        self.checksum_at(session, number, SessionPosition::without_details(number))
    }

    /// Returns the checksum of a detail of this day; none if there is no such detail.
    pub fn detail_checksum(&self, session: u16, number: u64) -> Option<u32> {
        self.checksum_at(session, number, SessionPosition { report: u64::MAX, detail: number })
    }

    /// Returns the checksum of the first message from a position on, if it has this number.
    fn checksum_at(&self, session: u16, number: u64, from: SessionPosition) -> Option<u32> {
        let mut reading = self.resume(session, from).ok()?;
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
        self.first_position(session).report
    }

    /// Returns the position at which a session's day begins.
    pub fn first_position(&self, session: u16) -> SessionPosition {
        self.lock().first(session)
    }

    /// Returns the number of a session's first report that can be read, in the archived days that are kept or in the
    /// current one.
    pub fn oldest(&self, session: u16) -> u64 {
        self.oldest_position(session).report
    }

    /// Returns the first position of a session that can be read, in the archived days that are kept or in the current
    /// one.
    pub fn oldest_position(&self, session: u16) -> SessionPosition {
        let marked = self.lock();
        marked.ended.first().map_or_else(|| marked.first(session), |day| day.first.next.of(session))
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
    fn read(&self, session: u16, from: SessionPosition) -> Result<SessionReader, LogOpenError> {
        let ends = self.ended.iter().skip(1).map(|day| day.first.next.of(session)).chain([self.first(session)]);
        for (day, end) in self.ended.iter().zip(ends) {
            // The reports of a day whose files are gone are a gap.
            if from.is_before(&end)
                && let Ok(log) = open_log(&day.log, ReaderStart::Oldest)
            {
                let first = from.max(day.first.next.of(session));
                return Ok(SessionReader { log, session, first, details_behind: None, end: Some(end) });
            }
        }
        let behind = self.marks.partition_point(|mark| !from.is_before(&mark.next.of(session)));
        let first = from.max(self.first(session));
        let start = self
            .marks
            .get(behind.saturating_sub(1))
            .map_or(ReaderStart::Oldest, |mark| ReaderStart::Sequence(mark.sequence));
        let log = open_log(self.log()?, start)?;
        Ok(SessionReader { log, session, first, details_behind: None, end: None })
    }

    /// Drops the oldest archived days beyond the limit.
    fn drop_old_days(&mut self) {
        let more = if self.keep == 0 { 0 } else { self.ended.len().saturating_sub(self.keep) };
        self.ended.drain(..more);
    }

    fn first(&self, session: u16) -> SessionPosition {
        self.marks.first().map_or(SessionPosition { report: 0, detail: 0 }, |mark| mark.next.of(session))
    }

    fn log(&self) -> Result<&LogPath, LogOpenError> {
        self.log.as_ref().ok_or_else(|| LogOpenError::Config("no history was opened".to_owned()))
    }
}

/// Reader of the reports to one session, and of their details.
pub struct SessionReader {
    log: Reader,
    session: u16,
    first: SessionPosition,
    /// Report whose details are the first to be read; none once it was read.
    details_behind: Option<u64>,
    end: Option<SessionPosition>,
}

impl SessionReader {
    /// Returns whether the reader began in an archived day.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the session's position after the archived day that is read; none for the current day.
    pub fn end(&self) -> Option<SessionPosition> {
        self.end
    }

    /// Reads at most this many frames and passes the session's reports and details to `take`, until `take` returns
    /// false. Returns false at the end of the log.
    pub fn read_frames(
        &mut self,
        frames: usize,
        mut take: impl FnMut(&SessionReport<'_>) -> bool,
    ) -> Result<bool, LogReadError> {
        for _ in 0..frames {
            let Next::Message(message) = self.log.next()? else { return Ok(false) };
            if let Some(report) = parse_report(&message)
                && report.session == self.session
                && Self::is_wanted(&mut self.details_behind, self.first, &report)
                && !take(&report)
            {
                return Ok(true);
            }
        }
        Ok(true)
    }

    #[inline]
    fn is_wanted(details_behind: &mut Option<u64>, first: SessionPosition, report: &SessionReport<'_>) -> bool {
        match *details_behind {
            Some(_) if report.is_detail() => return false,
            Some(before) if report.number >= before => *details_behind = None,
            _ => {}
        }
        !first.is_behind(report.kind, report.number)
    }
}

impl SessionReport<'_> {
    /// Returns whether the message is the detail of a report.
    #[inline]
    pub fn is_detail(&self) -> bool {
        self.kind == Kind::ReportDetail.code()
    }
}

/// Parses a report of the history, or a detail; none for any other frame.
#[inline]
pub fn parse_report<'a>(message: &LogMessage<'a>) -> Option<SessionReport<'a>> {
    if message.kind >= DETAIL_BASE {
        return None;
    }
    let (prefix, rest) = ReportPrefix::read_from_prefix(message.payload).ok()?;
    Some(SessionReport {
        session: prefix.session,
        number: prefix.number,
        account: prefix.account,
        stamp: message.stamp,
        kind: message.kind,
        message: rest,
    })
}

/// Result of reading a whole history.
#[derive(Default)]
struct HistoryScan {
    base: bool,
    next: NextNumbers,
    marks: Vec<HistoryMark>,
    frames_since_mark: u64,
}

impl HistoryScan {
    fn note_frame(&mut self, message: &LogMessage<'_>) {
        let numbers =
            || message.payload.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap_or_default())).collect();
        if message.kind == BASE {
            self.base = true;
            self.next.reports = numbers();
            self.marks.push(HistoryMark { sequence: message.sequence, next: self.next.clone() });
            return;
        }
        if message.kind == DETAIL_BASE {
            self.next.details = numbers();
            return;
        }
        let Some(report) = parse_report(message) else { return };
        let next = self.next.next_mut(report.kind, report.session);
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
        // The base, and before it that of the details, if there is one.
        for _ in 0..2 {
            if let Next::Message(message) = reader.next().ok()? {
                scan.note_frame(&message);
            }
        }
        let first = scan.marks.into_iter().next()?;
        Some((reader.owner().journal, Self { log, first }))
    }

    /// Returns the number after the day's last frame.
    fn end(&self) -> u64 {
        open_log(&self.log, ReaderStart::Now).map_or(0, |log| log.sequence())
    }
}
