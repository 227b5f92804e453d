//! The history as a start finds it: read, compared with the journal, and repaired.

use std::fs;

use tickpath_clock::Calibration;
use tickpath_log::{Config, LogOpenError, LogOwner, LogPath, Next, ReaderStart, Writer};

use super::{
    EndedDay, History, HistoryIndex, HistoryMark, HistoryScan, IndexedDays, ReportPrefix, SessionReport, parse_report,
};
use crate::JournalError;
use crate::archive::{Archive, archive_folder, free_sibling, is_archived, open_log, read_start};
use crate::numbers::{NextNumbers, SessionPosition};

/// The history as a start finds it, before it is opened for writing.
pub struct ExistingHistory {
    config: Config,
    owner: LogOwner,
    /// Numbers after the last report and the last detail of each session in the log; none without a history of this
    /// day.
    next_numbers: Option<NextNumbers>,
    marks: Vec<HistoryMark>,
    /// Number of the first frame: a history that is rebuilt keeps it.
    first: u64,
    /// Number after the last readable frame.
    end: u64,
    /// Reason why there is no usable history.
    lost: Option<String>,
}

impl ExistingHistory {
    /// Reads the history of the journal in this place. Returns also the number of the first record of the journal's own
    /// log.
    pub fn read(config: &Config, journal: &LogPath) -> Result<(Self, u64), JournalError> {
        let own = open_log(journal, ReaderStart::Oldest)?;
        let first = own.first_sequence();
        let ended = Archive::of(journal)?.last_before(first);
        let id = read_start(journal)?.map_or(0, |start| start.journal);
        Ok((Self::read_log(config, id, first, ended)?, first))
    }

    /// Reads the history of the journal with this id, whose log begins with the record `first`; the last archived log
    /// begins with `ended`. The history found is that of this day, or of the last day if a kill came before it was
    /// archived.
    fn read_log(config: &Config, journal: u64, first: u64, ended: Option<u64>) -> Result<Self, JournalError> {
        let mut owner = LogOwner { journal, incarnation: 0, base: first };
        let (mut next_numbers, mut marks, mut begin, mut end, mut lost) = (None, Vec::new(), 0, 0, None);
        let is_left =
            |day: u64| day < first && ended.is_none_or(|ended| ended <= day) && !is_archived(&config.path, day);
        match open_log(&config.path, ReaderStart::Oldest) {
            Ok(mut log) if log.owner() == owner || log.owner().journal == journal && is_left(log.owner().base) => {
                (owner, begin) = (log.owner(), log.first_sequence());
                let mut scan = HistoryScan::default();
                let whole = loop {
                    match log.next() {
                        Ok(Next::Message(message)) => scan.note_frame(&message),
                        Ok(_) => break log.check_end().is_ok(),
                        Err(_) => break false,
                    }
                };
                end = log.sequence();
                // A history that a power loss has torn is rebuilt from the journal.
                if whole && scan.base {
                    (next_numbers, marks) = (Some(scan.next), scan.marks);
                } else {
                    lost = Some("it is torn or has no base".to_owned());
                }
            }
            // The journal holds all of it, so an unreadable history is set aside and never prevents a start.
            Ok(_) => lost = Some("it belongs to another day or to another journal".to_owned()),
            Err(e @ (LogOpenError::NotFound(_) | LogOpenError::Damaged { .. } | LogOpenError::Version { .. })) => {
                lost = Some(e.to_string());
                // The unreadable log may be that of the last day, if that day was not archived.
                owner.base = ended.filter(|&day| config.path.dir().exists() && is_left(day)).unwrap_or(first);
            }
            Err(e) => return Err(e.into()),
        }
        Ok(Self { config: config.clone(), owner, next_numbers, marks, first: begin, end, lost })
    }

    /// Returns the number of the first record of the journal's log of that day.
    pub fn day(&self) -> u64 {
        self.owner.base
    }

    /// Gives up this history, because the records of its missing reports are gone. [`Self::open`] then sets it aside
    /// and begins with this day, whose log begins with this record.
    pub fn discard(&mut self, first: u64) {
        if self.owner.base != first {
            self.first = self.end;
        }
        (self.owner.base, self.next_numbers) = (first, None);
        self.lost = Some("the journal records of its missing reports are gone".to_owned());
    }

