//! Position of a carried topic, saved in a file, so that a restarted carrier resumes there.
//!
//! ```text
//!   source     … 7 8 9 │10 11 12 13 …        saved position: after 9, with 40 messages in the log
//!   log        … 38 39 │40 41                killed: 10 and 11 were published after that, and come again
//!                       └ tail: 10 and 11, recognised by their content, are not published twice
//! ```
//! Messages on a broker keep their origin, by which each subscriber drops duplicates. A log has no place for origins:
//! messages published there after the saved position are compared by content.
//!
//! ```text
//!   NAME          each 50 ms, by the carrier: gets its name when it is written
//!   .NAME.sure    each second, by a thread: is on the disk before it gets its name
//! ```
//! A killed carrier loses nothing: NAME is the last position written. A loss of power may leave NAME empty or with
//! zeros, which is no position. Then `.NAME.sure` is used, which NAME was a second before, or as long before as the
//! disk needed. Messages carried since then come again and are recognised as after a kill; those of other programs,
//! which a broker does not recognise, may be there twice. A log that lost its own end with the power reports that as a
//! loss.

use std::fmt;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tickpath_bus::url::redact_logins;
use tickpath_bus::{Connection, Gap, ResumeToken, StartPosition};
use tickpath_clock::Clock;
use tickpath_log::{Reader, check_own_folder, open_own_file};

use crate::address::is_same_topic;
use crate::published_tail::PublishedTail;
use crate::saver::{FileSaver, remove_if_exists, sibling_path, write, write_durably};
use crate::{MAX_EVENTS_PER_POLL, RelayError};

/// Interval at which the position is written while messages are carried, in nanoseconds.
const WRITE_NS: i64 = 50_000_000;

/// Interval at which the position is saved against a loss of power, in nanoseconds.
const SAVE_NS: i64 = 1_000_000_000;

/// Suffix of the file that survives a loss of power, after the topic's name.
const DURABLE_SUFFIX: &str = "sure";

/// Token field of a position without a token.
const NO_TOKEN: &str = "-";

/// Saved position of one topic, in a file that no other carrier uses meanwhile.
pub(crate) struct SavedPosition {
    file: PathBuf,
    saver: FileSaver,
    /// Lock file, held until after the saver is dropped.
    _lock: File,
    /// Source and target as the URLs name them, in two lines. A restarted server has another identity, and its name may
    /// have another address, or none for a while.
    endpoints: String,
    position: Option<CarriedPosition>,
    /// Position as it was written last.
    written: Option<CarriedPosition>,
    /// Ticks of the last write.
    written_at: u64,
    /// Position that the saver was given last.
    saved: Option<CarriedPosition>,
    /// Ticks at which the saver was given that position.
    saved_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CarriedPosition {
    /// None while the source is a log that does not exist yet: all its messages will be new.
    pub token: Option<ResumeToken>,
    /// Next sequence number and identity of the target log, if the target is one.
    pub log: Option<(u64, u64)>,
}

#[allow(clippy::large_enum_variant, reason = "one is made for each start, and none is kept")]
enum PositionFile {
    Missing,
    /// A file without a position.
    Invalid,
    Valid(CarriedPosition),
    /// A position between another source and target, in words.
    OtherEndpoints(String),
}

impl SavedPosition {
    /// Opens the saved position of a topic, if a folder for it is given. Fails if the bus keeps no history.
    pub fn open_if_requested(
        folder: Option<&Path>,
        source: &dyn Connection,
        (url, topic): (&str, &str),
        name: &str,
        ends: [String; 2],
    ) -> Result<Option<Self>, RelayError> {
        let Some(folder) = folder else { return Ok(None) };
        if !source.capabilities().history {
            let url = redact_logins(url).to_owned();
            return Err(RelayError::NoHistory { topic: topic.to_owned(), url });
        }
        Self::open(folder, name, ends).map(Some)
    }

