//! Messages that a carrier has published into a log after its saved position, and that come again.

use tickpath_bus::{Gap, Message};
use tickpath_log::{Next, Place, ReadError, Reader, Registration};

use crate::{Outside, RelayError};

/// Incoming messages, compared with those published already.
pub(crate) struct Incoming {
    pub tail: Tail,
    /// Name of the target in reports.
    pub target: String,
    /// Id of this host's clock.
    pub clock: u64,
    /// The source is a log, whose stamps are of its own host's clock, whatever origin its messages get.
    pub is_from_log: bool,
}

impl Incoming {
    /// Returns an incoming message, with the origin that its stamp belongs to; `None` if it is published already.
    pub fn fresh<'m>(&mut self, message: &Message<'m>, is_foreign: bool) -> Result<Option<Message<'m>>, ReadError> {
        let timed = Message { origin: message.origin.filter(|_| !self.is_from_log), ..*message };
        // The stamp of another program's message is its time of arrival, which is a different time now.
        let stamp = timed.is_of_clock(self.clock).then_some(timed.stamp).filter(|_| !is_foreign);
        let is_published = self.tail.message(stamp, timed.kind, timed.payload)?;
        Ok(Some(timed).filter(|_| !is_published))
    }

    /// Records that a fresh message is published. If the tail holds more, the log has other messages than the source,
    /// which is reported.
    pub fn passed(&mut self, outside: &Outside<'_>) {
        if self.tail.records.is_some() && std::mem::take(&mut self.tail).front.is_some() {
            (outside.tell)(&format!(
                "{} holds other messages behind the place that was kept than those that come: some may be there twice; \
                 to begin anew, remove the log and what --resume keeps",
                self.target
            ));
        }
    }
}

/// Messages of a log that may come again, oldest first.
#[derive(Default)]
pub(crate) struct Tail {
    records: Option<Records>,
    /// Oldest message that has not come again.
    front: Option<Record>,
    /// Number of messages reported as lost directly before the front.
    told: u64,
}

/// Log that a tail is read from.
struct Records {
    reader: Reader,
    /// Sequence number after the end of the tail.
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
    /// Number of messages that the log has lost since, with unknown content.
    Gone(u64),
}

impl Tail {
    /// Opens the messages of a log from `next` to `end`.
    pub fn open(log: &Place, next: u64, end: u64) -> Result<Self, RelayError> {
        let reader = Reader::open(log, tickpath_log::Start::Sequence(next), Registration::Unregistered)?;
        let mut tail = Self { records: Some(Records { reader, end }), front: None, told: 0 };
        tail.advance()?;
        Ok(tail)
    }

    /// Returns true if the log has lost the next messages of the tail; [`Source`](crate::source::Source) determines
    /// whether this carrier published them.
    pub fn is_lapped(&self) -> bool {
        matches!(self.front, Some(Record::Gone(_)))
    }

    /// Opens the tail again, from the oldest message that has not come again.
    pub fn again(&self) -> Result<Self, RelayError> {
        match (&self.records, self.front()) {
            (Some(records), Some(front)) => Self::open(records.reader.place(), front, records.end),
            _ => Ok(Self::default()),
        }
    }

    /// Returns the sequence number of the oldest message that has not come again; `None` if all have.
    pub fn front(&self) -> Option<u64> {
        let (front, records) = (self.front.as_ref()?, self.records.as_ref()?);
        let behind = records.reader.next_told();
        Some(behind - if let Record::Gone(left) = front { *left } else { 1 })
    }

    /// Compares an incoming message with the front, and advances and returns true if it is there. Without a stamp, as
    /// for another host's clock, only kind and payload are compared.
    fn message(&mut self, stamp: Option<u64>, kind: u8, payload: &[u8]) -> Result<bool, ReadError> {
        while let Some(Record::Gap(gap)) = self.front {
            if let Gap::Missed(missed) = gap {
                self.told = self.told.saturating_add(missed);
            }
            self.advance()?;
        }
        let is_same = match &mut self.front {
            None => false,
            Some(Record::Gone(left)) if *left > 1 => {
                *left -= 1;
                self.told = 0;
                return Ok(true);
            }
            Some(Record::Message { stamp: held_at, kind: held_as, payload: held }) => {
                *held_as == kind && held == payload && stamp.is_none_or(|stamp| stamp == *held_at)
            }
            Some(_) => true,
        };
        if is_same {
            self.told = 0;
            self.advance()?;
        }
        Ok(is_same)
    }

    /// Returns the part of an incoming loss that is not published yet, neither as a gap message nor as the messages
    /// that are lost now. A message that is not there and cannot be published counts as a loss too; its gap message may
    /// precede the front.
    pub fn gap(&mut self, gap: Gap) -> Result<Option<Gap>, ReadError> {
        let Gap::Missed(mut left) = gap else {
            if self.front == Some(Record::Gap(gap)) {
                self.advance()?;
                return Ok(None);
            }
            // Messages that the log has lost too cannot be compared with those that come next.
            while let Some(Record::Gone(_)) = self.front {
                self.advance()?;
            }
            return Ok(Some(gap));
        };
        let before = left.min(self.told);
        left -= before;
        self.told -= before;
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

#[cfg(test)]
mod tests {
    use tickpath_clock::Calibration;
    use tickpath_log::{Config, Policy, Writer};

    use super::*;

    const KIND: u8 = 16;

    /// Returns the tail of a log that holds these: a letter is a message, a digit a loss of that many.
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

    /// Returns for each incoming item '-' if it is published, 'n' if it is new, 'd' if it differs. For a loss, and for
    /// a capital, a message that is too long to be published, the result is the part that is left.
    fn told(tail: &mut Tail, coming: &str) -> String {
        let mut told = String::new();
        for one in coming.chars() {
            told.push(match one.to_digit(10) {
                Some(0) => lost(tail, Gap::Reconnected),
                Some(missed) => lost(tail, Gap::Missed(missed.into())),
                None if tail.message(None, KIND, one.to_string().as_bytes()).unwrap() => '-',
                None if one.is_uppercase() => lost(tail, Gap::Missed(1)),
                None => match std::mem::take(tail).front {
                    None => 'n',
                    Some(_) => 'd',
                },
            });
        }
        told
    }

    fn lost(tail: &mut Tail, gap: Gap) -> char {
        match tail.gap(gap).unwrap() {
            None => '-',
            Some(Gap::Reconnected) => '0',
            Some(Gap::Missed(left)) => char::from_digit(left as u32, 10).unwrap(),
        }
    }

    #[test]
    fn what_was_published_is_known_and_what_comes_behind_is_new() {
        for (held, coming, expected) in [
            ("ab", "abc", "--n"),
            ("a2b", "a2bb2", "---n2"),
            // A loss reported on one side only hides no message.
            ("0a", "a", "-"),
            ("a", "0a", "0-"),
            ("a2b", "ab", "--"),
            // Messages that are lost now were published before, as far as they go.
            ("abc", "2c", "--"),
            ("abc", "3d", "-n"),
            ("abc", "5f", "2n"),
            ("a2b", "4e", "-n"),
            // A message that was too long to be published was reported as lost, and is again.
            ("a1b", "aXb", "---"),
            ("a11", "aXYc", "---n"),
            ("a2b", "aX1bY", "----1"),
            ("a", "aXY", "-11"),
            ("a1", "acX", "-n1"),
            // Messages of another publisher end the comparison.
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
        assert!(!tail.message(Some(1), KIND, b"a").unwrap());
        assert!(tail.message(Some(0), KIND, b"a").unwrap());
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
        assert!(tail.message(Some(gone), KIND, &[next]).unwrap());
    }
}