    /// Returns why reports that were sent are not in the history, if any were; the start writes them again.
    pub fn loss_reason(&self, sent: &NextNumbers) -> Option<&str> {
        let has_reports = sent.reports.iter().any(|&sent| sent > 0);
        self.lost.as_deref().filter(|_| has_reports || self.config.path.exists())
    }

    /// Returns the first position of a session that is missing; none without a history of this day.
    pub fn next(&self, session: u16) -> Option<SessionPosition> {
        Some(self.next_numbers.as_ref()?.of(session))
    }

    /// Returns whether all reports and details below these numbers are in the history.
    pub fn has_all(&self, sent: &NextNumbers) -> bool {
        self.next_numbers.as_ref().unwrap_or(&NextNumbers::default()).cover(sent)
    }

    /// Opens the history for writing. `base` has each session's numbers at the start of the day, as far as the journal
    /// knows, and `sent` the present ones: reports unknown to the journal are removed.
    pub fn open(
        self,
        base: &NextNumbers,
        sent: &NextNumbers,
        calibration: &Calibration,
    ) -> Result<History, JournalError> {
        let place = &self.config.path;
        // Memory is reserved at the end: a log that is only being opened needs none.
        let ended = EndedDay::find(place, &self.owner, 1);
        let first_sequence = self.first.max(ended.last().map_or(0, EndedDay::end));
        let config = Config { owner: self.owner, first_sequence, reserve_bytes: 0, ..self.config.clone() };
        let marks = HistoryIndex::default();
        let mut kept = None;
        match &self.next_numbers {
            Some(has) if !sent.cover(has) => kept = Some(keep_journaled(place, sent)?),
            Some(_) => {}
            None if place.exists() => set_aside(place)?,
            None => {}
        }
        let log = Writer::open(&config, calibration)?;
        let next = self.next_numbers.clone().unwrap_or_default();
        let mut history =
            History { log, config, calibration: *calibration, next, frames_since_mark: 0, index: marks.clone() };
        *marks.lock() = IndexedDays { log: Some(place.clone()), owner: self.owner, marks: Vec::new(), ended, keep: 1 };
        if history.log.is_new() {
            let first = kept.as_ref().map_or(base, |(base, _)| base);
            history.next = first.clone();
            history.write_base(&mut marks.lock())?;
            for (prefix, stamp, kind, message) in kept.iter().flat_map(|(_, kept)| kept) {
                history.write(*prefix, *stamp, *kind, message)?;
            }
        } else {
            marks.lock().marks = self.marks;
        }
        history.log.reserve(self.config.reserve_bytes).map_err(JournalError::Disk)?;
        Ok(history)
    }
}

type KeptReport = (ReportPrefix, u64, u8, Vec<u8>);

/// Returns the base of a history and its reports that the journal knows; sets the history aside.
fn keep_journaled(place: &LogPath, sent: &NextNumbers) -> Result<(NextNumbers, Vec<KeptReport>), JournalError> {
    let mut log = open_log(place, ReaderStart::Oldest)?;
    let (mut scan, mut kept) = (HistoryScan::default(), Vec::new());
    let mut base = NextNumbers::default();
    while let Next::Message(message) = log.next()? {
        scan.note_frame(&message);
        match parse_report(&message) {
            Some(report) if sent.of(report.session).is_behind(report.kind, report.number) => {
                let SessionReport { number, session, account, stamp, kind, message } = report;
                kept.push((ReportPrefix { number, session, reserved: 0, account }, stamp, kind, message.to_vec()));
            }
            Some(_) => {}
            None => base.clone_from(&scan.next),
        }
    }
    drop(log);
    set_aside(place)?;
    Ok((base, kept))
}

/// Sets a history aside that belongs to another day or contradicts the journal.
fn set_aside(place: &LogPath) -> Result<(), JournalError> {
    let owner = tickpath_log::owner(place).unwrap_or_default();
    // A false history is no archived day, so its folder has another name.
    let folder = free_sibling(archive_folder(place, owner.base).with_extension("aside"));
    let moved = fs::create_dir_all(&folder).and_then(|()| {
        for entry in fs::read_dir(place.dir())?.flatten() {
            if entry.file_type()?.is_file() {
                fs::rename(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        Ok(())
    });
    moved.map_err(JournalError::NotArchived)
}
