//! Accepting connections while descriptors are short: the acceptor pauses, the operator is told once, and accepting goes on
//! when there is room.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

/// Descriptors that no connection gets: the journal opens its next segment with one of these.
const SPARE: u64 = 4;
/// The first pause of an acceptor that finds no descriptor; each further pause is twice as long, up to the longest.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// A shortage that comes back within this time belongs to the same episode, which is told once.
const EPISODE_NS: u64 = 60_000_000_000;

/// Whether descriptors are short, and when the acceptor tries again.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    pause_ns: u64,
    /// No connection is accepted before this time, in ticks.
    until: u64,
    /// When descriptors were last short, in ticks; none before the first shortage.
    last: Option<u64>,
}

impl Shortage {
    /// Whether the acceptor may try now.
    pub fn may_accept(&self, now: u64) -> bool {
        now >= self.until
    }

    /// A descriptor was there: the next pause is the first one again.
    pub fn ends(&mut self) {
        self.pause_ns = 0;
    }

    /// No descriptor was there: the acceptor pauses. True if this begins an episode, which the operator must be told of.
    pub fn begins(&mut self, now: u64, ticks_of_ns: impl Fn(u64) -> u64) -> bool {
        self.pause_ns = (self.pause_ns * 2).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.until = now + ticks_of_ns(self.pause_ns);
        let before = self.last.replace(now);
        before.is_none_or(|before| now.saturating_sub(before) > ticks_of_ns(EPISODE_NS))
    }
}

/// The limit of open files of this process; none if there is no limit.
pub(crate) fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Looks whether one more connection leaves the spare descriptors alone. The kernel gives the lowest free descriptor, so a
/// duplicate of `listener` tells how many are left.
pub(crate) fn has_descriptor(listener: &impl AsFd) -> io::Result<()> {
    let lowest = fcntl_dupfd_cloexec(listener, 0)?;
    let taken = u64::from(lowest.as_raw_fd().unsigned_abs());
    match open_files_limit() {
        Some(limit) if limit.saturating_sub(SPARE) <= taken => Err(Errno::MFILE.into()),
        _ => Ok(()),
    }
}

/// Whether an error says that the process or the host has nothing left for one more connection.
pub(crate) fn is_short(e: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    short.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}
