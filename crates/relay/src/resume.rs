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

use tickpath_bus::url::without_login;
use tickpath_bus::{Connection, Gap, ResumeToken, Start};
use tickpath_clock::Clock;
use tickpath_log::{Reader, own_file, own_folder};

use crate::address::is_one;
use crate::saver::{Saver, beside, write, write_for_good};
use crate::tail::Tail;
use crate::{RelayError, TURN};

/// Interval at which the position is written while messages are carried, in nanoseconds.
const WRITE_NS: i64 = 50_000_000;

/// Interval at which the position is saved against a loss of power, in nanoseconds.
const SAVE_NS: i64 = 1_000_000_000;

/// Suffix of the file that survives a loss of power, after the topic's name.
const SURE: &str = "sure";

/// Token field of a position without a token.
const NO_TOKEN: &str = "-";

/// Saved position of one topic, in a file that no other carrier uses meanwhile.
pub(crate) struct Kept {
    file: PathBuf,
    saver: Saver,
    /// Lock file, held until after the saver is dropped.
    _lock: File,
    /// Source and target as the URLs name them, in two lines. A restarted server has another identity, and its name may
    /// have another address, or none for a while.
    ends: String,
    place: Option<Reached>,
    /// Position as it was written last.
    written: Option<Reached>,
    /// Ticks of the last write.
    written_at: u64,
    /// Position that the saver was given last.
    saved: Option<Reached>,
    /// Ticks at which the saver was given that position.
    saved_at: u64,
}

/// Position up to which a topic was carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reached {
    /// None while the source is a log that does not exist yet: all its messages will be new.
    pub token: Option<ResumeToken>,
    /// Next sequence number and identity of the target log, if the target is one.
    pub log: Option<(u64, u64)>,
}

/// Content of a position file.
#[allow(clippy::large_enum_variant, reason = "one is made for each start, and none is kept")]
enum Found {
    /// No file.
    Nothing,
    /// A file without a position.
    NoPlace,
    Place(Reached),
    /// A position between another source and target, in words.
    Elsewhere(String),
}

impl Kept {
    /// Opens the saved position of a topic, if a folder for it is given. Fails if the bus keeps no history.
    pub fn asked(
        folder: Option<&Path>,
        source: &dyn Connection,
        (url, topic): (&str, &str),
        name: &str,
        ends: [String; 2],
    ) -> Result<Option<Self>, RelayError> {
        let Some(folder) = folder else { return Ok(None) };
        if !source.capabilities().history {
            let url = without_login(url).to_owned();
            return Err(RelayError::NoHistory { topic: topic.to_owned(), url });
        }
        Self::open(folder, name, ends).map(Some)
    }

