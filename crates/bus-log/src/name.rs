//! Watch over the name of a log in use, whose files may be removed: by an administrator, or by systemd, which removes
//! those of a user that logs out (`RemoveIPC=yes` in `logind.conf`). Both ends would then use files that no other
//! process finds. So a publisher checks once a second that its log has its name, a subscriber ten times.
//!
//! ```text
//!   publisher   name gone ──> makes the log again, and continues there with the next number
//!                   └─ another has made it meanwhile ──> each publish fails, with the reason
//!   pusher      name gone, and unfinished messages ────> each push fails, with the reason, until they are finished
//!   subscriber  name gone ──> outage() reports it ──> reads the old log to its end ──> continues in the new one
//! ```
//!
//! A subscriber loses nothing of a publisher that continues, unless the new ring wraps before the subscriber checks:
//! the old log is final before the new one exists, and the sequence numbers continue.

use tickpath_bus_api::PublishError;
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{Config, OpenError, Place, Writer};

/// Interval in milliseconds.
#[derive(Clone, Copy)]
struct Every(u64);

/// Interval of a publisher's checks: once a second, with the time that [`CLOSE`] adds.
const LOOK: Every = Every(900);

/// Interval of a subscriber's checks: messages that the publisher writes to the new log meanwhile must stay there.
const READ_LOOK: Every = Every(100);

/// Interval of attempts to find or make the new log, while the name of the old one is gone.
const LOOK_FOR_NEXT: Every = Every(10);

/// Max number of calls between two reads of the clock.
const MOST_CALLS: u32 = 16;

/// Calls that together take less than this need no read of the clock between them. Otherwise one message a millisecond
/// would pay for a read of its own.
const CLOSE: Every = Every(100);

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// Schedule of the checks of a log's name.
struct Lookout {
    clock: HostClock,
    /// Calls until the next read of the clock, and the number that it started from.
    left: u32,
    calls: u32,
    /// Times of the last read of the clock and of the last due check, in ticks.
    asked: u64,
    looked: u64,
    /// A millisecond, and [`CLOSE`], in ticks.
    ms: u64,
    close: u64,
}

impl Lookout {
    fn new(clock: HostClock) -> Self {
        let now = clock.ticks();
        let ms = clock.calibration().ticks_of_ns(MS);
        Self { clock, left: 1, calls: 1, asked: now, looked: now, ms, close: CLOSE.0 * ms }
    }

    /// Counts a call; returns true if the clock must be read now.
    #[inline(always)]
    fn is_last(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Returns true if this time lies well after the last read of the clock.
    #[inline(always)]
    fn is_far(&self, stamp: u64) -> bool {
        stamp.wrapping_sub(self.asked) as i64 > self.close as i64
    }

    /// Reads the clock; returns true if a check is due. Compares ticks, because a division would delay a message.
    #[cold]
    #[inline(never)]
    fn ask_clock(&mut self, every: Every) -> bool {
        let now = self.clock.ticks();
        let since = |then: u64| now.wrapping_sub(then);
        let (are_close, is_due) = (since(self.asked) < self.close, since(self.looked) >= every.0 * self.ms);
        self.calls = if are_close { (2 * self.calls).min(MOST_CALLS) } else { 1 };
        self.left = self.calls;
        self.asked = now;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// Reads the clock at the next call.
    fn ask_next(&mut self) {
        (self.left, self.calls) = (1, 1);
    }
}

/// State of the reading end: whether its log still has its name, and the log that follows, read by `T`.
pub(crate) struct NameWatch<T> {
    lookout: Lookout,
    is_gone: bool,
    next: Option<T>,
    /// Reason why the next log, which exists, cannot be opened.
    refused: Option<String>,
    /// Number of times that the reader moved on to another log.
    moved: u64,
}

impl<T> NameWatch<T> {
    pub(crate) fn new(clock: HostClock) -> Self {
        Self { lookout: Lookout::new(clock), is_gone: false, next: None, refused: None, moved: 0 }
    }

    /// Returns true if [`Self::look`] is due. Must be called whenever there is nothing to read.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.next.is_some() || self.lookout.is_last() && self.lookout.ask_clock(self.every())
    }

    /// Checks whether the log still has its name, and looks for its successor. Returns the successor one call after it
    /// was found, so once nothing was left to read: a publisher that has made it writes to the old log no more.
    #[cold]
    pub(crate) fn look(
        &mut self,
        is_removed: impl FnOnce() -> bool,
        open: impl FnOnce() -> Result<T, OpenError>,
    ) -> Option<T> {
        if let Some(next) = self.next.take() {
            self.is_gone = false;
            self.moved += 1;
            return Some(next);
        }
        self.is_gone = is_removed();
        self.refused = None;
        if self.is_gone {
            match open() {
                Ok(next) => self.next = Some(next),
                Err(OpenError::NotFound(_) | OpenError::NoQueue(_)) => {}
                Err(refused) => self.refused = Some(refused.to_string()),
            }
        }
        None
    }

    /// Checks whether the log still has its name, for a reader that may not move on yet.
    #[cold]
    pub(crate) fn note(&mut self, is_removed: impl FnOnce() -> bool) {
        self.is_gone = is_removed();
    }

    /// Limits a sleep to the time until the next check.
    pub(crate) fn sleep_ns(&mut self, timeout_ns: u64) -> u64 {
        self.lookout.ask_next();
        timeout_ns.min(self.every().0 * MS)
    }

    /// Returns the number of times that the reader moved on to another log.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// Returns the reason why no new messages may come, as a sentence.
    pub(crate) fn outage(&self, place: &Place) -> Option<String> {
        let next = match &self.refused {
            Some(refused) => format!("the new ones cannot be used: {refused}"),
            None => "the new ones are looked for".to_owned(),
        };
        self.is_gone.then(|| format!("{}; what its publisher still writes there arrives, and {next}", gone(place)))
    }

    fn every(&self) -> Every {
        if self.is_gone { LOOK_FOR_NEXT } else { READ_LOOK }
    }
}

fn gone(place: &Place) -> String {
    let why = match place.is_shared_memory() {
        true => " (systemd removes them when their user logs out, unless RemoveIPC=no; see 'tickpath doctor')",
        false => "",
    };
    format!("the files of {place} were removed while they were in use{why}")
}

/// Writer that makes its log again where its files are gone. The fields that each message reads lie in front, and are
/// the same in a warm-up run: a path that only real messages take is cold for each of them.
#[repr(C)]
pub(crate) struct NamedWriter {
    lookout: Lookout,
    pub(crate) writer: Writer,
    /// None for a log that only this process knows.
    named: Option<Box<Named>>,
}

struct Named {
    config: Config,
    /// Number of times that the log was made again.
    made: u64,
    /// Reason why the log could not be made again; none once it is.
    lost: Option<Lost>,
}

/// Reason why a log was not made again.
struct Lost {
    sentence: String,
    may_pass: bool,
}

impl NamedWriter {
    /// Creates the writer of a log that was opened with `config`.
    pub(crate) fn new(writer: Writer, config: Config, clock: HostClock) -> Self {
        let named = Some(Box::new(Named { config, made: 0, lost: None }));
        Self { lookout: Lookout::new(clock), writer, named }
    }

