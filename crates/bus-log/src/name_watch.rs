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
use tickpath_log::{Config, LogOpenError, LogPath, Writer};

/// Interval in milliseconds.
#[derive(Clone, Copy)]
struct CheckInterval(u64);

/// Interval of a publisher's checks: once a second, with the time that [`FREQUENT_CALLS`] adds.
const PUBLISHER_INTERVAL: CheckInterval = CheckInterval(900);
/// Interval of a subscriber's checks: messages that the publisher writes to the new log meanwhile must stay there.
const READER_INTERVAL: CheckInterval = CheckInterval(100);
/// Interval of attempts to find or make the new log, while the name of the old one is gone.
const SUCCESSOR_INTERVAL: CheckInterval = CheckInterval(10);
/// Max number of calls between two reads of the clock.
const MAX_CALLS: u32 = 16;
/// Calls that together take less than this need no read of the clock between them. Otherwise one message a millisecond
/// would pay for a read of its own.
const FREQUENT_CALLS: CheckInterval = CheckInterval(100);
/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// Schedule of the checks of a log's name.
struct NameCheckSchedule {
    clock: HostClock,
    /// Calls until the next read of the clock, and the number that it started from.
    calls_left: u32,
    calls: u32,
    /// Times of the last read of the clock and of the last due check, in ticks.
    clock_read_at: u64,
    checked_at: u64,
    /// A millisecond, and [`FREQUENT_CALLS`], in ticks.
    ms: u64,
    frequent_calls: u64,
}

impl NameCheckSchedule {
    fn new(clock: HostClock) -> Self {
        let now = clock.ticks();
        let ms = clock.calibration().ticks_of_ns(MS);
        let frequent_calls = FREQUENT_CALLS.0 * ms;
        Self { clock, calls_left: 1, calls: 1, clock_read_at: now, checked_at: now, ms, frequent_calls }
    }

    /// Counts a call; returns true if the clock must be read now.
    #[inline(always)]
    fn counts_to_clock_read(&mut self) -> bool {
        self.calls_left -= 1;
        self.calls_left == 0
    }

    /// Returns true if this time lies well after the last read of the clock.
    #[inline(always)]
    fn is_past_clock_read(&self, stamp: u64) -> bool {
        stamp.wrapping_sub(self.clock_read_at) as i64 > self.frequent_calls as i64
    }

    /// Reads the clock; returns true if a check is due. Compares ticks, because a division would delay a message.
    #[cold]
    #[inline(never)]
    fn is_check_due(&mut self, every: CheckInterval) -> bool {
        let now = self.clock.ticks();
        let since = |then: u64| now.wrapping_sub(then);
        let (are_close, is_due) =
            (since(self.clock_read_at) < self.frequent_calls, since(self.checked_at) >= every.0 * self.ms);
        self.calls = if are_close { (2 * self.calls).min(MAX_CALLS) } else { 1 };
        self.calls_left = self.calls;
        self.clock_read_at = now;
        if is_due {
            self.checked_at = now;
        }
        is_due
    }

    /// Reads the clock at the next call.
    fn read_clock_next(&mut self) {
        (self.calls_left, self.calls) = (1, 1);
    }
}

/// State of the reading end: whether its log still has its name, and the log that follows, read by `T`.
pub(crate) struct NameWatch<T> {
    schedule: NameCheckSchedule,
    is_removed: bool,
    successor: Option<T>,
    /// Reason why the next log, which exists, cannot be opened.
    open_error: Option<String>,
    /// Number of times that the reader moved on to another log.
    switches: u64,
}

impl<T> NameWatch<T> {
    pub(crate) fn new(clock: HostClock) -> Self {
        let schedule = NameCheckSchedule::new(clock);
        Self { schedule, is_removed: false, successor: None, open_error: None, switches: 0 }
    }

    /// Returns true if [`Self::find_successor`] is due. Must be called whenever there is nothing to read.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.successor.is_some() || self.schedule.counts_to_clock_read() && self.schedule.is_check_due(self.interval())
    }

    /// Checks whether the log still has its name, and looks for its successor. Returns the successor one call after it
    /// was found, so once nothing was left to read: a publisher that has made it writes to the old log no more.
    #[cold]
    pub(crate) fn find_successor(
        &mut self,
        is_removed: impl FnOnce() -> bool,
        open: impl FnOnce() -> Result<T, LogOpenError>,
    ) -> Option<T> {
        if let Some(next) = self.successor.take() {
            self.is_removed = false;
            self.switches += 1;
            return Some(next);
        }
        self.is_removed = is_removed();
        self.open_error = None;
        if self.is_removed {
            match open() {
                Ok(next) => self.successor = Some(next),
                Err(LogOpenError::NotFound(_) | LogOpenError::NoQueue(_)) => {}
                Err(refused) => self.open_error = Some(refused.to_string()),
            }
        }
        None
    }

    /// Checks whether the log still has its name, for a reader that may not move on yet.
    #[cold]
    pub(crate) fn note_removal(&mut self, is_removed: impl FnOnce() -> bool) {
        self.is_removed = is_removed();
    }

    /// Limits a sleep to the time until the next check.
    pub(crate) fn sleep_ns(&mut self, timeout_ns: u64) -> u64 {
        self.schedule.read_clock_next();
        timeout_ns.min(self.interval().0 * MS)
    }

    pub(crate) fn switches(&self) -> u64 {
        self.switches
    }

    /// Returns the reason why no new messages may come, as a sentence.
    pub(crate) fn outage(&self, path: &LogPath) -> Option<String> {
        let next = match &self.open_error {
            Some(refused) => format!("the new files cannot be used: {refused}"),
            None => "the reader looks for new files".to_owned(),
        };
        self.is_removed.then(|| format!("{}; messages still written there arrive, and {next}", removed_sentence(path)))
    }

    fn interval(&self) -> CheckInterval {
        if self.is_removed { SUCCESSOR_INTERVAL } else { READER_INTERVAL }
    }
}

