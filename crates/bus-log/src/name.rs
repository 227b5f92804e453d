//! The files of a log that is in use may be removed: by an administrator, or by systemd, which removes those of a user who
//! logs out (`RemoveIPC=yes` in `logind.conf`). Both ends then go on with files that nobody else finds. So a publisher looks
//! once a second whether its log still lies under its name, and a subscriber ten times.
//!
//! ```text
//!   publisher   name gone ──> makes the log anew, and goes on there with the next number
//!                   └─ another has made it meanwhile ──> each publish is refused, in words
//!   pusher      name gone, and messages that nobody has finished ──> each push is refused, in words, until they are
//!   subscriber  name gone ──> outage() says so ──> reads the old log to its end ──> goes on in the new one
//! ```
//!
//! A subscriber loses nothing of a publisher that goes on, unless the new ring has gone round before it looks: the old log
//! is final before the new one is there, and the numbers go on.

use tickpath_bus_api::PublishError;
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{Config, OpenError, Place, Writer};

/// A time, in milliseconds.
#[derive(Clone, Copy)]
struct Every(u64);

/// How often a publisher looks: with what [`CLOSE`] adds, once a second.
const LOOK: Every = Every(900);

/// How often a subscriber does: what its publisher writes to the new log meanwhile must stay there.
const READ_LOOK: Every = Every(100);

/// How often one looks for the new log while the name of the old one is gone, and tries to make it.
const LOOK_FOR_NEXT: Every = Every(10);

/// How many calls go by, at most, between two looks at the clock.
const MOST_CALLS: u32 = 16;

/// Calls that take less than this together need no look at the clock between them. A message of each millisecond would pay for
/// one otherwise.
const CLOSE: Every = Every(100);

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// Says when it is time to look.
struct Lookout {
    clock: HostClock,
    /// Calls until the next look at the clock, and how many that were at first.
    left: u32,
    calls: u32,
    /// When the clock was looked at, and when a look was due; ticks.
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

    /// Counts a call; true if the clock is to be asked at it.
    #[inline(always)]
    fn is_last(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// True if this time lies well behind the last look at the clock.
    #[inline(always)]
    fn is_far(&self, stamp: u64) -> bool {
        stamp.wrapping_sub(self.asked) as i64 > self.close as i64
    }

    /// Asks the clock; true if it is time to look. In ticks, for a division would stand in the way of a message.
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

    /// The clock is asked at the next call.
    fn ask_next(&mut self) {
        (self.left, self.calls) = (1, 1);
    }
}

/// The reading end's knowledge of its log's name: `T` reads the log that comes after it.
pub(crate) struct NameWatch<T> {
    lookout: Lookout,
    is_gone: bool,
    next: Option<T>,
    /// Why the next one, which is there, cannot be opened.
    refused: Option<String>,
    /// How often it has gone on in another log.
    moved: u64,
}

impl<T> NameWatch<T> {
    pub(crate) fn new(clock: HostClock) -> Self {
        Self { lookout: Lookout::new(clock), is_gone: false, next: None, refused: None, moved: 0 }
    }

    /// True if it is time for [`Self::look`]. To be asked whenever there is nothing to read.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.next.is_some() || self.lookout.is_last() && self.lookout.ask_clock(self.every())
    }

    /// Looks whether the log has its name, and for another one that has. Gives that one once nothing was left to read
    /// after it was found: a publisher that has made it writes to the old one no more.
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

    /// Looks whether the log has its name, for who does not go on yet.
    #[cold]
    pub(crate) fn note(&mut self, is_removed: impl FnOnce() -> bool) {
        self.is_gone = is_removed();
    }

    /// The longest sleep before the next look.
    pub(crate) fn sleep_ns(&mut self, timeout_ns: u64) -> u64 {
        self.lookout.ask_next();
        timeout_ns.min(self.every().0 * MS)
    }

    /// How often it has gone on in another log.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// Why nothing new may come, in words.
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

/// A writer that makes its log anew where its files are gone. What each message looks at lies in front, and is the same in a
/// rehearsal: a path that only real messages take is cold for each of them.
#[repr(C)]
pub(crate) struct NamedWriter {
    lookout: Lookout,
    pub(crate) writer: Writer,
    /// None where nobody else knows the log.
    named: Option<Box<Named>>,
}

struct Named {
    config: Config,
    /// How often it has made its log anew.
    made: u64,
    /// Why it has not, until it has.
    lost: Option<Lost>,
}

/// Why a log was not made anew.
struct Lost {
    sentence: String,
    may_pass: bool,
}

impl NamedWriter {
    /// The writer of a log that was opened so.
    pub(crate) fn new(writer: Writer, config: Config, clock: HostClock) -> Self {
        let named = Some(Box::new(Named { config, made: 0, lost: None }));
        Self { lookout: Lookout::new(clock), writer, named }
    }

    /// The writer of a log of which nobody else knows, to rehearse this one.
    pub(crate) fn rehearsing(&self, writer: Writer) -> Self {
        Self { lookout: Lookout::new(self.lookout.clock), writer, named: None }
    }

    /// How often the log was made anew.
    pub(crate) fn made(&self) -> u64 {
        self.named.as_ref().map_or(0, |named| named.made)
    }

    /// Looks whether the log still has its name, if it is time to; to be called before each publish, with its stamp, and where
    /// there is nothing to publish.
    #[inline(always)]
    pub(crate) fn look(&mut self, stamp: u64) -> Result<(), PublishError> {
        // A stamp is of now, nearly always, and is at hand; one of the past says nothing.
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
        // A fork's copy of a writer is refused by the publish itself.
        if writer.is_forked() {
            return Ok(());
        }
        match &self.lost {
            Some(lost) if !is_due => {
                // Each message is refused until it is there.
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
