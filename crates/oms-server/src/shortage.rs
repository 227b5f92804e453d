//! Accepting connections while descriptors are short: the acceptor pauses, warns the operator once, and resumes when
//! there is room.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

/// Descriptors that no connection gets: the journal opens its next segment with one of these.
const SPARE: u64 = 4;
/// The first pause of an acceptor that finds no descriptor; each further pause is twice as long, up to the longest.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// Time within which a shortage that returns belongs to the same episode, which is reported once.
const EPISODE_NS: u64 = 60_000_000_000;

/// State of a shortage of descriptors, with the time of the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    pause_ns: u64,
    /// No connection is accepted before this time, in ticks.
    until: u64,
    /// Time when descriptors were last short, in ticks; none before the first shortage.
    last: Option<u64>,
}

impl Shortage {
    pub fn may_accept(&self, now: u64) -> bool {
        now >= self.until
    }

    /// Resets the pause after a descriptor was there: the next pause is the first one again.
    pub fn reset_pause(&mut self) {
        self.pause_ns = 0;
    }

    /// Begins a pause because no descriptor was there. Returns true if the operator must be warned of a new episode.
    pub fn begin_pause(&mut self, now: u64, ticks_of_ns: impl Fn(u64) -> u64) -> bool {
        self.pause_ns = (self.pause_ns * 2).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.until = now + ticks_of_ns(self.pause_ns);
        let before = self.last.replace(now);
        before.is_none_or(|before| now.saturating_sub(before) > ticks_of_ns(EPISODE_NS))
    }
}

/// Returns the limit of open files of this process; none if there is no limit.
pub(crate) fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Checks that spare descriptors are left, by the number of a duplicate: the kernel gives the lowest free one.
pub(crate) fn check_descriptor(listener: &impl AsFd) -> io::Result<()> {
    let lowest = fcntl_dupfd_cloexec(listener, 0)?;
    let used = u64::from(lowest.as_raw_fd().unsigned_abs());
    match open_files_limit() {
        Some(limit) if limit.saturating_sub(SPARE) <= used => Err(Errno::MFILE.into()),
        _ => Ok(()),
    }
}

/// Returns whether an error means that the process or the host has nothing left for one more connection.
pub(crate) fn is_resource_shortage(e: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    short.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}