    /// Reads the file of this name, if it exists, and creates its folder if need be. The file must name the same source
    /// and target, and its position is saved against a loss of power before anything is carried.
    fn open(folder: &Path, name: &str, ends: [String; 2]) -> Result<Self, RelayError> {
        let file = folder.join(name);
        let failed = |reason| RelayError::SavePosition(file.clone(), reason);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // Another user with write access could make the topic start anywhere.
        check_own_folder(folder).map_err(failed)?;
        // No topic name begins with a point.
        let lock = open_own_file(&folder.join(format!(".{name}.lock"))).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RelayError::PositionInUse(file)),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }
        let endpoints = format!("{}\n{}\n", ends[0], ends[1]);
        let durable = sibling_path(&file, DURABLE_SUFFIX);
        let position = match read_position(&file, &durable, &endpoints).map_err(failed)? {
            PositionFile::Missing => None,
            PositionFile::Valid(position) => Some(position),
            PositionFile::Invalid => return Err(RelayError::InvalidPosition(file)),
            PositionFile::OtherEndpoints(ends) => return Err(RelayError::OtherPosition(file, ends)),
        };
        match position {
            Some(position) => write_durably(&durable, &format!("{position}{endpoints}")).map_err(failed)?,
            // The user has removed the file to start anew.
            None => remove_if_exists(&durable).map_err(failed)?,
        }
        let saver = FileSaver::start(durable).map_err(failed)?;
        // Nothing counts as written, because the file may hold no position.
        let (written, saved) = (None, position);
        Ok(Self { file, saver, _lock: lock, endpoints, position, written, written_at: 0, saved, saved_at: 0 })
    }

    /// Returns whether a position is known.
    pub fn is_known(&self) -> bool {
        self.position.is_some()
    }

    /// Returns the max number of events to take before the position is read again: one until there is a position,
    /// because without it they cannot be recognised later.
    pub fn max_events(&self) -> usize {
        if self.is_known() { MAX_EVENTS_PER_POLL } else { 1 }
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the start position: after the saved one, or `otherwise` if there is none.
    pub fn start_position(&self, otherwise: StartPosition) -> StartPosition {
        self.position.map_or(otherwise, |saved| saved.token.map_or(StartPosition::Sequence(0), StartPosition::After))
    }

    /// Returns the messages of the log after the saved position, if it is the same log.
    pub fn tail(&self, log: &Reader, end: u64) -> Result<PublishedTail, RelayError> {
        match self.position.and_then(|position| position.log) {
            Some((next, identity)) if next < end && identity == log.identity() => {
                PublishedTail::open(log.path(), next, end)
            }
            _ => Ok(PublishedTail::default()),
        }
    }

    /// Returns the loss of a log that is shorter than at the saved position, or another one: the host has lost its end,
    /// or it was removed.
    pub fn log_loss(&self, log: &Reader, end: u64) -> Option<Gap> {
        let (next, identity) = self.position.and_then(|position| position.log)?;
        let held = if identity == log.identity() { end.min(next) } else { 0 };
        (next > held).then(|| Gap::Missed(next - held))
    }

    /// Saves the start position, if none is saved, before anything is carried: a carrier killed with the first messages
    /// starts there again and recognises them. A source that has no token yet is saved after its first message.
    pub fn save_start(
        &mut self,
        token: Option<ResumeToken>,
        is_from_log: bool,
        log: Option<(u64, u64)>,
    ) -> Result<(), RelayError> {
        if self.is_known() || token.is_none() && !is_from_log {
            return Ok(());
        }
        self.position = Some(CarriedPosition { token, log });
        self.write_both_files()
    }

    /// Saves the position in this log, whose loss was published, before anything is carried.
    pub fn save_after_loss(&mut self, log: (u64, u64)) -> Result<(), RelayError> {
        self.position = self.position.map(|position| CarriedPosition { log: Some(log), ..position });
        self.write_both_files()
    }

    /// Saves the position if it is due: the first one, after the interval, or if `now` is set. `position`, which takes
    /// a token, is called only then.
    pub fn save_if_due(
        &mut self,
        clock: &impl Clock,
        now: bool,
        position: impl FnOnce() -> Option<CarriedPosition>,
    ) -> Result<(), RelayError> {
        let ticks = clock.ticks();
        let is_first = !self.is_known();
        if is_first || now || clock.ns_between(self.written_at, ticks) > WRITE_NS {
            self.position = position().or(self.position);
            self.written_at = ticks;
            if is_first {
                self.saved_at = ticks;
                return self.write_both_files();
            }
            self.write()?;
            self.save(clock.ns_between(self.saved_at, ticks), ticks)?;
        }
        Ok(())
    }

    /// Writes the final position to the disk; if it is unknown, the last known one.
    pub fn save_final(&mut self, position: Option<CarriedPosition>) -> Result<(), RelayError> {
        self.position = position.or(self.position);
        let Some(position) = self.position else { return Ok(()) };
        self.save_error(write_durably(&self.file, &self.text(position)))
    }

    /// Writes the position to the disk in both files, first in the one without which the topic would start anew. The
    /// saver, which writes the other file, has been given no position yet.
    fn write_both_files(&mut self) -> Result<(), RelayError> {
        let Some(position) = self.position else { return Ok(()) };
        for file in [&self.file, &sibling_path(&self.file, DURABLE_SUFFIX)] {
            self.save_error(write_durably(file, &self.text(position)))?;
        }
        (self.written, self.saved) = (Some(position), Some(position));
        Ok(())
    }

    fn write(&mut self) -> Result<(), RelayError> {
        let Some(position) = self.position.filter(|_| self.position != self.written) else { return Ok(()) };
        self.save_error(write(&self.file, &self.text(position)))?;
        self.written = Some(position);
        Ok(())
    }

    /// Gives the position to the saver, if it has changed and the interval is over. Tried again later while the disk is
    /// busy with the previous one.
    fn save(&mut self, since_ns: i64, ticks: u64) -> Result<(), RelayError> {
        let is_due = self.position != self.saved && since_ns > SAVE_NS;
        let Some(position) = self.position.filter(|_| is_due) else { return Ok(()) };
        if self.save_error(self.saver.save(self.text(position)))? {
            (self.saved, self.saved_at) = (Some(position), ticks);
        }
        Ok(())
    }

    fn text(&self, position: CarriedPosition) -> String {
        format!("{position}{}", self.endpoints)
    }

    fn save_error<T>(&self, written: io::Result<T>) -> Result<T, RelayError> {
        written.map_err(|reason| RelayError::SavePosition(self.file.clone(), reason))
    }
}