    /// Reads the file of this name, if it exists, and creates its folder if need be. The file must name the same source
    /// and target, and its position is saved against a loss of power before anything is carried.
    fn open(folder: &Path, name: &str, ends: [String; 2]) -> Result<Self, RelayError> {
        let file = folder.join(name);
        let failed = |reason| RelayError::Resume { file: file.clone(), reason };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // Another user with write access could make the topic start anywhere.
        own_folder(folder).map_err(failed)?;
        // No topic name begins with a point.
        let lock = own_file(&folder.join(format!(".{name}.lock"))).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RelayError::ResumeHeld(file)),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }
        let ends = format!("{}\n{}\n", ends[0], ends[1]);
        let sure = beside(&file, SURE);
        let place = match find(&file, &sure, &ends).map_err(failed)? {
            Found::Nothing => None,
            Found::Place(place) => Some(place),
            Found::NoPlace => return Err(RelayError::NoResume(file)),
            Found::Elsewhere(ends) => return Err(RelayError::OtherResume { file, ends }),
        };
        match place {
            Some(place) => write_for_good(&sure, &format!("{place}{ends}")).map_err(failed)?,
            // The user has removed the file to start anew.
            None => forget(&sure).map_err(failed)?,
        }
        let saver = Saver::start(sure).map_err(failed)?;
        // The file may hold no position.
        let written = None;
        Ok(Self { file, saver, _lock: lock, ends, place, written, written_at: 0, saved: place, saved_at: 0 })
    }

    /// Returns whether a position is known.
    pub fn is_known(&self) -> bool {
        self.place.is_some()
    }

    /// Returns the max number of events to take before the position is read again: one until there is a position,
    /// because without it they cannot be recognised later.
    pub fn most(&self) -> usize {
        if self.is_known() { TURN } else { 1 }
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the start position: after the saved one, or `otherwise` if there is none.
    pub fn start(&self, otherwise: Start) -> Start {
        self.place.map_or(otherwise, |place| place.token.map_or(Start::Sequence(0), Start::After))
    }

    /// Returns the messages of the log after the saved position, if it is the same log.
    pub fn tail(&self, log: &Reader, end: u64) -> Result<Tail, RelayError> {
        match self.place.and_then(|place| place.log) {
            Some((next, identity)) if next < end && identity == log.identity() => Tail::open(log.place(), next, end),
            _ => Ok(Tail::default()),
        }
    }

    /// Returns the loss of a log that is shorter than at the saved position, or another one: the host has lost its end,
    /// or it was removed.
    pub fn lost(&self, log: &Reader, end: u64) -> Option<Gap> {
        let (next, identity) = self.place.and_then(|place| place.log)?;
        let there = if identity == log.identity() { end.min(next) } else { 0 };
        (next > there).then(|| Gap::Missed(next - there))
    }

    /// Saves the start position, if none is saved, before anything is carried: a carrier killed with the first messages
    /// starts there again and recognises them. A source that has no token yet is saved after its first message.
    pub fn begin(
        &mut self,
        token: Option<ResumeToken>,
        is_from_log: bool,
        log: Option<(u64, u64)>,
    ) -> Result<(), RelayError> {
        if self.is_known() || token.is_none() && !is_from_log {
            return Ok(());
        }
        self.place = Some(Reached { token, log });
        self.write_both()
    }

    /// Saves the position in this log, whose loss was published, before anything is carried.
    pub fn mended(&mut self, log: (u64, u64)) -> Result<(), RelayError> {
        self.place = self.place.map(|place| Reached { log: Some(log), ..place });
        self.write_both()
    }

    /// Saves the position if it is due: the first one, after the interval, or if `now` is set. `place`, which takes a
    /// token, is called only then.
    pub fn reached(
        &mut self,
        clock: &impl Clock,
        now: bool,
        place: impl FnOnce() -> Option<Reached>,
    ) -> Result<(), RelayError> {
        let ticks = clock.ticks();
        let is_first = !self.is_known();
        if is_first || now || clock.ns_between(self.written_at, ticks) > WRITE_NS {
            self.place = place().or(self.place);
            self.written_at = ticks;
            if is_first {
                self.saved_at = ticks;
                return self.write_both();
            }
            self.write()?;
            self.save(clock.ns_between(self.saved_at, ticks), ticks)?;
        }
        Ok(())
    }

    /// Writes the final position to the disk; if it is unknown, the last known one.
    pub fn end(&mut self, place: Option<Reached>) -> Result<(), RelayError> {
        self.place = place.or(self.place);
        let Some(place) = self.place else { return Ok(()) };
        self.told(write_for_good(&self.file, &self.text(place)))
    }

    /// Writes the position to the disk in both files, first in the one without which the topic would start anew. The
    /// saver, which writes the other file, has been given no position yet.
    fn write_both(&mut self) -> Result<(), RelayError> {
        let Some(place) = self.place else { return Ok(()) };
        for file in [&self.file, &beside(&self.file, SURE)] {
            self.told(write_for_good(file, &self.text(place)))?;
        }
        (self.written, self.saved) = (Some(place), Some(place));
        Ok(())
    }

    /// Writes the position, if it has changed.
    fn write(&mut self) -> Result<(), RelayError> {
        let Some(place) = self.place.filter(|_| self.place != self.written) else { return Ok(()) };
        self.told(write(&self.file, &self.text(place)))?;
        self.written = Some(place);
        Ok(())
    }

    /// Gives the position to the saver, if it has changed and the interval is over. Tried again later while the disk is
    /// busy with the previous one.
    fn save(&mut self, since_ns: i64, ticks: u64) -> Result<(), RelayError> {
        let is_due = self.place != self.saved && since_ns > SAVE_NS;
        let Some(place) = self.place.filter(|_| is_due) else { return Ok(()) };
        if self.told(self.saver.save(self.text(place)))? {
            (self.saved, self.saved_at) = (Some(place), ticks);
        }
        Ok(())
    }

    fn text(&self, place: Reached) -> String {
        format!("{place}{}", self.ends)
    }

    fn told<T>(&self, written: io::Result<T>) -> Result<T, RelayError> {
        written.map_err(|reason| RelayError::Resume { file: self.file.clone(), reason })
    }
}

