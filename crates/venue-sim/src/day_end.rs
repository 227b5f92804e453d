//! Ends the day of a running venue from another process.

use rustix::process::{Pid, Signal, kill_process};
use tickpath_clock::sleep_ns;
use tickpath_log::{LogOpenError, LogPath, LogReadError, Next, Reader, ReaderStart, Registration};

use crate::journal::END_OF_DAY;

/// Interval between two checks of the venue's journal, in nanoseconds.
const POLL_INTERVAL_NS: u64 = 10_000_000;
const MAX_POLLS: u32 = 1_000;

/// Error of [`end_day`]: the end of the venue's day is not confirmed.
#[derive(Debug, thiserror::Error)]
pub enum EndDayError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] LogOpenError),
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// No running venue writes this journal.
    #[error("no exchange writes {0}; start it with `tickpath exchange`")]
    NotRunning(LogPath),
    /// The process with this id, which writes this journal, belongs to another user.
    #[error("process {0}, which writes {1}, cannot be signaled ({2}); run this command as its user")]
    NotOurs(u32, LogPath, std::io::Error),
    /// The venue runs in another container, which this process cannot signal.
    #[error("the exchange that writes {0} is a process in another container; end its day in that one")]
    Elsewhere(LogPath),
    /// The venue has not ended its day in time.
    #[error("the exchange has not ended its day yet; it does so once it serves an OMS")]
    Unanswered,
}

/// Asks the venue that writes this journal to end its day, and waits up to ten seconds for the record of it. `signal`
/// must be the signal that sets [`VenueControl::end_day`](crate::VenueControl::end_day).
pub fn end_day(journal: &LogPath, signal: Signal) -> Result<(), EndDayError> {
    let mut log = Reader::open(journal, ReaderStart::Now, Registration::Unregistered)?;
    let pid = log.writer().ok_or_else(|| EndDayError::NotRunning(journal.clone()))?;
    let process = Pid::from_raw(pid as i32).ok_or_else(|| EndDayError::Elsewhere(journal.clone()))?;
    kill_process(process, signal).map_err(|reason| EndDayError::NotOurs(pid, journal.clone(), reason.into()))?;
    for _ in 0..MAX_POLLS {
        while let Next::Message(record) = log.next()? {
            if record.kind == END_OF_DAY {
                return Ok(());
            }
        }
        sleep_ns(POLL_INTERVAL_NS);
    }
    Err(EndDayError::Unanswered)
}