/// Reads the position from the file, or, if that holds none, from the one that survives a loss of power.
fn read_position(file: &Path, durable: &Path, ends: &str) -> io::Result<PositionFile> {
    let found = read_position_file(file, ends)?;
    if !matches!(found, PositionFile::Invalid) {
        return Ok(found);
    }
    let earlier = read_position_file(durable, ends)?;
    Ok(if matches!(earlier, PositionFile::Missing) { found } else { earlier })
}

fn read_position_file(file: &Path, ends: &str) -> io::Result<PositionFile> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(PositionFile::Missing),
        Err(reason) => return Err(reason),
    };
    Ok(match std::str::from_utf8(&bytes).ok().and_then(|text| CarriedPosition::parse(text, ends)) {
        None => PositionFile::Invalid,
        Some(Ok(position)) => PositionFile::Valid(position),
        Some(Err(ends)) => PositionFile::OtherEndpoints(ends),
    })
}

impl CarriedPosition {
    /// Parses a position. Returns `None` if the text is none, and the other source and target in words if it is between
    /// those.
    fn parse(text: &str, ends: &str) -> Option<Result<Self, String>> {
        let (position, rest) = text.split_once('\n')?;
        let mut fields = position.split(' ');
        let token = match fields.next()? {
            NO_TOKEN => None,
            token => Some(token.parse().ok()?),
        };
        let mut number = || fields.next().map(str::parse).transpose().ok();
        let log = match (number()?, number()?) {
            (Some(next), Some(identity)) => Some((next, identity)),
            (None, None) => None,
            _ => return None,
        };
        if fields.next().is_some() || rest.lines().count() != 2 || !rest.ends_with('\n') {
            return None;
        }
        let is_same = rest.lines().zip(ends.lines()).all(|(found, expected)| is_same_topic(found, expected));
        Some(if is_same { Ok(Self { token, log }) } else { Err(rest.trim_end().replace('\n', " to ")) })
    }
}

