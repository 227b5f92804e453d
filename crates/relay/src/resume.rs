//! How far a topic has been carried, kept in a file, so that a carrier that is started again goes on there.
//!
//! ```text
//!   source     … 7 8 9 │10 11 12 13 …        the file says: behind 9, and the log had 40 messages then
//!   log        … 38 39 │40 41                killed: 10 and 11 were published behind that, and come again
//!                       └ tail: 10 and 11, found there by what they hold, are not published twice
//! ```
//! Messages on a broker keep their origin, and each subscriber drops the second copy by that. A log has no place for
//! origins: what was published there behind the place of the file is compared.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tickpath_bus::{Gap, ResumeToken, Start};
use tickpath_clock::Clock;
use tickpath_log::{Next, Place, Reader, Registration};

use crate::{Outside, RelayError};

/// How often the place is written while messages are carried.
const WRITE_NS: i64 = 50_000_000;

/// The place of one topic, in a file of its own.
pub(crate) struct Kept {
    file: PathBuf,
    place: Option<Reached>,
    /// As it was written last.
    written: Option<Reached>,
    /// When, in ticks.
    written_at: u64,
}

/// How far a topic has been carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reached {
    token: ResumeToken,
    /// The sequence number of the log's next message, where it goes into a log.
    next: Option<u64>,
}

impl Kept {
    /// Reads the file of this name, if it is there, in a folder that is made if it is not.
    pub fn open(folder: &Path, name: &str) -> Result<Self, RelayError> {
        let file = folder.join(name);
        let failed = |reason| RelayError::Resume { file: file.clone(), reason };
        fs::create_dir_all(folder).map_err(failed)?;
        let place = match fs::read_to_string(&file) {
            Ok(text) => Some(Reached::parse(&text).ok_or_else(|| RelayError::NoResume(file.clone()))?),
            Err(reason) if reason.kind() == ErrorKind::NotFound => None,
            Err(reason) if reason.kind() == ErrorKind::InvalidData => {
                return Err(RelayError::NoResume(file));
            }
            Err(reason) => return Err(failed(reason)),
        };
        Ok(Self { file, place, written: place, written_at: 0 })
    }

    /// Where to begin: there, or as it was asked for if it never came anywhere.
    pub fn start(&self, otherwise: Start) -> Start {
        self.place.map_or(otherwise, |place| Start::After(place.token))
    }

    /// What a log holds behind the place.
    pub fn tail(&self, log: &Place, end: u64) -> Result<Tail, RelayError> {
        match self.place.and_then(|place| place.next) {
            Some(next) if next < end => Tail::open(log, next, end),
            _ => Ok(Tail::default()),
        }
    }

    /// The loss of a log that is shorter than it was at the place: the host has lost its end, or somebody has removed it.
    pub fn lost(&self, end: u64) -> Option<Gap> {
        let next = self.place.and_then(|place| place.next)?;
        (next > end).then(|| Gap::Missed(next - end))
    }

    /// It has come here. It is written if that was long ago, or if it has to be `now`.
    pub fn reached(
        &mut self,
        token: Option<ResumeToken>,
        next: Option<u64>,
        outside: &Outside<'_>,
        now: bool,
    ) -> Result<(), RelayError> {
        let Some(token) = token else { return Ok(()) };
        self.place = Some(Reached { token, next });
        let ticks = outside.clock.ticks();
        if now || outside.clock.ns_between(self.written_at, ticks) > WRITE_NS {
            self.write(false)?;
            self.written_at = ticks;
        }
        Ok(())
    }

    /// Writes the place as it is, for good.
    pub fn end(&mut self) -> Result<(), RelayError> {
        self.write(true)
    }

    /// Whole or not at all: the file has its name when it is written.
    fn write(&mut self, sync: bool) -> Result<(), RelayError> {
        let Some(place) = self.place.filter(|_| sync || self.place != self.written) else { return Ok(()) };
        let failed = |reason| RelayError::Resume { file: self.file.clone(), reason };
        // No topic has a name that begins with a point.
        let name = self.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let fresh = self.file.with_file_name(format!(".{name}"));
        let mut out = fs::File::create(&fresh).map_err(failed)?;
        out.write_all(place.to_string().as_bytes()).map_err(failed)?;
        if sync {
            out.sync_all().map_err(failed)?;
        }
        fs::rename(&fresh, &self.file).map_err(failed)?;
        self.written = Some(place);
        Ok(())
    }
}

impl Reached {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let token = words.next()?.parse().ok()?;
        let next = words.next().map(str::parse).transpose().ok()?;
        words.next().is_none().then_some(Self { token, next })
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.next {
            Some(next) => writeln!(f, "{} {next}", self.token),
            None => writeln!(f, "{}", self.token),
        }
    }
}