/// Reads the position from the file, or, if that holds none, from the one that survives a loss of power.
fn find(file: &Path, sure: &Path, ends: &str) -> io::Result<Found> {
    match look(file, ends)? {
        Found::NoPlace => Ok(match look(sure, ends)? {
            Found::Nothing => Found::NoPlace,
            of_before => of_before,
        }),
        found => Ok(found),
    }
}

fn look(file: &Path, ends: &str) -> io::Result<Found> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(reason) => return Err(reason),
    };
    Ok(match std::str::from_utf8(&bytes).ok().and_then(|text| Reached::parse(text, ends)) {
        None => Found::NoPlace,
        Some(Ok(place)) => Found::Place(place),
        Some(Err(ends)) => Found::Elsewhere(ends),
    })
}

/// Removes a file that may not exist.
fn forget(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(reason) if reason.kind() != ErrorKind::NotFound => Err(reason),
        _ => Ok(()),
    }
}

impl Reached {
    /// Parses a position. Returns `None` if the text is none, and the other source and target in words if it is between
    /// those.
    fn parse(text: &str, ends: &str) -> Option<Result<Self, String>> {
        let (place, rest) = text.split_once('\n')?;
        let mut words = place.split(' ');
        let token = match words.next()? {
            NO_TOKEN => None,
            word => Some(word.parse().ok()?),
        };
        let mut number = || words.next().map(str::parse).transpose().ok();
        let log = match (number()?, number()?) {
            (Some(next), Some(identity)) => Some((next, identity)),
            (None, None) => None,
            _ => return None,
        };
        if words.next().is_some() || rest.lines().count() != 2 || !rest.ends_with('\n') {
            return None;
        }
        let is_here = rest.lines().zip(ends.lines()).all(|(found, ours)| is_one(found, ours));
        Some(if is_here { Ok(Self { token, log }) } else { Err(rest.trim_end().replace('\n', " to ")) })
    }
}

impl fmt::Display for Reached {
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

    fn open(folder: &Path) -> Kept {
        Kept::open(folder, "ticks", ends()).unwrap()
    }

    fn token(next: u64) -> ResumeToken {
        format!("log:{next:x},2,3,4").parse().unwrap()
    }

    fn at(next: u64) -> Option<Reached> {
        Some(Reached { token: Some(token(next)), log: None })
    }