impl fmt::Display for CarriedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token {
            Some(token) => write!(f, "{token}")?,
            None => f.write_str(NO_TOKEN)?,
        }
        match self.log {
            Some((next, identity)) => writeln!(f, " {next} {identity}"),
            None => writeln!(f),
        }
    }
}

/// Returns the name of the position file; it has both names of a topic that is renamed.
pub(crate) fn file_name(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from}={to}") }
}

#[cfg(test)]
mod tests {
    use tickpath_clock::{SimulatedClock, yield_now};

    use super::*;

    fn ends() -> [String; 2] {
        ["redis 1/ticks".to_owned(), "shm://ticks".to_owned()]
    }

    fn open(folder: &Path) -> SavedPosition {
        SavedPosition::open(folder, "ticks", ends()).unwrap()
    }

    /// Returns the start position of a carrier with this folder; now if none is saved.
    fn start(folder: &Path) -> StartPosition {
        open(folder).start_position(StartPosition::Now)
    }

    fn token(next: u64) -> ResumeToken {
        format!("log:{next:x},2,3,4").parse().unwrap()
    }

    fn after(next: u64) -> StartPosition {
        StartPosition::After(token(next))
    }

    fn at(next: u64) -> Option<CarriedPosition> {
        Some(CarriedPosition { token: Some(token(next)), log: None })
    }