fn removed_sentence(path: &LogPath) -> String {
    let why = match path.is_shared_memory() {
        true => " (systemd removes them when their user logs out, unless RemoveIPC=no; see 'tickpath doctor')",
        false => "",
    };
    format!("the files of {path} were removed while they were in use{why}")
}

/// Writer that makes its log again where its files are gone. The fields that each message reads lie in front, and are
/// the same in a warm-up run: a path that only real messages take is cold for each of them.
#[repr(C)]
pub(crate) struct NamedWriter {
    schedule: NameCheckSchedule,
    pub(crate) writer: Writer,
    /// None for a log that only this process knows.
    recreation: Option<Box<LogRecreation>>,
}

struct LogRecreation {
    config: Config,
    /// Number of times that the log was made again.
    recreated: u64,
    /// Reason why the log could not be made again; none once it is.
    failure: Option<RecreateFailure>,
}

/// Reason why a log was not made again.
struct RecreateFailure {
    sentence: String,
    is_transient: bool,
}

impl NamedWriter {
    /// Creates the writer of a log that was opened with `config`.
    pub(crate) fn new(writer: Writer, config: Config, clock: HostClock) -> Self {
        let recreation = Some(Box::new(LogRecreation { config, recreated: 0, failure: None }));
        Self { schedule: NameCheckSchedule::new(clock), writer, recreation }
    }

    /// Creates the writer of a private log, for warm-up runs of this one.
    pub(crate) fn for_warm_up(&self, writer: Writer) -> Self {
        Self { schedule: NameCheckSchedule::new(self.schedule.clock), writer, recreation: None }
    }

    pub(crate) fn recreated(&self) -> u64 {
        self.recreation.as_ref().map_or(0, |recreation| recreation.recreated)
    }

    /// Checks whether the log still has its name, if that is due: before each publish, with its stamp, and when idle.
    #[inline(always)]
    pub(crate) fn check_name(&mut self, stamp: u64) -> Result<(), PublishError> {
        // A stamp is nearly always of now, and costs no read of the clock; one of the past means no check.
        if self.schedule.counts_to_clock_read() || self.schedule.is_past_clock_read(stamp) {
            self.check_name_if_due()
        } else {
            Ok(())
        }
    }

    #[cold]
    #[inline(never)]
    fn check_name_if_due(&mut self) -> Result<(), PublishError> {
        let Self { schedule, writer, recreation } = self;
        let has_failed = recreation.as_ref().is_some_and(|recreation| recreation.failure.is_some());
        let every = if has_failed { SUCCESSOR_INTERVAL } else { PUBLISHER_INTERVAL };
        let is_due = schedule.is_check_due(every);
        recreation.as_mut().map_or(Ok(()), |recreation| recreation.recreate_if_removed(schedule, writer, is_due))
    }
}

impl LogRecreation {
    fn recreate_if_removed(
        &mut self,
        schedule: &mut NameCheckSchedule,
        writer: &mut Writer,
        is_due: bool,
    ) -> Result<(), PublishError> {
        // The publish itself rejects a fork's copy of a writer.
        if writer.is_forked() {
            return Ok(());
        }
        match &self.failure {
            Some(failure) if !is_due => {
                // Each message is rejected until the log is made again.
                schedule.read_clock_next();
                return Err(failure.to_publish_error());
            }
            Some(_) => {}
            None if is_due && writer.is_removed() => {}
            None => return Ok(()),
        }
        let path = &self.config.path;
        let unfinished = writer.unfinished();
        let recreated = match unfinished {
            0 => writer.recreate(&self.config, schedule.clock.calibration()),
            _ => Ok(()),
        };
        let failure = match recreated {
            Ok(()) if unfinished == 0 => {
                (self.recreated, self.failure) = (self.recreated + 1, None);
                return Ok(());
            }
            Ok(()) => RecreateFailure {
                sentence: format!(
                    "{}: {unfinished} messages wait there for pullers that have the queue open to finish them. Open \
                     another pusher to continue without these messages",
                    removed_sentence(path)
                ),
                is_transient: true,
            },
            Err(e) => RecreateFailure {
                sentence: format!("{}, and this publisher cannot make them anew: {e}", removed_sentence(path)),
                is_transient: !matches!(e, LogOpenError::HasWriter { .. }),
            },
        };
        schedule.read_clock_next();
        let error = failure.to_publish_error();
        self.failure = Some(failure);
        Err(error)
    }
}

impl RecreateFailure {
    fn to_publish_error(&self) -> PublishError {
        PublishError::not_published(self.sentence.clone(), self.is_transient)
    }
}
