//! How far a topic has been carried, kept in a file, so that a carrier that is started again goes on there.
//!
//! ```text
//!   source     … 7 8 9 │10 11 12 13 …        the file says: behind 9, and the log had 40 messages then
//!   log        … 38 39 │40 41                killed: 10 and 11 were published behind that, and come again
//!                       └ tail: 10 and 11, found there by what they hold, are not published twice
//! ```
//! Messages on a broker keep their origin, and each subscriber drops the second copy by that. A log has no place for
//! origins: what was published there behind the place of the file is compared.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tickpath_bus::{Connection, Gap, ResumeToken, Start};
use tickpath_clock::Clock;
use tickpath_log::{Next, Place, ReadError, Reader, Registration};
use tickpath_result::without_login;

use crate::{Outside, RelayError};

/// How often the place is written while messages are carried.
const WRITE_NS: i64 = 50_000_000;

/// The place of one topic, in a file of its own, which nobody else uses meanwhile.
pub(crate) struct Kept {
    file: PathBuf,
    /// Held as long as this lives.
    _lock: File,
    /// From where to where the topic is carried: two lines.
    ends: String,
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
    /// The sequence number of the log's next message, and what tells that log from others, where it goes into one.
    log: Option<(u64, u64)>,
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

    /// Reads the file of this name, if it is there, in a folder that is made if it is not. What it says must be of the same
    /// ends.
    fn open(folder: &Path, name: &str, ends: [String; 2]) -> Result<Self, RelayError> {
        let file = folder.join(name);
        let failed = |reason| RelayError::Resume { file: file.clone(), reason };
        fs::create_dir_all(folder).map_err(failed)?;
        // No topic has a name that begins with a point.
        let lock = File::create(folder.join(format!(".{name}.lock"))).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RelayError::ResumeHeld(file)),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }
        let ends = format!("{}\n{}\n", ends[0], ends[1]);
        let place = match fs::read(&file) {
            Ok(bytes) => {
                let read = std::str::from_utf8(&bytes).ok().and_then(|text| Reached::parse(text, &ends));
                let place = read.ok_or_else(|| RelayError::NoResume(file.clone()))?;
                Some(place.map_err(|ends| RelayError::OtherResume { file: file.clone(), ends })?)
            }
            Err(reason) if reason.kind() == ErrorKind::NotFound => None,
            Err(reason) => return Err(failed(reason)),
        };
        Ok(Self { file, _lock: lock, ends, place, written: place, written_at: 0 })
    }

    /// Whether it says where the topic has come to.
    pub fn is_known(&self) -> bool {
        self.place.is_some()
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Where to begin: there, or as it was asked for if it never came anywhere.
    pub fn start(&self, otherwise: Start) -> Start {
        self.place.map_or(otherwise, |place| Start::After(place.token))
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

    /// Its log has been told what it lost, and is this one, with this next sequence number.
    pub fn mended(&mut self, log: (u64, u64)) -> Result<(), RelayError> {
        self.place = self.place.map(|place| Reached { log: Some(log), ..place });
        self.write(false)
    }

    /// It has come here. It is written if that was long ago, or if it has to be `now`.
    pub fn reached(
        &mut self,
        token: Option<ResumeToken>,
        log: Option<(u64, u64)>,
        outside: &Outside<'_>,
        now: bool,
    ) -> Result<(), RelayError> {
        let Some(token) = token else { return Ok(()) };
        self.place = Some(Reached { token, log });
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
        let name = self.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let fresh = self.file.with_file_name(format!(".{name}.new"));
        let mut out = File::create(&fresh).map_err(failed)?;
        out.write_all(format!("{place}{}", self.ends).as_bytes()).map_err(failed)?;
        if sync {
            out.sync_all().map_err(failed)?;
        }
        fs::rename(&fresh, &self.file).map_err(failed)?;
        self.written = Some(place);
        Ok(())
    }
}

impl Reached {
    /// None of what is no place; the other ends, in words, of a place between others.
    fn parse(text: &str, ends: &str) -> Option<Result<Self, String>> {
        let (place, rest) = text.split_once('\n')?;
        let mut words = place.split(' ');
        let token = words.next()?.parse().ok()?;
        let mut number = || words.next().map(str::parse).transpose().ok();
        let log = match (number()?, number()?) {
            (Some(next), Some(identity)) => Some((next, identity)),
            (None, None) => None,
            _ => return None,
        };
        if words.next().is_some() || rest.lines().count() != 2 || !rest.ends_with('\n') {
            return None;
        }
        Some(if rest == ends { Ok(Self { token, log }) } else { Err(rest.trim_end().replace('\n', " to ")) })
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log {
            Some((next, identity)) => writeln!(f, "{} {next} {identity}", self.token),
            None => writeln!(f, "{}", self.token),
        }
    }
}

/// What a log holds that may come again, oldest first.
#[derive(Default)]
pub(crate) struct Tail {
    records: Option<Records>,
    /// The oldest one that has not come again.
    front: Option<Record>,
}

/// Where a tail is read from.
struct Records {
    reader: Reader,
    /// The sequence number behind it.
    end: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Record {
    Message {
        stamp: u64,
        kind: u8,
        payload: Vec<u8>,
    },
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
        let reader = Reader::open(log, tickpath_log::Start::Sequence(next), Registration::Unregistered)?;
        let mut tail = Self { records: Some(Records { reader, end }), front: None };
        tail.advance()?;
        Ok(tail)
    }

    /// The sequence number of the oldest one; none if all have come again.
    pub fn front(&self) -> Option<u64> {
        let (front, records) = (self.front.as_ref()?, self.records.as_ref()?);
        let behind = records.reader.next_told();
        Some(behind - if let Record::Gone(left) = front { *left } else { 1 })
    }

    /// Looks for a message that comes now where it should be. Of another host's clock there is no stamp to compare.
    pub fn message(&mut self, stamp: Option<u64>, kind: u8, payload: &[u8]) -> Result<Known, ReadError> {
        while let Some(Record::Gap(_)) = &self.front {
            self.advance()?;
        }
        let is_same = match &mut self.front {
            None => return Ok(Known::New),
            Some(Record::Gone(left)) if *left > 1 => {
                *left -= 1;
                return Ok(Known::Published);
            }
            Some(Record::Message { stamp: held_at, kind: held_as, payload: held }) => {
                *held_as == kind && held == payload && stamp.is_none_or(|stamp| stamp == *held_at)
            }
            Some(_) => true,
        };
        if is_same {
            self.advance()?;
            return Ok(Known::Published);
        }
        *self = Self::default();
        Ok(Known::Differs)
    }

    /// The same of a loss: what of it is not published, as news or as the messages that are lost now.
    pub fn gap(&mut self, gap: Gap) -> Result<Option<Gap>, ReadError> {
        let Gap::Missed(mut left) = gap else {
            if self.front == Some(Record::Gap(gap)) {
                self.advance()?;
                return Ok(None);
            }
            // What the log has lost, too, cannot be compared with what comes next.
            while let Some(Record::Gone(_)) = self.front {
                self.advance()?;
            }
            return Ok(Some(gap));
        };
        while left > 0 {
            match &mut self.front {
                None => return Ok(Some(Gap::Missed(left))),
                Some(Record::Gone(gone)) if *gone > left => {
                    *gone -= left;
                    return Ok(None);
                }
                Some(Record::Gone(gone)) => left -= *gone,
                Some(Record::Gap(Gap::Missed(told))) => left = left.saturating_sub(*told),
                Some(Record::Gap(Gap::Reconnected)) => {}
                Some(Record::Message { .. }) => left -= 1,
            }
            self.advance()?;
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.front = None;
        let Some(Records { reader, end }) = &mut self.records else { return Ok(()) };
        if reader.next_told() >= *end {
            return Ok(());
        }
        self.front = match reader.next()? {
            Next::Message(message) => Some(match Gap::read(message.kind, message.payload) {
                Some(gap) => Record::Gap(gap),
                None => {
                    let (stamp, kind, payload) = (message.stamp, message.kind, message.payload.to_vec());
                    Record::Message { stamp, kind, payload }
                }
            }),
            Next::Gap(missed) => Some(Record::Gone(missed)),
            Next::Empty => None,
        };
        Ok(())
    }
}

/// The name of the file for a topic that gets another name.
pub(crate) fn file_name(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from}={to}") }
}

#[cfg(test)]
mod tests {
    use tickpath_clock::Calibration;
    use tickpath_log::{Config, Policy, Writer};

    use super::*;

    const KIND: u8 = 16;

    /// The tail of a log that holds these; what is no letter is a loss of as many.
    fn tail(policy: Policy, records: &str) -> (Tail, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::folder(folder.path().join("log"));
        let config = Config::topic(place.clone(), policy);
        let mut writer = Writer::open(&config, &Calibration::nanoseconds()).unwrap();
        for (at, record) in records.chars().enumerate() {
            let published = match record.to_digit(10) {
                Some(0) => writer.publish(0, tickpath_bus::GAP_KIND, &Gap::Reconnected.record()),
                Some(missed) => writer.publish(0, tickpath_bus::GAP_KIND, &Gap::Missed(missed.into()).record()),
                None => writer.publish(at as u64, KIND, record.to_string().as_bytes()),
            };
            published.unwrap();
        }
        (Tail::open(&place, 0, records.len() as u64).unwrap(), folder)
    }

    /// What comes of these, one after the other: published, new, or differing; of a loss what is left of it.
    fn told(tail: &mut Tail, coming: &str) -> String {
        let mut told = String::new();
        for one in coming.chars() {
            told.push(match one.to_digit(10) {
                Some(missed) => {
                    let gap = if missed == 0 { Gap::Reconnected } else { Gap::Missed(missed.into()) };
                    match tail.gap(gap).unwrap() {
                        None => '-',
                        Some(Gap::Reconnected) => '0',
                        Some(Gap::Missed(left)) => char::from_digit(left as u32, 10).unwrap(),
                    }
                }
                None => match tail.message(None, KIND, one.to_string().as_bytes()).unwrap() {
                    Known::New => 'n',
                    Known::Published => '-',
                    Known::Differs => 'd',
                },
            });
        }
        told
    }

    #[test]
    fn what_was_published_is_known_and_what_comes_behind_is_new() {
        for (held, coming, expected) in [
            ("ab", "abc", "--n"),
            ("a2b", "a2bb2", "---n2"),
            // A loss that is told on one side only hides no message.
            ("0a", "a", "-"),
            ("a", "0a", "0-"),
            ("a2b", "ab", "--"),
            // What is lost now was published before, as far as it goes.
            ("abc", "2c", "--"),
            ("abc", "3d", "-n"),
            ("abc", "5f", "2n"),
            ("a2b", "4e", "-n"),
            // What others have published ends the comparison.
            ("axb", "abx", "-dn"),
        ] {
            let (mut tail, _folder) = tail(Policy::Keep, held);
            assert_eq!(told(&mut tail, coming), expected, "{coming} behind {held}");
        }
    }

    #[test]
    fn the_front_is_the_first_that_has_not_come_again() {
        let (mut tail, _folder) = tail(Policy::Keep, "abc");
        for expected in [Some(0), Some(1), Some(2), None] {
            assert_eq!(tail.front(), expected);
            let next = expected.map_or('d', |at| char::from(b'a' + at as u8));
            told(&mut tail, &next.to_string());
        }
        assert_eq!(Tail::default().front(), None);
    }

    #[test]
    fn what_has_another_stamp_is_another_message() {
        let (mut tail, _folder) = tail(Policy::Keep, "a");
        assert_eq!(tail.message(Some(1), KIND, b"a").unwrap(), Known::Differs);
    }

    #[test]
    fn what_the_log_has_lost_is_counted() {
        let letters = "abcdefghij".repeat(8_000);
        let (mut tail, _folder) = tail(Policy::Overwrite, &letters);
        let Some(Record::Gone(gone)) = tail.front else { panic!("a ring of this size holds less: {:?}", tail.front) };
        assert_eq!(tail.front(), Some(0));
        assert_eq!(tail.gap(Gap::Missed(gone - 1)).unwrap(), None);
        assert_eq!(tail.front(), Some(gone - 1));
        assert_eq!(told(&mut tail, "?"), "-", "what it held is not known");
        assert_eq!(tail.front(), Some(gone));
        let next = letters.as_bytes()[gone as usize];
        assert_eq!(tail.message(Some(gone), KIND, &[next]).unwrap(), Known::Published);
    }

    #[test]
    fn a_place_is_read_as_it_was_written_or_not_at_all() {
        let token: ResumeToken = "log:1,2,3,4".parse().unwrap();
        let ends = "redis 1/ticks\nshm://ticks\n";
        for log in [None, Some((0, 7)), Some((u64::MAX, u64::MAX))] {
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
