//! Messages that a carrier has published into a log after its saved position, and that come again.

use tickpath_bus::message_id::clock_id;
use tickpath_bus::{Gap, Message};
use tickpath_clock::Clock;
use tickpath_log::{LogPath, LogReadError, Next, Reader, Registration};

use crate::{RelayContext, RelayError};

/// Incoming messages, compared with those published already.
pub(crate) struct IncomingFilter {
    pub tail: PublishedTail,
    /// Name of the target in reports.
    pub target: String,
    /// Id of this host's clock.
    pub clock: u64,
    /// The source is a log, whose stamps are of its own host's clock, whatever origin its messages get.
    pub is_from_log: bool,
}

impl IncomingFilter {
    pub fn new(tail: PublishedTail, target: String, is_from_log: bool, context: &RelayContext<'_>) -> Self {
        Self { tail, target, clock: clock_id(context.clock.calibration()), is_from_log }
    }

    /// Returns an incoming message, with the origin that its stamp belongs to; `None` if it is published already.
    pub fn filter_published<'m>(
        &mut self,
        message: &Message<'m>,
        is_foreign: bool,
    ) -> Result<Option<Message<'m>>, LogReadError> {
        let timed = Message { id: message.id.filter(|_| !self.is_from_log), ..*message };
        // The stamp of another program's message is its time of arrival, which is a different time now.
        let stamp = timed.is_of_clock(self.clock).then_some(timed.stamp).filter(|_| !is_foreign);
        let is_published = self.tail.match_message(stamp, timed.kind, timed.payload)?;
        Ok(Some(timed).filter(|_| !is_published))
    }

    /// Records that a fresh message is published. If the tail holds more, the log has other messages than the source,
    /// which is reported.
    pub fn record_published(&mut self, context: &RelayContext<'_>) {
        if self.tail.log.is_some() && std::mem::take(&mut self.tail).front.is_some() {
            (context.report)(&format!(
                "{} holds other messages after the saved position than those that arrive, so it may hold duplicates; \
                 to start anew, remove the log and the file in the --resume folder",
                self.target
            ));
        }
    }
}

/// Messages of a log that may come again, oldest first.
#[derive(Default)]
pub(crate) struct PublishedTail {
    log: Option<TailLog>,
    /// Oldest message that has not come again.
    front: Option<TailRecord>,
    /// Number of messages reported as lost directly before the front.
    reported_lost: u64,
}

struct TailLog {
    reader: Reader,
    /// Sequence number after the end of the tail.
    end: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TailRecord {
    Message {
        stamp: u64,
        kind: u8,
        payload: Vec<u8>,
    },
    Gap(Gap),
    /// Number of messages that the log has lost since, with unknown content.
    Overwritten(u64),
}

impl PublishedTail {
    /// Opens the messages of a log from `next` to `end`.
    pub fn open(log: &LogPath, next: u64, end: u64) -> Result<Self, RelayError> {
        let reader = Reader::open(log, tickpath_log::ReaderStart::Sequence(next), Registration::Unregistered)?;
        let mut tail = Self { log: Some(TailLog { reader, end }), front: None, reported_lost: 0 };
        tail.advance()?;
        Ok(tail)
    }

    /// Returns true if the log has lost the next messages of the tail; [`SourceTopic`](crate::source::SourceTopic)
    /// determines whether this carrier published them.
    pub fn is_overwritten(&self) -> bool {
        matches!(self.front, Some(TailRecord::Overwritten(_)))
    }

    /// Opens the tail again, from the oldest message that has not come again.
    pub fn reopen(&self) -> Result<Self, RelayError> {
        match (&self.log, self.front_sequence()) {
            (Some(records), Some(front)) => Self::open(records.reader.path(), front, records.end),
            _ => Ok(Self::default()),
        }
    }

    /// Returns the sequence number of the oldest message that has not come again; `None` if all have.
    pub fn front_sequence(&self) -> Option<u64> {
        let (front, records) = (self.front.as_ref()?, self.log.as_ref()?);
        let front_length = if let TailRecord::Overwritten(left) = front { *left } else { 1 };
        Some(records.reader.next_reported() - front_length)
    }

    /// Compares an incoming message with the front, and advances and returns true if it is there. Without a stamp, as
    /// for another host's clock, only kind and payload are compared.
    fn match_message(&mut self, stamp: Option<u64>, kind: u8, payload: &[u8]) -> Result<bool, LogReadError> {
        while let Some(TailRecord::Gap(gap)) = self.front {
            if let Gap::Missed(missed) = gap {
                self.reported_lost = self.reported_lost.saturating_add(missed);
            }
            self.advance()?;
        }
        let is_same = match &mut self.front {
            None => false,
            Some(TailRecord::Overwritten(left)) if *left > 1 => {
                *left -= 1;
                self.reported_lost = 0;
                return Ok(true);
            }
            Some(TailRecord::Message { stamp: held_stamp, kind: held_kind, payload: held }) => {
                *held_kind == kind && held == payload && stamp.is_none_or(|stamp| stamp == *held_stamp)
            }
            Some(_) => true,
        };
        if is_same {
            self.reported_lost = 0;
            self.advance()?;
        }
        Ok(is_same)
    }

