//! How far a topic has been carried, kept in a file, so that a carrier that is started again goes on there.
//!
//! ```text
//!   source     … 7 8 9 │10 11 12 13 …        the file says: behind 9, and the log had 40 messages then
//!   log        … 38 39 │40 41                killed: 10 and 11 were published behind that, and come again
//!                       └ tail: 10 and 11, found there by what they hold, are not published twice
//! ```
//! Messages on a broker keep their origin, and each subscriber drops the second copy by that. A log has no place for
//! origins: what was published there behind the place of the file is compared.
//!
//! ```text
//!   NAME          each 50 ms, by the carrier: it has its name when it is written
//!   .NAME.sure    each second, by a thread: it is on the disk before it has its name
//! ```
//! Whoever is killed loses nothing: NAME is the last that was written. A loss of power may leave NAME with nothing in
//! it, or with zeros, which is no place. Then `.NAME.sure` is taken, which NAME was a second before, or as long before
//! as the disk needed. What was carried since comes again, and is known as after a kill; of other programs' messages,
//! which a broker does not know again, up to so many are there twice. Where a log lost its own end with the power, that
//! is told as a loss.

use std::fmt;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tickpath_bus::{Connection, Gap, ResumeToken, Start};
use tickpath_clock::Clock;
use tickpath_log::{Reader, own_file, own_folder};
use tickpath_result::without_login;

use crate::address::is_one;
use crate::saver::{Saver, beside, write, write_for_good};
use crate::tail::Tail;
use crate::{RelayError, TURN};

/// How often the place is written while messages are carried.
const WRITE_NS: i64 = 50_000_000;

/// How often it is made to survive a loss of power.
const SAVE_NS: i64 = 1_000_000_000;

/// What the file of that is called, behind the topic's name.
const SURE: &str = "sure";

/// What a place has in front that has no token.
const NO_TOKEN: &str = "-";

/// The place of one topic, in a file of its own, which nobody else uses meanwhile.
pub(crate) struct Kept {
    file: PathBuf,
    saver: Saver,
    /// Held as long as this lives, and the saver, which is dropped before it.
    _lock: File,
    /// From where to where the topic is carried, as the URLs say it: two lines. A server has another identity when it is
    /// started again, and its name may have another address, or none for a while.
    ends: String,
    place: Option<Reached>,
    /// As it was written last.
    written: Option<Reached>,
    /// When, in ticks.
    written_at: u64,
    /// As the saver was given it last.
    saved: Option<Reached>,
    /// When, in ticks.
    saved_at: u64,
}

/// How far a topic has been carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reached {
    /// None while the source is a log that is not there yet: all that it will hold is new.
    pub token: Option<ResumeToken>,
    /// The sequence number of the log's next message, and what tells that log from others, where it goes into one.
    pub log: Option<(u64, u64)>,
}

/// What a file says.
#[allow(clippy::large_enum_variant, reason = "one is made for each start, and none is kept")]
enum Found {
    /// There is none.
    Nothing,
    /// No place.
    NoPlace,
    Place(Reached),
    /// A place between other ends than ours: in words, which.
    Elsewhere(String),
}

impl Kept {
    /// The place of a topic of the bus of this URL, in a file of this name, if one is asked for by its folder.
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

