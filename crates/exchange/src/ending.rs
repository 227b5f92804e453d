//! The end of a running venue's day, asked for by another process.

use rustix::process::{Pid, Signal, kill_process};
use tickpath_clock::sleep_ns;
use tickpath_log::{Next, OpenError, Place, ReadError, Reader, Registration, Start};

use crate::journal::END_OF_DAY;

/// Between two looks at the venue's journal, and how many of them.
const LOOK_NS: u64 = 10_000_000;
const LOOKS: u32 = 1_000;

/// Why a venue's day has not ended.
#[derive(Debug, thiserror::Error)]
pub enum EndDayError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No venue runs.
    #[error("no exchange writes {0}; start it with `tickpath exchange`")]
    NotRunning(Place),
    /// The process belongs to another user.
    #[error("process {pid}, which writes {journal}, cannot be asked ({reason}); ask as its user")]
    NotOurs {
        /// The process.
        pid: u32,
        /// The venue's journal.
        journal: Place,
        /// What the system said.
        reason: std::io::Error,
    },
    /// It runs where no signal of ours reaches it.
    #[error("the exchange that writes {0} is a process in another container; end its day in that one")]
    Elsewhere(Place),
    /// The venue has not done so in time.
    #[error("the exchange has not ended its day yet; it does so once it serves an OMS")]
    Unanswered,
}

/// Asks the venue that writes this journal to end its day, and waits up to ten seconds until its journal says so. `signal`
/// is the one by which [`Orders::end_day`](crate::Orders::end_day) is set.
pub fn end_day(journal: &Place, signal: Signal) -> Result<(), EndDayError> {
    let mut log = Reader::open(journal, Start::Now, Registration::Unregistered)?;
    let pid = log.writer().ok_or_else(|| EndDayError::NotRunning(journal.clone()))?;
    let process = Pid::from_raw(pid as i32).ok_or_else(|| EndDayError::Elsewhere(journal.clone()))?;
    kill_process(process, signal).map_err(|reason| {
        let (journal, reason) = (journal.clone(), reason.into());
        EndDayError::NotOurs { pid, journal, reason }
    })?;
    for _ in 0..LOOKS {
        while let Next::Message(record) = log.next()? {
            if record.kind == END_OF_DAY {
                return Ok(());
            }
        }
        sleep_ns(LOOK_NS);
    }
    Err(EndDayError::Unanswered)
}
