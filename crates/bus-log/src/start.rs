//! Start of a subscription, and the check that the messages before it are still the same.
//!
//! ```text
//!   seen         … 7 8 9 │            the token has: next is 10, and the stamp of 9
//!   the same     … 7 8 9 │ 10 11      resumes with 10
//!   another end  … 7 a b   c  d       the disk had lost 8 and 9: reports a gap, and starts with a, the first newer one
//! ```

use tickpath_bus_api::StartPosition;
use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart, Registration};

use crate::topic_log::NAME;

/// Log that is read from the start of a subscription.
pub(crate) struct StartedReader {
    pub reader: Reader,
    /// True if it is the log that the token names, and it has not lost its end.
    pub is_same: bool,
    /// Message before the start, as the token describes it.
    pub predecessor: Option<PrecedingMessage>,
}

/// Message right before a place in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrecedingMessage {
    /// The place, as a sequence number.
    pub next: u64,
    /// Stamp in ticks of its writer's clock.
    pub stamp: u64,
    /// Time of the stamp, in nanoseconds since the Unix epoch; not 0.
    pub utc_ns: u64,
}

impl PrecedingMessage {
    /// Reads the message from the log; none if it is gone. Damage is left to be reported by the subscription.
    pub fn read_from_log(path: &LogPath, next: u64) -> Option<Self> {
        let start = ReaderStart::Sequence(next.checked_sub(1)?);
        let mut reader = Reader::open(path, start, Registration::Unregistered).ok()?;
        let stamp = match reader.next() {
            Ok(Next::Message(message)) => message.stamp,
            Ok(Next::Gap(_) | Next::Empty) | Err(_) => return None,
        };
        Self::from_token(next, stamp, reader.calibration().utc_ns_of(stamp))
    }

    /// Creates it from the values of a token, where zeros stand for none.
    pub fn from_token(next: u64, stamp: u64, utc_ns: u64) -> Option<Self> {
        (utc_ns > 0).then_some(Self { next, stamp, utc_ns })
    }
}

/// Opens a log at the start of a subscription.
pub(crate) fn open(path: &LogPath, start: StartPosition) -> Result<StartedReader, LogOpenError> {
    let open = |start| Reader::open(path, start, Registration::Registered);
    let begun = |reader, is_same| StartedReader { reader, is_same, predecessor: None };
    match start {
        StartPosition::Now => Ok(begun(open(ReaderStart::Now)?, true)),
        StartPosition::Oldest => Ok(begun(open(ReaderStart::Oldest)?, true)),
        StartPosition::Sequence(sequence) => Ok(begun(open(ReaderStart::Sequence(sequence))?, true)),
        StartPosition::After(token) => {
            let ([next, identity, stamp, utc_ns], _) = token.read(NAME).expect("the token was checked at the open");
            let newest = open(ReaderStart::Now)?;
            if newest.identity() != identity {
                return Ok(begun(open(ReaderStart::Oldest)?, false));
            }
            let predecessor = PrecedingMessage::from_token(next, stamp, utc_ns);
            // Old messages are recycled: a message that is gone was the same.
            let is_unchanged = || PrecedingMessage::read_from_log(path, next).is_none_or(|found| found.stamp == stamp);
            if newest.sequence() >= next && (predecessor.is_none() || is_unchanged()) {
                return Ok(StartedReader { predecessor, ..begun(open(ReaderStart::Sequence(next))?, true) });
            }
            // A disk that lost its last messages has lost what was seen; messages written since are newer than that.
            let mut oldest = open(ReaderStart::Oldest)?;
            let first = first_newer(&mut oldest, stamp, utc_ns).unwrap_or(newest.sequence());
            Ok(begun(open(ReaderStart::Sequence(first))?, false))
        }
    }
}

/// Returns the sequence number of the first message stamped after the given one: at a later time, or by the clock of a
/// later boot, which may have been set back.
fn first_newer(reader: &mut Reader, stamp: u64, utc_ns: u64) -> Option<u64> {
    let mut was_same_clock = false;
    loop {
        let (sequence, stamped) = match reader.next() {
            Ok(Next::Message(message)) => (message.sequence, message.stamp),
            Ok(Next::Gap(_)) => continue,
            Ok(Next::Empty) | Err(_) => return None,
        };
        let clock = reader.calibration();
        let is_same_clock = clock.utc_ns_of(stamp) == utc_ns;
        if clock.utc_ns_of(stamped) > utc_ns || was_same_clock && !is_same_clock {
            return Some(sequence);
        }
        was_same_clock = is_same_clock;
    }
}