    /// Creates the writer of a private log, for warm-up runs of this one.
    pub(crate) fn rehearsing(&self, writer: Writer) -> Self {
        Self { lookout: Lookout::new(self.lookout.clock), writer, named: None }
    }

    /// Returns the number of times that the log was made again.
    pub(crate) fn made(&self) -> u64 {
        self.named.as_ref().map_or(0, |named| named.made)
    }

    /// Checks whether the log still has its name, if that is due. Must be called before each publish, with its stamp,
    /// and while there is nothing to publish.
    #[inline(always)]
    pub(crate) fn look(&mut self, stamp: u64) -> Result<(), PublishError> {
        // A stamp is nearly always of now, and costs no read of the clock; one of the past means no check.
        if self.lookout.is_last() || self.lookout.is_far(stamp) { self.look_if_due() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn look_if_due(&mut self) -> Result<(), PublishError> {
        let Self { lookout, writer, named } = self;
        let every = if named.as_ref().is_some_and(|named| named.lost.is_some()) { LOOK_FOR_NEXT } else { LOOK };
        let is_due = lookout.ask_clock(every);
        named.as_mut().map_or(Ok(()), |named| named.look(lookout, writer, is_due))
    }
}

impl Named {
    fn look(&mut self, lookout: &mut Lookout, writer: &mut Writer, is_due: bool) -> Result<(), PublishError> {
        // The publish itself rejects a fork's copy of a writer.
        if writer.is_forked() {
            return Ok(());
        }
        match &self.lost {
            Some(lost) if !is_due => {
                // Each message is rejected until the log is made again.
                lookout.ask_next();
                return Err(lost.told());
            }
            Some(_) => {}
            None if is_due && writer.is_removed() => {}
            None => return Ok(()),
        }
        let place = &self.config.place;
        let unfinished = writer.unfinished();
        let renewed = match unfinished {
            0 => writer.renew(&self.config, lookout.clock.calibration()),
            _ => Ok(()),
        };
        let lost = match renewed {
            Ok(()) if unfinished == 0 => {
                (self.made, self.lost) = (self.made + 1, None);
                return Ok(());
            }
            Ok(()) => Lost {
                sentence: format!(
                    "{}: {unfinished} messages wait there for those who had it open to finish them. Open another pusher to go \
                     on without these",
                    gone(place)
                ),
                may_pass: true,
            },
            Err(e) => Lost {
                sentence: format!("{}, and this publisher cannot make them anew: {e}", gone(place)),
                may_pass: !matches!(e, OpenError::HasWriter { .. }),
            },
        };
        lookout.ask_next();
        let told = lost.told();
        self.lost = Some(lost);
        Err(told)
    }
}

impl Lost {
    fn told(&self) -> PublishError {
        match self.may_pass {
            true => PublishError::Unavailable(self.sentence.clone()),
            false => PublishError::Other(self.sentence.clone().into()),
        }
    }
}
