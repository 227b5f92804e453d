//! The files of a log that is in use may be removed: by an administrator, or by systemd, which removes those of a user who
//! logs out (`RemoveIPC=yes` in `logind.conf`). Both ends then go on with files that nobody else finds. So each looks once
//! a second whether its log still lies under its name.
//!
//! ```text
//!   publisher   name gone ──> makes the log anew, and goes on there with the next number
//!                   └─ another has made it meanwhile ──> each publish is refused, in words
//!   subscriber  name gone ──> outage() says so ──> reads the old log to its end ──> goes on in the new one
//! ```
//!
//! A subscriber loses nothing of a publisher that goes on: the old log is final before the new one is there, and the
//! numbers go on.

use tickpath_bus_api::PublishError;
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{Config, OpenError, Place, Writer};

/// How often one looks, in nanoseconds.
const LOOK_NS: u64 = 1_000_000_000;

/// How often one looks for the new log while the name of the old one is gone.
const LOOK_FOR_NEXT_NS: u64 = 10_000_000;

/// How many calls go by, at most, between two looks at the clock.
const MOST_CALLS: u32 = 1024;

/// Calls that take less than this together need no look at the clock between them.
const CLOSE_NS: u64 = 1_000_000;

/// Says once a second that it is time to look.
struct Lookout {
    clock: HostClock,
    /// Calls until the next look at the clock, and how many that were at first.
    left: u32,
    calls: u32,
    /// When the clock was looked at, and when a look was due; ticks.
    asked: u64,
    looked: u64,
}

impl Lookout {
    fn new(clock: HostClock) -> Self {
        let now = clock.ticks();
        Self { clock, left: 1, calls: 1, asked: now, looked: now }
    }

    /// True if it is time to look. To be asked at each call.
    #[inline(always)]
    fn is_due(&mut self, every_ns: u64) -> bool {
        self.left -= 1;
        self.left == 0 && self.ask_clock(every_ns)
    }

    #[cold]
    #[inline(never)]
    fn ask_clock(&mut self, every_ns: u64) -> bool {
        let now = self.clock.ticks();
        let since = |then: u64| self.clock.calibration().ns_between(then, now) as u64;
        let (are_close, is_due) = (since(self.asked) < CLOSE_NS, since(self.looked) >= every_ns);
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

/// What the reading end of a log knows of its name: `T` reads the log that comes after it.
pub(crate) struct NameWatch<T> {
    lookout: Lookout,
    is_gone: bool,
    next: Option<T>,
    /// How often it has gone on in another log.
    moved: u64,
}

impl<T> NameWatch<T> {
    pub(crate) fn new(clock: HostClock) -> Self {
        Self { lookout: Lookout::new(clock), is_gone: false, next: None, moved: 0 }
    }

    /// True if it is time for [`Self::look`]. To be asked whenever there is nothing to read.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.next.is_some() || self.lookout.is_due(self.every_ns())
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
        if self.is_gone {
            // One that cannot be opened is looked at again.
            self.next = open().ok();
        }
        None
    }

    /// The longest sleep before the next look.
    pub(crate) fn sleep_ns(&mut self, timeout_ns: u64) -> u64 {
        self.lookout.ask_next();
        timeout_ns.min(self.every_ns())
    }

    /// How often it has gone on in another log.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// Why nothing new may come, in words.
    pub(crate) fn outage(&self, place: &Place) -> Option<String> {
        self.is_gone.then(|| {
            format!("{}; what its publisher still writes there arrives, and the new ones are looked for", gone(place))
        })
    }

    fn every_ns(&self) -> u64 {
        if self.is_gone { LOOK_FOR_NEXT_NS } else { LOOK_NS }
    }
}

fn gone(place: &Place) -> String {
    let why = match place.is_shared_memory() {
        true => " (systemd removes them when their user logs out, unless RemoveIPC=no; see 'tickpath doctor')",
        false => "",
    };
    format!("the files of {place} were removed while they were in use{why}")
}

/// A writer that makes its log anew where its files are gone.
pub(crate) struct NamedWriter {
    pub(crate) writer: Writer,
    /// None where nobody else knows the log.
    named: Option<Named>,
}

struct Named {
    config: Config,
    clock: HostClock,
    lookout: Lookout,
    /// How often it has made its log anew.
    made: u64,
    /// It could not, and tries again with each message.
    is_lost: bool,
}

impl NamedWriter {
    /// The writer of a log that was opened so.
    pub(crate) fn new(writer: Writer, config: Config, clock: HostClock) -> Self {
        let named = Some(Named { config, clock, lookout: Lookout::new(clock), made: 0, is_lost: false });
        Self { writer, named }
    }

    pub(crate) fn unnamed(writer: Writer) -> Self {
        Self { writer, named: None }
    }

    /// How often the log was made anew.
    pub(crate) fn made(&self) -> u64 {
        self.named.as_ref().map_or(0, |named| named.made)
    }

    /// Looks whether the log still has its name, if it is time to; to be called before each publish, and where there is
    /// nothing to publish.
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Result<(), PublishError> {
        match &mut self.named {
            Some(named) if named.lookout.left == 1 => named.look_if_due(&mut self.writer),
            Some(named) => {
                named.lookout.left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Named {
    #[cold]
    #[inline(never)]
    fn look_if_due(&mut self, writer: &mut Writer) -> Result<(), PublishError> {
        let is_gone = self.lookout.is_due(LOOK_NS) && writer.is_removed();
        if !is_gone && !self.is_lost {
            return Ok(());
        }
        match writer.renew(&self.config, self.clock.calibration()) {
            Ok(()) => {
                (self.made, self.is_lost) = (self.made + 1, false);
                Ok(())
            }
            Err(e) => {
                self.is_lost = true;
                self.lookout.ask_next();
                let lost = format!("{}, and this publisher cannot make them anew: {e}", gone(&self.config.place));
                match e {
                    OpenError::HasWriter { .. } => Err(PublishError::Other(lost.into())),
                    _ => Err(PublishError::Unavailable(lost)),
                }
            }
        }
    }
}
