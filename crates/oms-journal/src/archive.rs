//! The logs of a journal, or of a history, that have ended: `archive/FIRST` in its folder, by the number of their first
//! record.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tickpath_log::{Next, OpenError, Place, Reader, Registration, Start as From};
use tickpath_orders::{RecordKind, Start};
use zerocopy::FromBytes;

use crate::JournalError;

/// The folder of what has ended, by the number of the record that it began with.
pub(crate) fn folder(place: &Place, first: u64) -> PathBuf {
    place.dir().join("archive").join(format!("{first:020}"))
}

/// Logs in an archive by the numbers of their first records, rising; also folders that have no log, as a kill leaves them.
pub(crate) fn archived_days(place: &Place) -> Vec<u64> {
    let entries = fs::read_dir(place.dir().join("archive")).into_iter().flatten().flatten();
    let mut days: Vec<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok()).collect();
    days.sort_unstable();
    days
}

/// Folder that takes a log which has ended: by the number of its first record, or beside a log that is there.
pub(crate) fn archived(place: &Place, first: u64) -> PathBuf {
    free(folder(place, first))
}

/// Whether a log was moved to its folder, which is made before.
pub(crate) fn is_put_away(place: &Place, first: u64) -> bool {
    Place::folder(folder(place, first)).exists()
}

/// The folder, or one beside it where that one has a log.
pub(crate) fn free(folder: PathBuf) -> PathBuf {
    let copies = (1_u64..).map(|copy| folder.with_extension(copy.to_string()));
    std::iter::once(folder.clone()).chain(copies).find(|folder| !Place::folder(folder).exists()).unwrap_or(folder)
}

/// Makes a folder for a log that has ended. Other users may not write to it, whatever this process's umask allows them; one
/// that is there and that they can write to is refused before anything is moved to it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    tickpath_log::own_folder(folder)
}

/// Makes sure that a log can be moved there, before it says that it was.
pub(crate) fn prepare(journal: &Place, first: u64) -> io::Result<()> {
    let folder = folder(journal, first);
    make_folder(&folder)?;
    if folder.join("data").exists() {
        let why = format!("{} is there already, and is not written over", folder.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    if fs::metadata(&folder)?.dev() != fs::metadata(journal.dir())?.dev() {
        let why = format!("{} is on another disk, where nothing can be moved to", folder.display());
        return Err(io::Error::new(io::ErrorKind::CrossesDevices, why));
    }
    // Whoever may make a folder may not always make a file in it.
    let probe = folder.join("probe");
    fs::write(&probe, [])?;
    fs::remove_file(probe)
}

/// The logs of a journal that are there, in the order of their records.
pub fn logs(journal: &Place) -> Result<Vec<Place>, JournalError> {
    let archive = Archive::of(journal)?;
    let ended = archive.firsts.iter().map(|&first| log(journal, first));
    Ok(ended.chain(Some(journal.clone()).filter(Place::exists)).collect())
}

/// The journal that an archived log is of, and the number of the first record behind that log; none if the place holds no
/// archived log.
pub(crate) fn journal_of(place: &Place) -> Result<Option<(Place, u64)>, JournalError> {
    let (name, archive) = (place.dir().file_name(), place.dir().parent());
    // As `folder` writes it.
    let first = name.and_then(|name| name.to_str().filter(|name| name.len() == 20)?.parse::<u64>().ok());
    let archive = archive.filter(|folder| folder.file_name().is_some_and(|name| name == "archive"));
    let (Some(first), Some(journal)) = (first, archive.and_then(|archive| archive.parent())) else { return Ok(None) };
    match Reader::open(place, From::Now, Registration::Unregistered) {
        Ok(log) if log.first_sequence() == first => Ok(Some((Place::folder(journal), log.sequence()))),
        Ok(_) | Err(OpenError::NotFound(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What of a journal has ended.
pub(crate) struct Archive {
    journal: Place,
    /// The first number of each log, rising.
    firsts: Vec<u64>,
}

/// The newest log in an archive.
pub(crate) struct Ended {
    /// Id of the journal that it belongs to.
    pub journal: u64,
    /// Sequence number of the record behind its last one.
    pub next: u64,
}

impl Archive {
    /// Looks into the folder; one that is not there holds nothing.
    pub fn of(journal: &Place) -> Result<Self, JournalError> {
        let folder = journal.dir().join("archive");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries.flatten().collect(),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
            Err(reason) => return Err(JournalError::Archive { folder, reason }),
        };
        let named = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // Killed before its data moved, a folder holds no log.
        let mut firsts: Vec<u64> = named.filter(|&first| log(journal, first).exists()).collect();
        firsts.sort_unstable();
        Ok(Self { journal: journal.clone(), firsts })
    }

    /// The log that holds the record with this number, if it has ended; the journal's own otherwise.
    pub fn log_of(&self, sequence: u64) -> Place {
        match self.firsts.iter().rev().find(|&&first| first <= sequence) {
            Some(&first) if !self.has_begun_by(sequence) => log(&self.journal, first),
            _ => self.journal.clone(),
        }
    }

    /// Where the journal begins, as far as it is there.
    pub fn oldest(&self) -> Place {
        self.firsts.first().map_or_else(|| self.journal.clone(), |&first| log(&self.journal, first))
    }

    /// The first number of the last log that began before this one.
    pub fn last_before(&self, sequence: u64) -> Option<u64> {
        self.firsts.iter().copied().rfind(|&first| first < sequence)
    }

    /// Returns the end of the newest archived log; none where the archive is empty.
    pub fn last_ended(&self) -> Result<Option<Ended>, JournalError> {
        let Some(&first) = self.firsts.last() else { return Ok(None) };
        let place = log(&self.journal, first);
        let journal = read_start(&place)?.ok_or(JournalError::NoJournal)?.journal;
        let end = Reader::open(&place, From::Now, Registration::Unregistered)?;
        Ok(Some(Ended { journal, next: end.sequence() }))
    }

    /// Whether the journal's own log reaches back to this number.
    fn has_begun_by(&self, sequence: u64) -> bool {
        let own = Reader::open(&self.journal, From::Oldest, Registration::Unregistered);
        own.is_ok_and(|own| own.first_sequence() <= sequence)
    }
}

fn log(journal: &Place, first: u64) -> Place {
    Place::folder(folder(journal, first))
}

/// What begins a log.
pub(crate) struct Beginning {
    pub core_version: u32,
    /// The journal's id; zero if that version had none.
    pub journal: u64,
}

/// The record that begins a log; none if it does not begin with one.
pub(crate) fn read_start(place: &Place) -> Result<Option<Beginning>, JournalError> {
    let mut log = Reader::open(place, From::Oldest, Registration::Unregistered)?;
    Ok(match log.next()? {
        Next::Message(record) if record.kind == RecordKind::Start.code() => Beginning::read(record.payload),
        _ => None,
    })
}

impl Beginning {
    /// Every version begins with its own number.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let core_version = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
        let journal = Start::read_from_bytes(payload).map_or(0, |start| start.journal);
        Some(Self { core_version, journal })
    }
}