    #[test]
    fn a_place_is_asked_for_when_it_is_to_be_written() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1_000_000_000));
        let mut kept = open(folder.path());
        let mut asked = 0;
        for (ns, now, expected) in
            [(0, false, 1), (WRITE_NS, false, 1), (1, false, 2), (WRITE_NS, false, 2), (0, true, 3)]
        {
            clock.advance(ns as u64);
            let place = || {
                asked += 1;
                at(asked)
            };
            kept.reached(&clock, now, place).unwrap();
            assert_eq!(asked, expected);
        }
        drop(kept);
        let mut kept = open(folder.path());
        assert_eq!(kept.start(Start::Now), Start::After(token(3)));
        kept.end(None).unwrap();
        drop(kept);
        let mut kept = open(folder.path());
        assert_eq!(kept.start(Start::Now), Start::After(token(3)), "what is not known leaves it where it was");
        kept.end(at(4)).unwrap();
        drop(kept);
        assert_eq!(open(folder.path()).start(Start::Now), Start::After(token(4)));
    }

    #[test]
    fn a_topic_has_a_place_before_anything_of_it_is_carried() {
        let begun = |token, is_from_log| {
            let folder = tempfile::tempdir().unwrap();
            open(folder.path()).begin(token, is_from_log, Some((7, 8))).unwrap();
            let kept = open(folder.path());
            assert_eq!(kept.place.and_then(|place| place.log), Some((7, 8)).filter(|_| kept.is_known()));
            kept.start(Start::Now)
        };
        assert_eq!(begun(Some(token(1)), true), Start::After(token(1)));
        assert_eq!(begun(None, true), Start::Sequence(0), "a log that comes later is new");
        assert_eq!(begun(None, false), Start::Now, "of a broker nothing is known yet");
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1));
        let mut kept = open(folder.path());
        for place in [None, at(1), at(2)] {
            kept.reached(&clock, false, || place).unwrap();
        }
        kept.begin(Some(token(3)), true, None).unwrap();
        drop(kept);
        assert_eq!(open(folder.path()).start(Start::Now), Start::After(token(1)), "the first one is kept at once");
    }

    #[test]
    fn a_first_place_that_is_written_in_part_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = open(folder.path());
        // Simulates a kill between the two writes.
        let sure = folder.path().join(".ticks.sure");
        fs::create_dir(&sure).unwrap();
        assert!(kept.begin(Some(token(1)), true, None).is_err());
        drop(kept);
        fs::remove_dir(&sure).unwrap();
        assert_eq!(open(folder.path()).start(Start::Now), Start::After(token(1)));
    }

    #[test]
    fn what_another_user_put_beside_a_place_is_not_followed() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(1));
        let precious = folder.path().join("precious");
        fs::write(&precious, "an order journal").unwrap();
        let plant = |name: &str| std::os::unix::fs::symlink(&precious, folder.path().join(name)).unwrap();
        let is_refused = |name: &str| matches!(Kept::open(folder.path(), name, ends()), Err(RelayError::Resume { .. }));
        for name in [".ticks.new", "..ticks.sure.new", ".other.lock"] {
            plant(name);
        }
        let mut kept = open(folder.path());
        kept.reached(&clock, true, || at(1)).unwrap();
        drop(kept);
        let kept = open(folder.path());
        assert_eq!(kept.start(Start::Now), Start::After(token(1)));
        drop(kept);
        assert!(is_refused("other"), "its lock is a link");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "an order journal");
        let all = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        fs::set_permissions(folder.path(), all).unwrap();
        assert!(is_refused("ticks"), "any user can write to its folder");
    }

    #[test]
    fn what_a_loss_of_power_has_taken_is_what_it_was_before() {
        for taken in ["", "log:1,2,3", "\0\0\0\0"] {
            // At this time nothing is due for the saver yet.
            let (folder, clock) = (tempfile::tempdir().unwrap(), SimulatedClock::at(SAVE_NS as u64));
            let file = folder.path().join("ticks");
            let mut kept = open(folder.path());
            kept.reached(&clock, true, || at(1)).unwrap();
            kept.reached(&clock, true, || at(2)).unwrap();
            drop(kept);
            assert_eq!(open(folder.path()).start(Start::Now), Start::After(token(2)), "nobody has taken anything");
            let mut kept = open(folder.path());
            kept.reached(&clock, true, || at(3)).unwrap();
            drop(kept);
            fs::write(&file, taken).unwrap();
            let mut kept = open(folder.path());
            assert_eq!(kept.start(Start::Now), Start::After(token(2)), "what it began with is sure");
            clock.advance(SAVE_NS as u64);
            while kept.saved != at(4) {
                clock.advance(WRITE_NS as u64 + 1);
                kept.reached(&clock, false, || at(4)).unwrap();
                yield_now();
            }
            kept.reached(&clock, true, || at(5)).unwrap();
            drop(kept);
            fs::write(&file, taken).unwrap();
            assert_eq!(open(folder.path()).start(Start::Now), Start::After(token(4)), "and what was saved since");
            fs::remove_file(&file).unwrap();
            assert_eq!(open(folder.path()).start(Start::Now), Start::Now, "who removes the file begins anew");
            fs::write(&file, taken).unwrap();
            let refused = Kept::open(folder.path(), "ticks", ends());
            assert!(matches!(refused, Err(RelayError::NoResume(_))), "and there is nothing of before");
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written_or_not_at_all() {
        let ends = "redis 1/ticks\nshm://ticks\n";
        let logs = [None, Some((0, 7)), Some((u64::MAX, u64::MAX))];
        let tokens = [None, Some(token(1))];
        for (log, token) in logs.into_iter().flat_map(|log| tokens.map(|token| (log, token))) {
            let place = Reached { token, log };
            let text = format!("{place}{ends}");
            assert_eq!(Reached::parse(&text, ends), Some(Ok(place)));
            assert_eq!(
                Reached::parse(&text, "redis 2/ticks\nshm://ticks\n"),
                Some(Err("redis 1/ticks to shm://ticks".to_owned()))
            );
            for bytes in 0..text.len() {
                assert_ne!(Reached::parse(&text[..bytes], ends), Some(Ok(place)), "cut after {bytes} bytes");
            }
        }
        for text in ["", "\n", "log:1,2,3,4 x\n", "log:1,2,3,4 1 2 3\n", "log:1,2,3 1 2\n"] {
            assert_eq!(Reached::parse(&format!("{text}{ends}"), ends), None, "{text:?}");
        }
    }
}