    /// Reads the file of this name, if it is there, in a folder that is made if it is not. What it says must be of the
    /// same ends. It survives a loss of power before anything is carried.
    fn open(folder: &Path, name: &str, ends: [String; 2]) -> Result<Self, RelayError> {
        let file = folder.join(name);
        let failed = |reason| RelayError::Resume { file: file.clone(), reason };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // Another user who could write here could have the topic begin anywhere.
        own_folder(folder).map_err(failed)?;
        // No topic has a name that begins with a point.
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
            // Somebody has removed the file to begin anew.
            None => forget(&sure).map_err(failed)?,
        }
        let saver = Saver::start(sure).map_err(failed)?;
        // The file may hold no place.
        let written = None;
        Ok(Self { file, saver, _lock: lock, ends, place, written, written_at: 0, saved: place, saved_at: 0 })
    }

    /// Whether it says where the topic has come to.
    pub fn is_known(&self) -> bool {
        self.place.is_some()
    }

    /// How many events may be taken before it is asked how far it has come: without a place nobody knows them again.
    pub fn most(&self) -> usize {
        if self.is_known() { TURN } else { 1 }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Where to begin: there, or as it was asked for if it never came anywhere.
    pub fn start(&self, otherwise: Start) -> Start {
        self.place.map_or(otherwise, |place| place.token.map_or(Start::Sequence(0), Start::After))
    }

    /// What the log holds behind the place, if it is the log that it was.
    pub fn tail(&self, log: &Reader, end: u64) -> Result<Tail, RelayError> {
        match self.place.and_then(|place| place.log) {
            Some((next, identity)) if next < end && identity == log.identity() => Tail::open(log.place(), next, end),
            _ => Ok(Tail::default()),
        }
    }

    /// The loss of a log that is shorter than it was at the place, or another one: the host has lost its end, or somebody
    /// has removed it.
    pub fn lost(&self, log: &Reader, end: u64) -> Option<Gap> {
        let (next, identity) = self.place.and_then(|place| place.log)?;
        let there = if identity == log.identity() { end.min(next) } else { 0 };
        (next > there).then(|| Gap::Missed(next - there))
    }

    /// Keeps where the topic begins, if it never came anywhere, before anything is carried: who is killed with the
    /// first messages begins there again, and knows them. What does not tell that yet is kept behind its first message.
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

    /// Its log has been told what it lost, and is this one, with this next sequence number. Nothing was carried before.
    pub fn mended(&mut self, log: (u64, u64)) -> Result<(), RelayError> {
        self.place = self.place.map(|place| Reached { log: Some(log), ..place });
        self.write_both()
    }

    /// It may have come further. Where it is, which takes a token, is asked only if it is to be written: if it never
    /// was, if that was long ago, or if it has to be `now`.
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

    /// Writes for good where it has come to; if that is not known, where it was when it was written last.
    pub fn end(&mut self, place: Option<Reached>) -> Result<(), RelayError> {
        self.place = place.or(self.place);
        let Some(place) = self.place else { return Ok(()) };
        self.told(write_for_good(&self.file, &self.text(place)))
    }

    /// Writes the place for good, in both files, and first in the one without which the topic would be begun anew. The
    /// saver, which writes the other one, was given no place yet.
    fn write_both(&mut self) -> Result<(), RelayError> {
        let Some(place) = self.place else { return Ok(()) };
        for file in [&self.file, &beside(&self.file, SURE)] {
            self.told(write_for_good(file, &self.text(place)))?;
        }
        (self.written, self.saved) = (Some(place), Some(place));
        Ok(())
    }

    /// Writes the place, if that is another one by now.
    fn write(&mut self) -> Result<(), RelayError> {
        let Some(place) = self.place.filter(|_| self.place != self.written) else { return Ok(()) };
        self.told(write(&self.file, &self.text(place)))?;
        self.written = Some(place);
        Ok(())
    }

    /// Gives the place to the saver, if that is another one by now, and the last time was long ago. While the disk is
    /// not done with the one before, that is tried again.
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

/// Where the topic has come to: what the file says, or the one that is sure, if the file holds no place.
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

/// Removes a file that may not be there.
fn forget(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(reason) if reason.kind() != ErrorKind::NotFound => Err(reason),
        _ => Ok(()),
    }
}

impl Reached {
    /// None of what is no place; the other ends, in words, of a place between others.
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

/// The name of the file for a topic that gets another name.
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
        // As if it had been killed between the two.
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
            // For so long nothing is due for the saver.
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