    #[test]
    fn a_position_is_requested_only_when_it_is_due() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1_000_000_000));
        let mut saved = open(folder.path());
        let mut requests = 0;
        for (ns, now, expected) in
            [(0, false, 1), (WRITE_NS, false, 1), (1, false, 2), (WRITE_NS, false, 2), (0, true, 3)]
        {
            clock.advance(ns as u64);
            let position = || {
                requests += 1;
                at(requests)
            };
            saved.save_if_due(&clock, now, position).unwrap();
            assert_eq!(requests, expected);
        }
        drop(saved);
        assert_eq!(start(folder.path()), after(3));
        open(folder.path()).save_final(None).unwrap();
        assert_eq!(start(folder.path()), after(3), "an unknown position changes nothing");
        open(folder.path()).save_final(at(4)).unwrap();
        assert_eq!(start(folder.path()), after(4));
    }

    #[test]
    fn a_start_position_is_saved_before_anything_is_carried() {
        let started = |token, is_from_log| {
            let folder = tempfile::tempdir().unwrap();
            open(folder.path()).save_start(token, is_from_log, Some((7, 8))).unwrap();
            let saved = open(folder.path());
            assert_eq!(saved.position.and_then(|position| position.log), Some((7, 8)).filter(|_| saved.is_known()));
            saved.start_position(StartPosition::Now)
        };
        assert_eq!(started(Some(token(1)), true), after(1));
        assert_eq!(started(None, true), StartPosition::Sequence(0), "a log that is created later is new");
        assert_eq!(started(None, false), StartPosition::Now, "the position in a broker is unknown yet");
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1));
        let mut saved = open(folder.path());
        for position in [None, at(1), at(2)] {
            saved.save_if_due(&clock, false, || position).unwrap();
        }
        saved.save_start(Some(token(3)), true, None).unwrap();
        drop(saved);
        assert_eq!(start(folder.path()), after(1), "the first one is saved at once");
    }

    #[test]
    fn a_first_position_in_only_one_of_its_files_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let mut saved = open(folder.path());
        // Simulates a kill between the two writes.
        let durable = folder.path().join(".ticks.sure");
        fs::create_dir(&durable).unwrap();
        assert!(saved.save_start(Some(token(1)), true, None).is_err());
        drop(saved);
        fs::remove_dir(&durable).unwrap();
        assert_eq!(start(folder.path()), after(1));
    }

    #[test]
    fn links_of_another_user_in_the_folder_are_not_followed() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1));
        let precious = folder.path().join("precious");
        fs::write(&precious, "an order journal").unwrap();
        let plant = |name: &str| std::os::unix::fs::symlink(&precious, folder.path().join(name)).unwrap();
        let is_refused =
            |name: &str| matches!(SavedPosition::open(folder.path(), name, ends()), Err(RelayError::SavePosition(..)));
        for name in [".ticks.new", "..ticks.sure.new", ".other.lock"] {
            plant(name);
        }
        open(folder.path()).save_if_due(&clock, true, || at(1)).unwrap();
        assert_eq!(start(folder.path()), after(1));
        assert!(is_refused("other"), "its lock is a link");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "an order journal");
        let all = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        fs::set_permissions(folder.path(), all).unwrap();
        assert!(is_refused("ticks"), "any user can write to its folder");
    }

    #[test]
    fn a_file_damaged_by_a_loss_of_power_is_replaced_by_the_durable_one() {
        for damaged in ["", "log:1,2,3", "\0\0\0\0"] {
            // At this time nothing is due for the saver yet.
            let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(SAVE_NS as u64));
            let file = folder.path().join("ticks");
            let mut saved = open(folder.path());
            saved.save_if_due(&clock, true, || at(1)).unwrap();
            saved.save_if_due(&clock, true, || at(2)).unwrap();
            drop(saved);
            assert_eq!(start(folder.path()), after(2), "the file is whole");
            open(folder.path()).save_if_due(&clock, true, || at(3)).unwrap();
            fs::write(&file, damaged).unwrap();
            let mut saved = open(folder.path());
            assert_eq!(saved.start_position(StartPosition::Now), after(2), "its first position is durable");
            clock.advance(SAVE_NS as u64);
            while saved.saved != at(4) {
                clock.advance(WRITE_NS as u64 + 1);
                saved.save_if_due(&clock, false, || at(4)).unwrap();
                yield_now();
            }
            saved.save_if_due(&clock, true, || at(5)).unwrap();
            drop(saved);
            fs::write(&file, damaged).unwrap();
            assert_eq!(start(folder.path()), after(4), "so is the last one that the saver wrote");
            fs::remove_file(&file).unwrap();
            assert_eq!(start(folder.path()), StartPosition::Now, "without the file the topic starts anew");
            fs::write(&file, damaged).unwrap();
            let refused = SavedPosition::open(folder.path(), "ticks", ends());
            assert!(matches!(refused, Err(RelayError::InvalidPosition(_))), "no earlier position is left");
        }
    }

    #[test]
    fn a_position_is_read_whole_or_not_at_all() {
        let ends = "redis 1/ticks\nshm://ticks\n";
        let logs = [None, Some((0, 7)), Some((u64::MAX, u64::MAX))];
        let tokens = [None, Some(token(1))];
        for (log, token) in logs.into_iter().flat_map(|log| tokens.map(|token| (log, token))) {
            let position = CarriedPosition { token, log };
            let text = format!("{position}{ends}");
            assert_eq!(CarriedPosition::parse(&text, ends), Some(Ok(position)));
            let other = CarriedPosition::parse(&text, "redis 2/ticks\nshm://ticks\n");
            assert_eq!(other, Some(Err("redis 1/ticks to shm://ticks".to_owned())));
            for bytes in 0..text.len() {
                assert_ne!(CarriedPosition::parse(&text[..bytes], ends), Some(Ok(position)), "cut after {bytes} bytes");
            }
        }
        for text in ["", "\n", "log:1,2,3,4 x\n", "log:1,2,3,4 1 2 3\n", "log:1,2,3 1 2\n"] {
            assert_eq!(CarriedPosition::parse(&format!("{text}{ends}"), ends), None, "{text:?}");
        }
    }
}