    /// Returns the part of an incoming loss that is not published yet, neither as a gap message nor as the messages
    /// that are lost now. A message that is not there and cannot be published counts as a loss too; its gap message may
    /// precede the front.
    pub fn unpublished_gap(&mut self, gap: Gap) -> Result<Option<Gap>, LogReadError> {
        let Gap::Missed(mut left) = gap else {
            if self.front == Some(TailRecord::Gap(gap)) {
                self.advance()?;
                return Ok(None);
            }
            // Messages that the log has lost too cannot be compared with those that come next.
            while let Some(TailRecord::Overwritten(_)) = self.front {
                self.advance()?;
            }
            return Ok(Some(gap));
        };
        let before = left.min(self.reported_lost);
        left -= before;
        self.reported_lost -= before;
        while left > 0 {
            match &mut self.front {
                None => return Ok(Some(Gap::Missed(left))),
                Some(TailRecord::Overwritten(lost)) if *lost > left => {
                    *lost -= left;
                    return Ok(None);
                }
                Some(TailRecord::Overwritten(lost)) => left -= *lost,
                Some(TailRecord::Gap(Gap::Missed(reported))) => left = left.saturating_sub(*reported),
                Some(TailRecord::Gap(Gap::Reconnected)) => {}
                Some(TailRecord::Message { .. }) => left -= 1,
            }
            self.advance()?;
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<(), LogReadError> {
        self.front = None;
        let Some(TailLog { reader, end }) = &mut self.log else { return Ok(()) };
        if reader.next_reported() >= *end {
            return Ok(());
        }
        self.front = match reader.next()? {
            Next::Message(message) => Some(match Gap::decode(message.kind, message.payload) {
                Some(gap) => TailRecord::Gap(gap),
                None => {
                    TailRecord::Message { stamp: message.stamp, kind: message.kind, payload: message.payload.to_vec() }
                }
            }),
            Next::Gap(missed) => Some(TailRecord::Overwritten(missed)),
            Next::Empty => None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickpath_clock::Calibration;
    use tickpath_log::{Config, OverflowPolicy, Writer};

    use super::*;

    const KIND: u8 = 16;

    /// Returns the tail of a log that holds these: a letter is a message, a digit a loss of that many.
    fn tail(policy: OverflowPolicy, records: &str) -> (PublishedTail, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = LogPath::folder(folder.path().join("log"));
        let config = Config::topic(path.clone(), policy);
        let mut writer = Writer::open(&config, &Calibration::nanoseconds()).unwrap();
        for (stamp, record) in (0..).zip(records.chars()) {
            let published = match record.to_digit(10) {
                Some(0) => writer.publish(0, tickpath_bus::GAP_KIND, &Gap::Reconnected.encode()),
                Some(missed) => writer.publish(0, tickpath_bus::GAP_KIND, &Gap::Missed(missed.into()).encode()),
                None => writer.publish(stamp, KIND, record.to_string().as_bytes()),
            };
            published.unwrap();
        }
        (PublishedTail::open(&path, 0, records.len() as u64).unwrap(), folder)
    }

    /// Returns for each incoming item '-' if it is published, 'n' if it is new, 'd' if it differs. For a loss, and for
    /// a capital, a message that is too long to be published, the result is the part that is left.
    fn compare(tail: &mut PublishedTail, incoming: &str) -> String {
        let compared = incoming.chars().map(|item| match item.to_digit(10) {
            Some(0) => lost(tail, Gap::Reconnected),
            Some(missed) => lost(tail, Gap::Missed(missed.into())),
            None if tail.match_message(None, KIND, item.to_string().as_bytes()).unwrap() => '-',
            None if item.is_uppercase() => lost(tail, Gap::Missed(1)),
            None if std::mem::take(tail).front.is_none() => 'n',
            None => 'd',
        });
        compared.collect()
    }

    fn lost(tail: &mut PublishedTail, gap: Gap) -> char {
        match tail.unpublished_gap(gap).unwrap() {
            None => '-',
            Some(Gap::Reconnected) => '0',
            Some(Gap::Missed(left)) => char::from_digit(left as u32, 10).unwrap(),
        }
    }

    #[test]
    fn a_tail_recognises_published_messages_and_passes_new_ones() {
        for (held, incoming, expected) in [
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
            let (mut tail, _folder) = tail(OverflowPolicy::Keep, held);
            assert_eq!(compare(&mut tail, incoming), expected, "{incoming} after {held}");
        }
    }

    #[test]
    fn the_front_is_the_oldest_message_that_has_not_arrived_again() {
        let (mut tail, _folder) = tail(OverflowPolicy::Keep, "abc");
        for expected in [Some(0), Some(1), Some(2), None] {
            assert_eq!(tail.front_sequence(), expected);
            let next = expected.map_or('d', |sequence| char::from(b'a' + sequence as u8));
            compare(&mut tail, &next.to_string());
        }
        assert_eq!(PublishedTail::default().front_sequence(), None);
    }

    #[test]
    fn messages_with_different_stamps_differ() {
        let (mut tail, _folder) = tail(OverflowPolicy::Keep, "a");
        assert!(!tail.match_message(Some(1), KIND, b"a").unwrap());
        assert!(tail.match_message(Some(0), KIND, b"a").unwrap());
    }

    #[test]
    fn a_tail_counts_the_messages_that_the_log_has_lost() {
        let letters = "abcdefghij".repeat(8_000);
        let (mut tail, _folder) = tail(OverflowPolicy::Overwrite, &letters);
        let Some(TailRecord::Overwritten(lost)) = tail.front else {
            panic!("a ring of this size holds less: {:?}", tail.front)
        };
        assert_eq!(tail.front_sequence(), Some(0));
        assert_eq!(tail.unpublished_gap(Gap::Missed(lost - 1)).unwrap(), None);
        assert_eq!(tail.front_sequence(), Some(lost - 1));
        assert_eq!(compare(&mut tail, "?"), "-", "the content of a lost message is unknown");
        assert_eq!(tail.front_sequence(), Some(lost));
        let next = letters.as_bytes()[lost as usize];
        assert!(tail.match_message(Some(lost), KIND, &[next]).unwrap());
    }
}
