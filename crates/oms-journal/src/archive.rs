//! Archive of ended logs, of a journal or of a history: `archive/FIRST` in its folder, named by the sequence number of
//! the first record.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_oms_core::{JournalStart, RecordKind};
use zerocopy::FromBytes;

use crate::JournalError;

/// Returns the archive folder of the log that begins with this record.
pub(crate) fn archive_folder(log: &LogPath, first: u64) -> PathBuf {
    log.dir().join("archive").join(format!("{first:020}"))
}

/// Returns the first record numbers of the archived logs in ascending order, including folders that a kill has left
/// without a log.
pub(crate) fn archived_days(log: &LogPath) -> io::Result<Vec<u64>> {
    let entries = fs::read_dir(log.dir().join("archive"))?.flatten();
    let mut days: Vec<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    days.sort_unstable();
    Ok(days)
}

/// Returns the archived log that begins with this record.
pub(crate) fn archived_log(log: &LogPath, first: u64) -> LogPath {
    LogPath::folder(archive_folder(log, first))
}

/// Returns whether a log was moved to its archive folder. The folder itself is made earlier.
pub(crate) fn is_archived(log: &LogPath, first: u64) -> bool {
    archived_log(log, first).exists()
}

/// Opens a reader that the log's writer does not know of.
pub(crate) fn open_log(log: &LogPath, start: ReaderStart) -> Result<Reader, LogOpenError> {
    Reader::open(log, start, Registration::Unregistered)
}

/// Returns the folder, or the first sibling without a log where the folder holds a log already.
pub(crate) fn free_sibling(folder: PathBuf) -> PathBuf {
    let copies = (1_u64..).map(|copy| folder.with_extension(copy.to_string()));
    std::iter::once(folder.clone()).chain(copies).find(|folder| !LogPath::folder(folder).exists()).unwrap_or(folder)
}

/// Makes a folder for a log that has ended. Other users may not write to it, whatever this process's umask allows; an
/// existing folder that other users can write to is refused before anything is moved to it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    tickpath_log::check_own_folder(folder)
}

/// Checks that a log can be moved into the archive, before the log records that it was rolled.
pub(crate) fn check_archivable(journal: &LogPath, first: u64) -> io::Result<()> {
    let folder = archive_folder(journal, first);
    make_folder(&folder)?;
    if folder.join("data").exists() {
        let why = format!("{} exists already, and is not overwritten", folder.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    if fs::metadata(&folder)?.dev() != fs::metadata(journal.dir())?.dev() {
        let why = format!("{} is on another disk, and a log can only be moved within one", folder.display());
        return Err(io::Error::new(io::ErrorKind::CrossesDevices, why));
    }
    // The right to make a folder does not always include the right to make a file in it.
    let probe = folder.join("probe");
    fs::write(&probe, [])?;
    fs::remove_file(probe)
}

/// Returns the existing logs of a journal, in the order of their records.
pub fn logs(journal: &LogPath) -> Result<Vec<LogPath>, JournalError> {
    let archive = Archive::of(journal)?;
    let ended = archive.firsts.iter().map(|&first| archived_log(journal, first));
    Ok(ended.chain(Some(journal.clone()).filter(LogPath::exists)).collect())
}

/// Returns the journal that an archived log belongs to, and the number of the first record after that log; none if the
/// path holds no archived log.
pub(crate) fn journal_of(log: &LogPath) -> Result<Option<(LogPath, u64)>, JournalError> {
    let (name, archive) = (log.dir().file_name(), log.dir().parent());
    // In the form that `archive_folder` writes.
    let first = name.and_then(|name| name.to_str().filter(|name| name.len() == 20)?.parse::<u64>().ok());
    let archive = archive.filter(|folder| folder.file_name().is_some_and(|name| name == "archive"));
    let (Some(first), Some(journal)) = (first, archive.and_then(|archive| archive.parent())) else { return Ok(None) };
    match open_log(log, ReaderStart::Now) {
        Ok(log) if log.first_sequence() == first => Ok(Some((LogPath::folder(journal), log.sequence()))),
        Ok(_) | Err(LogOpenError::NotFound(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// The ended logs of a journal.
pub(crate) struct Archive {
    journal: LogPath,
    /// The first number of each log, rising.
    firsts: Vec<u64>,
}

/// The newest log in an archive.
pub(crate) struct ArchivedEnd {
    /// Id of the journal that it belongs to.
    pub journal: u64,
    /// Sequence number of the record behind its last one.
    pub next: u64,
}

impl Archive {
    /// Reads the archive folder; a missing folder counts as empty.
    pub fn of(journal: &LogPath) -> Result<Self, JournalError> {
        let mut firsts = match archived_days(journal) {
            Ok(days) => days,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
            Err(reason) => return Err(JournalError::Archive { folder: journal.dir().join("archive"), reason }),
        };
        // Killed before its data moved, a folder holds no log.
        firsts.retain(|&first| is_archived(journal, first));
        Ok(Self { journal: journal.clone(), firsts })
    }

    /// Returns the archived log that holds the record with this number, or the journal's own log.
    pub fn log_of(&self, sequence: u64) -> LogPath {
        match self.firsts.iter().rev().find(|&&first| first <= sequence) {
            Some(&first) if !self.journal_reaches(sequence) => archived_log(&self.journal, first),
            _ => self.journal.clone(),
        }
    }

    /// Returns the oldest log of the journal that still exists.
    pub fn oldest(&self) -> LogPath {
        self.firsts.first().map_or_else(|| self.journal.clone(), |&first| archived_log(&self.journal, first))
    }

    /// Returns the first record number of the last log that began before this record.
    pub fn last_before(&self, sequence: u64) -> Option<u64> {
        self.firsts.iter().copied().rfind(|&first| first < sequence)
    }

    /// Returns the end of the newest archived log; none where the archive is empty.
    pub fn newest_end(&self) -> Result<Option<ArchivedEnd>, JournalError> {
        let Some(&first) = self.firsts.last() else { return Ok(None) };
        let newest = archived_log(&self.journal, first);
        let journal = read_start(&newest)?.ok_or(JournalError::NoJournal)?.journal;
        let end = open_log(&newest, ReaderStart::Now)?;
        Ok(Some(ArchivedEnd { journal, next: end.sequence() }))
    }

    /// Returns whether the journal's own log reaches back to this number.
    fn journal_reaches(&self, sequence: u64) -> bool {
        let own = open_log(&self.journal, ReaderStart::Oldest);
        own.is_ok_and(|own| own.first_sequence() <= sequence)
    }
}

/// First record of a log.
pub(crate) struct LogStart {
    pub core_version: u32,
    /// The journal's id; zero if that version had none.
    pub journal: u64,
}

/// Reads the first record of a log; none if it is no start record.
pub(crate) fn read_start(log: &LogPath) -> Result<Option<LogStart>, JournalError> {
    let mut log = open_log(log, ReaderStart::Oldest)?;
    Ok(match log.next()? {
        Next::Message(record) if record.kind == RecordKind::JournalStart.code() => LogStart::read(record.payload),
        _ => None,
    })
}

impl LogStart {
    /// Reads a start record of any version: the core's version comes first in all of them.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let core_version = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
        let journal = JournalStart::read_from_bytes(payload).map_or(0, |start| start.journal);
        Some(Self { core_version, journal })
    }
}
