//! CPU and scheduling priority of a thread.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::once::SetOnce;

/// Errors of the scheduler.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The processor does not exist, or is not available to this process.
    #[error("CPU {cpu} is not available to this process; available: {available:?}")]
    NoSuchCpu {
        /// The requested number.
        cpu: usize,
        /// The available numbers.
        available: Vec<usize>,
    },
    /// The right to real-time priority is missing.
    #[error(
        "no right to real-time priority {0}; run: sudo setcap cap_sys_nice=eip $(command -v tickpath)   \
         (or give the user an rtprio limit in /etc/security/limits.conf)"
    )]
    NoPriorityRight(Priority),
    /// Any other error of the kernel, for this request.
    #[error("the scheduler refused {0}: {1}")]
    Refused(String, io::Error),
}

/// A scheduling priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// The scheduler's usual fair share.
    #[default]
    Normal,
    /// Real time, first in first out, 1 to 99.
    Fifo(u8),
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Fifo(level) => write!(f, "fifo:{level}"),
        }
    }
}

/// A text that is no priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no priority; use normal or fifo:1 to fifo:99")]
pub struct ParsePriorityError(String);

impl FromStr for Priority {
    type Err = ParsePriorityError;

    fn from_str(text: &str) -> Result<Self, ParsePriorityError> {
        if text == "normal" {
            return Ok(Self::Normal);
        }
        let level =
            text.strip_prefix("fifo:").and_then(|level| level.parse().ok()).filter(|level| (1..=99).contains(level));
        level.map(Self::Fifo).ok_or_else(|| ParsePriorityError(text.to_owned()))
    }
}

/// Returns the processors that this process may use, in ascending order.
pub fn cpus() -> Vec<usize> {
    // SAFETY: a CPU set is plain bits, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a valid place of the given size. The main thread's mask is read, by the process id, so that a
    // pinned thread still sees the CPUs that the process may use.
    let result = unsafe { libc::sched_getaffinity(libc::getpid(), size_of::<libc::cpu_set_t>(), &mut set) };
    if result != 0 {
        return vec![0];
    }
    // SAFETY: the index is below the number of bits in a set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Returns [`cpus`] from before any thread of this process was pinned: the main thread's own set may be a single CPU
/// afterwards.
pub(crate) fn cpus_before_pinning() -> &'static [usize] {
    static CPUS: SetOnce<Vec<usize>> = SetOnce::new();
    CPUS.get_or_init(cpus)
}

pub(crate) fn current_cpu() -> Option<usize> {
    // SAFETY: the call takes no argument and touches no memory of this process.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Pins the calling thread to one processor.
pub fn pin_to_cpu(cpu: usize) -> Result<(), ScheduleError> {
    cpus_before_pinning();
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(ScheduleError::NoSuchCpu { cpu, available: cpus() });
    }
    // SAFETY: a CPU set is plain bits; the index was checked; 0 is the calling thread.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 {
        return Ok(());
    }
    Err(match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EINVAL) => ScheduleError::NoSuchCpu { cpu, available: cpus() },
        reason => ScheduleError::Refused(format!("CPU {cpu}"), reason),
    })
}

/// Pins the calling thread, if a processor is given, and sets its priority, if it is not the default.
pub fn apply_schedule(cpu: Option<usize>, priority: Priority) -> Result<(), ScheduleError> {
    cpu.map_or(Ok(()), pin_to_cpu)?;
    if priority == Priority::Normal { Ok(()) } else { set_priority(priority) }
}

/// Makes the kernel kill this process when its parent ends, for whatever reason. Returns false if the parent is gone
/// already.
pub fn end_with_parent(parent: u32) -> bool {
    // SAFETY: both calls take numbers and touch no memory of this process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() as u32 == parent
    }
}

/// Sets how late a sleep of the calling thread may end for the kernel's convenience; the default is 50 µs.
pub fn set_timer_slack(ns: u64) {
    // SAFETY: the call takes numbers and touches no memory of this process.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
}

/// Sets the priority of the calling thread.
pub fn set_priority(priority: Priority) -> Result<(), ScheduleError> {
    let (policy, level) = match priority {
        Priority::Normal => (libc::SCHED_OTHER, 0),
        Priority::Fifo(level) => (libc::SCHED_FIFO, i32::from(level)),
    };
    // SAFETY: the parameters are plain numbers, more of them in some C libraries, for which zero is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = level;
    // SAFETY: the parameters are a valid struct; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &parameters) } == 0 {
        return Ok(());
    }
    Err(match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EPERM) => ScheduleError::NoPriorityRight(priority),
        reason => ScheduleError::Refused(priority.to_string(), reason),
    })
}

/// Makes the calling thread run only while its processor is otherwise idle. Returns false if the scheduler refuses.
pub(crate) fn run_when_idle() -> bool {
    // SAFETY: the parameters are plain numbers, for which zero is valid, and a valid struct; 0 is the calling thread.
    unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_missing_cpu_names_the_available_ones() {
        let error = pin_to_cpu(1_000_000).unwrap_err().to_string();
        assert!(error.contains("available: [0"), "{error}");
    }

    #[test]
    fn pinning_to_each_cpu_works() {
        for cpu in cpus() {
            std::thread::spawn(move || pin_to_cpu(cpu).unwrap()).join().unwrap();
        }
    }

    #[test]
    fn priorities_are_read() {
        assert_eq!("fifo:90".parse(), Ok(Priority::Fifo(90)));
        assert_eq!("normal".parse(), Ok(Priority::Normal));
        for bad in ["fifo:0", "fifo:100", "fifo", "rr:1", ""] {
            assert!(bad.parse::<Priority>().is_err(), "{bad}");
        }
    }
}