/// What a log holds that may come again, oldest first.
#[derive(Default)]
pub(crate) struct Tail {
    records: VecDeque<Record>,
}

enum Record {
    Message(u8, Vec<u8>),
    Gap(Gap),
    /// So many that the log has lost since; what they held is not known any more.
    Gone(u64),
}

/// What something is to who has published a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is not in the tail.
    New,
    /// It is published already.
    Published,
    /// It should have been in the tail, which holds something else.
    Differs,
}

impl Tail {
    fn open(log: &Place, next: u64, end: u64) -> Result<Self, RelayError> {
        let mut reader = Reader::open(log, tickpath_log::Start::Sequence(next), Registration::Unregistered)?;
        let mut tail = Self::default();
        while reader.next_told() < end {
            let record = match reader.next()? {
                Next::Message(message) => match Gap::read(message.kind, message.payload) {
                    Some(gap) => Record::Gap(gap),
                    None => Record::Message(message.kind, message.payload.to_vec()),
                },
                Next::Gap(missed) => Record::Gone(missed),
                Next::Empty => break,
            };
            tail.records.push_back(record);
        }
        Ok(tail)
    }

    /// Looks for a message that comes now where it should be.
    pub fn message(&mut self, kind: u8, payload: &[u8]) -> Known {
        while let Some(Record::Gap(_)) = self.records.front() {
            self.records.pop_front();
        }
        match self.records.front_mut() {
            None => return Known::New,
            Some(Record::Gone(left)) if *left > 1 => {
                *left -= 1;
                return Known::Published;
            }
            Some(Record::Message(known, held)) if *known != kind || held != payload => {
                self.records.clear();
                return Known::Differs;
            }
            Some(_) => {}
        }
        self.records.pop_front();
        Known::Published
    }

    /// The same of the news of a loss.
    pub fn gap(&mut self, gap: Gap) -> Known {
        match self.records.front() {
            Some(Record::Gap(known)) if *known == gap => {
                self.records.pop_front();
                Known::Published
            }
            _ => Known::New,
        }
    }
}

/// The name of the file for a topic that gets another name.
pub(crate) fn file_name(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from}={to}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(records: impl IntoIterator<Item = Record>) -> Tail {
        Tail { records: records.into_iter().collect() }
    }

    fn message(payload: &str) -> Record {
        Record::Message(16, payload.as_bytes().to_vec())
    }

    #[test]
    fn what_was_published_is_known_and_what_comes_behind_is_new() {
        let mut tail = tail([message("a"), Record::Gap(Gap::Missed(2)), message("b")]);
        assert_eq!(tail.message(16, b"a"), Known::Published);
        assert_eq!(tail.gap(Gap::Missed(2)), Known::Published);
        assert_eq!(tail.message(16, b"b"), Known::Published);
        assert_eq!(tail.message(16, b"b"), Known::New);
        assert_eq!(tail.gap(Gap::Missed(2)), Known::New);
    }

    #[test]
    fn a_loss_that_is_told_on_one_side_only_hides_no_message() {
        let mut known = tail([Record::Gap(Gap::Reconnected), message("a")]);
        assert_eq!(known.message(16, b"a"), Known::Published);
        let mut known = tail([message("a")]);
        assert_eq!(known.gap(Gap::Reconnected), Known::New);
        assert_eq!(known.message(16, b"a"), Known::Published);
    }

    #[test]
    fn what_the_log_has_lost_is_counted() {
        let mut tail = tail([Record::Gone(2), message("c")]);
        for (payload, known) in [("a", Known::Published), ("b", Known::Published), ("c", Known::Published)] {
            assert_eq!(tail.message(16, payload.as_bytes()), known);
        }
        assert_eq!(tail.message(16, b"d"), Known::New);
    }

    #[test]
    fn what_others_have_published_ends_the_comparison() {
        let mut tail = tail([message("a"), message("x"), message("b")]);
        assert_eq!(tail.message(16, b"a"), Known::Published);
        assert_eq!(tail.message(16, b"b"), Known::Differs);
        assert_eq!(tail.message(16, b"x"), Known::New);
    }

    #[test]
    fn a_place_is_read_as_it_was_written_or_not_at_all() {
        let token: ResumeToken = "log:1,2,3,4".parse().unwrap();
        for next in [None, Some(0), Some(u64::MAX)] {
            let place = Reached { token, next };
            assert_eq!(Reached::parse(&place.to_string()), Some(place));
            let text = place.to_string();
            assert_eq!(Reached::parse(text.trim_end()), None, "cut");
        }
        for text in ["", "\n", "log:1,2,3,4 x\n", "log:1,2,3,4 1 2\n", "log:1,2,3 1\n"] {
            assert_eq!(Reached::parse(text), None, "{text:?}");
        }
    }
}
