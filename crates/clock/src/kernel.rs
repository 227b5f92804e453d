//! The kernel's accounts of a thread's stalls.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The kernel's counts for a thread since its start. The difference of two accounts shows why the thread stalled in
/// between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedulerStats {
    /// Number of times that the thread gave its processor away.
    pub voluntary: u64,
    /// Number of times that the thread was preempted for another thread.
    pub involuntary: u64,
    /// Time spent waiting for a processor that another thread had, in nanoseconds; none where the kernel does not
    /// report it.
    pub waited_ns: Option<u64>,
}

impl SchedulerStats {
    /// Returns whether the thread was off its processor between this account and a later one.
    pub(crate) fn has_switched(&self, later: &Self) -> bool {
        (self.voluntary, self.involuntary) != (later.voluntary, later.involuntary)
    }
}

/// Returns the processor time that a process has used up to now, also in threads that have ended, in nanoseconds; zero
/// if the process is gone.
pub fn cpu_ns(pid: u32) -> u64 {
    let (mut clock, mut used) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both places are valid ones for the results.
    let is_known =
        unsafe { libc::clock_getcpuclockid(pid as i32, &mut clock) == 0 && libc::clock_gettime(clock, &mut used) == 0 };
    if is_known { used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64 } else { 0 }
}

/// Reader of the account of the thread that made it.
#[derive(Debug)]
pub(crate) struct SchedulerStatsReader {
    run_delay: Option<File>,
}

impl SchedulerStatsReader {
    pub(crate) fn of_this_thread() -> Self {
        Self { run_delay: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Reads only the switches: one system call, about a microsecond. None where the kernel does not count them.
    pub(crate) fn switches(&self) -> Option<SchedulerStats> {
        // SAFETY: a usage is plain numbers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the place is a valid one for the result.
        let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let (voluntary, involuntary) = (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64);
        // Zero switches are valid for a thread that never left its processor; if the wait time is missing too, the
        // kernel keeps no counts.
        let is_counted = result == 0 && (voluntary + involuntary > 0 || self.run_delay.is_some());
        is_counted.then_some(SchedulerStats { voluntary, involuntary, waited_ns: None })
    }

    /// Reads the whole account: some microseconds.
    pub(crate) fn account(&self) -> Option<SchedulerStats> {
        Some(SchedulerStats { waited_ns: self.run_delay_ns(), ..self.switches()? })
    }

    /// Reads the second number of `schedstat`.
    fn run_delay_ns(&self) -> Option<u64> {
        let mut text = [0; 96];
        let bytes = self.run_delay.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..bytes]).ok()?.split_whitespace().nth(1)?.parse().ok()
    }
}

/// Keeps the signal of a resume after a stop (`SIGCONT`) pending for the threads of this process that check for it.
/// Called by the first thread of a process, before it starts others; spawned processes call it themselves.
pub fn track_stops() {
    // SAFETY: the set is filled before it is used; the call changes the mask of the calling thread alone.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &continuation(), std::ptr::null_mut()) };
}

/// Returns whether this process was stopped and resumed since the last call. False where [`track_stops`] was not
/// called.
pub(crate) fn was_continued() -> bool {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: set and time are valid; null is allowed for the details, which are not needed.
    unsafe { libc::sigtimedwait(&continuation(), std::ptr::null_mut(), &at_once) == libc::SIGCONT }
}

fn continuation() -> libc::sigset_t {
    // SAFETY: a signal set is plain bits, and is made empty before a valid signal is added.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCONT);
        set
    }
}
