//! Sleep on words of memory, also shared with other processes, and wake-ups that cost a writer next to nothing while no
//! thread sleeps.
//!
//! ```text
//!   sleeper                          writer
//!   flag := 1                        commit word := …            (release)
//!   heavy barrier                    light barrier
//!   check again; news? stay awake    flag = 0? done              (a load of a line that no process writes)
//!   futex wait while flag = 1        flag := 0, futex wake all
//! ```
//!
//! The two barriers are one half each of a store-load fence: without it both sides could miss each other. The sleeper's
//! half is `membarrier`, which makes every running thread of the host that registered for it execute a full fence; so
//! the writer's half is free, and a writer does not stall for the reader's cache line after each message. Where the
//! kernel has no `membarrier`, both halves are a full fence; a log's writer records the kind in the control file.
//! Design: `docs/design/wake-ups.md`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};

use crate::counter::monotonic_ns;
use crate::wait::yield_now;

/// `membarrier` commands, from the kernel's interface; libc does not define all of them.
const QUERY: libc::c_int = 0;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;

/// Set once the kernel has registered this process: from then on `membarrier` reaches its threads.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Implementation of the fence's two halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeBarrier {
    /// The sleeper pays.
    Membarrier,
    /// Both pay.
    Fence,
}

impl WakeBarrier {
    /// Returns the cheaper barrier that this host supports.
    ///
    /// Registration with the kernel takes some 10 ms as soon as a process has two threads: a thread registers, and
    /// until it is done this process's writers execute a full fence, which is right for either kind.
    pub fn of_this_host() -> Self {
        static IS_ASKED: AtomicBool = AtomicBool::new(false);
        let offered = membarrier(QUERY).unwrap_or(0);
        let wanted = i64::from(GLOBAL_EXPEDITED | REGISTER_GLOBAL_EXPEDITED);
        if offered & wanted != wanted {
            return Self::Fence;
        }
        // Not a `Once`: a fork in the middle of it would wait for a thread of its parent.
        if !IS_ASKED.swap(true, Ordering::Relaxed) {
            let ask = || {
                let answer = membarrier(REGISTER_GLOBAL_EXPEDITED);
                IS_REGISTERED.store(answer.is_some(), Ordering::Release);
            };
            // Without the thread this process keeps full fences, which cost some nanoseconds a message; so does a fork
            // from before the registration.
            let _ = std::thread::Builder::new().name("membarrier".to_owned()).spawn(ask);
        }
        Self::Membarrier
    }

    /// Returns the number of this kind, for a word that other processes read.
    pub fn code(self) -> u64 {
        match self {
            Self::Membarrier => 1,
            Self::Fence => 2,
        }
    }

    /// Returns the kind of this number; a full fence for any other number.
    pub fn from_code(code: u64) -> Self {
        if code == 1 { Self::Membarrier } else { Self::Fence }
    }

    /// Executes the writer's half, between the commit and the check of the flag.
    #[inline(always)]
    pub fn writer_fence(self) {
        match self {
            Self::Membarrier if IS_REGISTERED.load(Ordering::Acquire) => compiler_fence(Ordering::SeqCst),
            Self::Membarrier | Self::Fence => fence(Ordering::SeqCst),
        }
    }

    /// Executes the sleeper's half, between the flag and the last check. Returns false if this process cannot.
    pub fn sleeper_fence(self) -> bool {
        fence(Ordering::SeqCst);
        match self {
            Self::Membarrier => membarrier(GLOBAL_EXPEDITED).is_some(),
            Self::Fence => true,
        }
    }
}

/// Returns the kernel's answer; none if it refuses.
fn membarrier(command: libc::c_int) -> Option<i64> {
    // SAFETY: the call takes three numbers and touches no memory of this process.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    (answer >= 0).then_some(answer)
}

/// Max sleep, a day, in ns: longer ones would overflow the kernel's seconds.
const MAX_SLEEP_NS: u64 = 86_400_000_000_000;

/// Sleeps while the word has this value, until a wake-up or the timeout.
pub fn sleep_while(word: &AtomicU32, value: u32, timeout_ns: u64) {
    let timeout = timespec(timeout_ns.min(MAX_SLEEP_NS));
    // SAFETY: the word is a valid one for the call's length and the timeout a valid struct. All returns (woken, value
    // differed, interrupted, timed out) mean the same to the caller: check again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout) };
}

/// Futex word to sleep on, in the kernel's layout (`struct futex_waitv`).
#[derive(Clone, Copy)]
#[repr(C)]
struct FutexWaiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

const FUTEX2_SIZE_U32: u32 = 2;

/// Max flags that one thread can sleep on.
pub const MAX_SLEEP_FLAGS: usize = 128;

/// Sleeps while all flags are 1, until a wake-up of one of them or the timeout.
pub fn sleep_while_all_set(flags: &[&AtomicU32], timeout_ns: u64) {
    let mut waiters = [FutexWaiter { value: 0, address: 0, flags: 0, reserved: 0 }; MAX_SLEEP_FLAGS];
    for (waiter, flag) in waiters.iter_mut().zip(flags) {
        *waiter = FutexWaiter { value: 1, address: flag.as_ptr() as u64, flags: FUTEX2_SIZE_U32, reserved: 0 };
    }
    // The call takes an absolute time of CLOCK_MONOTONIC, not a duration.
    let until = timespec(monotonic_ns() + timeout_ns.min(MAX_SLEEP_NS));
    let count = flags.len().min(MAX_SLEEP_FLAGS);
    // SAFETY: the waiters are valid structs that name valid words for the call's length; see `sleep_while`.
    let result =
        unsafe { libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), count, 0, &until, libc::CLOCK_MONOTONIC) };
    if result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
        // Before Linux 5.16 one thread cannot sleep on several words.
        yield_now();
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Clears the flag and wakes all sleepers on it.
#[cold]
pub fn wake_all(flag: &AtomicU32) {
    flag.store(0, Ordering::SeqCst);
    wake(flag, i32::MAX);
}

/// Wakes a thread that sleeps on the word; returns false if there was none.
pub(crate) fn wake_one(word: &AtomicU32) -> bool {
    wake(word, 1) == 1
}

/// Wakes up to `max` threads that sleep on the word; returns the kernel's answer, their number.
fn wake(word: &AtomicU32, max: i32) -> i64 {
    // SAFETY: the word is a valid one for the call's length.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, max) }
}
